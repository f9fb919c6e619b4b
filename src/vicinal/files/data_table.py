"""The table that a file is read into: a matrix of the features, and every column with its role."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.runtime.inputs import ROW_TYPES

if TYPE_CHECKING:
    import polars as pl


# Column names shown in a message: a file of images has hundreds.
SHOWN_NAMES = 8
# Features are shown with a map if there are at most this many.
MOST_SHOWN = 24
# Why columns are ignored if the features were chosen by name.
NOT_CHOSEN = "not chosen"


# Characters of a library's message, and of a word of ours.
LONGEST_LINE, LONGEST_WORD = 300, 100


class ReadError(ValueError):
    """A file cannot be read as a table of numbers; the message is one line for the user."""

    def __init__(self, message: str) -> None:
        # A message may quote a cell or a column name of any length.
        words = re.sub(rf"\S{{{LONGEST_LINE},}}", lambda word: f"{word[0][:LONGEST_WORD]}...", message)
        super().__init__(" ".join(words.splitlines()))


class Role(StrEnum):
    """What a column is used for."""

    FEATURE = "feature"
    LABEL = "label"
    ID = "id"
    VALUE = "value"  # numbers that color the map
    DISPLAY = "display"
    IGNORED = "ignored"


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, what it is used for and why, and one value per row.

    ``values`` is None if the column was not read, and for features, whose values are columns of a matrix. ``colors``
    are those of its classes, if the file has them.
    """

    name: str
    role: Role
    values: NDArray[Any] | None = None
    reason: str = ""
    colors: Mapping[str, str] | None = None

    def part(self, rows: slice) -> Column:
        """Return some rows of the column."""
        return self if self.values is None else replace(self, values=self.values[rows])


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a file to read, by name, and as what.

    Parameters
    ----------
    features : sequence of str, optional
        By default all numeric columns that have no other role. The columns of a matrix, or of a .csv or .tsv file
        without a header, are named "0", "1", ….
    label, ids : str, optional
        The column of labels and the column of row ids.
    values, display : sequence of str
        Columns of numbers that color a map, and further columns of any type.
    array : str, optional
        The matrix to read from an .npz or .h5ad file.
    vectors : str, optional
        The column whose entries are lists of numbers, the features of their rows. By default the only such column, if
        ``features`` is not given.
    missing : bool, default=False
        Whether missing features are accepted, as NaN, instead of refused.
    """

    features: Sequence[str] | None = None
    label: str | None = None
    ids: str | None = None
    values: Sequence[str] = ()
    display: Sequence[str] = ()
    array: str | None = None
    vectors: str | None = None
    missing: bool = False

    def check(self) -> None:
        """Raise ReadError if the choice contradicts itself."""
        if self.features is not None and len(self.features) != len(set(self.features)):
            raise ReadError("columns must not contain the same column twice")
        if self.features is not None and self.label is not None and self.label in self.features:
            raise ReadError(f"column {self.label!r} cannot be both a feature and the label")
        if self.features is not None and self.vectors is not None:
            raise ReadError("columns and vectors cannot be used together: the vectors are the features")

    def roles(self) -> list[tuple[str, Role]]:
        """Return the chosen columns other than features, with their roles, in the order of a table."""
        single = ((self.label, Role.LABEL), (self.ids, Role.ID))
        found = [(name, role) for name, role in single if name is not None]
        found += [(name, Role.VALUE) for name in self.values]
        special = {self.ids, *self.values}
        return list(dict.fromkeys(found + [(name, Role.DISPLAY) for name in self.display if name not in special]))

    @property
    def not_features(self) -> set[str]:
        """Columns that are features only if ``features`` lists them."""
        return {name for name, _ in self.roles()}


@dataclass(frozen=True)
class DataTable:
    """Rows to embed: the features as a matrix, and every column of the file with its role."""

    X: NDArray[Any]
    columns: tuple[Column, ...]

    def names(self, role: Role) -> tuple[str, ...]:
        """Return the names of the columns with a role."""
        return tuple(column.name for column in self.columns if column.role is role)

    @property
    def feature_names(self) -> tuple[str, ...]:
        return self.names(Role.FEATURE)

    @property
    def matrix(self) -> str:
        """The name of the matrix that the features are columns of, if the file has several."""
        return next((column.reason for column in self.columns if column.role is Role.FEATURE), "")

    @property
    def ignored(self) -> tuple[str, ...]:
        return self.names(Role.IGNORED)

    @property
    def labels(self) -> NDArray[Any] | None:
        return values_of(self.columns, Role.LABEL)

    @property
    def read_columns(self) -> list[Column]:
        """The columns that were read, other than features."""
        return [column for column in self.columns if column.values is not None]

    def shown_columns(self) -> list[Column]:
        """Return the columns that were read, and the features too if they are few and have names."""
        read = self.read_columns
        # numbers of a matrix or of vectors have no names that mean anything
        few = len(self.feature_names) <= MOST_SHOWN and not re.fullmatch(r"\d+|.*\[0\]", self.feature_names[0])
        features = [Column(name, Role.FEATURE, self.X[:, a]) for a, name in enumerate(self.feature_names) if few]
        others = {column.name for column in read if column.role is not Role.LABEL}
        return read + [column for column in features if column.name not in others]

    def part(self, rows: slice) -> DataTable:
        """Return some rows of the table."""
        return DataTable(self.X[rows], tuple(column.part(rows) for column in self.columns))


def values_of(columns: Iterable[Column], role: Role) -> NDArray[Any] | None:
    """Return the values of the first column with a role, or None if there is none."""
    return next((column.values for column in columns if column.role is role), None)


def frame_table(path: Path, frame: pl.DataFrame, choice: ColumnChoice, first: int = 0) -> DataTable:
    """Make a table from a polars frame; a column with an empty name (an index) is a feature only if requested.

    ``first`` is the number of the frame's first row within its file, for error messages.
    """
    if frame.height == 0:
        raise ReadError(f"{path} has no rows")
    vectors = vector_column(path, frame, choice)
    if vectors is not None:
        X, chosen = _vectors(path, frame[vectors], first)
        _feature_columns(path, frame.columns, replace(choice, features=[vectors]), [])
    else:
        X, chosen = _scalars(path, frame, choice)
    original = (lambda row, column: frame[vectors][row][column]) if vectors else (lambda r, c: frame[r, chosen[c]])
    _check_finite(path, X, chosen, original, first, choice.missing)
    all_wanted = vectors is None and choice.features is None
    reasons = {name: _reason(frame[name]) if all_wanted else NOT_CHOSEN for name in frame.columns if name != vectors}
    return _build_table(X, chosen, choice, lambda name: _column_values(frame[name]), reasons)


def _reason(series: pl.Series) -> str:
    """Say why a column of a frame is no feature if all numeric columns are."""
    if not series.dtype.is_numeric():
        return f"not numeric ({series.dtype})"
    return "row ids" if series.name else "no name"


def vector_column(path: Path, frame: pl.DataFrame, choice: ColumnChoice) -> str | None:
    """Return the column of vectors to embed: the requested one, or the only one if no columns are requested."""
    import polars as pl

    kinds = (pl.List, pl.Array)
    found = [name for name, dtype in frame.schema.items() if isinstance(dtype, kinds) and dtype.inner.is_numeric()]
    if choice.vectors is not None:
        if choice.vectors in frame.columns and choice.vectors not in found:
            dtype = frame.schema[choice.vectors]
            raise ReadError(f"{path}: column {choice.vectors!r} does not contain lists of numbers ({dtype})")
        return choice.vectors if choice.vectors in found else _absent(path, choice.vectors, frame.columns)
    free = [name for name in found if name not in choice.not_features]
    if choice.features is not None or not free:
        return None
    if len(free) > 1:
        raise ReadError(f"{path} has several columns of vectors; choose one with --vectors: {listed(free)}")
    return free[0]


def _absent(path: Path, name: str, names: Sequence[str], kind: str = "column") -> str:
    raise ReadError(f"{path} has no {kind} {name!r}; it has {listed(names)}")


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
    small = isinstance(series.dtype, pl.Array | pl.List) and series.dtype.inner in (pl.Int8, pl.UInt8)
    values = series.explode() if small else series.explode().cast(pl.Float64)
    X = as_rows_of_table(values.to_numpy().reshape(len(series), width))
    return X, [f"{series.name}[{a}]" for a in range(width)]


def _scalars(path: Path, frame: pl.DataFrame, choice: ColumnChoice) -> tuple[NDArray[np.float32], list[str]]:
    """Return the numeric feature columns as a matrix."""
    import polars as pl

    numeric = {name for name, dtype in frame.schema.items() if dtype.is_numeric() or dtype == pl.Boolean}
    usable = [name for name in frame.columns if name in numeric and name and name not in choice.not_features]
    if choice.features is None:
        # ids are left out, unless there is no other column: that is the error below
        usable = [name for name in usable if not _are_ids(frame[name])] or usable[:1]
    chosen = _feature_columns(path, frame.columns, choice, usable)
    for name in chosen:
        if name not in numeric:
            raise ReadError(f"{path}: column {name!r} is not numeric ({frame.schema[name]})")
    if choice.features is None and len(chosen) == 1 and _are_distinct_integers(frame[chosen[0]]):
        raise ReadError(
            f"{path}: the only numeric column, {chosen[0]!r}, has distinct whole numbers, which look like row ids; "
            f"use --columns {chosen[0]} to embed it"
        )
    X = np.empty((frame.height, len(chosen)), dtype=np.float32)
    with np.errstate(over="ignore"):
        for a, name in enumerate(chosen):
            X[:, a] = frame[name].cast(pl.Float64).to_numpy()
    return X, chosen


def _are_ids(series: pl.Series) -> bool:
    """Return whether a column is named like an id and has distinct whole numbers."""
    named = re.fullmatch(r"(.*[_ .-])?(id|index|idx|uid|uuid|row)", series.name.strip().lower()) is not None
    return named and _are_distinct_integers(series)


def _are_distinct_integers(series: pl.Series) -> bool:
    return bool(series.dtype.is_integer() and series.n_unique() == len(series) and len(series) > 1)


def array_table(
    path: Path, array: NDArray[Any], named_columns: Mapping[str, NDArray[Any]], choice: ColumnChoice, first: int = 0
) -> DataTable:
    """Make a table from a matrix, with columns "0", "1", …, and from named columns; ``first`` as in ``frame_table``."""
    check_matrix(path, array)
    names = [str(a) for a in range(array.shape[1])]
    usable = [name for name in names if name not in choice.not_features]
    asked = [name for name, _ in choice.roles()]
    for name in asked:
        if name not in names and name not in named_columns:
            _absent(path, name, [*named_columns] or names, getattr(named_columns, "kind", "column"))
    chosen = _feature_columns(path, [*names, *named_columns, *asked], choice, usable)
    for name in chosen:
        if name not in names:
            raise ReadError(f"{path}: {name!r} is not a column of the matrix and cannot be a feature")
    picked = array if chosen == names else array[:, [int(name) for name in chosen]]
    X = as_rows_of_table(picked)
    _check_finite(path, X, chosen, lambda row, column: picked[row, column], first, choice.missing)

    def values(name: str) -> NDArray[Any]:
        return named_columns[name] if name in named_columns else whole_numbers(array[:, int(name)])

    return _build_table(X, chosen, choice, values, dict.fromkeys([*names, *named_columns], NOT_CHOSEN))


def as_rows_of_table(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as contiguous float32, or in their type if it is one that the search reads as it is."""
    kept = values.dtype if values.dtype in ROW_TYPES else np.dtype(np.float32)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(values, dtype=kept)


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
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _build_table(
    X: NDArray[np.float32],
    features: list[str],
    choice: ColumnChoice,
    values: Callable[[str], NDArray[Any]],
    reasons: dict[str, str],
) -> DataTable:
    """Return a table; ``reasons`` say why columns that are neither features nor chosen are ignored."""
    taken = {*features, *choice.not_features}
    ignored = [Column(name, Role.IGNORED, reason=why) for name, why in reasons.items() if name not in taken]
    chosen = [Column(name, role, _without_bytes(values(name))) for name, role in choice.roles()]
    return DataTable(X, (*(Column(name, Role.FEATURE) for name in features), *chosen, *ignored))


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


