"""Files to arrays: .npy, .csv, .tsv and .parquet become a float32 matrix, column names and, if asked, labels.

Whatever is wrong with a file is one ReadError whose message is one line.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import polars as pl

SUFFIXES = (".npy", ".csv", ".tsv", ".parquet")
SEPARATORS = {".csv": ",", ".tsv": "\t"}
# What spreadsheets, R and pandas write for a value that is not there.
NULLS = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None"]
# Longer lists of columns are cut in messages: a file of pixels has hundreds.
SHOWN_NAMES = 8


class ReadError(ValueError):
    """A file that cannot be read as a table of numbers; the message is one line for the user."""


@dataclass(frozen=True)
class Table:
    """Rows to embed. `ignored` names the columns of the file that are neither features nor the label."""

    X: NDArray[np.float32]
    feature_names: tuple[str, ...]
    labels: NDArray[Any] | None = None
    ignored: tuple[str, ...] = ()


def read_table(path: str | Path, *, columns: Sequence[str] | None = None, label: str | None = None) -> Table:
    """Read the numeric columns (or just `columns`) of a file, and the column `label` if given.

    The columns of an .npy file, or of a .csv or .tsv file without a header, are named "0", "1", …. A column
    whose name is empty (the index that pandas writes) is not a feature unless asked for.
    """
    path = Path(path)
    _check_file(path)
    if columns is not None and len(columns) != len(set(columns)):
        raise ReadError("columns must not name a column twice")
    if columns is not None and label is not None and label in columns:
        raise ReadError(f"column {label!r} cannot be both a feature and the label")
    if path.suffix.lower() == ".npy":
        return _array_table(path, _read_npy(path), columns, label)
    frame = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_delimited(path)
    return _frame_table(path, frame, columns, label)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise ReadError(f"{path} is a directory, not a file")
    if not path.exists():
        raise ReadError(f"{path} does not exist")
    if path.suffix.lower() not in SUFFIXES:
        raise ReadError(f"{path} has an unknown suffix; known are {', '.join(SUFFIXES)}")
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror}") from error
    if empty:
        raise ReadError(f"{path} is empty")


def _read_npy(path: Path) -> NDArray[Any]:
    try:
        array = np.load(path, allow_pickle=False)
    except MemoryError as error:
        raise ReadError(f"{path} does not fit into memory") from error
    except (ValueError, EOFError, OSError) as error:
        if "Object arrays" in str(error):
            raise ReadError(f"{path} holds Python objects, not numbers") from error
        raise ReadError(f"{path} is not a complete .npy file") from error
    if not isinstance(array, np.ndarray):
        raise ReadError(f"{path} is an archive of arrays, not a .npy file")
    if array.dtype.kind not in "fiub":
        raise ReadError(f"{path} holds {array.dtype} values, not real numbers")
    if array.ndim != 2:
        raise ReadError(f"{path} must hold a 2-D array, got shape {array.shape}")
    if len(array) == 0:
        raise ReadError(f"{path} has no rows")
    return array


def _array_table(path: Path, array: NDArray[Any], columns: Sequence[str] | None, label: str | None) -> Table:
    names = [str(a) for a in range(array.shape[1])]
    chosen = _chosen(path, names, columns, label, [name for name in names if name != label])
    labels = None if label is None else array[:, int(label)]
    if (
        labels is not None
        and labels.dtype.kind == "f"
        and np.isfinite(labels).all()
        and (labels % 1 == 0).all()
    ):
        # a matrix has one dtype, so that classes stored beside floats come as 3.0
        labels = labels.astype(np.int64)
    picked = array if chosen == names else array[:, [int(name) for name in chosen]]
    with np.errstate(over="ignore"):
        X = np.ascontiguousarray(picked, dtype=np.float32)
    _check_finite(path, X, chosen, lambda row, column: picked[row, column])
    ignored = tuple(name for name in names if name not in {*chosen, label})
    return Table(X, tuple(chosen), labels, ignored)


def _read_parquet(path: Path) -> pl.DataFrame:
    import polars as pl

    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise ReadError(f"{path} is not a valid parquet file ({_first_line(error)})") from error


def _read_delimited(path: Path) -> pl.DataFrame:
    import polars as pl

    separator = SEPARATORS[path.suffix.lower()]
    has_header = _has_header(path, separator)
    try:
        frame = pl.read_csv(
            path,
            separator=separator,
            has_header=has_header,
            null_values=NULLS,
            # a column is numeric only if every row of it is, so none may go unread
            infer_schema_length=None,
        )
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        raise ReadError(_ragged(path, separator) or f"{path}: {_first_line(error)}") from error
    # polars pads a short row with nulls, which then show in the last column
    if frame.width and frame[:, -1].null_count():
        ragged = _ragged(path, separator)
        if ragged:
            raise ReadError(ragged)
    if not has_header:
        frame.columns = [str(a) for a in range(frame.width)]
    return _trimmed(frame)


def _trimmed(frame: pl.DataFrame) -> pl.DataFrame:
    """Undo the blanks of hand-written files ("1, 2"), which polars takes for text."""
    import polars as pl

    names = [name.strip() for name in frame.columns]
    if len(set(names)) == len(names):
        frame.columns = names
    for name in frame.columns:
        if frame.schema[name] == pl.String:
            text = frame[name].str.strip_chars()
            number = text.cast(pl.Float64, strict=False)
            frame = frame.with_columns(number if number.null_count() == text.null_count() else text)
    return frame


def _has_header(path: Path, separator: str) -> bool:
    """Whether the first line names the columns: it does unless all its fields are numbers.

    Numbers counting from 0 or 1 are names too: pandas writes them for a frame whose columns had none.
    """
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        fields = next(csv.reader(file, delimiter=separator), [])
    if fields in ([str(a) for a in range(len(fields))], [str(a + 1) for a in range(len(fields))]):
        return len(fields) > 1
    return not fields or not all(_is_number(field) for field in fields)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _ragged(path: Path, separator: str) -> str | None:
    """What is wrong with the first line that has more or fewer fields than line 1, if there is one."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            reader = csv.reader(file, delimiter=separator)
            width = len(next(reader, []))
            for fields in reader:
                if fields and len(fields) != width:
                    line = reader.line_num
                    return f"{path} is ragged: line {line} has {len(fields)} field(s), line 1 has {width}"
    except csv.Error:
        return None
    return None


