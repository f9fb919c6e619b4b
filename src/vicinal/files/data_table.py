"""The table that a file is read into: a float32 matrix, its column names, labels and extra columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl


# Column names shown in a message: a file of images has hundreds.
SHOWN_NAMES = 8


class ReadError(ValueError):
    """A file cannot be read as a table of numbers; the message is one line for the user."""


@dataclass(frozen=True)
class ColumnSelection:
    """Which columns to read: features (None: all numeric columns), the label, and extra columns.

    ``array`` is the name of the matrix in a file that has several. ``vectors`` is a column whose every entry is a list
    of numbers, the features of that row. With ``missing``, features may be missing and become NaN.
    """

    columns: Sequence[str] | None = None
    label: str | None = None
    extra: Sequence[str] = ()
    array: str | None = None
    vectors: str | None = None
    missing: bool = False

    def check(self) -> None:
        if self.columns is not None and len(self.columns) != len(set(self.columns)):
            raise ReadError("columns must not contain the same column twice")
        if self.columns is not None and self.label is not None and self.label in self.columns:
            raise ReadError(f"column {self.label!r} cannot be both a feature and the label")
        if self.columns is not None and self.vectors is not None:
            raise ReadError("columns and vectors cannot be used together: the vectors are the features")

    @property
    def not_features(self) -> set[str]:
        """The label and the extra columns, which are features only if ``columns`` lists them."""
        return {*self.extra, *([] if self.label is None else [self.label])}


@dataclass(frozen=True)
class DataTable:
    """Rows to embed. ``ignored`` lists the columns of the file that are neither features nor requested.

    ``row_names`` are names of the rows that the format itself has, such as the cell names of an .h5ad file.
    """

    X: NDArray[np.float32]
    feature_names: tuple[str, ...]
    labels: NDArray[Any] | None = None
    extra: dict[str, NDArray[Any]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    row_names: NDArray[Any] | None = None


def frame_table(path: Path, frame: pl.DataFrame, selection: ColumnSelection, first: int = 0) -> DataTable:
    """Make a table from a polars frame; a column with an empty name (an index) is a feature only if requested.

    ``first`` is the number of the frame's first row within its file, for error messages.
    """

    if frame.height == 0:
        raise ReadError(f"{path} has no rows")
    vectors = vector_column(path, frame, selection)
    if vectors is not None:
        X, chosen = _vectors(path, frame[vectors], first)
        taken = [vectors]
        _feature_columns(path, frame.columns, replace(selection, columns=taken), taken)
    else:
        X, chosen = _scalars(path, frame, selection)
        taken = chosen
    original = (lambda row, column: frame[vectors][row][column]) if vectors else (lambda r, c: frame[r, chosen[c]])
    _check_finite(path, X, chosen, original, first, selection.missing)
    return _build_table(frame.columns, X, (chosen, taken), selection, lambda name: _column_values(frame[name]))


def vector_column(path: Path, frame: pl.DataFrame, selection: ColumnSelection) -> str | None:
    """Return the column of vectors to embed: the requested one, or the only one if no columns are requested."""
    import polars as pl

    kinds = (pl.List, pl.Array)
    found = [name for name, dtype in frame.schema.items() if isinstance(dtype, kinds) and dtype.inner.is_numeric()]
    if selection.vectors is not None:
        if selection.vectors in frame.columns and selection.vectors not in found:
            dtype = frame.schema[selection.vectors]
            raise ReadError(f"{path}: column {selection.vectors!r} does not contain lists of numbers ({dtype})")
        return selection.vectors if selection.vectors in found else _absent(path, selection.vectors, frame.columns)
    free = [name for name in found if name not in selection.not_features]
    if selection.columns is not None or not free:
        return None
    if len(free) > 1:
        raise ReadError(f"{path} has several columns of vectors; choose one with --vectors: {listed(free)}")
    return free[0]


def _absent(path: Path, name: str, names: Sequence[str]) -> str:
    raise ReadError(f"{path} has no column {name!r}; it has {listed(names)}")


def _vectors(path: Path, series: pl.Series, first: int) -> tuple[NDArray[np.float32], list[str]]:
    """Return a column of lists as a matrix; all lists must have the same length."""
    import polars as pl

    lengths = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
    sizes = lengths.cast(pl.Int64).fill_null(-1).to_numpy()
    width = int(sizes.max())
    short = np.flatnonzero(sizes != width)
    if len(short):
        size = sizes[short[0]]
        what = "no vector" if size < 0 else f"a vector of {size} numbers"
        raise ReadError(f"{path}: row {first + short[0]} has {what} in column {series.name!r}, others have {width}")
    if width < 1:
        raise ReadError(f"{path}: the vectors of column {series.name!r} are empty")
    with np.errstate(over="ignore"):
        X = series.explode().cast(pl.Float64).to_numpy().reshape(len(series), width).astype(np.float32)
    return X, [f"{series.name}[{a}]" for a in range(width)]


def _scalars(path: Path, frame: pl.DataFrame, selection: ColumnSelection) -> tuple[NDArray[np.float32], list[str]]:
    """Return the numeric feature columns as a matrix."""
    import polars as pl

    numeric = {name for name, dtype in frame.schema.items() if dtype.is_numeric() or dtype == pl.Boolean}
    usable = [name for name in frame.columns if name in numeric and name and name not in selection.not_features]
    if selection.columns is None:
        # ids are left out, unless they are all there is: then the error below says so
        usable = [name for name in usable if not _are_ids(frame[name])] or usable[:1]
    chosen = _feature_columns(path, frame.columns, selection, usable)
    for name in chosen:
        if name not in numeric:
            raise ReadError(f"{path}: column {name!r} is not numeric ({frame.schema[name]})")
    if selection.columns is None and len(chosen) == 1 and _are_distinct_integers(frame[chosen[0]]):
        raise ReadError(
            f"{path}: the only numeric column, {chosen[0]!r}, has distinct whole numbers, which look like row ids; "
            f"use --columns {chosen[0]} to embed it"
        )
    X = np.empty((frame.height, len(chosen)), dtype=np.float32)
    for a, name in enumerate(chosen):
        with np.errstate(over="ignore"):
            X[:, a] = frame[name].cast(pl.Float64).to_numpy()
    return X, chosen


def _are_ids(series: pl.Series) -> bool:
    """Return whether a column is named like an id and has distinct whole numbers."""
    named = re.fullmatch(r"(.*[_ .-])?(id|index|idx|uid|uuid|row)", series.name.strip().lower()) is not None
    return named and _are_distinct_integers(series)


def _are_distinct_integers(series: pl.Series) -> bool:
    return bool(series.dtype.is_integer() and series.n_unique() == len(series) and len(series) > 1)


def array_table(
    path: Path, array: NDArray[Any], named_columns: dict[str, NDArray[Any]], selection: ColumnSelection, first: int = 0
) -> DataTable:
    """Make a table from a matrix, whose columns are named "0", "1", …, and from separate named columns.

    ``first`` is the number of the matrix's first row within its file, for error messages.
    """
    check_matrix(path, array)
    names = [str(a) for a in range(array.shape[1])]
    usable = [name for name in names if name not in selection.not_features]
    chosen = _feature_columns(path, [*names, *named_columns], selection, usable)
    for name in chosen:
        if name not in names:
            raise ReadError(f"{path}: {name!r} is not a column of the matrix and cannot be a feature")
    picked = array if chosen == names else array[:, [int(name) for name in chosen]]
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(picked, dtype=np.float32)
    _check_finite(path, X, chosen, lambda row, column: picked[row, column], first, selection.missing)
    return _build_table(
        [*names, *named_columns],
        X,
        (chosen, chosen),
        selection,
        lambda name: named_columns[name] if name in named_columns else whole_numbers(array[:, int(name)]),
    )


def check_matrix(path: Path, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "fiub":
        raise ReadError(f"{path} contains {array.dtype} values, not real numbers")
    if array.ndim != 2:
        raise ReadError(f"{path} must contain a 2-D array, got shape {array.shape}")
    if len(array) == 0:
        raise ReadError(f"{path} has no rows")


def whole_numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Convert floats to integers if all are whole: class numbers in a float matrix become 3, not 3.0."""
    whole = values.dtype.kind == "f" and np.isfinite(values).all() and (values % 1 == 0).all()
    return values.astype(np.int64) if whole else values


