"""Random shapes, types and duplicates: finite maps, valid graphs, equal bits in a second fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from vicinal import UMAP, find_neighbors, fuzzy_graph
from vicinal.neighbors.metrics import VECTOR_METRICS as METRICS

pytestmark = pytest.mark.filterwarnings("error")

common = settings(deadline=None, max_examples=50, derandomize=True, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def tables(draw: Any, most_rows: int = 60) -> NDArray[Any]:
    """Draw rows of any type and memory order, with repeated rows, constant columns and huge or tiny values."""
    n, d = draw(st.integers(1, most_rows)), draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind = draw(st.sampled_from(["normal", "whole", "binary", "wide"]))
    if kind == "normal":
        rows = rng.normal(size=(n, d))
    elif kind == "whole":
        rows = rng.integers(-3, 4, size=(n, d)).astype(np.float64)
    elif kind == "binary":
        rows = rng.integers(0, 2, size=(n, d)).astype(np.float64)
    else:
        rows = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-20, 20, size=(n, 1))
    if draw(st.booleans()):
        rows = rows[rng.integers(n, size=n)]
    if draw(st.booleans()):
        rows[:, rng.integers(d)] = 1.0
    dtype = draw(st.sampled_from([np.float32, np.float64, ">f4"] + ([np.int16] if kind != "wide" else [])))
    rows = rows.astype(dtype)
    return np.asfortranarray(rows) if draw(st.booleans()) else rows


@common
@given(
    X=tables(),
    n_neighbors=st.integers(2, 20),
    n_components=st.integers(1, 6),
    metric=st.sampled_from(METRICS),
    init=st.sampled_from(["spectral", "pca", "random"]),
    seed=st.integers(0, 2**31 - 1),
    labeled=st.booleans(),
)
def test_maps_are_finite_and_reproducible_and_duplicates_share_one_place(
    X: NDArray[Any],
    n_neighbors: int,
    n_components: int,
    metric: str,
    init: str,
    seed: int,
    labeled: bool,
) -> None:
    options: dict[str, Any] = {
        "n_neighbors": n_neighbors,
        "n_components": n_components,
        "metric": metric,
        "init": init,
        "random_state": seed,
    }
    y = np.arange(len(X)) % 3 - 1 if labeled else None
    kept = X.copy()
    model = UMAP(n_epochs=10, n_jobs=1, **options).fit(X, y)
    embedding = model.embedding_
    np.testing.assert_array_equal(X, kept)
    assert embedding.shape == (len(X), n_components)
    assert np.isfinite(embedding).all()
    np.testing.assert_array_equal(UMAP(n_epochs=10, n_jobs=4, **options).fit_transform(X, y), embedding)
    np.testing.assert_array_equal(model.transform(X), embedding)
    _, first, inverse = np.unique(X.astype(np.float32), axis=0, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(embedding, embedding[first][inverse.reshape(-1)])


@common
@given(
    X=tables(),
    k=st.integers(1, 20),
    metric=st.sampled_from(METRICS),
    mix=st.floats(0, 1),
    connectivity=st.floats(0, 5),
)
def test_graphs_are_symmetric_with_weights_in_the_unit_interval(
    X: NDArray[Any], k: int, metric: str, mix: float, connectivity: float
) -> None:
    neighbors = find_neighbors(X, min(k, len(X)), metric=metric)
    assert np.isfinite(neighbors.distance).all()
    assert (neighbors.distance >= 0).all()
    assert (np.diff(neighbors.distance, axis=1) >= 0).all()
    graph = fuzzy_graph(neighbors, set_op_mix_ratio=mix, local_connectivity=connectivity)
    assert np.isfinite(graph.rho).all()
    assert np.isfinite(graph.sigma).all()
    matrix = graph.to_scipy()
    assert (matrix != matrix.T).nnz == 0
    assert not matrix.diagonal().any()
    assert (graph.weights > 0).all()
    assert (graph.weights <= 1).all()


@settings(common, max_examples=25)
@given(X=tables(), Q=tables(20), metric=st.sampled_from(METRICS))
def test_new_rows_have_the_same_places_alone_and_together(X: NDArray[Any], Q: NDArray[Any], metric: str) -> None:
    new = np.resize(np.asarray(Q, dtype=np.float32), (len(Q), X.shape[1]))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* rows are disconnected")
        model = UMAP(n_epochs=15, random_state=0, metric=metric).fit(X)
        placed = model.transform(new)
        alone = np.concatenate([model.transform(new[i : i + 1]) for i in range(len(new))])
    assert np.isfinite(placed).all()
    np.testing.assert_array_equal(alone, placed)
