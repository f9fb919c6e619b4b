"""umap-learn's submodules: the names that programs import from them, and what they compute."""

from __future__ import annotations

import importlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix
from scipy.spatial import distance as scipy_distance

import vicinal
from vicinal.compat import distances, layouts, sparse, spectral, utils, validation
from vicinal.quality import trustworthiness

Rows = NDArray[np.float32]
NAMES = {
    "aligned_umap": ["AlignedUMAP"],
    "distances": ["euclidean", "cosine_grad", "named_distances", "pairwise_special_metric"],
    "parametric_umap": ["ParametricUMAP", "load_ParametricUMAP"],
    "spectral": ["spectral_layout", "tswspectral_layout"],
    "layouts": ["optimize_layout_euclidean", "optimize_layout_generic", "clip", "rdist"],
    "plot": ["points", "connectivity", "diagnostic", "interactive", "show", "output_file", "output_notebook"],
    "sparse": ["sparse_named_distances", "sparse_need_n_features", "sparse_cosine", "arr_union"],
    "validation": ["trustworthiness_vector", "trustworthiness_vector_bulk", "make_trustworthiness_calculator"],
    "umap_": ["UMAP", "make_epochs_per_sample", "INT32_MAX"],
    "utils": ["disconnected_vertices", "average_nn_distance", "csr_unique", "submatrix", "ts"],
}


@pytest.mark.parametrize("module", NAMES)
def test_names_can_be_imported_and_are_attributes_of_the_package(module: str) -> None:
    imported = importlib.import_module(f"vicinal.{module}")
    for name in NAMES[module]:
        assert hasattr(imported, name)
        assert hasattr(getattr(vicinal, module), name)
    assert vicinal.load_ParametricUMAP.__module__.endswith("parametric_umap")


