"""Neighbor tables against brute force in float64, for every metric; recall of approximate searches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import cosine_distances

from vicinal import find_neighbors, fuzzy_graph
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import ALIASES
from vicinal.neighbors.metrics import VECTOR_METRICS as METRICS

SCIPY_NAMES = {"manhattan": "cityblock"}
# Up to 128 columns the search compares rows, beyond that sketches first.
WIDTHS = (1, 5, 64, 200)
GOOD_RECALL = 0.95


def distances(X: NDArray[Any], Y: NDArray[Any], metric: str) -> NDArray[np.float64]:
    return cdist(X.astype(np.float64), Y.astype(np.float64), SCIPY_NAMES.get(metric, metric))


def brute_force(X: NDArray[Any], k: int, metric: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    table = distances(X, X, metric)
    key = table.copy()
    np.fill_diagonal(key, -1.0)
    index = np.argsort(key, axis=1, kind="stable")[:, :k]
    np.fill_diagonal(table, 0.0)
    return index, np.take_along_axis(table, index, axis=1)


def recall(found: NDArray[Any], true: NDArray[Any]) -> float:
    return float(np.mean([len(np.intersect1d(f, t)) / len(t) for f, t in zip(found, true, strict=True)]))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", WIDTHS)
def test_exact_search_equals_brute_force(grouped: Any, metric: str, d: int) -> None:
    if metric in ("cosine", "correlation"):
        d = max(d, 3)  # with fewer columns every distance is 0 or 2
    X = grouped(300, d)
    neighbors = find_neighbors(X, 12, metric=metric, method="exact")
    index, distance = brute_force(X, 12, metric)
    scale = distance.max()
    np.testing.assert_allclose(neighbors.distance, distance, rtol=2e-5, atol=1e-6 * scale)
    own = np.take_along_axis(distances(X, X, metric), neighbors.index.astype(np.int64), axis=1)
    own[:, 0] = 0.0
    np.testing.assert_allclose(neighbors.distance, own, rtol=2e-5, atol=1e-6 * scale)
    if d >= 5:
        assert recall(neighbors.index, index) > 0.999


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize("d", [2, 130])
def test_ties_are_broken_by_index(metric: str, d: int) -> None:
    """Small whole numbers have exact distances, and many of them are equal."""
    X = np.random.default_rng(0).integers(0, 3, size=(250, d)).astype(np.float32)
    neighbors = find_neighbors(X, 15, metric=metric, method="exact")
    index, distance = brute_force(X, 15, metric)
    np.testing.assert_array_equal(neighbors.index, index)
    np.testing.assert_allclose(neighbors.distance, distance, rtol=1e-6)


@pytest.mark.parametrize("method", ["exact", "approximate"])
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [10, 160])
def test_tables_start_with_the_row_itself_and_are_sorted_without_repeats(
    grouped: Any, metric: str, d: int, method: Any
) -> None:
    X = grouped(700, d)
    X[100:120] = X[99]
    neighbors = find_neighbors(X, 10, metric=metric, method=method)
    assert neighbors.index.dtype == np.int32
    assert neighbors.distance.dtype == np.float32
    np.testing.assert_array_equal(neighbors.index[:, 0], np.arange(700))
    np.testing.assert_array_equal(neighbors.distance[:, 0], 0.0)
    rest, tail = neighbors.distance[:, 1:], neighbors.index[:, 1:]
    assert all(len(set(row)) == 10 for row in neighbors.index.tolist())
    later = (rest[:, 1:] > rest[:, :-1]) | ((rest[:, 1:] == rest[:, :-1]) & (tail[:, 1:] > tail[:, :-1]))
    assert later.all()


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
@pytest.mark.parametrize("d", [6, 150])
def test_zero_rows_have_cosine_distance_1_to_others_and_0_to_each_other(metric: str, d: int) -> None:
    X = np.random.default_rng(1).normal(size=(40, d)).astype(np.float32)
    flat = [3, 7, 20]
    X[flat] = 0.0 if metric == "cosine" else 2.5
    neighbors = find_neighbors(X, 40, metric=metric, method="exact")
    table = np.empty((40, 40))
    np.put_along_axis(table, neighbors.index.astype(np.int64), neighbors.distance, axis=1)
    others = [i for i in range(40) if i not in flat]
    np.testing.assert_allclose(table[np.ix_(flat, flat)], 0.0, atol=1e-6)
    np.testing.assert_allclose(table[np.ix_(flat, others)], 1.0, atol=1e-6)
    if metric == "cosine":
        expected = cosine_distances(X[others].astype(np.float64))
        np.testing.assert_allclose(table[np.ix_(others, others)], expected, atol=2e-6)


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_distances_of_nearly_parallel_rows_are_accurate(metric: str) -> None:
    rng = np.random.default_rng(2)
    X = (rng.normal(size=20) + 1e-4 * rng.normal(size=(60, 20))).astype(np.float32)
    neighbors = find_neighbors(X, 10, metric=metric, method="exact")
    _, distance = brute_force(X, 10, metric)
    np.testing.assert_allclose(neighbors.distance[:, 1:], distance[:, 1:], rtol=2e-2, atol=1e-12)


@pytest.mark.parametrize(("d", "metric"), [*[(16, metric) for metric in METRICS], (160, "euclidean"), (160, "cosine")])
def test_approximate_search_has_good_recall(grouped: Any, metric: str, d: int) -> None:
    X = grouped(1500, d)
    true, _ = brute_force(X, 15, metric)
    neighbors = find_neighbors(X, 15, metric=metric, method="approximate")
    assert recall(neighbors.index[:, 1:], true[:, 1:]) >= GOOD_RECALL
    own = np.take_along_axis(distances(X, X, metric), neighbors.index.astype(np.int64), axis=1)
    np.testing.assert_allclose(neighbors.distance, own, rtol=2e-4, atol=2e-6 * own.max())


@pytest.mark.parametrize("metric", METRICS)
def test_query_among_few_rows_is_exact(grouped: Any, metric: str) -> None:
    X, Q = np.split(grouped(1000, 12), [900])
    index = NeighborIndex(X, metric)
    found = index.query(Q, 10, fuzzy_graph(index.search(10)))
    expected = np.sort(distances(Q, X, metric), axis=1)[:, :10]
    np.testing.assert_allclose(found.distance, expected, rtol=2e-5, atol=1e-6 * expected.max())


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan"])
@pytest.mark.parametrize("d", [16, 160])
def test_query_among_many_rows_has_good_recall(grouped: Any, metric: str, d: int) -> None:
    X, Q = np.split(grouped(6700, d), [6500])
    index = NeighborIndex(X, metric)
    found = index.query(Q, 15, fuzzy_graph(index.search(15, "approximate")))
    true = np.argsort(distances(Q, X, metric), axis=1)[:, :15]
    assert recall(found.index, true) >= GOOD_RECALL


@pytest.mark.parametrize(("alias", "metric"), sorted(ALIASES.items()))
def test_alias_gives_the_same_table_as_its_metric(iris: NDArray[np.float32], alias: str, metric: str) -> None:
    kwds = {"w": np.arange(1.0, 5.0)} if metric == "wminkowski" else None
    by_alias, by_name = (find_neighbors(iris, 10, metric=name, metric_kwds=kwds) for name in (alias, metric))
    np.testing.assert_array_equal(by_alias.index, by_name.index)
    np.testing.assert_array_equal(by_alias.distance, by_name.distance)
