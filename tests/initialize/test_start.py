"""Initial embeddings: extent, fallbacks and their reasons, connected components, medoids of neighbors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, Graph, find_neighbors, fuzzy_graph
from vicinal.initialize import spectral
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.initialize.spectral import EVENED_ROWS, HALVINGS, MEDIAN_ROWS, NEAR, ComponentMaps
from vicinal.initialize.spectral import evened as even_maps
from vicinal.initialize.start import INITIALIZERS, initial_embedding
from vicinal.initialize.task import LEAST_EXTENT, InitialTask, extent, pca_places, to_extent


def make_task(X: NDArray[np.float32], n_components: int = 2, seed: int = 0, k: int = 10) -> InitialTask:
    return InitialTask(fuzzy_graph(find_neighbors(X, min(k, len(X)))), X, n_components, seed)


@pytest.mark.parametrize("name", INITIALIZERS)
@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_every_initialization_spans_the_same_box(iris: NDArray[np.float32], name: str, n_components: int) -> None:
    places, used = initial_embedding(name, make_task(iris, n_components))
    assert used == name
    assert places.dtype == np.float32
    np.testing.assert_allclose(places.min(axis=0), 0.0, atol=1e-5)
    np.testing.assert_allclose(places.max(axis=0), LEAST_EXTENT, rtol=1e-5)


@pytest.mark.parametrize("name", INITIALIZERS)
def test_initialization_is_reproducible_and_depends_on_the_seed(iris: NDArray[np.float32], name: str) -> None:
    one, same, other = (initial_embedding(name, make_task(iris, seed=seed))[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_pca_equals_the_singular_vectors_of_the_centered_rows(iris: NDArray[np.float32]) -> None:
    places = pca_places(make_task(iris))
    centerd = iris.astype(np.float64) - iris.mean(axis=0)
    _, _, axes = np.linalg.svd(centerd, full_matrices=False)
    expected = centerd @ axes[:2].T
    for axis in range(2):
        correlation = np.corrcoef(places[:, axis], expected[:, axis])[0, 1]
        assert abs(correlation) == pytest.approx(1.0, abs=1e-5)


def test_pca_of_more_columns_than_rows_keeps_the_leading_components() -> None:
    X = np.random.default_rng(0).normal(size=(30, 200)).astype(np.float32)
    places = pca_places(make_task(X, 3))
    centered = X.astype(np.float64) - X.mean(axis=0)
    values, vectors = np.linalg.eigh(centered @ centered.T)
    expected = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :3]
    distance, true = (np.linalg.norm(p[:, None] - p[None], axis=2) for p in (places, expected))
    np.testing.assert_allclose(distance / distance.max(), true / true.max(), atol=1e-5)


@pytest.mark.parametrize(
    ("X", "init", "words"),
    [(np.ones((50, 3)), "pca", ("random", "pca: the data does not vary"))],
)
def test_init_used_gives_the_reason_of_a_fallback(X: NDArray[Any], init: str, words: tuple[str, ...]) -> None:
    model = UMAP(init=init, n_epochs=5).fit(X)
    assert model.init_used_.startswith(words[0])
    assert all(word in model.init_used_ for word in words)


def test_failed_initialization_falls_back_to_the_next(
    iris: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(task: InitialTask) -> NDArray[np.float64]:
        raise np.linalg.LinAlgError("no convergence")

    def not_finite(task: InitialTask) -> NDArray[np.float64]:
        return np.full((task.graph.n, task.n_components), np.nan)

    monkeypatch.setitem(INITIALIZERS, "spectral", broken)
    places, used = initial_embedding("spectral", make_task(iris))
    assert used == "pca (spectral: no convergence)"
    assert np.isfinite(places).all()
    monkeypatch.setitem(INITIALIZERS, "pca", not_finite)
    places, used = initial_embedding("spectral", make_task(iris))
    assert used.startswith("random (spectral: no convergence; pca: the result was not finite")
    assert np.isfinite(places).all()


def test_pca_without_coordinates_falls_back_to_random(iris: NDArray[np.float32]) -> None:
    task = InitialTask(fuzzy_graph(find_neighbors(iris, 5)), None, 2, 0)
    assert np.isfinite(initial_embedding("spectral", task)[0]).all()
    assert initial_embedding("pca", task)[1].startswith("random (pca: there are no coordinates")


def test_connected_components_do_not_overlap() -> None:
    rng = np.random.default_rng(0)
    centers = np.array([[0, 0, 0], [100, 0, 0], [0, 100, 0], [0, 0, 100]])
    X = np.repeat(centers, 40, axis=0) + rng.normal(size=(160, 3))
    places, used = initial_embedding("spectral", make_task(X.astype(np.float32)))
    assert used == "spectral"
    groups = places.reshape(4, 40, 2)
    middle = groups.mean(axis=1)
    nearest = np.argmin(np.linalg.norm(places[:, None] - middle[None], axis=2), axis=1)
    assert np.mean(nearest == np.repeat(np.arange(4), 40)) > 0.9


def clusters(count: int, size: int, columns: int = 6) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return far-apart clusters of up to ``size`` rows in random order, and the cluster of each row."""
    rng = np.random.default_rng(3)
    label = rng.permutation(np.repeat(np.arange(count), rng.integers(size // 2, size + 1, count)))
    X = 1000 * rng.normal(size=(count, columns))[label] * np.geomspace(1, 0.01, columns)
    return (X + rng.normal(size=X.shape)).astype(np.float32), label


@pytest.mark.parametrize(("count", "size"), [(12, 400), (60, 40), (700, 12)])
def test_components_lie_at_the_principal_components_of_their_centroids(count: int, size: int) -> None:
    X, label = clusters(count, size)
    places, used = initial_embedding("spectral", make_task(X, k=4))
    assert used == "spectral"
    members = np.bincount(label)[:, None]
    middle, centroid = (
        np.stack([np.bincount(label, axis) for axis in values.T], axis=1) / members for values in (places, X)
    )
    centered = centroid - centroid.mean(axis=0)
    scores = centered @ np.linalg.svd(centered, full_matrices=False)[2][:2].T
    for axis in range(2):
        assert abs(np.corrcoef(middle[:, axis], scores[:, axis])[0, 1]) > 0.97


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_components_have_the_same_places_for_any_number_of_threads(n_components: int) -> None:
    X, _ = clusters(80, 60)
    one, many = (
        initial_embedding("spectral", replace(make_task(X, n_components, k=5), n_jobs=n_jobs))[0] for n_jobs in (1, 4)
    )
    np.testing.assert_array_equal(one, many)


def test_components_without_coordinates_have_random_centers() -> None:
    X, label = clusters(40, 30)
    places, used = initial_embedding("spectral", replace(make_task(X, k=5), X=None))
    assert used == "spectral"
    assert np.isfinite(places).all()
    spread = np.array([np.ptp(places[label == c], axis=0).max() for c in range(40)])
    assert np.median(spread) < LEAST_EXTENT / 4


def test_isolated_rows_and_pairs_are_placed(iris: NDArray[np.float32]) -> None:
    """A graph without edges has as many components as rows."""
    places, used = initial_embedding("spectral", InitialTask(Graph.without_edges(150), iris, 2, 0))
    assert used == "spectral"
    expected = to_extent(pca_places(make_task(iris)))
    assert np.abs(places - expected).max() < 1.0  # half of the distance to the nearest row
    pairs = np.arange(150).reshape(-1, 2)[:, ::-1].reshape(-1).astype(np.int32)
    zeros = np.zeros(150, dtype=np.float32)
    graph = Graph(np.arange(151), pairs, np.ones(150, dtype=np.float32), 150, zeros, zeros)
    assert np.isfinite(initial_embedding("spectral", InitialTask(graph, iris, 2, 0))[0]).all()


def test_centers_of_many_wide_components_need_a_sample_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    X, _ = clusters(300, 8)
    whole, _ = initial_embedding("spectral", make_task(X, k=3))
    monkeypatch.setattr(spectral, "AXES_WORK", 6 * 100.0**2)
    sampled, _ = initial_embedding("spectral", make_task(X, k=3))
    for axis in range(2):
        assert abs(np.corrcoef(whole[:, axis], sampled[:, axis])[0, 1]) > 0.98


def test_the_box_grows_with_the_number_of_rows() -> None:
    assert extent(1_000, 2) == LEAST_EXTENT
    assert extent(400_000, 2) == pytest.approx(2 * extent(100_000, 2))
    assert extent(100_000, 3) < extent(100_000, 2)
    places = to_extent(np.random.default_rng(0).normal(size=(40_000, 2)))
    np.testing.assert_allclose(np.ptp(places, axis=0), extent(40_000, 2))


def test_the_middle_of_a_large_eigenmap_gets_room() -> None:
    """Distances from the median become their inverse hyperbolic sines, in the units of the median distance."""
    rng = np.random.default_rng(0)
    n = 2 * EVENED_ROWS
    vectors = rng.standard_cauchy(size=(n, 2)).astype(np.float32)
    maps = ComponentMaps(rng.permutation(n).astype(np.int32), np.array([0, n - 20, n]), vectors)
    evened = even_maps(maps).vectors
    large, small = np.split(maps.order, [n - 20])
    np.testing.assert_array_equal(evened[small], vectors[small])
    sample = vectors[large[np.arange(MEDIAN_ROWS) * len(large) // MEDIAN_ROWS]].astype(np.float64)
    middle = np.median(sample, axis=0)
    expected = np.arcsinh((vectors[large] - middle) / (NEAR * np.median(np.abs(sample - middle), axis=0)))
    np.testing.assert_allclose(evened[large] * 2**HALVINGS, expected, rtol=0.02)
    assert np.abs(vectors).max() > 100  # maps is left as it was


def test_components_face_each_other_as_their_rows_do() -> None:
    """Chains of rows, one behind the other: along the map they have the order that they have in the data."""
    chain = np.linspace(0.0, 1.0, 60)
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(240, 3))
    X = np.concatenate([[3.0 * c, 0.0, 0.0] + chain[:, None] * [1.0, 0.0, 0.0] for c in range(4)]) + noise
    places, _ = initial_embedding("spectral", make_task(X.astype(np.float32), k=5))
    along = places[:, 0].reshape(4, 60)
    signs = {np.sign(np.corrcoef(part, chain)[0, 1]) for part in along}
    assert signs == {np.sign(along[3].mean() - along[0].mean())}


def test_to_extent_keeps_flat_axes_in_the_middle() -> None:
    places = to_extent(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    middle = LEAST_EXTENT / 2
    np.testing.assert_array_equal(places, [[0, middle], [LEAST_EXTENT, middle], [middle, middle]])
    assert to_extent(np.zeros((0, 2))).shape == (0, 2)


def test_given_array_keeps_its_shape_in_the_box(iris: NDArray[np.float32]) -> None:
    given = np.random.default_rng(0).normal(size=(150, 2)) * [1.0, 1e-3]
    model = UMAP(init=given, n_epochs=0).fit(iris)
    assert model.init_used_ == "array"
    unique = model.map_.data.duplicates.first == np.arange(150)
    scaled = (given - given.min(axis=0)) * LEAST_EXTENT / np.ptp(given[:, 0])
    np.testing.assert_allclose(model.embedding_[unique], scaled[unique], rtol=1e-5, atol=1e-5)


def bipartite(rows: list[list[tuple[int, float]]], n_tails: int) -> Graph:
    """Return a graph with the given (tail, weight) pairs of every row."""
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    tails = np.array([tail for row in rows for tail, _ in row], dtype=np.int32)
    weights = np.array([weight for row in rows for _, weight in row], dtype=np.float32)
    zeros = np.zeros(len(rows), dtype=np.float32)
    return Graph(indptr, tails, weights, n_tails, zeros, zeros)


PLACES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.5], [90.0, 90.0]], dtype=np.float32)


def test_medoid_is_the_place_of_a_central_neighbor() -> None:
    """The mean of the neighbors of the first row, (22.75, 22.9), is far from all of them."""
    graph = bipartite([[(3, 1.0), (1, 1.0), (0, 1.0), (2, 1.0)], [(0, 0.1), (3, 1.0)], [(2, 0.0), (1, 0.0)], []], 4)
    medoids = neighbor_medoid(graph, PLACES)
    np.testing.assert_array_equal(medoids[0], PLACES[1])
    np.testing.assert_array_equal(medoids[1], PLACES[3])  # neighbors are weighted
    np.testing.assert_array_equal(medoids[2], PLACES[2])  # without weights the first neighbor
    np.testing.assert_array_equal(medoids[3], PLACES.mean(axis=0))  # without neighbors the mean of all places


def test_medoid_depends_on_its_row_alone() -> None:
    rng = np.random.default_rng(0)
    places = rng.normal(size=(500, 2)).astype(np.float32)
    rows = [[(int(t), float(rng.random())) for t in rng.choice(500, rng.integers(1, 20))] for _ in range(300)]
    together = neighbor_medoid(bipartite(rows, 500), places)
    alone = np.concatenate([neighbor_medoid(bipartite([row], 500), places) for row in rows])
    np.testing.assert_array_equal(together, alone)
