"""Invalid arguments of fit, transform and update: an error names each of them before any work is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import LowLevelCallable, sparse

from vicinal import UMAP

N, D = 40, 4
RNG = np.random.default_rng(0)
X = RNG.random((N, D))
DISTANCES = np.abs(X[:, :1] - X[:, 0])
INDEX = np.argsort(DISTANCES, axis=1)[:, :20]
KNN = (INDEX, np.take_along_axis(DISTANCES, INDEX, axis=1))
SPARSE = sparse.csr_matrix(np.where(X > 0.5, X, 0.0))


def never(*_: Any) -> None:
    pytest.fail("work began before the arguments were checked")


def changed(array: NDArray[Any], at: Any, value: Any) -> NDArray[Any]:
    out = np.array(array, dtype=np.float64)
    out[at] = value
    return out


# (parameters, X, arguments of fit, what the error names)
REFUSED: dict[str, tuple[dict[str, Any], Any, dict[str, Any], str]] = {
    "unknown metric": ({"metric": "euclid"}, X, {}, "metric"),
    "metric a number": ({"metric": 3}, X, {}, "metric"),
    "metric a tuple": ({"metric": ("euclidean",)}, X, {}, "metric"),
    "metric_kwds a list": ({"metric": "minkowski", "metric_kwds": [3]}, X, {}, "metric_kwds"),
    "metric_kwds of no use": ({"metric_kwds": {"p": 3}}, X, {}, "metric_kwds"),
    "metric_kwds unknown": ({"metric": "minkowski", "metric_kwds": {"q": 3}}, X, {}, "metric_kwds"),
    "p is 0": ({"metric": "minkowski", "metric_kwds": {"p": 0}}, X, {}, "'p'"),
    "p is text": ({"metric": "minkowski", "metric_kwds": {"p": "2"}}, X, {}, "'p'"),
    "w too short": ({"metric": "wminkowski", "metric_kwds": {"w": [1.0] * 3, "p": 2}}, X, {}, "'w'"),
    "w negative": ({"metric": "wminkowski", "metric_kwds": {"w": [-1.0] * D, "p": 2}}, X, {}, "'w'"),
    "w missing": ({"metric": "wminkowski", "metric_kwds": {"p": 2}}, X, {}, "'w'"),
    "V zero": ({"metric": "seuclidean", "metric_kwds": {"V": [0.0] * D}}, X, {}, "'V'"),
    "V of the wrong length": ({"metric": "seuclidean", "metric_kwds": {"V": [1.0] * 9}}, X, {}, "'V'"),
    "VI not square": ({"metric": "mahalanobis", "metric_kwds": {"VI": np.ones((D, 3))}}, X, {}, "'VI'"),
    "VI not symmetric": ({"metric": "mahalanobis", "metric_kwds": {"VI": np.triu(np.ones((D, D)))}}, X, {}, "'VI'"),
    "VI indefinite": ({"metric": "mahalanobis", "metric_kwds": {"VI": -np.eye(D)}}, X, {}, "'VI'"),
    "haversine of 4 columns": ({"metric": "haversine"}, X, {}, "haversine"),
    "haversine in degrees": ({"metric": "haversine"}, X[:, :2] * 90, {}, "latitude"),
    "hellinger of negatives": ({"metric": "hellinger"}, changed(X, (7, 2), -1.0), {}, "row 7"),
    "ll_dirichlet of negatives": ({"metric": "ll_dirichlet"}, changed(X, (7, 2), -1.0), {}, "row 7"),
    "a function of sparse rows": ({"metric": lambda x, y: 0.0}, SPARSE, {}, "metric"),
    "mahalanobis of sparse rows": ({"metric": "mahalanobis"}, SPARSE, {}, "metric"),
    "nan without a metric for it": ({}, changed(X, (3, 1), np.nan), {}, "NaN.*row 3"),
    "infinity with nan_euclidean": ({"metric": "nan_euclidean"}, changed(X, (3, 1), np.inf), {}, "inf.*row 3"),
    "sparse NaN": ({}, sparse.csr_matrix(changed(X, (5, 1), np.nan)), {}, "NaN.*row 5"),
    "distances not square": ({"metric": "precomputed"}, X, {}, "square"),
    "distances negative": ({"metric": "precomputed"}, changed(DISTANCES, (2, 3), -1.0), {}, "row 2"),
    "distances NaN": ({"metric": "precomputed"}, changed(DISTANCES, (2, 3), np.nan), {}, "row 2"),
    "sparse distances negative": ({"metric": "precomputed"}, sparse.csr_matrix(-DISTANCES), {}, "negative"),
    "distances with keywords": ({"metric": "precomputed", "metric_kwds": {"p": 2}}, DISTANCES, {}, "metric_kwds"),
    "distances and neighbors": ({"metric": "precomputed", "precomputed_knn": KNN}, DISTANCES, {}, "precomputed_knn"),
    "distances and unique": ({"metric": "precomputed", "unique": True}, DISTANCES, {}, "unique"),
    "neighbors and unique": ({"precomputed_knn": KNN, "unique": True}, X, {}, "unique"),
    "neighbors of other rows": ({"precomputed_knn": KNN}, X[:-1], {}, "precomputed_knn"),
    "too few neighbors": ({"precomputed_knn": (KNN[0][:, :5], KNN[1][:, :5])}, X, {}, "n_neighbors"),
    "neighbors out of range": ({"precomputed_knn": (INDEX + N, KNN[1])}, X, {}, "precomputed_knn"),
    "neighbors not whole": ({"precomputed_knn": (INDEX * 1.0, KNN[1])}, X, {}, "precomputed_knn"),
    "neighbors twice": ({"precomputed_knn": (INDEX * 0 + INDEX[:, 3:4], KNN[1])}, X, {}, "twice"),
    "neighbors' distances NaN": ({"precomputed_knn": (INDEX, KNN[1] * np.nan)}, X, {}, "NaN"),
    "neighbors' distances of another shape": ({"precomputed_knn": (INDEX, KNN[1][:, :9])}, X, {}, "precomputed_knn"),
    "neighbors of one array": ({"precomputed_knn": (INDEX,)}, X, {}, "precomputed_knn"),
    "a graph of other rows": ({"precomputed_knn": sparse.eye(9).tocsr()}, X, {}, "precomputed_knn"),
    "unknown output metric": ({"output_metric": "jaccard"}, X, {}, "output_metric"),
    "output metric a function": ({"output_metric": lambda x, y: 0.0}, X, {}, "output_metric"),
    "output keywords of no use": ({"output_metric_kwds": {"p": 3}}, X, {}, "output_metric_kwds"),
    "output p below 1": ({"output_metric": "minkowski", "output_metric_kwds": {"p": 0.5}}, X, {}, "p must"),
    "haversine map of 3 components": ({"output_metric": "haversine", "n_components": 3}, X, {}, "n_components"),
    "no epochs in the list": ({"n_epochs": []}, X, {}, "n_epochs"),
    "epochs in the list negative": ({"n_epochs": [10, -1]}, X, {}, "n_epochs"),
    "epochs in the list not whole": ({"n_epochs": [10, 2.5]}, X, {}, "n_epochs"),
    "one target neighbor": ({"target_n_neighbors": 1}, X, {}, "target_n_neighbors"),
    "unknown target metric": ({"target_metric": "near"}, X, {"y": np.arange(N)}, "metric"),
    "target keywords": (
        {"target_metric": "l2", "target_metric_kwds": {"q": 1}},
        X,
        {"y": np.arange(N)},
        "metric_kwds",
    ),
    "labels as numbers": ({"target_metric": "l2"}, X, {"y": np.array(["a", "b"] * (N // 2))}, r"\by\b"),
    "numbers infinite": ({"target_metric": "l2"}, X, {"y": changed(np.zeros(N), 4, np.inf)}, "row 4"),
    "levels in columns": ({"target_metric": "ordinal"}, X, {"y": X}, r"\by\b"),
    "labels too short": ({}, X, {"y": np.zeros(N - 1)}, r"\by\b"),
    "labels in columns": ({}, X, {"y": np.zeros((N, 2))}, r"\by\b"),
    "weights too short": ({}, X, {"sample_weight": np.ones(3)}, "sample_weight"),
    "weight below 0": ({}, X, {"sample_weight": changed(np.ones(N), 6, -0.5)}, "sample_weight.*row 6"),
    "weights all 0": ({}, X, {"sample_weight": np.zeros(N)}, "sample_weight.*zero"),
    "weight NaN": ({}, X, {"sample_weight": changed(np.ones(N), 6, np.nan)}, "sample_weight.*row 6"),
    "weights text": ({}, X, {"sample_weight": ["heavy"] * N}, "sample_weight"),
    "a mask without positions": ({}, X, {"fixed_mask": np.ones(N, bool)}, "fixed_positions"),
    "positions without a mask": ({}, X, {"fixed_positions": X[:, :2]}, "fixed_mask"),
    "a mask of row numbers": ({}, X, {"fixed_mask": [1, 2, 3], "fixed_positions": X[:, :2]}, "fixed_mask"),
    "positions of 4 components": ({}, X, {"fixed_mask": np.ones(N, bool), "fixed_positions": X}, "fixed_positions"),
    "a pinned position NaN": (
        {},
        X,
        {"fixed_mask": np.ones(N, bool), "fixed_positions": changed(X[:, :2], (8, 0), np.nan)},
        "row 8",
    ),
    "an unknown argument": ({}, X, {"weights": np.ones(N)}, "weights"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_fit_is_refused_before_any_work(case: str) -> None:
    params, rows, given, named = REFUSED[case]
    model = UMAP(callback=never, **params)
    with pytest.raises((ValueError, TypeError), match=named):
        model.fit(rows, **given)
    assert not hasattr(model, "graph_")


def test_compiled_metric_with_another_signature_is_refused() -> None:
    import ctypes

    square = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(lambda x: x * x)
    with pytest.raises((ValueError, TypeError), match=r"metric|signature"):
        UMAP(metric=LowLevelCallable(square), callback=never).fit(X)


NEW_REFUSED: dict[str, tuple[dict[str, Any], Any, Any, str]] = {
    "too few columns": ({}, X, X[:3, :2], "features"),
    "distances to other rows": ({"metric": "precomputed"}, DISTANCES, DISTANCES[:3, :9], "features"),
    "hellinger of negatives": ({"metric": "hellinger"}, X, -X[:3], "negative"),
    "distances negative": ({"metric": "precomputed"}, DISTANCES, -DISTANCES[:3] - 1, "negative"),
}


@pytest.mark.parametrize("case", NEW_REFUSED)
def test_invalid_new_rows_are_refused(case: str) -> None:
    params, rows, new, named = NEW_REFUSED[case]
    model = UMAP(n_epochs=5, n_neighbors=5, **params).fit(rows)
    with pytest.raises((ValueError, TypeError), match=named):
        model.transform(new)


def test_update_needs_distances_to_all_rows() -> None:
    model = UMAP(metric="precomputed", n_neighbors=5, n_epochs=5).fit(DISTANCES)
    with pytest.raises(ValueError, match="43 columns"):
        model.update(DISTANCES[:3])
    assert model.n_features_in_ == N
    assert model.embedding_.shape == (N, 2)
