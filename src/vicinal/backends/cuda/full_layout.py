"""t-SNE's full layout on a device (cpp/cuda/full_layout.cu).

Iterations with exact repulsion have the bits of the CPU's. Those with a grid differ in the transforms and in the order
of sums; two runs have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import (
    CHUNK_ROWS,
    NULL,
    Defines,
    Device,
    DeviceArray,
    Kernel,
    column_bounds,
    column_sums,
    launch,
    launch_warps,
)

ROW_LANES, WARP_ROWS = 16, 2  # lanes per row and rows per warp (cpp/cuda/full_layout.cu)
GRID_AXES = 3
ITERATIONS_AHEAD = 64  # exact iterations that wait for the device at a time


class State(NamedTuple):
    """The state after some iterations; an iteration reads one state and writes the other."""

    epoch: int
    places: DeviceArray
    velocity: DeviceArray
    gain: DeviceArray


class FullLayout:
    """The full layout of the core, on a device.

    The methods are those of ``cpu.FullLayout``; densities and potentials are arrays of the device.
    """

    def __init__(
        self, device: Device, indptr: Any, indices: Any, weights: Any, embedding: Any, reference: Any, dof: float
    ) -> None:
        xp = device.xp
        self.device = device
        self._graph = tuple(device.asarray(part) for part in (indptr, indices, weights))
        places = xp.array(device.asarray(embedding, np.float32))
        self._reference = None if reference is None else device.asarray(reference, np.float32)
        self._n, self._dim = (int(size) for size in places.shape)
        if int(self._graph[0].shape[0]) - 1 != self._n:
            raise ValueError("graph and embedding differ in their rows")
        self._dof = np.float32(dof)
        velocity, gain = xp.zeros_like(places), xp.ones_like(places)
        other = State(0, xp.empty_like(places), xp.empty_like(places), xp.empty_like(places))
        self._states = State(0, places, velocity, gain), other
        self._pull, self._field = xp.empty_like(places), xp.empty_like(places)
        self._potential = xp.empty(self._n, np.float32)
        self._defines: Defines = (
            ("VICINAL_DIM", str(self._dim)),
            ("VICINAL_CAUCHY", "true" if self._dof == 1.0 else "false"),
        )

    @property
    def epoch(self) -> int:
        """Number of iterations completed."""
        return self._states[0].epoch

    @property
    def _sources(self) -> DeviceArray:
        return self._states[0].places if self._reference is None else self._reference

    def embedding(self) -> NDArray[np.float32]:
        """Return a copy of the places in host memory."""
        return self.device.to_numpy(self._states[0].places)

    def bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the smallest and largest coordinates of the points that repel."""
        with self.device.active():
            return column_bounds(self.device, self._sources)

    def spread(self, shape: Sequence[int], origin: Sequence[float], spacing: float, n_jobs: int = -1) -> DeviceArray:
        """Return the density of the points that repel at the nodes of a grid."""
        points, size = self._sources, int(np.prod(shape))
        with self.device.active():
            units, density = self.device.xp.zeros(size, np.int64), self.device.xp.empty(size, np.float32)
            grid = _grid_arguments(shape, origin, spacing)
            launch(
                self._kernel("spread_points"), int(points.shape[0]), (points, np.int64(points.shape[0]), *grid, units)
            )
            launch(self._kernel("node_masses"), size, (units, np.int64(size), density))
        return density

    def step_exact(self, steps: NDArray[np.float32], n_jobs: int = -1) -> None:
        """Run iterations with the repulsion of all pairs."""
        sources, n = self._sources, np.int64(self._n)
        own = np.bool_(self._reference is None)
        with self.device.active():
            for count, step in enumerate(steps, 1):
                sources, heads = self._sources, self._states[0].places
                arguments = sources, np.int64(sources.shape[0]), heads, n, own, self._dof, self._potential, self._field
                launch_warps(self._kernel("student_field"), -(-self._n // WARP_ROWS), arguments)
                # All rows are one chunk: the order of the CPU's sums.
                self._advance(step, 0.0, self._n)
                if count % ITERATIONS_AHEAD == 0:
                    self.device.synchronize()
            self.device.synchronize()

    def step_grid(
        self,
        potential: DeviceArray,
        shape: Sequence[int],
        origin: Sequence[float],
        spacing: float,
        steps: NDArray[np.float32],
        n_jobs: int = -1,
    ) -> None:
        """Run iterations with the repulsion of a potential at the nodes of a grid; one, unless a reference rests."""
        if self._reference is None and len(steps) > 1:
            raise ValueError("a potential is valid for one iteration only")
        grid = _grid_arguments(shape, origin, spacing)
        with self.device.active():
            for step in steps:
                arguments = potential, self._states[0].places, np.int64(self._n), *grid, self._potential, self._field
                launch(self._kernel("gather_points"), self._n, arguments)
                # A grid does not separate a row from the others: the potential includes w(0) = 1 of the row itself.
                self._advance(step, 1.0, CHUNK_ROWS)

    def _advance(self, step: NDArray[np.float32], own_potential: float, chunk: int) -> None:
        now, following = self._states
        n, forces = np.int64(self._n), (self._pull, self._field, self._potential)
        arguments: tuple[Any, ...] = *self._graph, now.places, self._sources, n, self._dof, self._pull
        if self._dim <= GRID_AXES:
            launch_warps(self._kernel("attract_rows"), -(-self._n // WARP_ROWS), arguments)
        else:
            launch(self._kernel("attract_wide_rows"), self._n, arguments)
        frozen = self._reference is not None
        z = NULL if frozen else column_sums(self.device, self._potential[:, None], own=own_potential, chunk=chunk)
        motion = now.places, now.velocity, now.gain, n, self._dof, *(np.float32(part) for part in step)
        written = following.places, following.velocity, following.gain
        launch(self._kernel("move_rows"), self._n, (*forces, z, *motion, *written))
        if not frozen:
            sums = column_sums(self.device, following.places, chunk=chunk)
            launch(self._kernel("center_rows"), self._n, (sums, n, following.places))
        # One assignment, so that an interrupt leaves a complete iteration.
        self._states = following._replace(epoch=now.epoch + 1), now

    def _kernel(self, name: str) -> Kernel:
        return self.device.kernel(name, self._defines)


def _grid_arguments(shape: Sequence[int], origin: Sequence[float], spacing: float) -> tuple[Any, ...]:
    """Return the arguments of a kernel that describe a grid of up to three axes."""
    rest = GRID_AXES - len(shape)
    sizes = (*(np.int64(nodes) for nodes in shape), *(np.int64(1),) * rest)
    return *sizes, *(np.float32(at) for at in origin), *(np.float32(0.0),) * rest, np.float32(spacing)


def _padded_length(nodes: int) -> int:
    octave = 1 << max(0, int(nodes - 1).bit_length() - 3)
    return -(-nodes // octave) * octave


class Transforms:
    """Fourier transforms of real grids on a device (``cpu.Transforms``)."""

    # Transforms are cheap here, and a finer grid makes the repulsion more accurate.
    fineness, dense_factor, most_nodes = 0.75, 1.0, 2**24

    def __init__(self, device: Device, n_jobs: int) -> None:
        self._device, self.xp = device, device.xp

    def lengths(self, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the padded lengths of axes with at least this many nodes.

        There are four lengths per octave, and one for all axes unless that more than doubles the grid: preparing a
        transform of another shape takes longer than the transform.
        """
        own = tuple(_padded_length(count) for count in nodes)
        longest = (max(own),) * len(own)
        return longest if np.prod(longest) <= 2 * np.prod(own) else own

    def transform_even(self, part: DeviceArray, padded: tuple[int, ...]) -> DeviceArray:
        """Return the transform of a function that is even along each axis (``cpu.Transforms.transform_even``)."""
        with self._device.active():
            whole = self._mirrored(part, padded, range(part.ndim))
            waves = self.xp.fft.rfftn(whole, padded, tuple(range(part.ndim))).real
            return self.xp.ascontiguousarray(waves[tuple(slice(length // 2 + 1) for length in padded)])

    def convolution(self, transfer: DeviceArray, padded: tuple[int, ...]) -> Callable[[DeviceArray], DeviceArray]:
        """Return the function that multiplies the transform of values at the nodes, padded with zeros, by another."""
        axes = tuple(range(len(padded)))
        with self._device.active():
            # The last axis of the transform of real values has only half of the waves.
            factors = self._mirrored(transfer, padded, axes[:-1])

        def convolved(values: DeviceArray) -> DeviceArray:
            with self._device.active():
                waves = self.xp.fft.rfftn(values, padded, axes).astype(np.complex64, copy=False)
                waves *= factors
                found = self.xp.fft.irfftn(waves, padded, axes)
                return self.xp.ascontiguousarray(found[tuple(map(slice, values.shape))], dtype=np.float32)

        return convolved

    def _mirrored(self, part: DeviceArray, padded: tuple[int, ...], axes: Sequence[int]) -> DeviceArray:
        """Return an even function along whole axes, given at 0 to half of their lengths."""
        for axis in axes:
            at = np.arange(padded[axis])
            part = self.xp.take(part, self.xp.asarray(np.minimum(at, padded[axis] - at)), axis=axis)
        return part
