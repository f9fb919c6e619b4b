"""What rows hold, dense or sparse: their form for the core, their names, their faults."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import Rows, is_sparse


def as_rows(X: Any) -> Rows:
    """``X`` as the core takes it: C-contiguous float32, or CSR of float32 with ascending columns; no copy if it is."""
    if not hasattr(X, "tocsr"):
        return np.require(X, dtype=np.float32, requirements=["C", "A"])
    rows = X.tocsr()
    if rows.dtype != np.float32:
        rows = rows.astype(np.float32)
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is X else rows
        rows.sum_duplicates()
    return rows


def csr_parts(X: Rows) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]:
    """(indptr, indices, values, columns) of sparse rows."""
    return (
        np.ascontiguousarray(X.indptr, dtype=np.int64),
        np.ascontiguousarray(X.indices, dtype=np.int32),
        np.ascontiguousarray(X.data, dtype=np.float32),
        int(X.shape[1]),
    )


def scan_rows(X: Rows, n_jobs: int = -1, *, allow_nan: bool = False) -> tuple[float, int]:
    """The largest magnitude, and the first row with NaN (unless allowed) or infinity, or -1."""
    if not is_sparse(X):
        return cpu.scan_rows(X, n_jobs, allow_nan)
    values = np.ascontiguousarray(X.data, dtype=np.float32)
    largest, bad = cpu.scan_rows(values.reshape(1, -1), n_jobs, allow_nan)
    if bad < 0:
        return largest, -1
    fault = np.isinf(values) if allow_nan else ~np.isfinite(values)
    return largest, int(np.searchsorted(X.indptr, int(np.argmax(fault)), side="right")) - 1


def hash_rows(X: Rows, n_jobs: int = -1) -> NDArray[np.uint64]:
    """A number a row: equal rows have equal numbers, whatever they lie among. A zero that is stored is no content."""
    if is_sparse(X):
        return cpu.hash_sparse_rows(*csr_parts(X), n_jobs)
    return cpu.hash_rows(X, n_jobs)


def equal_rows(A: Rows, B: Rows) -> NDArray[np.bool_]:
    """Whether row i of ``A`` has the content of row i of ``B``; a missing value (NaN) equals another."""
    if is_sparse(A):
        differences: NDArray[np.int64] = np.asarray((A != B).sum(axis=1)).reshape(-1)
        return np.equal(differences, 0)
    same = A == B
    if not same.all():
        same |= np.isnan(A) & np.isnan(B)
    equal: NDArray[np.bool_] = same.all(axis=1)
    return equal
