"""A map that grows with its data (survey section 8, Algorithm 3): the steps of a fit, a bounded amount at a time.

Rows are queued by ``insert``. Every ``advance`` goes through the steps of :mod:`vicinal.pipeline.fit` with a
:class:`GrowingExecutor`: it finds neighbors of queued rows, computes the edges that change, gives new rows a place, and
moves the rows concerned. Old rows rest unless their neighbors change or the map has doubled.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.graph.supervision import Supervision
from vicinal.initialize.medoid import aligned_to
from vicinal.layout.sampled import PartialLayout
from vicinal.layout.surroundings import surrounded
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.online import OnlineNeighbors, OnlineOptions
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows, recognize
from vicinal.pipeline import online_graph as rules
from vicinal.pipeline.fit import Executor, fit
from vicinal.pipeline.fitted import FitReport, FittedMap
from vicinal.pipeline.online_graph import (
    FIRST_EPOCHS,
    FULL_EPOCHS,
    WHOLE_EPOCHS,
    Batch,
    GraphChange,
    OnlineGraph,
    Pace,
    growing_schedule,
    piece_gap,
    union,
)
from vicinal.pipeline.place import are_elsewhere, places_near_neighbors, settle, warn_of_isolated
from vicinal.pipeline.recipe import Places, Recipe
from vicinal.pipeline.row_options import RowOptions, pushing_weights
from vicinal.runtime.cached import GrowingArray
from vicinal.runtime.constraints import Interval
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


def reporter(grown: GrowingMap, progress: Progress) -> Listen:
    """Return a function that reports a stage of the map and returns whether to stop."""

    def report(stage: str) -> bool:
        if stage == NEIGHBORS:
            return progress.report(stage, grown.search.n_searched, grown.search.n, lambda: grown.embedding)
        return progress.report(stage, grown.round * EPOCHS_PER_MOVE, last_epoch(grown), lambda: grown.embedding)

    return report


def last_epoch(grown: GrowingMap) -> int:
    """Return how many epochs the map will have run when all rows are at rest."""
    return grown.round * EPOCHS_PER_MOVE + int(grown.left.view.max(initial=0))


# Row numbers and epochs are 32-bit integers in the core.
_INT32 = float(np.iinfo(np.int32).max)
# Epochs and comparisons are counted in 64 bits. Far below the limit, so that sums and products do not overflow.
_COUNTER = 2.0**52
# Trees and spare entries are allocated per row: a large number in a forged file would exhaust the memory.
_PER_ROW = 1024


def _integer(low: float, high: float) -> Interval:
    return Interval(Integral, low, high, closed="both")


_POSITIVE = Interval(Real, 0, None, closed="neither")
_SEED = _integer(0, 2.0**63)

_SEARCH = {"k": _integer(2, _INT32), "seed": _SEED}
_OPTIONS = {
    "spare": _integer(0, _PER_ROW),
    "trees": _integer(1, _PER_ROW),
    "refresh_after": _integer(1, _INT32),
    "exact_rows": _integer(0, _INT32),
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
# States of earlier versions lack these.
_LATER = {"n_ever": _integer(0, _COUNTER)}
_LATER_CORE = {
    "removed": _integer(0, _COUNTER),
    "longest2": Interval(Real, 0, None, closed="left"),
    "coarse_unit": Interval(Real, 0, None, closed="left"),
}


def check_numbers(state: Mapping[str, Any]) -> None:
    """Raise ValueError if a number of a growing map's state is outside of the range that the core accepts."""
    search = state["search"]
    _check("search", search, _SEARCH)
    options = search["options"]
    if set(options) != {field.name for field in fields(OnlineOptions)}:
        raise ValueError("the state of a growing map has other search options")
    _check("search.options", options, {name: _OPTIONS[name] for name in options})
    if "core" in search:
        _check("search", search, {"scale": _POSITIVE})
        _check("search.core", search["core"], _CORE)
        _check(
            "search.core", search["core"], {name: _LATER_CORE[name] for name in _LATER_CORE if name in search["core"]}
        )
    _check("search", search, {name: _LATER[name] for name in _LATER if name in search})
    _check_clock(state["clock"], len(state["places"]))
    _check_lists(state["index"], state["membership"], search["k"])


