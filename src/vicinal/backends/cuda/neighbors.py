"""The neighbor search on a device: dense rows, and metrics that rank by sums or maxima over the columns.

Candidates come from products in half precision, or from all pairs if the data is small. Every distance that is returned
is computed from the rows in float32, in the arithmetic of the CPU (cpp/cuda/neighbors.cu).

Many rows are in overlapping cells: every row belongs to the cells of its nearest centers, and neighbors share a cell.
The centers are found by k-means on a sample. Within a cell rows are compared by products in half precision, relative to
the center of the cell, so that rows of a tight cluster far from the origin are told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.device import (
    NULL,
    USUAL_KERNELS,
    WARP,
    Defines,
    Device,
    DeviceArray,
    block_bytes,
    column_means,
    half_bytes,
    largest_magnitude,
    launch,
    launch_warps,
)
from vicinal.backends.cuda.graph import group_begins
from vicinal.runtime.cached import cached

LEAST_KEYS = 64  # of shared memory per row: two for every entry that is kept, and two per lane


def power_of_two(n: int) -> int:
    """Return the smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()


def select_columns(
    device: Device,
    values: DeviceArray,
    k: int,
    *,
    bias: DeviceArray | None = None,
    sign: float = 1.0,
    skip_from: int = -1,
    batch: tuple[DeviceArray, DeviceArray] | None = None,
) -> tuple[DeviceArray, DeviceArray]:
    """Return the columns of the k smallest ``sign * values + bias`` of every row, by (value, column), and these values.

    Parameters
    ----------
    device : Device
    values : float32 array [rows, columns] or [batches, rows, columns]
    k : int
        Number of columns per row; -1 stands for those that there are not.
    bias : float32 array with an entry per batch and column, optional
        Added to the values.
    sign : float, default 1
        -1 selects the largest values.
    skip_from : int, default -1
        Row r leaves out the column ``skip_from + r``; no row does if it is negative.
    batch : (int32 array [batches], int32 array [batches, columns]), optional
        The number of columns that count in each batch, and the names of the columns, which are returned.
    """
    columns, batch_rows = int(values.shape[-1]), int(values.shape[-2])
    rows = int(values.size) // max(columns, 1)
    index, best = device.xp.empty((rows, k), np.int32), device.xp.empty((rows, k), np.float32)
    valid, names = (NULL, NULL) if batch is None else batch
    size = power_of_two(max(2 * k, LEAST_KEYS))
    arguments = (
        *(values, NULL if bias is None else bias, np.int64(rows), np.int64(columns), np.int64(batch_rows)),
        *(valid, names, np.int64(skip_from), np.float32(sign), np.int32(k), np.int32(size), index, best),
    )
    launch_warps(device.kernel("select_columns"), rows, arguments, shared_keys=size)
    return index, best


class MergedLists:
    """The k nearest rows of n rows, each row itself left out, of those that were added so far."""

    def __init__(self, device: Device, n: int, k: int) -> None:
        self.device, self.n, self.k = device, n, k
        self.index = device.xp.full((n, k - 1), -1, np.int32)
        self.distance = device.xp.empty((n, k - 1), np.float32)

    def add(self, members: NDArray[np.int64], index: DeviceArray, distance: DeviceArray) -> None:
        """Add the table of a group, with the row itself first and rows numbered within the group."""
        found_k, width = int(index.shape[1]), self.k - 1
        if found_k < 2 or width < 1:
            return
        with self.device.active():
            size = power_of_two(max(width + found_k, WARP))
            rows = self.device.asarray(members, np.int64)
            arguments = (
                *(rows, np.int64(len(members)), index, distance, np.int32(found_k), np.int32(width), np.int32(size)),
                *(self.index, self.distance),
            )
            launch_warps(self.device.kernel("merge_lists"), len(members), arguments, shared_keys=size)

    def table(self) -> tuple[DeviceArray, DeviceArray]:
        """Return neighbors and distances with the row itself first; missing neighbors are infinitely far."""
        xp = self.device.xp
        with self.device.active():
            self.distance[self.index < 0] = np.inf
            own, zero = xp.arange(self.n, dtype=np.int32)[:, None], xp.zeros((self.n, 1), np.float32)
            index = xp.concatenate([own, self.index], axis=1)
            return index, xp.concatenate([zero, self.distance], axis=1)


