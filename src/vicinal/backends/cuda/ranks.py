"""The nearest columns of a table of distances in double precision, and ranks of columns, on a device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import Device, DeviceArray, launch_warps
from vicinal.backends.cuda.selection import select_columns

# Columns are selected by distances in single precision, which have the same order but more ties; so many more are
# selected than asked for.
SPARE = 17


def nearest_columns(device: Device, distance: DeviceArray, k: int) -> NDArray[np.int64]:
    """Return the k columns of each row with the smallest distances, by (distance, column), on the host."""
    wanted = min(k + SPARE, int(distance.shape[1]))
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