def _check_clock(clock: Any, n_placed: int) -> None:
    allowed = {"first_map_rows": _integer(0, n_placed), "round": _integer(0, _COUNTER), "cursor": _integer(0, n_placed)}
    allowed["settled"] = _integer(n_placed, 2 * n_placed)
    names = tuple(allowed)
    if not isinstance(clock, list | tuple) or len(clock) not in (len(names) - 1, len(names)):
        raise ValueError(f"clock must hold {', '.join(names)}, got {clock!r}")
    clock = [*clock, n_placed][: len(names)]
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
# Rows move for EPOCHS_PER_MOVE epochs at a time, at most SLICE of them together: 150 ms on two cores. The rest of the
# map does not move meanwhile, so small slices cost quality: accuracy 0.760 after 60 epochs of all rows of Fashion-MNIST
# in slices of 8,192, 0.773 together.
EPOCHS_PER_MOVE, SLICE = 6, 65_536
# The layouts of this many slices, which hold the edges of their rows, are kept for the next round.
MOST_LAYOUTS = 4
# Initial estimate of seconds per row and turn, and the fewest rows that are worth a turn.
SECONDS_PER_ROW, LEAST_ROWS = 5e-6, 256
# Share of a step's time that goes to the search, if there are rows to move and if there are none. Computing the edges
# of the rows found takes time as well.
SEARCH_SHARE, FIRST_SHARE = 0.5, 0.8
# Rows are added without a snapshot if the map has SNAPSHOT_RATIO times as many, and the work takes SHORT_SECONDS.
SNAPSHOT_RATIO, SHORT_SECONDS = 50, 0.5

NEIGHBORS = "neighbors"
COLUMNS = ("places", "age", "left")
Listen = Callable[[str], bool]  # is told the name of a stage that was done; returns whether to stop
Related = tuple[NDArray[np.int32], Neighbors | None, NDArray[np.int64], int]
Change = tuple[GraphChange | None, NDArray[np.int64], int]


def _go_on(stage: str) -> bool:
    return False


class GrowingExecutor(Executor):
    """One turn of a growing map: at most ``n_ops`` rows are searched, and as many move, within ``budget_ms``.

    ``listen`` is told which stage was done, and returns whether to stop.
    """

    refuses: ClassVar[dict[str, str]] = {"orient": "old rows keep their places"}

    def __init__(
        self, grown: GrowingMap, n_ops: int | None = None, budget_ms: float | None = None, listen: Listen | None = None
    ) -> None:
        self.grown, self.n_ops, self.budget_ms, self.listen = grown, n_ops, budget_ms, listen or _go_on
        self.moved = 0
        self._stop = None if budget_ms is None else time.perf_counter() + budget_ms / 1e3
        self._stopped = False

    def check(self) -> None:
        self.grown.complete()
        self._searches = bool(self.grown.search.pending_) or self.grown.start_is_due()

    def search(self) -> None:
        if self._searches:
            share = SEARCH_SHARE if self.grown.n_moving else FIRST_SHARE
            budget = None if self.budget_ms is None else share * self.budget_ms
            self.grown.graph.search(self.n_ops, budget)

    def relate(self) -> None:
        self._related = self.grown.related_rows() if self._searches else None

    def build_graph(self) -> None:
        self._change = None if self._related is None else self.grown.build_graph(self._related)

    def supervise(self) -> None:
        if self._change is not None:
            self.grown.supervise(self._change)

    def start(self) -> None:
        if self._searches:
            self.grown.start()
            self._stopped = self.listen(NEIGHBORS)

    def lay_out(self, finish: Callable[[Places], Places]) -> None:
        if self._stopped:
            return
        if self._stop is not None:
            self.moved = self.grown.move_until(self._stop, self.listen)
        else:
            self.moved = self.grown.move_rows(self.n_ops, self.listen)

    def surround(self, places: Places) -> Places:
        return self.grown.surround(places)

    def report(self) -> int:
        """Return how many rows moved."""
        self.grown.warn_of_isolated()
        return self.moved