CELL_ROWS = 1000  # rows per center
SAMPLE_PER_CELL = 128  # rows of the sample per center
ITERATIONS = 5  # of k-means
MOST_CELL_ROWS = 16_384  # a larger cell is divided
LONG_ROW, OVERLAP_SHORT, OVERLAP_LONG = 256, 3, 2  # cells per row: products of long rows cost more
PAD_ROWS = 32


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of rows: cell c has the members ``members[begin[c] : begin[c + 1]]``."""

    device: Device
    rows: DeviceArray
    centers: DeviceArray
    members: DeviceArray
    begin: DeviceArray

    @property
    def n_cells(self) -> int:
        return int(self.centers.shape[0])

    @property
    def half_cols(self) -> int:
        """Columns of rows in half precision."""
        return half_bytes(int(self.rows.shape[1])) // 2

    def scales(self) -> DeviceArray:
        """Return factors that give the rows of each cell a length of about 8."""
        scales = self.device.xp.empty(self.n_cells, np.float32)
        sizes = self.members, self.begin, np.int64(self.n_cells)
        arguments = self.rows, np.int64(self.rows.shape[1]), *sizes, self.centers, scales
        launch_warps(self.device.kernel("cell_scales"), self.n_cells, arguments)
        return scales

    def halved(
        self, slots: DeviceArray, batch_rows: int, centers: DeviceArray, scales: DeviceArray
    ) -> tuple[DeviceArray, DeviceArray]:
        """Return the rows of slots in half precision relative to the centers, and half of their squared lengths."""
        xp, n = self.device.xp, int(slots.size)
        half, bias = xp.empty((n, self.half_cols), np.float16), xp.empty(n, np.float32)
        arguments = (
            *(self.rows, np.int64(self.rows.shape[1]), slots, np.int64(n), np.int64(batch_rows)),
            *(xp.ascontiguousarray(centers), xp.ascontiguousarray(scales), np.int64(self.half_cols), half, bias),
        )
        launch_warps(self.device.kernel("halve_rows"), n, arguments)
        return half, bias

    def halved_all(self) -> tuple[DeviceArray, DeviceArray]:
        """Return the rows of the only cell in half precision, and half of their squared lengths."""
        return self.halved(self.members, int(self.members.size), self.centers, self.scales())

    def candidates(self, k: int) -> DeviceArray:
        """Return the nearest rows of every row in each of its cells, by products."""
        xp, device = self.device.xp, self.device
        n, wanted = int(self.rows.shape[0]), k + 1
        overlap = int(self.members.size) // n
        sizes = device.to_numpy(xp.diff(self.begin))
        starts = device.to_numpy(self.begin)
        # Where a membership lies in the table of candidates: the cells of a row one after the other.
        turn = xp.argsort(self.members, kind="stable")
        place = xp.empty_like(turn)
        place[turn] = xp.arange(n * overlap, dtype=turn.dtype)
        out = xp.full((n * overlap, wanted), -1, np.int32)
        scales = self.scales()
        for batch, height in _batches(sizes, self.half_cols, block_bytes(device)):
            cells = xp.asarray(batch)
            offsets = xp.arange(height, dtype=np.int64)[None, :]
            valid = offsets < xp.asarray(sizes[batch])[:, None]
            at = xp.where(valid, xp.asarray(starts[batch])[:, None] + offsets, 0)
            names = xp.where(valid, self.members[at], np.int32(-1)).astype(np.int32)
            half, bias = self.halved(names, height, self.centers[cells], scales[cells])
            shaped = half.reshape(len(batch), height, -1)
            products = device.half_products(shaped, shaped)
            counted = xp.asarray(sizes[batch].astype(np.int32)), names
            found, _ = select_columns(device, products, wanted, bias=bias, sign=-1.0, batch=counted)
            counted_rows = xp.flatnonzero(valid)
            out[place[at.reshape(-1)[counted_rows]]] = found[counted_rows]
            del half, shaped, products  # before the next ones are made
        return out.reshape(n, overlap * wanted)


@dataclass(frozen=True, eq=False)
class Centers:
    """Centers of cells, and the mean of the rows that they were found from."""

    device: Device
    centers: DeviceArray
    mean: DeviceArray

    def nearest(self, rows: DeviceArray, count: int) -> tuple[DeviceArray, DeviceArray]:
        """Return the nearest centers of every row, and their squared distances in a unit of the call.

        Distances come from products in half precision, relative to the mean.
        """
        device, xp = self.device, self.device.xp
        n, n_centers = int(rows.shape[0]), int(self.centers.shape[0])
        every = xp.arange(n, dtype=np.int32)
        whole = Cells(device, rows, self.mean, every, xp.array([0, n], dtype=np.int64))
        among = Cells(device, self.centers, self.mean, every, whole.begin)
        scales = whole.scales()
        half_centers, bias = among.halved(xp.arange(n_centers, dtype=np.int32), n_centers, self.mean, scales)
        out, d2 = xp.empty((n, count), np.int32), xp.empty((n, count), np.float32)
        most = max(1, block_bytes(device) // (4 * n_centers + 2 * whole.half_cols))
        for first in range(0, n, most):
            slots, block = every[first : first + most], slice(first, first + most)
            half, half_length2 = whole.halved(slots, int(slots.size), self.mean, scales)
            products = device.half_products(half[None], half_centers[None])
            out[block], d2[block] = select_columns(device, products, count, bias=bias, sign=-1.0)
            d2[block] = xp.maximum(np.float32(2) * (d2[block] + half_length2[:, None]), np.float32(0))
            del half, products  # before the next ones are made
        return out, d2


def find_centers(device: Device, sample: DeviceArray, count: int, mean: DeviceArray | None = None) -> Centers:
    """Return ``count`` centers of cells of a sample, by k-means; ``mean`` is that of all rows, if it is known."""
    xp = device.xp
    sample_size, cols = (int(size) for size in sample.shape)
    means = sample[xp.arange(count, dtype=np.int64) * sample_size // count]
    if mean is None:
        mean = device.asarray(column_means(device, sample))[None]
    for _ in range(ITERATIONS):
        nearest = Centers(device, means, mean).nearest(sample, 1)[0][:, 0]
        members, begin = _grouped(device, nearest, count)
        means = xp.array(means)
        sizes = members, begin, np.int64(count), means
        kernel = device.kernel("cell_means")
        launch(kernel, count * 128, (sample, np.int64(cols), *sizes), threads=128)
    return Centers(device, means, mean)


def find_cells(device: Device, rows: DeviceArray, overlap: int | None = None) -> Cells:
    """Divide rows into cells: k-means on a sample, then every row joins the cells of its nearest centers.

    ``overlap`` is the number of cells of every row, by default as many as a search of all rows needs.
    """
    xp = device.xp
    n, cols = (int(size) for size in rows.shape)
    count = max(2, n // CELL_ROWS)
    sample_size = min(n, count * SAMPLE_PER_CELL)
    sample = rows[xp.arange(sample_size, dtype=np.int64) * n // sample_size]
    found = find_centers(device, sample, count, device.asarray(column_means(device, rows))[None])
    del sample
    if overlap is None:
        overlap = OVERLAP_LONG if cols > LONG_ROW else OVERLAP_SHORT
    overlap = min(count, overlap)
    order, begin = _grouped(device, found.nearest(rows, overlap)[0].reshape(-1), count)
    return _divided(Cells(device, rows, found.centers, (order // overlap).astype(np.int32), begin))


def _divided(cells: Cells) -> Cells:
    """Return the cells with those that are too large in parts, which share a center."""
    begin = cells.device.to_numpy(cells.begin)
    parts = np.maximum(1, -(-np.diff(begin) // _most_cell_rows(block_bytes(cells.device), cells.half_cols)))
    if parts.max() == 1:
        return cells
    cell = np.repeat(np.arange(len(parts)), parts)
    part = np.arange(len(cell)) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = begin[cell] + np.diff(begin)[cell] * part // parts[cell]
    bounds = cells.device.asarray(np.append(starts, begin[-1]))
    return replace(cells, centers=cells.centers[cells.device.asarray(cell)], begin=bounds)


def _most_cell_rows(block: int, half_cols: int) -> int:
    """Return the most rows of a cell: those whose products, and whose rows in half precision, are one block."""
    # The root of h (4 h + 2 half_cols) = block, less the padding.
    root = int((np.sqrt(4.0 * half_cols * half_cols + 16.0 * block) - 2.0 * half_cols) / 8.0)
    return max(1, min(MOST_CELL_ROWS, root - PAD_ROWS))


def _grouped(device: Device, group: DeviceArray, count: int) -> tuple[DeviceArray, DeviceArray]:
    """Return the positions of the items of each group, one group after the other, and where each begins."""
    members = device.xp.argsort(group, kind="stable").astype(np.int32)
    return members, group_begins(device, group[members], count)


def _batches(sizes: np.ndarray, half_cols: int, block: int) -> list[tuple[np.ndarray, int]]:
    """Return batches of cells of about the same size, and the rows per cell of each batch."""
    order = np.argsort(sizes, kind="stable")[::-1]
    order = order[sizes[order] > 0]
    batches, at = [], 0
    while at < len(order):
        height = -(-int(sizes[order[at]]) // PAD_ROWS) * PAD_ROWS
        count = max(1, block // (height * (4 * height + 2 * half_cols)))
        batches.append((np.ascontiguousarray(order[at : at + count]), height))
        at += count
    return batches


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
    launch_warps(device.kernel("count_ranks"), rows * k, (distance, *sizes, ranks))
    host: NDArray[np.int64] = device.to_numpy(ranks)
    return host


Found = tuple[DeviceArray, DeviceArray]

# Up to this many rows all pairs are compared by products; beyond, only the rows of a cell.
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


# Of enum class Ranking, sums and maxima over the columns; of enum class Finish, the last that a device has.
RANKS, LAST_FINISH = ("Squared", "Absolute", "Maximum"), 3

RULES = {
    name: MetricRule(RANKS[ranking], finish, prepared=preparation > 0, centered=preparation == 2)
    for name, preparation, ranking, finish in cpu.metric_rules()
    if ranking < len(RANKS) and finish <= LAST_FINISH
}

USUAL_KERNELS.append(("rank_candidates", RULES["euclidean"].defines))


def can_search(metric: str, k: int) -> bool:
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
        launch(self.device.kernel(name, self.rule.defines), n, arguments)

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
            kernel = self.device.kernel("rank_all_long", self.rule.defines)
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
        kernel = self.device.kernel("rank_all_long", self.rule.defines)
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
        kernel = self.device.kernel("rank_cells", self.rule.defines)
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
        kernel = self.device.kernel("rank_candidates", self.rule.defines)
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


def hash_rows(device: Device, rows: DeviceArray, n_jobs: int) -> DeviceArray:
    """Return the hash of every row, which depends on its values alone."""
    n, cols = rows.shape
    out = device.xp.empty(n, np.uint64)
    launch(device.kernel("hash_rows"), n, (rows, np.int64(n), np.int64(cols), out))
    return out


def scan_rows(device: Device, rows: DeviceArray, n_jobs: int, allow_nan: bool) -> tuple[float, int]:
    """Return the largest magnitude, and the first row with infinity or (unless allowed) NaN, or -1."""
    xp = device.xp
    largest = largest_magnitude(device, rows)
    if np.isfinite(largest):
        return largest, -1
    bad = (xp.isinf(rows) if allow_nan else ~xp.isfinite(rows)).any(axis=1)
    row = int(xp.argmax(bad))
    if bool(bad[row]):
        return largest, row
    return largest_magnitude(device, xp.nan_to_num(rows, nan=0.0)), -1


# Tables of distances in double precision, for the measures of a map.
ANGLES = ("cosine", "correlation")


def table_values(device: Device) -> int:
    """Return how many distances in double precision are held at a time, of two tables and what they are made of."""
    return max(1, block_bytes(device) // 24)


def has_distances(metric: str) -> bool:
    """Tell whether tables of distances by a metric can be computed."""
    return metric in ("euclidean", "sqeuclidean", *ANGLES)


def squared_distances(device: Device, heads: DeviceArray, tails: DeviceArray) -> DeviceArray:
    """Return the squared distances of all pairs, added up column by column."""
    total = device.xp.zeros((len(heads), len(tails)))
    for column in range(heads.shape[1]):
        apart = heads[:, column, None] - tails[None, :, column]
        apart *= apart
        total += apart
    return total


def pairwise_distances(device: Device, heads: DeviceArray, tails: DeviceArray, metric: str) -> DeviceArray:
    """Return the distances of all pairs by a metric of ``ANGLES``; rows without direction have the distance 1."""
    return 1.0 - _directions(device, heads, metric) @ _directions(device, tails, metric).T


def _directions(device: Device, rows: DeviceArray, metric: str) -> DeviceArray:
    """Return rows of length 1, centered for correlation; rows without direction stay 0."""
    xp = device.xp
    if metric == "correlation":
        rows = rows - rows.mean(axis=1, keepdims=True)
    length = xp.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows / xp.where(length > 0, length, 1.0)
