"""How much of each row's neighborhood a map keeps.

Let N_X(i) be the k nearest other rows of row i in the data, and N_Y(i, m) the m nearest other points in the map:

    near_i = |N_X(i) & N_Y(i, k)| / k          wide_i = |N_X(i) & N_Y(i, 10 k)| / k

``near`` asks whether true neighbors are neighbors in the map, ``wide`` whether they are at least in the same part of
it; its 10 k are at most a fifth of the points. Both need the neighbor table of the rows only, and two
distances per point of the map. A true neighbor at exactly such a distance counts as kept.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.table import Neighbors

Floats = NDArray[np.float64]

# The wide scale, as a multiple of the number of neighbors.
WIDE_FACTOR = 10
# The wide scale has at most this fraction of the points: among half of them nearly every neighbor would be kept.
LARGEST_SHARE = 5
# Entries of the tables that are held at a time: 4 M of 8 bytes.
BLOCK_ENTRIES = 1 << 22
# With more components a tree compares nearly all pairs of points.
MOST_TREE_COMPONENTS = 8
# Distances are compared with this relative tolerance, since those of the tree are rounded to float32.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Preservation:
    """The kept share of each row's neighbors, and the local scale of the map around each point.

    ``near`` and ``wide`` are NaN for rows without neighbors. ``near_radius`` and ``wide_radius`` are the distances to
    the k-th and the ``within``-th nearest point of the map.
    """

    n_neighbors: int
    within: int
    near: Floats
    wide: Floats
    near_radius: Floats
    wide_radius: Floats

    @property
    def score(self) -> Floats:
        """The mean of both shares."""
        return 0.5 * (self.near + self.wide)


def measure_preservation(
    neighbors: Neighbors, places: NDArray[np.float32], n_neighbors: int, n_jobs: int = -1
) -> Preservation:
    """Measure the kept share of the first ``n_neighbors`` other rows of each row of the table.

    Parameters
    ----------
    neighbors : Neighbors
        The table of all rows, the row itself first.
    places : float32 array of shape (n_rows, n_components)
        The map.
    n_neighbors : int
        Number of other rows, less than the columns of the table and the number of rows.
    n_jobs : int, default -1
        Number of threads.
    """
    n = len(places)
    k, within = n_neighbors, max(n_neighbors, min(WIDE_FACTOR * n_neighbors, n // LARGEST_SHARE))
    near_radius, wide_radius = map_radii(places, (k, within), n_jobs)
    near, wide = np.full(n, np.nan), np.full(n, np.nan)
    block = max(1, BLOCK_ENTRIES // (k * places.shape[1]))
    for begin in range(0, n, block):
        rows = slice(begin, min(begin + block, n))
        index = neighbors.index[rows, 1 : k + 1]
        present = index >= 0
        length = distances_between(places[rows, None], places[np.maximum(index, 0)])
        count = np.maximum(present.sum(axis=1), 1)
        known = present.any(axis=1)
        for share, radius in ((near, near_radius), (wide, wide_radius)):
            kept = present & (length <= radius[rows, None] * (1.0 + ROUNDING))
            share[rows] = np.where(known, kept.sum(axis=1) / count, np.nan)
    return Preservation(k, within, near, wide, near_radius, wide_radius)


def map_radii(places: NDArray[np.float32], ranks: tuple[int, ...], n_jobs: int = -1) -> list[Floats]:
    """Return the distance of each point to its nearest other points of the given ranks, in ascending order."""
    n, n_components = places.shape
    places = np.ascontiguousarray(places, dtype=np.float32)
    radii = [np.zeros(n) for _ in ranks]
    # The point itself, or another point at the same place, takes column 0.
    if n_components > MOST_TREE_COMPONENTS:
        table = NeighborIndex(places, n_jobs=n_jobs).search(ranks[-1] + 1)
        return [table.distance[:, rank].astype(np.float64) for rank in ranks]
    tree = cpu.PointTree(places, n_jobs)
    block = max(1, BLOCK_ENTRIES // (ranks[-1] + 1))
    for begin in range(0, n, block):
        rows = slice(begin, min(begin + block, n))
        distance = tree.query(places[rows], ranks[-1] + 1, n_jobs)[1]
        for radius, rank in zip(radii, ranks, strict=True):
            radius[rows] = distance[:, rank]
    return radii


def distances_between(heads: NDArray[np.float32], tails: NDArray[np.float32]) -> Floats:
    """Return euclidean distances along the last axis, computed in float64."""
    return np.asarray(np.sqrt(np.square(heads.astype(np.float64) - tails).sum(axis=-1)))
