"""Sums and bounds over the rows of an array on a device, in an order that does not depend on the threads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import USUAL_KERNELS, WARP, Device, DeviceArray, launch, launch_warps

CHUNK_ROWS = 256  # rows that one thread adds up
LEAST_CHUNK, MOST_CHUNKS = 4_096, 16_384  # numbers that one warp compares

# CuPy compiles a reduction when it is first used, which takes seconds; those of a usual fit are kernels of ours.
USUAL_KERNELS.append(("sums", ()))


def column_sums(device: Device, values: DeviceArray, *, own: float = 0.0, chunk: int = CHUNK_ROWS) -> DeviceArray:
    """Return the sums of ``values - own`` by column, in double precision; one chunk of all rows adds them in order."""
    n, width = (int(size) for size in values.shape)
    count = -(-n // max(chunk, 1))
    chunks = device.xp.empty((count, width), np.float64)
    sizes = np.int64(n), np.int64(width), np.int64(chunk)
    launch(device.kernel("sums", "sum_chunks"), count * width, (values, np.float64(own), *sizes, chunks))
    return add_chunks(device, chunks)


def add_chunks(device: Device, chunks: DeviceArray) -> DeviceArray:
    """Return the sums of the columns of an array of doubles, row after row."""
    count, width = (int(size) for size in chunks.shape)
    total = device.xp.empty(width, np.float64)
    launch(device.kernel("sums", "add_chunks"), width, (chunks, np.int64(count), np.int64(width), total))
    return total


def column_means(device: Device, values: DeviceArray) -> NDArray[np.float32]:
    """Return the means of the columns, on the host."""
    n = int(values.shape[0])
    sums: NDArray[np.float64] = device.to_numpy(column_sums(device, values, chunk=max(CHUNK_ROWS, n // 1024)))
    return (sums / max(n, 1)).astype(np.float32)


def largest_magnitude(device: Device, values: DeviceArray) -> float:
    """Return the largest magnitude of numbers in float32; infinity if one is not a number, 0 if there are none."""
    n = int(values.size)
    chunk = max(LEAST_CHUNK, -(-n // MOST_CHUNKS))
    count = -(-n // chunk)
    if count == 0:
        return 0.0
    largest = device.xp.empty((count, WARP), np.float32)
    arguments = values, np.int64(n), np.int64(chunk), largest
    launch_warps(device.kernel("sums", "largest_magnitudes"), count, arguments)
    return float(device.to_numpy(largest).max())


def column_bounds(device: Device, values: DeviceArray) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the smallest and largest values of each column, on the host; 0 if there are no rows."""
    n, width = (int(size) for size in values.shape)
    if n == 0:
        return np.zeros(width, np.float32), np.zeros(width, np.float32)
    kernel, count = device.kernel("sums", "bound_chunks"), -(-n // CHUNK_ROWS)
    chunks, ends = device.xp.empty(2 * width * count, np.float32), device.xp.empty(2 * width, np.float32)
    sizes = np.int64(n), np.int64(width), np.int64(width), np.int64(CHUNK_ROWS)
    launch(kernel, count * width, (values, values, *sizes, chunks))
    sizes = np.int64(count), np.int64(width), np.int64(2 * width), np.int64(count)
    launch(kernel, width, (chunks, chunks[width:], *sizes, ends))
    both = device.to_numpy(ends)
    return both[:width], both[width:]
