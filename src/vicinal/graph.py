"""Neighbour graphs: fuzzy (memberships of survey eq. 1-3, made symmetric by eq. 4) and entropic (eq. 18, 19).

The theory behind the fuzzy one (section 3) has its objects here too: every row sees the data through a metric of its
own (:func:`local_metric`, eq. 16), which makes a fuzzy set of its edges; their :func:`fuzzy_union` is the graph; and
:func:`fuzzy_cross_entropy` (eq. 17) is how far two fuzzy sets are apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal.neighbors import Neighbors

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Graph:
    """Weighted edges in compressed sparse rows; symmetric, or bipartite from new rows (heads) to known ones."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    n_tails: int
    rho: NDArray[np.float32]
    sigma: NDArray[np.float32]

    @property
    def n(self) -> int:
        return int(self.indptr.shape[0]) - 1

    @property
    def n_edges(self) -> int:
        return int(self.indices.shape[0])

    def check(self) -> None:
        """Raises ValueError if the arrays do not make a graph: what comes from a file may be anything."""
        n, edges = self.n, self.n_edges
        fits = self.indptr.ndim == self.indices.ndim == self.weights.ndim == 1 and self.weights.shape == (edges,)
        if not fits or n < 0 or self.indptr[0] != 0 or self.indptr[-1] != edges or (np.diff(self.indptr) < 0).any():
            raise ValueError("indptr, indices and weights of a graph do not fit together")
        if edges and not 0 <= int(self.indices.min()) <= int(self.indices.max()) < self.n_tails:
            raise ValueError("a graph leads to rows that are not there")

    def degree(self) -> NDArray[np.float64]:
        """Sum of the weights of every row."""
        return np.asarray(np.bincount(self.heads(), weights=self.weights, minlength=self.n), dtype=np.float64)

    def heads(self) -> NDArray[np.int32]:
        """The row of every edge."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    def relative(self) -> Graph:
        """The same edges in units of their row's heaviest: what fires for a row then depends on that row alone."""
        heaviest = np.zeros(self.n, dtype=np.float32)
        np.maximum.at(heaviest, self.heads(), self.weights)
        weights = self.weights / np.where(heaviest > 0, heaviest, 1.0)[self.heads()]
        return Graph(self.indptr, self.indices, weights.astype(np.float32), self.n_tails, self.rho, self.sigma)

    def to_scipy(self) -> csr_matrix:
        """The same arrays as a SciPy matrix."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.weights, self.indices, self.indptr), shape=(self.n, self.n_tails))

    def weighing_tails(self, weight: NDArray[np.floating]) -> Graph:
        """This graph with every edge as many times as strong as its tail weighs, in units of the mean weight."""
        factor = weight / np.mean(weight, dtype=np.float64)
        return replace(self, weights=(self.weights * factor[self.indices]).astype(np.float32))

    @classmethod
    def from_scipy(cls, matrix: Any) -> Graph:
        """The graph of a square matrix; there is no rho and no sigma to know."""
        n = int(matrix.shape[0])
        if matrix.shape != (n, n):
            raise ValueError(f"graph must be square, got shape {matrix.shape}")
        nothing = np.zeros(n, dtype=np.float32)
        none = cls(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n, nothing, nothing)
        return none.with_weights(matrix)

    def with_weights(self, matrix: csr_matrix) -> Graph:
        """This graph with the edges of another matrix (of the same rows)."""
        matrix = matrix.tocsr().astype(np.float32)
        matrix.eliminate_zeros()
        matrix.sort_indices()
        return Graph(
            matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32),
            np.ascontiguousarray(matrix.data),
            self.n_tails,
            self.rho,
            self.sigma,
        )


def fuzzy_graph(
    neighbors: Neighbors,
    *,
    n_neighbors: float | None = None,
    local_connectivity: float = 1.0,
    set_op_mix_ratio: float = 1.0,
    disconnection_distance: float | None = None,
    n_jobs: int = -1,
) -> Graph:
    """The symmetric fuzzy graph of a neighbour table.

    ``n_neighbors`` is the k of eq. 3, the table's columns unless given. ``set_op_mix_ratio`` mixes fuzzy union (1)
    and intersection (0); neighbours at or beyond ``disconnection_distance`` are no neighbours.
    """
    if disconnection_distance is not None:
        neighbors = neighbors.within(disconnection_distance)
    k = float(neighbors.k if n_neighbors is None else n_neighbors)
    rho, sigma = _core.smooth_knn(neighbors.distance, k, local_connectivity, 1.0, False, n_jobs)
    membership = _core.memberships(neighbors.index, neighbors.distance, rho, sigma, False, n_jobs)
    indptr, indices, weights = _core.symmetrize(neighbors.index, membership, set_op_mix_ratio, n_jobs)
    return Graph(indptr, indices, weights, neighbors.n, rho, sigma)


def bipartite_graph(neighbors: Neighbors, n_tails: int, *, local_connectivity: float = 1.0, n_jobs: int = -1) -> Graph:
    """Edges from new rows to their nearest known rows, one direction only.

    A new row is no neighbour of itself, so one neighbour fewer is taken to be certainly connected.
    """
    # The sum of eq. 3 skips the first column, where a fitted table has the row itself.
    padded = np.concatenate([np.zeros((neighbors.n, 1), np.float32), neighbors.distance], axis=1)
    certain = max(0.0, local_connectivity - 1.0)
    rho, sigma = _core.smooth_knn(padded, float(neighbors.k), certain, 1.0, True, n_jobs)
    weights = _core.memberships(neighbors.index, neighbors.distance, rho, sigma, True, n_jobs)
    return _to_known(neighbors, weights, n_tails, rho, sigma)


def local_memberships(
    rows: NDArray[np.int32],
    neighbors: Neighbors,
    *,
    local_connectivity: float = 1.0,
    disconnection_distance: float | None = None,
    n_jobs: int = -1,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Neighbours, memberships, rho and sigma of some rows of a table (eq. 1-3), each from its own line alone.

    A row's sigma that has no rho to stand on is floored by its own distances, not by those of all rows.
    """
    if disconnection_distance is not None:
        neighbors = neighbors.within(disconnection_distance)
    rho, sigma = _core.smooth_knn(neighbors.distance, float(neighbors.k), local_connectivity, 1.0, True, n_jobs)
    others = np.where(neighbors.index == rows[:, None], np.int32(-1), neighbors.index)
    return others, _core.memberships(others, neighbors.distance, rho, sigma, True, n_jobs), rho, sigma


