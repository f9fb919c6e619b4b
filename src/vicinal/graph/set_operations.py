"""Fuzzy set operations on graphs given as SciPy matrices, with the product t-norm.

    union          p + q - p q                                                       (survey eq. 4)
    intersection   p^min(1, (1-w)/w) q^min(1, w/(1-w)), weight w of the right side; p q at w = 1/2

An edge that only one graph has gets a small weight in the other graph, half of the smallest weight there. Two graphs of
the same rows thus keep the edges of both (umap-learn's convention). A stored weight of 0 counts as the smallest: the
weight of missing edges is then SMALLEST_MISSING.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bounds of the weight of a missing edge.
SMALLEST_MISSING, LARGEST_MISSING = 1e-8, 1e-4
# Largest error of a weight of 1.
ROUNDING = 1e-6
# If the metric of a row is reset, its memberships sum to log2 of this number of neighbors, as in umap-learn.
RESET_NEIGHBORS, RESET_STEPS, RESET_TOLERANCE = 15, 32, 1e-5


def unite(left: Any, right: Any, *, missing: tuple[float, float] | None = None) -> Any:
    """Return the fuzzy union of two graphs in coordinate format.

    ``missing`` holds the weights of missing edges in the left and in the right graph; by default half of the smallest
    weight of each graph.
    """
    pattern = _summed(left + right)
    p_missing, q_missing = missing or missing_weights(left, right, "union")
    p, q = _weights_at(pattern, left, p_missing), _weights_at(pattern, right, q_missing)
    pattern.data = (p + q - p * q).astype(pattern.data.dtype)
    return pattern


def intersect(
    left: Any,
    right: Any,
    weight: float = 0.5,
    right_complement: bool = False,
    *,
    missing: tuple[float, float] | None = None,
) -> Any:
    """Return the fuzzy intersection of two graphs, or of ``left`` with the complement of ``right``.

    The result is in coordinate format. ``weight`` is the influence of ``right``: with 0 the result depends on ``left``
    only, with 1 on ``right`` only. ``missing`` is explained in :func:`unite`.
    """
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight must lie in [0, 1], got {weight}")
    p_missing, q_missing = missing or missing_weights(left, right, "difference" if right_complement else "intersection")
    right = right.tocsr().copy()
    if right_complement:
        right.data = 1.0 - right.data
    pattern = _summed(left if right_complement else left + right)
    p, q = _weights_at(pattern, left, p_missing), _weights_at(pattern, right, q_missing)
    mixed = p * q ** (weight / (1.0 - weight)) if weight < 0.5 else p ** ((1.0 - weight) / weight) * q
    known = (p > p_missing) | (q > q_missing)
    pattern.data = np.where(known, mixed, pattern.data).astype(pattern.data.dtype)
    return pattern


def missing_weights(left: Any, right: Any, operation: str) -> tuple[float, float]:
    """Return the weights of missing edges in the left and in the right graph of an operation."""
    if operation == "union":
        return _missing(left.data), _missing(right.data)
    weights = 1.0 - right.data if operation == "difference" else right.data
    return _missing(left.data), min(_missing(weights), LARGEST_MISSING)


def with_exact_ends(matrix: Any, n_epochs: int) -> Any:
    """Return a copy in which edges that never fire in ``n_epochs`` epochs weigh 0, and those of about 1 weigh 1.

    umap-learn's fits leave graphs with such zeros, and its composed models depend on them (:func:`missing_weights`).
    Weights that differ from 1 by a rounding error would differ widely after :func:`reset_rows`, whose powers have no
    bound.
    """
    matrix = matrix.copy()
    matrix.data[matrix.data < matrix.data.max(initial=0.0) / np.float32(n_epochs)] = 0.0
    matrix.data[matrix.data > 1.0 - ROUNDING] = 1.0
    return matrix


def reset_connectivity(matrix: Any, reset_metric: bool = False) -> Any:
    """Reset the rows (:func:`reset_rows`), then return the fuzzy union with the transpose, in compressed rows."""
    matrix = reset_rows(matrix, reset_metric)
    mirror = matrix.T.tocsr()
    out = (matrix + mirror - matrix.multiply(mirror)).tocsr()
    out.eliminate_zeros()
    return out


def reset_rows(matrix: Any, reset_metric: bool = False) -> Any:
    """Scale the strongest edge of every row to 1, and return compressed rows.

    With ``reset_metric`` the weights of each row are then raised to the power at which they sum to log2(15), the sum of
    a row with 15 neighbors.
    """
    matrix = matrix.tocsr().astype(np.float64)  # astype copies, so the matrix of the caller is not changed
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    strongest = np.zeros(matrix.shape[0])
    np.maximum.at(strongest, rows, np.abs(matrix.data))
    matrix.data = np.divide(matrix.data, strongest[rows], out=matrix.data, where=strongest[rows] > 0)
    if reset_metric:
        matrix.data = matrix.data ** _reset_powers(matrix.data, rows, matrix.shape[0])[rows]
    return matrix


def _reset_powers(weights: NDArray[np.float64], rows: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """Return the power t of each row with sum_j w_ij^t = log2(15), by bisection for all rows at once."""
    target = np.log2(RESET_NEIGHBORS)
    low, high, power = np.zeros(n), np.full(n, np.inf), np.ones(n)
    for _ in range(RESET_STEPS):
        total = np.bincount(rows, weights=weights ** power[rows], minlength=n)
        open_ = np.abs(total - target) >= RESET_TOLERANCE
        long = open_ & (total >= target)
        high = np.where(open_ & ~long, power, high)
        low = np.where(long, power, low)
        doubled = long & np.isinf(high)
        middle = (low + np.where(np.isinf(high), 0.0, high)) / 2.0
        power = np.where(doubled, 2.0 * power, np.where(open_, middle, power))
    return power


def _missing(weights: NDArray[Any]) -> float:
    """Return the weight of a missing edge of a graph with these weights."""
    return max(float(weights.min()) / 2.0, SMALLEST_MISSING) if weights.size else SMALLEST_MISSING


def _summed(matrix: Any) -> Any:
    """Return a copy in coordinate format without duplicate entries."""
    matrix = matrix.tocoo(copy=True)
    matrix.sum_duplicates()
    return matrix


def _weights_at(pattern: Any, matrix: Any, missing: float) -> NDArray[np.float64]:
    """Return the weights of ``matrix`` at the entries of ``pattern``, and ``missing`` for entries it does not have."""
    entries = _summed(matrix)
    n = pattern.shape[1]
    keys = entries.row.astype(np.int64) * n + entries.col
    order = np.argsort(keys, kind="stable")
    keys, weights = keys[order], entries.data[order].astype(np.float64)
    wanted = pattern.row.astype(np.int64) * n + pattern.col
    if not keys.size:
        return np.full(wanted.shape, missing)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, weights[at], missing)
