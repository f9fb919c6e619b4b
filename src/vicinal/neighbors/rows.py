"""Rows of data, dense or sparse: conversion for the core, checks of their values, content hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import Finite, Rows, is_sparse
from vicinal.runtime.inputs import check_input


def as_rows(X: Any, name: str = "X") -> Rows:
    """Convert to C-contiguous float32, or to CSR of float32 with ascending columns; no copy if X is that already.

    Malformed sparse rows raise ValueError; ``name`` is the name of the argument in its message.
    """
    check_input(X, name)
    if not hasattr(X, "tocsr"):
        return np.require(X, dtype=np.float32, requirements=["C", "A"])
    rows = X.tocsr()
    if rows.dtype != np.float32:
        rows = rows.astype(np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is X else rows
        rows.sum_duplicates()
    return rows


def stack_rows(above: Rows, below: Rows) -> Rows:
    """Join rows of the same kind and width."""
    if is_sparse(above):
        from scipy.sparse import vstack

        return vstack([above, below], format="csr")
    return np.concatenate([above, below])


def csr_parts(X: Rows) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]:
    """Return (indptr, indices, values, number of columns) of sparse rows."""
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data, dtype=np.float32),
        int(X.shape[1]),
    )


def scan_rows(X: Rows, n_jobs: int = -1, *, allow_nan: bool = False) -> tuple[float, int]:
    """Return the largest magnitude, and the first row with infinity or (unless allowed) NaN, or -1."""
    if not is_sparse(X):
        return cpu.scan_rows(X, n_jobs, allow_nan)
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    largest, bad = cpu.scan_rows(values.reshape(1, -1), n_jobs, allow_nan)
    if bad < 0:
        return largest, -1
    faulty = np.isinf(values) if allow_nan else ~np.isfinite(values)
    return largest, int(np.searchsorted(X.indptr, int(np.argmax(faulty)), side="right")) - 1


def check_rows(X: Rows, n_jobs: int = -1, *, finite: Finite = True, name: str = "X") -> float:
    """Check the values, in one pass over the rows.

    Parameters
    ----------
    X : ndarray or CSR matrix
        Rows as ``as_rows`` returns them.
    n_jobs : int
        Number of threads, -1 for all processors.
    finite : bool or "allow-nan"
        True requires finite values, "allow-nan" accepts NaN too, False accepts anything.
    name : str
        Name of the argument in the error message.

    Returns
    -------
    float
        The largest magnitude. ``NeighborIndex.from_checked`` and ``TrainingRows`` take it as ``largest``, so that the
        rows are not scanned again.

    Raises
    ------
    ValueError
        If a value is infinite or an unexpected NaN. The message names the first such row.
    """
    allow_nan = finite is not True
    largest, bad = scan_rows(X, n_jobs, allow_nan=allow_nan)
    if bad >= 0 and finite:
        values = X.data[X.indptr[bad] : X.indptr[bad + 1]] if is_sparse(X) else X[bad]
        is_nan = bool(np.isnan(values).any()) and not allow_nan
        what = "NaN" if is_nan else "infinity (inf), or a value too large for float32"
        raise ValueError(f"Input {name} contains {what}, first in row {bad}.")
    return largest


def hash_rows(X: Rows, n_jobs: int = -1) -> NDArray[np.uint64]:
    """Return a hash per row. It depends on the values of the row alone; stored zeros of sparse rows do not count."""
    if is_sparse(X):
        return cpu.hash_sparse_rows(*csr_parts(X), n_jobs)
    return cpu.hash_rows(X, n_jobs)


def equal_rows(A: Rows, B: Rows) -> NDArray[np.bool_]:
    """Tell for each i whether row i of A equals row i of B; NaN equals NaN."""
    if is_sparse(A):
        differences: NDArray[np.int64] = np.asarray((A != B).sum(axis=1)).reshape(-1)
        return np.equal(differences, 0)
    same = A == B
    if not same.all():
        same |= np.isnan(A) & np.isnan(B)
    equal: NDArray[np.bool_] = same.all(axis=1)
    return equal
