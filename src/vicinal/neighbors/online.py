"""Nearest neighbours of rows that keep coming: bounded work a call, all lists kept up to date (survey, Algorithm 3)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import PRECOMPUTED, allows_nan, check_metric, fit_metric
from vicinal.neighbors.preparation import Preparation
from vicinal.neighbors.rows import as_rows, scan_rows
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.sharing import Guard

_EVERYTHING = np.iinfo(np.int64).max


class Changed(NamedTuple):
    """``new`` rows got their neighbours; the lists of ``updated``, earlier rows, changed. Ascending."""

    new: NDArray[np.int64]
    updated: NDArray[np.int64]


@dataclass(frozen=True)
class OnlineOptions:
    """How hard the search tries.

    ``spare`` entries are kept beyond those asked for; searches start from a leaf of each of ``trees``; a row is
    refreshed when ``ripe`` of its neighbours are new; up to ``few`` rows are all looked at.
    """

    spare: int = 6
    trees: int = 12
    ripe: int = 5
    few: int = 2048


def _require_number(name: str, value: Any, kind: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
        what = "a whole number" if kind is Integral else "a number"
        raise ValueError(f"{name} must be {what} of at least {least}, got {value!r}")


class OnlineNeighbors:
    """The ``k`` nearest rows of every row, itself counted, while rows are being inserted.

    ``insert`` only stores rows. ``step`` works: it searches the neighbours of new rows, in the order in which they
    came, puts them into the lists of earlier rows where they belong, and then refreshes rows of whose list much is
    new, by following those entries. The result depends on the calls and on ``n_ops``, not on ``n_jobs``;
    ``step(100); step(200)`` is ``step(300)``.

    What a metric needs to know about the data (``V``, ``VI``, means of missing values, the scale of extreme numbers) is
    taken from the rows of the first ``insert``. Rows are dense, and the metric is a name.
    """

    def __init__(
        self,
        k: int,
        metric: str = "euclidean",
        *,
        metric_kwds: dict[str, Any] | None = None,
        seed: int = 0,
        n_jobs: int = -1,
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
        self.n_jobs = n_jobs
        self.options = options or OnlineOptions()
        self._preparation: Preparation | None = None
        self._engine: cpu.OnlineNeighbors | None = None
        self._given: list[NDArray[np.float32]] = []
        self._working = Guard()

    @property
    def n(self) -> int:
        """Rows that were inserted."""
        return 0 if self._engine is None else self._engine.n

    @property
    def n_searched(self) -> int:
        """Rows that have their neighbours: the first ones."""
        return 0 if self._engine is None else self._engine.n_searched

    @property
    def pending_(self) -> int:
        """Rows that wait to be searched, and to be refreshed."""
        return 0 if self._engine is None else self._engine.pending

    @property
    def coverage_(self) -> float:
        """The share of the rows that wait for nothing."""
        return 1.0 - self.pending_ / self.n if self.n else 1.0

    @property
    def n_compared(self) -> int:
        """Sketches and rows that were compared so far: what the search has cost."""
        return 0 if self._engine is None else self._engine.compared

    @property
    def share(self) -> float:
        """Of a neighbour's rank, what its sketch shows (``NeighborIndex.share``)."""
        return 1.0 if self._engine is None else self._engine.share

    @property
    def rows(self) -> NDArray[np.float32]:
        """The rows as they were inserted, [n, columns]: a view that stays as it is, except where the metric had to
        transform them."""
        with self._working:
            if self._engine is None:
                raise ValueError("there are no rows yet")
            if not self._given:
                return self._engine.rows()
            if len(self._given) > 1:
                self._given = [np.concatenate(self._given)]
            return self._given[0]

    def insert(self, X: Any) -> range:
        """Stores rows, to be searched by ``step``; returns their numbers."""
        rows = self._checked(X, "X")
        with self._working:
            first = self.n
            if not rows.shape[0]:
                return range(first, first)
            if self._preparation is None or self._engine is None:
                metric = fit_metric(self.metric, self.metric_kwds, rows)
                metric.check_domain(rows)
                self._preparation, prepared = Preparation.of(metric, rows, self.n_jobs)
            else:
                self._preparation.metric.check_domain(rows)
                prepared = self._preparation.rows(rows)
            likeness = self._preparation.likeness(prepared)
            if self._engine is None:
                self._engine = self._new_engine(likeness.shape[1], prepared.shape[1])
            self._engine.insert(likeness, prepared, self.n_jobs)
            if prepared is not rows:
                self._given.append(rows.copy())
            return range(first, self._engine.n)

    @classmethod
    def from_neighbors(cls, X: Any, neighbors: Neighbors, metric: str = "euclidean", **more: Any) -> OnlineNeighbors:
        """Goes on from a search of all rows of ``X``: its ``k`` columns are taken, and nothing is pending."""
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
        """What a run goes on from, bit for bit (``from_state``): arrays and plain values by name."""
        with self._working:
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
    def from_state(cls, state: dict[str, Any], n_jobs: int = -1) -> OnlineNeighbors:
        """The neighbours that ``state()`` was asked of. ValueError if it is not such a state."""
        options = OnlineOptions(**state["options"])
        kwds = state["metric_kwds"]
        online = cls(state["k"], state["metric"], metric_kwds=kwds, seed=state["seed"], n_jobs=n_jobs, options=options)
        if "core" not in state:
            return online
        core, given = state["core"], state["given"]
        n = len(core["changes"])
        if n == 0:
            raise ValueError("the state is not one of these neighbours: it has no rows")
        columns, pair_columns = core["rows"].size // n, core["pair_rows"].size // n
        # What the metric found out about its first rows is taken as it was.
        keywords = state["keywords"]
        known = {name: value for name, value in keywords.items() if name != "mean"}
        row = np.zeros((1, given.shape[1] if given is not None else pair_columns or columns), dtype=np.float32)
        metric = replace(fit_metric(online.metric, known, row), keywords=keywords)
        online._preparation = Preparation(metric, float(state["scale"]), n_jobs)
        online._given = [] if given is None else [given]
        online._engine = online._new_engine(columns, pair_columns)
        online._engine.restore(core, n_jobs)
        return online

    def _new_engine(self, columns: int, pair_columns: int) -> cpu.OnlineNeighbors:
        preparation, o = self._preparation, self.options
        assert preparation is not None
        return cpu.OnlineNeighbors(
            columns,
            pair_columns if preparation.by_pairs else 0,
            preparation.metric.core,
            preparation.metric.power,
            self.seed,
            self.k,
            o.spare,
            o.trees,
            o.ripe,
            o.few,
        )

    def step(self, n_ops: int | None = None, budget_ms: float | None = None) -> Changed:
        """Works for ``n_ops`` operations (a row searched or refreshed each) or ``budget_ms`` milliseconds, whichever
        is over first; with neither, until nothing is pending."""
        if n_ops is not None:
            _require_number("n_ops", n_ops, Integral, 0)
        if budget_ms is not None:
            _require_number("budget_ms", budget_ms, Real, 0)
        with self._working:
            if self._engine is None:
                return Changed(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
            ops = _EVERYTHING if n_ops is None else int(n_ops)
            seconds = np.inf if budget_ms is None else float(budget_ms) / 1000.0
            first, last, updated = self._engine.step(ops, seconds, self.n_jobs)
            return Changed(np.arange(first, last, dtype=np.int64), updated)

    def table(self) -> Neighbors:
        """Of all rows that were searched; -1 and infinity where a row has fewer than ``k`` neighbours yet."""
        return Neighbors(*self.table_of(np.arange(self.n_searched)))

    def table_of(self, rows: Any) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """(index, distance) [len(rows), k] of some rows that were searched."""
        wanted = np.ascontiguousarray(rows, dtype=np.int64).reshape(-1)
        beyond = (wanted < 0) | (wanted >= self.n_searched)
        if beyond.any():
            raise ValueError(f"rows must lie between 0 and {self.n_searched - 1}, got {wanted[beyond][0]}")
        with self._working:
            if self._engine is None or self._preparation is None:
                return np.empty((0, self.k), dtype=np.int32), np.empty((0, self.k), dtype=np.float32)
            index, distance = self._engine.table(wanted)
            return index, self._preparation.distances(index, distance)

    def query(self, Q: Any, k: int | None = None) -> Neighbors:
        """The ``k`` nearest searched rows of unseen rows, each found independently of the others in ``Q``."""
        queries = self._checked(Q, "Q")
        k = self.k if k is None else k
        if not 1 <= k <= self.n_searched:
            raise ValueError(f"k must lie between 1 and the number of searched rows ({self.n_searched}), got {k}")
        with self._working:
            assert self._engine is not None
            assert self._preparation is not None
            self._preparation.metric.check_domain(queries)
            prepared = self._preparation.rows(queries)
            index, distance = self._engine.query(self._preparation.likeness(prepared), prepared, k, self.n_jobs)
            return Neighbors(index, self._preparation.distances(index, distance))

    def _checked(self, X: Any, name: str) -> NDArray[np.float32]:
        if hasattr(X, "tocsr"):
            raise TypeError(f"{name} must be dense: sparse rows are searched by find_neighbors only")
        rows: NDArray[np.float32] = as_rows(X)
        if rows.ndim != 2 or not rows.shape[1]:
            raise ValueError(f"{name} must be 2-D with at least one column, got shape {rows.shape}")
        if self._preparation is None:
            check_metric(self.metric, self.metric_kwds, rows.shape[1])
        elif rows.shape[1] != self._columns():
            raise ValueError(f"{name} must have the {self._columns()} columns of the first rows, got {rows.shape[1]}")
        _, bad = scan_rows(rows, self.n_jobs, allow_nan=allows_nan(self.metric))
        if bad >= 0:
            raise ValueError(f"{name} contains NaN or infinity, first in row {bad}")
        return rows

    def _columns(self) -> int:
        return int(self.rows.shape[1])
