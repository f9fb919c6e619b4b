"""Fuzzy graphs: memberships of neighbors (survey eq. 1-3), made symmetric by a fuzzy set operation (eq. 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors


def fuzzy_graph(
    neighbors: Neighbors,
    *,
    n_neighbors: float | None = None,
    local_connectivity: float = 1.0,
    set_op_mix_ratio: float = 1.0,
    disconnection_distance: float | None = None,
    n_jobs: int = -1,
) -> Graph:
    """The symmetric fuzzy graph of a neighbour table.

    ``n_neighbors`` is the k of eq. 3, the table's columns unless given. ``set_op_mix_ratio`` mixes fuzzy union (1)
    and intersection (0); neighbours at or beyond ``disconnection_distance`` are no neighbours.
    """
    if disconnection_distance is not None:
        neighbors = neighbors.within(disconnection_distance)
    k = float(neighbors.k if n_neighbors is None else n_neighbors)
    rho, sigma = cpu.smooth_knn(neighbors.distance, k, local_connectivity, 1.0, False, n_jobs)
    membership = cpu.memberships(neighbors.index, neighbors.distance, rho, sigma, False, n_jobs)
    indptr, indices, weights = cpu.symmetrize(neighbors.index, membership, set_op_mix_ratio, n_jobs)
    return Graph(indptr, indices, weights, neighbors.n, rho, sigma)


def bipartite_graph(neighbors: Neighbors, n_tails: int, *, local_connectivity: float = 1.0, n_jobs: int = -1) -> Graph:
    """Edges from new rows to their nearest known rows, one direction only.

    A new row is no neighbour of itself, so one neighbour fewer is taken to be certainly connected.
    """
    # The sum of eq. 3 skips the first column, where a fitted table has the row itself.
    padded = np.concatenate([np.zeros((neighbors.n, 1), np.float32), neighbors.distance], axis=1)
    certain = max(0.0, local_connectivity - 1.0)
    rho, sigma = cpu.smooth_knn(padded, float(neighbors.k), certain, 1.0, True, n_jobs)
    weights = cpu.memberships(neighbors.index, neighbors.distance, rho, sigma, True, n_jobs)
    return Graph.to_known_rows(neighbors, weights, n_tails, rho, sigma)


def local_memberships(
    rows: NDArray[np.int32],
    neighbors: Neighbors,
    *,
    local_connectivity: float = 1.0,
    disconnection_distance: float | None = None,
    n_jobs: int = -1,
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """Neighbours, memberships, rho and sigma of some rows of a table (eq. 1-3), each from its own line alone.

    A row's sigma that has no rho to stand on is floored by its own distances, not by those of all rows.
    """
    if disconnection_distance is not None:
        neighbors = neighbors.within(disconnection_distance)
    rho, sigma = cpu.smooth_knn(neighbors.distance, float(neighbors.k), local_connectivity, 1.0, True, n_jobs)
    others = np.where(neighbors.index == rows[:, None], np.int32(-1), neighbors.index)
    return others, cpu.memberships(others, neighbors.distance, rho, sigma, True, n_jobs), rho, sigma
