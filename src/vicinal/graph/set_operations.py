"""Fuzzy set operations on graphs given as SciPy matrices, with the product t-norm.

    union          p + q - p q                                                       (survey eq. 4)
    intersection   p^min(1, (1-w)/w) q^min(1, w/(1-w)), weight w of the right side; p q at w = 1/2

An edge that only one side has is not impossible on the other: it counts there as half of that side's weakest edge,
so that two views of the same rows join instead of tearing each other apart (umap-learn's convention).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bounds of what stands in for a missing edge.
SMALLEST_MISSING, LARGEST_MISSING = 1e-8, 1e-4
# What a row's memberships are made to sum up to when its metric is reset: log2 of umap-learn's fixed neighbourhood.
RESET_NEIGHBORS, RESET_STEPS, RESET_TOLERANCE = 15, 32, 1e-5


def unite(left: Any, right: Any, *, missing: tuple[float, float] | None = None) -> Any:
    """The fuzzy union of two graphs, in coordinate format; ``missing`` weights are the graphs' own unless given."""
    pattern = _summed(left + right)
    p_missing, q_missing = missing or (_missing(left.data), _missing(right.data))
    p, q = _weights_at(pattern, left, p_missing), _weights_at(pattern, right, q_missing)
    return _with_weights(pattern, p + q - p * q)


def intersect(
    left: Any,
    right: Any,
    weight: float = 0.5,
    right_complement: bool = False,
    *,
    missing: tuple[float, float] | None = None,
) -> Any:
    """The fuzzy intersection of two graphs, or of ``left`` with the complement of ``right``, in coordinate format.

    ``weight`` says how much ``right`` counts: at 0 it has no say, at 1 it alone has.
    """
    if not 0.0 <= weight <= 1.0:
        raise ValueError(f"weight must lie in [0, 1], got {weight}")
    p_missing, q_missing = missing or missing_weights(left, right, right_complement)
    right = right.tocsr().copy()
    if right_complement:
        right.data = 1.0 - right.data
    pattern = _summed(left if right_complement else left + right)
    p, q = _weights_at(pattern, left, p_missing), _weights_at(pattern, right, q_missing)
    if weight < 0.5:
        mixed = p * q ** (weight / (1.0 - weight))
    else:
        mixed = p ** ((1.0 - weight) / weight) * q
    known = (p > p_missing) | (q > q_missing)
    return _with_weights(pattern, np.where(known, mixed, pattern.data))


def missing_weights(left: Any, right: Any, right_complement: bool = False) -> tuple[float, float]:
    """What an edge counts with on the side that does not have it, when two graphs are intersected."""
    weights = 1.0 - right.data if right_complement else right.data
    return _missing(left.data), min(_missing(weights), LARGEST_MISSING)


def reset_connectivity(matrix: Any, reset_metric: bool = False) -> Any:
    """Every row's strongest edge back to 1, then the fuzzy union with the mirror image, as compressed rows.

    ``reset_metric`` raises the weights of a row to the power at which they sum up to log2(15), as if its own
    neighbourhood had that size.
    """
    matrix = matrix.tocsr().astype(np.float64)  # a copy: the caller's matrix stays
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    strongest = np.zeros(matrix.shape[0])
    np.maximum.at(strongest, rows, np.abs(matrix.data))
    matrix.data = np.divide(matrix.data, strongest[rows], out=matrix.data, where=strongest[rows] > 0)
    if reset_metric:
        matrix.data = matrix.data ** _reset_powers(matrix.data, rows, matrix.shape[0])[rows]
    mirror = matrix.T.tocsr()
    out = (matrix + mirror - matrix.multiply(mirror)).tocsr()
    out.eliminate_zeros()
    return out


def _reset_powers(weights: NDArray[np.float64], rows: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """For every row the power t with sum_j w_ij^t = log2(15), by bisection of all rows at once."""
    target = np.log2(RESET_NEIGHBORS)
    low, high, power = np.zeros(n), np.full(n, np.inf), np.ones(n)
    for _ in range(RESET_STEPS):
        total = np.bincount(rows, weights=weights ** power[rows], minlength=n)
        open_ = np.abs(total - target) >= RESET_TOLERANCE
        short = open_ & (total < target)
        long = open_ & ~short
        high = np.where(short, power, high)
        low = np.where(long, power, low)
        doubled = long & np.isinf(high)
        middle = (low + np.where(np.isinf(high), 0.0, high)) / 2.0
        power = np.where(doubled, 2.0 * power, np.where(open_, middle, power))
    return power


def _missing(weights: NDArray[Any]) -> float:
    """The weight an edge counts with that is not there."""
    return max(float(weights.min()) / 2.0, SMALLEST_MISSING) if weights.size else SMALLEST_MISSING


def _summed(matrix: Any) -> Any:
    """A copy in coordinate format, each entry once."""
    matrix = matrix.tocoo(copy=True)
    matrix.sum_duplicates()
    return matrix


def _weights_at(pattern: Any, matrix: Any, missing: float) -> NDArray[np.float64]:
    """The matrix's weights at the entries of the pattern, ``missing`` where it has none."""
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


def _with_weights(pattern: Any, weights: NDArray[np.float64]) -> Any:
    pattern.data = weights.astype(pattern.data.dtype)
    return pattern
