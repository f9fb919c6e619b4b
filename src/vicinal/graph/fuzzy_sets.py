"""The theory behind the fuzzy graph (survey section 3): local metrics, fuzzy sets of edges and their cross-entropy.

Each row has a metric of its own (:func:`local_metric`, eq. 16), which defines a fuzzy set of edges. The
:func:`fuzzy_union` of these sets over all rows is the fuzzy graph, and :func:`fuzzy_cross_entropy` (eq. 17) measures
the difference between two fuzzy sets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class LocalMetric:
    """The extended pseudo-metric d_i of one row (eq. 16), finite only between the row and its neighbors.

    Distances shorter than rho are 0, and so is the distance of a point to itself. The triangle inequality holds for
    pairs that contain the row; the infinite distances of eq. 16 violate it for other pairs.
    """

    row: int
    index: NDArray[np.int32]
    distance: NDArray[np.float64]

    def __call__(self, j: int, other: int) -> float:
        if j == other:
            return 0.0
        if self.row not in (j, other):
            return float("inf")
        at = np.flatnonzero(self.index == (other if j == self.row else j))
        return float(self.distance[at[0]]) if at.size else float("inf")

    def fuzzy_set(self, sigma: float, n: int) -> Graph:
        """Return the fuzzy set of edges over n rows: memberships exp(-d_i / sigma), in both directions."""
        from scipy.sparse import csr_matrix

        weights = np.exp(-self.distance / sigma) if sigma > 0 else np.ones_like(self.distance)
        star = csr_matrix((weights, (np.full(self.index.size, self.row), self.index)), shape=(n, n))
        return Graph.without_edges(n).with_weights(star + star.T)


def local_metric(neighbors: Neighbors, row: int, rho: float) -> LocalMetric:
    """Return d_i of a row (eq. 16), with the distances of the neighbor table as geodesic distances."""
    index, distance = neighbors.index[row], neighbors.distance[row].astype(np.float64)
    others = (index != row) & (index >= 0) & np.isfinite(distance)
    return LocalMetric(row, index[others], np.maximum(distance[others] - rho, 0.0))


def fuzzy_union(left: Graph, right: Graph) -> Graph:
    """Return the union p + q - p q, the probabilistic sum. A missing edge has membership 0."""
    p, q = _memberships(left, right)
    return left.with_weights(p + q - p.multiply(q))


def fuzzy_intersection(left: Graph, right: Graph) -> Graph:
    """Return the intersection p q, the product t-norm. A missing edge has membership 0."""
    p, q = _memberships(left, right)
    return left.with_weights(p.multiply(q))


def fuzzy_cross_entropy(left: Graph, right: Graph) -> float:
    """Compute eq. 17 over all ordered pairs of rows.

    It is infinite if ``right`` has membership 0 or 1 for an edge and ``left`` has another one.
    """
    p, q = _memberships(left, right)
    pattern = (p + q).tocoo()
    if pattern.nnz == 0:
        return 0.0
    mine = np.asarray(p[pattern.row, pattern.col]).reshape(-1)
    theirs = np.asarray(q[pattern.row, pattern.col]).reshape(-1)
    return float((_x_log_ratio(mine, theirs) + _x_log_ratio(1.0 - mine, 1.0 - theirs)).sum())


def x_log_x(x: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return x ln x, with 0 at x = 0."""
    return _x_log_ratio(x, np.ones_like(x))


def _x_log_ratio(x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return x ln(x / y), with 0 at x = 0."""
    some = x > 0
    with np.errstate(divide="ignore"):
        return np.asarray(x * (np.log(np.where(some, x, 1.0)) - np.log(np.where(some, y, 1.0))), dtype=np.float64)


def _memberships(left: Graph, right: Graph) -> tuple[csr_matrix, csr_matrix]:
    if (left.n, left.n_tails) != (right.n, right.n_tails):
        raise ValueError(
            f"the graphs must have the same rows, got {left.n}x{left.n_tails} and {right.n}x{right.n_tails}"
        )
    for graph in (left, right):
        if graph.n_edges and not (graph.weights.min() >= 0 and graph.weights.max() <= 1):
            raise ValueError("memberships must lie in [0, 1]")
    return left.to_scipy().astype(np.float64), right.to_scipy().astype(np.float64)
