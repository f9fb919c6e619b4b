"""Neighbors by overlapping cells: rows are spread over cells of similar rows, and searched cell by cell.

A sample of the rows gives the centers of the cells. A row belongs to its nearest cell and visits the next nearest ones
if they are not much farther. Each cell is searched on its own, and the lists of a row, one from each of its cells, are
merged. Two searches work like this: that of a cluster (`Cells`, one cell after the other), and that of rows that are
larger than a device (`GroupSearch`, as many cells at a time as the device can hold).

The search of a cluster is a function of the rows, their numbers and the seed: how rows are split into blocks has no
effect, because the nearest centers of a row do not depend on the other rows of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import Place, backend_of, cpu
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.rows import DuplicateRows, Preparation, stack_rows
from vicinal.neighbors.search import regular_rows
from vicinal.neighbors.table import Neighbors

# A cell owns about CELL_ROWS rows, more if there would be more than MOST_CELLS cells. Centers are made of a sample of
# SAMPLE_PER_CELL rows per cell. A row belongs to its nearest cell, and visits the next nearest ones if they are at most
# REACH times as far.
CELL_ROWS, MOST_CELLS, SAMPLE_PER_CELL, REACH = 3_000, 6_000, 64, 1.2
# In a cluster, up to WHOLE_ROWS rows are one cell. Cells of long rows are smaller: their rows take CELL_BYTES; visitors
# come on top.
WHOLE_ROWS, CELL_BYTES, LEAST_CELL_ROWS = 60_000, 3 << 25, 2_000
# Small cells are cheap, because all their pairs are compared, and more visits make up for the neighbors that lie beyond
# their borders. Recall, and processor time of the search, of (rows per cell, visits):
#   mixture of 200 clusters, 100,000 x 64    (6000, 3) 0.988, 15.0 s   (3000, 3) 0.980, 8.8 s   (2000, 4) 0.994, 10.4 s
#   normal noise, 60,000 x 16                (6000, 3) 0.984,  6.9 s   (3000, 3) 0.946, 4.8 s   (3000, 4) 0.985,  6.2 s
MOST_VISITS = 4
LLOYD_ROUNDS = 6
ROWS_PER_LANDMARK, MOST_LANDMARKS = 10, 20_000
MERGED_ROWS = 4096  # rows whose lists are merged at a time


def within_reach(distance: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Tell which cells rows belong to or visit, given the distances of the nearest centers in ascending order."""
    visited: NDArray[np.bool_] = distance <= np.float32(REACH) * distance[:, :1]
    return visited


