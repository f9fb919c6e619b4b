"""How far the rows of a map move when it is laid out again.

Two maps of the same rows differ by more than the places of single rows: a whole cluster may lie elsewhere or be turned.
That is compared locally: around each row, its ``around`` nearest points of the map are fitted to their places in the
other map by a translation and a rotation or reflection (Procrustes), and the row's own distance from the place that
this predicts is its displacement. A row that another map puts among other neighbors has a large one.

    spread_i = sqrt(mean over the other maps of displacement_i^2)

Four maps estimate this coarsely. Rows that are neighbors in the data share most of their displacement, so `smoothed`
takes the geometric mean of a row's spread and of that of its graph neighbors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.neighbors.points import nearest_points

Floats = NDArray[np.float64]

# Points of the map that are fitted around each row.
AROUND = 15
# Neighborhoods that are fitted at a time.
BLOCK_ROWS = 1 << 15
# A spread of 0 has no logarithm; this share of the median spread takes its place.
LEAST_SPREAD = 1e-6


def local_spread(
    places: NDArray[np.float32], others: Sequence[NDArray[np.float32]], around: int = AROUND, n_jobs: int = -1
) -> Floats:
    """Return the spread of each row over other maps of the same rows.

    Parameters
    ----------
    places : array of shape (n_rows, n_components)
        The map that is judged.
    others : sequence of arrays of the same shape
        Maps that were made with other random numbers.
    around : int, default 15
        Number of points that are fitted around each row.
    n_jobs : int, default -1
        Number of threads.
    """
    n = len(places)
    around = min(around, n - 1)
    if around < 1 or not others:
        return np.full(n, np.nan)
    near = _others_nearby(nearest_points(places, places, around + 1, n_jobs).index)
    squared = np.zeros(n)
    for other in others:
        for begin in range(0, n, BLOCK_ROWS):
            rows = slice(begin, min(begin + BLOCK_ROWS, n))
            squared[rows] += _squared_displacement(places, other, near[rows], rows)
    return np.sqrt(squared / len(others))


def _others_nearby(index: NDArray[np.int32]) -> NDArray[np.int32]:
    """Remove each row from its own list; the farthest point is removed if others at the same place hide the row."""
    own = index == np.arange(len(index))[:, None]
    own[~own.any(axis=1), -1] = True
    others: NDArray[np.int32] = index[~own].reshape(len(index), -1)
    return others


def _squared_displacement(
    places: NDArray[np.float32], other: NDArray[np.float32], near: NDArray[np.int32], rows: slice
) -> Floats:
    target, source = places[near].astype(np.float64), other[near].astype(np.float64)
    target_centre, source_centre = target.mean(axis=1), source.mean(axis=1)
    # einsum sums in a fixed order; the order of a BLAS product depends on its number of threads.
    moment = np.einsum("nki,nkj->nij", source - source_centre[:, None], target)
    predicted = np.einsum("nc,ncd->nd", other[rows] - source_centre, _rotations(moment)) + target_centre
    return np.asarray(np.square(predicted - places[rows]).sum(axis=1))


def _rotations(moment: Floats) -> Floats:
    """Return the rotations or reflections R with the largest trace of R' M, for each matrix M of ``moment``."""
    if moment.shape[1] != 2:
        u, _, vt = np.linalg.svd(moment)
        return np.asarray(u @ vt)
    # In the plane: the rotation or the reflection along (M + adj M) or (M - adj M), whichever is longer.
    a, b, c, d = moment[:, 0, 0], moment[:, 0, 1], moment[:, 1, 0], moment[:, 1, 1]
    turn, mirror = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    sign = np.where(turn >= mirror, 1.0, -1.0)
    longer = np.maximum(turn, mirror)
    unit = 1.0 / np.where(longer > 0, longer, 1.0)
    cosine, sine = np.where(longer > 0, (a + sign * d) * unit, 1.0), (b - sign * c) * unit
    return np.stack([cosine, sine, -sign * sine, sign * cosine], axis=1).reshape(-1, 2, 2)


def smoothed(spread: Floats, graph: Graph) -> Floats:
    """Return the geometric mean of each row's spread and the weighted geometric mean of its graph neighbors'."""
    known = np.isfinite(spread)
    if not known.all() or not spread.any():
        return spread
    log = np.log(np.maximum(spread, LEAST_SPREAD * float(np.median(spread[spread > 0]))))
    degree = graph.degree()
    around = np.divide(graph.to_scipy().astype(np.float64) @ log, degree, out=log.copy(), where=degree > 0)
    return np.where(spread > 0, np.exp(0.5 * (log + around)), 0.0)
