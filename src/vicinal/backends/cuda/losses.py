"""Sums over pairs of points on a device, with the bits of the CPU's (cpp/cuda/losses.cu)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.device import (
    CHUNK_ROWS,
    Device,
    DeviceArray,
    Kernel,
    add_chunks,
    column_sums,
    launch,
    launch_warps,
)

WARP_ROWS = 2  # rows of 16 lanes per warp (cpp/cuda/device.hpp)
TERMS = {"attract_cost": "AttractCost", "repel_cost": "RepelCost", "student": "Student"}


@dataclass(frozen=True)
class PairQuantity:
    """The term of a sum, with the names and parameters of the core's."""

    term: str
    force: str
    a: float
    b: float
    gamma: float

    @property
    def compiled(self) -> str:
        """The name of the term in cpp/losses/loss_term.hpp."""
        return "Cauchy" if self.term == "student" and self.a == 1.0 else TERMS[self.term]

    @property
    def coefficients(self) -> tuple[np.float32, np.float32]:
        return np.float32(self.a), np.float32(self.b)


class PairSums:
    """The costs of the core's ``PairSums``, one per row in host memory."""

    def __init__(self, device: Device, embedding: Any, weight: Any) -> None:
        self.device = device
        self._points = device.asarray(embedding, np.float32)
        self._n, self._dim = (int(size) for size in self._points.shape)
        ones = np.ones(self._n, np.float32) if weight is None else weight
        self._weight = device.asarray(ones, np.float32)

    def costs(self, quantity: PairQuantity, n_jobs: int = -1) -> NDArray[np.float64]:
        """Return the sum over all pairs of a row with later rows, with the weights of both."""
        with self.device.active():
            out = self.device.xp.zeros(self._n, np.float64)
            arguments = self._points, self._weight, np.int64(self._n), *quantity.coefficients, out
            self._launch("pair_costs", quantity, arguments)
        return self.device.to_numpy(out)

    def edges(
        self,
        quantity: PairQuantity,
        vectors: bool,
        indptr: Any,
        indices: Any,
        weights: Any,
        rows: None = None,
        n_jobs: int = -1,
    ) -> NDArray[np.float64]:
        """Return the sum over the edges of every row, weighted by the graph."""
        if vectors or rows is not None:
            raise ValueError("a device has sums of costs over all rows only")
        with self.device.active():
            graph = tuple(self.device.asarray(part) for part in (indptr, indices, weights))
            out = self.device.xp.zeros((self._n, 1), np.float64)
            arguments = self._points, *graph, np.int64(self._n), *quantity.coefficients, out
            self._launch("edge_costs", quantity, arguments)
        return self.device.to_numpy(out)

    def draws(
        self, quantity: PairQuantity, groups: int, seed: int, n_jobs: int = -1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum over all other rows, estimated from random rows, and the variance of the estimate."""
        with self.device.active():
            value, variance = (self.device.xp.zeros(self._n, np.float64) for _ in range(2))
            key = np.uint64(cpu.stream_key(seed, "pairs"))
            arguments = self._points, np.int64(self._n), np.int64(groups), key, *quantity.coefficients, value, variance
            self._launch("drawn_costs", quantity, arguments)
        return self.device.to_numpy(value), self.device.to_numpy(variance)

    def _launch(self, name: str, quantity: PairQuantity, arguments: tuple[Any, ...]) -> None:
        defines = ("VICINAL_DIM", str(self._dim)), ("VICINAL_TERM", quantity.compiled)
        kernel: Kernel = self.device.kernel(name, defines)
        launch_warps(kernel, -(-self._n // WARP_ROWS), arguments)


def total_weight(device: Device, weights: DeviceArray) -> float:
    """Return the sum of weights in double precision."""
    return float(device.to_numpy(column_sums(device, weights[:, None], chunk=_chunk(weights)))[0])


def negative_entropy(device: Device, weights: DeviceArray, total: float) -> float:
    """Return the sum of p ln p of weights divided by their total."""
    n, chunk = int(weights.size), _chunk(weights)
    chunks = device.xp.empty((-(-n // chunk), 1), np.float64)
    arguments = weights, np.int64(n), np.float32(total), np.int64(chunk), chunks
    launch(device.kernel("sum_entropy_chunks"), len(chunks), arguments)
    return float(device.to_numpy(add_chunks(device, chunks))[0])


def _chunk(weights: DeviceArray) -> int:
    """Return how many weights one thread adds up, so that there are about as many threads as chunks."""
    return max(CHUNK_ROWS, int(np.sqrt(weights.size)))
