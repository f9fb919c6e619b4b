"""Nearest neighbours: of all rows (exact or approximate), and of unseen rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import ALIASES as ALIASES
from vicinal.neighbors.metrics import METRICS as METRICS
from vicinal.neighbors.metrics import Keywords, Rows, allows_nan, fit_metric, is_low_level, is_sparse
from vicinal.neighbors.preparation import Preparation
from vicinal.neighbors.rows import as_rows, csr_parts, scan_rows
from vicinal.neighbors.table import Neighbors as Neighbors
from vicinal.runtime.sharing import Guard

if TYPE_CHECKING:
    from vicinal.graph.graph import Graph

Method = Literal["auto", "exact", "approximate"]

# Every pair is compared while that is the faster way (measured, ARCHITECTURE.md): up to EXACT_ROWS always; for rows
# short enough that their sketch is the row itself, while n * (d + 16) <= EXACT_WORK.
EXACT_ROWS, EXACT_WORK, SKETCH_WIDTH = 6_000, 3_000_000, 128
# Long tables make the approximate search slow: 91 columns, 10,000 images, 2.4 s of CPU exact, 5.0 s approximate. And
# their last columns weigh little: beyond LONG_TABLE columns the search may be looser, 20,000 images, 91 columns, recall
# 0.974 in 6.9 s of CPU instead of 0.992 in 13.6 s.
EXACT_ROWS_PER_NEIGHBOR, LONG_TABLE = 120, 48

# A pair of dense rows that has to be evaluated (cpp/pair_terms.hpp, a compiled function) costs more, a call of a Python
# function much more: some microseconds, so that half a million of them take seconds.
EXACT_EVALUATED_ROWS, EXACT_CALLED_ROWS = 4_000, 1_000

# All pairs of sparse rows cost an addition for every pair of entries of a column, and a look at every pair of rows.
# Beyond that a row adds up SPARSE_BUDGET entries, of the columns that fewest rows store, and evaluates the best found.
EXACT_SPARSE_WORK, SPARSE_BUDGET, SPARSE_POOL = 1e10, 50_000, 128

FOREST_ROWS = 70_000

# Noise without structure defeats NN-descent, and how much it found cannot be seen from its rounds: so the neighbours of
# RECALL_SAMPLE rows are looked up among all rows (3 % of the search of 30,000 images). Below GOOD_RECALL every pair is
# compared if that is no more than EXACT_LATER multiplications, otherwise the search is repeated with more candidates.
RECALL_SAMPLE, GOOD_RECALL, EXACT_LATER = 24, 0.9, 4e11

# Trees whose leaves a search of unseen rows starts from: one finds 0.975 of the neighbours of Fashion-MNIST images,
# a second helps where clusters are far apart.
QUERY_TREES = 2


@dataclass(frozen=True)
class SearchOptions:
    """How hard the approximate search tries.

    The defaults reach a recall of 0.973 on 70,000 images of 784 pixels in 3/4 of the time that pynndescent takes with
    its own defaults, and in half of what it takes as umap-learn calls it (benchmarks/RESULTS.md); ``fine=0.1`` buys
    0.985 for a third more time.
    """

    trees: int = 8
    leaf_rows: int = 96
    candidates: int = 16
    spare: int = 16
    rounds: int = 12
    coarse: float = 0.55
    fine: float = 0.37
    final: float = 0.02
    evaluated: float = 0.1

    def for_rows(self, n: int) -> SearchOptions:
        """Two more trees for every doubling of the rows beyond FOREST_ROWS: a tree costs a tenth of a round, and
        without them the rows of a larger set would need a round more."""
        return replace(self, trees=self.trees + 2 * max(0, (n // FOREST_ROWS).bit_length() - 1))

    def looser(self) -> SearchOptions:
        """Fewer candidates and fewer rounds, for long tables."""
        return replace(self, candidates=10, fine=0.9, final=0.3)

    def harder(self) -> SearchOptions:
        """Twice the candidates, three times the spare neighbours, and rounds until little changes."""
        more = replace(self, candidates=2 * self.candidates, spare=3 * self.spare)
        return replace(more, coarse=0.1, fine=0.05, final=self.final / 4, evaluated=0.02)


class NeighborIndex:
    """Rows made searchable. A function of (rows, metric, seed) alone: it is rebuilt, not stored, when pickled.

    ``X`` is C-contiguous float32 or CSR of float32 with ascending columns (``row_content.as_rows``). ``metric`` is a
    name, a Python function f(x, y, **metric_kwds) of two float32 rows, or a scipy.LowLevelCallable with one of the
    signatures ``double (float *x, float *y, int n, void *user_data)``, the same with ``double *``, either without
    ``user_data``. It is called without the GIL, from several threads; a Python function from one.

    A function is only ever asked for a bounded number of pairs: all of them up to ``EXACT_CALLED_ROWS`` rows (Python)
    or ``EXACT_EVALUATED_ROWS`` (compiled), beyond that those that NN-descent proposes, starting from euclidean
    neighbours and a few random rows. Of two rows the one that comes first in ``X`` is the first argument.

    ``largest`` is the largest magnitude in ``X`` where that is known (``row_content.scan_rows``), to save a look.
    """

    def __init__(
        self,
        X: Rows,
        metric: Any = "euclidean",
        *,
        metric_kwds: Any = None,
        seed: int = 0,
        n_jobs: int = -1,
        options: SearchOptions | None = None,
        largest: float | None = None,
    ) -> None:
        self.X = X
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.seed = seed
        self.options = options or SearchOptions().for_rows(X.shape[0])
        self._metric = fit_metric(metric, metric_kwds, X)
        self._metric.check_domain(X)
        self._calls_python = self._metric.function is not None and not is_low_level(metric)
        self.n_jobs = 1 if self._calls_python else n_jobs
        self.share = 1.0
        self._largest = largest if self._metric.facts.prepare is None else None
        self._preparation: Preparation | None = None
        self._forget()
        self._building = Guard()

    def _forget(self) -> None:
        self._prepared: Rows | None = None
        self._engine: cpu.NeighborIndex | None = None
        self._sparse: cpu.SparseIndex | None = None
        self._has_forest = False

    def __getstate__(self) -> dict[str, Any]:
        made = ("_building", "_prepared", "_engine", "_sparse", "_has_forest")
        return {key: value for key, value in self.__dict__.items() if key not in made}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()
        self._building = Guard()

    def search(self, k: int, method: Method = "auto") -> Neighbors:
        """The ``k`` nearest rows of every row, itself counted."""
        n = self.X.shape[0]
        if not 1 <= k <= n:
            raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({n}), got {k}")
        exact = method == "exact" or (method == "auto" and self.is_cheap(k)) or k < 2 or n <= self.options.leaf_rows
        if is_sparse(self.X):
            budget = 0 if exact else SPARSE_BUDGET
            return self._table(self._listed().search(k, budget, max(SPARSE_POOL, 4 * k), self.n_jobs))
        if exact:
            return self._search_exact(k)
        found = self._search_approximate(k, self.options if k <= LONG_TABLE else self.options.looser())
        if self._calls_python or self._sampled_recall(found) >= GOOD_RECALL:
            return found
        if float(n) ** 2 * self.X.shape[1] <= EXACT_LATER and method == "auto":
            return self._search_exact(k)
        return self._search_approximate(k, self.options.harder())

    def _search_exact(self, k: int) -> Neighbors:
        return self._table(self._built().search_exact(k, self.n_jobs))

    def _search_approximate(self, k: int, o: SearchOptions) -> Neighbors:
        index, distance, self.share = self._built(forest=True).search_approximate(
            k,
            o.trees,
            o.leaf_rows,
            o.candidates,
            max(o.spare, k // 3),
            o.rounds,
            o.coarse,
            o.evaluated if self._by_pairs() else o.fine,
            o.final,
            self.n_jobs,
        )
        return self._table((index, distance))

    def _sampled_recall(self, found: Neighbors) -> float:
        """The share of true neighbours that a table has, by looking at all rows for a few of them."""
        n, k = found.n, found.k
        sample = np.unique(np.arange(RECALL_SAMPLE) * n // RECALL_SAMPLE)
        rows = np.ascontiguousarray(self._rows()[sample])
        nothing = np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int32)
        core, likeness, pairs = self._built(), self.preparation.likeness(rows), self._pairs(rows)
        _, distance = core.query(likeness, *nothing, k, k, 0, 1.0, self.n_jobs, pairs)
        # A row that ties with the last true neighbour is as good; so is one whose rank was rounded otherwise.
        last = self._table((np.zeros_like(distance, dtype=np.int32), distance)).distance[:, -1:]
        return float(np.mean(found.distance[sample, 1:] <= last * 1.0001))

    def query(self, Q: Rows, k: int, graph: Graph) -> Neighbors:
        """The ``k`` nearest rows of unseen rows, each found independently of the others in ``Q``.

        ``graph`` is the neighbour graph of the rows, along which the search proceeds.
        """
        if Q.shape[1] != self.X.shape[1]:
            raise ValueError(f"queries must have the {self.X.shape[1]} columns of the rows, got {Q.shape[1]}")
        self._metric.check_domain(Q)
        if is_sparse(Q) != is_sparse(self.X):
            raise TypeError("queries must be sparse if the rows of the index are, and dense if they are dense")
        queries = self.preparation.rows(Q)
        n = self.X.shape[0]
        if is_sparse(Q):
            listed = self._listed()
            budget = 0 if listed.additive or n <= EXACT_EVALUATED_ROWS else SPARSE_BUDGET
            return self._table(listed.query(*csr_parts(queries), k, budget, max(SPARSE_POOL, 4 * k), self.n_jobs))
        core = self._built(forest=n > self._exact_rows())
        found = core.query(
            self.preparation.likeness(queries),
            graph.indptr,
            graph.indices,
            k,
            min(k + max(k // 5, 3), n),
            QUERY_TREES,
            self.share,
            self.n_jobs,
            self._pairs(queries),
        )
        return self._table(found)

    @property
    def keywords(self) -> Keywords:
        """Of the metric: those that were given, and those that follow from the data."""
        return self._metric.keywords

    def _exact_rows(self) -> int:
        """Rows up to which every pair is looked at whatever their width."""
        if self._calls_python:
            return EXACT_CALLED_ROWS
        return EXACT_EVALUATED_ROWS if self._by_pairs() else EXACT_ROWS

    def is_cheap(self, k: int) -> bool:
        """Whether comparing every pair is the faster way to ``k`` neighbours."""
        n, d = self.X.shape
        if is_sparse(self.X):
            listed = self._listed()
            work = listed.additions + float(n) ** 2
            return n <= EXACT_EVALUATED_ROWS or (listed.additive and work <= EXACT_SPARSE_WORK)
        return n <= self._exact_rows() if self._by_pairs() else compares_all(n, d, k)

    def _by_pairs(self) -> bool:
        """Whether ranks are known by evaluation only, not by sketches of the rows."""
        return Preparation(self._metric).by_pairs

    def _rows(self) -> Rows:
        """The rows as the core compares them. They are held while they differ from ``X``."""
        if self._prepared is None:
            self._preparation, self._prepared = Preparation.of(self._metric, self.X, self.n_jobs, self._largest)
        return self._prepared

    @property
    def preparation(self) -> Preparation:
        """How rows are prepared to be compared with those of the index."""
        if self._preparation is None:
            self._rows()
        assert self._preparation is not None
        return self._preparation

    def _built(self, forest: bool = False) -> cpu.NeighborIndex:
        """The core's index, made when it is first needed, by one thread only; with a forest if asked for."""
        with self._building:
            if self._engine is None:
                rows = self._rows()
                self._engine = cpu.NeighborIndex(
                    self.preparation.likeness(rows), self._metric.core, self.seed, self.n_jobs, self._pairs(rows)
                )
            if forest and not self._has_forest:
                self._engine.grow_forest(self.options.trees, self.options.leaf_rows, self.n_jobs)
                self._has_forest = True
            return self._engine

    def _listed(self) -> cpu.SparseIndex:
        """The core's index of sparse rows, listed by column."""
        with self._building:
            if self._sparse is None:
                parts = csr_parts(self._rows())
                self._sparse = cpu.SparseIndex(*parts, self._metric.core, self._metric.power, self.n_jobs)
            return self._sparse

    def _pairs(self, rows: Rows) -> cpu.PairMetric | None:
        """Ranks of ``rows`` with the rows of the index, where they have to be evaluated."""
        metric = self._metric
        if not self._by_pairs():
            return None
        if metric.function is None:
            return cpu.DensePairs(rows, self._rows(), metric.core, metric.power)
        if is_low_level(metric.function):
            return cpu.ForeignPairs(rows, self._rows(), metric.function)
        function: Callable[..., float] = partial(metric.function, **metric.keywords)
        return cpu.PythonPairs(list(rows), list(self._rows()), function)

    def _table(self, found: tuple[NDArray[np.int32], NDArray[np.float32]]) -> Neighbors:
        return Neighbors(found[0], self.preparation.distances(*found))


