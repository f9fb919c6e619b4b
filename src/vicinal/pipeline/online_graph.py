"""The fuzzy graph of rows that arrive over time: steps search to supervise of a growing map.

Rows are queued by ``insert``. ``search`` finds the neighbors of some of them. ``changes`` computes rho, sigma and p
(eq. 1-4) of the rows searched and of given others, whose neighbors changed, and ``apply`` writes them to the graph.
Each costs time proportional to the rows concerned. The lists of all other rows whose neighbors changed are stale: they
are computed when their rows are to move. A row's neighbors change a dozen times while a map grows tenfold, mostly a
little.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import UNKNOWN_DISTANCE, UNLABELED, Supervision, class_code, code_factors, far_distance
from vicinal.layout.forces import Kernel
from vicinal.layout.schedule import DECAY, SMALL_ROWS, Schedule, default_longest_push, default_single
from vicinal.neighbors.metrics import ALIASES, Rows, is_bounded, is_non_negative, unrelated_distance
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.rows import FirstEqualRows, Hashes, hash_rows
from vicinal.neighbors.table import Neighbors
from vicinal.pipeline.recipe import Affinity, Plan
from vicinal.pipeline.row_options import unlabeled
from vicinal.runtime.cached import GrowingArray
from vicinal.runtime.interruption import deferred_interrupts

# The first map is made when FIRST_ROWS rows have neighbors, or earlier if no more are queued. A map of fewer rows than
# FIRST_MAP_ROWS is made anew each time their number has doubled, because a handful of rows does not represent the rest.
# Accuracy of the last map of a stream, Fashion-MNIST, 6 seeds: 0.773 with 1,000 rows, 0.778 with 4,000 or more.
FIRST_ROWS, FIRST_MAP_ROWS = 1000, 4000
# Rows that are mostly neighbors of each other belong where the map has no room for them yet: rows in the order of a
# grid, of time, of a class. When a batch of them is LARGE_SHARE of the rows, or several
# batches are ELSEWHERE_SHARE, all rows start anew, up to MOST_REMADE of them.
# Trustworthiness of a grid in raster order, 4 seeds: 0.988 without, 0.9997 with. The rows since the last start count
# together, so that the size of the batches does not matter. Digits sorted by class in batches of 50: 0.976 if only the
# rows of one batch count, 0.984 with a share of 0.1, 0.987 with 0.05; a fit to all rows has 0.988.
ELSEWHERE_SHARE, MOST_REMADE = 0.05, 10_000
# A row with fewer epochs left has a reduced learning rate: (left / FULL_EPOCHS)^1.5 of the full one.
FULL_EPOCHS = 80
SWEEPS = 2  # per epoch; most rows of a round rest, so more sweeps gain little
# An epoch of a small map does the work of four: its rows need more moves at small rates, and they are cheap. Streams of
# digits and of a tree, (sweeps, work): recall@15 and loss J (2, 1) 0.519, 5,342 and 0.815, 3,488; (8, 4) 0.537, 5,244
# and 0.828, 3,274; (16, 4) 0.534, 5,239 and 0.829, 3,121; a fit 0.537, 5,215 and 0.830, 3,069.
SMALL_SWEEPS, SMALL_FIRINGS = 16, 4.0
# A batch that is a large share of the map, at least LARGE_SHARE, changes the map as a whole: new and updated rows then
# move for that share of SHARED_EPOCHS.
SHARED_EPOCHS, LARGE_SHARE = 400, 0.1
# Epochs of all rows when they start as in a fit. Nothing moves for longer at once.
FIRST_EPOCHS = 100
# Rows that move while most others rest cannot rearrange a map. So all rows move together, for WHOLE_EPOCHS, whenever
# the map has doubled. Fashion-MNIST in batches of 1,000, 10-NN accuracy of the last map, 6 seeds: 0.775 with 70 epochs
# (4.2 s), 0.780 with 100 (4.5 s); a fit to all rows 0.783.
WHOLE_EPOCHS = 80


def first_map_is_due(first_map_rows: int, n: int, n_inserted: int) -> bool:
    """Return whether a map is to be made from ``n`` rows, of which the last one was made from ``first_map_rows``."""
    if not first_map_rows:
        return n > 0 and (n >= FIRST_ROWS or n == n_inserted)
    return first_map_rows < FIRST_MAP_ROWS and n >= 2 * first_map_rows


def may_start_anew(n_new: int, n: int, share: float) -> bool:
    """Return whether a map of ``n`` rows starts anew if its last ``n_new`` rows are elsewhere."""
    return n <= MOST_REMADE and n_new >= share * n


def has_doubled(before: int, n: int) -> bool:
    return (n // FIRST_MAP_ROWS).bit_length() > (before // FIRST_MAP_ROWS).bit_length()


@dataclass(frozen=True)
class Pace:
    """For how many epochs new and updated rows move, and whether all others move with them.

    With a ``window``, the oldest rows leave when there are more than this many.
    """

    new_epochs: int = 18
    updated_epochs: int = 18
    move_all: bool = False
    window: int | None = None

    def shared_epochs(self, n_new: int, n: int) -> int:
        """Return the epochs of new and updated rows if ``n_new`` of ``n`` are new; 0 if this is a small share."""
        return min(round(SHARED_EPOCHS * n_new / n), FIRST_EPOCHS) if n_new >= LARGE_SHARE * n else 0


def growing_schedule(plan: Plan, n: int) -> Schedule:
    """Return the schedule by which rows of a growing map of ``n`` rows move."""
    whole = plan.refinement(FULL_EPOCHS, n, rate=1.0)
    if n <= SMALL_ROWS:
        pace = replace(
            whole, sweeps=SMALL_SWEEPS, firings=SMALL_FIRINGS, decay=DECAY, longest_push=default_longest_push(n)
        )
    else:
        pace = replace(whole, sweeps=SWEEPS, single_negative_share=default_single(n))
    return replace(pace, update_negatives=False)


def piece_gap(kernel: Kernel) -> float:
    """Return the distance between pieces of a map that nothing connects: four times that at which q of eq. 5 is 1/2."""
    return float(4.0 * kernel.a ** (-0.5 / kernel.b))


# Keeps each row's memberships and which rows list it; `edges(rows)` returns the symmetric edges of some rows.
GrowingGraph = cpu.GrowingGraph


CLASSES, LEVELS = "categorical", "ordinal"
# The order of the norm of a difference, by the metric of numbers.
NORMS = {LEVELS: 1.0, "euclidean": 2.0, "manhattan": 1.0, "chebyshev": np.inf}
TARGET_METRICS = (CLASSES, *NORMS, *(alias for alias, name in ALIASES.items() if name in NORMS))
# Numbers this many standard deviations apart are as different as two classes.
DEVIATIONS = 4.0

Factors = NDArray[np.float64]


class ClassLabels:
    """Classes of all rows, in the order of their arrival; -1, NaN or None if the class of a row is unknown."""

    def __init__(self, target_weight: float) -> None:
        self._far = far_distance(target_weight)
        self._codes = GrowingArray(np.empty(0, np.int64))
        self._classes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def is_known(self) -> bool:
        """Whether any row has a label."""
        return bool(self._classes)

    def extended(self, y: NDArray[Any] | None, n: int) -> tuple[NDArray[np.int64], dict[Any, int]]:
        """Compute what ``append`` needs to add the labels of ``n`` rows. It allocates the memory for them."""
        classes, codes = self._classes, np.full(n, UNLABELED, dtype=np.int64)
        if y is not None:
            classes = dict(classes)
            codes[:] = [class_code(label, classes) for label in y.tolist()]
        self._codes.reserve(len(self) + n)
        return codes, classes

    def append(self, extension: tuple[NDArray[np.int64], dict[Any, int]]) -> None:
        codes, self._classes = extension
        self._codes.append(codes)

    def keep(self, rows: NDArray[np.int32]) -> None:
        """Remove the labels of all but some rows, and classes that no row has any more."""
        used, codes = np.unique(self._codes.view[rows], return_inverse=True)
        names = list(self._classes)
        known = used[used != UNLABELED]
        self._classes = {names[code]: number for number, code in enumerate(known.tolist())}
        renumbered = codes.reshape(-1) + (UNLABELED if len(known) < len(used) else 0)
        self._codes = GrowingArray(renumbered.astype(np.int64))

    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        """Return the factors of the edges from some rows to the rows in their lists."""
        codes = self._codes.view
        return code_factors(codes[rows][:, None], codes[index], UNKNOWN_DISTANCE, self._far)

    def given(self, n: int) -> NDArray[Any] | None:
        """Return the labels of the first ``n`` rows as they were given, or None if all are unknown."""
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
        """Raise ValueError if the labels contradict each other."""
        codes = self._codes.view
        if codes.max(initial=-1) >= len(self._classes) or codes.min(initial=-1) < UNLABELED:
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

    def keep(self, rows: NDArray[np.int32]) -> None:
        self._numbers = self._numbers.taken(rows)

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


def online_targets(metric: str, target_weight: float) -> ClassLabels | NumberTargets:
    """Return an empty list of labels that are compared by ``metric``, one of ``TARGET_METRICS``."""
    return ClassLabels(target_weight) if metric == CLASSES else NumberTargets(metric, target_weight)


# Initial estimate of seconds per row searched, including the refreshes that it causes.
SECONDS_PER_SEARCH = 2e-4
# Rows are searched for about this many seconds between two interrupts, in multiples of the core's chunk, and at most
# this many at a time.
SEARCH_SECONDS, CHUNK, MOST_SEARCHES = 0.2, 128, 1024

COLUMNS = ("rho", "sigma", "first", "stale", "alone")


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

    def __init__(self, search: OnlineNeighbors, affinity: Affinity, labels: Supervision, n_jobs: int = -1) -> None:
        self.neighbors, self.affinity, self.labels, self.n_jobs = search, affinity, labels, n_jobs
        self.lists = GrowingGraph(search.k, affinity.set_op_mix_ratio)
        self.targets = online_targets(labels.metric, labels.weight)
        self.unrelated: float | None = None  # the distance of rows with nothing in common, by the rows inserted so far
        self.rho, self.sigma = GrowingArray(np.empty(0, np.float32)), GrowingArray(np.empty(0, np.float32))
        self.first = GrowingArray(np.empty(0, np.int32))  # the first row with the same content, often the row itself
        self.stale = GrowingArray(np.empty(0, np.bool_))  # whether the neighbors of a row are newer than its list
        self.alone = GrowingArray(np.empty(0, np.bool_))  # whether a row has no member in its own list
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
        extension: Any = self.targets.extended(batch.y, batch.rows.shape[0])
        unrelated = self._unrelated_with(batch.rows)
        with deferred_interrupts():
            if batch.largest is None:
                self.neighbors.insert(batch.rows)
            else:
                self.neighbors.insert_checked(batch.rows, batch.largest)
            self.targets.append(extension)
            if unrelated != self.unrelated:
                self.unrelated = unrelated
                self.stale.view[:] = True  # neighbors were cut at another distance

    def queue_searched(self, rows: Rows, neighbors: Neighbors) -> None:
        """Queue the first rows, whose neighbors are known."""
        self.insert(Batch(rows))
        self.neighbors.adopt(neighbors)

    def _unrelated_with(self, rows: Rows) -> float | None:
        """Return the distance of rows with nothing in common if ``rows`` join the others.

        Cosine distances are cut at 1 as long as no number is negative, so a batch with negative numbers changes the
        cut-off of all rows.
        """
        metric = self.neighbors.metric
        found = unrelated_distance(metric, is_bounded(metric) and is_non_negative(rows))
        return found if not self.neighbors.n or found == self.unrelated else unrelated_distance(metric, False)

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
        self._changed = [union(self._changed)]
        return self._changed[0][: np.searchsorted(self._changed[0], self.n)]

    def all_stale(self) -> NDArray[np.int64]:
        """Return all rows whose neighbors are newer than their lists."""
        return union([np.flatnonzero(self.stale.view), self.changed()])

    def changes(self, updated: NDArray[np.int64]) -> GraphChange | None:
        """Compute the lists of the rows searched since the last change, and of ``updated`` ones."""
        rows = self.rows_to_compute(updated)
        return self.supervise(self.build(rows, self.relate(rows))) if rows.size else None

    def rows_to_compute(self, updated: NDArray[np.int64]) -> NDArray[np.int32]:
        """Return the rows searched since the last change, then ``updated`` ones."""
        return np.concatenate([np.arange(self.n, self.neighbors.n_searched), updated]).astype(np.int32)

    def relate(self, rows: NDArray[np.int32]) -> Neighbors:
        """Return the neighbors of some rows, cut at the distance of rows with nothing in common or the given one."""
        found = Neighbors(*self.neighbors.table_of(rows))
        return self.affinity.related(found, self.unrelated, max(self.neighbors.n, found.k))

    def build(self, rows: NDArray[np.int32], related: Neighbors) -> GraphChange:
        """Compute the lists of some rows, those that the graph does not have yet first."""
        index, membership, rho, sigma = self.affinity.memberships(rows, related, self.n_jobs)
        known, content = self.n, self.neighbors.rows
        n_new = int(np.count_nonzero(rows >= known))
        new = content[known : known + n_new]
        first, hashes = self._first_equal.find(new, known, lambda which: content[which], self.n_jobs)
        return GraphChange(rows, n_new, rows[n_new:].astype(np.int64), index, membership, rho, sigma, first, hashes)

    def supervise(self, change: GraphChange) -> GraphChange:
        """Reduce memberships of different labels, and scale the strongest one of each row to 1 (survey section 2.5)."""
        if not self.targets.is_known:
            return change
        reduced = change.membership * self.targets.factors(change.rows, change.index)
        strongest = reduced.max(axis=1, keepdims=True, initial=0.0)
        return replace(change, membership=(reduced / np.where(strongest > 0, strongest, 1.0)).astype(np.float32))

    def apply(self, change: GraphChange) -> None:
        """Write a change to the graph. To be called under ``deferred_interrupts``."""
        n, n_new = self.n + change.n_new, change.n_new
        for column in (self.rho, self.sigma, self.first, self.stale, self.alone):
            column.reserve(n)
        alone = np.asarray((change.membership <= 0).all(axis=1))
        self.note_changed()
        self.stale.view[change.updated] = False
        self.stale.append(np.zeros(n_new, np.bool_))
        self.lists.extend(n)
        self.lists.replace(change.rows, change.index, change.membership)
        columns: list[tuple[GrowingArray, NDArray[Any]]] = [
            (self.rho, change.rho),
            (self.sigma, change.sigma),
            (self.alone, alone),
        ]
        for column, values in columns:
            column.append(values[:n_new])
            column.view[change.updated] = values[n_new:]
        self.first.append(change.first)
        self._first_equal.add(change.hashes, n - n_new)
        self.n_equal += int(np.count_nonzero(change.first < change.rows[:n_new]))

    def forget(self, ids: Any) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Remove rows with their edges. To be called under ``deferred_interrupts``, when no change is to be applied.

        Returns
        -------
        tuple
            The rows with edges that stay, by their former numbers, and the rows whose places they show, likewise: a row
            shows that of the first row of the same content.
        """
        gone = self.neighbors.rows_of(ids)
        stay = np.delete(np.arange(self.neighbors.n, dtype=np.int32), gone)
        linked = stay[: np.searchsorted(stay, self.n)]
        shown = self.first.view[linked]
        _, at, content = np.unique(shown, return_index=True, return_inverse=True)
        first = at[content.reshape(-1)].astype(np.int32)
        number = np.full(self.n, -1, np.int32)
        number[shown] = first
        changed = self.neighbors.forget(ids)
        self.lists.keep(linked)
        self.targets.keep(stay)
        for name in COLUMNS:
            setattr(self, name, getattr(self, name).taken(linked))
        self.first = GrowingArray(first)
        self._first_equal.keep(number)
        self.n_equal = int(np.count_nonzero(first < np.arange(len(first))))
        self._changed = [changed]
        return linked, shown

    def emptied(self) -> NDArray[np.int64]:
        """Return the rows whose list lost all members because these left, and that have found others since."""
        if self.neighbors.n_ever == self.neighbors.n:
            return np.empty(0, np.int64)
        empty: NDArray[np.int64] = self.lists.empty_rows()
        empty = empty[~self.alone.view[empty]]
        return empty[self.neighbors.table_of(empty)[0][:, 1] >= 0]

    def note_changed(self) -> None:
        """Mark the rows whose neighbors changed as stale. To be called under ``deferred_interrupts``."""
        self.stale.view[self.changed()] = True
        self._changed = []

    def isolated(self) -> NDArray[np.bool_]:
        """Return which rows have no edge: no member in their own list, and in no list themselves."""
        isolated = self.alone.view.copy()
        rows = np.flatnonzero(isolated).astype(np.int32)
        if rows.size:
            isolated[rows] = self.edges(rows).isolated()
        return isolated

    def edges(self, rows: NDArray[np.int32]) -> Graph:
        """Return the symmetric edges of some rows, to all rows."""
        indptr, indices, weights = self.lists.edges(rows, self.n_jobs)
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
            lists = GrowingGraph(self.neighbors.k, self.affinity.set_op_mix_ratio)
            lists.extend(len(rows))
            lists.replace(rows, index, membership)
        return Graph(*lists.edges(rows, self.n_jobs), self.n, rho, sigma)

    def state(self) -> dict[str, Any]:
        index, membership = self.lists.lists()
        return {
            "search": self.neighbors.state(),
            "unrelated": self.unrelated,
            **self.targets.state(),
            "index": index,
            "membership": membership,
            **{name: getattr(self, name).view.copy() for name in COLUMNS},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], affinity: Affinity, labels: Supervision, n_jobs: int) -> OnlineGraph:
        graph = cls(OnlineNeighbors.from_state(state["search"], n_jobs), affinity, labels, n_jobs)
        graph.unrelated = None if state["unrelated"] is None else float(state["unrelated"])
        index = state["index"]
        graph.lists.extend(len(index))
        graph.lists.replace(np.arange(len(index), dtype=np.int32), index, state["membership"])
        graph.targets.restore(state)
        for name in COLUMNS:
            setattr(graph, name, getattr(graph, name).replaced(name, state[name]))
        if graph.n:
            rows = graph.neighbors.rows[: graph.n]
            graph._first_equal.add(hash_rows(rows, n_jobs), 0)
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


def union(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the distinct numbers of some arrays of ascending, distinct numbers, in ascending order."""
    if len(arrays) == 1:
        return arrays[0]
    # A stable sort merges runs that ascend.
    all_numbers = np.sort(np.concatenate([np.empty(0, np.int64), *arrays]), kind="stable")
    return all_numbers[np.diff(all_numbers, prepend=-1) > 0]
