"""Lists of neighbors that are found in several groups of rows, merged on a device (cpp/cuda/neighbors.cu)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import WARP, Device, DeviceArray, launch_warps
from vicinal.backends.cuda.selection import power_of_two


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
