"""Exact nearest neighbors among the points of a map."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vicinal.backends import cpu
from vicinal.neighbors.table import Neighbors


def nearest_points(points: ArrayLike, queries: ArrayLike, k: int, n_jobs: int = -1) -> Neighbors:
    """Find the k nearest points of every query by a k-d tree.

    Maps have few components, for which a tree is fast; with many components it is correct but compares with nearly all
    points.

    Parameters
    ----------
    points : array-like, shape (n, c)
        The points, finite.
    queries : array-like, shape (m, c)
        The queries, finite. If they are the points, each point is among its own neighbors, unless k or more points with
        lower numbers have the same coordinates.
    k : int
        Number of neighbors, between 1 and n.
    n_jobs : int, default=-1
        Number of threads.

    Returns
    -------
    Neighbors
        A table of m rows, sorted by (distance, index). Distances are computed in double precision from coordinates in
        float32.
    """
    points = np.ascontiguousarray(points, dtype=np.float32)
    queries = np.ascontiguousarray(queries, dtype=np.float32)
    return Neighbors(*cpu.PointTree(points, n_jobs).query(queries, k, n_jobs))
