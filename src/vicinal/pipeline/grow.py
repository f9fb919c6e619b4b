"""Uses of a growing map that leave it as it is: placing other rows in it, and taking it as the result of a fit."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import aligned_to
from vicinal.initialize.start import INITIALIZERS, initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.sampled import PartialLayout
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.online import OnlineNeighbors, OnlineOptions
from vicinal.neighbors.training_data import TrainingRows, recognize
from vicinal.pipeline import online_graph as rules
from vicinal.pipeline.fitted import FitReport, FittedMap
from vicinal.pipeline.online_graph import (
    FIRST_EPOCHS,
    FULL_EPOCHS,
    TARGET_METRICS,
    WHOLE_EPOCHS,
    Batch,
    Growth,
    OnlineGraph,
)
from vicinal.pipeline.place import are_elsewhere, places_near_neighbors
from vicinal.pipeline.recipe import Reference, RowFacts
from vicinal.runtime.cached import GrowingArray
from vicinal.runtime.constraints import LEARNING_RATE, NEGATIVES, Interval, StrOptions
from vicinal.runtime.interruption import deferred_interrupts
from vicinal.runtime.progress import LAYOUT, Progress


@dataclass(frozen=True, eq=False)
class Step:
    """The progress of a map after some work, and which rows it placed and moved, as Algorithm 3 returns them.

    Attributes
    ----------
    n_rows, n_placed : int
        Rows inserted, and rows with a place in the map.
    pending : int
        Rows waiting for neighbors, for a refresh of them, or for epochs.
    coverage : float
        Share of the rows whose neighbors are known and up to date.
    moved : int
        Rows that moved for a turn.
    stage : str
        The last stage that was worked on: "neighbors", "layout", or "idle" if there was nothing to do.
    new_rows, moved_rows : array of int64
        Numbers of the rows that got their first place, and of all rows whose places may have changed, the new ones
        included, in ascending order. Their places are ``embedding_[moved_rows]``; all other rows are where they were
        before the step.
    """

    n_rows: int
    n_placed: int
    pending: int
    coverage: float
    moved: int
    stage: str
    new_rows: NDArray[np.int64]
    moved_rows: NDArray[np.int64]


def reporter(grown: GrowingMap, progress: Progress) -> Callable[[str], bool]:
    """Return a function that reports a stage of the map and returns whether to stop."""

    def report(stage: str) -> bool:
        if stage == NEIGHBORS:
            return progress.report(stage, grown.search.n_searched, grown.search.n, lambda: grown.embedding)
        return progress.report(stage, grown.round * TURN, last_epoch(grown), lambda: grown.embedding)

    return report


def last_epoch(grown: GrowingMap) -> int:
    """Return how many epochs the map will have run when all rows are at rest."""
    return grown.round * TURN + int(grown.left.view.max(initial=0))


# Row numbers and epochs are 32-bit integers in the core.
_INT32 = float(np.iinfo(np.int32).max)
# Epochs and comparisons are counted in 64 bits. Far below the limit, so that sums and products do not overflow.
_COUNTER = 2.0**52
# Trees and spare entries are allocated per row; the defaults are 12 and 6.
_PER_ROW = 1024


def _integer(low: float, high: float) -> Interval:
    return Interval(Integral, low, high, closed="both")


_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="both")
_SEED = _integer(0, 2.0**63)

_GROWTH = {
    "a": _POSITIVE,
    "b": _POSITIVE,
    "n_components": _integer(1, _INT32),
    "init": StrOptions(INITIALIZERS),
    "learning_rate": LEARNING_RATE,
    "negative_sample_rate": NEGATIVES,
    "repulsion_strength": _NOT_NEGATIVE,
    "local_connectivity": _NOT_NEGATIVE,
    "set_op_mix_ratio": _SHARE,
    "target_weight": _SHARE,
    "new_epochs": _integer(0, _INT32),
    "updated_epochs": _integer(0, _INT32),
    "seed": _SEED,
    "n_jobs": _integer(-_INT32, _INT32),
    "target_metric": StrOptions(set(TARGET_METRICS)),
}
ADDED = {"target_metric"}
_SEARCH = {"k": _integer(2, _INT32), "seed": _SEED}
_OPTIONS = {
    "spare": _integer(0, _PER_ROW),
    "trees": _integer(1, _PER_ROW),
    "refresh_after": _integer(1, _INT32),
    "exact_rows": _integer(0, _INT32),
    # The names of the last two in files of version 0.1.
    "ripe": _integer(1, _INT32),
    "few": _integer(0, _INT32),
}
_CORE = {
    "queue_head": _integer(0, _INT32),
    "chunk_kind": _integer(0, 2),
    "searched": _integer(0, _INT32),
    "merged": _integer(0, _INT32),
    "sketched": _integer(0, _INT32),
    "reported": _integer(0, _INT32),
    "fitted_rows": _integer(0, _INT32),
    "share_rows": _integer(0, _INT32),
    "compared": _integer(0, _COUNTER),
    "share": Interval(Real, 0, None, closed="left"),
}


def check_numbers(state: Mapping[str, Any]) -> None:
    """Raise ValueError if a number of a growing map's state is outside of the range that the core accepts."""
    growth, search = state["growth"], state["search"]
    known = {field.name for field in fields(Growth)}
    # Files of version 0.1 do not have the parameters that have been added since.
    if not known - ADDED <= set(growth) <= known or not isinstance(growth["move_all"], bool):
        raise ValueError("the state of a growing map has other parameters")
    _check("growth", {**{name: Growth.__dataclass_fields__[name].default for name in ADDED}, **growth}, _GROWTH)
    if growth["disconnection_distance"] is not None:
        _check("growth", growth, {"disconnection_distance": _POSITIVE})
    _check("search", search, _SEARCH)
    options = search["options"]
    if not set(options) <= set(_OPTIONS) or len(options) != len(fields(OnlineOptions)):
        raise ValueError("the state of a growing map has other search options")
    _check("search.options", options, {name: _OPTIONS[name] for name in options})
    if "core" in search:
        _check("search", search, {"scale": _POSITIVE})
        _check("search.core", search["core"], _CORE)
    _check_clock(state["clock"], len(state["places"]))
    _check_lists(state["index"], state["membership"], search["k"])


