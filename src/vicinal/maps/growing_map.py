"""A map that grows with its data (survey section 8, Algorithm 3).

Rows arrive at any time, and every call does a bounded amount of work: some rows' neighbours are found
(:class:`vicinal.neighbors.online.OnlineNeighbors`), rho, sigma and p of these rows and of those whose neighbours changed are
computed (eq. 1-4), and the same rows move for some epochs. A row that was never placed starts at its nearest
neighbour's place, with a little noise.

How freely a row moves depends on how many epochs it has left, and on nothing else: the learning rate falls with them
as it does at the end of every layout. The first rows have as many before them as a fit of them would run, most of them
at the full rate; a new row ``new_epochs``, a row whose neighbours changed ``updated_epochs``, which move it a little; a
row that has none left is at rest, and costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.fuzzy import local_memberships
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import UNKNOWN_DISTANCE, class_code, code_factors, far_distance
from vicinal.initialize.procrustes import aligned_to
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.kernel import Kernel
from vicinal.layout.sampled import Layout
from vicinal.layout.schedule import Schedule, default_epochs
from vicinal.maps.growing_array import GrowingArray
from vicinal.neighbors.online import Changed, OnlineNeighbors
from vicinal.neighbors.rows import equal_rows
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import RowSource
from vicinal.runtime.progress import LAYOUT

# A row with fewer epochs left than this has a smaller learning rate than the full one: (left / FULL_EPOCHS)^1.5 of it.
FULL_EPOCHS = 60
# A batch that is a large part of the map changes it as a whole: new and updated rows move for that share of these
# epochs, if it is more than a new row has anyway. Fashion-MNIST in batches of 1,000, mean 10-NN accuracy of the last
# map over seeds: 0.765 with none of these, 0.768 with 300, 0.772 with 400, 0.774 with 500 and no more with 1,000. Of
# maps of more than 22,000 rows a batch of 1,000 is too small a part.
SHARED_EPOCHS = 400
# Share of the rows with new neighbours that move: a row's list changes a dozen times while a map grows tenfold, each
# time a little. Fashion-MNIST: 0.002 of the accuracy for 7 % of the time.
STIRRED = 0.5
# Rows move for TURN epochs at a time, at most SLICE of them together: 20 ms of two cores.
TURN, SLICE = 6, 8192
# Layouts of so many slices are kept for the next round: each has a copy of all places, and its rows' edges.
MOST_LAYOUTS = 4
# The first map is made of FOUNDERS rows as soon as so many are known, or of fewer where no more are waiting. Until a
# map has so many rows, it is made anew whenever their number has doubled: a handful of rows does not speak for others.
FOUNDERS = 1000
# What a row's turn is taken to cost before there was one, and the fewest rows that are worth a turn.
SECONDS_A_ROW, LEAST_ROWS = 5e-6, 256
# Standard deviation of the noise around the nearest neighbour's place, in units of the map.
NOISE = 0.05
# Rows none of whose neighbours has a place start beside the map, this many times its half width from its middle.
BESIDE = 1.2
# A step gives this share of its time to finding neighbours, while there are rows to be moved and while there are none.
# The edges of what was found take time as well.
SEARCH_SHARE, FIRST_SHARE = 0.5, 0.8

NEIGHBORS = "neighbors"
COLUMNS = ("labels", "rho", "sigma", "first", "places", "age", "left")
Report = Callable[[str], bool]


@dataclass(frozen=True)
class Growth:
    """How the rows are connected, how they are laid out, and for how long they move."""

    a: float
    b: float
    n_components: int = 2
    init: str = "spectral"
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    local_connectivity: float = 1.0
    set_op_mix_ratio: float = 1.0
    disconnection_distance: float | None = None
    target_weight: float = 0.5
    new_epochs: int = 18
    updated_epochs: int = 6
    move_all: bool = False
    seed: int = 0
    n_jobs: int = -1

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.a, self.b)

    @property
    def schedule(self) -> Schedule:
        return Schedule(FULL_EPOCHS, self.learning_rate, self.negative_sample_rate, self.repulsion_strength)


class GrowingMap:
    """Rows, their neighbours, their graph and their places, as far as there are such."""

    def __init__(self, search: OnlineNeighbors, growth: Growth) -> None:
        self.search, self.growth = search, growth
        self.graph = cpu.GrowingGraph(search.k, growth.set_op_mix_ratio)
        self.labels = GrowingArray(np.empty(0, np.int64))
        self.rho, self.sigma = GrowingArray(np.empty(0, np.float32)), GrowingArray(np.empty(0, np.float32))
        self.first = GrowingArray(np.empty(0, np.int32))  # an earlier row of the same content, or the row itself
        self.places = GrowingArray(np.empty((0, growth.n_components), np.float32))
        self.age, self.left = GrowingArray(np.empty(0, np.int32)), GrowingArray(np.empty(0, np.int32))
        self.classes: dict[Any, int] = {}
        self.init_used = ""
        self._seconds_a_row = SECONDS_A_ROW
        self._placed_rows: RowSource | None = None
        self._layouts: dict[int, Layout] = {}
        self.founders = self.round = self.cursor = 0

    @property
    def n_placed(self) -> int:
        return len(self.places)

    @property
    def embedding(self) -> NDArray[np.float32]:
        """A copy of the places, equal rows at one."""
        shared: NDArray[np.float32] = self.places.view[self.first.view[: self.n_placed]]
        return shared

    @property
    def n_moving(self) -> int:
        """Rows that have epochs left."""
        return int(np.count_nonzero(self.left.view))

    def insert(self, rows: NDArray[np.float32], labels: NDArray[Any] | None = None) -> None:
        """Queues rows; labels of -1, NaN or None are none."""
        self.search.insert(rows)
        known = [None] * len(rows) if labels is None else labels.tolist()
        self.labels.append(np.array([class_code(label, self.classes) for label in known], dtype=np.int64))

    def find(self, n_ops: int | None = None, budget_ms: float | None = None) -> Changed:
        """Finds and refreshes neighbours; the rows concerned get their edges and, if they have none, their places."""
        changed = self.search.step(n_ops=n_ops, budget_ms=budget_ms)
        self._connect(changed)
        if self._is_due():
            self._found()
        elif self.founders:
            self._place_new()
        return changed

    def move(self, most: int = SLICE) -> int:
        """Moves the next rows that have epochs left, at most so many, for a turn; how many moved.

        Where these are few, and all that move, they are moved for several turns, each of which counts.
        """
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
        layout = self._layout(rows)
        layout.step(turns * TURN)
        self.places.view[:] = layout.embedding
        left[rows] = np.maximum(left[rows] - turns * TURN, 0)
        if not self.n_moving:
            self._layouts.clear()
        elif len(self._layouts) < MOST_LAYOUTS:
            self._layouts[int(rows[0])] = layout
        self.age.view[rows] += turns * TURN
        self.cursor, self.round = int(rows[-1]) + 1, self.round + turns - 1
        return turns * len(rows)

    def _layout(self, rows: NDArray[np.int32]) -> Layout:
        """What moves these rows: the layout that moved them in the last round, if nothing has changed since."""
        growth, ages, epoch = self.growth, FULL_EPOCHS - self.left.view[rows], self.round * TURN
        last = self._layouts.pop(int(rows[0]), None)
        if last is not None and last.heads is not None and last.ages is not None:
            goes_on = last.first_epoch + last.epoch == epoch and np.array_equal(last.heads, rows)
            if goes_on and np.array_equal(last.ages + last.epoch, ages):
                last.embedding = self.places.view
                return last
        return Layout(
            self.edges(rows),
            self.places.view,
            growth.kernel,
            growth.schedule,
            seed=growth.seed,
            n_jobs=growth.n_jobs,
            heads=rows,
            ages=ages,
            first_epoch=epoch,
        )

    def advance(
        self, n_ops: int | None = None, budget_ms: float | None = None, report: Report = lambda stage: False
    ) -> int:
        """A bounded amount of work, neighbours first, then epochs; how many rows moved.

        At most ``n_ops`` rows are searched or refreshed, and at most so many moved for a turn. With neither bound it is
        all neighbours that are pending, and a turn of every row that has epochs left, or all their epochs if some have
        more than a new row gets. ``report`` is told what was done, and may ask to stop.
        """
        stop = None if budget_ms is None else time.perf_counter() + budget_ms / 1e3
        if self.search.pending_:
            share = SEARCH_SHARE if self.n_moving else FIRST_SHARE
            self.find(n_ops, None if budget_ms is None else share * budget_ms)
            if report(NEIGHBORS):
                return 0
        if stop is not None:
            return self._move_until(stop, report)
        if n_ops is None:
            left = self.left.view
            restless = left.max(initial=0) > self.growth.new_epochs
            n_ops = int(-(-left // TURN).sum()) if restless else self.n_moving
        return self._move_rows(n_ops, report)

    def _move_rows(self, most: int, report: Report) -> int:
        moved = 0
        while moved < most:
            rows = self.move(min(SLICE, most - moved))
            moved += rows
            if not rows or report(LAYOUT):
                break
        return moved

    def _move_until(self, stop: float, report: Report) -> int:
        """Moves as many rows at a time as should be done by then; how fast rows move is known from the last ones."""
        moved = 0
        while True:
            start = time.perf_counter()
            most = int((stop - start) / self._seconds_a_row)
            if most < LEAST_ROWS and (moved or start >= stop):
                return moved
            rows = self.move(min(SLICE, max(most, LEAST_ROWS)))
            if not rows:
                return moved
            moved += rows
            self._seconds_a_row = (time.perf_counter() - start) / max(rows, LEAST_ROWS)
            if report(LAYOUT):
                return moved

    def wake(self, n_epochs: int) -> None:
        """Gives every row at least so many epochs."""
        self._stir(slice(None), n_epochs)

    def _stir(self, rows: Any, n_epochs: int) -> None:
        self.left.view[rows] = np.maximum(self.left.view[rows], n_epochs)

    def edges(self, rows: NDArray[np.int32]) -> Graph:
        """The edges of some rows, to all rows."""
        indptr, indices, weights = self.graph.edges(rows, self.growth.n_jobs)
        return Graph(indptr, indices, weights, self.graph.n, self.rho.view[rows], self.sigma.view[rows])

    def placed_rows(self) -> RowSource:
        """The rows that have places, to be found by their content."""
        if self._placed_rows is None or self._placed_rows.n != self.n_placed:
            search = self.search
            rows = search.rows[: self.n_placed]
            self._placed_rows = RowSource(rows, search.metric, search.metric_kwds, search.seed, self.growth.n_jobs)
        return self._placed_rows

    def whole_graph(self) -> Graph:
        return self.edges(np.arange(self.graph.n, dtype=np.int32))

    def state(self) -> dict[str, Any]:
        """Everything that goes on in this map, as arrays and plain values."""
        index, membership = self.graph.lists()
        return {
            "growth": asdict(self.growth),
            "search": self.search.state(),
            "classes": list(self.classes),
            "init_used": self.init_used,
            "clock": [self.founders, self.round, self.cursor],
            "index": index,
            "membership": membership,
            **{name: getattr(self, name).view.copy() for name in COLUMNS},
        }

    @property
    def bytes_per_row(self) -> float:
        """Memory that a row takes: itself, its neighbours, edges and place, whether another lists it."""
        listed = self.graph.n * self.search.k * np.dtype(np.int32).itemsize
        return (_bytes_of(self.state()) + listed) / max(self.search.n, 1)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> GrowingMap:
        """The map that ``state`` was taken of, which goes on bit for bit as that one."""
        growth = Growth(**state["growth"])
        grown = cls(OnlineNeighbors.from_state(state["search"], growth.n_jobs), growth)
        index = state["index"]
        grown.graph.extend(len(index))
        grown.graph.replace(np.arange(len(index), dtype=np.int32), index, state["membership"])
        grown.classes = {label: number for number, label in enumerate(state["classes"])}
        grown.init_used = state["init_used"]
        grown.founders, grown.round, grown.cursor = state["clock"]
        for name in COLUMNS:
            column = getattr(grown, name).view
            if state[name].dtype != column.dtype or state[name].shape[1:] != column.shape[1:]:
                raise ValueError(f"{name} of a growing map has another form: {state[name].dtype} {state[name].shape}")
            setattr(grown, name, GrowingArray(state[name]))
        grown.check()
        return grown

    def check(self) -> None:
        """Raises ValueError if the parts do not fit together: what comes from a file may be anything."""
        known, placed = self.graph.n, self.n_placed
        lengths = [len(column) for column in (self.rho, self.sigma, self.first, self.age, self.left)]
        if (
            lengths != [known, known, known, placed, placed]
            or placed not in (0, known)
            or known != self.search.n_searched
        ):
            raise ValueError("the columns of a growing map differ in their rows")
        if len(self.labels) != self.search.n or (placed > 0) != (self.founders > 0) or self.cursor < 0:
            raise ValueError("a growing map contradicts itself")
        if known and not 0 <= int(self.first.view.min()) <= int(self.first.view.max()) < known:
            raise ValueError("a growing map knows rows that are not there")
        if not np.isfinite(self.places.view).all() or self.left.view.min(initial=0) < 0:
            raise ValueError("a growing map has rows without places")
        if self.labels.view.max(initial=-1) >= len(self.classes) or self.labels.view.min(initial=-1) < -1:
            raise ValueError("a growing map has labels that are no classes")

    def _connect(self, changed: Changed) -> None:
        """rho, sigma and p of new and updated rows."""
        growth, known, n = self.growth, self.graph.n, self.search.n_searched
        updated = changed.updated[changed.updated < known]
        rows = np.concatenate([np.arange(known, n), updated]).astype(np.int32)
        if not rows.size:
            return
        self._layouts.clear()
        neighbors = Neighbors(*self.search.table_of(rows))
        index, membership, rho, sigma = local_memberships(
            rows,
            neighbors,
            local_connectivity=growth.local_connectivity,
            disconnection_distance=growth.disconnection_distance,
            n_jobs=growth.n_jobs,
        )
        if self.classes:
            membership = self._intersected(rows, index, membership)
        self.graph.extend(n)
        self.graph.replace(rows, index, membership)
        for column, values in ((self.rho, rho), (self.sigma, sigma)):
            column.append(values[: n - known])
            column.view[updated] = values[n - known :]
        self.first.append(np.arange(known, n, dtype=np.int32))
        self._recognise(rows[: n - known], neighbors)
        placed, shared = updated[updated < self.n_placed], self._shared_epochs(n - known)
        if not shared:
            placed = placed[np.random.default_rng([growth.seed, n]).random(len(placed)) < STIRRED]
        self._stir(placed, max(growth.updated_epochs, shared))

    def _shared_epochs(self, n_new: int) -> int:
        """Epochs of new and updated rows where so many rows of the map are new; 0 where these are few."""
        n_epochs = round(SHARED_EPOCHS * n_new / self.search.n_searched)
        return n_epochs if n_epochs > self.growth.new_epochs else 0

    def _recognise(self, rows: NDArray[np.int32], neighbors: Neighbors) -> None:
        """Finds which new rows equal an earlier one: that is then among their neighbours, at distance 0."""
        index, distance = neighbors.index[: len(rows)], neighbors.distance[: len(rows)]
        earlier = (distance == 0) & (index >= 0) & (index < rows[:, None])
        some = np.flatnonzero(earlier.any(axis=1))
        if some.size:
            lowest = np.where(earlier[some], index[some], rows[some, None]).min(axis=1)
            content = self.search.rows
            same = equal_rows(content[lowest], content[rows[some]])
            for row, other in zip(rows[some][same], lowest[same], strict=True):
                self.first.view[row] = self.first.view[other]

    def _intersected(
        self, rows: NDArray[np.int32], index: NDArray[np.int32], membership: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Memberships that fade between classes, each row's strongest one back at 1 (survey section 2.5)."""
        labels = self.labels.view
        far = far_distance(self.growth.target_weight)
        faded = membership * code_factors(labels[rows][:, None], labels[index], UNKNOWN_DISTANCE, far)
        strongest = faded.max(axis=1, keepdims=True, initial=0.0)
        return (faded / np.where(strongest > 0, strongest, 1.0)).astype(np.float32)

    def _is_due(self) -> bool:
        """Whether the map is to be made, or made anew."""
        n = self.graph.n
        if not self.founders:
            return n > 0 and (n >= FOUNDERS or n == self.search.n)
        return self.founders < FOUNDERS and n >= 2 * self.founders

    def _found(self) -> None:
        """The first map, by a start for all rows; one that replaces another is turned towards it."""
        n, growth = self.graph.n, self.growth
        rows = self.search.rows[:n]
        task = InitialTask(self.whole_graph(), rows, growth.n_components, growth.seed, growth.n_jobs)
        places, self.init_used = initial_embedding(growth.init, task)
        if self.founders:
            known = np.arange(self.n_placed)
            places = aligned_to(places, known, self.places.view, scaled=False).astype(np.float32)
        self._append(places[self.n_placed :])
        self.places.view[:] = places
        self.founders = n
        self.wake(default_epochs(n))

    def _place_new(self) -> None:
        """Rows without a place start at that of their nearest neighbour which has one, plus Gaussian noise."""
        known, n = self.n_placed, self.graph.n
        if known == n:
            return
        rng = np.random.default_rng([self.growth.seed, known])
        rows = np.arange(known, n)
        index = self.search.table_of(rows)[0]
        self._append(np.full((n - known, self.growth.n_components), np.nan, np.float32))
        places, waiting = self.places.view, rows
        while waiting.size:
            tails = index[waiting - known]
            there = (tails >= 0) & np.isfinite(places[tails, 0])
            nearest = np.argmax(there, axis=1)[:, None]
            found = np.take_along_axis(there, nearest, axis=1)[:, 0]
            places[waiting[found]] = places[np.take_along_axis(tails, nearest, axis=1)[found, 0]]
            waiting = waiting[~found]
            if waiting.size and not found.any():
                places[waiting[0]] = _beside(places[:known], rng)
                waiting = waiting[1:]
        places[known:] += rng.normal(scale=NOISE, size=(n - known, places.shape[1]))
        if self.growth.move_all:
            self.wake(self.growth.updated_epochs)

    def _append(self, places: NDArray[np.float32]) -> None:
        self.places.append(places)
        self.age.append(np.zeros(len(places), np.int32))
        n_epochs = max(self.growth.new_epochs, self._shared_epochs(len(places)))
        self.left.append(np.full(len(places), n_epochs, np.int32))


def _bytes_of(value: Any) -> int:
    if isinstance(value, dict):
        return sum(_bytes_of(item) for item in value.values())
    return int(value.nbytes) if isinstance(value, np.ndarray) else 0


def _beside(places: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float64]:
    """A place outside of a map, in a random direction."""
    low, high = places.min(axis=0), places.max(axis=0)
    direction = rng.normal(size=places.shape[1:])
    direction /= np.linalg.norm(direction)
    return np.asarray((low + high) / 2 + BESIDE * direction * max(float((high - low).max()) / 2, 1.0))
