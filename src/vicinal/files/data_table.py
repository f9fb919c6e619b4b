"""The table that a file is read into: a matrix of the features, and every column with its role."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.number_texts import DETECTED, LONGEST_SHOWN, FileFormat, shown_text
from vicinal.runtime.inputs import ROW_TYPES
from vicinal.runtime.sizes import readable

# Column names shown in a message: a file of images has hundreds.
SHOWN_NAMES = 8
# Features are shown with a map if there are at most this many.
MOST_SHOWN = 24
# Why columns are no features.
NOT_CHOSEN, EXCLUDED, EMPTY, CONSTANT = "not chosen", "excluded", "empty", "constant"
# Columns that are not features are shown with a map up to this number and size.
TRAVEL_COLUMNS, TRAVEL_BYTES = 100, 64 * 2**20


# Characters of a library's message, and of a word of ours.
LONGEST_LINE = 300


class ReadError(ValueError):
    """A file cannot be read as a table of numbers; the message is one line for the user."""

    def __init__(self, message: str) -> None:
        # A message may contain a path or a word of a library of any length.
        words = re.sub(rf"\S{{{LONGEST_LINE},}}", lambda word: f"{word[0][:LONGEST_SHOWN]}...", message)
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

    def part(self, rows: slice | NDArray[np.int64]) -> Column:
        """Return some rows of the column."""
        return self if self.values is None else replace(self, values=self.values[rows])


class Categories(StrEnum):
    """Values of `--categories`: how columns of classes become features."""

    IGNORE = "ignore"
    ONE_HOT = "one-hot"
    FREQUENCY = "frequency"


class Dates(StrEnum):
    """Values of `--dates`: how columns of dates become features."""

    IGNORE = "ignore"
    NUMBER = "number"
    CYCLIC = "cyclic"


@dataclass(frozen=True)
class ColumnChoice:
    """Which columns of a file to read, by name, and as what.

    Parameters
    ----------
    features, exclude : sequence of str, optional
        The features, or columns that are none. By default all numeric columns are features, except the label, the ids,
        and columns that look like row ids. The columns of a matrix, or of a .csv or .tsv file without a header, are
        named "0", "1", ….
    label, ids : str, optional
        The column of labels and the column of row ids.
    values, display : sequence of str
        Columns of numbers that color a map, and further columns of any type. They may be features, too.
    array : str, optional
        The matrix to read from an .npz or .h5ad file.
    vectors : str, optional
        The column whose entries are lists of numbers, the features of their rows. By default the only such column, if
        ``features`` is not given.
    missing : bool, default=False
        Whether missing features are accepted, as NaN, instead of refused.
    categories, dates : str
        What columns of classes and of dates become: features, or no features by default.
    whole : bool, default=True
        Whether a file is read as a whole. Then all other columns are read, to be shown, unless they are too large, and
        constant columns are no features.
    fitted : bool, default=False
        Whether the features are those of a model, whose map the rows are placed in.
    constant : bool, default=False
        Whether constant columns are features even so, such as the pixels in the corners of pictures.
    form : FileFormat
        How the file is written.
    encodings : mapping
        How the classes and dates of a fit became features, by column.
    """

    features: Sequence[str] | None = None
    label: str | None = None
    ids: str | None = None
    values: Sequence[str] = ()
    display: Sequence[str] = ()
    array: str | None = None
    vectors: str | None = None
    missing: bool = False
    exclude: Sequence[str] = ()
    categories: Categories = Categories.IGNORE
    dates: Dates = Dates.IGNORE
    whole: bool = True
    fitted: bool = False
    constant: bool = False
    form: FileFormat = DETECTED
    encodings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ReadError if the choice contradicts itself."""
        features = self.features
        if features is not None and len(features) != len(set(features)):
            raise ReadError("features must not contain the same column twice")
        if features is not None and self.label is not None and self.label in features:
            raise ReadError(f"column {self.label!r} cannot be both a feature and the label")
        if features is not None and self.vectors is not None:
            raise ReadError("features and vectors cannot be used together: the vectors are the features")
        both = [name for name in features or () if name in self.exclude]
        if both:
            raise ReadError(f"column {both[0]!r} cannot be both a feature and excluded")

    def roles(self) -> list[tuple[str, Role]]:
        """Return the chosen columns other than features, with their roles, in the order of a table."""
        single = ((self.label, Role.LABEL), (self.ids, Role.ID))
        found = [(name, role) for name, role in single if name is not None]
        found += [(name, Role.VALUE) for name in self.values]
        special = {self.ids, *self.values}
        return list(dict.fromkeys(found + [(name, Role.DISPLAY) for name in self.display if name not in special]))

    def of_table(self, table: DataTable) -> ColumnChoice:
        """Return the choice with the features of a table by name, to read others of the same layout."""
        names = table.names(Role.FEATURE)
        if table.vectors:
            return replace(self, vectors=names[0], features=None)
        # the encodings alone tell what classes and dates become: a column of numbers stays one
        chosen = replace(self, features=names, exclude=(), encodings=table.encodings)
        return replace(chosen, categories=Categories.IGNORE, dates=Dates.IGNORE)

    @property
    def not_features(self) -> set[str]:
        """Columns that are features only if ``features`` lists them."""
        return {*self.exclude, *(name for name in (self.label, self.ids) if name is not None)}

    def require_known(self, path: Path, names: Container[str], shown: Sequence[str], kind: str = "column") -> None:
        """Raise ReadError if a chosen column is not one of ``names``."""
        for name in [*(self.features or []), *self.exclude, *(name for name, _ in self.roles())]:
            if name not in names:
                raise ReadError(f"{path} has no {kind} {shown_text(name)}; it has {listed(shown)}")
        if self.features is not None and not self.features:
            raise ReadError("features must list at least one column")


