"""The graph of UMAP: memberships of neighbors (survey eq. 1-3), made symmetric by a fuzzy set operation (eq. 4).

For a neighbor j of row i at distance d the membership is exp(-max(0, d - rho_i) / sigma_i), where rho_i is the distance
of the nearest neighbor and sigma_i makes the memberships of the row sum to log2(k).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, cpu, resolve_place
from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors

POOL = 3  # nearest rows to choose from, per neighbor
BLOCK_PAIRS = 1 << 22  # pairs of neighbors that are compared at a time, which bounds the memory


def prefer_shared(neighbors: Neighbors, k: int, largest: float, nearest: NDArray[np.int32] | None = None) -> Neighbors:
    """Choose k of the neighbors of every row by their distance and the neighbors they share, the row itself first.

    ``largest`` is the largest distance of the metric. If ``neighbors`` has the lines of some rows only, ``nearest``
    holds the k nearest rows of all rows.
    """
    index, distance = neighbors.index, neighbors.distance
    own = np.ascontiguousarray(index[:, :k])
    near = own if nearest is None else nearest
    chosen = np.empty((neighbors.n, k), dtype=np.int64)
    n_rows = max(1, BLOCK_PAIRS // (neighbors.k * k * k))
    for begin in range(0, neighbors.n, n_rows):
        block = slice(begin, begin + n_rows)
        value = distance[block] / np.float32(largest) - _shares(near, index[block], own[block])
        value[:, 0] = -np.inf
        chosen[block] = np.sort(np.argsort(value, axis=1, kind="stable")[:, :k], axis=1)
    chosen_rows = np.take_along_axis(index, chosen, axis=1)
    return replace(neighbors, index=chosen_rows, distance=np.take_along_axis(distance, chosen, axis=1)).on(
        neighbors.place
    )


def _shares(near: NDArray[np.int32], candidates: NDArray[np.int32], own: NDArray[np.int32]) -> NDArray[np.float32]:
    """Return the share of its nearest rows that each candidate has in common with the row."""
    theirs = near[np.maximum(candidates, 0)]
    common = np.zeros(candidates.shape, dtype=np.float32)
    for column in own.T:
        common += ((theirs == column[:, None, None]) & (column >= 0)[:, None, None]).any(axis=2)
    return common / np.float32(near.shape[1])


def fuzzy_graph(
    neighbors: Neighbors,
    *,
    n_neighbors: float | None = None,
    local_connectivity: float = 1.0,
    set_op_mix_ratio: float = 1.0,
    disconnection_distance: float | None = None,
    n_jobs: int = -1,
    device: str | None = None,
) -> Graph:
    """Build the symmetric fuzzy graph of a neighbor table.

    Parameters
    ----------
    neighbors : Neighbors
        Neighbor table, the row itself first.
    n_neighbors : float, optional
        The k of eq. 3; by default the number of columns of the table.
    local_connectivity : float, default 1
        Number of nearest neighbors with membership 1, which sets rho; fractions interpolate.
    set_op_mix_ratio : float, default 1
        Mixture of fuzzy union (1) and fuzzy intersection (0).
    disconnection_distance : float, optional
        Neighbors at this distance or beyond are ignored.
    n_jobs : int, default -1
        Number of threads; -1 uses all. The result does not depend on it.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        Where the work is done; None means where the table lives. The result has the same bits everywhere.

    Returns
    -------
    graph : Graph

    See Also
    --------
    entropic_graph : the graph of t-SNE and LargeVis.
    find_neighbors : makes the table.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import find_neighbors, fuzzy_graph
    >>> X = load_iris().data
    >>> graph = fuzzy_graph(find_neighbors(X, 10))
    >>> bool(graph.weights.max() <= 1.0)
    True
    """
    if device is not None:
        neighbors = neighbors.on(resolve_place(device))
    if disconnection_distance is not None:
        neighbors = neighbors.within(disconnection_distance)
    k = float(neighbors.k if n_neighbors is None else n_neighbors)
    work, index, distance = backend_of(neighbors.place), neighbors.array("index"), neighbors.array("distance")
    rho, sigma = work.smooth_knn(distance, k, local_connectivity, 1.0, False, n_jobs)
    membership = work.memberships(index, distance, rho, sigma, False, n_jobs)
    edges = work.symmetrize(index, membership, set_op_mix_ratio, n_jobs)
    return Graph.at(neighbors.place, edges, neighbors.n, rho, sigma)


def bipartite_graph(neighbors: Neighbors, n_tails: int, *, local_connectivity: float = 1.0, n_jobs: int = -1) -> Graph:
    """Build the graph from new rows to their nearest known rows, in this direction only.

    The table of a new row does not contain the row itself. Therefore one neighbor fewer has membership 1.
    """
    work, index, distance = backend_of(neighbors.place), neighbors.array("index"), neighbors.array("distance")
    # smooth_knn skips the first column, which in a table of known rows holds the row itself.
    with work.active():
        padded = work.xp.concatenate([work.xp.zeros((neighbors.n, 1), np.float32), distance], axis=1)
    certain = max(0.0, local_connectivity - 1.0)
    rho, sigma = work.smooth_knn(padded, float(neighbors.k), certain, 1.0, True, n_jobs)
    weights = work.memberships(index, distance, rho, sigma, True, n_jobs)
    return Graph.to_known_rows(neighbors, weights, n_tails, rho, sigma)


def local_memberships(
    rows: NDArray[np.int32],
    neighbors: Neighbors,
    *,
    local_connectivity: float = 1.0,
    mean_distance: float | None = None,
    n_jobs: int = -1,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Return the neighbors, memberships, rho and sigma of some rows of a table (eq. 1-3).

    ``rows`` are the numbers of the rows; a row is removed from its own neighbors (-1). If rho is 0, the floor of sigma
    uses the ``mean_distance`` of all rows. Without it the floor uses the mean of the row, so that each row depends on
    its own neighbors only.
    """
    distance, how = neighbors.distance, (local_connectivity, 1.0, mean_distance is None, n_jobs, mean_distance)
    rho, sigma = cpu.smooth_knn(distance, float(neighbors.k), *how)
    others = np.where(neighbors.index == rows[:, None], np.int32(-1), neighbors.index)
    return others, cpu.memberships(others, distance, rho, sigma, True, n_jobs), rho, sigma


def smooth_distances(
    distance: NDArray[np.float32], k: float, local_connectivity: float = 1.0, bandwidth: float = 1.0
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return rho and sigma of a table of sorted distances, the row itself first (eq. 2, 3)."""
    return cpu.smooth_knn(distance, float(k), float(local_connectivity), float(bandwidth), False, -1)


def membership_strengths(
    neighbors: Neighbors, rho: NDArray[np.float32], sigma: NDArray[np.float32], *, bipartite: bool = False
) -> NDArray[np.float32]:
    """Return the directed memberships of a neighbor table (eq. 1); 0 for missing neighbors and the row itself.

    In a ``bipartite`` table a row and a neighbor of the same number are different rows.
    """
    return cpu.memberships(neighbors.index, neighbors.distance, rho, sigma, bipartite, -1)
