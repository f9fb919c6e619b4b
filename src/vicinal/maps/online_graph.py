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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.fuzzy import local_memberships
from vicinal.graph.graph import Graph
from vicinal.graph.growing import GrowingGraph
from vicinal.maps.growth import Growth
from vicinal.maps.online_targets import online_targets
from vicinal.neighbors.equal_rows import FirstEqualRows, Hashes
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.rows import hash_rows
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.growing_array import GrowingArray
from vicinal.runtime.interruption import deferred_interrupts

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
