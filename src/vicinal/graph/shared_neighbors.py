"""Neighbors chosen among nearest rows by what they share: their distance, and neighbors of their own.

Short documents have many neighbors by accident: one rare word in common makes a small distance. Rows of one topic also
have neighbors in common. So of a few times k nearest rows those k are taken that have the smallest

    d_ij / largest distance - |N_i and N_j| / k,        N_i: the k nearest rows of row i, with the row itself.

NN-descent, which looks for neighbors among the neighbors of neighbors, misses the accidental ones, too: for this reason
umap-learn's map of 8,000 package descriptions is better than that of their exact neighbors (ARCHITECTURE.md).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.table import Neighbors

POOL = 3  # nearest rows to choose from, per neighbor
BLOCK_PAIRS = 1 << 22  # pairs of neighbors that are compared at a time, which bounds the memory


def prefer_shared(neighbors: Neighbors, k: int, largest: float) -> Neighbors:
    """Choose k of the neighbors of every row of a table of all rows, the row itself first.

    Parameters
    ----------
    neighbors : Neighbors
        More than k nearest rows of every row.
    k : int
        Number of neighbors to choose, the row itself included.
    largest : float
        The largest distance of the metric.

    Returns
    -------
    Neighbors
        A table of k columns, sorted as ``neighbors`` is.
    """
    index, distance = neighbors.index, neighbors.distance
    near = np.ascontiguousarray(index[:, :k])
    chosen = np.empty((neighbors.n, k), dtype=np.int64)
    n_rows = max(1, BLOCK_PAIRS // (neighbors.k * k * k))
    for begin in range(0, neighbors.n, n_rows):
        block = slice(begin, begin + n_rows)
        value = distance[block] / np.float32(largest) - _shares(near, index[block], near[block])
        value[:, 0] = -np.inf
        chosen[block] = np.sort(np.argsort(value, axis=1, kind="stable")[:, :k], axis=1)
    near = np.take_along_axis(index, chosen, axis=1)
    return replace(neighbors, index=near, distance=np.take_along_axis(distance, chosen, axis=1)).on(neighbors.place)


def _shares(near: NDArray[np.int32], candidates: NDArray[np.int32], own: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the share of its nearest rows that each candidate has in common with the row."""
    theirs = near[np.maximum(candidates, 0)]
    common = np.zeros(candidates.shape, dtype=np.float32)
    for column in own.T:
        common += ((theirs == column[:, None, None]) & (column >= 0)[:, None, None]).any(axis=2)
    return common / np.float32(near.shape[1])