def _to_known(
    neighbors: Neighbors,
    weights: NDArray[np.float32],
    n_tails: int,
    rho: NDArray[np.float32],
    sigma: NDArray[np.float32],
) -> Graph:
    """The edges of a table of new rows' neighbours, without the missing ones."""
    there = neighbors.index >= 0
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64)
    return Graph(indptr, neighbors.index[there], weights[there], n_tails, rho, sigma)


def entropic_graph(
    neighbors: Neighbors, perplexity: float = 30.0, *, normalised: bool = True, n_jobs: int = -1
) -> Graph:
    """The symmetric graph of t-SNE and LargeVis: conditionals of the given perplexity (eq. 18), then their mean.

    ``normalised`` makes all weights together a distribution (eq. 19); otherwise they are the means themselves, so
    that rows weigh 1 on average. A table of k columns, the row itself counted, can express a perplexity below k - 1;
    3 * perplexity + 1 columns hold nearly all of the Gaussian.
    """
    _check_perplexity(perplexity)
    conditional, sigma = _core.perplexity_conditionals(
        neighbors.index, neighbors.distance, float(perplexity), False, n_jobs
    )
    indptr, indices, weights = _core.symmetrize_mean(neighbors.index, conditional, n_jobs)
    if normalised and weights.size:
        weights = (weights / weights.sum(dtype=np.float64)).astype(np.float32)
    return Graph(indptr, indices, weights, neighbors.n, np.zeros(neighbors.n, dtype=np.float32), sigma)


