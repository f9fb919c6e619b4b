"""Ranks of neighbors in the data and in the map.

Rows at equal distance are ranked by index, so that a result does not depend on a sorting routine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vicinal.backends import backend_of
from vicinal.quality.spaces import Floats, Indices, Space, Table, blocks
from vicinal.runtime.residence import Place


@dataclass(frozen=True)
class RankedNeighbors:
    """Ranks of the k nearest rows of each measured row.

    ``true_in_map`` holds the ranks in the map of the nearest rows in the data, ``map_in_data`` the ranks in the data
    of the nearest rows in the map. ``n`` is the number of all rows.
    """

    n: int
    true_in_map: Indices
    map_in_data: Indices

    def trustworthiness(self) -> float:
        return float(self._scores(self.map_in_data, axis=None))

    def continuity(self) -> float:
        return float(self._scores(self.true_in_map, axis=None))

    def recall(self, within: int) -> float:
        """Return the share of the true neighbors whose rank in the map is at most ``within``."""
        return float((self.true_in_map <= within).mean())

    def local(self) -> Floats:
        """Return the smaller of trustworthiness and continuity for each row."""
        return np.minimum(*(self._scores(ranks, axis=1) for ranks in (self.map_in_data, self.true_in_map)))

    def _scores(self, ranks: Indices, axis: int | None) -> Floats:
        m, k = ranks.shape if axis is None else (1, ranks.shape[1])
        excess = np.maximum(ranks - k, 0).sum(axis=axis)
        return np.asarray(1.0 - excess * (2.0 / (m * k * (2.0 * self.n - 3.0 * k - 1.0))))


def ranked_neighbors(data: Space, flat: Space, rows: Indices, k: int) -> RankedNeighbors:
    """Rank the k nearest rows of ``rows`` against all rows, in the data and in the map, where these are."""
    true_in_map, map_in_data, place = [], [], flat.place
    for block in blocks(rows, flat.n, flat.block_values):
        high, low = data.distances(block), flat.distances(block)
        true_in_map.append(placed_ranks(low, placed_nearest(high, k, place), place))
        map_in_data.append(placed_ranks(high, placed_nearest(low, k, place), place))
        del high, low  # before the next ones are made
    return RankedNeighbors(flat.n, np.concatenate(true_in_map), np.concatenate(map_in_data))


def placed_nearest(distance: Table, k: int, place: Place) -> Indices:
    """Return, on the host, the k nearest columns of each row of a table that is on a device, or on the host."""
    return nearest(distance, k) if place is None else np.asarray(backend_of(place).nearest_columns(distance, k))


def placed_ranks(distance: Table, columns: Indices, place: Place) -> Indices:
    """Return, on the host, the ranks of columns of a table that is on a device, or on the host."""
    return ranks_of(distance, columns) if place is None else np.asarray(backend_of(place).ranks_of(distance, columns))


def nearest(distance: Floats, k: int) -> Indices:
    """Return the k columns of each row with the smallest distances, in the order of (distance, index)."""
    limits = np.partition(distance, k - 1, axis=1)[:, k - 1]
    found = np.empty((len(distance), k), dtype=np.int64)
    for row, limit, out in zip(distance, limits, found, strict=True):
        candidates = np.flatnonzero(row <= limit)
        out[:] = candidates[np.argsort(row[candidates], kind="stable")[:k]]
    return found


def ranks_of(distance: Floats, columns: Indices) -> Indices:
    """Return the ranks, counted from 1, of the given columns of each row in the order of (distance, index).

    For a few columns, counting the smaller distances is several times cheaper than sorting the whole row.
    """
    ranks = np.empty_like(columns)
    for row, wanted, out in zip(distance, columns, ranks, strict=True):
        for a, (j, value) in enumerate(zip(wanted, row[wanted], strict=True)):
            out[a] = np.count_nonzero(row < value) + np.count_nonzero(row[: j + 1] == value)
    return ranks
