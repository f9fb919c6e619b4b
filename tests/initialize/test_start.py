"""Initial embeddings: extent, fallbacks and their reasons, components apart, neighbour means."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, Graph, find_neighbors, fuzzy_graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.initialize.pca import pca_places
from vicinal.initialize.start import INITIALIZERS, initial_embedding
from vicinal.initialize.task import EXTENT, InitialTask, to_extent


def make_task(X: NDArray[np.float32], n_components: int = 2, seed: int = 0, k: int = 10) -> InitialTask:
    return InitialTask(fuzzy_graph(find_neighbors(X, min(k, len(X)))), X, n_components, seed)


@pytest.mark.parametrize("name", INITIALIZERS)
@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_every_start_spans_the_same_box(iris: NDArray[np.float32], name: str, n_components: int) -> None:
    places, used = initial_embedding(name, make_task(iris, n_components))
    assert used == name
    assert places.dtype == np.float32
    np.testing.assert_allclose(places.min(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(places.max(axis=0), EXTENT, rtol=1e-5)


@pytest.mark.parametrize("name", INITIALIZERS)
def test_starts_repeat_and_depend_on_the_seed(iris: NDArray[np.float32], name: str) -> None:
    one, same, other = (initial_embedding(name, make_task(iris, seed=seed))[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_pca_is_that_of_the_covariance(iris: NDArray[np.float32]) -> None:
    places = pca_places(make_task(iris))
    centred = iris.astype(np.float64) - iris.mean(axis=0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ axes[:2].T
    for axis in range(2):
        correlation = np.corrcoef(places[:, axis], expected[:, axis])[0, 1]
        assert abs(correlation) == pytest.approx(1.0, abs=1e-5)


def test_pca_of_wide_rows_equals_pca_of_their_gram_matrix() -> None:
    X = np.random.default_rng(0).normal(size=(30, 200)).astype(np.float32)
    places = pca_places(make_task(X, 3))
    distance = np.linalg.norm(places[:, None] - places[None], axis=2)
    assert distance.max() > 0
    assert places.shape == (30, 3)


@pytest.mark.parametrize(
    ("X", "init", "words"),
    [(np.ones((50, 3)), "pca", ("random", "pca: the data does not vary"))],
)
def test_a_fallback_says_why(X: NDArray[Any], init: str, words: tuple[str, ...]) -> None:
    model = UMAP(init=init, n_epochs=5).fit(X)
    assert model.init_used_.startswith(words[0])
    assert all(word in model.init_used_ for word in words)


def test_a_start_that_fails_is_followed_by_the_next(iris: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(task: InitialTask) -> NDArray[np.float64]:
        raise np.linalg.LinAlgError("no convergence")

    def nowhere(task: InitialTask) -> NDArray[np.float64]:
        return np.full((task.graph.n, task.n_components), np.nan)

    monkeypatch.setitem(INITIALIZERS, "spectral", broken)
    places, used = initial_embedding("spectral", make_task(iris))
    assert used == "pca (spectral: no convergence)"
    assert np.isfinite(places).all()
    monkeypatch.setitem(INITIALIZERS, "pca", nowhere)
    places, used = initial_embedding("spectral", make_task(iris))
    assert used.startswith("random (spectral: no convergence; pca: the result was not finite")
    assert np.isfinite(places).all()


def test_without_coordinates_components_lie_at_random(iris: NDArray[np.float32]) -> None:
    task = InitialTask(fuzzy_graph(find_neighbors(iris, 5)), None, 2, 0)
    assert np.isfinite(initial_embedding("spectral", task)[0]).all()
    assert initial_embedding("pca", task)[1].startswith("random (pca: there are no coordinates")


def test_components_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0, 0], [100, 0, 0], [0, 100, 0], [0, 0, 100]])
    X = np.repeat(centres, 40, axis=0) + rng.normal(size=(160, 3))
    places, used = initial_embedding("spectral", make_task(X.astype(np.float32)))
    assert used == "spectral"
    groups = places.reshape(4, 40, 2)
    middle = groups.mean(axis=1)
    nearest = np.argmin(np.linalg.norm(places[:, None] - middle[None], axis=2), axis=1)
    assert np.mean(nearest == np.repeat(np.arange(4), 40)) > 0.9


def test_to_extent_keeps_flat_axes_in_the_middle() -> None:
    places = to_extent(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    np.testing.assert_array_equal(places, [[0, EXTENT / 2], [EXTENT, EXTENT / 2], [EXTENT / 2, EXTENT / 2]])
    assert to_extent(np.zeros((0, 2))).shape == (0, 2)


def test_an_array_is_stretched_to_the_box_and_otherwise_kept(iris: NDArray[np.float32]) -> None:
    given = np.random.default_rng(0).normal(size=(150, 2)) * [1.0, 1e-3]
    model = UMAP(init=given, n_epochs=0).fit(iris)
    assert model.init_used_ == "array"
    unique = model.map_.data.duplicates.first == np.arange(150)
    np.testing.assert_allclose(model.embedding_[unique], to_extent(given)[unique], rtol=1e-5, atol=1e-5)


def bipartite(rows: list[list[tuple[int, float]]], n_tails: int) -> Graph:
    """A graph with the given (tail, weight) pairs of every row."""
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    tails = np.array([tail for row in rows for tail, _ in row], dtype=np.int32)
    weights = np.array([weight for row in rows for _, weight in row], dtype=np.float32)
    zeros = np.zeros(len(rows), dtype=np.float32)
    return Graph(indptr, tails, weights, n_tails, zeros, zeros)


PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5], [90.0, 90.0]], dtype=np.float32)


def test_the_medoid_is_where_most_neighbours_are() -> None:
    """The mean of the first row lies at (22.75, 22.9), where nothing is."""
    graph = bipartite([[(3, 1.0), (1, 1.0), (0, 1.0), (2, 1.0)], [(0, 0.1), (3, 1.0)], [(2, 0.0), (1, 0.0)], []], 4)
    medoids = neighbor_medoid(graph, PLACES)
    np.testing.assert_array_equal(medoids[0], PLACES[1])
    np.testing.assert_array_equal(medoids[1], PLACES[3])  # weight counts
    np.testing.assert_array_equal(medoids[2], PLACES[2])  # without any weight the first
    np.testing.assert_array_equal(medoids[3], PLACES.mean(axis=0))  # without neighbours the middle


def test_a_medoid_depends_on_its_row_alone() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(500, 2)).astype(np.float32)
    rows = [[(int(t), float(rng.random())) for t in rng.choice(500, rng.integers(1, 20))] for _ in range(300)]
    together = neighbor_medoid(bipartite(rows, 500), places)
    alone = np.concatenate([neighbor_medoid(bipartite([row], 500), places) for row in rows])
    np.testing.assert_array_equal(together, alone)
