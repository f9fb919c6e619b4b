"""Unusual data and parameters give finite maps without warnings, except those of disconnected rows."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, find_neighbors
from vicinal.neighbors.metrics import VECTOR_METRICS as METRICS

pytestmark = [pytest.mark.filterwarnings("error"), pytest.mark.timeout(60)]

INITS = ("spectral", "pca", "random")


def embed(X: Any, y: Any = None, **options: Any) -> NDArray[np.float32]:
    """Fit UMAP, check that all places are finite, also those of new rows, and return the map."""
    warnings.filterwarnings("ignore", message=".* are disconnected")
    model = UMAP(**{"n_epochs": 30, "random_state": 0, **options}).fit(X, y)
    rows = np.asarray(X, dtype=np.float32)
    n_components = options.get("n_components", 2)
    assert model.embedding_.shape == (len(rows), n_components)
    assert np.isfinite(model.embedding_).all()
    with np.errstate(over="ignore"):
        new = np.where(np.isfinite(rows * 2), rows * 2, rows)[:3]
    placed = model.transform(new)
    assert placed.shape == (len(new), n_components)
    assert np.isfinite(placed).all()
    return model.embedding_


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("value", [0.0, 1.0, -3e7])
def test_constant_rows_share_one_place(metric: str, value: float) -> None:
    embedding = embed(np.full((50, 4), value), metric=metric)
    np.testing.assert_array_equal(embedding, np.repeat(embedding[:1], 50, axis=0))


@pytest.mark.parametrize("init", INITS)
def test_constant_rows_have_a_finite_map_from_every_initialization(init: str) -> None:
    embed(np.ones((300, 3)), init=init, n_components=3)


def test_constant_columns_have_a_finite_map() -> None:
    X = np.random.default_rng(0).normal(size=(60, 5))
    X[:, [0, 2, 4]] = 7.0
    for init in INITS:
        embed(X, init=init, n_components=4)


@pytest.mark.parametrize("n", [40, 300, 7000])
def test_two_rows_repeated_many_times_have_two_places(n: int) -> None:
    """There are more copies of each row than neighbors."""
    X = np.repeat([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]], n // 2, axis=0)
    embedding = embed(X, n_epochs=10)
    assert len(np.unique(embedding, axis=0)) == 2


@pytest.mark.parametrize("n", range(1, 21))
@pytest.mark.parametrize("options", [{}, {"init": "pca", "n_components": 3}, {"metric": "cosine"}], ids=str)
def test_fewer_rows_than_neighbors_have_a_finite_map(n: int, options: dict[str, Any]) -> None:
    embed(np.random.default_rng(n).normal(size=(n, 4)), **options)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_up_to_three_rows_of_one_column_have_a_finite_map(n: int) -> None:
    embed(np.arange(n)[:, None])
    embed(np.zeros((n, 1)))
    embed(np.zeros((n, 1)), np.zeros(n))


@pytest.mark.parametrize("n_components", [1, 2, 3, 4, 5, 8, 15, 30, 49, 50])
@pytest.mark.parametrize("init", INITS)
def test_up_to_fifty_components_have_a_finite_map(n_components: int, init: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 6))
    embed(X, n_components=n_components, init=init, n_epochs=10)


def test_more_components_than_rows_have_a_finite_map() -> None:
    X = np.random.default_rng(0).normal(size=(10, 3))
    for init in INITS:
        embed(X, n_components=25, init=init)


def far_groups(groups: int, size: int, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-1e4, 1e4, size=(groups, 3))
    return (np.repeat(centers, size, axis=0) + rng.normal(size=(groups * size, 3))).astype(np.float32)


@pytest.mark.parametrize("size", [4, 8])
def test_thousand_connected_components_have_different_places(size: int) -> None:
    """With 4 rows a component is too small for an eigenmap, with 8 it is not."""
    embedding = embed(far_groups(1000, size), n_neighbors=3, disconnection_distance=50.0, n_epochs=10)
    groups = embedding.reshape(1000, size, 2)
    assert len(np.unique(groups.mean(axis=1), axis=0)) == 1000


def test_components_of_the_neighbor_graph_have_a_finite_map() -> None:
    embed(far_groups(300, 4), n_neighbors=3, n_epochs=10)


def test_isolated_rows_have_finite_places() -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(80, 3)), rng.uniform(1e3, 1e6, size=(20, 3))])
    embed(X, disconnection_distance=20.0)
    embed(X, np.arange(100) % 3, disconnection_distance=20.0)


def test_graph_without_edges_has_a_finite_map() -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    for init in INITS:
        embed(X, disconnection_distance=1e-9, init=init)
    embed(X, np.arange(50) % 2, disconnection_distance=1e-9)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-30, 1e-15, 1e15, 1e30, 3e37])
def test_extreme_scales_have_a_finite_map(metric: str, scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(50, 4)) * scale
    embed(X.astype(np.float32), metric=metric, n_epochs=10)


@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-20, 1e20, 1e30])
def test_neighbors_do_not_depend_on_the_scale(scale: float) -> None:
    X = np.random.default_rng(0).normal(size=(80, 4))
    expected = find_neighbors(X.astype(np.float32), 8).index
    # Denormal numbers have few digits, so that near ties may be ordered differently.
    near = np.mean(find_neighbors((X * scale).astype(np.float32), 8).index == expected)
    assert near > (0.9 if scale < 1e-38 else 0.99)


def test_rows_of_mixed_scales_have_a_finite_map() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3)) * np.repeat([1e-30, 1.0, 1e30], 30)[:, None]
    for metric in METRICS:
        embed(X, metric=metric, n_epochs=10)


def test_largest_float32_values_have_a_finite_map() -> None:
    largest = np.finfo(np.float32).max
    X = np.random.default_rng(0).choice([-largest, 0.0, largest], size=(40, 3))
    for metric in METRICS:
        embed(X, metric=metric, n_epochs=10)


@pytest.mark.parametrize("metric", METRICS)
def test_approximate_search_of_duplicates_has_a_finite_map(metric: str) -> None:
    rng = np.random.default_rng(0)
    X = np.concatenate([np.zeros((400, 5)), np.ones((400, 5)), rng.integers(0, 2, size=(700, 5))])
    embed(X, metric=metric, force_approximation_algorithm=True, n_epochs=10)


@pytest.mark.parametrize(
    "options",
    [
        {"negative_sample_rate": 0},
        {"negative_sample_rate": 200},
        {"repulsion_strength": 0.0},
        {"repulsion_strength": 1e6},
        {"learning_rate": 1e-9},
        {"learning_rate": 1e4},
        {"learning_rate": 1e4, "update_negatives": True},
        {"local_connectivity": 0.0},
        {"local_connectivity": 100.0},
        {"set_op_mix_ratio": 0.0},
        {"min_dist": 0.0},
        {"min_dist": 1.0},
        {"spread": 20.0, "min_dist": 15.0},
        {"spread": 1e-3, "min_dist": 0.0},
        {"a": 1e-6, "b": 3.0},
        {"a": 1e6, "b": 0.1},
        {"a": 100.0, "b": 10.0},
        {"n_epochs": 0},
        {"n_epochs": 1},
        {"n_neighbors": 79},
        {"n_neighbors": 1000},
        {"n_neighbors": 2},
        {"target_weight": 0.0},
        {"target_weight": 1.0},
        {"init": np.zeros((80, 2))},
        {"init": np.full((80, 2), 1e30)},
        {"init": np.random.default_rng(0).normal(size=(80, 2)) * 1e300},
    ],
    ids=lambda options: ", ".join(options),
)
def test_extreme_parameters_give_a_finite_map(options: dict[str, Any]) -> None:
    X = np.random.default_rng(0).normal(size=(80, 4))
    embed(X, **options)
    embed(X, np.arange(80) % 4, **options)


@pytest.mark.parametrize(
    "y",
    [
        np.full(60, -1),
        np.zeros(60, dtype=int),
        np.arange(60),
        np.array(["a", "b", "c"] * 20),
        np.array([True, False] * 30),
        np.where(np.arange(60) % 3, -1.0, 2.5),
        (np.arange(60) % 2)[:, None],
        [0, 1] * 30,
    ],
    ids=["all unlabeled", "one class", "one class per row", "strings", "booleans", "floats", "column", "list"],
)
def test_all_kinds_of_labels_give_a_finite_map(y: Any) -> None:
    embed(np.random.default_rng(0).normal(size=(60, 4)), y)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(("fitted", "new"), [(1e-35, 1e35), (1.0, 3e38), (1e30, 1e-40), (1.0, 1e25)])
def test_new_rows_far_from_the_data_have_finite_places(metric: str, fitted: float, new: float) -> None:
    rng = np.random.default_rng(0)
    model = UMAP(n_epochs=30, random_state=0, metric=metric).fit(rng.uniform(-1, 1, size=(50, 4)) * fitted)
    rows = (rng.uniform(-1, 1, size=(10, 4)) * new).astype(np.float32)
    placed = model.transform(rows)
    assert np.isfinite(placed).all()
    np.testing.assert_array_equal(model.transform(rows[:1]), placed[:1])


@pytest.mark.parametrize("metric", METRICS)
def test_distances_between_rows_of_mixed_scales_are_finite(metric: str) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 3)) * 10.0 ** rng.integers(-40, 30, size=(60, 1))).astype(np.float32)
    neighbors = find_neighbors(X, 10, metric=metric)
    assert (neighbors.index >= 0).all()
    assert np.isfinite(neighbors.distance).all()
    if metric in ("cosine", "correlation"):
        assert (neighbors.distance <= 2.0 + 1e-5).all()
