"""Weighted neighbor graphs in compressed sparse rows, the common result of all ways to build a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import Movable, Place, backend_of, placed
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.inputs import check_structure

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Graph(Movable, arrays=("indptr", "indices", "weights", "rho", "sigma")):
    """Weighted edges from heads to tails in compressed sparse rows.

    The graph is symmetric, or bipartite from new rows (heads) to known rows (tails).

    Parameters
    ----------
    indptr : int64 array of shape (n + 1,)
        The edges of head i are those from ``indptr[i]`` to ``indptr[i + 1]``.
    indices : int32 array of shape (n_edges,)
        Tail of each edge.
    weights : float32 array of shape (n_edges,)
        Weight of each edge.
    n_tails : int
        Number of rows that can be tails.
    rho, sigma : float32 arrays of shape (n,)
        Distance of the nearest neighbor and scale of the distances of each head; 0 if unknown.

    See Also
    --------
    fuzzy_graph : the graph of UMAP.
    entropic_graph : the graph of t-SNE and LargeVis.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import find_neighbors, fuzzy_graph
    >>> X = load_iris().data
    >>> graph = fuzzy_graph(find_neighbors(X, 10))
    >>> graph.n, graph.n_edges == graph.to_scipy().nnz
    (150, True)
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    n_tails: int
    rho: NDArray[np.float32]
    sigma: NDArray[np.float32]

    @classmethod
    def at(cls, place: Place, edges: tuple[Any, Any, Any], n_tails: int, rho: Any, sigma: Any) -> Graph:
        """Return the graph of (indptr, indices, weights) and of rho and sigma, which are arrays of a place."""
        indptr, indices, weights, rho, sigma = (placed(place, array) for array in (*edges, rho, sigma))
        return cls(indptr, indices, weights, n_tails, rho, sigma)

    @property
    def edges(self) -> tuple[Any, Any, Any]:
        """(indptr, indices, weights), where the graph is."""
        return self.array("indptr"), self.array("indices"), self.array("weights")

    @property
    def n(self) -> int:
        """Number of heads."""
        return int(self.anywhere("indptr").shape[0]) - 1

    @property
    def n_edges(self) -> int:
        return int(self.anywhere("indices").shape[0])

    def check(self) -> None:
        """Raise ValueError unless the arrays form a valid graph. Arrays from a file may hold anything."""
        n, edges = self.n, self.n_edges
        fits = self.indptr.ndim == self.indices.ndim == self.weights.ndim == 1 and self.weights.shape == (edges,)
        if not fits or n < 0 or self.indptr[0] != 0 or self.indptr[-1] != edges or (np.diff(self.indptr) < 0).any():
            raise ValueError("indptr, indices and weights of a graph do not fit together")
        if edges and not 0 <= int(self.indices.min()) <= int(self.indices.max()) < self.n_tails:
            raise ValueError("an edge of the graph leads to a row that does not exist")

    def degree(self) -> NDArray[np.float64]:
        """Return the sum of the weights of each head."""
        return np.asarray(np.bincount(self.heads(), weights=self.weights, minlength=self.n), dtype=np.float64)

    def heads(self) -> NDArray[np.int32]:
        """Return the head of each edge."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.indptr))

    def isolated(self) -> NDArray[np.bool_]:
        """Return which heads have no edge."""
        return np.asarray(np.diff(self.indptr) == 0)

    def among(self, rows: NDArray[np.int64]) -> Graph:
        """Return the graph of some rows of a symmetric graph, which must hold the ends of all edges."""
        number = np.zeros(self.n, dtype=np.int32)
        number[rows] = np.arange(len(rows), dtype=np.int32)
        indptr = np.concatenate([[0], np.cumsum(np.diff(self.indptr)[rows])]).astype(np.int64)
        graph = Graph(indptr, number[self.indices], self.weights, len(rows), self.rho[rows], self.sigma[rows])
        return graph.on(self.place)

    def relative(self) -> Graph:
        """Return the graph with weights relative to the heaviest edge of each head.

        In a layout the firings of a row then depend on that row only.
        """
        heaviest = np.zeros(self.n, dtype=np.float32)
        np.maximum.at(heaviest, self.heads(), self.weights)
        weights = self.weights / np.where(heaviest > 0, heaviest, 1.0)[self.heads()]
        return replace(self, weights=weights.astype(np.float32)).on(self.place)

    def to_scipy(self) -> csr_matrix:
        """Return a SciPy matrix that shares the arrays of the graph."""
        from scipy.sparse import csr_matrix

        return csr_matrix((self.weights, self.indices, self.indptr), shape=(self.n, self.n_tails))

    def weighing_tails(self, weight: NDArray[np.floating]) -> Graph:
        """Return the graph with each edge multiplied by the weight of its tail, relative to the mean weight."""
        factor = weight / np.mean(weight, dtype=np.float64)
        return replace(self, weights=(self.weights * factor[self.indices]).astype(np.float32)).on(self.place)

    @classmethod
    def to_known_rows(cls, neighbors: Neighbors, weights: Any, n_tails: int, rho: Any, sigma: Any) -> Graph:
        """Build the bipartite graph from new rows to their known neighbors; missing neighbors have no edge.

        Weights, rho and sigma are arrays of the place of the table, and so are those of the graph.
        """
        xp, index = backend_of(neighbors.place).xp, neighbors.array("index")
        present = index >= 0
        indptr = xp.zeros(neighbors.n + 1, np.int64)
        indptr[1:] = xp.cumsum(present.reshape(-1), dtype=np.int64)[neighbors.k - 1 :: neighbors.k]
        return cls.at(neighbors.place, (indptr, index[present], weights[present]), n_tails, rho, sigma)

    @classmethod
    def from_scipy(cls, matrix: Any) -> Graph:
        """Build a graph from a square SciPy matrix; rho and sigma are 0."""
        check_structure(matrix, "graph")
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
        """Return the graph with the edges of ``matrix``, which has the same rows; zero weights are dropped."""
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
