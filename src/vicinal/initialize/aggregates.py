"""A coarse graph: similar rows are joined to aggregates of about ten, which are laid out in place of the rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.backends import Place, cpu
from vicinal.graph.graph import Graph

ROUNDS = 3  # each round leaves a little less than half of the rows: 70,000, 32,849, 15,311, 7,101
# How often a row of a lifted map moves to the mean of its neighbors, and the noise that separates rows.
AVERAGES, LIFT_NOISE = 2, 1e-3


@dataclass(frozen=True)
class Aggregates:
    """The aggregate of each row, and a graph of the aggregates whose layout has the size of a layout of the rows.

    An edge between aggregates of masses m and M has the summed weight of their rows' edges, divided by sqrt(m M), and
    negatives are drawn by mass. ``repulsion`` makes up for the edges within aggregates, which pull nobody.
    ``firings`` is the heaviest weight relative to that of the rows' graph.
    """

    group: NDArray[np.int32]
    mass: NDArray[np.float32]
    graph: Graph
    repulsion: float
    firings: float

    @classmethod
    def of(cls, graph: Graph, n_jobs: int = -1) -> Aggregates:
        """Join the rows of a symmetric graph. The work is done on the host; the coarse graph is where the graph is."""
        group, mass, (indptr, indices, sums) = cpu.aggregate_rows(*_on_host(graph), ROUNDS, n_jobs)
        between = csr_matrix((sums, indices, indptr), shape=(len(mass), len(mass)))
        total, heaviest = float(graph.weights.sum(dtype=np.float64)), float(graph.weights.max(initial=0.0))
        return cls.from_sums(group, mass, between, (total, heaviest), graph.place)

    @classmethod
    def from_sums(
        cls,
        group: NDArray[np.int32],
        mass: NDArray[np.float32],
        between: csr_matrix,
        of_rows: tuple[float, float],
        place: Place = None,
    ) -> Aggregates:
        """Return aggregates, given the sums of weights between them, and the sum and maximum of the rows' weights.

        The tails of each row of the sums must ascend.
        """
        heads = np.repeat(np.arange(len(mass)), np.diff(between.indptr))
        apart = heads != between.indices
        indptr = np.concatenate([[0], np.cumsum(apart)])[between.indptr]
        heads, tails = heads[apart], between.indices[apart]
        weights = between.data[apart] / np.sqrt(mass[heads].astype(np.float64) * mass[tails])
        coarse = Graph.from_scipy(csr_matrix((weights, tails, indptr), shape=between.shape))
        degree = of_rows[0] / max(float(mass.sum(dtype=np.float64)), 1.0)
        coarse_degree = float(coarse.weights.sum(dtype=np.float64)) / max(coarse.n, 1)
        repulsion = degree / coarse_degree if coarse_degree > 0 else 1.0
        heaviest = float(coarse.weights.max(initial=0.0))
        firings = heaviest / of_rows[1] if heaviest > 0 else 1.0
        return cls(group, mass, coarse.on(place), repulsion, firings)

    def means(self, places: NDArray[np.floating]) -> NDArray[np.float32]:
        """Return the mean place of the rows of each aggregate."""
        rows = np.bincount(self.group, minlength=len(self.mass))
        return np.stack([np.bincount(self.group, axis) / rows for axis in places.T], axis=1).astype(np.float32)

    def lifted(self, places: NDArray[np.float32], graph: Graph, seed: int, n_jobs: int = -1) -> NDArray[np.float32]:
        """Return places of the rows, given those of their aggregates: near them, and near the rows' neighbors."""
        lifted = places[self.group]
        for _ in range(AVERAGES):
            lifted = cpu.neighbor_means(*_on_host(graph), lifted, n_jobs)
        noise = np.random.default_rng(seed).normal(scale=LIFT_NOISE, size=lifted.shape)
        return (lifted + noise).astype(np.float32)


def _on_host(graph: Graph) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    return graph.indptr, graph.indices, graph.weights
