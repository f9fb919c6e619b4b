"""Invalid metrics, keywords, rows and precomputed neighbors raise errors that name the argument, before any work."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from scipy import LowLevelCallable, sparse

from vicinal import NeighborIndex, find_neighbors
from vicinal.neighbors.metrics import check_metric
from vicinal.neighbors.table import neighbors_from_distances, neighbors_from_knn, query_from_distances

N, D = 12, 3


def never(*_: Any, **__: Any) -> float:
    pytest.fail("work began before the arguments were checked")


def low_level(*types: Any) -> LowLevelCallable:
    return LowLevelCallable(ctypes.CFUNCTYPE(ctypes.c_double, *types)(lambda *_: 0.0))


BAD_METRICS: dict[str, tuple[Any, Any, str]] = {
    "unknown name": ("no such metric", None, "metric.*no such metric"),
    "number": (3, None, "metric"),
    "none": (None, None, "metric"),
    "keywords as text": ("minkowski", "p=2", "metric_kwds"),
    "keywords as list": ("minkowski", [2], "metric_kwds"),
    "keywords without names": (never, {1: 2}, "metric_kwds"),
    "keyword of another metric": ("euclidean", {"p": 3}, "metric_kwds.*'p'.*no keywords"),
    "unknown keyword": ("minkowski", {"q": 3}, "metric_kwds.*'q'"),
    "keyword with precomputed": ("precomputed", {"p": 3}, "metric_kwds.*'p'"),
    "keyword twice": ("seuclidean", {"V": [1, 1, 1], "v": [1, 1, 1]}, "metric_kwds.*'V' twice"),
    "p of 0": ("minkowski", {"p": 0}, r"metric_kwds\['p'\]"),
    "p negative": ("minkowski", {"p": -2.0}, r"metric_kwds\['p'\]"),
    "p not a number": ("minkowski", {"p": float("nan")}, r"metric_kwds\['p'\]"),
    "p text": ("minkowski", {"p": "two"}, r"metric_kwds\['p'\]"),
    "p true": ("minkowski", {"p": True}, r"metric_kwds\['p'\]"),
    "w missing": ("wminkowski", {"p": 2}, r"metric_kwds\['w'\]"),
    "w too short": ("wminkowski", {"w": [1.0, 2.0]}, r"metric_kwds\['w'\].*shape"),
    "w negative": ("wminkowski", {"w": [1.0, -2.0, 1.0]}, r"metric_kwds\['w'\].*negative"),
    "w infinite": ("wminkowski", {"w": [1.0, np.inf, 1.0]}, r"metric_kwds\['w'\].*infinity"),
    "V a number": ("seuclidean", {"V": 2.0}, r"metric_kwds\['V'\].*shape"),
    "V zero": ("seuclidean", {"V": [1.0, 0.0, 1.0]}, r"metric_kwds\['V'\].*above 0"),
    "v too long": ("seuclidean", {"v": np.ones(4)}, r"metric_kwds\['v'\].*shape"),
    "sigma text": ("seuclidean", {"sigma": ["a", "b", "c"]}, r"metric_kwds\['sigma'\]"),
    "VI flat": ("mahalanobis", {"VI": np.ones(3)}, r"metric_kwds\['VI'\].*shape"),
    "VI too small": ("mahalanobis", {"VI": np.eye(2)}, r"metric_kwds\['VI'\].*shape"),
    "VI with NaN": ("mahalanobis", {"VI": np.full((3, 3), np.nan)}, r"metric_kwds\['VI'\].*NaN"),
    "VI not symmetric": ("mahalanobis", {"VI": np.triu(np.ones((3, 3)))}, r"metric_kwds\['VI'\].*symmetric"),
    "vinv not definite": ("mahalanobis", {"vinv": -np.eye(3)}, r"metric_kwds\['vinv'\].*definite"),
    "haversine of three columns": ("haversine", None, "haversine.*2 columns"),
    "compiled with keywords": (
        low_level(ctypes.POINTER(ctypes.c_float), ctypes.POINTER(ctypes.c_float), ctypes.c_int),
        {"p": 2},
        "metric_kwds.*LowLevelCallable",
    ),
    "compiled of another signature": (low_level(ctypes.c_double, ctypes.c_double), None, "metric.*signature"),
}


@pytest.mark.parametrize("case", BAD_METRICS)
def test_invalid_metric_is_named(case: str) -> None:
    metric, kwds, words = BAD_METRICS[case]
    rows = np.zeros((N, D), dtype=np.float32)
    with pytest.raises((ValueError, TypeError), match=words):
        check_metric(metric, kwds, D)
    if metric != "precomputed":
        with pytest.raises((ValueError, TypeError), match=words):
            NeighborIndex(rows, metric, metric_kwds=kwds)


@pytest.mark.parametrize("metric", ["mahalanobis", "haversine", "nan_euclidean", never])
def test_metric_that_needs_dense_rows_is_named(metric: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=r"metric.*sparse"):
        check_metric(metric, None, 2, sparse=True)
    with pytest.raises((ValueError, TypeError), match=r"metric.*sparse"):
        find_neighbors(sparse.csr_array(np.eye(4, 2)), 2, metric=metric)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("metric", ["hellinger", "ll_dirichlet"])
def test_first_negative_row_is_named(metric: str, form: Any) -> None:
    X = np.ones((N, D), dtype=np.float32)
    X[7, 1] = -1.0
    with pytest.raises(ValueError, match=r"X.*negative.*row 7\b"):
        find_neighbors(form(X), 3, metric=metric)
    index = NeighborIndex(form(np.ones((N, D), dtype=np.float32)), metric)
    with pytest.raises(ValueError, match=r"X.*negative.*row 7\b"):
        index.query(form(X), 3, None)  # type: ignore[arg-type]


def test_latitude_in_degrees_is_an_error() -> None:
    X = np.zeros((N, 2), dtype=np.float32)
    X[5, 0] = 48.2
    with pytest.raises(ValueError, match=r"X.*radians.*row 5\b"):
        find_neighbors(X, 3, metric="haversine")


def test_nan_is_accepted_by_nan_euclidean_only() -> None:
    X = np.zeros((N, D), dtype=np.float32)
    X[4, 1] = np.nan
    with pytest.raises(ValueError, match=r"X.*NaN.*row 4\b"):
        find_neighbors(X, 3)
    assert find_neighbors(X, 3, metric="nan_euclidean").index.shape == (N, 3)
    X[9, 0] = np.inf
    with pytest.raises(ValueError, match=r"X.*infinity.*row 9\b"):
        find_neighbors(X, 3, metric="nan_euclidean")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_first_bad_sparse_row_is_named(value: float) -> None:
    X = sparse.csr_array(np.eye(N, D, dtype=np.float32) + 1)
    X.data[4 * D + 1] = value
    with pytest.raises(ValueError, match=r"X.*row 4\b"):
        find_neighbors(X, 3, metric="cosine")


def test_queries_of_another_kind_or_width_are_errors() -> None:
    dense, csr = np.eye(5, dtype=np.float32), sparse.csr_array(np.eye(5, dtype=np.float32))
    with pytest.raises(TypeError, match=r"queries.*sparse"):
        NeighborIndex(csr).query(dense, 2, None)  # type: ignore[arg-type]
    for rows in (dense, csr):
        with pytest.raises(ValueError, match=r"queries.*columns"):
            NeighborIndex(rows).query(rows[:, :3], 2, None)  # type: ignore[arg-type]


def distances(n: int = N) -> Any:
    return np.random.default_rng(0).random((n, n))


def changed(value: float, row: int = 3, column: int = 2) -> Any:
    D_ = distances()
    D_[row, column] = value
    return D_


BAD_DISTANCES: dict[str, tuple[Any, int, str]] = {
    "not square": (distances()[:5], 3, "X.*square"),
    "flat": (np.zeros(5), 3, "X.*2-D"),
    "text": (np.array([["a", "b"], ["c", "d"]]), 1, "X"),
    "complex": (np.zeros((3, 3), complex), 1, "X"),
    "NaN": (changed(np.nan), 3, r"X.*NaN.*row 3\b"),
    "negative": (changed(-0.1), 3, r"X.*negative.*row 3\b"),
    "sparse, NaN": (sparse.csr_matrix(changed(np.nan)), 3, r"X.*NaN.*row 3\b"),
    "sparse, negative": (sparse.csc_matrix(changed(-1.0)), 3, r"X.*negative.*row 3\b"),
    "sparse, not square": (sparse.csr_matrix(distances()[:5]), 3, "X.*square"),
    "more neighbors than rows": (distances(), N + 1, "n_neighbors"),
    "no neighbors": (distances(), 0, "n_neighbors"),
}


@pytest.mark.parametrize("case", BAD_DISTANCES)
def test_invalid_distances_are_named(case: str) -> None:
    D_, k, words = BAD_DISTANCES[case]
    with pytest.raises((ValueError, TypeError), match=words):
        neighbors_from_distances(D_, k)
    if "square" not in case:
        with pytest.raises((ValueError, TypeError), match=words):
            query_from_distances(D_, k)


def test_wrong_number_of_distances_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"X.*20 rows"):
        query_from_distances(distances(), 3, 20)


INDEX, DISTANCE = np.tile(np.arange(5), (N, 1)), np.tile(np.arange(5.0), (N, 1))


def with_index(value: int) -> Any:
    index = INDEX.copy()
    index[6, 2] = value
    return index


def with_distance(value: float) -> Any:
    distance = DISTANCE.copy()
    distance[6, 2] = value
    return distance


BAD_KNN: dict[str, tuple[Any, int, str]] = {
    "number": (5, 3, "precomputed_knn"),
    "one array": ((INDEX,), 3, "precomputed_knn"),
    "four": ((INDEX, DISTANCE, None, None), 3, "precomputed_knn"),
    "flat indices": ((INDEX[0], DISTANCE[0]), 3, r"precomputed_knn\[0\].*2-D"),
    "indices not whole": ((DISTANCE, DISTANCE), 3, r"precomputed_knn\[0\].*whole"),
    "shapes differ": ((INDEX, DISTANCE[:, :4]), 3, r"precomputed_knn\[1\].*shape"),
    "distances are text": ((INDEX, INDEX.astype(str)), 3, r"precomputed_knn\[1\]"),
    "other rows": ((INDEX[:5], DISTANCE[:5]), 3, "precomputed_knn has 5 rows"),
    "too few": ((INDEX, DISTANCE), 6, "precomputed_knn holds 5.*n_neighbors"),
    "row beyond": ((with_index(N), DISTANCE), 3, rf"precomputed_knn\[0\].*row {N}.*row 6\b"),
    "neighbor twice": ((with_index(1), DISTANCE), 5, r"precomputed_knn\[0\].*twice.*row 6\b"),
    "NaN": ((INDEX, with_distance(np.nan)), 3, r"precomputed_knn\[1\].*NaN.*row 6\b"),
    "negative": ((INDEX, with_distance(-1.0)), 3, r"precomputed_knn\[1\].*negative.*row 6\b"),
    "graph of other rows": (sparse.csr_matrix((5, 5)), 3, "precomputed_knn.*shape"),
}


@pytest.mark.parametrize("case", BAD_KNN)
def test_invalid_precomputed_neighbors_are_named(case: str) -> None:
    knn, k, words = BAD_KNN[case]
    with pytest.raises((ValueError, TypeError), match=words):
        neighbors_from_knn(knn, N, k)
