"""densMAP's term on a device, with the bits of the CPU's (cpp/cuda/density.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal.backends.cuda.device import NULL, Device, DeviceArray, Kernel, launch
from vicinal.backends.cuda.graph import MOST_ADDERS
from vicinal.backends.cuda.sums import CHUNK_ROWS, add_chunks

Summary = tuple[float, float, float, float]
UNITS = 4294967296.0  # of the rate of an edge


@dataclass(frozen=True)
class DensityOptions:
    """What to match: ``DensityOptions`` of the core (cpp/layout/density.hpp)."""

    target: DeviceArray
    weight: float
    variance_shift: float
    first_sweep: int
    every: int
    fitted: tuple[float, ...] | None


class DensityForce:
    """The term of the rows of a layout, whose edges are ``SortedEdges``."""

    def __init__(
        self,
        device: Device,
        edges: Any,
        kernel: tuple[np.float32, np.float32],
        pulls: int,
        dim: int,
        options: DensityOptions,
    ) -> None:
        xp, n = device.xp, edges.n_heads
        self._device, self._edges, self._options = device, edges, options
        self._a, self._b = kernel
        self._pulls, self._n, self._dim = pulls, n, dim
        self._strength = self._firings() / UNITS / max(n - 1.0, 1.0)
        self._affinity = xp.empty(edges.tails.shape, np.float32)
        self._mass, self._log_radius = xp.empty(n, np.float64), xp.empty(n, np.float64)
        self._share = xp.empty((n, 2), np.float32)
        self._fitted = None if options.fitted is None else device.asarray(np.array(options.fitted, dtype=np.float64))

    def acts_in(self, sweep: int) -> bool:
        """Tell whether the term acts in a sweep."""
        first, every = self._options.first_sweep, self._options.every
        return sweep >= first and (sweep - first) % every == 0

    def summary(self, points: DeviceArray, reference: DeviceArray) -> Summary:
        """Return (mean, variance, covariance, strength) of the radii of the map."""
        mean, variance, covariance, strength = self._device.to_numpy(self._measure(points, reference)).tolist()
        return mean, variance, covariance, strength

    def add_moves(
        self,
        points: DeviceArray,
        reference: DeviceArray,
        fixed: DeviceArray | None,
        learning_rate: np.float32,
        out: DeviceArray,
    ) -> None:
        """Move the rows that are not fixed along the gradient; ``out`` holds their places after the sweep."""
        summary, options, edges = self._measure(points, reference), self._options, self._edges
        arguments: tuple[Any, ...] = summary, options.target, self._log_radius, self._mass, np.int64(self._n)
        launch(self._kernel("share_rows"), self._n, (*arguments, self._share))
        arguments = (
            *(*edges.rows, edges.tails, edges.clock, self._affinity, points, reference),
            *(np.int64(self._n), self._b, summary, np.int32(self._pulls), np.float32(options.weight), self._share),
            *(self._share if self._fitted is None else NULL, NULL if fixed is None else fixed),
            *(learning_rate * np.float32(options.every), out),
        )
        launch(self._kernel("add_density_moves"), self._n, arguments)

    def _measure(self, points: DeviceArray, reference: DeviceArray) -> DeviceArray:
        """Measure the radii of the map and return their summary, an array of the device."""
        xp, edges, n = self._device.xp, self._edges, np.int64(self._n)
        arguments: tuple[Any, ...] = (
            *(*edges.rows, edges.tails, points, reference, n, self._a, self._b),
            *(self._affinity, self._mass, self._log_radius),
        )
        launch(self._kernel("measure_radii"), self._n, arguments)
        if self._fitted is not None:
            return self._fitted
        count = -(-self._n // CHUNK_ROWS)
        rows = self._options.target, self._log_radius, n
        chunks, summary = xp.empty((count, 2), np.float64), xp.empty(4, np.float64)
        launch(self._kernel("sum_radii_of_chunks"), count, (*rows, chunks))
        radii = add_chunks(self._device, chunks)
        launch(self._kernel("sum_deviations_of_chunks"), count, (*rows, radii, chunks))
        deviations = add_chunks(self._device, chunks)
        settings = np.float64(self._options.variance_shift), np.float64(self._strength)
        launch(self._kernel("summarize_radii"), 1, (radii, deviations, *settings, summary))
        return summary

    def _firings(self) -> int:
        """Return the sum of the rates of all edges. They are integers, so it does not depend on the order."""
        n, total = int(self._edges.clock.shape[0]), self._device.xp.zeros(1, np.int64)
        threads = min(n, MOST_ADDERS)
        launch(self._kernel("add_rates"), threads, (self._edges.clock, np.int64(n), np.int64(threads), total))
        return int(self._device.to_numpy(total)[0])

    def _kernel(self, name: str) -> Kernel:
        return self._device.kernel("density", name, (("VICINAL_DIM", str(self._dim)),))
