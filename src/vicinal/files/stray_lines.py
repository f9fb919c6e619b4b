"""Find lines of a table that are no rows: titles, second lines of names, units, and totals.

Nothing is left out by itself: a line that looks like one of these is an error that names the option for it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.column_contents import Content, Kind
from vicinal.files.data_table import ReadError, listed
from vicinal.files.number_texts import FileFormat

if TYPE_CHECKING:
    import polars as pl

# Formats whose lines people write; a database has no titles.
WRITTEN = (".csv", ".tsv", ".xlsx", ".ods")
NUMBER = r"[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?"
UNNAMED = r"|_duplicated_\d+|__UNNAMED__\d+"
# This many numbers in ascending or descending order are names: wavelengths, positions.
FEWEST_ORDERED = 4
FIRST_YEAR, LAST_YEAR = 1900, 2100
# Names and units take a few lines. Fewer rows, or sums of fewer numbers, show no total.
MOST_LINES_OF_NAMES = 3
FEWEST_SUMMED = 6
# How near a total is, relative to the sum, and a mean, relative to the standard deviation.
SUM_TOLERANCE, MEAN_TOLERANCE = 1e-4, 1e-3


def require_names(path: Path, fields: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Raise ReadError if the first line has numbers that are hardly names, and texts only above texts in ``rows``."""
    numbers = [field.strip() for field in fields if _is_number(field)]
    values = [float(one.replace(",", ".")) for one in numbers]
    steps = [b - a for a, b in pairwise(values)]
    ordered = all(step > 0 for step in steps) or all(step < 0 for step in steps)
    years = all(one % 1 == 0 and FIRST_YEAR <= one <= LAST_YEAR for one in values)
    counted = bool(values) and values[0] in (0, 1) and all(step == 1 for step in steps)
    if not values or counted or (ordered and (years or len(values) >= FEWEST_ORDERED)):
        return
    texts = [a for a, field in enumerate(fields) if field.strip() and not _is_number(field)]
    if any(_is_number(row[a]) for row in rows for a in texts if a < len(row)):
        return
    raise ReadError(
        f"{path}: the first line has names or is a row, it has numbers: {listed(numbers)}; say --header or --no-header"
    )


def _is_number(field: Any) -> bool:
    return re.fullmatch(NUMBER, str(field).strip()) is not None


def require_titles(path: Path, frame: pl.DataFrame, form: FileFormat) -> None:
    """Raise ReadError if most columns with values have no name: the first line is then a title."""
    unnamed = [name for name in frame.columns if re.fullmatch(UNNAMED, name)]
    filled = [name for name in unnamed if frame[name].null_count() < frame.height]
    if form.header or len(filled) < 2 or 2 * len(filled) < frame.width - len(unnamed) + len(filled):
        return
    lines = next(lines_after(form, 0))
    raise ReadError(
        f"{path}: line {lines} names {frame.width - len(unnamed)} of {frame.width} columns; "
        f"if it is a title, leave it out: --skip {span(1, lines)}; if not: --header"
    )


def lines_after(form: FileFormat, line: int) -> Iterator[int]:
    """Yield the numbers of the lines that are read, beyond a number."""
    return (number for number in count(line + 1) if number not in form.skip)


def span(first: int, last: int) -> str:
    """Write numbers of lines as `--skip` reads them."""
    return str(last) if first == last else f"{first}-{last}"


def require_rows(path: Path, contents: Mapping[str, Content], form: FileFormat) -> None:
    """Raise ReadError if lines among the rows have names or units instead of numbers."""
    numeric = {name: one for name, one in contents.items() if one.kind is Kind.NUMBERS}
    columns = {name: one for name, one in numeric.items() if one.odd}
    odd = {name: one.odd for name, one in columns.items()}
    found = Counter(row for rows in odd.values() for row in rows)
    header = next(lines_after(form, 0)) if form.header is not False else 0
    stray: list[int] = []
    while len(stray) < MOST_LINES_OF_NAMES and found[len(stray)] >= max(2, len(numeric) / 2):
        stray.append(len(stray))
    if stray:
        numbers = lines_after(form, header)
        lines = [next(numbers) for _ in stray]
        texts = [str(columns[name].given[0]) for name, rows in odd.items() if 0 in rows]
        raise ReadError(
            f"{path}: line {lines[0]} has texts above numbers: {listed(texts)}; with units or further names, leave "
            f"it out: --skip {span(lines[0], lines[-1])}; if it has the names: --skip {span(1, header)}"
        )
    again = Counter(row for name, rows in odd.items() for row in rows if str(columns[name].given[row]).strip() == name)
    for row, times in again.items():
        if times >= max(2, len(numeric) / 2):
            raise ReadError(f"{path}: row {row} repeats the names of the columns; --skip leaves lines out by number")


def require_no_total(path: Path, groups: Iterable[tuple[Sequence[str], NDArray[np.float64]]]) -> None:
    """Raise ReadError if the last row has the sums or the means of the other rows."""
    sums = means = columns = 0
    for names, numbers in groups:
        above, last = numbers[:-1], numbers[-1]
        if len(above) < FEWEST_SUMMED:
            return
        known = ~np.isnan(above)
        usual = (known & (above != 0)).sum(axis=0) >= FEWEST_SUMMED
        with np.errstate(invalid="ignore", over="ignore"):
            total, n = np.where(known, above, 0).sum(axis=0), np.maximum(1, known.sum(axis=0))
            spread = np.sqrt(np.where(known, (above - total / n) ** 2, 0).sum(axis=0) / n)
            sums += int((usual & (np.abs(last - total) <= SUM_TOLERANCE * np.abs(total))).sum())
            means += int((usual & (spread > 0) & (np.abs(last - total / n) <= MEAN_TOLERANCE * spread)).sum())
        columns += len(names)
    if sums >= max(1, columns / 2) or means >= max(2, columns / 2):
        raise ReadError(f"{path}: the last row has the sums or means of the rows above it; leave it out: --skip -1")
