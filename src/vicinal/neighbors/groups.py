"""Neighbors of rows that a device cannot hold: overlapping groups of similar rows are searched one after the other.

Rows are spread over many small cells, and a group is a set of cells near each other, as many as the device can hold. A
row is in the groups of its nearest cells: most rows have all of these in one group, and only rows at the border of a
group are in several. The lists that a row gets in its groups are merged. Rows stay in the memory of the host; the
device holds the merged lists, and the rows of one group at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu
from vicinal.neighbors.preparation import Preparation
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.residence import Place

Search = Callable[[NDArray[np.float32], int], Neighbors]

# Cells own about CELL_ROWS rows, fewer if groups would have less than CELLS_PER_GROUP cells, and more if there would be
# more than MOST_CELLS. A row belongs to its nearest cell, and visits the next nearest ones, VISITS in all, if they are
# at most REACH times as far.
CELLS_PER_GROUP, VISITS = 32, 3
BLOCK_ROWS = 1 << 16  # rows that are sent to the device, or copied, at a time


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """Rows of the host, how they are prepared for their metric, and how many rows the device can search at a time."""

    rows: NDArray[np.float32]
    preparation: Preparation
    place: Place
    room: int
    largest: float | None = None

    def run(self, k: int, search: Search) -> Neighbors:
        """Return the k nearest rows of every row, the row itself first; ``search`` returns those of a group."""
        n = len(self.rows)
        merged = backend_of(self.place).merged_lists(n, k)
        for members, found in self._searched(k, search):
            merged.add(members, found.array("index"), found.array("distance"))
        index, distance = merged.table()
        return Neighbors.held(self.place, {"index": index, "distance": distance})

    def _searched(self, k: int, search: Search) -> Iterator[tuple[NDArray[np.int64], Neighbors]]:
        """Yield the rows of every group, in ascending order, with their neighbors within the group."""
        if self.room < 2:
            raise self._does_not_fit()
        cells = self._assigned()
        waiting = [np.arange(len(cells.centers))]
        while waiting:
            chosen = waiting.pop()
            members = cells.members(chosen, self.room)
            if len(members) == 0:
                continue
            if len(members) <= self.room:
                try:
                    yield members, search(self._gathered(members), min(k, len(members)))
                    continue
                except MemoryError:  # the device has less room than was expected
                    if len(chosen) == 1:
                        raise
            if len(chosen) == 1:
                raise self._does_not_fit()
            waiting += cells.halves(chosen)

    def _assigned(self) -> _Cells:
        """Return the cells, and which of them every row visits."""
        n, backend, core = len(self.rows), backend_of(self.place), self.preparation.metric.core
        most = max(2, min(n, self.room // 2))
        count = min(max(CELLS_PER_GROUP * -(-n // self.room), n // CELL_ROWS), MOST_CELLS, most)
        size = min(most, SAMPLE_PER_CELL * count)
        found = backend.centers(self._sent(self.rows[np.arange(size) * n // size]), core, count)
        visited = np.empty((n, min(VISITS, count)), np.int32)
        away = np.empty(visited.shape, np.float32)
        step = min(BLOCK_ROWS, self.room)
        for first in range(0, n, step):
            block = slice(first, first + step)
            sent = self._sent(self.rows[block])
            visited[block], away[block] = backend.nearest_centers(found, sent, core, visited.shape[1])
        return _Cells(self.place.to_numpy(found.centers), np.where(away <= REACH, visited, np.int32(-1)), away)

    def _sent(self, rows: NDArray[np.float32]) -> Any:
        """Return prepared rows on the device."""
        return self.place.asarray(self.preparation.rows(rows, self.largest))

    def _gathered(self, members: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return a copy of some rows, made by several threads."""
        out = np.empty((len(members), self.rows.shape[1]), np.float32)

        def copy(first: int) -> None:
            block = slice(first, first + BLOCK_ROWS)
            np.take(self.rows, members[block], axis=0, out=out[block], mode="clip")  # "raise" would copy twice

        with ThreadPoolExecutor(cpu.resolve_jobs(self.preparation.n_jobs)) as pool:
            list(pool.map(copy, range(0, len(members), BLOCK_ROWS)))
        return out

    def _does_not_fit(self) -> MemoryError:
        return MemoryError(
            f"{len(self.rows)} rows do not fit into the memory of the device, and are too similar to be searched in "
            f"groups: about {self.room} rows would fit, or use device='cpu'"
        )


@dataclass(frozen=True, eq=False)
class _Cells:
    """Centers of cells, the cells of every row (its own first, -1 for none), and how far they are relative to it."""

    centers: NDArray[np.float32]
    visited: NDArray[np.int32]
    away: NDArray[np.float32]

    def members(self, chosen: NDArray[np.int64], room: int) -> NDArray[np.int64]:
        """Return the rows of some cells, in ascending order.

        In data of many dimensions, a cell near the middle of all rows may be visited by most of them. Visitors of a
        single cell that is too large are left out, those that are relatively far first.
        """
        is_chosen = np.zeros(len(self.centers) + 1, dtype=bool)  # the last is -1, no cell
        is_chosen[chosen] = True
        there = is_chosen[self.visited]
        members = np.flatnonzero(there.any(axis=1))
        if len(members) <= room or len(chosen) > 1:
            return members
        away = np.where(there[members], self.away[members], np.inf).min(axis=1)
        away[there[members, 0]] = 0.0
        own = int(there[:, 0].sum())
        return np.sort(members[np.argsort(away, kind="stable")[: max(room, own)]])

    def halves(self, chosen: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Divide cells into two halves with about the same number of rows, along the axis on which they differ most."""
        apart = self.centers[chosen].astype(np.float64)
        apart -= apart.mean(axis=0)
        # The leading principal axis, by the smaller of the two matrices of products.
        if len(chosen) < apart.shape[1]:
            along = np.linalg.eigh(apart @ apart.T)[1][:, -1]
        else:
            along = apart @ np.linalg.eigh(apart.T @ apart)[1][:, -1]
        order = chosen[np.argsort(along, kind="stable")]
        reached = np.cumsum(np.bincount(self.visited[:, 0], minlength=len(self.centers))[order])
        middle = min(max(int(np.searchsorted(reached, reached[-1] / 2)) + 1, 1), len(chosen) - 1)
        return [np.sort(order[:middle]), np.sort(order[middle:])]
