"""Places around a map, for rows that have no neighbor in it.

Such rows attract nobody and are attracted by nobody, so no place among the others would mean anything. The rows of a
fit lie outside of a circle (sphere) around all other points, in the order of their numbers, with one row per square
(cube) of a fixed width; in a plane they are spread evenly, in other maps in random directions. A new row lies on a
circle between the map and these rows, in a direction that is a function of its content.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.graph import Graph
from vicinal.layout.forces import OutputSpace
from vicinal.layout.schedule import SMALL_ROWS

# In units of the radius of the map: of the circle of new rows, of the circle beyond which the rows of a fit lie, and
# the width of the room that each of these has.
NEW_ROWS, FITTED_ROWS, ROOM = 1.1, 1.2, 0.04
LEAST_RADIUS = 1.0  # of a map of one point, or of none
HASH_STEPS = tuple(np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))  # splitmix64
GOLDEN_TURN = 0.6180339887498949  # turns between successive rows fill a circle evenly


@dataclass(frozen=True)
class Surroundings:
    """The circle (sphere) around the points of a map."""

    center: NDArray[np.float64]
    radius: float

    @staticmethod
    def of(places: NDArray[np.float32]) -> Surroundings:
        """Return the circle around the middle of the box that holds all points."""
        if not len(places):
            return Surroundings(np.zeros(places.shape[1]), LEAST_RADIUS)
        center = (places.min(axis=0).astype(np.float64) + places.max(axis=0)) / 2
        farthest = max(
            float(_norms(block - center).max()) for block in np.array_split(places, len(places) // 65536 + 1)
        )
        return Surroundings(center, max(farthest, LEAST_RADIUS))

    def fitted_rows(self, count: int) -> NDArray[np.float32]:
        """Return the places of ``count`` rows without neighbors."""
        dim = len(self.center)
        number = np.arange(1, count + 1, dtype=np.float64)
        # Powers of the radius, relative to that of the inner circle: every row adds the same volume.
        distance = FITTED_ROWS * (1.0 + number * (ROOM / FITTED_ROWS) ** dim) ** (1.0 / dim)
        return self._at(_directions(number, dim), distance)

    def new_rows(self, keys: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the places of new rows without neighbors, given hashes of their content."""
        number = (keys >> np.uint64(40)).astype(np.float64) + 1.0
        return self._at(_directions(number, len(self.center)), np.full(len(keys), NEW_ROWS))

    def _at(self, direction: NDArray[np.float64], distance: NDArray[np.float64]) -> NDArray[np.float32]:
        places: NDArray[np.float32] = (self.center + self.radius * distance[:, None] * direction).astype(np.float32)
        return places


def surrounded(places: NDArray[np.float32], isolated: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the places with the isolated rows around those of the others."""
    count = int(np.count_nonzero(isolated))
    if count == 0:
        return places
    out = places.copy()
    out[isolated] = Surroundings.of(places[~isolated]).fitted_rows(count)
    return out


def spread_rows(places: NDArray[np.float32], rows: NDArray[np.int64], n: int) -> NDArray[np.float32]:
    """Return an array of ``n`` rows with the given places at ``rows`` and 0 elsewhere."""
    out = np.zeros((n, places.shape[1]), dtype=np.float32)
    out[rows] = places
    return out


def _directions(number: NDArray[np.float64], dim: int) -> NDArray[np.float64]:
    """Return unit vectors in all directions, one per whole number."""
    if dim == 2:
        angle = 2 * np.pi * ((number * GOLDEN_TURN) % 1.0)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inside = np.stack([_hashed(number * dim + axis) for axis in range(dim)], axis=1)
    return inside / _norms(inside)[:, None]


def _hashed(number: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a hash of each whole number, between -1 and 1 and never 0."""
    bits = number.astype(np.uint64)
    for step in HASH_STEPS:
        bits = np.multiply(bits ^ np.right_shift(bits, np.uint64(31)), step, dtype=np.uint64)
    return (np.right_shift(bits, np.uint64(40)).astype(np.float64) + 0.5) / 2.0**23 - 1.0


def _norms(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    return np.asarray(np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1)))


@dataclass(frozen=True)
class Orientation:
    """The component of each row, and where its rows started relative to their mean."""

    component: NDArray[np.int32]
    start: NDArray[np.float64]

    @classmethod
    def of(cls, graph: Graph, start: NDArray[np.float32], space: OutputSpace, n_jobs: int = 1) -> Orientation | None:
        """Return the orientation of a map of several components, or None for other and for large maps."""
        if graph.n > SMALL_ROWS or start.shape[1] != 2 or not space.is_euclidean:
            return None
        component = cpu.connected_components(graph.indptr, graph.indices, graph.weights, n_jobs)
        if not component.any():
            return None
        return cls(component, start - _means(component, start)[component])

    def restored(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the places with every component turned about its mean as close to its start as possible.

        Sums are in the order of the rows and roots are correctly rounded, so bits are the same on all platforms.
        """
        middle = _means(self.component, places)[self.component]
        x, y = (places - middle).T
        u, v = self.start.T
        along, across = np.bincount(self.component, x * u + y * v), np.bincount(self.component, x * v - y * u)
        length = np.sqrt(along * along + across * across)
        turned = np.isfinite(length) & (length > 0)
        length[~turned] = 1.0
        cosine, sine = np.where(turned, (along, across) / length, [[1.0], [0.0]])[:, self.component]
        turned_back = np.column_stack([cosine * x - sine * y, sine * x + cosine * y])
        back: NDArray[np.float32] = (middle + turned_back).astype(np.float32)
        return back


def _means(component: NDArray[np.int32], places: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the mean place of every component."""
    rows = np.bincount(component)
    return np.column_stack([np.bincount(component, axis) / rows for axis in places.T])