def _frame_table(path: Path, frame: pl.DataFrame, columns: Sequence[str] | None, label: str | None) -> Table:
    import polars as pl

    if frame.height == 0:
        raise ReadError(f"{path} has no rows")
    numeric = {name for name, dtype in frame.schema.items() if dtype.is_numeric() or dtype == pl.Boolean}
    usable = [name for name in frame.columns if name in numeric and name not in ("", label)]
    chosen = _chosen(path, frame.columns, columns, label, usable)
    for name in chosen:
        if name not in numeric:
            raise ReadError(f"{path}: column {name!r} is not numeric ({frame.schema[name]})")
    X = np.empty((frame.height, len(chosen)), dtype=np.float32)
    for a, name in enumerate(chosen):
        with np.errstate(over="ignore"):
            X[:, a] = frame[name].cast(pl.Float64).to_numpy()
    _check_finite(path, X, chosen, lambda row, column: frame[row, chosen[column]])
    labels = None if label is None else _label_values(frame[label])
    ignored = tuple(name for name in frame.columns if name not in {*chosen, label})
    return Table(X, tuple(chosen), labels, ignored)


def _label_values(series: pl.Series) -> NDArray[Any]:
    if series.dtype.is_numeric() and not series.null_count():
        return series.to_numpy()
    values = series.to_list()
    return np.array([None if value is None else str(value) for value in values], dtype=object)


def _chosen(
    path: Path, names: Sequence[str], columns: Sequence[str] | None, label: str | None, usable: Sequence[str]
) -> list[str]:
    """The feature columns: those asked for, or every usable one."""
    for name in [*(columns or []), *([] if label is None else [label])]:
        if name not in names:
            raise ReadError(f"{path} has no column {name!r}; it has {_listed(names)}")
    if columns is not None and not columns:
        raise ReadError("columns must name at least one column")
    if columns is None and not usable:
        raise ReadError(f"{path} has no numeric column to embed; it has {_listed(names)}")
    return list(usable if columns is None else columns)


def _check_finite(
    path: Path, X: NDArray[np.float32], names: Sequence[str], original: Callable[[int, int], Any]
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
    raise ReadError(f"{path}: row {row} has {what} in column {names[column]!r}")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:SHOWN_NAMES])
    more = len(names) - SHOWN_NAMES
    return (shown or "none") + (f" and {more} more" if more > 0 else "")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
