"""What a file is read into: a float32 matrix, the names of its columns, and the columns that come with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

# Longer lists of columns are cut in messages: a file of pixels has hundreds.
SHOWN_NAMES = 8


class ReadError(ValueError):
    """A file that cannot be read as a table of numbers; the message is one line for the user."""


@dataclass(frozen=True)
class Wanted:
    """Which columns of a file are features (None: all that can be), which one is the label, which come along."""

    columns: Sequence[str] | None = None
    label: str | None = None
    along: Sequence[str] = ()
    array: str | None = None

    def check(self) -> None:
        if self.columns is not None and len(self.columns) != len(set(self.columns)):
            raise ReadError("columns must not name a column twice")
        if self.columns is not None and self.label is not None and self.label in self.columns:
            raise ReadError(f"column {self.label!r} cannot be both a feature and the label")

    @property
    def apart(self) -> set[str]:
        """Columns that are no features unless they are asked for."""
        return {*self.along, *([] if self.label is None else [self.label])}


@dataclass(frozen=True)
class Table:
    """Rows to embed. `ignored` names the columns of the file that are neither features nor asked for."""

    X: NDArray[np.float32]
    feature_names: tuple[str, ...]
    labels: NDArray[Any] | None = None
    along: dict[str, NDArray[Any]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def frame_table(path: Path, frame: pl.DataFrame, wanted: Wanted, first: int = 0) -> Table:
    """A table from columns of any type; a column whose name is empty (an index) is no feature unless asked for.

    ``first`` is the number that the first row has in its file.
    """
    import polars as pl

    if frame.height == 0:
        raise ReadError(f"{path} has no rows")
    numeric = {name for name, dtype in frame.schema.items() if dtype.is_numeric() or dtype == pl.Boolean}
    usable = [name for name in frame.columns if name in numeric and name and name not in wanted.apart]
    chosen = _chosen(path, frame.columns, wanted, usable)
    for name in chosen:
        if name not in numeric:
            raise ReadError(f"{path}: column {name!r} is not numeric ({frame.schema[name]})")
    X = np.empty((frame.height, len(chosen)), dtype=np.float32)
    for a, name in enumerate(chosen):
        with np.errstate(over="ignore"):
            X[:, a] = frame[name].cast(pl.Float64).to_numpy()
    _check_finite(path, X, chosen, lambda row, column: frame[row, chosen[column]], first)
    return _described(frame.columns, X, chosen, wanted, lambda name: _column_values(frame[name]))


def array_table(
    path: Path, array: NDArray[Any], beside: dict[str, NDArray[Any]], wanted: Wanted, first: int = 0
) -> Table:
    """A table from a matrix, whose columns are named "0", "1", …, and from named columns beside it."""
    check_matrix(path, array)
    names = [str(a) for a in range(array.shape[1])]
    usable = [name for name in names if name not in wanted.apart]
    chosen = _chosen(path, [*names, *beside], wanted, usable)
    for name in chosen:
        if name not in names:
            raise ReadError(f"{path}: column {name!r} lies beside the matrix and cannot be a feature")
    picked = array if chosen == names else array[:, [int(name) for name in chosen]]
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(picked, dtype=np.float32)
    _check_finite(path, X, chosen, lambda row, column: picked[row, column], first)
    return _described(
        [*names, *beside],
        X,
        chosen,
        wanted,
        lambda name: beside[name] if name in beside else whole_numbers(array[:, int(name)]),
    )


def check_matrix(path: Path, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "fiub":
        raise ReadError(f"{path} holds {array.dtype} values, not real numbers")
    if array.ndim != 2:
        raise ReadError(f"{path} must hold a 2-D array, got shape {array.shape}")
    if len(array) == 0:
        raise ReadError(f"{path} has no rows")


def whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """A matrix has one dtype, so that classes stored beside floats come as 3.0: as integers if all are whole."""
    whole = values.dtype.kind == "f" and np.isfinite(values).all() and (values % 1 == 0).all()
    return values.astype(np.int64) if whole else values


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _described(
    names: Sequence[str],
    X: NDArray[np.float32],
    chosen: list[str],
    wanted: Wanted,
    values: Callable[[str], NDArray[Any]],
) -> Table:
    labels = None if wanted.label is None else values(wanted.label)
    ignored = tuple(name for name in names if name not in {*chosen, *wanted.apart})
    return Table(X, tuple(chosen), labels, {name: values(name) for name in wanted.along}, ignored)


def _column_values(series: pl.Series) -> NDArray[Any]:
    if series.dtype.is_numeric() and not series.null_count():
        return series.to_numpy()
    return np.array([None if value is None else str(value) for value in series.to_list()], dtype=object)


def _chosen(path: Path, names: Sequence[str], wanted: Wanted, usable: Sequence[str]) -> list[str]:
    """The feature columns: those asked for, or every usable one."""
    for name in [*(wanted.columns or []), *([] if wanted.label is None else [wanted.label]), *wanted.along]:
        if name not in names:
            raise ReadError(f"{path} has no column {name!r}; it has {listed(names)}")
    if wanted.columns is not None and not wanted.columns:
        raise ReadError("columns must name at least one column")
    if wanted.columns is None and not usable:
        raise ReadError(f"{path} has no numeric column to embed; it has {listed(names)}")
    return list(usable if wanted.columns is None else wanted.columns)


def _check_finite(
    path: Path, X: NDArray[np.float32], names: Sequence[str], original: Callable[[int, int], Any], first: int = 0
) -> None:
    """Refuse missing and infinite values, and those that became infinite as float32, by the first row."""
    finite = np.isfinite(X)
    if finite.all():
        return
    row, column = (int(a) for a in np.argwhere(~finite)[0])
    value = original(row, column)
    if value is None:
        what = "no value"
    elif np.isfinite(value):
        what = f"{value}, too large for float32,"
    else:
        what = str(value)
    raise ReadError(f"{path}: row {first + row} has {what} in column {names[column]!r}")
