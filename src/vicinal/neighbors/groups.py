"""Neighbors of rows that a device cannot hold: overlapping groups of similar rows are searched one after the other.

The groups are the cells of :mod:`vicinal.neighbors.cells`, as large as the device allows. A row visits the groups whose
centers are nearly as near as the nearest one, and the lists that it gets there are merged. Rows and lists stay in the
memory of the host; the device holds one group at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.cells import MOST_CELLS, MOST_VISITS, Cells, nearest_of_lists, sample_numbers
from vicinal.neighbors.table import Neighbors

Search = Callable[[NDArray[np.float32], int], Neighbors]

# Rows of all groups together, relative to the rows: a row belongs to one group, and visits at most two others.
VISITORS = 2.0
# A group that holds nearly all rows is as hard to search as the rows themselves.
LARGEST_SHARE = 0.9
BLOCK_ROWS = 1 << 16  # rows that are assigned to groups, or whose lists are merged, at a time


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """Rows with their metric, and the number of rows that can be searched at once."""

    rows: NDArray[np.float32]
    metric: Any
    metric_kwds: dict[str, Any] | None
    seed: int
    n_jobs: int
    room: int

    def run(self, k: int, search: Search) -> Neighbors:
        """Return the k nearest rows of every row, the row itself first; ``search`` returns those of a group."""
        n = len(self.rows)
        index, distance = np.full((n, k), -1, np.int32), np.full((n, k), np.inf, np.float32)
        for members in self.groups():
            if len(members) > max(LARGEST_SHARE * n, 1):
                raise MemoryError(
                    f"{n} rows do not fit into the memory of the device, and are too similar to be searched in groups: "
                    f"about {self.room} rows would fit, or use device='cpu'"
                )
            rows, wanted = np.ascontiguousarray(self.rows[members]), min(k, len(members))
            # A group that is still too large is divided in the same way.
            found = search(rows, wanted) if len(rows) <= self.room else replace(self, rows=rows).run(wanted, search)
            _merge(index, distance, members, found)
        return Neighbors(index, distance)

    def groups(self) -> Iterator[NDArray[np.int64]]:
        """Yield the rows of each group, in ascending order."""
        n = len(self.rows)
        count = min(MOST_CELLS, max(2, int(np.ceil(VISITORS * n / max(self.room, 1)))))
        sample = self.rows[sample_numbers(n, count, self.seed)]
        cells = Cells.of(sample, count, self.metric, self.metric_kwds, self.seed)
        visited = self._visits(cells)
        for group in range(cells.count):
            members = np.flatnonzero((visited == group).any(axis=1))
            if len(members):
                yield members

    def _visits(self, cells: Cells) -> NDArray[np.int32]:
        """Return the groups of every row, -1 for those that it does not visit."""
        n = len(self.rows)
        visited = np.full((n, min(MOST_VISITS, cells.count)), -1, np.int32)

        def assign(first: int) -> None:
            block = slice(first, min(first + BLOCK_ROWS, n))
            index, belongs = cells.visits(self.rows[block])
            visited[block] = np.where(belongs, index, np.int32(-1))

        with ThreadPoolExecutor(cpu.resolve_jobs(self.n_jobs)) as pool:
            for _ in pool.map(assign, range(0, n, BLOCK_ROWS)):
                pass
        return visited


def _merge(
    index: NDArray[np.int32], distance: NDArray[np.float32], members: NDArray[np.int64], found: Neighbors
) -> None:
    """Merge the lists of a group, by their numbers in the group, into those of all rows."""
    k = index.shape[1]
    for first in range(0, len(members), BLOCK_ROWS):
        rows = members[first : first + BLOCK_ROWS]
        block = slice(first, first + len(rows))
        near = found.index[block]
        numbers = np.where(near >= 0, members[near], -1).astype(np.int32)
        all_numbers = np.concatenate([index[rows], numbers], axis=1)
        all_distances = np.concatenate([distance[rows], found.distance[block]], axis=1)
        index[rows], distance[rows] = nearest_of_lists(rows, all_numbers, all_distances, k)
