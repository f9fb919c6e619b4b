"""The smallest entries of the rows of a matrix on a device."""

from __future__ import annotations

import numpy as np

from vicinal.backends.cuda.device import NULL, Device, DeviceArray, launch_warps

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
