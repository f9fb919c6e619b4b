"""Metrics that are Python or compiled functions, or evaluated pair by pair; searches of sparse rows; sampled recall."""

from __future__ import annotations

import ctypes
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import LowLevelCallable, sparse

from vicinal import Neighbors, find_neighbors, fuzzy_graph
from vicinal.neighbors import search as policy
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.search import SearchOptions

JOBS = (1, 2, 8)


def euclidean(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
    return float(np.sqrt(((x - y) ** 2).sum()))


def minkowski(x: NDArray[np.float32], y: NDArray[np.float32], p: float = 2.0) -> float:
    return float((np.abs(x - y) ** p).sum() ** (1.0 / p))


def compiled(number: Any, user_data: bool) -> LowLevelCallable:
    """Return the Manhattan distance, multiplied by the number that user_data points to if there is one."""
    arguments = [ctypes.POINTER(number), ctypes.POINTER(number), ctypes.c_int]
    if user_data:

        @ctypes.CFUNCTYPE(ctypes.c_double, *arguments, ctypes.c_void_p)
        def scaled(x: Any, y: Any, n: int, data: int) -> float:
            factor = ctypes.cast(data, ctypes.POINTER(ctypes.c_double))[0]
            return factor * sum(abs(x[k] - y[k]) for k in range(n))

        factor = ctypes.c_double(2.0)
        _KEPT.extend([factor, scaled])
        return LowLevelCallable(scaled, ctypes.cast(ctypes.pointer(factor), ctypes.c_void_p))

    @ctypes.CFUNCTYPE(ctypes.c_double, *arguments)
    def plain(x: Any, y: Any, n: int) -> float:
        return sum(abs(x[k] - y[k]) for k in range(n))

    _KEPT.append(plain)
    return LowLevelCallable(plain)


_KEPT: list[Any] = []


def recall(found: Any, true: Any) -> float:
    return float(np.mean([len(np.intersect1d(f, t)) / len(t) for f, t in zip(found, true, strict=True)]))


def sparse_rows(n: int, d: int = 2000, per_row: int = 30, seed: int = 0) -> Any:
    """Draw rows of twenty topics with 60 columns each, and entries in columns that all rows share."""
    rng = np.random.default_rng(seed)
    topics = rng.choice(d, size=(20, 60))
    own = np.take_along_axis(topics[rng.integers(20, size=n)], rng.integers(60, size=(n, per_row // 2)), axis=1)
    shared = (d * rng.random((n, per_row - per_row // 2)) ** 3).astype(int)
    columns = np.concatenate([own, shared], axis=1)
    values = rng.gamma(2.0, size=columns.shape).astype(np.float32)
    X = sparse.csr_matrix((values.ravel(), columns.ravel(), np.arange(n + 1) * per_row), shape=(n, d))
    X.sum_duplicates()
    return X


def test_python_function_gives_the_distances_of_its_metric(iris: NDArray[np.float32]) -> None:
    found, wanted = find_neighbors(iris, 10, metric=euclidean), find_neighbors(iris, 10)
    np.testing.assert_allclose(found.distance, wanted.distance, rtol=1e-5, atol=1e-6)
    kwds = {"p": 1.0}
    found = find_neighbors(iris, 10, metric=minkowski, metric_kwds=kwds)
    wanted = find_neighbors(iris, 10, metric="manhattan")
    np.testing.assert_allclose(found.distance, wanted.distance, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("number", [ctypes.c_float, ctypes.c_double])
@pytest.mark.parametrize("user_data", [False, True])
def test_compiled_function_gives_the_distances_of_its_metric(
    iris: NDArray[np.float32], number: Any, user_data: bool
) -> None:
    found = find_neighbors(iris[:60], 6, metric=compiled(number, user_data), n_jobs=2)
    wanted = find_neighbors(iris[:60], 6, metric="manhattan")
    factor = 2.0 if user_data else 1.0
    np.testing.assert_allclose(found.distance, factor * wanted.distance, rtol=1e-5, atol=1e-5)


def test_python_function_is_called_for_a_fraction_of_the_pairs(grouped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "EXACT_CALLED_ROWS", 300)
    X, calls = grouped(900, 6), 0

    def counted(x: NDArray[np.float32], y: NDArray[np.float32]) -> float:
        nonlocal calls
        calls += 1
        return euclidean(x, y)

    found = find_neighbors(X, 10, metric=counted)
    assert calls < 900 * 899 / 2
    assert recall(found.index, find_neighbors(X, 10).index) > 0.95
    again = find_neighbors(X, 10, metric=euclidean, n_jobs=4)
    np.testing.assert_array_equal(found.index, again.index)


def test_function_of_one_column_is_searched_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """Euclidean neighbors are useless here; random candidates would give a recall of 0.01."""
    monkeypatch.setattr(policy, "EXACT_CALLED_ROWS", 100)
    X = np.random.default_rng(0).normal(size=(700, 20)).astype(np.float32)
    found = find_neighbors(X, 8, metric=lambda x, y: abs(float(x[3]) - float(y[3])))
    true = find_neighbors(np.ascontiguousarray(X[:, 3:4]), 8)
    assert recall(found.index, true.index) > 0.8


def test_queries_by_a_python_function(grouped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Q = np.split(grouped(640, 5), [600])
    for most in (1000, 200):
        monkeypatch.setattr(policy, "EXACT_CALLED_ROWS", most)
        index = NeighborIndex(X, euclidean)
        graph = fuzzy_graph(index.search(10))
        found = index.query(Q, 10, graph)
        plain = NeighborIndex(X).query(Q, 10, graph)
        assert recall(found.index, plain.index) > 0.97
        np.testing.assert_array_equal(index.query(Q[3:4], 10, graph).index[0], found.index[3])


@pytest.mark.parametrize("value", [float("nan"), -1.0])
def test_function_that_returns_no_distance_is_an_error(iris: NDArray[np.float32], value: float) -> None:
    with pytest.raises(ValueError, match="metric"):
        find_neighbors(iris, 5, metric=lambda x, y: value)


def test_error_in_a_function_is_raised(iris: NDArray[np.float32]) -> None:
    def broken(x: Any, y: Any) -> float:
        raise LookupError("not today")

    with pytest.raises(LookupError, match="not today"):
        find_neighbors(iris, 5, metric=broken)
    with pytest.raises(TypeError):
        find_neighbors(iris, 5, metric=lambda x, y: "near")


@pytest.mark.parametrize("metric", ["braycurtis", "jaccard", "minkowski", euclidean])
def test_unpickled_index_gives_the_same_results(grouped: Any, metric: Any) -> None:
    X = grouped(200, 7)
    index = NeighborIndex(X, metric, metric_kwds={"p": 3} if metric == "minkowski" else None)
    twin = pickle.loads(pickle.dumps(index))
    np.testing.assert_array_equal(twin.search(8).distance, index.search(8).distance)


@pytest.mark.parametrize("metric", ["canberra", "braycurtis", "hamming", "jaccard", "minkowski", "nan_euclidean"])
def test_evaluated_metrics_do_not_depend_on_n_jobs_and_have_good_recall(grouped: Any, metric: str) -> None:
    X = np.round(grouped(800, 12))
    kwds = {"p": 3} if metric == "minkowski" else None
    first, *others = [
        find_neighbors(X, 10, metric=metric, metric_kwds=kwds, method="approximate", n_jobs=jobs) for jobs in JOBS
    ]
    for other in others:
        np.testing.assert_array_equal(other.index, first.index)
        np.testing.assert_array_equal(other.distance, first.distance)
    exact = find_neighbors(X, 10, metric=metric, metric_kwds=kwds, method="exact")
    assert np.mean(first.distance <= exact.distance[:, -1:] * 1.0001) > 0.9


@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan", "jaccard", "chebyshev", "correlation"])
def test_sparse_search_does_not_depend_on_n_jobs_and_has_good_recall(
    metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "SPARSE_BUDGET", 1500)
    X = sparse_rows(700)
    for method in ("exact", "approximate"):
        first, *others = [find_neighbors(X, 12, metric=metric, method=method, n_jobs=jobs) for jobs in JOBS]
        for other in others:
            np.testing.assert_array_equal(other.index, first.index)
            np.testing.assert_array_equal(other.distance, first.distance)
    exact = find_neighbors(X, 12, metric=metric, method="exact")
    wanted = 0.5 if metric in ("manhattan", "chebyshev") else 0.85
    assert np.mean(first.distance <= exact.distance[:, -1:] * 1.0001) > wanted


def test_sparse_rows_are_not_made_dense() -> None:
    """A dense copy would take 40 GB."""
    X = sparse_rows(1000, d=10_000_000)
    index = NeighborIndex(X, "cosine")
    graph = fuzzy_graph(index.search(10))
    found = index.query(X[:5], 10, graph)
    np.testing.assert_array_equal(found.index[:, 0], np.arange(5))


def test_sparse_rows_without_common_columns_get_neighbors() -> None:
    X = sparse.csr_array(sparse.eye(200, dtype=np.float32))
    for method in ("exact", "approximate"):
        table = find_neighbors(X, 5, metric="euclidean", method=method)
        assert (table.index >= 0).all()
        np.testing.assert_allclose(table.distance[:, 1:], np.sqrt(2.0), rtol=1e-6)


@pytest.mark.parametrize("exact_later", [4e11, 0.0])
def test_poor_recall_repeats_the_search(exact_later: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "EXACT_ROWS", 1000)
    monkeypatch.setattr(policy, "EXACT_LATER", exact_later)
    X = np.random.default_rng(0).normal(size=(2500, 180)).astype(np.float32)
    index = NeighborIndex(X)
    plain, structured = index._dense.search_approximate(10, index._dense.options)
    assert structured
    assert index._sample_recall(plain) < 0.9
    true = find_neighbors(X, 10, method="exact").index
    found = index.search(10)
    assert recall(found.index, true) >= (0.999 if exact_later else recall(plain.index, true) + 0.05)


def test_noise_is_compared_with_central_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "EXACT_ROWS", 1000)
    X = np.random.default_rng(0).normal(size=(9000, 500)).astype(np.float32)
    table, structured = NeighborIndex(X, n_jobs=1)._dense.search_approximate(10, SearchOptions())
    assert not structured
    evaluated = NeighborIndex(X, n_jobs=3).search(10, "approximate")
    np.testing.assert_array_equal(evaluated.index, table.index)
    np.testing.assert_array_equal(evaluated.distance, table.distance)
    some = np.arange(0, 9000, 20)
    nearness = 2 * X[some] @ X.T - (X * X).sum(axis=1)
    assert recall(table.index[some, 1:], np.argsort(-nearness, axis=1)[:, 1:10]) > 0.3
    # Structure in some directions is found, and NN-descent is used.
    spread = np.linspace(6.0, 0.1, 500, dtype=np.float32) ** 2
    assert NeighborIndex(X * spread)._dense.search_approximate(10, SearchOptions())[1]


def test_sampled_recall_equals_recall(grouped: Any) -> None:
    X = grouped(1200, 10)
    index = NeighborIndex(X)
    exact = index.search(10, "exact")
    assert index._sample_recall(exact) == 1.0
    half = Neighbors(exact.index.copy(), exact.distance.copy())
    half.distance[:, 5:] = np.inf
    assert index._sample_recall(half) == pytest.approx(4 / 9)