def test_programs_can_import_submodules_under_the_name_umap(child_environment: dict[str, str]) -> None:
    program = """
import sys, vicinal
sys.modules["umap"] = vicinal
import umap, umap.umap_
from umap.spectral import spectral_layout
from umap.utils import disconnected_vertices
from umap.distances import cosine_grad, named_distances
from umap.layouts import optimize_layout_generic
from umap.sparse import sparse_named_distances
from umap.validation import trustworthiness_vector
assert umap.UMAP is vicinal.UMAP is umap.umap_.UMAP
assert "torch" not in sys.modules and "matplotlib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True, env=child_environment)


def test_spectral_layout_returns_eigenvectors_of_the_normalized_laplacian(iris: Rows) -> None:
    graph = vicinal.fuzzy_graph(vicinal.find_neighbors(iris[50:], 20)).to_scipy()
    weights = graph.toarray().astype(np.float64)
    root = 1.0 / np.sqrt(weights.sum(axis=1))
    _, vectors = np.linalg.eigh(np.eye(len(weights)) - root[:, None] * weights * root)
    for given in (graph, graph.toarray(), coo_matrix(graph)):
        places = spectral.spectral_layout(None, given, 2, random_state=3)
        assert places.shape == (100, 2)
        for place, vector in zip(places.T, vectors[:, 1:3].T, strict=True):
            assert abs(np.corrcoef(place, vector)[0, 1]) > 0.999
    np.testing.assert_array_equal(spectral.tswspectral_layout(None, graph, 2, 3, tol=1e-8), places)


def test_spectral_layout_of_pieces_puts_them_apart(iris: Rows) -> None:
    rows = np.concatenate([iris[:40], iris[:40] + 100.0])
    graph = vicinal.fuzzy_graph(vicinal.find_neighbors(rows, 10))
    places = spectral.spectral_layout(rows, graph.to_scipy(), 2, np.random.RandomState(0))
    first, second = places[:40], places[40:]
    assert np.linalg.norm(first.mean(0) - second.mean(0)) > max(first.std(), second.std())


SCIPY_NAMES = {"manhattan": "cityblock", "hellinger": None, "haversine": None, "ll_dirichlet": None}
VECTOR_NAMES = ["euclidean", "manhattan", "chebyshev", "canberra", "braycurtis", "cosine", "correlation"]
BOOLEAN_NAMES = ["jaccard", "dice", "rogerstanimoto", "russellrao", "sokalsneath", "yule", "hamming"]


@pytest.mark.parametrize("name", VECTOR_NAMES + BOOLEAN_NAMES)
def test_named_distances_can_be_called_with_two_vectors(name: str) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 12))
    if name in BOOLEAN_NAMES:
        x, y = x > 0, y > 0
    expected = getattr(scipy_distance, SCIPY_NAMES.get(name) or name)(x, y)
    assert distances.named_distances[name](x, y) == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_keywords_of_named_distances_have_umap_learns_order() -> None:
    x, y = np.random.default_rng(1).normal(size=(2, 3))
    variances, inverse = np.array([1.0, 2.0, 4.0]), np.diag([1.0, 2.0, 3.0])
    assert distances.minkowski(x, y, 3) == pytest.approx(scipy_distance.minkowski(x, y, 3), rel=1e-5)
    assert distances.standardised_euclidean(x, y, variances) == pytest.approx(
        scipy_distance.seuclidean(x, y, variances), rel=1e-5
    )
    for vinv in ({}, {"vinv": inverse}):
        expected = scipy_distance.mahalanobis(x, y, vinv.get("vinv", np.eye(3)))
        assert distances.mahalanobis(x, y, **vinv) == pytest.approx(expected, rel=1e-5)
    assert distances.weighted_minkowski(x, y) == pytest.approx(scipy_distance.euclidean(x, y), rel=1e-5)


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "cosine", "haversine", "hyperboloid", "minkowski"])
def test_distances_with_gradients_agree_with_differences(name: str) -> None:
    function = distances.named_distances_with_gradients[name]
    x, y = np.array([0.9, 0.4]), np.array([-0.3, 1.1])
    d, gradient = function(x, y)
    step = 1e-2
    for c in range(2):
        ahead, behind = (function(x + sign * step * np.eye(2)[c], y)[0] for sign in (1, -1))
        assert gradient[c] == pytest.approx((ahead - behind) / (2 * step), abs=2e-3)
    assert np.isfinite(function(x, x)[1]).all()
    assert d > 0


def test_a_named_distance_as_metric_has_the_speed_and_the_result_of_its_name(iris: Rows, tmp_path: Any) -> None:
    params: dict[str, Any] = {"n_neighbors": 7, "n_epochs": 5, "random_state": 0}
    by_name = vicinal.UMAP(metric="manhattan", output_metric="manhattan", **params).fit(iris)
    model = vicinal.UMAP(metric=distances.manhattan, output_metric=distances.manhattan_grad, **params).fit(iris)
    np.testing.assert_array_equal(model.embedding_, by_name.embedding_)
    model.save(tmp_path / "model.vicinal")
    assert vicinal.load(tmp_path / "model.vicinal").metric == "manhattan"


def test_levenshtein_counts_edits_up_to_a_limit() -> None:
    for levenshtein in (distances.levenshtein, distances.levenshtein_myers_ascii):
        assert levenshtein("kitten", "sitting") == 3.0
        assert levenshtein("a" * 30, "a") == 20.0
        assert levenshtein("a" * 25, "b" * 25, max_distance=10, normalization=5.0) == 2.0


def test_pairwise_special_metric_returns_all_distances() -> None:
    rows = np.random.default_rng(0).uniform(size=(30, 6))
    shares = np.sqrt(rows / rows.sum(axis=1, keepdims=True))
    expected = np.sqrt(np.maximum(1.0 - shares @ shares.T, 0.0))
    np.testing.assert_allclose(distances.pairwise_special_metric(rows), expected, atol=2e-3)
    part = distances.pairwise_special_metric(rows, rows[:4], metric="chebyshev")
    np.testing.assert_allclose(part, scipy_distance.cdist(rows, rows[:4], "chebyshev"), rtol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, csr_matrix])
def test_an_index_returns_all_distances_of_rows(iris: Rows, form: Any) -> None:
    table = vicinal.NeighborIndex(form(iris), "manhattan").distances(form(iris[:7]))
    np.testing.assert_allclose(table, scipy_distance.cdist(iris[:7], iris, "cityblock"), rtol=1e-4, atol=1e-5)


def test_disconnected_vertices_have_no_edges(iris: Rows) -> None:
    rows = np.concatenate([iris[:60], [[90, 0, 0, 0], [0, 90, 0, 0], [0, 90, 0, 0]]]).astype(np.float32)
    params: dict[str, Any] = {"n_neighbors": 7, "n_epochs": 5, "random_state": 0, "disconnection_distance": 20.0}
    with pytest.warns(UserWarning, match="1 of 63 rows"):
        alone = utils.disconnected_vertices(vicinal.UMAP(**params).fit(rows))
    assert np.flatnonzero(alone).tolist() == [60]
    with pytest.warns(UserWarning, match="2 of 62 rows"):
        alone = utils.disconnected_vertices(vicinal.UMAP(**params, unique=True).fit(rows))
    assert np.flatnonzero(alone).tolist() == [60, 61, 62]


def test_average_nn_distance_warns_of_rows_without_neighbors() -> None:
    matrix = csr_matrix(np.array([[0, 1.0, 3.0], [1.0, 0, 0], [0, 0, 0]]))
    with pytest.warns(UserWarning, match="1 rows have no neighbors"):
        np.testing.assert_array_equal(utils.average_nn_distance(matrix), [2.0, 1.0, np.nan])


def test_small_functions_of_utils() -> None:
    matrix = csr_matrix(np.array([[1.0, 0], [0, 2.0], [1.0, 0]]))
    index, inverse, counts = utils.csr_unique(matrix)
    np.testing.assert_array_equal(matrix[index].toarray()[inverse], matrix.toarray())
    assert sorted(counts.tolist()) == [1, 2]
    dmat = np.array([[0.0, 3, 1], [3, 0, 2], [1, 2, 0]])
    nearest = utils.fast_knn_indices(dmat, 2)
    np.testing.assert_array_equal(nearest, [[0, 2], [1, 2], [2, 0]])
    np.testing.assert_array_equal(utils.submatrix(dmat, nearest, 2), [[0, 1], [0, 2], [0, 1]])
    assert ":" in utils.ts()


def edges_of(rows: Rows) -> Any:
    return vicinal.UMAP(n_neighbors=10, transform_mode="graph").fit(rows).graph_.tocoo()


@pytest.mark.parametrize("metric", [None, "euclidean", distances.manhattan_grad], ids=["plain", "name", "gradient"])
def test_a_list_of_edges_is_laid_out(iris: Rows, metric: Any, global_random_seed: int) -> None:
    graph, rng = edges_of(iris), np.random.RandomState(global_random_seed)
    start = rng.uniform(-10, 10, (150, 2)).astype(np.float32)
    state = rng.randint(-(2**31) + 1, 2**31 - 2, 3).astype(np.int64)
    waits = graph.data.max() / graph.data
    given = (start, start, graph.row, graph.col, [0, 200], 150, waits, 1.577, 0.895, state)
    if metric is None:
        first, last = layouts.optimize_layout_euclidean(*given)
    else:
        first, last = layouts.optimize_layout_generic(*given, output_metric=metric)
    np.testing.assert_array_equal(first, start)
    assert trustworthiness(iris, last, n_neighbors=10) > 0.94
    with pytest.raises(ValueError, match="densmap must be False"):
        layouts.optimize_layout_euclidean(*given, densmap=True)


def test_new_rows_are_laid_out_among_points_that_stay(iris: Rows) -> None:
    graph, places = edges_of(iris).tocsr(), vicinal.UMAP(random_state=0).fit_transform(iris)
    new = np.arange(150) % 3 == 0
    edges, known = graph[new][:, ~new].tocoo(), places[~new].copy()
    start = np.zeros((50, 2), np.float32)
    waits = 1.0 / edges.data
    placed = layouts.optimize_layout_euclidean(start, known, edges.row, edges.col, 100, 100, waits, 1.5, 0.9, 3)
    np.testing.assert_array_equal(known, places[~new])
    assert np.linalg.norm(placed - places[new], axis=1).mean() < 0.2 * np.ptp(places, axis=0).max()
    with pytest.raises(ValueError, match="tail must hold row numbers from 0 to 99"):
        layouts.optimize_layout_euclidean(start, known, [0], [100], 5, 100, [1.0], 1.5, 0.9, 3)


@pytest.mark.parametrize("name", sorted(sparse.sparse_named_distances))
def test_distances_of_sparse_vectors_are_those_of_dense_ones(name: str) -> None:
    x, y = np.zeros((2, 9), np.float32)
    x[[0, 3, 5]], y[[1, 3]] = (1, 2, 3), (2, 2)
    parts = [part for vector in (x, y) for part in (np.flatnonzero(vector), vector[vector != 0])]
    columns = (9,) if name in sparse.sparse_need_n_features else ()
    found = sparse.sparse_named_distances[name](*parts, *columns)
    assert found == pytest.approx(distances.named_distances[name](x, y), rel=1e-5)


def test_small_functions_of_layouts_and_sparse() -> None:
    assert (layouts.clip(7.0), layouts.clip(-9), layouts.rdist([1, 2], [2, 4])) == (4.0, -4.0, 5.0)
    index, values = sparse.sparse_diff([0, 3], [1.0, 2.0], [1, 3], [2.0, 2.0])
    assert (index.tolist(), values.tolist()) == ([0, 1], [1.0, -2.0])
    assert sparse.sparse_minkowski([0], [3.0], [1], [4.0], 3) == pytest.approx(91 ** (1 / 3), rel=1e-5)
    assert sparse.arr_union([1, 3], [2, 3]).tolist() == [1, 2, 3]


def test_trustworthiness_for_several_numbers_of_neighbors(iris: Rows) -> None:
    places = iris[:, :2] + np.linspace(0, 1e-3, 150)[:, None]  # without ties
    vector = validation.trustworthiness_vector(iris, places, 12)
    assert vector[0] == 1.0
    for k in (1, 5, 12):
        assert vector[k] == pytest.approx(trustworthiness(iris, places, n_neighbors=k))
    apart = scipy_distance.cdist(places, places)
    np.fill_diagonal(apart, np.inf)
    near = np.argsort(apart, axis=1, kind="stable")[:, :12]
    found = validation.make_trustworthiness_calculator("euclidean")(iris, near, 12)
    np.testing.assert_allclose(found, vector, atol=2e-3)  # equal distances are ranked in float32
