"""Starting places of rows that join an existing map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Standard deviation of the noise around the nearest neighbor's place, in units of the map.
NOISE = 0.05
# Distance of a row without placed neighbors from the center of the map, in half widths of the map.
OUTSIDE = 1.2


def places_near_neighbors(
    index: NDArray[np.int32], places: NDArray[np.float32], rng: np.random.Generator
) -> NDArray[np.float32]:
    """Place rows at their nearest neighbor that has a place, plus Gaussian noise.

    Parameters
    ----------
    index : array [n_new, k]
        The neighbors of the rows, which are numbered from ``len(places)``, nearest first; -1 for none.
    places : array [n_placed, n_components]
        The places of all earlier rows.
    rng : numpy.random.Generator

    Returns
    -------
    array [n_new, n_components]
        A row none of whose neighbors can be placed starts outside of the map, in a random direction.
    """
    known = len(places)
    new = np.full((len(index), places.shape[1]), np.nan, np.float32)
    waiting = np.arange(len(index))
    while waiting.size:
        tails = index[waiting]
        is_placed = (tails >= 0) & ((tails < known) | np.isfinite(new[np.maximum(tails - known, 0), 0]))
        nearest = np.argmax(is_placed, axis=1)[:, None]
        found = np.take_along_axis(is_placed, nearest, axis=1)[:, 0]
        tail = np.take_along_axis(tails, nearest, axis=1)[found, 0]
        is_old = (tail < known)[:, None]
        new[waiting[found]] = np.where(is_old, places[np.minimum(tail, known - 1)], new[np.maximum(tail - known, 0)])
        waiting = waiting[~found]
        if waiting.size and not found.any():
            new[waiting[0]] = _outside(places, rng)
            waiting = waiting[1:]
    new += rng.normal(scale=NOISE, size=new.shape)
    return new


def _outside(places: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return a place outside of a map, in a random direction."""
    low, high = places.min(axis=0), places.max(axis=0)
    direction = rng.normal(size=places.shape[1:])
    direction /= np.linalg.norm(direction)
    return np.asarray((low + high) / 2 + OUTSIDE * direction * max(float((high - low).max()) / 2, 1.0))
