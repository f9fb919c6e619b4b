"""Laplacian eigenmaps of the connected components of a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, say_fallback
from vicinal.graph.graph import Graph

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
    """First places that are on a device."""

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
class ComponentMaps:
    """The rows of each connected component and their places on its eigenmap.

    Component c has the rows ``order[bounds[c] : bounds[c + 1]]``, in ascending order; components are numbered by their
    lowest rows. ``vectors`` [rows, n_components] holds the smoothest nontrivial eigenvectors of each component's
    normalized Laplacian, the smoothest first; those beyond the number of the component's rows less one are zero.
    """

    order: NDArray[np.int32]
    bounds: NDArray[np.int64]
    vectors: NDArray[np.float32]

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

    def whole(self) -> Floats:
        """Return the vectors as places, for a graph of one component."""
        return self.vectors.astype(np.float64)

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
        """Return the rows in ``order`` on their maps, each axis of each component scaled to [-0.5, 0.5].

        An axis on which all places of a component are equal is set to 0.
        """
        places = self.vectors[self.order].astype(np.float64)
        low, high = (extreme.reduceat(places, self.bounds[:-1], axis=0) for extreme in (np.minimum, np.maximum))
        width = high - low
        middle, scale = (low + high) / 2, 1.0 / np.where(width > 0, width, np.inf)
        places -= np.repeat(middle, self.sizes, axis=0)
        places *= np.repeat(scale, self.sizes, axis=0)
        return places


def slots_of(maps: Eigenmaps, which: NDArray[np.int64] | slice, n: int) -> NDArray[np.int64]:
    """Return n slots of ``maps.order`` at regular intervals for each of some components, one line per component."""
    begin, size = maps.bounds[:-1][which], maps.sizes[which]
    slots: NDArray[np.int64] = begin[:, None] + np.arange(n) * size[:, None] // n
    return slots


def evened(maps: Eigenmaps) -> Eigenmaps:
    """Return maps on which rows far from the middle of a large component are closer to it."""
    large = np.flatnonzero(maps.sizes >= EVENED_ROWS)
    places = maps.sample(slots_of(maps, large, MEDIAN_ROWS)).astype(np.float64)
    middle, unit = np.zeros((2, maps.count, places.shape[2]))
    middle[large] = np.median(places, axis=1)
    unit[large] = NEAR * np.median(np.abs(places - middle[large][:, None]), axis=1)
    return maps.evened(middle, unit, HALVINGS)


def component_maps(graph: Graph, n_components: int, *, seed: int = 0, n_jobs: int = -1) -> Eigenmaps:
    """Find the components of a symmetric graph and compute the eigenmap of each; same bits for any ``n_jobs``."""
    place = graph.place
    if place is not None and graph.n > DEVICE_ROWS and backend_of(place).solves_on_device(n_components):
        edges = (graph.array(name) for name in ("indptr", "indices", "weights"))
        maps: Eigenmaps = backend_of(place).component_eigenmaps(*edges, n_components, seed, n_jobs)
        return maps
    if place is not None and graph.n > DEVICE_ROWS:
        say_fallback("the spectral start", f"a GPU has none for {n_components} components")
    found = cpu.component_eigenmaps(graph.indptr, graph.indices, graph.weights, n_components, seed, n_jobs)
    return ComponentMaps(*found)