def compares_all(n: int, d: int, k: int) -> bool:
    """Whether every pair of dense rows is compared, where sketches could tell of neighbours."""
    short = d <= SKETCH_WIDTH and n * (d + 16) <= EXACT_WORK
    return n <= EXACT_ROWS or short or n <= EXACT_ROWS_PER_NEIGHBOR * k


def find_neighbors(
    X: Any,
    n_neighbors: int = 15,
    *,
    metric: Any = "euclidean",
    metric_kwds: dict[str, Any] | None = None,
    method: Method = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Neighbors:
    """The ``n_neighbors`` nearest rows of every row of ``X`` (dense or sparse), itself first.

    ``method='auto'`` compares every pair when that is the faster way. The result has the same bits for any
    ``n_jobs``.
    """
    rows = as_rows(X)
    if rows.ndim != 2:
        raise ValueError(f"X must be 2-D, got {rows.ndim} dimensions")
    if method not in ("auto", "exact", "approximate"):
        raise ValueError(f"method must be 'auto', 'exact' or 'approximate', got {method!r}")
    largest, bad = scan_rows(rows, n_jobs, allow_nan=allows_nan(metric))
    if bad >= 0:
        raise ValueError(f"X contains NaN or infinity, first in row {bad}")
    index = NeighborIndex(rows, metric, metric_kwds=metric_kwds, seed=seed, n_jobs=n_jobs, largest=largest)
    return index.search(n_neighbors, method)


def __getattr__(name: str) -> Any:
    if name != "OnlineNeighbors":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from vicinal.neighbors.online import OnlineNeighbors

    return OnlineNeighbors