def _feature_columns(path: Path, names: Sequence[str], choice: ColumnChoice, usable: Sequence[str]) -> list[str]:
    """Return the feature columns: the requested ones, or all usable ones."""
    known = set(names)
    for name in [*(choice.features or []), *(name for name, _ in choice.roles())]:
        if name not in known:
            _absent(path, name, names)
    if choice.features is not None and not choice.features:
        raise ReadError("columns must list at least one column")
    if choice.features is None and not usable:
        raise ReadError(f"{path} has no numeric column to embed; it has {listed(names)}")
    return list(usable if choice.features is None else choice.features)


def _check_finite(
    path: Path,
    X: NDArray[np.float32],
    names: Sequence[str],
    original: Callable[[int, int], Any],
    first: int,
    missing: bool,
) -> None:
    """Raise for the first row with an infinite value, one too large for float32, or one missing unless accepted."""
    if X.dtype.kind in "iu":
        return
    finite = ~np.isinf(X) if missing else np.isfinite(X)
    if finite.all():
        return
    row, column = (int(a) for a in np.argwhere(~finite)[0])
    value = original(row, column)
    what = "no value" if value is None else f"{value}, too large for float32," if np.isfinite(value) else str(value)
    raise ReadError(f"{path}: row {first + row} has {what} in column {names[column]!r}")