@dataclass(frozen=True)
class DataTable:
    """Rows to embed: the features as a matrix, and every column of the file with its role.

    Parameters
    ----------
    X : array
        The features, in one of the ``ROW_TYPES``.
    columns : tuple of Column
        All columns with their roles; of a feature that is not a column of numbers, the values too.
    parts : tuple of str, optional
        The names of the columns of ``X``, if a feature has several: a vector, classes, a date.
    matrix : str
        The name of the matrix that the features are columns of, if the file has several.
    encodings : mapping
        How classes and dates became features, by column.
    """

    X: NDArray[Any]
    columns: tuple[Column, ...]
    parts: tuple[str, ...] | None = None
    matrix: str = ""
    encodings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def names(self, role: Role) -> tuple[str, ...]:
        """Return the names of the columns with a role."""
        return tuple(column.name for column in self.columns if column.role is role)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The names of the columns of ``X``."""
        return self.names(Role.FEATURE) if self.parts is None else self.parts

    @property
    def indicators(self) -> NDArray[np.bool_]:
        """Which columns of ``X`` tell classes or times of the year, as numbers from -1 to 1."""
        kinds = (Categories.ONE_HOT, Dates.CYCLIC)
        several = {part for one in self.encodings.values() if one["kind"] in kinds for part in one["names"]}
        return np.array([name in several for name in self.feature_names])

    @property
    def vectors(self) -> bool:
        """Whether the features are a column of vectors."""
        names = self.names(Role.FEATURE)
        return len(names) == 1 and self.feature_names[0] == f"{names[0]}[0]"

    @property
    def ignored(self) -> tuple[str, ...]:
        return self.names(Role.IGNORED)

    @property
    def labels(self) -> NDArray[Any] | None:
        return values_of(self.columns, Role.LABEL)

    @property
    def read_columns(self) -> list[Column]:
        """The columns that were read, other than numeric features."""
        return [column for column in self.columns if column.values is not None]

    def shown_columns(self) -> list[Column]:
        """Return the columns that were read, and the features too if they are few and have names."""
        names, read = self.feature_names, self.read_columns
        # numbers of a matrix or of vectors have no names that mean anything
        few = len(names) <= MOST_SHOWN and not re.fullmatch(r"\d+|.*\[0\]", names[0])
        known = {column.name for column in read if column.role is not Role.LABEL}
        own = {column.name for column in self.columns if column.role is Role.FEATURE and column.values is None}
        wanted = [(a, name) for a, name in enumerate(names) if few and name in own and name not in known]
        return read + [Column(name, Role.FEATURE, self.X[:, a]) for a, name in wanted]

    def part(self, rows: slice) -> DataTable:
        """Return some rows of the table."""
        return replace(self, X=self.X[rows], columns=tuple(column.part(rows) for column in self.columns))


def values_of(columns: Iterable[Column], role: Role) -> NDArray[Any] | None:
    """Return the values of the first column with a role, or None if there is none."""
    return next((column.values for column in columns if column.role is role), None)


def array_table(
    path: Path, array: NDArray[Any], beside: Mapping[str, NDArray[Any]], choice: ColumnChoice, first: int = 0
) -> DataTable:
    """Make a table from a matrix, with columns "0", "1", …, and from named columns beside it.

    ``first`` is the number of the first row within its file, for error messages.
    """
    check_matrix(path, array)
    names = [str(a) for a in range(array.shape[1])]
    known = set(names)
    for name in choice.features or ():
        if name not in known and name in beside:
            raise ReadError(f"{path}: {shown_text(name)} is not a column of the matrix and cannot be a feature")
    of_rows = [name for name, _ in choice.roles() if name not in known and name not in beside]
    if of_rows:
        raise ReadError(
            f"{path} has no {getattr(beside, 'kind', 'column')} {of_rows[0]!r}; it has {listed([*beside] or names)}"
        )
    choice.require_known(path, {*known, *(name for name, _ in choice.roles())}, names)
    why = _why_no_features(array, names, choice)
    not_features = {*why, *choice.not_features}
    chosen = [name for name in names if name not in not_features] if choice.features is None else [*choice.features]
    if not chosen:
        raise ReadError(f"{path} has no numeric column to embed; it has {listed(names)}")
    picked = array if chosen == names else array[:, [int(name) for name in chosen]]
    X = as_rows_of_table(picked)
    check_finite(path, X, chosen, lambda row, column: picked[row, column], first, choice)
    others = [name for name in beside if name not in choice.not_features]
    kept, dropped = travelers({name: beside[name].nbytes for name in others if name not in choice.display}, choice)
    roles = [*choice.roles(), *((name, Role.DISPLAY) for name in kept if name not in dict(choice.roles()))]

    def values(name: str) -> NDArray[Any]:
        return without_bytes(beside[name]) if name in beside else whole_numbers(array[:, int(name)])

    columns = [Column(name, Role.FEATURE) for name in chosen]
    columns += [_described(Column(name, role, values(name)), beside=name in beside) for name, role in roles]
    columns += [Column(name, Role.IGNORED, reason=reason) for name, reason in (why | dropped).items()]
    return DataTable(X, tuple(columns))


def _described(column: Column, *, beside: bool) -> Column:
    """Say what a column beside a matrix contains."""
    assert column.values is not None
    if not beside or column.role is Role.ID:
        return column
    numeric = column.values.dtype.kind in "fiu"
    return replace(column, reason="numbers" if numeric else f"{len({*column.values.tolist()} - {None})} classes")


def _why_no_features(array: NDArray[Any], names: Sequence[str], choice: ColumnChoice) -> dict[str, str]:
    """Return why columns of a matrix are neither features nor chosen as something else."""
    roles = {name for name, _ in choice.roles()}
    if choice.features is not None:
        return dict.fromkeys([name for name in names if name not in {*choice.features, *roles}], NOT_CHOSEN)
    why = dict.fromkeys([name for name in names if name in choice.exclude], EXCLUDED)
    if array.dtype.kind == "f":
        # a column with a known first value is not empty
        for a in np.flatnonzero(np.isnan(array[0])).tolist():
            if names[a] not in roles and np.isnan(array[:, a]).all():
                why[names[a]] = EMPTY
    return why


def travelers(sizes: Mapping[str, int], choice: ColumnChoice) -> tuple[list[str], dict[str, str]]:
    """Return the columns that are read to be shown, and why others are not; ``sizes`` are their bytes."""
    kept: list[str] = []
    dropped: dict[str, str] = {}
    left = TRAVEL_BYTES
    for name, size in sizes.items():
        if not choice.whole:
            dropped[name] = ""
        elif len(kept) >= TRAVEL_COLUMNS:
            dropped[name] = f"not shown, more than {TRAVEL_COLUMNS} columns; --hover chooses them"
        elif size > left:
            dropped[name] = f"not shown, {readable(size)}; --hover shows it"
        else:
            kept.append(name)
            left -= size
    return kept, dropped


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


@contextmanager
def refusing(what: str) -> Iterator[None]:
    """Turn any exception of a library into a ReadError that says ``what`` is wrong; also a panic of its Rust code."""
    try:
        yield
    except ReadError:
        raise
    except BaseException as error:
        # every library in Rust has its own PanicException, which is no Exception
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":
            raise
        raise ReadError(f"{what} ({first_line(error)})") from error


def first_line(error: BaseException) -> str:
    line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(shown_text(name) for name in names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def without_bytes(values: NDArray[Any]) -> NDArray[Any]:
    """Return texts that a file holds as bytes as text, which every output can contain."""
    if values.dtype.kind not in "SO":
        return values
    texts = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in values.tolist()]
    out = np.empty(len(texts), dtype=object)
    out[:] = texts
    return out


def _help_with_missing(choice: ColumnChoice) -> str:
    """Name the options of the command that help with missing values."""
    if choice.fitted:
        return "only a model fitted with --impute or --metric nan_euclidean places such rows"
    if not choice.whole:
        return "--exclude leaves columns out, and vicinal embed --impute fills them in"
    return "--impute fills them in, --metric nan_euclidean compares the others, --exclude leaves columns out"


def check_finite(
    path: Path,
    X: NDArray[Any],
    names: Sequence[str],
    original: Callable[[int, int], Any],
    first: int,
    choice: ColumnChoice,
) -> None:
    """Raise for the first row with an infinite value, one too large for float32, or one missing unless accepted."""
    if X.dtype.kind in "iu":
        return
    finite = ~np.isinf(X) if choice.missing else np.isfinite(X)
    if finite.all():
        return
    row, column = (int(a) for a in np.argwhere(~finite)[0])
    value = original(row, column)
    where = f"{path}: row {first + row} has"
    if isinstance(value, str | None):
        what = "no value" if value is None or not value.strip() else f"{shown_text(value)}, not a number,"
    else:
        what = f"{value}, too large for float32," if np.isfinite(value) else str(value)
    help_ = ""
    if np.isnan(X[row, column]):
        n = int(np.isnan(X).any(axis=1).sum())
        help_ = f" ({n} rows miss values)" if n > 1 else ""
        help_ += f"; {_help_with_missing(choice)}"
    raise ReadError(f"{where} {what} in column {shown_text(names[column])}{help_}")
