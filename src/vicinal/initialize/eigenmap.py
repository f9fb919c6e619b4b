"""Laplacian eigenmaps of the connected components of a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, say_fallback
from vicinal.graph.graph import Graph
from vicinal.initialize.task import to_extent

# On an eigenmap a few rows lie far out and most of them in little room, where clusters cover each other. On the evened
# map of a component of at least EVENED_ROWS rows, far rows are closer: a distance from the median, in units of NEAR
# times the median distance, becomes its inverse hyperbolic sine. Loss J and correlation of distances of Fashion-MNIST,
# mean of 2 seeds: 167,430, 0.617 on the eigenmap itself, 165,690, 0.589 on the evened one; whole maps of the digit 1,
# of 5 seeds: 4 and 5. Medians are those of a sample of MEDIAN_ROWS rows.
EVENED_ROWS, NEAR, MEDIAN_ROWS = 500, 0.3, 1_023
HALVINGS = 5

# A device computes the eigenmaps of more rows than this. Its vectors do not have the CPU's bits, so smaller maps start
# on the CPU and are the same everywhere.
DEVICE_ROWS = 20_000

Floats = NDArray[np.float64]


class Places(Protocol):
    """First places that are on a device, or have a shape of their own."""

    def is_finite(self) -> bool: ...
    def to_numpy(self) -> Floats: ...
    def start(self, extent: float, noise: float, seed: int) -> NDArray[np.float32]: ...


class Eigenmaps(Protocol):
    """The eigenmaps of the components of a graph, on the host (`ComponentMaps`) or on a device."""

    @property
    def count(self) -> int: ...
    @property
    def order(self) -> NDArray[np.int32]: ...
    @property
    def bounds(self) -> NDArray[np.int64]: ...
    @property
    def sizes(self) -> NDArray[np.int64]: ...
    @property
    def vectors(self) -> NDArray[np.float32]: ...
    def sample(self, slots: NDArray[np.int64]) -> NDArray[np.float32]: ...
    @property
    def shape(self) -> Floats | None: ...
    def with_axes(self, axes: NDArray[np.int64], shape: Floats) -> Eigenmaps: ...
    def evened(self, middle: Floats, unit: Floats, halvings: int) -> Eigenmaps: ...
    def whole(self) -> Floats | Places: ...
    def in_boxes(self, boxes: Boxes, seed: int) -> Floats | Places: ...


@dataclass(frozen=True)
class Boxes:
    """Where the components of a graph are put: for each a center, a width, and a matrix that turns its map.

    The rows of ``scattered`` components are put at random places.
    """

    centers: NDArray[np.float64]
    width: NDArray[np.floating]
    turns: NDArray[np.float64] | None
    scattered: NDArray[np.bool_]


@dataclass(frozen=True)
class ShapedPlaces:
    """First places on the host, in a box whose sides are ``shape`` times the usual ones."""

    places: NDArray[np.floating]
    shape: Floats | float = 1.0

    def is_finite(self) -> bool:
        """Tell whether all places are finite numbers."""
        return bool(np.isfinite(self.places).all())

    def to_numpy(self) -> Floats:
        """Return the places in their box."""
        return to_extent(self.places, self.shape)

    def start(self, extent: float, noise: float, seed: int) -> NDArray[np.float32]:
        """Return the places with noise, in their box before and after."""
        noisy = self.to_numpy() + np.random.default_rng(seed).normal(scale=noise, size=self.places.shape)
        return to_extent(noisy, self.shape).astype(np.float32)


@dataclass(frozen=True)
class ComponentMaps:
    """The rows of each connected component and their places on its eigenmap.

    Component c has the rows ``order[bounds[c] : bounds[c + 1]]``, in ascending order; components are numbered by their
    lowest rows. ``vectors`` [rows, n_components] holds the smoothest nontrivial eigenvectors of each component's
    normalized Laplacian, the smoothest first; those beyond the number of the component's rows less one are zero.
    ``shape`` [components, n_components] holds the proportions of the maps; None means squares.
    """

    order: NDArray[np.int32]
    bounds: NDArray[np.int64]
    vectors: NDArray[np.float32]
    shape: Floats | None = None

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of rows of each component."""
        return np.diff(self.bounds)

    def sample(self, slots: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the places of the rows ``order[slots]``."""
        return self.vectors[self.order[slots]]

    def with_axes(self, axes: NDArray[np.int64], shape: Floats) -> ComponentMaps:
        """Return maps with some of the axes, one line of numbers per component, and with a shape."""
        of_row = np.empty((len(self.order), axes.shape[1]), dtype=np.int64)
        of_row[self.order] = np.repeat(axes, self.sizes, axis=0)
        return replace(self, vectors=np.take_along_axis(self.vectors, of_row, axis=1), shape=shape)

    def evened(self, middle: Floats, unit: Floats, halvings: int) -> ComponentMaps:
        """Return maps of asinh((place - middle) / unit) / 2^halvings, one line of both per component.

        An axis whose unit is 0 stays as it is. asinh(x) is twice asinh(x / sqrt(2 + 2 sqrt(1 + x^2))), and nearly x for
        a small x. Roots and quotients are correctly rounded on all platforms, NumPy's arcsinh is not.
        """
        vectors = self.vectors.copy()
        for component in np.flatnonzero((unit > 0).any(axis=1)):
            rows = self.order[self.bounds[component] : self.bounds[component + 1]]
            axes = np.flatnonzero(unit[component] > 0)
            x = (vectors[np.ix_(rows, axes)] - middle[component, axes]) / unit[component, axes]
            for _ in range(halvings):
                x /= np.sqrt(2.0 + 2.0 * np.sqrt(1.0 + x * x))
            vectors[np.ix_(rows, axes)] = x
        return replace(self, vectors=vectors)

    def whole(self) -> Floats | Places:
        """Return the vectors as places, for a graph of one component."""
        return self.vectors.astype(np.float64) if self.shape is None else ShapedPlaces(self.vectors, self.shape[0])

    def in_boxes(self, boxes: Boxes, seed: int) -> Floats:
        """Return the places with each axis of each component scaled to its box."""
        inside = self.boxed()
        if boxes.turns is not None:
            inside = np.einsum("ni,nij->nj", inside, np.repeat(boxes.turns, self.sizes, axis=0))
        if boxes.scattered.any():
            anywhere = np.repeat(boxes.scattered, self.sizes)
            inside[anywhere] = np.random.default_rng(seed).uniform(-0.5, 0.5, size=inside.shape)[anywhere]
        inside *= np.repeat(boxes.width, self.sizes)[:, None]
        inside += np.repeat(boxes.centers, self.sizes, axis=0)
        out = np.empty_like(inside)
        out[self.order] = inside
        return out

    def boxed(self) -> Floats:
        """Return the rows in ``order`` on their maps, each axis of each component scaled to its shape around 0.

        An axis on which all places of a component are equal is set to 0.
        """
        places = self.vectors[self.order].astype(np.float64)
        low, high = (extreme.reduceat(places, self.bounds[:-1], axis=0) for extreme in (np.minimum, np.maximum))
        width = high - low
        middle = (low + high) / 2
        scale = (1.0 if self.shape is None else self.shape) / np.where(width > 0, width, np.inf)
        places -= np.repeat(middle, self.sizes, axis=0)
        places *= np.repeat(scale, self.sizes, axis=0)
        return places


def slots_of(maps: Eigenmaps, which: NDArray[np.int64] | slice, n: int) -> NDArray[np.int64]:
    """Return n slots of ``maps.order`` at regular intervals for each of some components, one line per component."""
    begin, size = maps.bounds[:-1][which], maps.sizes[which]
    slots: NDArray[np.int64] = begin[:, None] + np.arange(n) * size[:, None] // n
    return slots


def evened(maps: Eigenmaps) -> Eigenmaps:
    """Return maps on which rows far from the middle of a large component are closer to it, unless it has a shape."""
    square = True if maps.shape is None else (maps.shape == 1.0).all(axis=1)
    large = np.flatnonzero((maps.sizes >= EVENED_ROWS) & square)
    places = maps.sample(slots_of(maps, large, MEDIAN_ROWS)).astype(np.float64)
    middle, unit = np.zeros((2, maps.count, places.shape[2]))
    middle[large] = np.median(places, axis=1)
    unit[large] = NEAR * np.median(np.abs(places - middle[large][:, None]), axis=1)
    return maps.evened(middle, unit, HALVINGS)


def most_device_axes(graph: Graph) -> int:
    """Return how many axes eigenmaps of the graph may have that a device computes; 0 if the CPU does."""
    if graph.place is None or graph.n <= DEVICE_ROWS:
        return 0
    return int(backend_of(graph.place).most_map_axes)


def component_maps(graph: Graph, n_components: int, *, seed: int = 0, n_jobs: int = -1) -> Eigenmaps:
    """Find the components of a symmetric graph and compute the eigenmap of each; same bits for any ``n_jobs``."""
    place = graph.place
    if place is not None and n_components <= most_device_axes(graph):
        edges = (graph.array(name) for name in ("indptr", "indices", "weights"))
        maps: Eigenmaps = backend_of(place).component_eigenmaps(*edges, n_components, seed, n_jobs)
        return maps
    if place is not None and graph.n > DEVICE_ROWS:
        say_fallback("the spectral start", f"a GPU has none for {n_components} components")
    found = cpu.component_eigenmaps(graph.indptr, graph.indices, graph.weights, n_components, seed, n_jobs)
    return ComponentMaps(*found)
