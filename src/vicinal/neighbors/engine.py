"""Neighbor searches of the backends, one call each: dense rows, by sketches, evaluated pairs or a device; sparse rows.

An engine is a function of its fields. What it builds on first use (prepared rows, sketches, trees) is cached without a
lock, and never changed afterwards: threads may share an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu
from vicinal.neighbors.metrics import FittedMetric, Rows, is_low_level
from vicinal.neighbors.policy import SearchOptions
from vicinal.neighbors.preparation import Preparation, is_safe
from vicinal.neighbors.rows import HasRows, csr_parts
from vicinal.neighbors.table import Neighbors, SearchGraph
from vicinal.runtime.cached import cached

EDGES = ("indptr", "indices")
QUERY_BLOCK = 1 << 18  # most rows that a device searches at a time

Found = tuple[NDArray[np.int32], NDArray[np.float32]]


@dataclass(frozen=True, eq=False)
class _Engine:
    """Rows and the metric that compares them; ``largest`` is their largest magnitude if it is known."""

    X: Rows
    metric: FittedMetric
    seed: int
    n_jobs: int
    largest: float | None

    @cached
    def _prepared(self) -> tuple[Preparation, Rows]:
        return Preparation.of(self.metric, self.X, self.n_jobs, self.largest)

    @property
    def preparation(self) -> Preparation:
        """How rows are prepared before they are compared with those of the engine."""
        return self._prepared[0]

    @property
    def rows(self) -> Rows:
        """The prepared rows; X itself if nothing had to be changed."""
        return self._prepared[1]

    def _table(self, found: Found, share: float = 1.0) -> Neighbors:
        return Neighbors(found[0], self.preparation.distances(*found), share)


class DenseEngine(_Engine):
    """Searches of dense rows. Ranks come from sketches and rows, or from evaluated pairs (``metric.by_pairs``)."""

    @cached
    def options(self) -> SearchOptions:
        """The options of an approximate search before it is known how many neighbors are wanted."""
        return SearchOptions().for_rows(self.X.shape[0])

    def search_exact(self, k: int) -> Neighbors:
        """Compare all pairs of rows."""
        return self._table(self._any_index.search_exact(k, self.n_jobs))

    def search_approximate(self, k: int, options: SearchOptions) -> tuple[Neighbors, bool]:
        """Search by random projection trees and NN-descent. ``options`` must have the trees of ``self.options``.

        Return the table, and whether the data has structure: otherwise rows were compared with the central rows, and
        more effort would not find more.
        """
        index, distance, share, structured = self._index_with_trees.search_approximate(
            k,
            options.trees,
            options.leaf_rows,
            options.node_rows,
            options.candidates,
            max(options.spare, k // 3),
            options.rounds,
            options.coarse,
            options.evaluated if self.metric.by_pairs else options.fine,
            options.final,
            options.structureless,
            options.unordered_bytes,
            self.n_jobs,
        )
        return self._table((index, distance), share), structured

    def query_all(self, prepared: NDArray[np.float32], k: int, pool: int) -> Neighbors:
        """Return the nearest rows of prepared rows, by comparing them with all rows."""
        no_edges = np.zeros(self.X.shape[0] + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        likeness, pairs = self.preparation.likeness(prepared), self._pairs(prepared)
        return self._table(self._any_index.query(likeness, *no_edges, k, pool, 0, 1.0, self.n_jobs, pairs))

    def query_along(
        self, prepared: NDArray[np.float32], k: int, pool: int, graph: SearchGraph, trees: int, share: float
    ) -> Neighbors:
        """Return the nearest rows of prepared rows, from the leaves of some trees along the edges of a graph."""
        likeness, pairs = self.preparation.likeness(prepared), self._pairs(prepared)
        index = self._index_with_trees
        return self._table(
            index.query(likeness, graph.indptr, graph.indices, k, pool, trees, share, self.n_jobs, pairs)
        )

    @property
    def _any_index(self) -> cpu.NeighborIndex:
        return self.__dict__.get("_index_with_trees") or self._plain_index

    @cached
    def _plain_index(self) -> cpu.NeighborIndex:
        return self._build_index()

    @cached
    def _index_with_trees(self) -> cpu.NeighborIndex:
        # A separate object, because growing trees in an index that another thread searches would be a race.
        index = self._build_index()
        index.grow_forest(self.options.trees, self.options.leaf_rows, self.n_jobs)
        self.__dict__.pop("_plain_index", None)  # this one does the same
        return index

    def _build_index(self) -> cpu.NeighborIndex:
        likeness, pairs = self.preparation.likeness(self.rows), self._pairs(self.rows)
        return cpu.NeighborIndex(likeness, self.metric.core, self.seed, self.n_jobs, pairs)

    def _pairs(self, prepared: NDArray[np.float32]) -> cpu.PairMetric | None:
        """Return the evaluation of prepared rows with the rows of the engine, if the metric needs it."""
        metric = self.metric
        if not metric.by_pairs:
            return None
        if metric.function is None:
            return cpu.DensePairs(prepared, self.rows, metric.core, metric.power)
        if is_low_level(metric.function):
            return cpu.ForeignPairs(prepared, self.rows, metric.function)
        function: Callable[..., float] = partial(metric.function, **metric.keywords)
        # copies: a function that writes into its arguments must not change the rows of the caller
        return cpu.PythonPairs(list(prepared.copy()), list(self.rows.copy()), function)


class DeviceEngine:
    """Searches of dense rows on a device, in the arithmetic of the CPU. Products propose candidates."""

    def __init__(self, source: HasRows, metric: FittedMetric, n_jobs: int, largest: float | None) -> None:
        self.source, self.metric, self.n_jobs, self.largest = source, metric, n_jobs, largest

    @cached
    def _prepared(self) -> tuple[Preparation, Any]:
        """How rows are prepared, and the prepared rows on the device."""
        place = self.source.place
        if self.metric.facts.prepare is None and is_safe(self.largest):
            return Preparation(self.metric, 1.0, self.n_jobs), self.source.array("rows")
        preparation, rows = Preparation.of(self.metric, self.source.rows, self.n_jobs, self.largest)
        return preparation, place.asarray(rows)

    @cached
    def _rows(self) -> Any:
        return backend_of(self.source.place).dense_rows(self._prepared[1], self.metric.core)

    def _table(self, found: tuple[Any, Any]) -> Neighbors:
        preparation, place = self._prepared[0], self.source.place
        if preparation.scale == 1.0:
            return Neighbors.held(place, {"index": found[0], "distance": found[1]})
        index, distance = (place.to_numpy(part) for part in found)
        return Neighbors(index, preparation.distances(index, distance)).on(place)

    def search_exact(self, k: int) -> Neighbors:
        """Compare all pairs of rows."""
        with self.source.place.active():
            return self._table(self._rows.search_exact(k))

    def search_approximate(self, k: int) -> Neighbors:
        """Search by products in half precision, of all pairs or of the pairs within cells; rank in float32."""
        with self.source.place.active():
            return self._table(self._rows.search_products(k) if self._rows.few else self._rows.search_cells(k))

    def query(self, Q: NDArray[np.float32], largest: float, k: int, graph: SearchGraph) -> Neighbors:
        """Return the nearest rows of other rows: those of their nearest cells, then along the edges of a graph."""
        place, preparation = self.source.place, self._prepared[0]
        prepared = preparation.rows(Q, largest)
        edges = tuple(
            graph.array(name) if graph.place is place else place.asarray(getattr(graph, name)) for name in EDGES
        )
        parts, backend = [], backend_of(place)
        step = min(QUERY_BLOCK, backend.query_rows(prepared.shape[1]))
        with place.active():
            for first in range(0, len(prepared), step):
                heads = backend.dense_rows(place.asarray(prepared[first : first + step]), self.metric.core)
                parts.append(self._rows.query(heads, k, edges))
            index, distance = (place.xp.concatenate(part) for part in zip(*parts, strict=True))
        return self._table((index, distance))

    def sample_recall(self, found: Neighbors, sample: NDArray[np.int64]) -> float:
        """Estimate the recall of a table, by comparing some rows with all rows."""
        with self.source.place.active():
            last = self._rows.last_distances(sample, found.k)
        # The table may be scaled; ranks of the sample are not.
        distance = found.distances_of(sample)[:, 1:]
        if self._prepared[0].scale != 1.0:
            last = self._prepared[0].distances(np.zeros(last.shape, np.int32), last)
        return float(np.mean(distance <= last[:, None] * 1.0001))


class SparseEngine(_Engine):
    """Searches of sparse rows, by lists of the entries per column."""

    @cached
    def _index(self) -> cpu.SparseIndex:
        return cpu.SparseIndex(*csr_parts(self.rows), self.metric.core, self.metric.power, self.n_jobs)

    @property
    def additive(self) -> bool:
        """Whether the metric is a sum over the columns that both rows store."""
        return self._index.additive

    @property
    def additions(self) -> float:
        """Number of additions of a search that compares all pairs."""
        return self._index.additions

    def search(self, k: int, budget: int, pool: int) -> Neighbors:
        """Return the k nearest rows of every row; ``budget`` is the number of entries to add up per row, 0 for all."""
        return self._table(self._index.search(k, budget, pool, self.n_jobs))

    def query(self, prepared: Rows, k: int, budget: int, pool: int) -> Neighbors:
        """Return the k nearest rows of prepared rows."""
        return self._table(self._index.query(*csr_parts(prepared), k, budget, pool, self.n_jobs))
