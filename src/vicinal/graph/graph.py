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

from vicinal.neighbors.table import Neighbors

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
    def to_known_rows(
        cls,
        neighbors: Neighbors,
        weights: NDArray[np.float32],
        n_tails: int,
        rho: NDArray[np.float32],
        sigma: NDArray[np.float32],
    ) -> Graph:
        """Build the bipartite graph from new rows to their known neighbors; missing neighbors have no edge."""
        present = neighbors.index >= 0
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int64)
        return cls(indptr, neighbors.index[present], weights[present], n_tails, rho, sigma)

    @classmethod
    def from_scipy(cls, matrix: Any) -> Graph:
        """The graph of a square matrix; there is no rho and no sigma to know."""
        n = int(matrix.shape[0])
        if matrix.shape != (n, n):
            raise ValueError(f"graph must be square, got shape {matrix.shape}")
        return cls.without_edges(n).with_weights(matrix)

    @classmethod
    def without_edges(cls, n: int) -> Graph:
        """Return the graph of ``n`` rows that has no edges, with rho and sigma 0."""
        zeros = np.zeros(n, dtype=np.float32)
        return cls(np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), n, zeros, zeros)

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
