"""The spectral initialization on a device: an eigenmap per connected component (cpp/cuda/spectral.cu).

The method is that of cpp/initialize/eigenmap.hpp, without a hierarchy of coarser graphs: products are cheap here, so
the iteration begins with random vectors. All large components are iterated together; small ones are left to the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.device import (
    USUAL_KERNELS,
    WARP,
    Device,
    DeviceArray,
    column_bounds,
    column_sums,
    largest_magnitude,
    launch,
    launch_warps,
)
from vicinal.backends.cuda.graph import edge_heads
from vicinal.runtime.cached import cached

if TYPE_CHECKING:
    from vicinal.initialize.spectral import Boxes

CENTERED_BYTES = 2**28  # of rows in double precision that are held at a time


def principal_scores(device: Device, rows: DeviceArray, n_components: int) -> NDArray[np.float64]:
    """Return coordinates along the leading principal axes, on the host; axes beyond the columns are zero.

    Rows are divided by their largest deviation from the mean, which keeps the sums of extreme data finite.
    """
    from scipy.linalg import eigh

    xp = device.xp
    n, d = (int(size) for size in rows.shape)
    step = max(1, CENTERED_BYTES // (8 * d))
    blocks = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    center = device.to_numpy(column_sums(device, rows)) / max(n, 1)
    low, high = column_bounds(device, rows)
    largest = float(np.maximum(high - center, center - low).max(initial=0.0))
    scale = 1.0 / largest if largest > 0 else 1.0
    mean = device.asarray(center)
    gram = xp.zeros((d, d))
    for block in blocks:
        centered = (rows[block] - mean) * scale
        gram += centered.T @ centered
    kept = min(n_components, d)
    axes = eigh(device.to_numpy(gram), subset_by_index=[d - kept, d - 1])[1][:, ::-1]
    leading = device.asarray(np.ascontiguousarray(axes * scale))
    scores = np.concatenate([device.to_numpy((rows[block] - mean) @ leading) for block in blocks])
    return np.pad(scores, ((0, 0), (0, n_components - kept)))


WIDTH = 8  # vectors of a block
GUARD = 4  # vectors more than wanted: the last ones converge slowly
MOST_AXES = WIDTH - GUARD
SMALL_COMPONENT = 2_000  # rows of a component that the CPU solves
CHUNK_ROWS = 1_024  # rows of one partial sum
FILTERS, MOST_DEGREE = 12, 24
TOLERANCE = 0.2  # accepted residual relative to 1 - eigenvalue
FIRST_CUT, MOST_GAIN = 0.5, 1e5
# The residual of float32 vectors cannot be seen below this.
LEAST_GAP = 2e-3

USUAL_KERNELS.append(("random_block", ()))


def component_eigenmaps(
    device: Device,
    indptr: DeviceArray,
    indices: DeviceArray,
    weights: DeviceArray,
    n_components: int,
    seed: int,
    n_jobs: int,
) -> DeviceMaps:
    """Return the components, and the smoothest eigenvectors of each."""
    xp, graph = device.xp, (indptr, indices, weights)
    root = _connected_components(device, indptr, indices)
    order = xp.argsort(root, kind="stable").astype(np.int32)
    ordered = root[order]
    first = xp.ones(len(ordered), np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    component = xp.empty(len(ordered), np.int32)
    component[order] = (xp.cumsum(first) - 1).astype(np.int32)
    bounds = np.append(device.to_numpy(xp.flatnonzero(first)), len(ordered)).astype(np.int64)
    sizes = np.diff(bounds)
    rows = _Rows(order, component, bounds)
    vectors = xp.zeros((len(ordered), n_components), np.float32)
    if sizes.max() >= SMALL_COMPONENT:
        vectors[:] = _Iteration(device, graph, rows, seed).run(n_components)[:, :n_components]
    small = np.flatnonzero(sizes < SMALL_COMPONENT)
    if small.size:
        chosen, part = _subgraph(device, graph, rows, small)
        vectors[chosen] = device.asarray(cpu.component_eigenmaps(*part, n_components, seed, n_jobs)[2])
    return DeviceMaps(device, rows, vectors)


def _connected_components(device: Device, indptr: DeviceArray, indices: DeviceArray) -> DeviceArray:
    """Return the lowest row of every row's component."""
    xp, n = device.xp, int(indptr.shape[0]) - 1
    parent, changed = xp.arange(n, dtype=np.int32), xp.ones(1, np.int32)
    while int(changed[0]):
        changed.fill(0)
        launch(device.kernel("hook_rows"), n, (indptr, indices, np.int64(n), parent, changed))
        launch(device.kernel("shorten_paths"), n, (np.int64(n), parent))
    return parent


