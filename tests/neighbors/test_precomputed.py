"""Neighbor tables from precomputed distances and precomputed neighbors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist

from vicinal import Neighbors, find_neighbors
from vicinal.neighbors.table import neighbors_from_distances, neighbors_from_knn, query_from_distances

N, K = 60, 8


@pytest.fixture(scope="module")
def rows() -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)


@pytest.fixture(scope="module")
def distances(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    return cdist(rows.astype(float), rows.astype(float))


def same(found: Neighbors, wanted: Neighbors) -> None:
    np.testing.assert_array_equal(found.index, wanted.index)
    np.testing.assert_allclose(found.distance, wanted.distance, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_array, np.asfortranarray])
@pytest.mark.parametrize("k", [1, 2, K, N])
def test_neighbors_from_distances_equal_those_of_the_rows(rows: Any, distances: Any, form: Any, k: int) -> None:
    same(neighbors_from_distances(form(distances), k), find_neighbors(rows, k))


def test_entries_that_are_not_stored_are_not_neighbors(distances: Any) -> None:
    near = sparse.csr_matrix(np.where(distances < 1.5, distances, 0.0))
    table = neighbors_from_distances(near, K)
    np.testing.assert_array_equal(table.index[:, 0], np.arange(N))
    for i in range(N):
        stored = np.flatnonzero((distances[i] < 1.5) & (np.arange(N) != i))
        wanted = stored[np.argsort(distances[i, stored], kind="stable")][: K - 1]
        np.testing.assert_array_equal(table.index[i, 1 : 1 + len(wanted)], wanted)
        assert (table.index[i, 1 + len(wanted) :] == -1).all()
        assert np.isinf(table.distance[i, 1 + len(wanted) :]).all()


def test_stored_zero_is_a_neighbor_at_distance_0() -> None:
    D = sparse.csr_matrix((np.array([0.0, 2.0]), (np.array([0, 0]), np.array([2, 1]))), shape=(3, 3))
    table = neighbors_from_distances(D, 3)
    np.testing.assert_array_equal(table.index, [[0, 2, 1], [1, -1, -1], [2, -1, -1]])
    np.testing.assert_array_equal(table.distance[0], [0.0, 0.0, 2.0])


def test_ties_are_broken_by_column_and_infinity_is_not_a_neighbor() -> None:
    D = np.array([[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, np.inf, 1.0], [1.0, 1.0, 0.0, 1.0], [np.inf, np.inf, np.inf, 0.0]])
    table = neighbors_from_distances(D, 3)
    np.testing.assert_array_equal(table.index, [[0, 1, 2], [1, 0, 3], [2, 0, 1], [3, -1, -1]])


def test_matrix_is_not_changed_and_need_not_be_symmetric() -> None:
    D = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 1.0], [1.0, 5.0, 0.0]])
    before = D.copy()
    np.testing.assert_array_equal(neighbors_from_distances(D, 3).index, [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
    np.testing.assert_array_equal(D, before)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_query_from_distances_sorts_by_distance(distances: Any, form: Any) -> None:
    D = distances[:7] + 0.25
    table = query_from_distances(form(D), K, N)
    np.testing.assert_array_equal(table.index, np.argsort(D, axis=1, kind="stable")[:, :K])
    np.testing.assert_allclose(table.distance, np.sort(D, axis=1)[:, :K], rtol=1e-6)


@pytest.mark.parametrize("kind", ["triple", "pair", "list", "graph", "shuffled", "without itself"])
def test_every_form_of_precomputed_knn_gives_the_same_table(rows: Any, kind: str) -> None:
    wanted = find_neighbors(rows, K)
    index, distance = find_neighbors(rows, K + 3).index, find_neighbors(rows, K + 3).distance
    if kind == "graph":
        given: Any = sparse.csr_matrix(
            (distance.ravel(), (np.repeat(np.arange(N), K + 3), index.ravel())), shape=(N, N)
        )
    elif kind == "shuffled":
        order = np.random.default_rng(0).permuted(np.tile(np.arange(K + 3), (N, 1)), axis=1)
        given = (np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1), None)
    elif kind == "without itself":
        given = (index[:, 1:].astype(np.int64), distance[:, 1:].astype(np.float64))
    else:
        given = (index, distance, object()) if kind == "triple" else (index, distance)
        given = list(given) if kind == "list" else given
    same(neighbors_from_knn(given, N, K), wanted)


def test_missing_neighbors_stay_missing() -> None:
    index = np.array([[0, 1, -1], [1, -1, -1], [2, 0, 1]])
    distance = np.array([[0.0, 1.0, np.nan], [0.0, np.nan, -1.0], [0.0, 1.0, 2.0]])
    table = neighbors_from_knn((index, distance), 3, 3)
    np.testing.assert_array_equal(table.index, [[0, 1, -1], [1, -1, -1], [2, 0, 1]])
    assert np.isinf(table.distance[1, 1:]).all()
