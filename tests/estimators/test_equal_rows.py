"""Rows are equal if their values are, for every estimator and metric; equal rows share one place (guarantees.md)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

import vicinal
from vicinal.neighbors.metrics import METRICS

Rows = NDArray[np.float32]
N = 60

BATCH = {
    "UMAP": lambda **more: vicinal.UMAP(n_epochs=5, random_state=0, **more),
    "UMAP of unique rows": lambda **more: vicinal.UMAP(n_epochs=5, random_state=0, unique=True, **more),
    "DensMAP": lambda **more: vicinal.DensMAP(n_epochs=5, random_state=0, **more),
    "LargeVis": lambda **more: vicinal.LargeVis(n_epochs=5, random_state=0, **more),
    "TSNE": lambda **more: vicinal.TSNE(max_iter=10, random_state=0, **more),
}
# All metrics of dense rows; the columns below satisfy every one of them.
METRIC_NAMES = sorted(METRICS)


def keywords(metric: str, width: int) -> dict[str, Any]:
    return {"metric_kwds": {"w": np.ones(width)}} if metric == "wminkowski" else {}


def rows_for(metric: str) -> tuple[Any, Any]:
    """Return rows A and the rows A, 2A, A: scaled rows have distance 0 for some metrics and are different rows."""
    rng = np.random.default_rng(3)
    A = (rng.integers(1, 60, size=(N, 2 if metric == "haversine" else 6)) / 128).astype(np.float32)
    A = np.unique(A, axis=0)
    if metric.startswith("bit_"):
        A = (128 * A).astype(np.uint8)
    return A, np.concatenate([A, 2 * A, A])


def distinct(X: Any) -> int:
    return len(np.unique(X, axis=0))


def check_places(model: Any, A: Rows, X: Rows) -> None:
    places = model.embedding_
    n = len(A)
    np.testing.assert_array_equal(places[:n], places[2 * n :])
    np.testing.assert_array_equal(model.transform(X), places)
    assert distinct(places) == distinct(X)


@pytest.mark.parametrize("metric", METRIC_NAMES)
def test_equal_rows_share_a_place_and_scaled_rows_do_not(metric: str) -> None:
    A, X = rows_for(metric)
    model = BATCH["UMAP"](metric=metric, n_neighbors=5, **keywords(metric, A.shape[1])).fit(X)
    check_places(model, A, X)


@pytest.mark.parametrize("metric", ["cosine", "correlation", "euclidean"])
@pytest.mark.parametrize("name", BATCH)
def test_every_batch_estimator_has_the_same_definition(name: str, metric: str) -> None:
    A, X = rows_for(metric)
    check_places(BATCH[name](metric=metric).fit(X), A, X)


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_zero_of_either_sign_and_stored_zeros_are_equal(metric: str) -> None:
    A, X = rows_for(metric)
    signed = X.copy()
    signed[: len(A), 0], signed[2 * len(A) :, 0] = 0.0, -0.0
    check_places(BATCH["UMAP"](metric=metric).fit(signed), A, signed)
    sparse = csr_matrix(X)
    sparse.data[::7] = 0.0
    model = BATCH["UMAP"](metric=metric).fit(sparse)
    plain = sparse.copy()
    plain.eliminate_zeros()
    np.testing.assert_array_equal(model.transform(plain), model.embedding_)


@pytest.mark.filterwarnings("ignore:.*disconnected")  # differences have rows without edges
@pytest.mark.parametrize("metric", ["cosine", "correlation", "euclidean"])
@pytest.mark.parametrize("join", ["__mul__", "__add__", "__sub__"])
def test_rows_of_composed_models_are_equal_if_they_are_in_both(metric: str, join: str) -> None:
    A, X = rows_for(metric)
    other = X[:, ::-1].copy()
    other[len(A) : 2 * len(A)] = other[: len(A)]
    left, right = BATCH["UMAP"](metric=metric).fit(X), BATCH["UMAP"]().fit(other)
    composed = getattr(left, join)(right)
    places, n = composed.embedding_, len(A)
    np.testing.assert_array_equal(places[:n], places[2 * n :])
    np.testing.assert_array_equal(composed.transform((X, other)), places)
    assert not (places[:n] == places[n : 2 * n]).all(axis=1).any()


def test_slices_of_aligned_maps_have_the_same_definition() -> None:
    A, X = rows_for("cosine")
    same = {row: row for row in range(len(X))}
    model = vicinal.AlignedUMAP(n_epochs=5, metric="cosine", random_state=0).fit([X, X], relations=[same])
    for places, again in zip(model.embeddings_, model.transform([X, X]), strict=True):
        np.testing.assert_array_equal(places[: len(A)], places[2 * len(A) :])
        np.testing.assert_array_equal(again, places)


def test_parametric_map_places_equal_rows_together() -> None:
    pytest.importorskip("torch")
    A, X = rows_for("cosine")
    model = vicinal.ParametricUMAP(n_epochs=1, init="random", metric="cosine", random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_[: len(A)], model.embedding_[2 * len(A) :])
    np.testing.assert_allclose(model.transform(X), model.embedding_, atol=1e-5)


def test_rows_equal_to_a_pinned_row_are_pinned_with_it() -> None:
    A, X = rows_for("euclidean")
    n, mask = len(A), np.zeros(len(X), dtype=bool)
    mask[[2 * n + 4, 5]] = True
    places = np.full((len(X), 2), 7.0, dtype=np.float32)
    places[5] = -3.0
    for unique in (False, True):
        model = vicinal.UMAP(n_epochs=5, random_state=0, unique=unique)
        model.fit(X, fixed_mask=mask, fixed_positions=places)
        found = model.embedding_
        np.testing.assert_array_equal(found[[4, 2 * n + 4]], np.full((2, 2), 7.0, np.float32))
        np.testing.assert_array_equal(found[[5, 2 * n + 5]], np.full((2, 2), -3.0, np.float32))
        np.testing.assert_array_equal(model.transform(X), found)
    model.update(np.concatenate([X[4:6], X[7:9] + 1]))
    np.testing.assert_array_equal(model.embedding_[len(X) :][:2], [[7.0, 7.0], [-3.0, -3.0]])
    np.testing.assert_array_equal(model.transform(X[4:6]), [[7.0, 7.0], [-3.0, -3.0]])


def test_equal_rows_that_are_pinned_apart_are_refused() -> None:
    A, X = rows_for("euclidean")
    mask = np.zeros(len(X), dtype=bool)
    mask[[3, 2 * len(A) + 3]] = True
    places = np.arange(2.0 * len(X)).reshape(-1, 2)
    with pytest.raises(ValueError, match=f"different places for rows 3 and {2 * len(A) + 3}, which are equal"):
        vicinal.UMAP(n_epochs=2).fit(X, fixed_mask=mask, fixed_positions=places)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
@pytest.mark.parametrize("metric", [*METRIC_NAMES, "precomputed"])
def test_transformer_gives_fitted_rows_the_graph_of_the_fit(metric: str, mode: str) -> None:
    """Also if many rows tie: 6 rows equal every row, and the list has 5."""
    A, X = rows_for(metric)
    X = np.concatenate([X, X, X[::-1]])
    if metric == "precomputed":
        X = np.abs(X[:, None, 0] - X[None, :, 0])
    more = {"metric_params": {"w": np.ones(A.shape[1])}} if metric == "wminkowski" else {}
    model = vicinal.KNeighborsTransformer(n_neighbors=5, metric=metric, mode=mode, **more)
    fitted = model.fit_transform(X)
    again = model.transform(X)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(again, name), getattr(fitted, name))
    np.testing.assert_array_equal(model.transform(X[7:9]).toarray(), fitted[7:9].toarray())


def test_transformer_of_an_approximate_search_gives_fitted_rows_the_graph_of_the_fit() -> None:
    X = np.random.default_rng(0).normal(size=(500, 5)).astype(np.float32)
    X = np.concatenate([X, X[:100]])
    model = vicinal.KNeighborsTransformer(n_neighbors=20, algorithm="approximate")
    assert (model.fit_transform(X) != model.transform(X)).nnz == 0
    distance, index = model.kneighbors(X, 25)
    assert (np.diff(distance, axis=1) >= 0).all()
    assert (index[:100] == index[500:]).all()
