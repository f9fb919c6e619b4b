"""Nearest neighbors of rows that arrive over time: bounded work per call, all lists kept up to date (Algorithm 3)."""

from __future__ import annotations

import threading
from dataclasses import asdict, astuple, dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import (
    PRECOMPUTED,
    FittedMetric,
    Rows,
    allows_nan,
    check_metric,
    fit_metric,
    is_low_level,
    is_sparse,
    resolve_metric,
    widened,
)
from vicinal.neighbors.rows import Preparation, as_rows, check_rows, csr_parts
from vicinal.neighbors.search import EXACT_CALLED_ROWS
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.cached import GrowingArray
from vicinal.runtime.inputs import resolve_n_jobs

# SciPy's functions want row pointers and columns of the same type.
MOST_STORED = np.iinfo(np.int32).max
# Sparse rows wider than a sketch are sketched by sums of their values: each column is added to COPIES of the sums,
# with signs, which keeps squared distances on average.
COPIES, BLOCK_ROWS = 4, 4096


class GivenDense:
    """Dense rows as they were given."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._values = GrowingArray(np.empty((0, columns), np.float32))

    def first(self, n: int) -> NDArray[np.float32]:
        """Return the first ``n`` rows, which cannot be written to. Later insertions do not change them."""
        rows = self._values.view[:n]
        rows.flags.writeable = False
        return rows

    def append(self, rows: Rows) -> None:
        self._values.append(rows)

    def truncate(self, n: int) -> None:
        self._values.truncate(n)

    def taken(self, rows: NDArray[np.int32]) -> GivenDense:
        """Return a copy of some rows."""
        taken = GivenDense(self._columns)
        taken.append(self._values.view[rows])
        return taken


class GivenSparse:
    """Sparse rows as they were given."""

    def __init__(self, columns: int) -> None:
        self._columns = columns
        self._values, self._indices = GrowingArray(np.empty(0, np.float32)), GrowingArray(np.empty(0, np.int32))
        self._ends = GrowingArray(np.zeros(1, np.int32))

    def first(self, n: int) -> Rows:
        """Return the first ``n`` rows as a CSR matrix, whose arrays cannot be written to."""
        from scipy.sparse import csr_matrix

        ends = self._ends.view[: n + 1]
        parts = self._values.view[: ends[-1]], self._indices.view[: ends[-1]], ends
        for part in parts:
            part.flags.writeable = False
        rows = csr_matrix(parts, shape=(n, self._columns), copy=False)
        rows.has_canonical_format = True  # as_rows made them so; SciPy would look at all of them again
        return rows

    def append(self, rows: Rows) -> None:
        last = int(self._ends.view[-1])
        if last + int(rows.indptr[-1]) > MOST_STORED:
            raise ValueError(f"sparse rows must have at most {MOST_STORED} stored values in all")
        self._values.append(rows.data)
        self._indices.append(rows.indices)
        self._ends.append(last + rows.indptr[1:])

    def truncate(self, n: int) -> None:
        self._ends.truncate(n + 1)
        for column in (self._values, self._indices):
            column.truncate(int(self._ends.view[-1]))

    def taken(self, rows: NDArray[np.int32]) -> GivenSparse:
        """Return a copy of some rows."""
        taken = GivenSparse(self._columns)
        taken.append(self.first(len(self._ends) - 1)[rows])
        return taken


class StreamPairs:
    """Ranks of pairs that the core computes from the rows that it holds: there is nothing to store."""

    def append(self, prepared: Rows) -> None:
        """Add prepared rows."""

    def truncate(self, n: int) -> None:
        """Remove all rows from row ``n`` on."""

    def taken(self, rows: NDArray[np.int32]) -> StreamPairs:
        """Return the same for some of the rows."""
        return self

    def ranks(self, queries: Rows | None = None) -> cpu.PairMetric | None:
        """Return the ranks of prepared queries, or else of the rows, and the rows; None if the core knows them."""
        return None


class CalledPairs(StreamPairs):
    """Distances by a Python function. It is called with copies of the rows, because it may write into them."""

    def __init__(self, metric: FittedMetric) -> None:
        self._metric = metric
        self._function = partial(metric.function, **metric.keywords)
        self._rows: list[NDArray[np.float32]] = []

    def append(self, prepared: Rows) -> None:
        self._rows.extend(prepared.copy())

    def truncate(self, n: int) -> None:
        del self._rows[n:]

    def taken(self, rows: NDArray[np.int32]) -> CalledPairs:
        taken = CalledPairs(self._metric)
        taken._rows = [self._rows[row] for row in rows.tolist()]
        return taken

    def ranks(self, queries: Rows | None = None) -> cpu.PairMetric:
        heads = self._rows if queries is None else list(queries.copy())
        return cpu.PythonPairs(heads, self._rows, self._function)


class CompiledPairs(GivenDense, StreamPairs):
    """Distances by a compiled function, of rows that are stored as they were given."""

    def __init__(self, metric: FittedMetric, columns: int) -> None:
        super().__init__(columns)
        self._metric, self._function = metric, metric.function

    def taken(self, rows: NDArray[np.int32]) -> CompiledPairs:
        taken = CompiledPairs(self._metric, self._columns)
        taken.append(self._values.view[rows])
        return taken

    def ranks(self, queries: Rows | None = None) -> cpu.PairMetric:
        rows = self.first(MOST_STORED)
        return cpu.ForeignPairs(rows if queries is None else queries, rows, self._function)


class SparsePairs(StreamPairs):
    """Distances of sparse rows."""

    def __init__(self, metric: FittedMetric, columns: int) -> None:
        self._metric, self._columns = metric, columns
        self._rows = cpu.GrowingSparseRows(columns, metric.core)

    def append(self, prepared: Rows) -> None:
        self._rows.append(*csr_parts(prepared))

    def truncate(self, n: int) -> None:
        self._rows.truncate(n)

    def taken(self, rows: NDArray[np.int32]) -> SparsePairs:
        taken = SparsePairs(self._metric, self._columns)
        taken._rows = self._rows.taken(rows)
        return taken

    def ranks(self, queries: Rows | None = None) -> cpu.PairMetric:
        heads = self._rows
        if queries is not None:
            heads = cpu.GrowingSparseRows(self._columns, self._metric.core)
            heads.append(*csr_parts(queries))
        return cpu.SparsePairs(heads, self._rows, self._metric.power)


def stream_pairs(metric: FittedMetric, columns: int, sparse: bool) -> StreamPairs:
    """Return how pairs of rows that arrive over time are ranked."""
    if sparse:
        return SparsePairs(metric, columns)
    if metric.function is None:
        return StreamPairs()
    return CalledPairs(metric) if metric.calls_python else CompiledPairs(metric, columns)


def sparse_likeness(metric: FittedMetric, prepared: Rows) -> NDArray[np.float32]:
    """Return short dense rows whose euclidean neighbors are likely neighbors of the sparse ones.

    A row depends on its own values only, and has at most the width of a sketch.
    """
    rows = metric.likeness(prepared)
    blocks = [
        _summed_columns(rows[begin : begin + BLOCK_ROWS]) for begin in range(0, max(rows.shape[0], 1), BLOCK_ROWS)
    ]
    short: NDArray[np.float64] = np.concatenate(blocks)
    if metric.core in ("cosine", "correlation", "hellinger"):
        length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1), dtype=np.float64)).reshape(-1, 1)
        short = short / np.where(length > 0, length, 1.0)
    return np.ascontiguousarray(short, dtype=np.float32)


def _summed_columns(rows: Rows) -> NDArray[np.float64]:
    n, width = rows.shape[0], cpu.SKETCH_WIDTH
    if rows.shape[1] <= width:
        return np.asarray(rows.toarray(), dtype=np.float64)
    at = np.repeat(np.arange(n), np.diff(rows.indptr)) * width
    sums = np.zeros(n * width)
    for copy in range(COPIES):
        mixed = _mixed(rows.indices.astype(np.uint64) * np.uint64(COPIES) + np.uint64(copy))
        sign = 1.0 - 2.0 * (mixed >> np.uint64(63)).astype(np.float64)
        bucket = (mixed % np.uint64(width)).astype(np.int64)
        sums += np.bincount(at + bucket, weights=sign * rows.data, minlength=n * width)
    short: NDArray[np.float64] = (sums / np.sqrt(COPIES)).reshape(n, width)
    return short


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return random-looking 64-bit numbers, a function of the numbers (the finalizer of splitmix64)."""
    return cpu.mix64(numbers * np.uint64(0x9E3779B97F4A7C15))


