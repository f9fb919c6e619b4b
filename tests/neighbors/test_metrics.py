"""Distances of every metric, dense and sparse, against SciPy, scikit-learn and golden values of umap-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.spatial.distance import cdist, pdist, squareform
from sklearn.metrics.pairwise import haversine_distances, nan_euclidean_distances

from vicinal import find_neighbors, fuzzy_graph
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import METRICS

N, D = 90, 21
SPARSE_METRICS = [name for name, facts in METRICS.items() if facts.sparse]
BOOLEAN = ("jaccard", "dice", "rogerstanimoto", "sokalsneath", "russellrao", "matching", "kulsinski", "yule")
SCIPY_NAMES = {"manhattan": "cityblock", "wminkowski": "minkowski", "matching": "hamming", "sokalmichener": "hamming"}
METRIC_KWDS: dict[str, dict[str, Any]] = {
    "minkowski": {"p": 3.0},
    "wminkowski": {"p": 1.5, "w": np.linspace(0.1, 2.0, D)},
    "seuclidean": {"V": np.linspace(0.5, 3.0, D)},
    "mahalanobis": {"VI": np.diag(np.linspace(0.5, 3.0, D)) + 0.1},
}


def rows_for(metric: str, n: int = N, d: int = D, seed: int = 0) -> NDArray[Any]:
    """Draw valid rows for the metric, with half of the entries 0 and two equal rows."""
    rng = np.random.default_rng(seed)
    if METRICS[metric].packed:
        return rng.integers(0, 256, size=(n, d), dtype=np.uint8)[[*range(7), 3, *range(8, n)]]
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    if metric in ("hellinger", "ll_dirichlet"):
        X = rng.poisson(1.5, size=(n, d)).astype(float)
        X[:, 0] += 1.0
    elif metric == "haversine":
        X = np.column_stack([rng.uniform(-1.5, 1.5, n), rng.uniform(-3.0, 3.0, n)])
    elif metric == "nan_euclidean":
        X[rng.random((n, d)) < 0.1] = np.nan
    elif metric in BOOLEAN or metric in ("hamming", "sokalmichener"):
        X = (rng.random((n, d)) < 0.3).astype(float)
    X[7] = X[3]
    return X.astype(np.float32)


def truth_counts(X: NDArray[Any], Y: NDArray[Any]) -> tuple[NDArray[np.float64], ...]:
    a, b = X[:, None, :] != 0, Y[None, :, :] != 0
    return tuple(part.sum(axis=2).astype(float) for part in (a & b, a & ~b, ~a & b))


def reference(metric: str, X: NDArray[Any], Y: NDArray[Any]) -> NDArray[np.float64]:
    """Return distances in float64, by SciPy or scikit-learn if they define the metric as umap-learn does."""
    if METRICS[metric].packed:
        bits = [np.unpackbits(rows, axis=1).astype(bool) for rows in (X, Y)]
        if metric == "bit_hamming":
            return cdist(*bits, "hamming") * 8 * X.shape[1]
        return -np.log(1.0 - cdist(*bits, "jaccard"))
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    if metric == "nan_euclidean":
        return np.asarray(nan_euclidean_distances(X, Y))
    if metric == "haversine":
        return np.asarray(haversine_distances(X, Y))
    if metric == "hellinger":
        P, Q = (np.sqrt(Z / Z.sum(axis=1, keepdims=True)) for Z in (X, Y))
        return cdist(P, Q) / np.sqrt(2.0)
    if metric == "ll_dirichlet":
        pytest.skip("only umap-learn defines it: see the golden values")
    if metric in BOOLEAN or metric == "sokalmichener":
        both, only_x, only_y = truth_counts(X, Y)
        different, d = only_x + only_y, X.shape[1]
        if metric == "kulsinski":  # SciPy dropped it
            return np.where(different == 0, 0.0, (different - both + d) / (different + d))
        if metric == "russellrao":  # 0 for equal rows, other than SciPy's
            return np.where(different == 0, 0.0, (d - both) / d)
        if metric == "sokalmichener":
            return 2.0 * different / (d + different)
        X, Y = X.astype(bool), Y.astype(bool)
    return cdist(X, Y, SCIPY_NAMES.get(metric, metric), **METRIC_KWDS.get(metric, {}))


def table_of(index: Any, distance: Any, n: int) -> NDArray[np.float64]:
    table = np.full((len(index), n), np.nan)
    np.put_along_axis(table, index.astype(np.int64), distance.astype(np.float64), axis=1)
    return table


@pytest.mark.parametrize("metric", METRICS)
def test_distances_of_dense_rows(metric: str) -> None:
    X = rows_for(metric)
    found = find_neighbors(X, N, metric=metric, metric_kwds=METRIC_KWDS.get(metric), method="exact")
    np.testing.assert_allclose(table_of(found.index, found.distance, N), reference(metric, X, X), rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("metric", SPARSE_METRICS)
def test_distances_of_sparse_rows(metric: str) -> None:
    X = rows_for(metric)
    kwds = METRIC_KWDS.get(metric)
    found = find_neighbors(sparse.csr_array(X), N, metric=metric, metric_kwds=kwds, method="exact")
    dense = find_neighbors(X, N, metric=metric, metric_kwds=kwds, method="exact")
    wanted = table_of(dense.index, dense.distance, N)
    np.testing.assert_allclose(table_of(found.index, found.distance, N), wanted, rtol=2e-5, atol=4e-6)
    np.testing.assert_array_equal(found.index[:, 0], np.arange(N))
    if metric != "ll_dirichlet":
        np.testing.assert_allclose(wanted, reference(metric, X, X), rtol=2e-5, atol=4e-6)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("form", ["dense", "csr"])
def test_queries_return_the_nearest_rows_and_do_not_depend_on_each_other(metric: str, form: str) -> None:
    if form == "csr" and not METRICS[metric].sparse:
        pytest.skip("dense rows only")
    X, Q = rows_for(metric), rows_for(metric, 20, seed=1)
    make = sparse.csr_array if form == "csr" else np.asarray
    index = NeighborIndex(make(X), metric, metric_kwds=METRIC_KWDS.get(metric))
    graph = fuzzy_graph(index.search(10))
    found = index.query(make(Q), 10, graph)
    if metric != "ll_dirichlet":
        wanted = np.sort(reference(metric, Q, X), axis=1)[:, :10]
        np.testing.assert_allclose(found.distance, wanted, rtol=2e-5, atol=4e-6)
    for i in (0, 7, 19):
        alone = index.query(make(Q[i : i + 1]), 10, graph)
        np.testing.assert_array_equal(alone.index[0], found.index[i])
        np.testing.assert_array_equal(alone.distance[0], found.distance[i])


GOLDEN_ROWS = {
    "real": ["euclidean", "manhattan", "chebyshev", "canberra", "braycurtis", "cosine", "correlation"],
    "positive": ["hellinger"],
    "counts": ["ll_dirichlet"],
    "bits": ["bit_hamming", "bit_jaccard"],
    "truth": ["hamming", "jaccard", "dice", "matching", "kulsinski", "rogerstanimoto", "russellrao", "sokalmichener"],
}
GOLDEN_ROWS["real"] += ["minkowski", "seuclidean", "wminkowski", "mahalanobis"]
GOLDEN_ROWS["truth"] += ["sokalsneath", "yule"]


@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize(("rows", "metric"), [(rows, name) for rows, names in GOLDEN_ROWS.items() for name in names])
def test_distances_equal_those_of_umap_learn(golden: Any, rows: str, metric: str, form: str) -> None:
    arrays = golden("metrics")
    if form == "csr" and not METRICS[metric].sparse:
        pytest.skip("dense rows only")
    kwds = {
        "minkowski": {"p": 3.0},
        "wminkowski": {"w": arrays["weights"], "p": 3.0},
        "seuclidean": {"sigma": arrays["weights"]},
        "mahalanobis": {"vinv": arrays["precision"]},
    }.get(metric)
    X = arrays[rows] if form == "dense" else sparse.csr_matrix(arrays[rows])
    n = X.shape[0]
    found = find_neighbors(X, n, metric=metric, metric_kwds=kwds)
    wanted = arrays[f"D_{metric}"].copy()
    # umap-learn approximates log B: the distance of a row to itself is not exactly 0.
    np.fill_diagonal(wanted, 0.0)
    np.testing.assert_allclose(table_of(found.index, found.distance, n), wanted, rtol=5e-5, atol=3e-4)


@pytest.mark.parametrize("metric", ["seuclidean", "mahalanobis"])
def test_keywords_computed_from_data_equal_those_of_scipy(metric: str) -> None:
    X = np.random.default_rng(3).normal(size=(60, 5)).astype(np.float32) * np.arange(1, 6, dtype=np.float32)
    found = find_neighbors(X, 60, metric=metric)
    wanted = squareform(pdist(X.astype(float), metric))
    np.testing.assert_allclose(table_of(found.index, found.distance, 60), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("p", "metric"), [(1, "manhattan"), (2, "euclidean"), (np.inf, "chebyshev")])
def test_minkowski_with_p_1_2_or_inf_is_the_named_metric(iris: NDArray[np.float32], p: float, metric: str) -> None:
    found = find_neighbors(iris, 9, metric="minkowski", metric_kwds={"p": p})
    wanted = find_neighbors(iris, 9, metric=metric)
    np.testing.assert_array_equal(found.index, wanted.index)
    np.testing.assert_array_equal(found.distance, wanted.distance)


@pytest.mark.parametrize("p", [0.5, 1.5, 7.0, 60.0])
def test_minkowski_with_any_power(p: float) -> None:
    X = rows_for("minkowski")
    wanted = cdist(X.astype(float), X.astype(float), "minkowski", p=p)
    for rows in (X, sparse.csr_array(X)):
        found = find_neighbors(rows, N, metric="minkowski", metric_kwds={"p": p})
        table = table_of(found.index, found.distance, N)
        np.testing.assert_allclose(table, wanted, rtol=2e-5 * max(1.0, 1.0 / p**2), atol=1e-6)


def test_rows_without_common_present_columns_are_not_neighbors() -> None:
    X = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, 1.0]], dtype=np.float32)
    found = find_neighbors(X, 3, metric="nan_euclidean")
    np.testing.assert_array_equal(found.index, [[0, 1, -1], [1, 0, -1], [2, -1, -1]])
    assert np.isinf(found.distance[2, 1:]).all()


@pytest.mark.parametrize("scale", [1e-20, 1e20])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "sqeuclidean", "braycurtis", "minkowski"])
def test_sparse_data_of_extreme_magnitude(metric: str, scale: float) -> None:
    X = rows_for(metric)
    kwds = METRIC_KWDS.get(metric)
    near = find_neighbors(sparse.csr_array(X), 10, metric=metric, metric_kwds=kwds)
    far = find_neighbors(sparse.csr_array(X * np.float32(scale)), 10, metric=metric, metric_kwds=kwds)
    degree = METRICS[metric].degree
    assert degree is not None
    wanted = np.minimum(near.distance.astype(float) * scale**degree, np.finfo(np.float32).max)
    np.testing.assert_allclose(far.distance, wanted, rtol=1e-3, atol=1e-3 * wanted[:, 1:].min() if scale > 1 else 1e-38)
