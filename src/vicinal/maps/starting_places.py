"""Starting places of rows that join an existing map."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

# Standard deviation of the noise around the nearest neighbor's place, in units of the map.
NOISE = 0.05
# Room for pieces is sought in the first components only: two are enough, and cells of more would be too many.
AXES = 2
# Cells are numbered up to this distance from the middle of a map; points beyond it count as there.
FARTHEST = 2**30


def places_near_neighbors(
    index: NDArray[np.int32], places: NDArray[np.float32], rng: np.random.Generator, gap: float
) -> NDArray[np.float32]:
    """Place rows at their nearest neighbor that has a place, plus Gaussian noise.

    Parameters
    ----------
    index : array [n_new, k]
        The neighbors of the rows, which are numbered from ``len(places)``, nearest first; -1 for none.
    places : array [n_placed, n_components]
        The places of all earlier rows.
    rng : numpy.random.Generator
    gap : float
        Distance from the rest of the map at which a row starts if none of its neighbors can be placed.

    Returns
    -------
    array [n_new, n_components]
        Rows without placed neighbors start in free room, as near to the middle of the map as there is any: the width of
        a map of many pieces grows with the square root of their number.
    """
    known = len(places)
    new = np.full((len(index), places.shape[1]), np.nan, np.float32)
    waiting = np.arange(len(index))
    free: Iterator[NDArray[np.float64]] | None = None
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
            free = free or free_places(places, rng, gap)
            new[waiting[0]] = next(free)
            waiting = waiting[1:]
    new += rng.normal(scale=NOISE, size=new.shape)
    return new


def are_elsewhere(index: NDArray[np.int32], known: int) -> bool:
    """Return whether rows are mostly neighbors of each other, so that the map has no room for them yet.

    ``index`` are the neighbors of rows numbered from ``known``, each row itself first.
    """
    # Halfway between the share of new rows, which rows in a random order have, and all.
    share = len(index) / max(known + len(index), 1)
    return bool(2 * np.count_nonzero(index[:, 1:] >= known) > (1 + share) * index[:, 1:].size)


def free_places(places: NDArray[np.float32], rng: np.random.Generator, gap: float) -> Iterator[NDArray[np.float64]]:
    """Yield places that are about ``gap`` or more apart from all points of a map and from each other.

    They are centers of cells of a square grid whose own and adjacent cells are empty, those near the median of the map
    first, in a random order among cells that are about as near.
    """
    middle = np.median(places, axis=0).astype(np.float64)
    axes = min(AXES, places.shape[1])
    cells = np.clip(np.rint((places[:, :axes] - middle[:axes]) / gap), -FARTHEST, FARTHEST).astype(np.int64)
    _, one_each = np.unique(cells @ (2 * FARTHEST + 1) ** np.arange(axes), return_index=True)
    around = np.stack(np.meshgrid(*[[-1, 0, 1]] * axes, indexing="ij"), axis=-1).reshape(-1, axes)
    full = {tuple(cell) for cell in (cells[one_each][:, None, :] + around).reshape(-1, axes).tolist()}
    inner, outer = -1.0, 4.0
    while True:
        # The cells of a ring, twice as wide each time.
        side = np.arange(-int(outer), int(outer) + 1)
        cells = np.stack(np.meshgrid(*[side] * axes, indexing="ij"), axis=-1).reshape(-1, axes)
        distance = np.linalg.norm(cells, axis=1)
        cells = cells[(distance > inner) & (distance <= outer)]
        order = np.argsort(np.linalg.norm(cells, axis=1) + rng.random(len(cells)), kind="stable")
        for cell in cells[order]:
            if tuple(cell.tolist()) not in full:
                place = middle.copy()
                place[:axes] += gap * cell
                yield place
        inner, outer = outer, 2.0 * outer
