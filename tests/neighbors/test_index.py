"""Neighbors, NeighborIndex and find_neighbors beyond what parity covers."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Neighbors, find_neighbors, fuzzy_graph
from vicinal.backends import _core
from vicinal.neighbors.index import EXACT_ROWS, NeighborIndex
from vicinal.neighbors.metrics import METRICS as ALL_METRICS
from vicinal.neighbors.metrics import VECTOR_METRICS as METRICS
from vicinal.neighbors.metrics import canonical_metric


def test_neighbors_are_stored_as_contiguous_int32_and_float32() -> None:
    index = np.asfortranarray(np.arange(6).reshape(3, 2))
    table = Neighbors(index, np.asfortranarray(np.ones((3, 2))))
    assert table.index.dtype == np.int32
    assert table.distance.dtype == np.float32
    assert table.index.flags.c_contiguous
    assert table.distance.flags.c_contiguous
    assert (table.n, table.k) == (3, 2)


def test_neighbors_cannot_be_reassigned() -> None:
    table = Neighbors(np.zeros((1, 1), dtype=np.int32), np.zeros((1, 1), dtype=np.float32))
    with pytest.raises(AttributeError):
        table.index = table.index  # type: ignore[misc]


def test_within_drops_neighbours_at_or_beyond_the_distance() -> None:
    table = Neighbors(np.array([[0, 1, 2]]), np.array([[0.0, 1.0, 2.0]]))
    near = table.within(1.0)
    np.testing.assert_array_equal(near.index, [[0, -1, -1]])
    np.testing.assert_array_equal(near.distance, np.float32([[0.0, np.inf, np.inf]]))
    np.testing.assert_array_equal(table.index, [[0, 1, 2]])


@pytest.mark.parametrize("k", [1, 2, 19, 20])
@pytest.mark.parametrize("metric", METRICS)
def test_any_number_of_neighbours_up_to_all_rows(k: int, metric: str) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    table = find_neighbors(X, k, metric=metric)
    assert table.index.shape == (20, k)
    assert all(len(set(row)) == k for row in table.index.tolist())


@pytest.mark.parametrize("k", [2, 5, 60, 130])
@pytest.mark.parametrize("d", [10, 150])
def test_many_neighbours_by_approximate_search(grouped: Any, k: int, d: int) -> None:
    X = grouped(1000, d)
    exact = find_neighbors(X, k, method="exact")
    table = find_neighbors(X, k, method="approximate")
    assert (table.index >= 0).all()
    shared = [len(np.intersect1d(a, b)) for a, b in zip(table.index, exact.index, strict=True)]
    assert np.mean(shared) / k > 0.9


@pytest.mark.parametrize("n", [2, 5, 95, 97, 193])
def test_approximate_search_of_about_one_leaf(n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
    k = min(10, n)
    table = find_neighbors(X, k, method="approximate")
    exact = find_neighbors(X, k, method="exact")
    assert np.mean(table.index == exact.index) > 0.95


def test_auto_is_exact_for_few_rows_and_finds_nearly_all_for_many(grouped: Any) -> None:
    X = grouped(400, 6)
    np.testing.assert_array_equal(find_neighbors(X, 10).index, find_neighbors(X, 10, method="exact").index)
    # Twelve dimensions seen through 200 columns.
    view = np.random.default_rng(0).normal(size=(12, 200))
    many = (grouped(EXACT_ROWS + 500, 12) @ view).astype(np.float32)
    auto, exact = find_neighbors(many, 10), find_neighbors(many, 10, method="exact")
    shared = [len(np.intersect1d(a, b)) for a, b in zip(auto.index, exact.index, strict=True)]
    assert np.mean(shared) / 10 > 0.9


def test_seed_moves_the_approximate_search_only(grouped: Any) -> None:
    X = np.random.default_rng(0).normal(size=(3000, 100)).astype(np.float32)
    one, other = (find_neighbors(X, 10, method="approximate", seed=seed) for seed in (0, 1))
    assert not np.array_equal(one.index, other.index)


def test_an_index_is_rebuilt_from_its_pickle(grouped: Any) -> None:
    X = grouped(500, 9)
    index = NeighborIndex(X, "cosine", seed=4)
    expected = index.search(8, "approximate")
    twin = pickle.loads(pickle.dumps(index))
    found = twin.search(8, "approximate")
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.distance, expected.distance)


def test_query_before_any_search_equals_query_after_it(grouped: Any) -> None:
    rows = grouped(EXACT_ROWS + 200, 12)
    X, Q = rows[:-50], rows[-50:]
    graph = fuzzy_graph(find_neighbors(X, 10))
    fresh, used = NeighborIndex(X, seed=1), NeighborIndex(X, seed=1)
    used.search(10, "approximate")
    np.testing.assert_array_equal(fresh.query(Q, 10, graph).index, used.query(Q, 10, graph).index)


def test_query_of_no_rows(iris: NDArray[np.float32]) -> None:
    index = NeighborIndex(iris)
    found = index.query(np.empty((0, 4), dtype=np.float32), 5, fuzzy_graph(index.search(5)))
    assert found.index.shape == (0, 5)


def test_the_core_keeps_the_rows_it_was_given_alive(iris: NDArray[np.float32]) -> None:
    """Rows that the binding would have to convert must be refused, or the converted copy kept."""
    expected, _ = _core.NeighborIndex(iris, "euclidean", 0, 1).search_exact(5, 1)
    for rows in (iris.copy(), iris.astype(np.float64), np.asfortranarray(iris)):
        try:
            index = _core.NeighborIndex(rows, "euclidean", 0, 1)
        except TypeError:
            continue
        del rows
        gc.collect()
        filled = [np.full((150, 4), 1e6, dtype=np.float32) for _ in range(50)]
        found, _ = index.search_exact(5, 1)
        np.testing.assert_array_equal(found, expected)
        assert len(filled) == 50


def test_every_metric_is_ranked_by_the_core() -> None:
    known = dict(_core.metrics())
    assert {facts.core for facts in ALL_METRICS.values()} | {"function"} == set(known)
    assert not any(known[name] for name in METRICS)
    assert canonical_metric("l1") == "manhattan"
    with pytest.raises(ValueError, match="metric"):
        canonical_metric("nope")


def test_hashes_name_contents(iris: NDArray[np.float32]) -> None:
    hashes = _core.hash_rows(iris, 2)
    assert hashes.dtype == np.uint64
    _, inverse = np.unique(iris, axis=0, return_inverse=True)
    same = inverse.reshape(-1)[:, None] == inverse.reshape(-1)[None, :]
    np.testing.assert_array_equal(hashes[:, None] == hashes[None, :], same)