MOST_ROWS = 2**31 - 1  # row numbers are 32-bit
_UNLIMITED = np.iinfo(np.int64).max


class Changed(NamedTuple):
    """Row numbers in ascending order: ``new`` rows were searched, the lists of ``updated`` earlier rows changed."""

    new: NDArray[np.int64]
    updated: NDArray[np.int64]


@dataclass(frozen=True)
class OnlineOptions:
    """Options of the search of rows that arrive over time, in the order in which the core takes them.

    Parameters
    ----------
    spare : int
        Entries per list that are kept beyond those asked for.
    trees : int
        Number of trees; a search starts from one leaf of each.
    refresh_after : int
        A row is refreshed when this many of its neighbors are new.
    exact_rows : int
        Up to this many rows, a search compares with all of them.
    """

    # Trees cost less than spare entries and refreshes (docs/decisions/2026-11-streams.md).
    spare: int = 2
    trees: int = 18
    refresh_after: int = 15
    exact_rows: int = 2048

    @classmethod
    def of(cls, metric: Any) -> OnlineOptions:
        """Return the options for a metric: calls of a Python function take most of the time of a search."""
        is_called = callable(metric) and not is_low_level(metric)
        return cls(6, 4, 5, EXACT_CALLED_ROWS) if is_called else cls()


