"""Neighbor searches of the backends, one call each: dense rows, by sketches, evaluated pairs or a device; sparse rows.

An engine is a function of its fields. What it builds on first use (prepared rows, sketches, trees) is cached without a
lock, and never changed afterwards: threads may share an engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import backend_of, cpu
from vicinal.neighbors.metrics import FittedMetric, Rows
from vicinal.neighbors.rows import HasRows, Preparation, csr_parts, is_safe
from vicinal.neighbors.table import Neighbors, SearchGraph
from vicinal.runtime.cached import cached

SKETCH_WIDTH = cpu.SKETCH_WIDTH  # columns of a sketch
ROWS_WITHOUT_BASIS = cpu.ROWS_WITHOUT_BASIS  # most rows that are compared without a basis for their sketches
MOST_BYTE_COLUMNS = cpu.MOST_BYTE_COLUMNS  # most columns of rows that are kept as bytes too
SPLIT_COLUMNS = cpu.SPLIT_COLUMNS  # columns of a sketch that trees split by
ONLINE_LEAF_ROWS = cpu.ONLINE_LEAF_ROWS  # most rows in a leaf of a growing tree
HEAP_PAD = cpu.HEAP_PAD  # rows of a heap, and short rows, are padded to a multiple of this


def sketch_sample_rows(n: int, d: int) -> int:
    """Return the number of rows that the basis of the sketches is fitted to."""
    most = max(cpu.SKETCH_SAMPLE_LEAST_ROWS, cpu.SKETCH_SAMPLE_FLOATS // d)
    return min(n, cpu.SKETCH_SAMPLE_MOST_ROWS, most)


Method = Literal["auto", "exact", "approximate"]

# All pairs of dense rows are compared if that is faster (docs/decisions/2026-11-exact-search.md): up to EXACT_ROWS rows
# always; for rows that are not longer than their sketch, if n * (d + 16) <= EXACT_WORK.
EXACT_ROWS, EXACT_WORK = 6_000, 3_000_000
# Long tables make the approximate search slow: for 91 columns and 10,000 images it takes 5.0 s of CPU, the exact search
# 2.4 s. The last columns of a long table have little weight, so beyond LONG_TABLE columns the search may be looser:
# for 70,000 images and 91 columns, recall 0.936 in 5.4 s of CPU instead of 0.971 in 9.2 s with one more round and 30
# spare neighbors; 0.98 of the nearest 30 are found. MNIST's digits lose 0.005, normal clusters nothing.
EXACT_ROWS_PER_NEIGHBOR, LONG_TABLE = 120, 48

# Evaluating a pair of dense rows (cpp/neighbors/pair_terms.hpp, a compiled function) costs more than comparing
# sketches, and a call of a Python function takes microseconds: half a million calls take seconds.
EXACT_EVALUATED_ROWS, EXACT_CALLED_ROWS = 4_000, 1_000

# Comparing all pairs of sparse rows costs an addition per pair of entries in the same column, and a check per pair of
# rows. Beyond EXACT_SPARSE_WORK the search of a row adds up SPARSE_BUDGET entries, those of the columns that the fewest
# rows store, and evaluates the best rows found.
EXACT_SPARSE_WORK, SPARSE_BUDGET, SPARSE_POOL = 1e10, 50_000, 128

# Spare neighbors make up for the inexact ranks of sketches. Long tables have enough neighbors that are near the end:
# for 70,000 images and 25 columns, 8 instead of 16 take 2.4 s instead of 2.9 s at a recall of 0.988 instead of 0.993.
ENOUGH_SOUGHT, LEAST_SPARE, MOST_SPARE = 31, 8, 16

FOREST_ROWS = 70_000

# The rounds of NN-descent do not show how much they found. So the neighbors of
# RECALL_SAMPLE rows are searched among all rows (3 % of the search time for 30,000 images). If the recall is below
# GOOD_RECALL, all pairs are compared if that takes at most EXACT_LATER multiplications; otherwise the search is
# repeated with more candidates, unless the data has no structure that a search can use.
RECALL_SAMPLE, GOOD_RECALL, EXACT_LATER = 24, 0.9, 4e11

# A query starts from the leaves of QUERY_TREES trees. One is enough for Fashion-MNIST images, but if clusters are far
# apart, it may lead to a wrong one: among 200 clusters in 128 dimensions, one tree finds 0.79 of the neighbors, two
# find 0.95.
QUERY_TREES = 2


@dataclass(frozen=True)
class SearchOptions:
    """Options of the approximate search of all rows.

    The defaults reach a recall of 0.985 on 70,000 images of 784 pixels in 0.55 of the time that pynndescent takes with
    its own defaults (benchmarks/RESULTS.md).

    Parameters
    ----------
    trees, leaf_rows : int
        Number of random projection trees, and the most rows per leaf.
    node_rows : int
        The rows of a node of at most this many rows are compared with each other.
    candidates : int
        New neighbors, and as many old ones, that a row introduces to each other per round.
    spare : int
        Neighbors that are searched beyond those asked for.
    rounds : int
        The most rounds of NN-descent per stage.
    coarse, fine, final, evaluated : float
        A stage ends when less than this fraction of the table changes in a round: the stage on sketches, on rows after
        sketches, on sketches that hold the whole row, and on evaluated pairs.
    structureless : float
        If the nearest row of a sample is on average farther than this fraction of the mean distance (both squared),
        rows are compared with the most central rows instead: 0.86 for normal noise in 500 dimensions, 0.33 for images.
    unordered_bytes : int
        Sketches, and rows as bytes, of more bytes in all are reordered by the leaves of a tree while they are searched.
        700,000 images (940 MB) take a tenth less time then; 70,000 (94 MB) 6 % less on two cores with 32 MB of cache,
        but 3 % more on 2 to 16 cores with 300 MB.
    """

    trees: int = 5
    leaf_rows: int = 96
    node_rows: int = 300
    candidates: int = 16
    spare: int = 16
    rounds: int = 12
    coarse: float = 0.55
    fine: float = 0.37
    final: float = 0.02
    structureless: float = 0.8
    evaluated: float = 0.1
    unordered_bytes: int = 1 << 28

    def for_rows(self, n: int) -> SearchOptions:
        """Add a tree per doubling of the rows beyond FOREST_ROWS.

        Without more trees, a larger data set needs one more round for the same recall. With two, 700,000 images take
        20.8 s instead of 18.8 s, at a recall of 0.967 instead of 0.963.
        """
        return replace(self, trees=self.trees + max(0, (n // FOREST_ROWS).bit_length() - 1))

    def for_table(self, k: int) -> SearchOptions:
        """Use fewer spare neighbors for longer tables, and fewer rounds for long ones."""
        options = replace(self, spare=min(self.spare, max(ENOUGH_SOUGHT - k, LEAST_SPARE)))
        return options if k <= LONG_TABLE else replace(options, coarse=0.8, fine=0.9, final=0.3)

    def harder(self) -> SearchOptions:
        """Use twice the candidates, three times the spare neighbors, and rounds until little changes."""
        more = replace(self, candidates=2 * self.candidates, spare=3 * self.spare)
        return replace(more, coarse=0.1, fine=0.05, final=self.final / 4, evaluated=0.02)


def check_method(method: Any) -> None:
    """Raise ValueError unless the value is a search method."""
    if method not in ("auto", "exact", "approximate"):
        raise ValueError(f"method must be 'auto', 'exact' or 'approximate', got {method!r}")


def compares_all_sketches(n: int, d: int, k: int) -> bool:
    """Tell whether all pairs of n dense rows are compared, for a metric that sketches can show."""
    short = d <= cpu.SKETCH_WIDTH and n * (d + 16) <= EXACT_WORK
    return n <= EXACT_ROWS or short or n <= EXACT_ROWS_PER_NEIGHBOR * k


def regular_rows(n: int, count: int) -> NDArray[np.int64]:
    """Return ``count`` of n rows at regular intervals."""
    return np.arange(count) * n // count


def recall_sample(n: int) -> NDArray[np.int64]:
    """Return the rows whose recall is measured after an approximate search."""
    return np.unique(regular_rows(n, RECALL_SAMPLE))


def can_repeat_exactly(n: int, d: int) -> bool:
    """Tell whether comparing all pairs is affordable after an approximate search failed."""
    return float(n) ** 2 * d <= EXACT_LATER


def nearest_points(points: ArrayLike, queries: ArrayLike, k: int, n_jobs: int = -1) -> Neighbors:
    """Find the k nearest points of every query by a k-d tree, which is fast for the few components of maps.

    The table is sorted by (distance, index). Distances are computed in double precision from coordinates in float32. If
    the queries are the points, each point is among its own neighbors, unless k or more points with lower numbers have
    the same coordinates.
    """
    points = np.ascontiguousarray(points, dtype=np.float32)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    return Neighbors(*cpu.PointTree(points, n_jobs).query(queries, k, n_jobs))


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
        forest = options.trees, options.leaf_rows, options.node_rows
        rounds = options.candidates, max(options.spare, min(k // 3, MOST_SPARE)), options.rounds
        ends = options.coarse, options.evaluated if self.metric.by_pairs else options.fine, options.final
        index, distance, share, structured = self._index_with_trees.search_approximate(
            k, *forest, *rounds, *ends, options.structureless, options.unordered_bytes, self.n_jobs
        )
        return self._table((index, distance), share), structured

    def query(
        self, prepared: NDArray[np.float32], k: int, pool: int, graph: SearchGraph | None = None, share: float = 1.0
    ) -> Neighbors:
        """Return the nearest rows of prepared rows: of all rows, or from the leaves of some trees along a graph."""
        likeness, pairs = self.preparation.likeness(prepared), self._pairs(prepared)
        if graph is None:
            no_edges = np.zeros(self.X.shape[0] + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
            return self._table(self._any_index.query(likeness, *no_edges, k, pool, 0, share, self.n_jobs, pairs))
        index, edges = self._index_with_trees, (graph.indptr, graph.indices)
        return self._table(index.query(likeness, *edges, k, pool, QUERY_TREES, share, self.n_jobs, pairs))

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
        if not metric.calls_python:
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
            return Neighbors.at(place, *found)
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

    def compares_all(self) -> bool:
        """Tell whether a search of all rows compares all pairs."""
        n, work = self.X.shape[0], self._index.additions + float(self.X.shape[0]) ** 2
        return n <= EXACT_EVALUATED_ROWS or (self.additive and work <= EXACT_SPARSE_WORK)

    def search(self, k: int, exact: bool) -> Neighbors:
        """Return the k nearest rows of every row."""
        return self._table(self._index.search(k, *self._effort(k, exact), self.n_jobs))

    def query(self, Q: Rows, largest: float, k: int, exact: bool) -> Neighbors:
        """Return the k nearest rows of other rows, whose largest magnitude is known."""
        prepared = csr_parts(self.preparation.rows(Q, largest))
        return self._table(self._index.query(*prepared, k, *self._effort(k, exact), self.n_jobs))

    def _effort(self, k: int, exact: bool) -> tuple[int, int]:
        """Return how many entries the search of a row adds up, 0 for all, and how many rows it evaluates."""
        return 0 if exact else SPARSE_BUDGET, max(SPARSE_POOL, 4 * k)