def first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _build_table(
    names: Sequence[str],
    X: NDArray[np.float32],
    features: tuple[list[str], list[str]],
    selection: ColumnSelection,
    values: Callable[[str], NDArray[Any]],
) -> DataTable:
    """Make a table; ``features`` has the names of the features and of the columns of the file that contain them."""
    chosen, taken = features
    labels = None if selection.label is None else _without_bytes(values(selection.label))
    ignored = tuple(name for name in names if name not in {*taken, *selection.not_features})
    extra = {name: _without_bytes(values(name)) for name in selection.extra}
    return DataTable(X, tuple(chosen), labels, extra, ignored)


def _without_bytes(values: NDArray[Any]) -> NDArray[Any]:
    """Return texts that a file holds as bytes as text, which every output can contain."""
    if values.dtype.kind not in "SO":
        return values
    texts = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values.tolist()]
    out = np.empty(len(texts), dtype=object)
    out[:] = texts
    return out


def _column_values(series: pl.Series) -> NDArray[Any]:
    if series.dtype.is_numeric():
        # missing numbers become NaN, so that the others stay numbers
        return series.to_numpy()
    return np.array([None if value is None else str(value) for value in series.to_list()], dtype=object)


def _feature_columns(path: Path, names: Sequence[str], selection: ColumnSelection, usable: Sequence[str]) -> list[str]:
    """Return the feature columns: the requested ones, or all usable ones."""
    for name in [*(selection.columns or []), *([] if selection.label is None else [selection.label]), *selection.extra]:
        if name not in names:
            _absent(path, name, names)
    if selection.columns is not None and not selection.columns:
        raise ReadError("columns must list at least one column")
    if selection.columns is None and not usable:
        raise ReadError(f"{path} has no numeric column to embed; it has {listed(names)}")
    return list(usable if selection.columns is None else selection.columns)


def _check_finite(
    path: Path,
    X: NDArray[np.float32],
    names: Sequence[str],
    original: Callable[[int, int], Any],
    first: int = 0,
    missing: bool = False,
) -> None:
    """Raise for the first row with a missing or infinite value, or one that is too large for float32.

    With ``missing``, missing values are accepted.
    """
    finite = ~np.isinf(X) if missing else np.isfinite(X)
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
