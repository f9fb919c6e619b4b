"""Mean, spread and a sample of rows, for the networks' standardization. Sparse rows become dense only in part."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vicinal.parametric.rows import InputRows, dense_rows, is_csr

STATISTICS_ROWS = 1 << 14  # rows per step
SAMPLE_LIMIT = 1 << 13  # rows that are enough for principal components
# Bounds of the dense copy of sparse rows, in numbers. Sparse and dense data give the same bits below them.
STEP_SIZE = 1 << 24
SAMPLE_SIZE = 1 << 26
LEAST_SAMPLE = 512  # rows in the sample of very wide sparse data


def column_means(X: InputRows) -> NDArray[np.float64]:
    """Return the mean of each column."""
    if not is_csr(X):
        return np.asarray(X.mean(axis=0, dtype=np.float64))
    n_rows, n_features = X.shape
    total = np.zeros(n_features)
    for first in range(0, n_rows, STATISTICS_ROWS):
        entries = slice(X.indptr[first], X.indptr[min(first + STATISTICS_ROWS, n_rows)])
        np.add.at(total, X.indices[entries], X.data[entries])  # in the order of the rows, as NumPy adds dense rows
    return total / int(n_rows)


def total_spread(X: InputRows, mean: NDArray[np.float64]) -> float:
    """Return the square root of the mean variance of the columns; 1 if all rows are equal."""
    n_rows, n_features = X.shape
    step = max(1, min(STATISTICS_ROWS, STEP_SIZE // n_features)) if is_csr(X) else STATISTICS_ROWS
    total = 0.0
    for first in range(0, n_rows, step):
        difference = dense_rows(X, slice(first, first + step)) - mean
        total += float(np.square(difference, out=difference).sum())
    if total == 0.0:
        return 1.0
    return max(math.sqrt(total / (n_rows * n_features)), float(np.finfo(np.float32).tiny))


def sample_rows(X: InputRows) -> NDArray[np.float32]:
    """Return evenly spaced rows as a new dense array."""
    n_rows, n_features = X.shape
    limit = min(SAMPLE_LIMIT, max(LEAST_SAMPLE, SAMPLE_SIZE // n_features)) if is_csr(X) else SAMPLE_LIMIT
    rows = dense_rows(X, slice(None, None, -(-n_rows // limit)))
    return rows if is_csr(X) else rows.copy()
