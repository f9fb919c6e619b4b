"""The neighbor search on a device: dense rows, and metrics that rank by sums or maxima over the columns.

Candidates come from products in half precision, or from all pairs if the data is small. Every distance that is returned
is computed from the rows in float32, in the arithmetic of the CPU (cpp/cuda/neighbors.cu).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.cells import LEAST_KEYS, Cells, find_cells, power_of_two, select_columns
from vicinal.backends.cuda.device import (
    NULL,
    USUAL_KERNELS,
    Defines,
    Device,
    DeviceArray,
    block_bytes,
    column_means,
    launch,
    launch_warps,
)
from vicinal.runtime.cached import cached

# Columns are selected by distances in single precision, which have the same order but more ties; so many more are
# selected than asked for.
SPARE_RANKS = 17


def nearest_columns(device: Device, distance: DeviceArray, k: int) -> NDArray[np.int64]:
    """Return the k columns of each row with the smallest distances, by (distance, column), on the host."""
    wanted = min(k + SPARE_RANKS, int(distance.shape[1]))
    found, _ = select_columns(device, distance.astype(np.float32), wanted)
    columns = device.to_numpy(found).astype(np.int64)
    exact = device.to_numpy(device.xp.take_along_axis(distance, device.asarray(columns), axis=1))
    order = np.lexsort((columns, exact), axis=1)[:, :k]
    return np.take_along_axis(columns, order, axis=1)


def ranks_of(device: Device, distance: DeviceArray, columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ranks, counted from 1, of columns of each row in the order of (distance, column), on the host."""
    rows, n_columns = (int(size) for size in distance.shape)
    k = int(columns.shape[1])
    ranks = device.xp.empty((rows, k), np.int64)
    sizes = np.int64(rows), np.int64(n_columns), device.asarray(columns, np.int64), np.int32(k)
    launch_warps(device.kernel("neighbors", "count_ranks"), rows * k, (distance, *sizes, ranks))
    host: NDArray[np.int64] = device.to_numpy(ranks)
    return host


Found = tuple[DeviceArray, DeviceArray]

# All pairs are compared by products up to so many rows; beyond, the rows of each cell.
PRODUCT_ROWS = 150_000
# Candidates per row beyond the neighbors asked for: half precision orders near rows only roughly.
SPARE, SPARE_OTHER = 17, 113  # products order by squared distances, other ranks need more candidates
# The candidates of a row are sorted in the shared memory of a block.
MOST_NEIGHBORS = 1000
# Rounds over neighbors of neighbors, and how many of each row's neighbors they follow.
ROUNDS, FOLLOWED = 2, 8
# A query visits VISITED cells, keeps SPARE_QUERY rows more than asked for, and follows edges of the nearest rows.
VISITED, SPARE_QUERY, FOLLOWED_EDGES = 8, 8, 12
PACKED_PAD = 128  # numbers that a warp may read beyond the rows of the last cell


@dataclass(frozen=True)
class MetricRule:
    """A line of cpp/neighbors/metric_table.hpp: how a column adds to a rank, and how a rank becomes a distance."""

    rank: str
    finish: int
    prepared: bool = False
    centered: bool = False

    @property
    def defines(self) -> Defines:
        """What kernels are compiled for; squared differences are the default of cpp/cuda/neighbors.cu."""
        return () if self.rank == "Squared" else (("VICINAL_RANK", self.rank),)


# enum class Finish: how a rank becomes a distance.
IDENTITY, ROOT, HALF, HALF_ROOT = range(4)

RULES = {
    "euclidean": MetricRule("Squared", ROOT),
    "sqeuclidean": MetricRule("Squared", IDENTITY),
    "cosine": MetricRule("Squared", HALF, prepared=True),
    "correlation": MetricRule("Squared", HALF, prepared=True, centered=True),
    "hellinger": MetricRule("Squared", HALF_ROOT, prepared=True),
    "manhattan": MetricRule("Absolute", IDENTITY),
    "chebyshev": MetricRule("Maximum", IDENTITY),
}