def _require_number(name: str, value: Any, kind: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
        what = "a whole number" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} of at least {least}, got {value!r}")


class OnlineNeighbors:
    """Keep the k nearest rows of every row while rows are inserted.

    ``insert`` only stores rows. ``step`` does the work: it searches the neighbors of new rows in the order of their
    arrival, adds them to the lists of earlier rows, and then refreshes rows whose lists have many new entries, by
    following these entries. The result depends on the calls and on ``n_ops``, not on ``n_jobs``;
    ``step(100); step(200)`` equals ``step(300)``.

    ``forget`` removes rows. The rows that stay are numbered from 0 again, in the same order: tables, ``query`` and
    ``step`` use these numbers, and ``ids`` holds the lasting number of each row, by its arrival. Neither the object nor
    its ``state()`` keeps any value of a forgotten row, except for what it contributed to sums over many rows: the
    principal axes of the sketches and the quantities below.

    Quantities that a metric derives from the data (``V``, ``VI``, means for missing values, the scale of extreme
    numbers) are computed from the rows of the first ``insert``, which are dense or sparse as all later ones must be.

    If ``insert`` is interrupted or fails, no row is added. If ``step`` is, the operations that were complete are kept,
    and the next ``step`` continues and reports what the other would have reported.

    Parameters
    ----------
    k : int
        Number of neighbors per row, the row itself included; at least 2.
    metric : str, callable or scipy.LowLevelCallable, default="euclidean"
        As for ``NeighborIndex``. Sparse rows need the name of a metric of sparse rows.
    metric_kwds : dict or None, default=None
        Keywords of the metric.
    seed : int, default=0
        Seed of the search.
    n_jobs : int or None, default=-1
        Number of threads; -1 uses all processors, None means what it means in scikit-learn.
    options : OnlineOptions or None, default=None
        Options of the search.

    See Also
    --------
    NeighborIndex, ProgressiveUMAP

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal import OnlineNeighbors
    >>> online = OnlineNeighbors(3)
    >>> online.insert(np.random.default_rng(0).normal(size=(100, 4)))
    range(0, 100)
    >>> len(online.step().new)
    100
    >>> online.table().index.shape
    (100, 3)
    """

    def __init__(
        self,
        k: int,
        metric: Any = "euclidean",
        *,
        metric_kwds: dict[str, Any] | None = None,
        seed: int = 0,
        n_jobs: int | None = -1,
        options: OnlineOptions | None = None,
    ) -> None:
        _require_number("k", k, Integral, 2)
        if k > MOST_ROWS:
            raise ValueError(f"k must be at most {MOST_ROWS}, got {k}")
        if isinstance(metric, str) and metric == PRECOMPUTED:
            raise ValueError(f"metric must compare rows, got {metric!r}: distances to later rows are not known")
        check_metric(metric, metric_kwds)
        self.k = int(k)
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.seed = seed
        # A Python function is called by one thread.
        self.n_jobs = 1 if callable(metric) and not is_low_level(metric) else resolve_n_jobs(n_jobs)
        self.options = options or OnlineOptions.of(metric)
        self._sparse = False
        self._preparation: Preparation | None = None
        self._engine: cpu.OnlineNeighbors | None = None
        self._given: GivenDense | GivenSparse | None = None  # None: they are the rows of the engine
        self._pairs = StreamPairs()
        self._ids = GrowingArray(np.empty(0, np.int64))
        self._n_ever = 0
        self._lock = threading.RLock()

    @property
    def n(self) -> int:
        """Number of rows: those inserted and not forgotten."""
        return 0 if self._engine is None else self._engine.n

    @property
    def n_ever(self) -> int:
        """Number of rows inserted so far, forgotten ones included."""
        return self._n_ever

    @property
    def ids(self) -> NDArray[np.int64]:
        """The lasting numbers of the present rows, ascending: row ``i`` was the ``ids[i]``-th to arrive, from 0."""
        return self._ids.view[: self.n].copy()

    @property
    def n_searched(self) -> int:
        """Number of rows that have their neighbors: the first ``n_searched`` rows."""
        return 0 if self._engine is None else self._engine.n_searched

    @property
    def pending_(self) -> int:
        """Number of rows that are still to be searched or refreshed."""
        return 0 if self._engine is None else self._engine.pending

    @property
    def coverage_(self) -> float:
        """Fraction of the rows that are neither to be searched nor refreshed."""
        return 1.0 - self.pending_ / self.n if self.n else 1.0

    @property
    def n_compared(self) -> int:
        """Number of comparisons of sketches and rows so far: the cost of the search."""
        return 0 if self._engine is None else self._engine.compared

    @property
    def share(self) -> float:
        """Average fraction of a neighbor's rank that its sketch shows (``Neighbors.share``)."""
        return 1.0 if self._engine is None else self._engine.share

    @property
    def rows(self) -> Rows:
        """The present rows, shape (n, d), a CSR matrix if they are sparse. Later calls do not change it."""
        with self._lock:
            if self._engine is None:
                raise ValueError("there are no rows yet")
            return self._engine.rows() if self._given is None else self._given.first(self.n)

    def reserve(self, n_new: int) -> None:
        """Allocate memory for ``n_new`` more rows. While someone reads the present ones, growing would copy them."""
        with self._lock:
            if self._engine is not None:
                self._engine.reserve(self.n + n_new)

    def insert(self, X: Any) -> range:
        """Store rows, to be searched by ``step``.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (m, d)
            The rows, which are copied.

        Returns
        -------
        range
            The lasting numbers of the rows (``ids``).
        """
        return self.insert_checked(*self._check(X, "X"))

    def insert_checked(self, rows: Rows, largest: float) -> range:
        """Store rows that ``as_rows`` converted and ``check_rows`` accepted, which returned ``largest``."""
        with self._lock:
            first = self._n_ever
            if not rows.shape[0]:
                return range(first, first)
            if not self.n or self._preparation is None:
                metric = fit_metric(self.metric, self.metric_kwds, rows)
                metric.check_domain(rows)
                preparation, prepared = Preparation.of(metric, rows, self.n_jobs, largest)
                self._start(preparation, rows.shape[1], is_sparse(rows), kept=prepared is rows)
            else:
                self._preparation.metric.check_domain(rows)
                prepared = self._preparation.rows(rows, largest)
            self._ids.truncate(self.n)
            self._ids.append(np.arange(first, first + rows.shape[0]))
            self._store(rows, prepared)
            self._n_ever = first + rows.shape[0]
            return range(first, self._n_ever)

    def forget(self, ids: Any) -> NDArray[np.int64]:
        """Remove rows.

        The lists of the other rows lose them, and are filled again by the next calls of ``step``: about as many
        operations as there are rows that list a forgotten one. The call itself compares no rows; it moves in memory
        what stays.

        Parameters
        ----------
        ids : array-like of int
            Lasting numbers (``ids``) of present rows, in any order.

        Returns
        -------
        array of int64
            The rows whose lists changed, by their present numbers, in ascending order.
        """
        with self._lock:
            gone = self.rows_of(ids)
            stay = np.delete(np.arange(self.n, dtype=np.int32), gone)
            if self._engine is None or not len(gone):
                return np.empty(0, np.int64)
            kept_ids = self._ids.taken(stay)
            if not len(stay):
                self._engine, self._preparation, self._given, self._pairs = None, None, None, StreamPairs()
                self._ids = kept_ids
                return np.empty(0, np.int64)
            given, pairs = None if self._given is None else self._given.taken(stay), self._pairs.taken(stay)
            changed = self._engine.keep(stay, self.n_jobs, self._pairs.ranks())
            self._given, self._pairs, self._ids = given, pairs, kept_ids
            return changed

    def rows_of(self, ids: Any) -> NDArray[np.int64]:
        """Return the numbers of the rows with these lasting numbers, or raise, naming one that is not there."""
        wanted = np.asarray(ids)
        if not wanted.size:
            return np.empty(0, np.int64)
        if wanted.dtype.kind not in "iu" or wanted.ndim > 1:
            raise TypeError(f"ids must be whole numbers, got an array of {wanted.dtype} of shape {wanted.shape}")
        wanted, known = np.unique(wanted), self._ids.view[: self.n]
        at = np.searchsorted(known, wanted)
        missing = np.append(known, -1)[at] != wanted
        if missing.any():
            raise ValueError(f"ids must name present rows, and there is no row {wanted[missing][0]}")
        return at

    def _start(self, preparation: Preparation, columns: int, sparse: bool, *, kept: bool) -> None:
        """Set how rows are prepared, stored and ranked; ``kept`` if the engine keeps the rows as they are given."""
        self._preparation, self._sparse, self._engine = preparation, sparse, None
        self._pairs = stream_pairs(preparation.metric, columns, sparse)
        self._given = GivenSparse(columns) if sparse else None if kept else GivenDense(columns)

    def _store(self, rows: Rows, prepared: Rows) -> None:
        """Add rows to the stores, then to the engine, whose number of rows is the one that counts."""
        n, likeness = self.n, self._likeness(prepared)
        if self._engine is None:
            self._engine = self._build_engine(likeness.shape[1], prepared.shape[1])
        if self._given is None and prepared is not rows:
            # Rows of a later batch are out of the range of the first ones, and were clipped.
            self._given = GivenDense(rows.shape[1])
            self._given.append(self._engine.rows())
        if self._given is not None:
            self._given.truncate(n)
            self._given.append(rows)
        self._pairs.truncate(n)
        self._pairs.append(prepared)
        self._engine.insert(likeness, likeness if self._sparse else prepared, self.n_jobs)

    def _likeness(self, prepared: Rows) -> NDArray[np.float32]:
        assert self._preparation is not None
        if self._sparse:
            return sparse_likeness(self._preparation.metric, prepared)
        likeness: NDArray[np.float32] = widened(self._preparation.likeness(prepared))
        return likeness

    @classmethod
    def from_neighbors(cls, X: Any, neighbors: Neighbors, metric: str = "euclidean", **more: Any) -> OnlineNeighbors:
        """Continue from the neighbor table of all rows of X.

        Parameters
        ----------
        X : array-like, shape (n, d)
            The rows.
        neighbors : Neighbors
            Their table; its number of columns becomes ``k``.
        metric : str, default="euclidean"
            The metric of the table.
        **more
            Further arguments of the constructor.

        Returns
        -------
        OnlineNeighbors
            With all rows searched and nothing pending.
        """
        online = cls(neighbors.k, metric, **more)
        online.insert(X)
        online.adopt(neighbors)
        return online

    def adopt(self, neighbors: Neighbors) -> None:
        """Take the neighbors of all rows, none of which was searched, from a table. Distances are computed again."""
        n = self.n
        if neighbors.n != n:
            raise ValueError(f"neighbors must be those of the {n} rows of X, got {neighbors.n} rows")
        if neighbors.index.min(initial=-1) < -1 or neighbors.index.max(initial=-1) >= n:
            raise ValueError(f"neighbors must name rows of X, 0 to {n - 1}, or -1")
        with self._lock:
            if self._engine is not None:
                self._engine.adopt(neighbors.index, self.n_jobs, self._pairs.ranks())

    def state(self) -> dict[str, Any]:
        """Return everything that ``from_state`` needs to continue with the same bits: arrays and plain values."""
        with self._lock:
            state: dict[str, Any] = {
                "k": self.k,
                "metric": self.metric,
                "metric_kwds": self.metric_kwds,
                "seed": self.seed,
                "options": asdict(self.options),
            }
            if self._engine is None or self._preparation is None:
                return state | ({"n_ever": self._n_ever} if self._n_ever else {})
            keywords, scale = dict(self._preparation.metric.keywords), self._preparation.scale
            given = None if self._given is None else self._given.first(self.n)
            if self._n_ever > self.n:
                state |= {"ids": self.ids, "n_ever": self._n_ever}
            return state | {"keywords": keywords, "scale": scale, "given": given, "core": self._engine.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_jobs: int | None = -1) -> OnlineNeighbors:
        """Restore the object whose ``state()`` this is; raise ValueError if it is not such a state."""
        options = OnlineOptions(**state["options"])
        kwds = state["metric_kwds"]
        online = cls(state["k"], state["metric"], metric_kwds=kwds, seed=state["seed"], n_jobs=n_jobs, options=options)
        online._n_ever = int(state.get("n_ever", 0))
        if "core" not in state:
            return online
        core, given = state["core"], state["given"]
        n = len(core["changes"])
        if n == 0:
            raise ValueError("the state has no rows")
        online._restore_ids(state.get("ids"), n)
        if given is not None:
            given = as_rows(given)
            if given.ndim != 2 or given.shape[0] != n:
                raise ValueError(f"the state must hold {n} given rows, got shape {given.shape}")
        columns, pair_columns = core["rows"].size // n, core["pair_rows"].size // n
        n_features = int(given.shape[1]) if given is not None else pair_columns or columns
        # Keywords that were computed from the first rows are restored as they were; "mean" is not a user's keyword.
        keywords, sparse = state["keywords"], is_sparse(given)
        known = {name: value for name, value in keywords.items() if name != "mean"}
        resolved = resolve_metric(online.metric, known, n_features, sparse)
        metric = replace(resolved, keywords=keywords)
        preparation = Preparation(metric, float(state["scale"]), online.n_jobs)
        online._start(preparation, n_features, sparse, kept=given is None)
        if online._given is not None:
            online._given.append(given)
        online._engine = online._build_engine(columns, pair_columns)
        online._engine.restore(core, online.n_jobs)
        if sparse or metric.function is not None:
            online._pairs.append(online._engine.rows() if given is None else preparation.rows(given))
        return online

    def _restore_ids(self, ids: Any, n: int) -> None:
        if ids is None:
            ids, self._n_ever = np.arange(n), n
        if not isinstance(ids, np.ndarray) or ids.dtype != np.int64 or ids.shape != (n,):
            raise ValueError(f"ids must hold {n} whole numbers")
        if not (np.diff(ids, prepend=-1) > 0).all() or ids[-1] >= self._n_ever:
            raise ValueError(f"ids must ascend from 0 and be less than {self._n_ever}")
        self._ids = GrowingArray(ids)

    def _build_engine(self, columns: int, pair_columns: int) -> cpu.OnlineNeighbors:
        assert self._preparation is not None
        metric = self._preparation.metric
        # Sparse rows and functions are ranked outside of the engine.
        ranked = metric.by_pairs and metric.function is None and not self._sparse
        core = "function" if self._sparse else metric.core, metric.power
        return cpu.OnlineNeighbors(
            columns, pair_columns if ranked else 0, *core, self.seed, self.k, *astuple(self.options)
        )

    def step(self, n_ops: int | None = None, budget_ms: float | None = None) -> Changed:
        """Search and refresh rows, within a budget.

        Parameters
        ----------
        n_ops : int or None, default=None
            The most operations; searching or refreshing one row is one operation. None sets no limit.
        budget_ms : float or None, default=None
            The most milliseconds. None sets no limit.

        Returns
        -------
        Changed
            The rows that were searched, and the earlier rows whose lists changed.
        """
        if n_ops is not None:
            _require_number("n_ops", n_ops, Integral, 0)
        if budget_ms is not None:
            _require_number("budget_ms", budget_ms, Real, 0)
        with self._lock:
            if self._engine is None:
                return Changed(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
            ops = _UNLIMITED if n_ops is None else int(n_ops)
            seconds = np.inf if budget_ms is None else float(budget_ms) / 1000.0
            first, last, updated = self._engine.step(ops, seconds, self.n_jobs, self._pairs.ranks())
            return Changed(np.arange(first, last, dtype=np.int64), updated)

    def table(self) -> Neighbors:
        """Return the table of all searched rows; -1 and infinity if a row has fewer than k neighbors so far."""
        return Neighbors(*self.table_of(np.arange(self.n_searched)), self.share)

    def table_of(self, rows: Any) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return (index, distance), each of shape (len(rows), k), of some searched rows."""
        wanted = np.ascontiguousarray(rows, dtype=np.int64).reshape(-1)
        outside = (wanted < 0) | (wanted >= self.n_searched)
        if outside.any():
            raise ValueError(f"rows must lie between 0 and {self.n_searched - 1}, got {wanted[outside][0]}")
        with self._lock:
            if self._engine is None or self._preparation is None:
                return np.empty((0, self.k), dtype=np.int32), np.empty((0, self.k), dtype=np.float32)
            index, distance = self._engine.table(wanted)
            return index, self._preparation.distances(index, distance)

    def query(self, Q: Any, k: int | None = None) -> Neighbors:
        """Find the k nearest searched rows of unseen rows, each independently of the others in Q.

        Parameters
        ----------
        Q : array-like, shape (m, d)
            The unseen rows.
        k : int or None, default=None
            Number of neighbors; None means the ``k`` of the table.

        Returns
        -------
        Neighbors
            A table of m rows.
        """
        queries, largest = self._check(Q, "Q")
        k = self.k if k is None else k
        if not 1 <= k <= self.n_searched:
            raise ValueError(f"k must lie between 1 and the number of searched rows ({self.n_searched}), got {k}")
        with self._lock:
            assert self._engine is not None
            assert self._preparation is not None
            self._preparation.metric.check_domain(queries)
            prepared = self._preparation.rows(queries, largest)
            likeness, pairs = self._likeness(prepared), self._pairs.ranks(prepared)
            pair_rows = likeness if self._sparse else prepared  # those of sparse rows are ignored
            index, distance = self._engine.query(likeness, pair_rows, k, self.n_jobs, pairs)
            return Neighbors(index, self._preparation.distances(index, distance))

    def _check(self, X: Any, name: str) -> tuple[Rows, float]:
        """Return the converted rows and their largest magnitude."""
        rows = as_rows(X)
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"{name} must be 2-D with at least one column, got shape {rows.shape}")
        if self.n and is_sparse(rows) != self._sparse:
            raise TypeError(f"{name} must be {'sparse' if self._sparse else 'dense'} like the first rows")
        if self.n and rows.shape[1] != self.rows.shape[1]:
            raise ValueError(
                f"{name} must have the {self.rows.shape[1]} columns of the first rows, got {rows.shape[1]}"
            )
        return rows, check_rows(rows, self.n_jobs, finite="allow-nan" if allows_nan(self.metric) else True, name=name)
