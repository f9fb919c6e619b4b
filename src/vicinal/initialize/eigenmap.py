"""Laplacian eigenmaps of the connected components of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, say_fallback
from vicinal.graph.graph import Graph

# A device computes the eigenmaps of more rows than this. Its vectors do not have the CPU's bits, so smaller maps start
# on the CPU and are the same everywhere.
DEVICE_ROWS = 20_000


class Places(Protocol):
    """First places that are on a device."""

    def is_finite(self) -> bool: ...
    def to_numpy(self) -> NDArray[np.float64]: ...
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
    def whole(self) -> NDArray[np.float64] | Places: ...
    def in_boxes(
        self, centers: NDArray[np.float64], width: NDArray[np.floating], scattered: NDArray[np.bool_], seed: int
    ) -> NDArray[np.float64] | Places: ...


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

    def whole(self) -> NDArray[np.float64]:
        """Return the vectors as places, for a graph of one component."""
        return self.vectors.astype(np.float64)

    def in_boxes(
        self, centers: NDArray[np.float64], width: NDArray[np.floating], scattered: NDArray[np.bool_], seed: int
    ) -> NDArray[np.float64]:
        """Return the places with each axis of each component scaled to a box around its center.

        The rows of ``scattered`` components are put at random places in their boxes.
        """
        inside = self.boxed()
        if scattered.any():
            anywhere = np.repeat(scattered, self.sizes)
            inside[anywhere] = np.random.default_rng(seed).uniform(-0.5, 0.5, size=inside.shape)[anywhere]
        out = np.empty_like(inside)
        out[self.order] = np.repeat(centers, self.sizes, axis=0) + inside * np.repeat(width, self.sizes)[:, None]
        return out

    def boxed(self) -> NDArray[np.float64]:
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
