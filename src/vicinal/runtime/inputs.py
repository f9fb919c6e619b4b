"""What an argument that holds data is: conversion to arrays, and checks before compiled code reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from numbers import Integral, Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Types of dense rows that the search reads as they are, the one of all other rows first. It computes in float32.
ROW_TYPES = tuple(np.dtype(name) for name in ("float32", "float16", "int8", "uint8"))
# Columns are 32-bit integers in the core.
MOST_COLUMNS = 2**31 - 1
# What values that are not numbers stand for, by the kinds of NumPy's types.
NOT_NUMBERS = {"M": "dates", "m": "durations", "U": "text", "O": "text", "S": "bytes", "V": "records"}


def check_structure(X: Any, name: str = "X") -> None:
    """Raise ValueError, with the name of the argument, if the arrays of a sparse matrix contradict each other.

    Anything that is not sparse is accepted as it is. The check takes time in proportion to the stored values.
    """
    if not (hasattr(X, "tocsr") and hasattr(X, "format")):
        return
    shape = X.shape
    if len(shape) != 2 or min(shape) < 0:
        raise ValueError(f"{name} must be a sparse matrix with two dimensions, got shape {shape}")
    if shape[1] > MOST_COLUMNS:
        raise ValueError(f"{name} has {shape[1]} columns; at most {MOST_COLUMNS} are possible")
    if X.format in CHECKS:
        CHECKS[X.format](X, name)


def _check_compressed(X: Any, name: str, shape: tuple[int, int] | None = None) -> None:
    """Check compressed rows, or columns: ``shape`` is (lines, positions per line)."""
    indptr, indices, data = X.indptr, X.indices, X.data
    _require_vectors(name, indptr=indptr, indices=indices)
    if data.ndim != 1 and X.format != "bsr":
        raise ValueError(f"{name} is malformed: its values must be a vector, got shape {data.shape}")
    line, shape = ("column", X.shape[::-1]) if X.format == "csc" else ("row", shape or X.shape)
    lines, width = shape
    if len(indptr) != lines + 1 or indptr[0] != 0:
        raise ValueError(f"{name} is malformed: indptr must start at 0 and have an entry for each {line} and one more")
    steps = np.diff(indptr.astype(np.int64, copy=False))
    if steps.min(initial=0) < 0:
        raise ValueError(f"{name} is malformed: indptr decreases after {line} {int(np.argmax(steps < 0))}")
    stored = int(indptr[-1])
    if not len(indices) == len(data) == stored:
        raise ValueError(
            f"{name} is malformed: indptr ends at {stored}, but there are {len(indices)} indices and {len(data)} values"
        )
    _require_range(name, indices, width, "indices", lambda at: int(np.searchsorted(indptr, at, side="right")) - 1, line)


def _check_blocks(X: Any, name: str) -> None:
    rows, columns = X.data.shape[1:] if X.data.ndim == 3 else (0, 0)
    if min(rows, columns) < 1 or X.shape[0] % rows or X.shape[1] % columns:
        raise ValueError(f"{name} is malformed: blocks of shape {X.data.shape[1:]} do not divide {X.shape}")
    _check_compressed(X, name, (X.shape[0] // rows, X.shape[1] // columns))


def _check_coordinates(X: Any, name: str) -> None:
    row, column, data = X.row, X.col, X.data
    _require_vectors(name, row=row, col=column)
    if data.ndim != 1:
        raise ValueError(f"{name} is malformed: its values must be a vector, got shape {data.shape}")
    if not len(row) == len(column) == len(data):
        raise ValueError(
            f"{name} is malformed: it has {len(row)} rows, {len(column)} columns and {len(data)} values of entries"
        )
    _require_range(name, row, X.shape[0], "row")
    _require_range(name, column, X.shape[1], "col")


def _check_keys(X: Any, name: str) -> None:
    keys = list(X.keys())
    if not all(isinstance(key, tuple) and len(key) == 2 for key in keys):
        raise ValueError(f"{name} is malformed: its keys must be pairs of a row and a column")
    try:
        places = np.array(keys, dtype=np.int64).reshape(-1, 2)
    except (OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{name} is malformed: its keys must be whole numbers") from error
    _require_range(name, places[:, 0], X.shape[0], "row")
    _require_range(name, places[:, 1], X.shape[1], "col")


def _check_diagonals(X: Any, name: str) -> None:
    _require_vectors(name, offsets=X.offsets)
    if X.data.ndim != 2 or len(X.data) != len(X.offsets):
        raise ValueError(f"{name} is malformed: it has {len(X.offsets)} diagonals and values of shape {X.data.shape}")
    if len(np.unique(X.offsets)) != len(X.offsets):
        raise ValueError(f"{name} is malformed: a diagonal occurs twice")


def _check_lists(X: Any, name: str) -> None:
    if not all(part.dtype == object and part.shape == (X.shape[0],) for part in (X.rows, X.data)):
        raise ValueError(f"{name} is malformed: it must have a list of columns and a list of values for each row")
    for i, (columns, values) in enumerate(zip(X.rows, X.data, strict=True)):
        if not isinstance(columns, list) or not isinstance(values, list) or len(columns) != len(values):
            raise ValueError(f"{name} is malformed: row {i} must have as many columns as values")
        if columns and not all(isinstance(one, int | np.integer) and 0 <= one < X.shape[1] for one in columns):
            raise ValueError(f"{name} is malformed: a column of row {i} is not between 0 and {X.shape[1] - 1}")


def _require_vectors(name: str, **parts: Any) -> None:
    for part, array in parts.items():
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(f"{name} is malformed: {part} must be a vector of whole numbers")


def _require_range(name: str, found: Any, below: int, part: str, line_of: Any = None, line: str = "row") -> None:
    """Raise if an index is negative or too large, and name the line that has it."""
    if not len(found) or (found.min() >= 0 and found.max() < below):
        return
    at = int(np.argmax((found < 0) | (found >= below)))
    where = f", first in {line} {line_of(at)}" if line_of is not None else f", first in entry {at}"
    raise ValueError(f"{name} is malformed: {part} must be between 0 and {below - 1}, got {int(found[at])}{where}")


# The check of each format of SciPy.
CHECKS = {
    "csr": _check_compressed,
    "csc": _check_compressed,
    "bsr": _check_blocks,
    "coo": _check_coordinates,
    "dok": _check_keys,
    "dia": _check_diagonals,
    "lil": _check_lists,
}


def check_input(X: Any, name: str = "X") -> None:
    """Raise, with the name of the argument, for what cannot be converted to an array.

    That is a tensor that requires a gradient, which the result could not have, and a malformed sparse matrix.
    """
    if getattr(X, "requires_grad", False) is True:
        raise TypeError(f"{name} is a tensor that requires a gradient; pass {name}.detach()")
    check_structure(X, name)


# Single dates and durations in arrays of objects; NumPy converts its own to numbers.
DATES = (np.datetime64, np.timedelta64, date, timedelta)
# What to do with objects that hold more than rows, by the package of their class.
INSTEAD = {
    "anndata": "call vicinal.tl.umap(adata), or pass the rows, for example adata.obsm['X_pca']",
    "mudata": "pass the rows of one of its tables, for example mdata.obsm['X_pca']",
    "spatialdata": "call vicinal.tl.umap on one of its tables",
    "lance": "pass a table of it, for example dataset.to_table(columns=['vector'])",
    "lancedb": "pass a table of it, for example table.to_arrow().select(['vector'])",
}


def as_array(given: Any, name: str = "X", *, text: bool = False) -> NDArray[Any]:
    """Return an argument that has an entry per row as an array, without a copy if it is one.

    Accepted are arrays of any library (``__array__``, ``__dlpack__``, buffers), data frames and Arrow data, and
    sequences. Anything else is refused at once, also masked values, dates and, unless ``text`` is true, texts.
    """
    check_input(given, name)
    if reads_arrow(given):
        from vicinal.runtime import arrow

        return _checked(arrow.read_column(given, name), name, text=text)
    if _is_pandas(given):
        _check_pandas(given, name, text=text)
    return _checked(_converted(given, name), name, text=text)


def read_rows(
    X: Any, name: str = "X", within: Callable[[int, int, np.dtype[Any]], None] | None = None
) -> tuple[Any, list[str] | None]:
    """Return rows as an array, a sparse matrix of SciPy or a data frame of pandas, and names of columns of Arrow data.

    ``within`` is called with the rows, the columns and the type of what has been read so far, and may raise.
    """
    if isinstance(X, NamedRows):
        return X.rows, X.names
    check_input(X, name)
    if hasattr(X, "tocsr"):
        from scipy.sparse import issparse

        return (X if issparse(X) or is_dask(X) else X.tocsr()), None
    if _is_pandas(X):
        _check_pandas(X, name)
        return _pandas_vectors(X, name)
    if not reads_arrow(X):
        return as_array(X, name), None
    from vicinal.runtime import arrow

    parts: list[NDArray[Any]] = []
    names: list[str] | None = None
    for rows, named in arrow.row_batches(X, name, ROW_TYPES):
        parts.append(rows)
        names = named
        if within is not None:
            within(sum(map(len, parts)), rows.shape[1], rows.dtype)
    return arrow.join_rows(parts), names


class NamedRows(NamedTuple):
    """Some of the rows of Arrow data, with the names of its columns."""

    rows: NDArray[Any]
    names: list[str] | None


def reads_arrow(X: Any) -> bool:
    """Tell whether an argument is read as Arrow data: pandas is not, because it needs pyarrow to offer it."""
    offers = hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__")
    return offers and not isinstance(X, type) and not _is_pandas(X) and not is_dask(X)


def named_batches(X: Any, least: int, name: str = "X") -> Iterator[NamedRows]:
    """Yield the rows of Arrow data in batches, joined to at least ``least`` rows, so that not all are in memory."""
    from vicinal.runtime import arrow

    parts: list[NDArray[Any]] = []
    names: list[str] | None = None
    for rows, names in arrow.row_batches(X, name, ROW_TYPES):
        parts.append(rows)
        if sum(map(len, parts)) >= least:
            yield NamedRows(arrow.join_rows(parts), names)
    if parts:
        yield NamedRows(arrow.join_rows(parts), names)


def _converted(given: Any, name: str) -> NDArray[Any]:
    """Return what NumPy reads directly, without looking for entries one by one in objects that only resemble it."""
    if isinstance(given, np.ndarray):
        return given
    if hasattr(given, "tocsr"):
        raise TypeError(f"{name} must be a dense array, got a sparse matrix")
    kind = type(given)
    package = kind.__module__.partition(".")[0]
    if package in INSTEAD:
        raise TypeError(f"{name} is {'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}; {INSTEAD[package]}")
    arrays = ("__array__", "__array_interface__", "__array_struct__", "__cuda_array_interface__")
    try:
        if isinstance(given, Number) or any(hasattr(kind, one) for one in arrays) or _is_buffer(given):
            return np.asanyarray(given)
        if hasattr(kind, "__dlpack__"):
            return np.from_dlpack(given)
        if isinstance(given, Sequence) and not isinstance(given, str | bytes):
            entries = given if isinstance(given, list | tuple) else list(given)
            masked = any(isinstance(one, np.ma.MaskedArray) for one in entries)
            return np.ma.array(entries) if masked else np.asarray(entries)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise type(error)(f"{name} must hold values that NumPy can read: {error}") from error
    more = "; call its method collect() first" if hasattr(kind, "collect") else ""
    got = kind.__name__ if package == "builtins" else f"{kind.__module__}.{kind.__name__}"
    raise TypeError(f"{name} must be an array, a data frame or Arrow data, got {got}{more}")


def _is_buffer(given: Any) -> bool:
    try:
        memoryview(given)
    except TypeError:
        return False
    return not isinstance(given, bytes)


def _checked(values: NDArray[Any], name: str, *, text: bool) -> NDArray[Any]:
    """Return the values, unless they only look like numbers."""
    if isinstance(values, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(values)
        if hidden.any():
            row = int(np.argmax(hidden.reshape(len(values), -1).any(axis=1))) if values.ndim else 0
            raise ValueError(
                f"{name} has masked values, first in row {row}; fill them with {name}.filled(), or leave out these rows"
            )
        return values.data
    kind = values.dtype.kind
    if kind == "V" and values.dtype.names is None and values.dtype.type is not np.void:
        return values.astype(np.float32)  # types of other packages, such as bfloat16
    dates = kind == "O" and any(isinstance(one, DATES) for one in values.flat)
    if dates or (kind in "mMV" or (kind in "US" and not text)):
        what = "dates" if dates else NOT_NUMBERS[kind]
        raise ValueError(f"{name} holds {what} ({values.dtype}), not numbers; convert them to numbers first")
    if kind == "O" and not text:
        _check_objects(values, name)
    return values


def _check_objects(values: NDArray[Any], name: str) -> None:
    """Raise, with the name of the argument, if an object is no number."""
    try:
        values.astype(np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{name} must hold numbers: {error}") from None


def _is_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "to_numpy")


def _check_pandas(X: Any, name: str, *, text: bool = False) -> None:
    """Raise, with the name of the column, for dates, which would count as numbers, and for what is no number."""
    if not hasattr(X, "columns"):
        _check_dates(X.dtype, name)
        return
    for i, kind in enumerate(X.dtypes):
        where = f"column {X.columns[i]!r} of {name}"
        _check_dates(kind, where)
        if kind.kind == "O" and not _is_vector(X.iloc[:1, i]):
            _checked(np.asarray(X.iloc[:, i], dtype=object), where, text=text)


def _check_dates(kind: Any, where: str) -> None:
    if kind.kind in "mM":
        raise ValueError(f"{where} holds {NOT_NUMBERS[kind.kind]} ({kind}), not numbers; convert it first")


def _is_vector(column: Any) -> bool:
    """Tell whether the first entry of a column is a vector."""
    return len(column) > 0 and isinstance(column.iloc[0], list | tuple | np.ndarray)


def _pandas_vectors(X: Any, name: str) -> tuple[Any, list[str] | None]:
    """Return a data frame as it is, or the rows of its single column if this holds vectors."""
    for i in range(len(getattr(X, "columns", ()))):
        column = X.iloc[:, i]
        if column.dtype.kind != "O" or not _is_vector(column):
            continue
        if X.shape[1] > 1:
            raise ValueError(
                f"{name} has vectors in column {X.columns[i]!r} beside other columns; select the column of vectors, "
                "or columns of numbers"
            )
        try:
            rows = np.asarray(column.tolist())
        except ValueError as error:
            raise ValueError(f"column {X.columns[i]!r} of {name} has vectors of different lengths") from error
        return _checked(rows, name, text=False), [f"{X.columns[i]}[{a}]" for a in range(rows.shape[1])]
    return X, None


def is_dask(X: Any) -> bool:
    """Tell whether an argument is a collection of Dask, without importing Dask."""
    return hasattr(X, "__dask_graph__")


def is_missing(label: Any) -> bool:
    """Tell whether a value stands for no value: None, NaN, NaT, or the NA of pandas, whose comparisons are NA."""
    if label is None or type(label).__name__ == "NAType":
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):  # an array of several values
        return False


LARGEST_N_JOBS = 2**31 - 1  # the compiled core takes a 32-bit number


def resolve_n_jobs(n_jobs: Any) -> int:
    """Return the number of threads that the compiled core takes for the parameter ``n_jobs``.

    -1 uses all processors, -2 all but one, and so on. None means what it means in scikit-learn: 1, unless a
    ``joblib.parallel_config`` context sets another number.
    """
    if n_jobs is None:
        from joblib import effective_n_jobs

        return int(effective_n_jobs(None))
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise ValueError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 uses all processors")
    if abs(int(n_jobs)) > LARGEST_N_JOBS:
        raise ValueError(f"n_jobs must be at most {LARGEST_N_JOBS}, got {n_jobs}; -1 uses all processors")
    return int(n_jobs)
