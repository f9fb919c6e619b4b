"""The CUDA backend: the functions of the CPU backend on a GPU, by CuPy and kernels from CUDA C++ source.

Memberships, symmetric graphs and the sampled layout have the bits of the CPU's; two runs have the same bits everywhere.
CuPy is imported when a device is first asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda import device as devices
from vicinal.backends.cuda import full_layout, graph, layout, losses, neighbors, spectral
from vicinal.backends.cuda.device import USUAL_NEIGHBORS, Device, DeviceArray, Need
from vicinal.backends.cuda.neighbors import RULES, Centers, DenseRows

# What only a device has: its memory is planned before the work, and rows are compared by products within cells.
DEVICE_ONLY = (
    *("device", "need", "require_room", "rows_that_fit", "group_rows", "query_rows"),
    *("dense_rows", "centers", "nearest_centers", "merged_lists"),
)


def _there(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls a function of a device, and of what the method is given, on that device."""

    @functools.wraps(work, updated=())
    def method(self: CudaBackend, *arguments: Any, **named: Any) -> Any:
        with self.device.active():
            return work(self.device, *arguments, **named)

    return method


@dataclass(frozen=True)
class CudaBackend:
    """The functions of ``vicinal.backends.cpu``, except for its ``HOST_ONLY``, with the same parameters.

    Arrays are those of the device; ``n_jobs`` has no effect.
    """

    device: Device

    smooth_knn = _there(graph.smooth_knn)
    memberships = _there(graph.memberships)
    perplexity_conditionals = _there(graph.perplexity_conditionals)
    symmetrize = _there(graph.symmetrize)
    symmetrize_mean = _there(graph.symmetrize_mean)
    weight_units = _there(graph.weight_units)
    divide_weights = _there(graph.divide_weights)
    total_weight = _there(losses.total_weight)
    negative_entropy = _there(losses.negative_entropy)

    MOST_MAP_AXES = spectral.MOST_AXES
    component_eigenmaps = _there(spectral.component_eigenmaps)
    principal_scores = _there(spectral.principal_scores)
    neighbor_medoids = _there(graph.neighbor_medoids)

    LayoutOptions = cpu.LayoutOptions
    FORCES, SPACES = layout.FORCES, layout.SPACES
    has_space = staticmethod(layout.has_space)
    SampledLayout = _there(layout.SampledLayout)
    FullLayout = _there(full_layout.FullLayout)
    transforms = _there(full_layout.Transforms)

    PairQuantity = losses.PairQuantity
    PairSums = _there(losses.PairSums)
    table_values = _there(neighbors.table_values)
    has_distances = staticmethod(neighbors.has_distances)
    squared_distances = _there(neighbors.squared_distances)
    pairwise_distances = _there(neighbors.pairwise_distances)
    nearest_columns = _there(neighbors.nearest_columns)
    ranks_of = _there(neighbors.ranks_of)

    can_search = staticmethod(neighbors.can_search)
    scan_rows = _there(neighbors.scan_rows)
    hash_rows = _there(neighbors.hash_rows)

    @property
    def xp(self) -> Any:
        """The array module of the device."""
        return self.device.xp

    def active(self) -> Any:
        """Return the context in which arrays are made on the device."""
        return self.device.active()

    def asarray(self, values: Any, dtype: Any = None) -> DeviceArray:
        """Return a contiguous array of the device, without a copy if it is one already."""
        return self.device.asarray(values, dtype)

    def to_numpy(self, values: DeviceArray) -> NDArray[Any]:
        """Return a copy on the host."""
        return self.device.to_numpy(values)

    def take_rows(self, values: DeviceArray, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return some rows of an array, on the host."""
        with self.device.active():
            return self.device.to_numpy(values[self.device.asarray(rows)])

    def holds_rows(self, n: int, d: int, metric: Any = None) -> bool:
        """Tell whether the device can hold the rows of a fit beside their tables; other rows are streamed to it."""
        capacity, known = self.device.capacity_bytes(), isinstance(metric, str) and metric in RULES
        return self.need(d, metric=metric if known else "euclidean").total(n, capacity) <= capacity

    # What only a device has.

    merged_lists = _there(neighbors.MergedLists)
    dense_rows = _there(DenseRows)

    def need(self, d: int, k: int | None = None, metric: str = "euclidean", *, held: bool = False) -> Need:
        """Return what a fit of rows of d columns allocates; ``held`` rows are on the device already."""
        return Need(d, USUAL_NEIGHBORS if k is None else k, int(not held) + int(RULES[metric].prepared))

    def require_room(self, n: int, need: Need) -> None:
        """Raise MemoryError, naming what would fit, if the work on n rows does not fit into the memory."""
        devices.require_room(self.device, n, need)

    def group_rows(self, n: int, need: Need) -> int:
        """Return how many of n streamed rows the device can search at a time."""
        return need.group_rows(n, self.device.free_bytes(), self.device.capacity_bytes())

    def query_rows(self, d: int) -> int:
        """Return how many rows of d columns the device compares with others at a time."""
        return devices.query_rows(d, self.device.capacity_bytes())

    def rows_that_fit(self, need: Need) -> int:
        """Return how many rows the device can work on at present."""
        return need.rows(self.device.free_bytes(), self.device.capacity_bytes())

    def centers(self, sample: DeviceArray, metric: str, count: int) -> Centers:
        """Return centers of cells of a sample of rows, which later rows are assigned to."""
        with self.device.active():
            return neighbors.find_centers(self.device, DenseRows(self.device, sample, metric).rows, count)

    def nearest_centers(
        self, centers: Centers, rows: DeviceArray, metric: str, count: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the nearest centers of every row and about how far they are, in a unit of the call; on the host."""
        with self.device.active():
            index, d2 = centers.nearest(DenseRows(self.device, rows, metric).rows, count)
            return self.device.to_numpy(index), np.sqrt(self.device.to_numpy(d2))