def entropic_bipartite_graph(
    neighbors: Neighbors, n_tails: int, perplexity: float = 30.0, *, n_jobs: int = -1
) -> Graph:
    """Conditionals of new rows among their nearest known rows (eq. 18); the weights of a row sum to 1."""
    _check_perplexity(perplexity)
    weights, sigma = _core.perplexity_conditionals(neighbors.index, neighbors.distance, float(perplexity), True, n_jobs)
    return _to_known(neighbors, weights, n_tails, np.zeros(neighbors.n, dtype=np.float32), sigma)


def _check_perplexity(perplexity: float) -> None:
    if not (perplexity >= 1.0 and np.isfinite(perplexity)):
        raise ValueError(f"perplexity must be a number of at least 1, got {perplexity!r}")


@dataclass(frozen=True)
class LocalMetric:
    """The extended pseudo-metric d_i of one row (eq. 16): finite only between the row and its neighbours.

    Distances shorter than rho are 0, and so is every point's distance to itself. The triangle inequality holds only
    among pairs that contain the row; eq. 16's own infinities break it elsewhere.
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
        """The edges that this metric makes of n rows: memberships exp(-d_i / sigma), in both directions."""
        from scipy.sparse import csr_matrix

        weights = np.exp(-self.distance / sigma) if sigma > 0 else np.ones_like(self.distance)
        star = csr_matrix((weights, (np.full(self.index.size, self.row), self.index)), shape=(n, n))
        empty = np.zeros(n, dtype=np.float32)
        nothing = Graph(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), n, empty, empty)
        return nothing.with_weights(star + star.T)


def local_metric(neighbors: Neighbors, row: int, rho: float) -> LocalMetric:
    """d_i of a row from the table of its neighbours, which stands for the geodesic distance (eq. 16)."""
    index, distance = neighbors.index[row], neighbors.distance[row].astype(np.float64)
    others = (index != row) & (index >= 0) & np.isfinite(distance)
    return LocalMetric(row, index[others], np.maximum(distance[others] - rho, 0.0))


def fuzzy_union(left: Graph, right: Graph) -> Graph:
    """p + q - p q: the probabilistic sum, a t-conorm. Memberships lie in [0, 1]; a missing edge has 0."""
    p, q = _memberships(left, right)
    return left.with_weights(p + q - p.multiply(q))


def fuzzy_intersection(left: Graph, right: Graph) -> Graph:
    """p q: the product, a t-norm."""
    p, q = _memberships(left, right)
    return left.with_weights(p.multiply(q))


def fuzzy_cross_entropy(left: Graph, right: Graph) -> float:
    """Eq. 17 over all ordered pairs of rows; infinite where ``right`` is certain of what ``left`` is not."""
    p, q = _memberships(left, right)
    pattern = (p + q).tocoo()
    if pattern.nnz == 0:
        return 0.0
    mine = np.asarray(p[pattern.row, pattern.col]).reshape(-1)
    theirs = np.asarray(q[pattern.row, pattern.col]).reshape(-1)
    return float((_x_log_ratio(mine, theirs) + _x_log_ratio(1.0 - mine, 1.0 - theirs)).sum())


def x_log_x(x: NDArray[np.floating]) -> NDArray[np.float64]:
    """x ln x, 0 at 0."""
    return _x_log_ratio(x, np.ones_like(x))


def _x_log_ratio(x: NDArray[np.floating], y: NDArray[np.floating]) -> NDArray[np.float64]:
    """x ln(x / y), 0 where x is 0."""
    some = x > 0
    with np.errstate(divide="ignore"):
        return np.asarray(x * (np.log(np.where(some, x, 1.0)) - np.log(np.where(some, y, 1.0))), dtype=np.float64)


def _memberships(left: Graph, right: Graph) -> tuple[csr_matrix, csr_matrix]:
    if (left.n, left.n_tails) != (right.n, right.n_tails):
        raise ValueError(f"the graphs differ in their rows: {left.n}x{left.n_tails} and {right.n}x{right.n_tails}")
    for graph in (left, right):
        if graph.n_edges and not (graph.weights.min() >= 0 and graph.weights.max() <= 1):
            raise ValueError("memberships must lie in [0, 1]")
    return left.to_scipy().astype(np.float64), right.to_scipy().astype(np.float64)
