"""Laplacian eigenmaps of the connected components of a graph."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, say_fallback
from vicinal.graph.graph import Graph

# A device computes the eigenmaps of more rows than this. Its vectors do not have the CPU's bits, so smaller maps start
# on the CPU and are the same everywhere.
DEVICE_ROWS = 20_000


# Components with fewer rows keep their maps as they are. Distances from the median are compared with NEAR times the
# median distance. Loss J and correlation of distances of Fashion-MNIST, mean of 2 seeds: 167,430, 0.617 on the eigenmap
# itself, 165,690, 0.589 on the evened one; whole maps of the digit 1, of 5 seeds: 4 and 5.
EVENED_ROWS, NEAR = 500, 0.3
HALVINGS = 5


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

    def evened(self) -> ComponentMaps:
        """Return maps on which rows far from the middle of a large component are closer to it.

        On an eigenmap a few rows lie far out and most of them in little room, where clusters cover each other.
        """
        vectors = self.vectors.copy()
        for large in np.flatnonzero(self.sizes >= EVENED_ROWS):
            rows = self.order[self.bounds[large] : self.bounds[large + 1]]
            vectors[rows] = _evened(vectors[rows].astype(np.float64))
        return replace(self, vectors=vectors)

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


def _evened(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse hyperbolic sine of the distances from the median, except for a factor.

    asinh(x) is twice asinh(x / sqrt(2 + 2 sqrt(1 + x^2))), and nearly x for a small x. Roots and quotients are
    correctly rounded on all platforms, NumPy's arcsinh is not.
    """
    places -= np.median(places, axis=0)
    unit = NEAR * np.median(np.abs(places), axis=0)
    places /= np.where(unit > 0, unit, 1.0)
    for _ in range(HALVINGS):
        places /= np.sqrt(2.0 + 2.0 * np.sqrt(1.0 + places * places))
    return places


def component_maps(graph: Graph, n_components: int, *, seed: int = 0, n_jobs: int = -1) -> ComponentMaps:
    """Find the components of a symmetric graph and compute the eigenmap of each; same bits for any ``n_jobs``."""
    place = graph.place
    if place is not None and graph.n > DEVICE_ROWS and backend_of(place).solves_on_device(n_components):
        edges = (graph.array(name) for name in ("indptr", "indices", "weights"))
        return ComponentMaps(*backend_of(place).component_eigenmaps(*edges, n_components, seed, n_jobs))
    if place is not None and graph.n > DEVICE_ROWS:
        say_fallback("the spectral start", f"a GPU has none for {n_components} components")
    found = cpu.component_eigenmaps(graph.indptr, graph.indices, graph.weights, n_components, seed, n_jobs)
    return ComponentMaps(*found)
