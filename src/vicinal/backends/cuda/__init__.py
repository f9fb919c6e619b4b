"""The CUDA backend: the functions of the CPU backend on a GPU, by CuPy and kernels from CUDA C++ source.

Memberships, symmetric graphs and the sampled layout have the bits of the CPU's; two runs have the same bits everywhere.
CuPy is imported when a device is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda import graph
from vicinal.backends.cuda import neighbors as ranks
from vicinal.backends.cuda.cells import Centers, MergedLists, find_centers
from vicinal.backends.cuda.device import Device, DeviceArray, block_bytes, largest_magnitude, launch, require_room
from vicinal.backends.cuda.full_layout import FullLayout, Transforms
from vicinal.backends.cuda.layout import LayoutOptions, SampledLayout
from vicinal.backends.cuda.losses import PairQuantity, PairSums, negative_entropy, total_weight
from vicinal.backends.cuda.memory import USUAL_NEIGHBORS, Need, query_rows
from vicinal.backends.cuda.neighbors import RULES, DenseRows, hash_rows, ranks_on_device
from vicinal.backends.cuda.spectral import MOST_AXES, DeviceMaps, component_eigenmaps, principal_scores


@dataclass(frozen=True)
class CudaBackend:
    """The functions of ``vicinal.backends.cpu`` that a device has, with the same arguments; ``n_jobs`` has no effect.

    Arrays are those of the device.
    """

    device: Device

    LayoutOptions = LayoutOptions
    PairQuantity = PairQuantity
    ranks_on_device = staticmethod(ranks_on_device)
    most_map_axes = MOST_AXES

    def smooth_knn(
        self,
        distance: DeviceArray,
        k: float,
        local_connectivity: float,
        bandwidth: float,
        independent_rows: bool,
        n_jobs: int,
    ) -> tuple[DeviceArray, DeviceArray]:
        with self.device.active():
            return graph.smooth_knn(self.device, distance, k, local_connectivity, bandwidth, independent_rows)

    def memberships(
        self,
        index: DeviceArray,
        distance: DeviceArray,
        rho: DeviceArray,
        sigma: DeviceArray,
        bipartite: bool,
        n_jobs: int,
    ) -> DeviceArray:
        with self.device.active():
            return graph.memberships(self.device, index, distance, rho, sigma, bipartite)

    def perplexity_conditionals(
        self, index: DeviceArray, distance: DeviceArray, perplexity: float, bipartite: bool, n_jobs: int
    ) -> tuple[DeviceArray, DeviceArray]:
        with self.device.active():
            return graph.perplexity_conditionals(self.device, index, distance, perplexity, bipartite)

    def symmetrize(
        self, index: DeviceArray, membership: DeviceArray, mix: float, n_jobs: int
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        with self.device.active():
            return graph.symmetrize(self.device, index, membership, mix)

    def symmetrize_mean(
        self, index: DeviceArray, membership: DeviceArray, n_jobs: int
    ) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
        with self.device.active():
            return graph.symmetrize(self.device, index, membership, None)

    def weight_units(self, weights: DeviceArray, units: float) -> int:
        with self.device.active():
            return graph.weight_units(self.device, weights, units)

    def total_weight(self, weights: DeviceArray) -> float:
        """Return the sum of weights in double precision."""
        with self.device.active():
            return total_weight(self.device, weights)

    def negative_entropy(self, weights: DeviceArray, total: float) -> float:
        """Return the sum of p ln p of weights divided by their total."""
        with self.device.active():
            return negative_entropy(self.device, weights, total)

    def divide_weights(self, weights: DeviceArray, total: float) -> DeviceArray:
        with self.device.active():
            return graph.divide_weights(self.device, weights, total)

    def SampledLayout(
        self,
        indptr: Any,
        indices: Any,
        weights: Any,
        embedding: Any,
        reference: Any,
        row_key: Any,
        options: Any,
        head_row: None,
        n_jobs: int,
    ) -> SampledLayout:
        with self.device.active():
            return SampledLayout(self.device, indptr, indices, weights, embedding, reference, row_key, options)

    def FullLayout(
        self, indptr: Any, indices: Any, weights: Any, embedding: Any, reference: Any, dof: float
    ) -> FullLayout:
        with self.device.active():
            return FullLayout(self.device, (indptr, indices, weights), embedding, reference, dof)

    def transforms(self) -> Transforms:
        """Return the Fourier transforms of the device."""
        return Transforms(self.device)

    def PairSums(self, embedding: Any, weight: Any) -> PairSums:
        with self.device.active():
            return PairSums(self.device, embedding, weight)

    def component_eigenmaps(
        self, indptr: DeviceArray, indices: DeviceArray, weights: DeviceArray, n_components: int, seed: int, n_jobs: int
    ) -> DeviceMaps:
        with self.device.active():
            return component_eigenmaps(self.device, (indptr, indices, weights), n_components, seed, n_jobs)

    def principal_scores(self, rows: DeviceArray, n_components: int) -> NDArray[np.float64]:
        """Return coordinates along the leading principal axes, on the host."""
        with self.device.active():
            return principal_scores(self.device, rows, n_components)

    def neighbor_medoids(
        self,
        indptr: DeviceArray,
        indices: DeviceArray,
        weights: DeviceArray,
        reference: NDArray[np.float32],
        middle: NDArray[np.float32],
    ) -> NDArray[np.float32]:
        """Return for every head the place of the medoid of its tails, or the middle (initialize/medoid.py)."""
        n, dim = int(indptr.shape[0]) - 1, reference.shape[1]
        with self.device.active():
            out = self.device.xp.empty((n, dim), np.float32)
            places = self.device.asarray(reference, np.float32), self.device.asarray(middle), np.int32(dim)
            arguments = indptr, indices, weights, *places, np.int64(n), out
            launch(self.device.kernel("graph", "neighbor_medoids"), n, arguments)
            return self.device.to_numpy(out)

    def need(self, d: int, k: int | None = None, metric: str = "euclidean", *, held: bool = False) -> Need:
        """Return what a fit of rows of d columns allocates; ``held`` rows are on the device already."""
        return Need(d, USUAL_NEIGHBORS if k is None else k, int(not held) + int(RULES[metric].prepared))

    def require_room(self, n: int, need: Need) -> None:
        """Raise MemoryError, naming what would fit, if the work on n rows does not fit into the memory."""
        require_room(self.device, n, need)

    def holds_rows(self, n: int, d: int, metric: Any = None) -> bool:
        """Tell whether the device can hold the rows of a fit beside their tables; other rows are streamed to it."""
        capacity, known = self.device.capacity_bytes(), isinstance(metric, str) and metric in RULES
        return self.need(d, metric=metric if known else "euclidean").total(n, capacity) <= capacity

    def group_rows(self, n: int, need: Need) -> int:
        """Return how many of n streamed rows the device can search at a time."""
        return need.group_rows(n, self.device.free_bytes(), self.device.capacity_bytes())

    def query_rows(self, d: int) -> int:
        """Return how many rows of d columns the device compares with others at a time."""
        return query_rows(d, self.device.capacity_bytes())

    def rows_that_fit(self, need: Need) -> int:
        """Return how many rows the device can work on at present."""
        return need.rows(self.device.free_bytes(), self.device.capacity_bytes())

    def centers(self, sample: DeviceArray, metric: str, count: int) -> Centers:
        """Return centers of cells of a sample of rows, which later rows are assigned to."""
        with self.device.active():
            return find_centers(self.device, DenseRows(self.device, sample, metric).rows, count)

    def nearest_centers(
        self, centers: Centers, rows: DeviceArray, metric: str, count: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the nearest centers of every row and about how far they are, relative to the nearest; on the host."""
        with self.device.active():
            index, d2 = centers.nearest(DenseRows(self.device, rows, metric).rows, count)
            relative = np.sqrt(self.device.to_numpy(d2))
            return self.device.to_numpy(index), relative / np.maximum(relative[:, :1], np.float32(1e-6))

    def merged_lists(self, n: int, k: int) -> MergedLists:
        """Return empty lists of the k nearest rows of n rows, to which lists of groups of rows are added."""
        with self.device.active():
            return MergedLists(self.device, n, k)

    def table_values(self) -> int:
        """Return how many distances in double precision are held at a time, of two tables and what they are made of."""
        return max(1, block_bytes(self.device) // 24)

    def nearest_columns(self, distance: DeviceArray, k: int) -> NDArray[np.int64]:
        with self.device.active():
            return ranks.nearest_columns(self.device, distance, k)

    def ranks_of(self, distance: DeviceArray, columns: NDArray[np.int64]) -> NDArray[np.int64]:
        with self.device.active():
            return ranks.ranks_of(self.device, distance, columns)

    def dense_rows(self, rows: DeviceArray, metric: str) -> DenseRows:
        """Return rows as the device compares them."""
        with self.device.active():
            return DenseRows(self.device, rows, metric)

    def scan_rows(self, rows: DeviceArray) -> tuple[float, int]:
        """Return the largest magnitude, and the first row with infinity or NaN, or -1."""
        xp = self.device.xp
        with self.device.active():
            if rows.size == 0:
                return 0.0, -1
            largest = largest_magnitude(self.device, rows)
            if np.isfinite(largest):
                return largest, -1
            return largest, int(xp.argmax(~xp.isfinite(rows).all(axis=1)))

    def hash_rows(self, rows: DeviceArray) -> NDArray[np.uint64]:
        with self.device.active():
            return self.device.to_numpy(hash_rows(self.device, rows))

    def find_hashes(self, ordered: DeviceArray, order: DeviceArray, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return for each hash the first row that has it, or -1; ``order`` sorts the hashes of the rows."""
        xp = self.device.xp
        with self.device.active():
            wanted = self.device.asarray(hashes)
            at = xp.minimum(xp.searchsorted(ordered, wanted), len(ordered) - 1)
            return self.device.to_numpy(xp.where(ordered[at] == wanted, order[at], -1)).astype(np.int64)

    def sorted_hashes(self, rows: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """Return the hashes of rows in ascending order, and the rows in this order."""
        xp = self.device.xp
        with self.device.active():
            hashes = hash_rows(self.device, rows)
            order = xp.argsort(hashes, kind="stable")
            return hashes[order], order

    def first_equal(self, rows: DeviceArray) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Return pairs (row, earlier row) of equal hashes, the first of its hash for each; None if there are none."""
        xp = self.device.xp
        with self.device.active():
            ordered, order = self.sorted_hashes(rows)
            again = xp.zeros(len(order), np.bool_)
            again[1:] = ordered[1:] == ordered[:-1]
            if not self.device.to_numpy(again).any():
                return None
            begin = xp.where(again, 0, xp.arange(len(order)))
            begin = xp.asarray(np.maximum.accumulate(self.device.to_numpy(begin)))
            return self.device.to_numpy(order[again]), self.device.to_numpy(order[begin[again]])