class GrowingMap:
    """Rows, their neighbors and graph, and the places of those that are in the map."""

    def __init__(self, search: OnlineNeighbors, recipe: Recipe, pace: Pace, n_jobs: int = -1) -> None:
        labels = Supervision() if recipe.supervision is None else recipe.supervision
        self.search, self.recipe, self.pace, self.seed, self.n_jobs = search, recipe, pace, search.seed, n_jobs
        self.graph = OnlineGraph(search, recipe.affinity, labels, n_jobs)
        self.places = GrowingArray(np.empty((0, recipe.n_components), np.float32))
        self.age, self.left = GrowingArray(np.empty(0, np.int32)), GrowingArray(np.empty(0, np.int32))  # epochs
        self.init_used = ""
        self.first_map_rows = 0
        self.settled = 0  # size of the map when all rows last had moved together for it, or less if most left since
        self.round = self.cursor = 0  # turns of all moving rows so far, and the next row to move
        self._moved: list[NDArray[np.int32]] | None = None  # rows that moved, while someone records them
        self._seconds_per_row = SECONDS_PER_ROW
        self._placed_rows: TrainingRows | None = None
        self._layouts: dict[int, PartialLayout] = {}
        self._isolated: NDArray[np.bool_] | None = None  # which rows have no edge, until the graph changes
        self.warned = False  # of isolated rows

    @property
    def n_placed(self) -> int:
        return len(self.places)

    @property
    def embedding(self) -> Places:
        """A copy of the places; equal rows have the same one, and rows without edges lie around the map."""
        shared: Places = self.places.view[self.graph.first.view[: self.n_placed]]
        return self.surround(shared)

    @property
    def isolated(self) -> NDArray[np.bool_]:
        """Which rows have no edge."""
        if self._isolated is None or len(self._isolated) != self.n_placed:
            self._isolated = self.graph.isolated()[: self.n_placed]
        return self._isolated

    @property
    def n_moving(self) -> int:
        """Number of rows with epochs left."""
        return int(np.count_nonzero(self.left.view))

    @property
    def pending(self) -> int:
        """Number of rows waiting for neighbors, for a refresh of them, for a place or for epochs."""
        unplaced = self.search.n_searched - self.n_placed if self.first_map_rows or self.start_is_due() else 0
        return int(self.search.pending_) + unplaced + self.n_moving

    def is_short(self, n_new: int) -> bool:
        """Return whether adding ``n_new`` rows takes little time, and a snapshot would be a large part of it."""
        # A function of the user may raise anything, and then the map must be what it was.
        if not isinstance(self.search.metric, str):
            return False
        if n_new * SNAPSHOT_RATIO >= self.n_placed or self.first_map_rows < rules.FIRST_MAP_ROWS:
            return False
        if rules.has_doubled(self.settled, self.n_placed + n_new):
            return False
        # A new row changes the neighbors of about k others.
        turns = self._turns_left() + n_new * (self.search.k + self.pace.new_epochs // EPOCHS_PER_MOVE + 1)
        turns += self.n_placed if self.pace.move_all else 0
        searches = n_new + self.search.pending_
        return searches * self.graph.seconds_per_search + turns * self._seconds_per_row <= SHORT_SECONDS

    def insert(self, batch: Batch) -> None:
        """Queue rows. If they are more than the window with those before, the oldest leave."""
        with deferred_interrupts():
            self.graph.insert(batch)
            if self.pace.window is not None and self.search.n > self.pace.window:
                self.forget(self.search.ids[: self.search.n - self.pace.window])

    def forget(self, ids: Any) -> None:
        """Remove rows, by their lasting numbers. The others keep their places, until their lists are filled again.

        Rows without edges lie around the others as ever.
        """
        self.complete()
        self.search.rows_of(ids)
        with deferred_interrupts():
            linked, shown = self.graph.forget(ids)
            stay = linked[: np.searchsorted(linked, self.n_placed)]
            # The first of some equal rows may leave, and the next one shows its place.
            first = self.graph.first.view[: len(stay)] == np.arange(len(stay))
            places = np.where(first[:, None], self.places.view[shown[: len(stay)]], self.places.view[stay])
            self.cursor = int(np.searchsorted(stay, self.cursor))
            self.places, self.age, self.left = GrowingArray(places), self.age.taken(stay), self.left.taken(stay)
            self.first_map_rows = min(self.first_map_rows, self.n_placed)
            self.settled = min(self.settled, 2 * self.n_placed)
            self._layouts.clear()
            self._isolated = self._placed_rows = None

    def advance(self, n_ops: int | None = None, budget_ms: float | None = None, listen: Listen | None = None) -> int:
        """Do a bounded amount of work, first the search, then epochs, and return how many rows moved.

        At most ``n_ops`` rows are searched or refreshed, and at most as many move for a turn. Without a bound, all
        pending rows are searched, and every row with epochs left moves for all of them.
        """
        return int(fit(GrowingExecutor(self, n_ops, budget_ms, listen)))

    def advance_and_record(
        self, n_ops: int | None, budget_ms: float | None, listen: Listen
    ) -> tuple[int, NDArray[np.int64]]:
        """Do the same as ``advance``. Return also the rows whose places may have changed, in ascending order."""
        self._moved, known = [], self.n_placed
        try:
            n_moved = self.advance(n_ops, budget_ms, listen)
            moved = np.unique(np.concatenate([np.empty(0, np.int64), *self._moved]))
        finally:
            self._moved = None
        if moved.size and (self.graph.n_equal or self.isolated.any()):
            # A row that equals an earlier one is where that one is; rows without edges lie around all others.
            is_moved = np.zeros(self.n_placed, dtype=bool)
            is_moved[moved] = True
            is_moved = is_moved[self.graph.first.view[: self.n_placed]] | self.isolated
            is_moved[known:] = True
            moved = np.flatnonzero(is_moved)
        return n_moved, moved

    # The steps of a turn

    def complete(self) -> None:
        """Compute the edges and places that an interrupted call left undone."""
        if (related := self.related_rows()) is not None:
            self.supervise(self.build_graph(related))
        if self.first_map_rows:
            self._place_new()

    def related_rows(self) -> Related | None:
        """Return the rows whose lists change after a search, their related neighbors, and those of them that move.

        Some of the rows with changed neighbors get epochs; the lists of the others become stale.
        """
        graph, pace, n = self.graph, self.pace, self.search.n_searched
        moving = graph.changed()
        if n == graph.n and not moving.size:
            return None
        shared = pace.shared_epochs(n - graph.n, n)
        if not shared:
            moving = moving[np.random.default_rng([self.seed, n + self._n_gone]).random(len(moving)) < MOVED_SHARE]
        everything = bool(shared) or not self.first_map_rows or pace.move_all or rules.has_doubled(self.settled, n)
        rows = graph.rows_to_compute(graph.all_stale() if everything else union([moving, graph.emptied()]))
        return rows, graph.relate(rows) if rows.size else None, moving, max(pace.updated_epochs, shared)

    def build_graph(self, related: Related) -> Change:
        """Compute the lists of these rows."""
        rows, neighbors, moving, n_epochs = related
        return None if neighbors is None else self.graph.build(rows, neighbors), moving, n_epochs

    def supervise(self, change: Change) -> None:
        """Intersect lists with labels, and write them to the graph."""
        lists, moving, n_epochs = change
        lists = None if lists is None else self.graph.supervise(lists)
        with deferred_interrupts():
            if lists is None:
                self.graph.note_changed()
                return
            self._apply(lists)
            self._give_epochs(moving[moving < self.n_placed], n_epochs)

    def start(self) -> None:
        """Place the rows that have no place: near their neighbors, or all rows anew as in a fit."""
        if self.start_is_due():
            self._start_all()
        elif self.first_map_rows:
            self._place_new()

    def move_rows(self, most: int | None, listen: Listen) -> int:
        """Move at most ``most`` rows for a turn; without a bound, every row for all of its epochs."""
        most, moved = self._turns_left() if most is None else most, 0
        while moved < most:
            rows = self.move(min(SLICE, most - moved))
            moved += rows
            if not rows or listen(LAYOUT):
                break
        return moved

    def move_until(self, stop: float, listen: Listen) -> int:
        """Move as many rows at a time as should be done by ``stop``, judging by the last ones."""
        moved = 0
        while True:
            now = time.perf_counter()
            most = int((stop - now) / self._seconds_per_row)
            if most < LEAST_ROWS and (moved or now >= stop):
                return moved
            rows = self.move(min(SLICE, max(most, LEAST_ROWS)))
            moved += rows
            if not rows or listen(LAYOUT):
                return moved

    def surround(self, places: Places) -> Places:
        """Draw the rows without edges around the others, as in every map."""
        return surrounded(places, self.isolated) if self.isolated.any() else places

    def warn_of_isolated(self) -> None:
        """Warn once of rows without edges."""
        if not self.warned and self.n_placed > 1 and self.isolated.any():
            self.warned = True
            limit = self.recipe.affinity.limit(self.graph.unrelated)
            warn_of_isolated(self.isolated, limit)

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
            turns = max(1, min(int(left[rows].min()) // EPOCHS_PER_MOVE, most // len(rows)))
        with deferred_interrupts():
            layout = self._layout(rows)
            layout.step(turns * EPOCHS_PER_MOVE)
            left[rows] = np.maximum(left[rows] - turns * EPOCHS_PER_MOVE, 0)
            if not self.n_moving:
                self._layouts.clear()
            elif len(self._layouts) < MOST_LAYOUTS:
                self._layouts[int(rows[0])] = layout
            self.age.view[rows] += turns * EPOCHS_PER_MOVE
            self._note_moved(rows)
            self.cursor, self.round = int(rows[-1]) + 1, self.round + turns - 1
        moved = turns * len(rows)
        self._seconds_per_row = (time.perf_counter() - begin) / max(moved, LEAST_ROWS)
        return moved

    def wake(self, n_epochs: int) -> None:
        """Give every row at least ``n_epochs`` epochs, along its present edges."""
        if (change := self.graph.changes(self.graph.all_stale())) is not None:
            with deferred_interrupts():
                self._apply(change)
        self._give_epochs(slice(None), n_epochs)

    def whole_graph(self) -> Graph:
        self.complete()
        return self.graph.whole()

    def placed_rows(self) -> TrainingRows:
        """Return the rows that have places, for looking up rows by content."""
        if self._placed_rows is None or self._placed_rows.n != self.n_placed:
            search = self.search
            rows = search.rows[: self.n_placed]
            self._placed_rows = TrainingRows(rows, search.metric, search.metric_kwds, search.seed, self.n_jobs)
        return self._placed_rows

    def state(self) -> dict[str, Any]:
        """Return everything that the map depends on besides its recipe, as arrays and plain values."""
        self.complete()
        return {
            "init_used": self.init_used,
            "clock": [self.first_map_rows, self.round, self.cursor, self.settled],
            **self.graph.state(),
            **{name: getattr(self, name).view.copy() for name in COLUMNS},
        }

    @property
    def bytes_per_row(self) -> float:
        """Memory per row: its content, neighbors, edges and place, and the list of rows that list it."""
        listed = self.graph.n * self.search.k * np.dtype(np.int32).itemsize
        return (_bytes_of(self.state()) + listed) / max(self.search.n, 1)

    @classmethod
    def from_state(cls, state: dict[str, Any], recipe: Recipe, pace: Pace, n_jobs: int) -> GrowingMap:
        """Rebuild the map that returned ``state``; it continues bit for bit. Raise ValueError if this is impossible."""
        check_numbers(state)
        labels = Supervision() if recipe.supervision is None else recipe.supervision
        graph = OnlineGraph.from_state(state, recipe.affinity, labels, n_jobs)
        grown = cls(graph.neighbors, recipe, pace, n_jobs)
        grown.graph = graph
        grown.init_used = state["init_used"]
        grown.first_map_rows, grown.round, grown.cursor, grown.settled = [*state["clock"], len(state["places"])][:4]
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
        if (placed > 0) != (self.first_map_rows > 0) or self.first_map_rows > placed or self.cursor < 0:
            raise ValueError("a growing map has places without a first map, or the reverse")
        if not np.isfinite(self.places.view).all() or self.left.view.min(initial=0) < 0:
            raise ValueError("a growing map has places that are not finite, or negative epochs")

    def start_is_due(self) -> bool:
        """Return whether to (re)initialize the whole map."""
        n, first = self.search.n_searched, self.first_map_rows
        if rules.first_map_is_due(first, n, self.search.n):
            return True
        if not first or n == self.n_placed:
            return False
        # The rows of this call, or all rows since the last start: small batches of a class add up.
        counted = [(self.n_placed, rules.LARGE_SHARE)]
        if first < self.n_placed:
            counted.append((first, rules.ELSEWHERE_SHARE))
        return any(
            rules.may_start_anew(n - begin, n, share)
            and are_elsewhere(self.search.table_of(np.arange(begin, n))[0], begin)
            for begin, share in counted
        )

    def _start_all(self) -> None:
        """Give all rows a starting place as a fit does. If there was a map, the places are aligned to it."""
        n, search = self.graph.n, self.search
        data = TrainingRows(search.rows[:n], search.metric, search.metric_kwds, search.seed, self.n_jobs)
        places, init_used = self.recipe.start(self.graph.whole(), data, self.seed)
        if self.first_map_rows:
            known = np.arange(self.n_placed)
            places = aligned_to(places, known, self.places.view, scaled=False).astype(np.float32)
        self._reserve_places(n)
        with deferred_interrupts():
            self._append(places[self.n_placed :])
            self.places.view[:] = places
            self.first_map_rows, self.init_used = n, init_used
            self._note_moved(np.arange(n, dtype=np.int32))
            self._give_epochs(slice(None), FIRST_EPOCHS)

    def _place_new(self) -> None:
        """Give the rows without a place a starting place near their neighbors."""
        known, n = self.n_placed, self.graph.n
        if known == n:
            return
        whole = rules.has_doubled(self.settled, n)
        rng = np.random.default_rng([self.seed, known + self._n_gone])
        index = self.graph.relate(np.arange(known, n, dtype=np.int32)).index
        places = places_near_neighbors(index, self.places.view, rng, piece_gap(self.recipe.plan.forces.kernel))
        self._reserve_places(n)
        with deferred_interrupts():
            self._append(places)
            self._note_moved(np.arange(known, n, dtype=np.int32))
            if whole:
                self._give_epochs(slice(None), WHOLE_EPOCHS)
            elif self.pace.move_all:
                self._give_epochs(slice(None), self.pace.updated_epochs)

    def _layout(self, rows: NDArray[np.int32]) -> PartialLayout:
        """Return the layout that moved these rows in the last round if nothing has changed since, or make one."""
        ages, epoch = FULL_EPOCHS - self.left.view[rows], self.round * EPOCHS_PER_MOVE
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
            self.recipe.plan.forces,
            growing_schedule(self.recipe.plan, self.n_placed),
            ages=ages,
            first_epoch=epoch,
            seed=self.seed,
            n_jobs=self.n_jobs,
            negative_weights=pushing_weights(None, self.isolated),
        )

    def _apply(self, change: GraphChange) -> None:
        """Write lists to the graph. To be called under ``deferred_interrupts``."""
        self._layouts.clear()
        self._isolated = None
        self.graph.apply(change)

    @property
    def _n_gone(self) -> int:
        """Number of rows forgotten so far, so that random streams by the number of rows do not repeat."""
        return self.search.n_ever - self.search.n

    def _turns_left(self) -> int:
        left = self.left.view[np.flatnonzero(self.left.view)]
        return int(-(-left // EPOCHS_PER_MOVE).sum())

    def _give_epochs(self, rows: Any, n_epochs: int) -> None:
        self.left.view[rows] = np.maximum(self.left.view[rows], n_epochs)

    def _note_moved(self, rows: NDArray[np.int32]) -> None:
        if self._moved is not None:
            self._moved.append(rows)

    def _reserve_places(self, n: int) -> None:
        for column in (self.places, self.age, self.left):
            column.reserve(n)

    def _append(self, places: Places) -> None:
        shared = self.pace.shared_epochs(len(places), self.search.n_searched)
        self.places.append(places)
        self.settled = max(self.settled, self.n_placed)
        self.age.append(np.zeros(len(places), np.int32))
        self.left.append(np.full(len(places), max(self.pace.new_epochs, shared), np.int32))


class Stream:
    """The growing map of an estimator: a call that fails leaves it as it was.

    In general the map is rolled back to a snapshot if anything is raised while rows are added. A snapshot takes time
    proportional to the number of rows. So if the map is large, the work short and nobody listens, interrupts wait until
    the call is complete instead. If such a call runs out of memory, the map is damaged, and every later use says so.
    """

    def __init__(self, grown: GrowingMap) -> None:
        self._grown: GrowingMap | None = grown
        self._restore = partial(GrowingMap.from_state, recipe=grown.recipe, pace=grown.pace, n_jobs=grown.n_jobs)
        self._snapshot: dict[str, Any] = {}
        self._damage = ""

    @property
    def map(self) -> GrowingMap:
        """The map. After a rollback it is restored here, because an interrupt must not wait for it."""
        if self._damage:
            raise RuntimeError(f"this map was damaged when a call failed: {self._damage}")
        if self._grown is None:
            self._grown = self._restore(self._snapshot)
            self._snapshot = {}  # holds rows that may be forgotten later
        return self._grown

    def add(self, batch: Batch, listen: Listen | None = None) -> None:
        """Insert rows and do the work that follows, completely or not at all."""
        grown, n_new = self.map, batch.rows.shape[0]
        if listen is None and grown.is_short(n_new):
            with deferred_interrupts():
                grown.insert(batch)
                try:
                    grown.advance()
                except BaseException as error:
                    self._damage = f"{type(error).__name__}: {error}"
                    raise
            return
        grown.search.reserve(n_new)
        snapshot = grown.state()
        try:
            grown.insert(batch)
            grown.advance(listen=listen)
        except BaseException:
            self._grown, self._snapshot = None, snapshot
            raise

    def forget(self, ids: Any) -> None:
        """Remove rows, completely or not at all: interrupts wait."""
        grown = self.map
        n = grown.search.n
        with deferred_interrupts():
            try:
                grown.forget(ids)
            except BaseException as error:
                if grown.search.n < n:
                    self._damage = f"{type(error).__name__}: {error}"
                raise


def _bytes_of(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_bytes_of(item) for item in value.values())
    if is_sparse(value):
        return _bytes_of({"data": value.data, "indices": value.indices, "indptr": value.indptr})
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0


def place_in(grown: GrowingMap, rows: Rows) -> Places:
    """Return the places of rows in the map as it is, by the rules of every map; rows of the map have their own."""
    grown.complete()
    places, affinity = grown.embedding, grown.recipe.affinity
    known, keys = recognize(grown.placed_rows(), rows)
    found: Places = places[np.maximum(known, 0)]
    new = np.flatnonzero(known < 0)
    if new.size:
        neighbors = grown.search.query(rows[new], affinity.query_columns(len(places)))
        neighbors = affinity.related(neighbors, grown.graph.unrelated, len(places))
        graph = affinity.graph_to_known(neighbors, len(places), grown.n_jobs)
        limit = affinity.limit(grown.graph.unrelated)
        plan, isolated, weights = grown.recipe.plan, grown.isolated, pushing_weights(None, grown.isolated)
        found[new] = settle(plan, graph, places, isolated, keys[new], limit, weights=weights, n_jobs=grown.n_jobs)
    return found


def as_fitted(grown: GrowingMap) -> FittedMap:
    """Return the rows placed so far as the result of a fit, which shares nothing with the growing map."""
    graph, rows, recipe = grown.whole_graph(), grown.placed_rows(), grown.recipe
    # The share of the online search is not that of the sketches with which a fitted map is searched.
    neighbors = replace(grown.search.table(), share=1.0)
    search_graph = graph
    if grown.graph.targets.is_known:
        related = recipe.affinity.related(neighbors, grown.graph.unrelated, rows.n)
        search_graph = recipe.affinity.graph(related, grown.n_jobs)
    return FittedMap(
        data=replace(rows, rows=rows.rows.copy()),
        recipe=recipe,
        options=RowOptions(grown.graph.targets.given(grown.n_placed)),
        neighbors=neighbors,
        search_graph=search_graph,
        graph=graph,
        embedding=grown.embedding,
        seed=rows.seed,
        report=FitReport(grown.init_used, int(grown.age.view.max(initial=0))),
    )
