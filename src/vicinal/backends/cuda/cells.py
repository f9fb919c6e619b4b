"""Rows in overlapping cells: every row belongs to the cells of its nearest centers, and neighbors share a cell.

The centers are found by k-means on a sample. Within a cell rows are compared by products in half precision, relative to
the center of the cell, so that rows of a tight cluster far from the origin are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import (
    NULL,
    WARP,
    Device,
    DeviceArray,
    block_bytes,
    column_means,
    launch,
    launch_warps,
)
from vicinal.backends.cuda.graph import group_begins
from vicinal.backends.cuda.memory import half_bytes

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
    launch_warps(device.kernel("neighbors", "select_columns"), rows, arguments, shared_keys=size)
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
            launch_warps(self.device.kernel("neighbors", "merge_lists"), len(members), arguments, shared_keys=size)

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
        launch_warps(self.device.kernel("neighbors", "cell_scales"), self.n_cells, arguments)
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
        launch_warps(self.device.kernel("neighbors", "halve_rows"), n, arguments)
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
        kernel = device.kernel("neighbors", "cell_means")
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
