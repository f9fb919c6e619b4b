"""Say what the columns of a file are used for: one line per run, and the table of `vicinal describe`."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vicinal.cli import options
from vicinal.cli.writing import STDOUT, print_table
from vicinal.files.data_table import SHOWN_NAMES, Column, DataTable, Role

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Columns of a table in the terminal; wide tables have thousands.
MOST_ROWS = 200
USES = {
    Role.FEATURE: "features", Role.LABEL: "label", Role.ID: "id", Role.VALUE: "values", Role.DISPLAY: "shown",
    Role.IGNORED: "ignored",
}  # fmt: skip
# Scaling is suggested if one column has this share of the variance, and this multiple of the usual deviation.
DOMINANT, WIDER = 0.9, 10.0
# Metrics that do not compare columns by their sizes.
SCALE_FREE = ("hamming", "jaccard", "dice", "mahalanobis", "seuclidean", "standardised_euclidean")


def describe(*, file: options.Source, columns: options.Chosen) -> int:
    """Show the columns of a file, and what the other commands would use them for and why. Nothing is embedded."""
    from vicinal.cli import BAD_INPUT
    from vicinal.files.readers import describe as columns_of

    n, found, matrix, problem = columns_of(file, columns)
    print(f"{file}: {n:,} rows, {len(found):,} columns")
    print_columns(found, matrix)
    if problem:
        print("error:", problem, file=sys.stderr)
    return BAD_INPUT if problem else 0


def print_columns(columns: Sequence[Column], matrix: str = "") -> None:
    """Print a table with the use of every column and the reason; the columns of a named matrix share a line."""
    uses = USES | {Role.FEATURE: "feature", Role.VALUE: "value"}
    listed = [one for one in columns if not matrix or one.role is not Role.FEATURE]
    rows = [(one.name or '""', f"{uses[one.role]:9}{one.reason}".strip()) for one in listed]
    if matrix:
        rows.insert(0, (matrix, f"features {len(columns) - len(listed):,} columns"))
    if len(rows) > MOST_ROWS:
        rows = [*rows[:MOST_ROWS], ("…", f"{len(rows) - MOST_ROWS:,} more")]
    print_table(("column", "used for"), rows)
    texts = [one for one in columns if re.match(r"text, \d+ classes|dates(,|$)", one.reason)]
    if texts:
        print(f"columns of classes and dates, such as {texts[0].name!r}, are features with --categories and --dates")


def columns_line(columns: Sequence[Column], matrix: str = "", features: str = "features") -> str:
    """Return one line with the use of every column, and the reason where there is one.

    ``matrix`` names the features, if the file has several matrices, and ``features`` says what they are.
    """
    parts = []
    for role, use in (USES | {Role.FEATURE: features}).items():
        found = [column for column in columns if column.role is role]
        if not found:
            continue
        groups: dict[str, list[str]] = {}
        for column in found:
            groups.setdefault(column.reason, []).append(" ".join(column.name.split()) or '""')
        told = [_some(names) + (f" ({reason})" if reason else "") for reason, names in groups.items()]
        count = f"{len(found):,} " if len(found) > 1 and role is not Role.LABEL else ""
        names_or_matrix = f"columns of {matrix}" if matrix and role is Role.FEATURE else _some(told)
        parts.append(f"{count}{use}: {names_or_matrix}")
    return "; ".join(parts)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES:,} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more


def announce_columns(table: DataTable, output: Path | None, *, all_columns: bool, quiet: bool) -> None:
    """Say what the columns are used for, on standard error if standard output has the map."""
    if quiet:
        return
    if all_columns and output != STDOUT:
        print_columns(table.columns, table.matrix)
        return
    print(columns_line(table.columns, table.matrix), file=sys.stderr if output == STDOUT else sys.stdout)


def warn_of_scale(table: DataTable, X: NDArray[np.float32], metric: str | None, *, quiet: bool) -> None:
    """Suggest to scale if a single column decides the distances; ``X`` are the prepared rows."""
    import numpy as np

    names = table.feature_names
    # the sizes of the columns of a matrix or of a vector are part of the data
    if quiet or table.matrix or table.vectors or len(names) < 2 or X.shape[1] != len(names) or names[0].isdigit():
        return
    if metric in SCALE_FREE:
        return
    spread = np.nanstd(X.astype(np.float64), axis=0)
    widest = int(np.argmax(spread))
    share = spread[widest] ** 2 / max(float((spread**2).sum()), np.finfo(float).tiny)
    if share >= DOMINANT and spread[widest] >= WIDER * np.median(np.delete(spread, widest)):
        hint = f"column {names[widest]!r} has {share:.0%} of the variance, so that the map shows little else"
        print(f"warning: {hint}; --scale standard makes all columns count the same", file=sys.stderr)


def roles_of(columns: Sequence[Column]) -> dict[str, Any]:
    """Return the columns by use, and the reasons by column, for a report."""
    used = {str(role): [column.name for column in columns if column.role is role] for role in Role}
    return {
        "roles": {role: names for role, names in used.items() if names},
        "reasons": {column.name: column.reason for column in columns if column.reason},
    }
