"""Nearest neighbors of rows that arrive over time: bounded work per call, all lists kept up to date (Algorithm 3)."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import PRECOMPUTED, FittedMetric, allows_nan, check_metric, fit_metric, resolve_metric
from vicinal.neighbors.preparation import Preparation
from vicinal.neighbors.rows import as_rows, check_rows
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.jobs import resolve_n_jobs

_UNLIMITED = np.iinfo(np.int64).max
# Names that model files of version 0.1 use.
_OPTION_ALIASES = {"ripe": "refresh_after", "few": "exact_rows"}


class Changed(NamedTuple):
    """Row numbers in ascending order: ``new`` rows were searched, the lists of ``updated`` earlier rows changed."""

    new: NDArray[np.int64]
    updated: NDArray[np.int64]


@dataclass(frozen=True)
class OnlineOptions:
    """Options of the search of rows that arrive over time.

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

    spare: int = 6
    trees: int = 12
    refresh_after: int = 5
    exact_rows: int = 2048


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

    Quantities that a metric derives from the data (``V``, ``VI``, means for missing values, the scale of extreme
    numbers) are computed from the rows of the first ``insert``.

    Parameters
    ----------
    k : int
        Number of neighbors per row, the row itself included; at least 2.
    metric : str, default="euclidean"
        Name of a metric of dense rows.
    metric_kwds : dict or None, default=None
        Keywords of the metric.
    seed : int, default=0
        Seed of the search.
    n_jobs : int or None, default=-1
        Number of threads; -1 uses all processors, None means what it means in scikit-learn.
    options : OnlineOptions or None, default=None
        Options of the search.

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
        metric: str = "euclidean",
        *,
        metric_kwds: dict[str, Any] | None = None,
        seed: int = 0,
        n_jobs: int | None = -1,
        options: OnlineOptions | None = None,
    ) -> None:
        _require_number("k", k, Integral, 2)
        if not isinstance(metric, str) or metric == PRECOMPUTED:
            raise TypeError(f"metric must be the name of a metric of dense rows, got {metric!r}")
        check_metric(metric, metric_kwds)
        self.k = int(k)
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.seed = seed
        self.n_jobs = resolve_n_jobs(n_jobs)
        self.options = options or OnlineOptions()
        self._preparation: Preparation | None = None
        self._engine: cpu.OnlineNeighbors | None = None
        self._given: list[NDArray[np.float32]] = []
        self._lock = threading.RLock()

    @property
    def n(self) -> int:
        """Number of inserted rows."""
        return 0 if self._engine is None else self._engine.n

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
    def rows(self) -> NDArray[np.float32]:
        """The inserted rows, shape (n, d). Later insertions do not change the returned array."""
        with self._lock:
            if self._engine is None:
                raise ValueError("there are no rows yet")
            if not self._given:
                return self._engine.rows()
            if len(self._given) > 1:
                self._given = [np.concatenate(self._given)]
            return self._given[0]

    def insert(self, X: Any) -> range:
        """Store rows, to be searched by ``step``.

        Parameters
        ----------
        X : array-like, shape (m, d)
            The rows, which are copied.

        Returns
        -------
        range
            The numbers of the rows.
        """
        rows, largest = self._check(X, "X")
        with self._lock:
            first = self.n
            if not rows.shape[0]:
                return range(first, first)
            if self._preparation is None or self._engine is None:
                metric = fit_metric(self.metric, self.metric_kwds, rows)
                metric.check_domain(rows)
                self._preparation, prepared = Preparation.of(metric, rows, self.n_jobs, largest)
            else:
                self._preparation.metric.check_domain(rows)
                prepared = self._preparation.rows(rows, largest)
            likeness = self._preparation.likeness(prepared)
            if self._engine is None:
                self._engine = self._build_engine(likeness.shape[1], prepared.shape[1])
            self._engine.insert(likeness, prepared, self.n_jobs)
            if prepared is not rows:
                self._given.append(rows.copy())
            return range(first, self._engine.n)

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
        n = len(online.insert(X))
        if neighbors.n != n:
            raise ValueError(f"neighbors must be those of the {n} rows of X, got {neighbors.n} rows")
        if neighbors.index.min(initial=-1) < -1 or neighbors.index.max(initial=-1) >= n:
            raise ValueError(f"neighbors must name rows of X, 0 to {n - 1}, or -1")
        if online._engine is not None:
            online._engine.adopt(neighbors.index, online.n_jobs)
        return online

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
                return state
            keywords, scale = dict(self._preparation.metric.keywords), self._preparation.scale
            given = np.concatenate(self._given) if self._given else None
            return state | {"keywords": keywords, "scale": scale, "given": given, "core": self._engine.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_jobs: int | None = -1) -> OnlineNeighbors:
        """Restore the object whose ``state()`` this is; raise ValueError if it is not such a state."""
        options = OnlineOptions(**{_OPTION_ALIASES.get(name, name): value for name, value in state["options"].items()})
        kwds = state["metric_kwds"]
        online = cls(state["k"], state["metric"], metric_kwds=kwds, seed=state["seed"], n_jobs=n_jobs, options=options)
        if "core" not in state:
            return online
        core, given = state["core"], state["given"]
        n = len(core["changes"])
        if n == 0:
            raise ValueError("the state has no rows")
        columns, pair_columns = core["rows"].size // n, core["pair_rows"].size // n
        # Keywords that were computed from the first rows are restored as they were; "mean" is not a user's keyword.
        keywords = state["keywords"]
        known = {name: value for name, value in keywords.items() if name != "mean"}
        n_features = int(given.shape[1]) if given is not None else pair_columns or columns
        facts = resolve_metric(online.metric, known, n_features).facts
        online._preparation = Preparation(FittedMetric(facts, keywords), float(state["scale"]), online.n_jobs)
        online._given = [] if given is None else [given]
        online._engine = online._build_engine(columns, pair_columns)
        online._engine.restore(core, online.n_jobs)
        return online

    def _build_engine(self, columns: int, pair_columns: int) -> cpu.OnlineNeighbors:
        preparation, options = self._preparation, self.options
        assert preparation is not None
        return cpu.OnlineNeighbors(
            columns,
            pair_columns if preparation.metric.by_pairs else 0,
            preparation.metric.core,
            preparation.metric.power,
            self.seed,
            self.k,
            options.spare,
            options.trees,
            options.refresh_after,
            options.exact_rows,
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
            first, last, updated = self._engine.step(ops, seconds, self.n_jobs)
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
            index, distance = self._engine.query(self._preparation.likeness(prepared), prepared, k, self.n_jobs)
            return Neighbors(index, self._preparation.distances(index, distance))

    def _check(self, X: Any, name: str) -> tuple[NDArray[np.float32], float]:
        """Return the converted rows and their largest magnitude."""
        if hasattr(X, "tocsr"):
            raise TypeError(f"{name} must be dense: only find_neighbors and NeighborIndex accept sparse rows")
        rows: NDArray[np.float32] = as_rows(X)
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"{name} must be 2-D with at least one column, got shape {rows.shape}")
        if self._preparation is not None and rows.shape[1] != self._columns():
            raise ValueError(f"{name} must have the {self._columns()} columns of the first rows, got {rows.shape[1]}")
        return rows, check_rows(rows, self.n_jobs, allow_nan=allows_nan(self.metric), name=name)

    def _columns(self) -> int:
        return int(self.rows.shape[1])