USUAL_KERNELS.append(("neighbors", RULES["euclidean"].defines))


def ranks_on_device(metric: str, k: int) -> bool:
    """Tell whether a device can find k neighbors by this metric of the core."""
    return metric in RULES and k <= MOST_NEIGHBORS


class Ranked:
    """Rows that are compared, and which of them have no direction (NULL if the metric does not ask)."""

    def __init__(self, rows: DeviceArray, without: DeviceArray) -> None:
        self.rows, self.without = rows, without
        self._columns: DeviceArray | None = None

    def columns(self, device: Device) -> DeviceArray:
        """Return the rows transposed."""
        if self._columns is None:
            self._columns = device.xp.ascontiguousarray(self.rows.T)
        return self._columns


class DenseRows:
    """Dense rows on a device as a metric compares them."""

    def __init__(self, device: Device, rows: DeviceArray, metric: str) -> None:
        self.device, self.rule = device, RULES[metric]
        self.n, given = (int(size) for size in rows.shape)
        # The core compares rows that are not longer than a sketch column by column, longer ones by virtual lanes.
        self.in_order = given <= cpu.SKETCH_WIDTH
        self.without: DeviceArray = NULL
        self.rows = rows
        if self.rule.prepared:
            cols = given + 1 if self.in_order else given
            self.rows, without = device.xp.empty((self.n, cols), np.float32), device.xp.empty(self.n, np.bool_)
            sizes = np.int64(self.n), np.int64(given), np.bool_(self.rule.centered), np.int64(cols)
            self._launch("prepare_rows", self.n, (rows, *sizes, self.rows, without))
            if not self.in_order:
                self.without = without
        self.cols = int(self.rows.shape[1])

    def _launch(self, name: str, n: int, arguments: tuple[object, ...]) -> None:
        launch(self.device.kernel("neighbors", name, self.rule.defines), n, arguments)

    def blocks(self, n: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of heads whose matrix with ``n`` columns is not larger than a block."""
        most = max(1, block_bytes(self.device) // (4 * max(n, 1)))
        for first in range(0, self.n, most):
            yield first, min(first + most, self.n)

    def search_exact(self, k: int) -> Found:
        """Compare all pairs in the arithmetic of the CPU; return the nearest rows of every row, itself first."""
        xp, all_rows = self.device.xp, Ranked(self.rows, self.without)
        index, rank = xp.empty((self.n, k - 1), np.int32), xp.empty((self.n, k - 1), np.float32)
        for first, last in self.blocks(self.n) if k > 1 else ():
            ranks = self._rank_all(all_rows, all_rows, first, last)
            index[first:last], rank[first:last] = select_columns(self.device, ranks, k - 1, skip_from=first)
            del ranks  # before the next ones are made
        return self.table(index, rank)

    def _rank_all(self, heads: Ranked, tails: Ranked, first: int, last: int) -> DeviceArray:
        """Return the ranks of the heads from ``first`` to ``last`` with all tails."""
        n = int(tails.rows.shape[0])
        ranks = self.device.xp.empty((last - first, n), np.float32)
        sizes = np.int64(first), np.int64(last - first), np.int64(n), np.int64(self.cols)
        if self.in_order:
            self._launch("rank_all_short", (last - first) * n, (heads.rows, tails.columns(self.device), *sizes, ranks))
        else:
            kernel = self.device.kernel("neighbors", "rank_all_long", self.rule.defines)
            launch_warps(
                kernel, (last - first) * n, (heads.rows, heads.without, tails.rows, tails.without, *sizes, ranks)
            )
        return ranks

    def search_products(self, k: int) -> Found:
        """Compare all pairs by products in half precision, and rank the best of them."""
        xp = self.device.xp
        center = self.device.asarray(column_means(self.device, self.rows))
        everything = xp.arange(self.n, dtype=np.int32)[None]
        half, bias = self.cells(center[None], everything).halved_all()
        wanted = min(k + (SPARE if self.rule.rank == "Squared" else SPARE_OTHER), self.n)
        index, rank = xp.empty((self.n, k - 1), np.int32), xp.empty((self.n, k - 1), np.float32)
        for first, last in self.blocks(self.n):
            products = self.device.half_products(half[None, first:last], half[None])[0]
            found, _ = select_columns(self.device, products, wanted, bias=bias, sign=-1.0)
            index[first:last], rank[first:last] = self.rank_candidates(found, k - 1, first)
            del products  # before the next ones are made
        return self.table(index, rank)

    @property
    def few(self) -> bool:
        """Whether the products of all pairs cost less than a search by cells."""
        return self.n <= PRODUCT_ROWS

    def last_distances(self, sample: NDArray[np.int64], k: int) -> NDArray[np.float32]:
        """Return the distances of the k-th neighbors, themselves included, of some rows, compared with all rows."""
        xp = self.device.xp
        chosen = self.device.asarray(sample)
        heads, n = self.rows[chosen], len(sample)
        ranks = xp.empty((n, self.n), np.float32)
        kernel = self.device.kernel("neighbors", "rank_all_long", self.rule.defines)
        without = self.without if self.without is NULL else self.without[chosen]
        sizes = np.int64(0), np.int64(n), np.int64(self.n), np.int64(self.cols)
        launch_warps(kernel, n * self.n, (heads, without, self.rows, self.without, *sizes, ranks))
        _, best = select_columns(self.device, ranks, k)
        last: NDArray[np.float32] = self.device.to_numpy(self.distances(xp.ascontiguousarray(best[:, -1])))
        return last

    def search_cells(self, k: int) -> Found:
        """Compare the rows of each cell by products, then follow neighbors of neighbors."""
        xp = self.device.xp
        cells = find_cells(self.device, self.rows)
        index, rank = self.rank_candidates(cells.candidates(k), k - 1)
        for _ in range(ROUNDS):
            near = xp.ascontiguousarray(index[:, :FOLLOWED])
            # A missing neighbor (-1) leads to the last row, which does no harm.
            further = near[near].reshape(self.n, -1)
            candidates = xp.concatenate([index, further], axis=1)
            del further
            index, rank = self.rank_candidates(candidates, k - 1)
        return self.table(index, rank)

    def query(self, heads: DenseRows, k: int, graph: tuple[DeviceArray, DeviceArray]) -> Found:
        """Return the k nearest rows of other rows, each independently of the others.

        A head is compared with all rows of its nearest cells, and then with rows along the edges of the graph.
        """
        xp, found = self.device.xp, self._cells_once
        wanted = min(k + SPARE_QUERY, self.n)
        visited = self._nearest_cells(heads, found)
        size = power_of_two(max(2 * wanted, LEAST_KEYS))
        index, rank = xp.empty((heads.n, wanted), np.int32), xp.empty((heads.n, wanted), np.float32)
        # Heads of the same cell one after the other read the same rows.
        order = xp.argsort(visited[:, 0], kind="stable").astype(np.int64)
        arguments = (
            *(heads.rows, heads.without, self.rows, self.without, self._packed_cells, order),
            *(np.int64(heads.n), np.int64(self.cols), visited, np.int32(visited.shape[1])),
            *(found.members, found.begin, np.int32(wanted), np.int32(size), index, rank),
        )
        kernel = self.device.kernel("neighbors", "rank_cells", self.rule.defines)
        launch_warps(kernel, heads.n, arguments, shared_keys=size)
        indptr, indices = graph
        near = xp.maximum(index[:, :FOLLOWED], 0)
        first, last = indptr[near][:, :, None], indptr[near + 1][:, :, None]
        edge = first + xp.arange(FOLLOWED_EDGES)
        further = xp.where(edge < last, indices[xp.minimum(edge, len(indices) - 1)], np.int32(-1))
        candidates = xp.concatenate([index, further.reshape(heads.n, -1).astype(np.int32)], axis=1)
        index, rank = self.rank_candidates(candidates, k, heads=heads)
        return index, self.distances(rank)

    @cached
    def _cells_once(self) -> Cells:
        """Cells without overlap, which queries visit."""
        return find_cells(self.device, self.rows, overlap=1)

    @cached
    def _packed_cells(self) -> DeviceArray:
        """The rows of the cells column by column, if rows are compared column by column."""
        xp, found = self.device.xp, self._cells_once
        if not self.in_order:
            return NULL
        packed = xp.zeros(self.n * self.cols + PACKED_PAD, np.float32)
        cell_of = xp.searchsorted(found.begin, xp.arange(self.n), side="right").astype(np.int32) - np.int32(1)
        rows = self.rows, np.int64(self.cols), found.members, cell_of
        self._launch("pack_cells", self.n, (*rows, found.begin, np.int64(self.n), packed))
        return packed

    def _nearest_cells(self, heads: DenseRows, found: Cells) -> DeviceArray:
        """Return the cells that each head visits. Ranks are exact, so that they do not depend on the other heads."""
        xp, count = self.device.xp, found.n_cells
        visits = min(VISITED, count)
        out = xp.empty((heads.n, visits), np.int32)
        centers = Ranked(found.centers, self.without if self.without is NULL else xp.zeros(count, np.bool_))
        for first, last in heads.blocks(count):
            ranks = self._rank_all(Ranked(heads.rows, heads.without), centers, first, last)
            out[first:last], _ = select_columns(self.device, ranks, visits)
            del ranks  # before the next ones are made
        return out

    def cells(self, centers: DeviceArray, members: DeviceArray) -> Cells:
        """Return cells with known members, all of them of the same size."""
        begin = self.device.xp.arange(len(centers) + 1, dtype=np.int64) * members.shape[1]
        return Cells(self.device, self.rows, centers, members.reshape(-1), begin)

    def rank_candidates(self, candidates: DeviceArray, k: int, first: int = 0, heads: DenseRows | None = None) -> Found:
        """Return the k best candidates of the heads from ``first`` on, by (rank, index).

        The heads are these rows, which are not candidates of themselves, or other ones.
        """
        xp, source = self.device.xp, self if heads is None else heads
        n, m = (int(size) for size in candidates.shape)
        index, rank = xp.empty((n, k), np.int32), xp.empty((n, k), np.float32)
        size = power_of_two(max(m, 32))
        rows = source.rows, source.without, self.rows, self.without
        own = np.bool_(heads is None)
        arguments = (
            *(*rows, np.int64(first), np.int64(n), np.int64(self.cols), np.bool_(self.in_order)),
            *(xp.ascontiguousarray(candidates), np.int32(m), own, np.int32(k), np.int32(size), index, rank),
        )
        kernel = self.device.kernel("neighbors", "rank_candidates", self.rule.defines)
        launch_warps(kernel, n, arguments, shared_keys=size)
        return index, rank

    def distances(self, rank: DeviceArray) -> DeviceArray:
        """Return the distances of ranks."""
        out = self.device.xp.empty_like(rank)
        self._launch("finish_ranks", int(rank.size), (rank, np.int64(rank.size), np.int32(self.rule.finish), out))
        return out

    def table(self, index: DeviceArray, rank: DeviceArray) -> Found:
        """Return neighbors and distances with the row itself first."""
        xp = self.device.xp
        own = xp.arange(self.n, dtype=np.int32)[:, None]
        distance = self.distances(rank)
        distance[index < 0] = np.inf
        first = xp.zeros((self.n, 1), np.float32)
        return xp.concatenate([own, index], axis=1), xp.concatenate([first, distance], axis=1)


def hash_rows(device: Device, rows: DeviceArray) -> DeviceArray:
    """Return the hash of every row, which depends on its values alone."""
    n, cols = rows.shape
    out = device.xp.empty(n, np.uint64)
    launch(device.kernel("neighbors", "hash_rows"), n, (rows, np.int64(n), np.int64(cols), out))
    return out
