"""Exact neighbors among the points of a map."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal.neighbors.search import nearest_points


def brute_force(points: NDArray[np.float32], queries: NDArray[np.float32], k: int) -> tuple[NDArray, NDArray]:
    d2 = ((queries.astype(np.float64)[:, None] - points.astype(np.float64)) ** 2).sum(axis=2)
    index = np.argsort(d2, axis=1, kind="stable")[:, :k]
    return index, np.sqrt(np.take_along_axis(d2, index, axis=1))


@pytest.mark.parametrize("columns", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_nearest_points_equal_brute_force(columns: int, n_jobs: int) -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(500, columns)).astype(np.float32)
    queries = rng.normal(size=(80, columns)).astype(np.float32)
    index, distance = brute_force(points, queries, 7)
    found = nearest_points(points, queries, 7, n_jobs)
    np.testing.assert_array_equal(found.index, index)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-6)


def test_ties_are_broken_by_index() -> None:
    points = np.random.default_rng(0).integers(0, 4, size=(300, 2)).astype(np.float32)
    index, _ = brute_force(points, points, 30)
    np.testing.assert_array_equal(nearest_points(points, points, 30).index, index)


def test_distant_queries_are_ordered_in_double_precision() -> None:
    points = np.array([[3.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    np.testing.assert_array_equal(nearest_points(points, [[1e10, 0.0]], 3).index, [[0, 2, 1]])


@pytest.mark.parametrize("k", [0, 4])
def test_k_beyond_the_points_is_an_error(k: int) -> None:
    with pytest.raises(ValueError, match="k must lie between 1 and the number of points"):
        nearest_points(np.eye(3), np.eye(3), k)