def cell_count(n: int, d: int) -> int:
    """Return the number of cells of ``n`` rows of ``d`` columns."""
    if n <= WHOLE_ROWS:
        return 1
    rows = min(CELL_ROWS, max(LEAST_CELL_ROWS, CELL_BYTES // (4 * d)))
    return min(MOST_CELLS, -(-n // rows))


def sample_numbers(n: int, cells: int, seed: int) -> NDArray[np.int64]:
    """Return the numbers of the rows, in ascending order, that the cells are made from."""
    most = min(n, max(SAMPLE_PER_CELL * cells, min(MOST_LANDMARKS, n // ROWS_PER_LANDMARK)))
    if 2 * most >= n:
        return np.arange(n)
    return np.unique(np.random.default_rng([seed, 0]).integers(n, size=most))


@dataclass(frozen=True, eq=False)
class Cells:
    """Centers of cells, rows of the sample that each cell owns (its landmarks), and the metric.

    The landmarks of cell c are the rows ``bounds[c] : bounds[c + 1]`` of ``landmarks``.
    """

    centers: Rows
    landmarks: Rows
    bounds: NDArray[np.int64]
    metric: Any = "euclidean"
    metric_kwds: dict[str, Any] | None = None
    seed: int = 0

    @property
    def count(self) -> int:
        return int(self.centers.shape[0])

    @classmethod
    def of(
        cls,
        sample: Rows,
        count: int,
        metric: Any = "euclidean",
        metric_kwds: Any = None,
        seed: int = 0,
        n_jobs: int = 1,
    ) -> Cells:
        """Make ``count`` cells of a sample by Lloyd's algorithm; of sparse rows, some are centers as they are."""
        m = int(sample.shape[0])
        count = min(count, m)
        chosen = np.sort(np.random.default_rng([seed, 1]).permutation(m)[:count])
        centers = sample[chosen]
        if count > 1 and not is_sparse(sample):
            some = _every_so_many(sample, SAMPLE_PER_CELL * count)
            for _ in range(LLOYD_ROUNDS):
                owner = _nearest(centers, some, 1, metric, metric_kwds, n_jobs)[0][:, 0]
                centers = _means(some, owner, centers)
        landmarks = _every_so_many(sample, MOST_LANDMARKS)
        owner = _nearest(centers, landmarks, 1, metric, metric_kwds, n_jobs)[0][:, 0]
        order = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[order], np.arange(count + 1)).astype(np.int64)
        return cls(centers, landmarks[order], bounds, metric, metric_kwds, seed)

    def visits(self, rows: Rows, n_jobs: int = 1) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
        """Return the nearest cells of each row, its own first, and which of them the row belongs to or visits."""
        wanted = min(MOST_VISITS, self.count)
        index, distance = _nearest(self.centers, rows, wanted, self.metric, self.metric_kwds, n_jobs)
        return index, within_reach(distance)

    def nearest_landmark(self, cell: int, rows: Rows, n_jobs: int = 1) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the nearest landmark of a cell for rows, and its distance; at infinity if the cell has none."""
        begin, end, m = int(self.bounds[cell]), int(self.bounds[cell + 1]), int(rows.shape[0])
        if end == begin:
            return np.full(m, max(begin - 1, 0), np.int32), np.full(m, np.inf, np.float32)
        index, distance = _nearest(self.landmarks[begin:end], rows, 1, self.metric, self.metric_kwds, n_jobs)
        return index[:, 0] + np.int32(begin), distance[:, 0]


@dataclass(frozen=True)
class CellLists:
    """Lists of the rows of one cell: ``rows`` in ascending order, their neighbors by row number, and more.

    ``first`` is the first row of the same content, -1 for visitors; ``landmark`` the nearest landmark of the cell.
    """

    rows: NDArray[np.int32]
    index: NDArray[np.int32]
    distance: NDArray[np.float32]
    first: NDArray[np.int32]
    landmark: NDArray[np.int32]
    landmark_distance: NDArray[np.float32]


def search_cell(
    cells: Cells, cell: int, numbers: NDArray[np.int32], own: NDArray[np.bool_], rows: Rows, k: int, n_jobs: int = 1
) -> CellLists:
    """Find the k nearest rows within a cell for all of its rows, given in ascending order of their numbers."""
    index = NeighborIndex.from_checked(
        rows, cells.metric, metric_kwds=cells.metric_kwds, seed=cells.seed, n_jobs=n_jobs
    )
    table = index.search(min(k, len(numbers)))
    found = np.where(table.index >= 0, numbers[table.index], np.int32(-1))
    missing = ((0, 0), (0, k - table.k))
    equal = numbers[DuplicateRows(rows, n_jobs).first]
    return CellLists(
        numbers,
        np.pad(found, missing, constant_values=-1),
        np.pad(table.distance, missing, constant_values=np.inf),
        np.where(own, equal, np.int32(-1)),
        *cells.nearest_landmark(cell, rows, n_jobs),
    )


def merged_lists(
    first: int, stop: int, lists: CellLists, k: int
) -> tuple[Neighbors, NDArray[np.int32], NDArray[np.int32]]:
    """Merge the lists of the rows from ``first`` to ``stop``; also return their first equal rows and landmarks."""
    order = np.argsort(lists.rows, kind="stable")
    rows = lists.rows[order] - np.int32(first)
    begin = np.searchsorted(rows, np.arange(stop - first + 1))
    counts = np.diff(begin)
    out = Neighbors(np.empty((stop - first, k), np.int32), np.empty((stop - first, k), np.float32))
    for count in range(1, int(counts.max(initial=1)) + 1):
        every = np.flatnonzero(counts == count)
        for several in np.array_split(every, -(-len(every) // MERGED_ROWS) or 1):
            at = order[begin[several][:, None] + np.arange(count)]
            wide = lists.index[at].reshape(len(several), -1), lists.distance[at].reshape(len(several), -1)
            out.index[several], out.distance[several] = (
                wide if count == 1 else nearest_of_lists(several + first, *wide, k)
            )
    equal = lists.first[order]
    own = equal >= 0
    firsts = np.empty(stop - first, np.int32)
    firsts[rows[own]] = equal[own]
    landmark = lists.landmark[order]
    nearest = np.lexsort((landmark, lists.landmark_distance[order], rows))[begin[:-1]]
    return out, firsts, landmark[nearest]


def nearest_of_lists(
    rows: NDArray[np.int64], index: NDArray[np.int32], distance: NDArray[np.float32], k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k nearest of several lists, each row itself first, no row twice."""
    rank = np.where(index == rows[:, None], np.float32(-1), distance)
    order = np.lexsort((rank, index), axis=1)
    index, rank = np.take_along_axis(index, order, axis=1), np.take_along_axis(rank, order, axis=1)
    again = np.zeros(index.shape, dtype=bool)
    again[:, 1:] = index[:, 1:] == index[:, :-1]
    rank = np.where(again | (index < 0), np.float32(np.inf), rank)
    order = np.lexsort((index, rank), axis=1)[:, :k]
    index, rank = np.take_along_axis(index, order, axis=1), np.take_along_axis(rank, order, axis=1)
    return np.where(np.isinf(rank), np.int32(-1), index), np.maximum(rank, np.float32(0))


def joined_rows(pieces: list[Rows]) -> Rows:
    """Join pieces of rows."""
    return pieces[0] if len(pieces) == 1 else stack_rows(*pieces)


def _every_so_many(sample: Rows, most: int) -> Rows:
    """Return at most ``most`` rows of a sample, at equal distances in it."""
    m = int(sample.shape[0])
    count = min(m, most)
    return sample[regular_rows(m, count)]


def _nearest(
    centers: Rows, rows: Rows, k: int, metric: Any, metric_kwds: Any, n_jobs: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the k nearest centers of rows, by comparing them with all centers."""
    count = int(centers.shape[0])
    if count == 1:
        return np.zeros((rows.shape[0], 1), np.int32), np.zeros((rows.shape[0], 1), np.float32)
    index = NeighborIndex.from_checked(centers, metric, metric_kwds=metric_kwds, n_jobs=n_jobs)
    found = index.query(rows, k, _EdgelessGraph(count))
    return found.index, found.distance


class _EdgelessGraph:
    """A graph of ``n`` rows without edges: queries that compare all rows do not follow any."""

    place: Place = None

    def __init__(self, n: int) -> None:
        self.indptr = np.zeros(n + 1, dtype=np.int64)
        self.indices = np.empty(0, dtype=np.int32)

    def array(self, name: str) -> Any:
        """Return ``indptr`` or ``indices``."""
        return getattr(self, name)


def _means(sample: NDArray[np.float32], owner: NDArray[np.int32], before: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the rows of each cell, in double precision; a cell without rows keeps its center."""
    order = np.argsort(owner, kind="stable")
    bounds = np.searchsorted(owner[order], np.arange(len(before) + 1))
    means = before.copy()
    for cell in np.flatnonzero(np.diff(bounds)):
        means[cell] = sample[order[bounds[cell] : bounds[cell + 1]]].mean(axis=0, dtype=np.float64)
    return means


Search = Callable[[NDArray[np.float32], int], Neighbors]

# Groups have at least CELLS_PER_GROUP cells, of fewer rows than CELL_ROWS if need be; a row visits GROUP_VISITS cells.
CELLS_PER_GROUP, GROUP_VISITS = 32, 3
BLOCK_ROWS = 1 << 16  # rows that are sent to the device, or copied, at a time


@dataclass(frozen=True, eq=False)
class GroupSearch:
    """A search of rows of the host that a device cannot hold: groups of cells, one after the other.

    ``preparation`` says how rows are prepared for their metric, ``room`` how many the device can search at a time.
    """

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
        return Neighbors.at(self.place, *merged.table())

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

    def _assigned(self) -> _Groups:
        """Return the cells, and which of them every row visits."""
        n, backend, core = len(self.rows), backend_of(self.place), self.preparation.metric.core
        most = max(2, min(n, self.room // 2))
        count = min(max(CELLS_PER_GROUP * -(-n // self.room), n // CELL_ROWS), MOST_CELLS, most)
        size = min(most, SAMPLE_PER_CELL * count)
        found = backend.centers(self._sent(self.rows[regular_rows(n, size)]), core, count)
        visited = np.empty((n, min(GROUP_VISITS, count)), np.int32)
        distance = np.empty(visited.shape, np.float32)
        step = min(BLOCK_ROWS, self.room)
        for first in range(0, n, step):
            block = slice(first, first + step)
            sent = self._sent(self.rows[block])
            visited[block], distance[block] = backend.nearest_centers(found, sent, core, visited.shape[1])
        visited = np.where(within_reach(distance), visited, np.int32(-1))
        away = (distance / np.maximum(distance[:, :1], np.float32(1e-6))).astype(np.float32, copy=False)
        return _Groups(self.place.to_numpy(found.centers), visited, away)

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
class _Groups:
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
