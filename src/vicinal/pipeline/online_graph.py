"""The fuzzy graph of rows that arrive over time.

Rows are queued by ``insert``. ``search`` finds the neighbors of some of them. ``changes`` computes rho, sigma and p
(eq. 1-4) of the rows searched and of given others, whose neighbors changed, and ``apply`` writes them to the graph.
Each costs time proportional to the rows concerned. The lists of all other rows whose neighbors changed are stale: they
are computed when their rows are to move. A row's neighbors change a dozen times while a map grows tenfold, mostly a
little.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.fuzzy import local_memberships
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import UNKNOWN_DISTANCE, UNLABELLED, Supervision, class_code, code_factors, far_distance
from vicinal.layout.forces import Forces, Kernel
from vicinal.layout.schedule import Schedule, default_single
from vicinal.neighbors.metrics import ALIASES, Rows
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.rows import FirstEqualRows, Hashes, hash_rows
from vicinal.neighbors.table import Neighbors
from vicinal.pipeline.recipe import FuzzyAffinity, Recipe, SampledPlan, unlabeled
from vicinal.runtime.cached import GrowingArray
from vicinal.runtime.interruption import deferred_interrupts

# The first map is made when FIRST_ROWS rows have neighbors, or earlier if no more are queued. A map of fewer rows than
# FOUNDERS is made anew each time their number has doubled, because a handful of rows does not represent the rest.
# Accuracy of the last map of a stream, Fashion-MNIST, 6 seeds: 0.773 with 1,000 founders, 0.778 with 4,000 or more.
FIRST_ROWS, FOUNDERS = 1000, 4000
# A large batch of rows that are mostly neighbors of each other belongs where the map has no room for it yet: rows in
# the order of a grid, of time, of a class. All rows then start anew, as long as there are at most MOST_REMADE.
# Trustworthiness of a grid in raster order, 4 seeds: 0.988 without, 0.9997 with.
MOST_REMADE = 10_000
# A row with fewer epochs left has a reduced learning rate: (left / FULL_EPOCHS)^1.5 of the full one.
FULL_EPOCHS = 80
SWEEPS = 2  # per epoch; most rows of a round rest, so more sweeps gain little
# A batch that is a large share of the map, at least LARGE_SHARE, changes the map as a whole: new and updated rows then
# move for that share of SHARED_EPOCHS.
SHARED_EPOCHS, LARGE_SHARE = 400, 0.1
# Epochs of all rows when they start as in a fit.
FIRST_EPOCHS = 300
# Rows that move while most others rest cannot rearrange a map. So all rows move together, for WHOLE_EPOCHS, whenever
# the map has doubled. Fashion-MNIST in batches of 1,000, 10-NN accuracy of the last map, 6 seeds: 0.775 with 70 epochs
# (4.2 s), 0.780 with 100 (4.5 s); a fit to all rows 0.783.
WHOLE_EPOCHS = 80


def first_map_is_due(founders: int, n: int, n_inserted: int) -> bool:
    """Return whether a map is to be made from ``n`` rows, of which the last one was made from ``founders``."""
    if not founders:
        return n > 0 and (n >= FIRST_ROWS or n == n_inserted)
    return founders < FOUNDERS and n >= 2 * founders


def may_start_anew(n_new: int, n: int) -> bool:
    """Return whether a map of ``n`` rows starts anew if ``n_new`` of them, which are new, are elsewhere."""
    return n <= MOST_REMADE and n_new >= LARGE_SHARE * n


def has_doubled(before: int, n: int) -> bool:
    return (n // FOUNDERS).bit_length() > (before // FOUNDERS).bit_length()


@dataclass(frozen=True)
class Growth:
    """How rows are connected and laid out, and for how many epochs they move."""

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
    updated_epochs: int = 18
    move_all: bool = False
    seed: int = 0
    n_jobs: int = -1
    target_metric: str = "categorical"

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.a, self.b)

    @property
    def gap(self) -> float:
        """Distance between pieces of a map that nothing connects: four times that at which q of eq. 5 is 1/2."""
        return float(4.0 * self.a ** (-0.5 / self.b))

    def schedule(self, n: int) -> Schedule:
        """Return the schedule by which rows of a map of ``n`` rows move."""
        return Schedule(
            FULL_EPOCHS,
            self.learning_rate,
            self.negative_sample_rate,
            self.repulsion_strength,
            sweeps=SWEEPS,
            single=default_single(n),
        )

    def affinity(self, k: int) -> FuzzyAffinity:
        """Return how a table of ``k`` neighbors per row becomes a graph."""
        return FuzzyAffinity(k, self.local_connectivity, self.set_op_mix_ratio, self.disconnection_distance)

    def plan(self, placement_seed: int) -> SampledPlan:
        """Return how a map of all rows at once is laid out, and other rows are placed in it."""
        return SampledPlan(
            Forces(self.kernel),
            learning_rate=self.learning_rate,
            negative_sample_rate=self.negative_sample_rate,
            repulsion_strength=self.repulsion_strength,
            placement_seed=placement_seed,
        )

    def recipe(self, k: int, placement_seed: int) -> Recipe:
        """Return the recipe of a fit to all rows at once, with ``k`` neighbors per row."""
        labels = Supervision(
            self.target_metric, weight=self.target_weight, n_neighbors=k, seed=self.seed, n_jobs=self.n_jobs
        )
        return Recipe(self.affinity(k), self.plan(placement_seed), self.n_components, self.init, supervision=labels)

    def shared_epochs(self, n_new: int, n: int) -> int:
        """Return the epochs of new and updated rows if ``n_new`` of ``n`` are new; 0 if this is a small share."""
        return round(SHARED_EPOCHS * n_new / n) if n_new >= LARGE_SHARE * n else 0


# Keeps each row's memberships and which rows list it; `edges(rows)` returns the symmetric edges of some rows.
GrowingGraph = cpu.GrowingGraph


CLASSES, LEVELS = "categorical", "ordinal"
# The order of the norm of a difference, by the metric of numbers.
NORMS = {LEVELS: 1.0, "euclidean": 2.0, "manhattan": 1.0, "chebyshev": np.inf}
TARGET_METRICS = (CLASSES, *NORMS, *(alias for alias, name in ALIASES.items() if name in NORMS))
# Numbers this many standard deviations apart are as different as two classes.
DEVIATIONS = 4.0

Factors = NDArray[np.float64]


class OnlineTargets(Protocol):
    """Labels of all rows, in the order of their arrival; some or all may be unknown."""

    def __len__(self) -> int: ...
    @property
    def is_known(self) -> bool:
        """Whether any row has a label."""

    def extended(self, y: NDArray[Any] | None, n: int) -> Any:
        """Compute what ``append`` needs to add the labels of ``n`` rows. It allocates the memory for them."""

    def append(self, extension: Any) -> None: ...
    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        """Return the factors of the edges from some rows to the rows in their lists."""

    def given(self, n: int) -> NDArray[Any] | None:
        """Return the labels of the first ``n`` rows as they were given, or None if all are unknown."""

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def check(self) -> None:
        """Raise ValueError if the labels contradict each other."""


class ClassLabels:
    """Classes; -1, NaN or None if the class of a row is unknown."""

    def __init__(self, target_weight: float) -> None:
        self._far = far_distance(target_weight)
        self._codes = GrowingArray(np.empty(0, np.int64))
        self._classes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def is_known(self) -> bool:
        return bool(self._classes)

    def extended(self, y: NDArray[Any] | None, n: int) -> tuple[NDArray[np.int64], dict[Any, int]]:
        classes, codes = self._classes, np.full(n, UNLABELLED, dtype=np.int64)
        if y is not None:
            classes = dict(classes)
            codes[:] = [class_code(label, classes) for label in y.tolist()]
        self._codes.reserve(len(self) + n)
        return codes, classes

    def append(self, extension: tuple[NDArray[np.int64], dict[Any, int]]) -> None:
        codes, self._classes = extension
        self._codes.append(codes)

    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        codes = self._codes.view
        return code_factors(codes[rows][:, None], codes[index], UNKNOWN_DISTANCE, self._far)

    def given(self, n: int) -> NDArray[Any] | None:
        if not self._classes:
            return None
        classes = np.array(list(self._classes))
        missing = unlabeled(1, classes)
        known = classes.astype(object) if missing.dtype.kind == "O" else classes
        labels: NDArray[Any] = np.concatenate([known, missing])[self._codes.view[:n]]
        return labels

    def state(self) -> dict[str, Any]:
        return {"labels": self._codes.view.copy(), "classes": list(self._classes)}

    def restore(self, state: dict[str, Any]) -> None:
        self._codes = self._codes.replaced("labels", state["labels"])
        self._classes = {label: number for number, label in enumerate(state["classes"])}

    def check(self) -> None:
        codes = self._codes.view
        if codes.max(initial=-1) >= len(self._classes) or codes.min(initial=-1) < UNLABELLED:
            raise ValueError("a growing map has labels that are no classes")


class NumberTargets:
    """Numbers, one or several per row; NaN if those of a row are unknown.

    Their scale is that of the first batch in which they are not all equal.
    """

    def __init__(self, metric: str, target_weight: float) -> None:
        self._order = NORMS[ALIASES.get(metric, metric)]
        self._far = far_distance(target_weight)
        self._numbers = GrowingArray(np.empty((0, 1)))
        self._scale = 0.0
        self._one_column = True

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def is_known(self) -> bool:
        return self._scale > 0.0

    def extended(self, y: NDArray[Any] | None, n: int) -> tuple[GrowingArray, NDArray[np.float64], float, bool]:
        numbers, scale, one = self._numbers, self._scale, self._one_column
        if y is None:
            values = np.full((n, numbers.view.shape[1]), np.nan)
        else:
            values, one = y.reshape(n, -1), y.ndim == 1
            if values.shape[1] != numbers.view.shape[1]:
                if np.isfinite(numbers.view).any():
                    raise ValueError(
                        f"y must hold {numbers.view.shape[1]} numbers per row as before, got {values.shape[1]}"
                    )
                numbers = GrowingArray(np.full((len(self), values.shape[1]), np.nan))
            known = values[np.isfinite(values).all(axis=1)]
            if not scale and len(known):
                scale = DEVIATIONS * float(np.linalg.norm(known.std(axis=0), self._order))
        numbers.reserve(len(self) + n)
        return numbers, values, scale, one

    def append(self, extension: tuple[GrowingArray, NDArray[np.float64], float, bool]) -> None:
        self._numbers, values, self._scale, self._one_column = extension
        self._numbers.append(values)

    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        numbers = self._numbers.view
        apart = np.linalg.norm(numbers[rows][:, None, :] - numbers[index], self._order, axis=2)
        distance = self._far * np.minimum(apart / self._scale, 1.0)
        return np.exp(-np.where(np.isnan(apart), UNKNOWN_DISTANCE, distance))

    def given(self, n: int) -> NDArray[Any] | None:
        numbers = self._numbers.view[:n]
        if not np.isfinite(numbers).any():
            return None
        return numbers[:, 0].copy() if self._one_column else numbers.copy()

    def state(self) -> dict[str, Any]:
        return {"labels": self._numbers.view.copy(), "classes": [self._scale, self._one_column]}

    def restore(self, state: dict[str, Any]) -> None:
        labels, (scale, one) = state["labels"], state["classes"]
        if not isinstance(labels, np.ndarray) or labels.dtype != np.float64 or labels.ndim != 2 or not labels.shape[1]:
            raise ValueError("a growing map has targets that are no numbers")
        self._numbers, self._scale, self._one_column = GrowingArray(labels), float(scale), bool(one)

    def check(self) -> None:
        if not 0.0 <= self._scale < np.inf or np.isinf(self._numbers.view).any():
            raise ValueError("a growing map has targets that are infinite")


def online_targets(metric: str, target_weight: float) -> OnlineTargets:
    """Return an empty list of labels that are compared by ``metric``, one of ``TARGET_METRICS``."""
    return ClassLabels(target_weight) if metric == CLASSES else NumberTargets(metric, target_weight)


# Initial estimate of seconds per row searched, including the refreshes that it causes.
SECONDS_PER_SEARCH = 2e-4
# Rows are searched for about this many seconds between two interrupts, in multiples of the core's chunk, and at most
# this many at a time.
SEARCH_SECONDS, CHUNK, MOST_SEARCHES = 0.2, 128, 1024

COLUMNS = ("rho", "sigma", "first", "stale")


@dataclass(frozen=True)
class Batch:
    """Rows with labels as ``Supervision.check`` returns them, or without.

    ``largest`` is what ``check_rows`` returned for the rows; with None they are checked when they are inserted.
    """

    rows: Rows
    y: NDArray[Any] | None = None
    largest: float | None = None


@dataclass(frozen=True)
class GraphChange:
    """Lists of ``rows``: the first ``n_new`` are not in the graph yet, the others, ``updated``, are replaced."""

    rows: NDArray[np.int32]
    n_new: int
    updated: NDArray[np.int64]
    index: NDArray[np.int32]
    membership: NDArray[np.float32]
    rho: NDArray[np.float32]
    sigma: NDArray[np.float32]
    first: NDArray[np.int32]
    hashes: Hashes


class OnlineGraph:
    """Rows, their labels and neighbors, and the fuzzy graph of those that were searched."""

    def __init__(self, search: OnlineNeighbors, growth: Growth) -> None:
        self.neighbors, self.growth = search, growth
        self.lists = GrowingGraph(search.k, growth.set_op_mix_ratio)
        self.targets = online_targets(growth.target_metric, growth.target_weight)
        self.rho, self.sigma = GrowingArray(np.empty(0, np.float32)), GrowingArray(np.empty(0, np.float32))
        self.first = GrowingArray(np.empty(0, np.int32))  # the first row with the same content, often the row itself
        self.stale = GrowingArray(np.empty(0, np.bool_))  # whether the neighbors of a row are newer than its list
        self.n_equal = 0  # rows that equal an earlier one
        self._first_equal = FirstEqualRows()
        self.seconds_per_search = SECONDS_PER_SEARCH
        self._changed: list[NDArray[np.int64]] = []  # rows whose neighbors changed since the last change was applied

    @property
    def n(self) -> int:
        """Number of rows with edges, which are the first of those inserted."""
        return int(self.lists.n)

    def insert(self, batch: Batch) -> None:
        """Queue rows."""
        extension = self.targets.extended(batch.y, batch.rows.shape[0])
        with deferred_interrupts():
            if batch.largest is None:
                self.neighbors.insert(batch.rows)
            else:
                self.neighbors.insert_checked(batch.rows, batch.largest)
            self.targets.append(extension)

    def search(self, n_ops: int | None, budget_ms: float | None) -> None:
        """Search and refresh rows in pieces, each of which is completed before an interrupt is raised."""
        stop = np.inf if budget_ms is None else time.perf_counter() + budget_ms / 1e3
        while (n_ops is None or n_ops > 0) and self.neighbors.pending_:
            begin = time.perf_counter()
            if begin >= stop:
                return
            n = min(max(int(SEARCH_SECONDS / self.seconds_per_search) // CHUNK, 1) * CHUNK, MOST_SEARCHES)
            n = n if n_ops is None else min(n, n_ops)
            before = self.neighbors.n_searched
            with deferred_interrupts():
                try:
                    changed = self.neighbors.step(n, None if budget_ms is None else (stop - begin) * 1e3)
                except BaseException:
                    self._changed.append(self.neighbors.step(0).updated)  # what was complete before the error
                    raise
                self._changed.append(changed.updated)
            if self.neighbors.n_searched > before:  # refreshes alone take less time
                self.seconds_per_search = (time.perf_counter() - begin) / (self.neighbors.n_searched - before)
            n_ops = None if n_ops is None else n_ops - n

    def changed(self) -> NDArray[np.int64]:
        """Return the rows of the graph whose neighbors changed since the last change was applied."""
        self._changed = [_union(self._changed)]
        return self._changed[0][: np.searchsorted(self._changed[0], self.n)]

    def all_stale(self) -> NDArray[np.int64]:
        """Return all rows whose neighbors are newer than their lists."""
        return _union([np.flatnonzero(self.stale.view), self.changed()])

    def changes(self, updated: NDArray[np.int64]) -> GraphChange | None:
        """Compute the lists of the rows searched since the last change, and of ``updated`` ones."""
        growth, known, n = self.growth, self.n, self.neighbors.n_searched
        rows = np.concatenate([np.arange(known, n), updated]).astype(np.int32)
        if not rows.size:
            return None
        neighbors = Neighbors(*self.neighbors.table_of(rows))
        index, membership, rho, sigma = local_memberships(
            rows,
            neighbors,
            local_connectivity=growth.local_connectivity,
            disconnection_distance=growth.disconnection_distance,
            n_jobs=growth.n_jobs,
        )
        if self.targets.is_known:
            membership = self._intersected(rows, index, membership)
        content = self.neighbors.rows
        first, hashes = self._first_equal.find(content[known:n], known, lambda which: content[which], growth.n_jobs)
        return GraphChange(rows, n - known, updated, index, membership, rho, sigma, first, hashes)

    def apply(self, change: GraphChange) -> None:
        """Write a change to the graph. To be called under ``deferred_interrupts``."""
        n, n_new = self.n + change.n_new, change.n_new
        for column in (self.rho, self.sigma, self.first, self.stale):
            column.reserve(n)
        self.note_changed()
        self.stale.view[change.updated] = False
        self.stale.append(np.zeros(n_new, np.bool_))
        self.lists.extend(n)
        self.lists.replace(change.rows, change.index, change.membership)
        for column, values in ((self.rho, change.rho), (self.sigma, change.sigma)):
            column.append(values[:n_new])
            column.view[change.updated] = values[n_new:]
        self.first.append(change.first)
        self._first_equal.add(change.hashes, n - n_new)
        self.n_equal += int(np.count_nonzero(change.first < change.rows[:n_new]))

    def note_changed(self) -> None:
        """Mark the rows whose neighbors changed as stale. To be called under ``deferred_interrupts``."""
        self.stale.view[self.changed()] = True
        self._changed = []

    def edges(self, rows: NDArray[np.int32]) -> Graph:
        """Return the symmetric edges of some rows, to all rows."""
        indptr, indices, weights = self.lists.edges(rows, self.growth.n_jobs)
        return Graph(indptr, indices, weights, self.n, self.rho.view[rows], self.sigma.view[rows])

    def whole(self) -> Graph:
        """Return the edges of all rows by their present neighbors; stale lists stay as they are."""
        rows, rho, sigma, lists = np.arange(self.n, dtype=np.int32), self.rho.view, self.sigma.view, self.lists
        if (change := self.changes(self.all_stale())) is not None:
            index, membership = lists.lists()
            rho, sigma = rho.copy(), sigma.copy()
            columns = (index, membership, rho, sigma)
            newer = (change.index, change.membership, change.rho, change.sigma)
            for column, values in zip(columns, newer, strict=True):
                column[change.updated] = values[change.n_new :]
            lists = GrowingGraph(self.neighbors.k, self.growth.set_op_mix_ratio)
            lists.extend(len(rows))
            lists.replace(rows, index, membership)
        return Graph(*lists.edges(rows, self.growth.n_jobs), self.n, rho, sigma)

    def state(self) -> dict[str, Any]:
        index, membership = self.lists.lists()
        return {
            "search": self.neighbors.state(),
            **self.targets.state(),
            "index": index,
            "membership": membership,
            **{name: getattr(self, name).view.copy() for name in COLUMNS},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], growth: Growth) -> OnlineGraph:
        graph = cls(OnlineNeighbors.from_state(state["search"], growth.n_jobs), growth)
        index = state["index"]
        graph.lists.extend(len(index))
        graph.lists.replace(np.arange(len(index), dtype=np.int32), index, state["membership"])
        graph.targets.restore(state)
        # Files of version 0.1 have no stale rows.
        columns = {"stale": np.zeros(len(index), np.bool_), **state}
        for name in COLUMNS:
            setattr(graph, name, getattr(graph, name).replaced(name, columns[name]))
        if graph.n:
            rows = graph.neighbors.rows[: graph.n]
            graph._first_equal.add(hash_rows(rows, growth.n_jobs), 0)
            graph.n_equal = int(np.count_nonzero(graph.first.view < np.arange(len(graph.first))))
        return graph

    def check(self) -> None:
        """Raise ValueError if the parts of the graph contradict each other."""
        lengths = [len(getattr(self, name)) for name in COLUMNS]
        if lengths != [self.n] * len(COLUMNS) or self.n != self.neighbors.n_searched:
            raise ValueError(f"a growing map has edges of {self.n} rows, but columns of {lengths}")
        if len(self.targets) != self.neighbors.n:
            raise ValueError(f"a growing map has {self.neighbors.n} rows, but {len(self.targets)} labels")
        self.targets.check()
        if self.n and not 0 <= int(self.first.view.min()) <= int(self.first.view.max()) < self.n:
            raise ValueError("a growing map has rows that equal a row which does not exist")

    def _intersected(
        self, rows: NDArray[np.int32], index: NDArray[np.int32], membership: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Reduce memberships of different labels, and scale the strongest one of each row to 1 (survey section 2.5)."""
        reduced = membership * self.targets.factors(rows, index)
        strongest = reduced.max(axis=1, keepdims=True, initial=0.0)
        return (reduced / np.where(strongest > 0, strongest, 1.0)).astype(np.float32)


def _union(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the distinct numbers of some arrays of ascending, distinct numbers, in ascending order."""
    if len(arrays) == 1:
        return arrays[0]
    # A stable sort merges runs that ascend.
    all_numbers = np.sort(np.concatenate([np.empty(0, np.int64), *arrays]), kind="stable")
    return all_numbers[np.diff(all_numbers, prepend=-1) > 0]