def _check_clock(clock: Any, n_placed: int) -> None:
    names = ("founders", "round", "cursor")
    if not isinstance(clock, list | tuple) or len(clock) != len(names):
        raise ValueError(f"clock must hold {', '.join(names)}, got {clock!r}")
    allowed = {"founders": _integer(0, n_placed), "round": _integer(0, _COUNTER), "cursor": _integer(0, n_placed)}
    _check("clock", dict(zip(names, clock, strict=True)), allowed)


def _check_lists(index: Any, membership: Any, k: int) -> None:
    for name, lists, dtype in (("index", index, np.int32), ("membership", membership, np.float32)):
        if not isinstance(lists, np.ndarray) or lists.dtype != dtype or lists.ndim != 2 or lists.shape[1] != k:
            raise ValueError(f"{name} must be a table of {k} {np.dtype(dtype)} numbers per row")
    if len(index) != len(membership):
        raise ValueError(f"index and membership must have the same rows, got {len(index)} and {len(membership)}")


def _check(where: str, values: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    for name, constraint in allowed.items():
        if not constraint.allows(values[name]):
            raise ValueError(f"{where}.{name} must be {constraint}, got {values[name]!r}")


# Share of the rows with changed neighbors that move. The list of a row changes a dozen times while a map grows tenfold,
# each time a little, and all rows move when the map has doubled. Fashion-MNIST, 6 seeds: the last map of a stream has
# an accuracy of 0.776 with any share from 0 to 0.1.
MOVED_SHARE = 0.03
# Rows move for TURN epochs at a time, at most SLICE of them together: 150 ms on two cores. The rest of the map does not
# move meanwhile, so small slices cost quality: accuracy 0.760 after 60 epochs of all rows of Fashion-MNIST in slices of
# 8,192, 0.773 together.
TURN, SLICE = 6, 65_536
# The layouts of this many slices, which hold the edges of their rows, are kept for the next round.
MOST_LAYOUTS = 4
# Initial estimate of seconds per row and turn, and the fewest rows that are worth a turn.
SECONDS_PER_ROW, LEAST_ROWS = 5e-6, 256
# Share of a step's time that goes to the search, if there are rows to move and if there are none. Computing the edges
# of the rows found takes time as well.
SEARCH_SHARE, FIRST_SHARE = 0.5, 0.8
# Rows are added without a snapshot if the map has this many times as many, and it should take at most so many seconds.
SNAPSHOT_RATIO, SHORT_SECONDS = 50, 0.5

NEIGHBORS = "neighbors"
COLUMNS = ("places", "age", "left")
Report = Callable[[str], bool]


def _go_on(stage: str) -> bool:
    return False


class GrowingMap:
    """Rows, their neighbors and graph, and the places of those that are in the map."""

    def __init__(self, search: OnlineNeighbors, growth: Growth) -> None:
        self.search, self.growth = search, growth
        self.graph = OnlineGraph(search, growth)
        self.places = GrowingArray(np.empty((0, growth.n_components), np.float32))
        self.age, self.left = GrowingArray(np.empty(0, np.int32)), GrowingArray(np.empty(0, np.int32))  # epochs
        self.init_used = ""
        self.founders = 0  # rows of the first map
        self.round = self.cursor = 0  # turns of all moving rows so far, and the next row to move
        self._moved: list[NDArray[np.int32]] | None = None  # rows that moved, while someone records them
        self._seconds_per_row = SECONDS_PER_ROW
        self._placed_rows: TrainingRows | None = None
        self._layouts: dict[int, PartialLayout] = {}

    @property
    def n_placed(self) -> int:
        return len(self.places)

    @property
    def embedding(self) -> NDArray[np.float32]:
        """A copy of the places; equal rows have the same one."""
        shared: NDArray[np.float32] = self.places.view[self.graph.first.view[: self.n_placed]]
        return shared

    @property
    def n_moving(self) -> int:
        """Number of rows with epochs left."""
        return int(np.count_nonzero(self.left.view))

    @property
    def pending(self) -> int:
        """Number of rows waiting for neighbors, for a refresh of them, for a place or for epochs."""
        unplaced = self.search.n_searched - self.n_placed if self.founders or self._start_is_due() else 0
        return int(self.search.pending_) + unplaced + self.n_moving

    def add(self, batch: Batch, report: Report | None = None) -> None:
        """Insert rows and do the work that follows, completely or not at all.

        In general the map is rolled back to a snapshot if anything is raised meanwhile, by an interrupt or by
        ``report``. A snapshot takes time proportional to the number of rows. So if the map is large, the work short
        and there is no ``report``, interrupts wait until the call is complete instead. If such a call runs out of
        memory, the map is damaged, and says so whenever it is used.
        """
        if report is None and self._is_short(batch.rows.shape[0]):
            with deferred_interrupts():
                self.insert(batch)
                try:
                    self.advance()
                except BaseException as error:
                    self.__dict__ = {"_damage": f"{type(error).__name__}: {error}"}
                    raise
            return
        self.search.reserve(batch.rows.shape[0])
        snapshot = self.state()
        try:
            self.insert(batch)
            self.advance(report=report or _go_on)
        except BaseException:
            self.__dict__ = {"_snapshot": snapshot}
            raise

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Restore the snapshot after a rollback, when the map is next used: an interrupt must not wait for it."""
            if "_damage" in self.__dict__:
                raise RuntimeError(f"this map was damaged when a call failed: {self.__dict__['_damage']}")
            if "_snapshot" not in self.__dict__:
                raise AttributeError(f"GrowingMap has no attribute {name!r}")
            self.__dict__ = vars(GrowingMap.from_state(self.__dict__["_snapshot"]))
            return getattr(self, name)

    def _is_short(self, n_new: int) -> bool:
        """Return whether adding ``n_new`` rows takes little time, and a snapshot would be a large part of it."""
        # A function of the user may raise anything, and then the map must be what it was.
        if not isinstance(self.search.metric, str):
            return False
        if n_new * SNAPSHOT_RATIO >= self.n_placed or self.founders < rules.FOUNDERS:
            return False
        if rules.has_doubled(self.n_placed, self.n_placed + n_new):
            return False
        # A new row changes the neighbors of about k others.
        turns = self._turns_left() + n_new * (self.search.k + self.growth.new_epochs // TURN + 1)
        turns += self.n_placed if self.growth.move_all else 0
        searches = n_new + self.search.pending_
        return searches * self.graph.seconds_per_search + turns * self._seconds_per_row <= SHORT_SECONDS

    def insert(self, batch: Batch) -> None:
        """Queue rows."""
        self.graph.insert(batch)

    def find(self, n_ops: int | None = None, budget_ms: float | None = None) -> None:
        """Find and refresh neighbors, compute the edges that follow, and place the rows that have no place."""
        self.graph.search(n_ops, budget_ms)
        self._connect()
        if self._start_is_due():
            self._start()
        elif self.founders:
            self._place_new()

    def complete(self) -> None:
        """Compute the edges and places that an interrupted call left undone."""
        self._connect()
        if self.founders:
            self._place_new()

    def move(self, most: int = SLICE) -> int:
        """Move the next rows that have epochs left, at most ``most``, for a turn, and return how many moved.

        If these are all the moving rows and few, they move for several turns, each of which counts.
        """
        begin = time.perf_counter()
        left = self.left.view
        rows = np.flatnonzero(left[self.cursor :])[: max(most, 1)].astype(np.int32) + np.int32(self.cursor)
        if not rows.size:
            if not self.cursor:
                return 0
            self.cursor, self.round = 0, self.round + 1
            return self.move(most)
        turns = 1
        if len(rows) == self.n_moving:
            turns = max(1, min(int(left[rows].min()) // TURN, most // len(rows)))
        with deferred_interrupts():
            layout = self._layout(rows)
            layout.step(turns * TURN)
            left[rows] = np.maximum(left[rows] - turns * TURN, 0)
            if not self.n_moving:
                self._layouts.clear()
            elif len(self._layouts) < MOST_LAYOUTS:
                self._layouts[int(rows[0])] = layout
            self.age.view[rows] += turns * TURN
            self._note_moved(rows)
            self.cursor, self.round = int(rows[-1]) + 1, self.round + turns - 1
        moved = turns * len(rows)
        self._seconds_per_row = (time.perf_counter() - begin) / max(moved, LEAST_ROWS)
        return moved

    def _layout(self, rows: NDArray[np.int32]) -> PartialLayout:
        """Return the layout that moved these rows in the last round if nothing has changed since, or make one."""
        growth, ages, epoch = self.growth, FULL_EPOCHS - self.left.view[rows], self.round * TURN
        last = self._layouts.pop(int(rows[0]), None)
        if last is not None:
            goes_on = last.first_epoch + last.epoch == epoch and np.array_equal(last.heads, rows)
            if goes_on and np.array_equal(last.ages + last.epoch, ages):
                last.attach(self.places.view)
                return last
        return PartialLayout(
            self.graph.edges(rows),
            self.places.view,
            rows,
            growth.kernel,
            growth.schedule(self.n_placed),
            ages=ages,
            first_epoch=epoch,
            seed=growth.seed,
            n_jobs=growth.n_jobs,
        )

    def advance(self, n_ops: int | None = None, budget_ms: float | None = None, report: Report = _go_on) -> int:
        """Do a bounded amount of work, first the search, then epochs, and return how many rows moved.

        At most ``n_ops`` rows are searched or refreshed, and at most as many move for a turn. Without a bound, all
        pending rows are searched, and every row with epochs left moves for all of them. ``report`` is told which stage
        was done, and returns whether to stop.
        """
        stop = None if budget_ms is None else time.perf_counter() + budget_ms / 1e3
        self.complete()
        if self.search.pending_ or self._start_is_due():
            share = SEARCH_SHARE if self.n_moving else FIRST_SHARE
            self.find(n_ops, None if budget_ms is None else share * budget_ms)
            if report(NEIGHBORS):
                return 0
        if stop is not None:
            return self._move_until(stop, report)
        return self._move_rows(self._turns_left() if n_ops is None else n_ops, report)

    def _move_rows(self, most: int, report: Report) -> int:
        moved = 0
        while moved < most:
            rows = self.move(min(SLICE, most - moved))
            moved += rows
            if not rows or report(LAYOUT):
                break
        return moved

    def _move_until(self, stop: float, report: Report) -> int:
        """Move as many rows at a time as should be done by ``stop``, judging by the last ones."""
        moved = 0
        while True:
            now = time.perf_counter()
            most = int((stop - now) / self._seconds_per_row)
            if most < LEAST_ROWS and (moved or now >= stop):
                return moved
            rows = self.move(min(SLICE, max(most, LEAST_ROWS)))
            moved += rows
            if not rows or report(LAYOUT):
                return moved

    def advance_and_record(
        self, n_ops: int | None, budget_ms: float | None, report: Report
    ) -> tuple[int, NDArray[np.int64]]:
        """Do the same as ``advance``. Return also the rows whose places may have changed, in ascending order."""
        self._moved, known = [], self.n_placed
        try:
            n_moved = self.advance(n_ops, budget_ms, report)
            moved = np.unique(np.concatenate([np.empty(0, np.int64), *self._moved]))
        finally:
            self._moved = None
        if moved.size and self.graph.n_equal:  # a row that equals an earlier one is where that one is
            is_moved = np.zeros(self.n_placed, dtype=bool)
            is_moved[moved] = True
            is_moved = is_moved[self.graph.first.view[: self.n_placed]]
            is_moved[known:] = True
            moved = np.flatnonzero(is_moved)
        return n_moved, moved

    def _note_moved(self, rows: NDArray[np.int32]) -> None:
        if self._moved is not None:
            self._moved.append(rows)

    def _turns_left(self) -> int:
        left = self.left.view[np.flatnonzero(self.left.view)]
        return int(-(-left // TURN).sum())

    def wake(self, n_epochs: int) -> None:
        """Give every row at least ``n_epochs`` epochs, along its present edges."""
        self._compute_stale()
        self._give_epochs(slice(None), n_epochs)

    def _give_epochs(self, rows: Any, n_epochs: int) -> None:
        self.left.view[rows] = np.maximum(self.left.view[rows], n_epochs)

    def whole_graph(self) -> Graph:
        self.complete()
        return self.graph.whole()

    def placed_rows(self) -> TrainingRows:
        """Return the rows that have places, for looking up rows by content."""
        if self._placed_rows is None or self._placed_rows.n != self.n_placed:
            search = self.search
            rows = search.rows[: self.n_placed]
            self._placed_rows = TrainingRows(rows, search.metric, search.metric_kwds, search.seed, self.growth.n_jobs)
        return self._placed_rows

    def state(self) -> dict[str, Any]:
        """Return everything that the map depends on, as arrays and plain values."""
        self.complete()
        return {
            "growth": asdict(self.growth),
            "init_used": self.init_used,
            "clock": [self.founders, self.round, self.cursor],
            **self.graph.state(),
            **{name: getattr(self, name).view.copy() for name in COLUMNS},
        }

    @property
    def bytes_per_row(self) -> float:
        """Memory per row: its content, neighbors, edges and place, and the list of rows that list it."""
        listed = self.graph.n * self.search.k * np.dtype(np.int32).itemsize
        return (_bytes_of(self.state()) + listed) / max(self.search.n, 1)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> GrowingMap:
        """Rebuild the map that returned ``state``; it continues bit for bit. Raise ValueError if this is impossible."""
        check_numbers(state)
        growth = Growth(**state["growth"])
        graph = OnlineGraph.from_state(state, growth)
        grown = cls(graph.neighbors, growth)
        grown.graph = graph
        grown.init_used = state["init_used"]
        grown.founders, grown.round, grown.cursor = state["clock"]
        for name in COLUMNS:
            setattr(grown, name, getattr(grown, name).replaced(name, state[name]))
        grown.check()
        return grown

    def check(self) -> None:
        """Raise ValueError if the parts of the map contradict each other."""
        self.graph.check()
        placed = self.n_placed
        if placed not in (0, self.graph.n) or not len(self.age) == len(self.left) == placed:
            raise ValueError("a growing map has other places than rows with edges")
        if (placed > 0) != (self.founders > 0) or self.founders > placed or self.cursor < 0:
            raise ValueError("a growing map has places without a first map, or the reverse")
        if not np.isfinite(self.places.view).all() or self.left.view.min(initial=0) < 0:
            raise ValueError("a growing map has places that are not finite, or negative epochs")

    def _connect(self) -> None:
        """Update the graph after a search; some of the rows with changed neighbors get some epochs."""
        graph, growth, n = self.graph, self.growth, self.search.n_searched
        moving = graph.changed()
        if n == graph.n and not moving.size:
            return
        shared = growth.shared_epochs(n - graph.n, n)
        if not shared:
            moving = moving[np.random.default_rng([growth.seed, n]).random(len(moving)) < MOVED_SHARE]
        everything = bool(shared) or not self.founders or growth.move_all or rules.has_doubled(self.n_placed, n)
        change = graph.changes(graph.all_stale() if everything else moving)
        with deferred_interrupts():
            if change is None:
                graph.note_changed()
                return
            self._layouts.clear()
            graph.apply(change)
            self._give_epochs(moving[moving < self.n_placed], max(growth.updated_epochs, shared))

    def _compute_stale(self) -> None:
        """Compute the lists of all rows whose neighbors are newer."""
        if (change := self.graph.changes(self.graph.all_stale())) is not None:
            with deferred_interrupts():
                self._layouts.clear()
                self.graph.apply(change)

    def _start_is_due(self) -> bool:
        """Return whether all rows are to start as in a fit: the first map is to be made, or made again."""
        n, known = self.search.n_searched, self.n_placed
        if rules.first_map_is_due(self.founders, n, self.search.n):
            return True
        is_large = self.founders > 0 and rules.may_start_anew(n - known, n)
        return is_large and are_elsewhere(self.search.table_of(np.arange(known, n))[0], known)

    def _start(self) -> None:
        """Give all rows a starting place as a fit does. If there was a map, the places are aligned to it."""
        n, growth = self.graph.n, self.growth
        rows = self.search.rows
        coordinates = None if is_sparse(rows) else rows[:n]
        task = InitialTask(self.graph.whole(), coordinates, growth.n_components, growth.seed, growth.n_jobs)
        places, init_used = initial_embedding(growth.init, task)
        if self.founders:
            known = np.arange(self.n_placed)
            places = aligned_to(places, known, self.places.view, scaled=False).astype(np.float32)
        self._reserve_places(n)
        with deferred_interrupts():
            self._append(places[self.n_placed :])
            self.places.view[:] = places
            self.founders, self.init_used = n, init_used
            self._note_moved(np.arange(n, dtype=np.int32))
            self._give_epochs(slice(None), FIRST_EPOCHS)

    def _place_new(self) -> None:
        """Give the rows without a place a starting place near their neighbors."""
        known, n = self.n_placed, self.graph.n
        if known == n:
            return
        whole = rules.has_doubled(known, n)
        rng = np.random.default_rng([self.growth.seed, known])
        index = self.search.table_of(np.arange(known, n))[0]
        places = places_near_neighbors(index, self.places.view, rng, self.growth.gap)
        self._reserve_places(n)
        with deferred_interrupts():
            self._append(places)
            self._note_moved(np.arange(known, n, dtype=np.int32))
            if whole:
                self._give_epochs(slice(None), WHOLE_EPOCHS)
            elif self.growth.move_all:
                self._give_epochs(slice(None), self.growth.updated_epochs)

    def _reserve_places(self, n: int) -> None:
        for column in (self.places, self.age, self.left):
            column.reserve(n)

    def _append(self, places: NDArray[np.float32]) -> None:
        shared = self.growth.shared_epochs(len(places), self.search.n_searched)
        self.places.append(places)
        self.age.append(np.zeros(len(places), np.int32))
        self.left.append(np.full(len(places), max(self.growth.new_epochs, shared), np.int32))


def _bytes_of(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_bytes_of(item) for item in value.values())
    if is_sparse(value):
        return _bytes_of({"data": value.data, "indices": value.indices, "indptr": value.indptr})
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0


def place_in(grown: GrowingMap, rows: Rows, placement_seed: int) -> NDArray[np.float32]:
    """Return the places of rows in the map as it is; rows of the map have their own."""
    grown.complete()
    places, n_jobs = grown.embedding, grown.growth.n_jobs
    known, keys = recognize(grown.placed_rows(), rows)
    found: NDArray[np.float32] = places[np.maximum(known, 0)]
    new = np.flatnonzero(known < 0)
    if new.size:
        plan, affinity = grown.growth.plan(placement_seed), grown.growth.affinity(grown.search.k)
        neighbors = grown.search.query(rows[new], affinity.query_columns(len(places)))
        graph = affinity.graph_to_known(neighbors, len(places), n_jobs)
        found[new] = plan.place(graph, Reference(places), keys[new], n_jobs=n_jobs)
    return found


def as_fitted(grown: GrowingMap, placement_seed: int) -> FittedMap:
    """Return the rows placed so far as the result of a fit, which shares nothing with the growing map."""
    graph, rows, n_jobs = grown.whole_graph(), grown.placed_rows(), grown.growth.n_jobs
    recipe = grown.growth.recipe(grown.search.k, placement_seed)
    # The share of the online search is not that of the sketches with which a fitted map is searched.
    neighbors = replace(grown.search.table(), share=1.0)
    return FittedMap(
        data=replace(rows, rows=rows.rows.copy()),
        recipe=recipe,
        facts=RowFacts(grown.graph.targets.given(grown.n_placed)),
        neighbors=neighbors,
        search_graph=recipe.affinity.graph(recipe.affinity.related(neighbors, rows), n_jobs)
        if grown.graph.targets.is_known
        else graph,
        graph=graph,
        embedding=grown.embedding,
        seed=rows.seed,
        report=FitReport(grown.init_used, int(grown.age.view.max(initial=0))),
    )