def _subgraph(
    device: Device, graph: tuple[DeviceArray, ...], all_rows: _Rows, which: NDArray[np.int64]
) -> tuple[DeviceArray, tuple[Any, Any, Any]]:
    """Return the rows of some components, and their graph on the host, with the rows numbered from 0."""
    xp = device.xp
    indptr, indices, weights = graph
    chosen = np.zeros(all_rows.count, np.bool_)
    chosen[which] = True
    inside = device.asarray(chosen)[all_rows.component]
    rows = xp.flatnonzero(inside)
    number = (xp.cumsum(inside) - 1).astype(np.int32)
    edges = xp.flatnonzero(inside[edge_heads(device, indptr, int(indices.shape[0]))])
    begin = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(device.to_numpy(xp.diff(indptr)[rows]), out=begin[1:])
    part = begin, device.to_numpy(number[indices[edges]]), device.to_numpy(weights[edges])
    return rows, part


@dataclass(frozen=True)
class _Rows:
    """The rows by component, the component of every row, and the bounds of the components."""

    order: DeviceArray
    component: DeviceArray
    bounds: NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    def chunks(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where chunks of rows of one component begin and the last one ends, and the first of each component."""
        parts = -(-np.diff(self.bounds) // CHUNK_ROWS)
        first = np.cumsum(parts) - parts
        inside = np.arange(int(parts.sum())) - np.repeat(first, parts)
        begin = np.repeat(self.bounds[:-1], parts) + inside * CHUNK_ROWS
        return np.append(begin, self.bounds[-1]), first


@dataclass(frozen=True, eq=False)
class DevicePlaces:
    """First places on a device."""

    device: Device
    places: DeviceArray
    shape: NDArray[np.float64] | float = 1.0  # the sides of the box, as shares of the usual ones

    def is_finite(self) -> bool:
        """Tell whether all places are finite numbers."""
        with self.device.active():
            return bool(np.isfinite(largest_magnitude(self.device, self.places)))

    def to_numpy(self) -> NDArray[np.float64]:
        """Return the places on the host, in their proportions."""
        places = self.places
        if np.ndim(self.shape) > 0:
            with self.device.active():
                places = self._scaled(places, 1.0, np.uint64(0), 0.0)
        return self.device.to_numpy(places).astype(np.float64)

    def start(self, extent: float, noise: float, seed: int) -> NDArray[np.float32]:
        """Return the places with noise, each axis scaled to [0, extent * shape] before and after; on the host."""
        key = np.uint64(cpu.stream_key(seed, "spectral", 1))
        with self.device.active():
            noisy = self._scaled(self.places, extent, key, noise)
            host: NDArray[np.float32] = self.device.to_numpy(self._scaled(noisy, extent, key, 0.0))
            return host

    def _scaled(self, places: DeviceArray, extent: float, key: np.uint64, noise: float) -> DeviceArray:
        """Scale each axis to its side of the box, and add noise; places that are all equal are put into the middle."""
        n, dim = (int(size) for size in places.shape)
        wide = extent * np.broadcast_to(self.shape, dim)
        low, high = (bound.astype(np.float64) for bound in column_bounds(self.device, places))
        flat = ~(high > low)
        numbers = low, np.where(flat, 0.0, wide / np.where(flat, 1.0, high - low)), np.where(flat, wide / 2, 0.0)
        out = self.device.xp.empty_like(places)
        axes = (self.device.asarray(number) for number in numbers)
        arguments = places, np.int32(dim), *axes, key, np.float64(noise), np.int64(n), out
        launch(self.device.kernel("scale_places"), n * dim, arguments)
        return out


@dataclass(frozen=True, eq=False)
class DeviceMaps:
    """The components of a graph and their eigenmaps (``initialize.spectral.ComponentMaps``) on a device."""

    device: Device
    rows: _Rows
    device_vectors: DeviceArray
    shape: NDArray[np.float64] | None = None

    @property
    def count(self) -> int:
        return self.rows.count

    @property
    def bounds(self) -> NDArray[np.int64]:
        return self.rows.bounds

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each component."""
        return np.diff(self.bounds)

    @cached
    def order(self) -> NDArray[np.int32]:
        """The rows by component, on the host."""
        return self.device.to_numpy(self.rows.order)

    @property
    def vectors(self) -> NDArray[np.float32]:
        """The eigenvectors on the host."""
        return self.device.to_numpy(self.device_vectors)

    def sample(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the places of the rows ``order[slots]`` on the host."""
        with self.device.active():
            found: NDArray[np.float32] = self.device.to_numpy(
                self.device_vectors[self.rows.order[self.device.asarray(slots)]]
            )
            return found

    def with_axes(self, axes: NDArray[np.int64], shape: NDArray[np.float64]) -> DeviceMaps:
        """Return maps with some of the axes, one line of numbers per component, and with a shape."""
        with self.device.active():
            of_row = self.device.asarray(axes)[self.rows.component]
            vectors = self.device.xp.take_along_axis(self.device_vectors, of_row, axis=1)
            return replace(self, device_vectors=self.device.xp.ascontiguousarray(vectors), shape=shape)

    def evened(self, middle: NDArray[np.float64], unit: NDArray[np.float64], halvings: int) -> DeviceMaps:
        """Return maps of asinh((place - middle) / unit) / 2^halvings, one line of both per component.

        An axis whose unit is 0 stays as it is.
        """
        n, dim = (int(size) for size in self.device_vectors.shape)
        with self.device.active():
            out = self.device.xp.empty_like(self.device_vectors)
            numbers = self.device.asarray(middle), self.device.asarray(unit)
            arguments = self.device_vectors, np.int32(dim), self.rows.component, *numbers, np.int32(halvings)
            launch(self.device.kernel("even_places"), n * dim, (*arguments, np.int64(n), out))
            return replace(self, device_vectors=out)

    def whole(self) -> DevicePlaces:
        """Return the vectors as places, for a graph of one component."""
        with self.device.active():
            return DevicePlaces(self.device, self.device_vectors, 1.0 if self.shape is None else self.shape[0])

    def in_boxes(self, boxes: Boxes, seed: int) -> DevicePlaces:
        """Return the places with each axis of each component scaled to its box and its shape.

        An axis on which all places of a component are equal is put at the center.
        """
        xp, asarray = self.device.xp, self.device.asarray
        n, dim = (int(size) for size in self.device_vectors.shape)
        with self.device.active():
            low, high = self._extremes(dim)
            spread = np.where(high > low, high - low, np.inf)
            shape = 1.0 if self.shape is None else self.shape
            scale = np.where(boxes.scattered[:, None], 1.0, shape / spread) * boxes.width[:, None]
            turns = np.tile(np.eye(dim), (self.count, 1, 1)) if boxes.turns is None else boxes.turns
            places = xp.empty((n, dim), np.float32)
            numbers = boxes.centers, (low + high) / 2, scale, np.ascontiguousarray(turns), boxes.scattered
            arguments = self.device_vectors, np.int32(dim), self.rows.component, *(asarray(one) for one in numbers)
            key = np.uint64(cpu.stream_key(seed, "spectral", 2))
            launch(self.device.kernel("place_components"), n, (*arguments, key, np.int64(n), places))
            return DevicePlaces(self.device, places)

    def _extremes(self, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        begin, first = self.rows.chunks()
        chunks = len(begin) - 1
        partial = self.device.xp.empty((chunks, 2, dim, WARP), np.float32)
        arguments = self.device_vectors, np.int32(dim), self.rows.order, self.device.asarray(begin), np.int64(chunks)
        launch_warps(self.device.kernel("chunk_extremes"), chunks, (*arguments, partial))
        found = self.device.to_numpy(partial).astype(np.float64)
        low = np.minimum.reduceat(found[:, 0].min(axis=2), first, axis=0)
        return low, np.maximum.reduceat(found[:, 1].max(axis=2), first, axis=0)


class _Iteration:
    """Subspace iteration on the blocks of all components."""

    def __init__(self, device: Device, graph: tuple[DeviceArray, ...], rows: _Rows, seed: int) -> None:
        self.device, self.rows = device, rows
        self.indptr, self.indices, weights = graph
        self.n = int(self.indptr.shape[0]) - 1
        xp = device.xp
        begin, self.first_chunk = rows.chunks()
        self.chunks, self.n_chunks = device.asarray(begin), len(begin) - 1
        self.weights, root = xp.empty_like(weights), xp.empty(self.n, np.float64)
        self._launch("degree_roots", self.n, (self.indptr, weights, np.int64(self.n), root))
        self._launch(
            "normalize_weights", self.n, (self.indptr, self.indices, weights, root, np.int64(self.n), self.weights)
        )
        # The trivial eigenvector of a component is the roots of its degrees, divided by their length.
        squares = self._sums("root_squares", (root,), WARP).sum(axis=1)
        self.trivial = root / xp.sqrt(device.asarray(squares))[rows.component]
        self.block = xp.empty((self.n, WIDTH), np.float32)
        self._launch(
            "random_block", self.n * WIDTH, (np.uint64(cpu.stream_key(seed, "spectral")), np.int64(self.n), self.block)
        )

    def _launch(self, name: str, n: int, arguments: tuple[Any, ...]) -> None:
        launch(self.device.kernel(name), n, arguments)

    def run(self, wanted: int) -> DeviceArray:
        """Return the block after as many filters as are needed, the smoothest vectors first."""
        cut = np.full(self.rows.count, FIRST_CUT)
        self._orthonormalize()
        for _ in range(FILTERS):
            self._filter(cut)
            self._orthonormalize()
            cut, accurate = self._rotate_to_eigenvectors(wanted)
            if accurate:
                break
        return self.block

    def _filter(self, cut: NDArray[np.float64]) -> None:
        half, center = (cut + 1.0) / 2.0, (cut - 1.0) / 2.0
        degree = np.clip(np.arccosh(MOST_GAIN) / np.arccosh((3.0 - cut) / (1.0 + cut)), 1, MOST_DEGREE).astype(np.int32)
        asarray = self.device.asarray
        centers, degrees = asarray(center.astype(np.float32)), asarray(degree)
        once, twice = (asarray((factor / half).astype(np.float32)) for factor in (1.0, 2.0))
        previous, current = self.block, self._step(self.block, self.block, once, centers, 0.0, degrees, 0)
        for step in range(1, int(degree.max())):
            following = self._step(current, previous, twice, centers, 1.0, degrees, step)
            previous, current = current, following
        self.block = current

    def _step(
        self,
        x: DeviceArray,
        previous: DeviceArray,
        scale: DeviceArray,
        center: DeviceArray,
        keep: float,
        degree: DeviceArray,
        step: int,
    ) -> DeviceArray:
        out = self.device.xp.empty_like(x)
        matrix = self.indptr, self.indices, self.weights, self.rows.component
        numbers = scale, center, np.float32(keep), degree, np.int32(step), np.int64(self.n)
        self._launch("chebyshev_step", self.n * WIDTH, (*matrix, *numbers, x, previous, out))
        return out

    def _sums(self, name: str, arguments: tuple[Any, ...], size: int) -> NDArray[np.float64]:
        """Return sums over the rows of each component."""
        partial = self.device.xp.empty((self.n_chunks, size), np.float64)
        kernel = self.device.kernel(name)
        rows = self.rows.order, self.chunks, np.int64(self.n_chunks)
        launch_warps(kernel, self.n_chunks, (*arguments, *rows, partial))
        sums: NDArray[np.float64] = np.add.reduceat(self.device.to_numpy(partial), self.first_chunk, axis=0)
        return sums

    def _products(self, x: DeviceArray, y: DeviceArray) -> NDArray[np.float64]:
        return self._sums("block_products", (x, y), WIDTH * WIDTH).reshape(-1, WIDTH, WIDTH)

    def _orthonormalize(self) -> None:
        """Make the columns orthonormal within each component, and orthogonal to its trivial eigenvector."""
        for _ in range(2):
            along = self.device.asarray(self._sums("weighted_sums", (self.block, self.trivial), WIDTH))
            arguments = self.trivial, self.rows.component, along, np.int64(self.n), self.block
            self._launch("subtract_roots", self.n * WIDTH, arguments)
            self._rotate(_whitening(self._products(self.block, self.block)))

    def _rotate(self, rotation: NDArray[np.float64]) -> None:
        out = self.device.xp.empty_like(self.block)
        matrices = self.device.asarray(np.ascontiguousarray(rotation))
        arguments = self.block, self.rows.component, matrices, np.int64(self.n), out
        self._launch("rotate_rows", self.n * WIDTH, arguments)
        self.block = out

    def _rotate_to_eigenvectors(self, wanted: int) -> tuple[NDArray[np.float64], bool]:
        """Rayleigh-Ritz. Return the smallest Ritz values, and whether the wanted vectors are accurate enough."""
        count, asarray = self.rows.count, self.device.asarray
        one, zero = asarray(np.ones(count, np.float32)), asarray(np.zeros(count, np.float32))
        image = self._step(self.block, self.block, one, zero, 0.0, asarray(np.ones(count, np.int32)), 0)
        inner = self._products(self.block, image)
        values, vectors = np.linalg.eigh((inner + inner.transpose(0, 2, 1)) / 2.0)
        values, vectors = values[:, ::-1], np.ascontiguousarray(vectors[:, :, ::-1])
        lengths = np.einsum("ckl,ckm,cml->cl", vectors, self._products(image, image), vectors)
        residual = np.sqrt(np.maximum(lengths - values**2, 0.0))[:, :wanted]
        self._rotate(vectors)
        large = np.diff(self.rows.bounds) >= SMALL_COMPONENT
        enough = residual <= TOLERANCE * np.maximum(1.0 - values[:, :wanted], LEAST_GAP)
        return np.clip(values[:, -1], 0.0, 1.0 - 1e-6), bool(enough[large].all())


def _whitening(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return R with (block R)^T (block R) = I, from Gram matrices with their diagonals scaled to 1."""
    scale = 1.0 / np.sqrt(np.maximum(np.diagonal(gram, axis1=1, axis2=2), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(gram * scale[:, :, None] * scale[:, None, :])
    floor = 1e-14 * np.maximum(values[:, -1:], np.finfo(np.float64).tiny)
    whitened: NDArray[np.float64] = scale[:, :, None] * vectors / np.sqrt(np.maximum(values, floor))[:, None, :]
    return whitened
