"""Checks of arguments that hold data, before NumPy, SciPy or compiled code converts them."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

# Types of dense rows that the search reads as they are, the one of all other rows first. It computes in float32.
ROW_TYPES = tuple(np.dtype(name) for name in ("float32", "float16", "int8", "uint8"))
# Columns are 32-bit integers in the core.
MOST_COLUMNS = 2**31 - 1


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
