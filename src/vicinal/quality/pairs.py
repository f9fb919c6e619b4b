"""Sums over the pairs of points of a map, all of them or a sample, and over the edges of its graph."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import backend_of, cpu
from vicinal.graph.graph import Graph
from vicinal.layout.kernel import Kernel

# The exact sum over 70,000 rows takes a few seconds on two cores; the time grows with the square of the rows.
EXACT_ROWS, SAMPLES = 100_000, 256
GROUP = 16  # partners are drawn in groups of this size
LARGEST_PLACE = 1e15  # the squares of larger coordinates overflow float32

Floats = NDArray[np.float64]
Samples = int | Literal["auto"] | None


class Pairs:
    """Sums of a term over all pairs of points, or over the edges of the graph."""

    def __init__(
        self,
        graph: Graph,
        embedding: ArrayLike,
        samples: Samples,
        seed: int,
        n_jobs: int,
        rows: ArrayLike | None = None,
    ) -> None:
        self._graph, self._seed, self._n_jobs = graph, seed, n_jobs
        self._places = checked_places(graph, embedding)
        self._groups = _groups(samples, graph.n)
        # Costs are summed up where the graph lives, gradients on the CPU.
        self._work = backend_of(graph.place)
        self.rows = None if rows is None else _checked_rows(rows, graph.n)

    def over_all(self, term: str, kernel: Kernel, degree: Floats | None = None) -> tuple[float, float]:
        """Return Σ_i w_i Σ_{j ≠ i} t(d²_ij), w_i = 1 or the degree, and its standard error."""
        quantity = _quantity(self._work, term, kernel)
        if self._groups is None or self._graph.n < 2:
            # Each pair is visited once, with the weights of both rows.
            return float(self._sums(self._work, degree).costs(quantity, self._n_jobs).sum()), 0.0
        value, variance = self._sums(self._work).draws(quantity, self._groups, self._seed, self._n_jobs)
        weight = 1.0 if degree is None else degree
        return float((weight * value).sum()), math.sqrt(float((weight * weight * variance).sum()))

    def over_edges(self, term: str, kernel: Kernel) -> float:
        """Return Σ p_ij t(d²_ij) over the edges."""
        edges = (self._graph.array(name) for name in ("indptr", "indices", "weights"))
        sums = self._sums(self._work)
        return float(sums.edges(_quantity(self._work, term, kernel), False, *edges, None, self._n_jobs).sum())

    def forces(self, term: str, kernel: Kernel, degree: Floats | None = None) -> Floats:
        """Return Σ_j w_j t(d²_ij) (y_i - y_j) for the chosen rows."""
        forces: Floats = self._sums(cpu, degree).forces(_quantity(cpu, term, kernel), self.rows, self._n_jobs)
        return forces

    def edge_forces(self, term: str, kernel: Kernel) -> Floats:
        """Return Σ_j p_ij t(d²_ij) (y_i - y_j) for the chosen rows."""
        graph, sums = self._graph, self._sums(cpu)
        edges = graph.indptr, graph.indices, graph.weights
        forces: Floats = sums.edges(_quantity(cpu, term, kernel), True, *edges, self.rows, self._n_jobs)
        return forces

    def _sums(self, work: Any, degree: Floats | None = None) -> Any:
        return work.PairSums(self._places, None if degree is None else degree.astype(np.float32))


def _quantity(work: Any, term: str, kernel: Kernel) -> Any:
    return work.PairQuantity(term, "umap", kernel.a, kernel.b, 1.0)


def checked_places(graph: Graph, embedding: ArrayLike) -> NDArray[np.float32]:
    """Return the places of the rows of a symmetric graph, or raise ValueError."""
    places = np.require(embedding, dtype=np.float32, requirements=["C", "A"])
    if places.ndim != 2 or graph.n_tails != graph.n or places.shape[0] != graph.n:
        raise ValueError(
            f"embedding must hold one place for each row of a symmetric graph of {graph.n} rows,"
            f" got shape {places.shape}"
        )
    bad = ~(np.abs(places) <= LARGEST_PLACE).all(axis=1)
    if bad.any():
        raise ValueError(f"embedding contains NaN, infinity or huge places, first in row {int(np.argmax(bad))}")
    return places


def _groups(samples: Samples, n: int) -> int | None:
    """Return the number of groups of partners per row, or None for the exact sum."""
    if samples == "auto":
        samples = None if n <= EXACT_ROWS else SAMPLES
    if samples is None:
        return None
    if isinstance(samples, str) or samples < 1:
        raise ValueError(f"samples must be 'auto', None or a positive number, got {samples!r}")
    return max(2, -(-int(samples) // GROUP))


def _checked_rows(rows: ArrayLike, n: int) -> NDArray[np.int32]:
    given = np.asarray(rows)
    numbers = given.dtype.kind in "iu" or given.size == 0
    if given.ndim != 1 or not numbers or (given.size and (given.min() < 0 or given.max() >= n)):
        raise ValueError(f"rows must be row numbers below {n}, got {rows!r}")
    return np.ascontiguousarray(given, dtype=np.int32)
