"""umap-learn's module-level functions return the values of umap-learn (golden/functions.npz)."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import reference
from numpy.typing import NDArray
from scipy.sparse import coo_matrix, csr_matrix, isspmatrix_coo, isspmatrix_csr, isspmatrix_dok

import vicinal
from vicinal import umap_
from vicinal.compat import umap_functions as functions

# Signatures of umap-learn 0.5.12; mutable or compiled defaults are None or a name here.
SIGNATURES = {
    "nearest_neighbors": "X n_neighbors metric metric_kwds angular random_state low_memory=True use_pynndescent=True "
    "n_jobs=-1 verbose=False",
    "smooth_knn_dist": "distances k n_iter=64 local_connectivity=1.0 bandwidth=1.0",
    "compute_membership_strengths": "knn_indices knn_dists sigmas rhos return_dists=False bipartite=False",
    "fuzzy_simplicial_set": "X n_neighbors random_state metric metric_kwds=None knn_indices=None knn_dists=None "
    "angular=False set_op_mix_ratio=1.0 local_connectivity=1.0 apply_set_operations=True verbose=False "
    "return_dists=None",
    "simplicial_set_embedding": "data graph n_components initial_alpha a b gamma negative_sample_rate n_epochs init "
    "random_state metric metric_kwds densmap densmap_kwds output_dens output_metric='euclidean' "
    "output_metric_kwds=None euclidean_output=True parallel=False verbose=False tqdm_kwds=None",
    "find_ab_params": "spread min_dist",
    "general_simplicial_set_intersection": "simplicial_set1 simplicial_set2 weight=0.5 right_complement=False",
    "general_simplicial_set_union": "simplicial_set1 simplicial_set2",
    "reset_local_connectivity": "simplicial_set reset_local_metric=False",
    "make_epochs_per_sample": "weights n_epochs",
    "discrete_metric_simplicial_set_intersection": "simplicial_set discrete_space unknown_dist=1.0 far_dist=5.0 "
    "metric=None metric_kws=None metric_scale=1.0",
}


@pytest.fixture(scope="module")
def file(golden: Any) -> dict[str, NDArray[Any]]:
    return golden("functions")


def close(actual: Any, expected: NDArray[Any], rtol: float = 2e-5) -> None:
    np.testing.assert_allclose(actual.toarray(), expected, rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_equal_those_of_umap_learn(name: str) -> None:
    parameters = inspect.signature(getattr(functions, name)).parameters.values()
    found = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in parameters]
    assert found == SIGNATURES[name].split()
    assert getattr(umap_, name) is getattr(functions, name)


def test_names_can_be_imported_as_in_umap_learn() -> None:
    assert vicinal.umap_.UMAP is vicinal.UMAP
    assert set(functions.__all__) == set(SIGNATURES)
    assert not hasattr(vicinal, "nearest_neighbors")


def test_smooth_knn_dist_returns_golden_values(golden: Any, file: dict[str, NDArray[Any]]) -> None:
    distance = golden("iris")["distance"]
    for k, sigma, rho in zip(file["sizes"], file["sigma"], file["rho"], strict=True):
        actual = functions.smooth_knn_dist(distance, k, local_connectivity=1.3, bandwidth=0.8)
        np.testing.assert_allclose(actual[0], sigma, rtol=2e-4, atol=1e-6)
        np.testing.assert_allclose(actual[1], rho, rtol=1e-6, atol=1e-7)


def test_compute_membership_strengths_returns_golden_values(golden: Any, file: dict[str, NDArray[Any]]) -> None:
    iris = golden("iris")
    index = iris["index"].astype(np.int64)
    index[3, -3:] = -1
    kept = index.copy()
    actual = functions.compute_membership_strengths(index, iris["distance"], file["sigma"][1], file["rho"][1], True)
    for one, name in zip(actual[:2], ("rows", "cols"), strict=True):
        np.testing.assert_array_equal(one, file[name])
        assert one.dtype == np.int32
    np.testing.assert_allclose(actual[2], file["vals"], rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(actual[3], file["dists"])
    np.testing.assert_array_equal(index, kept)


@pytest.mark.parametrize("w", range(5))
def test_intersection_returns_golden_values(file: dict[str, NDArray[Any]], w: int) -> None:
    left, right = csr_matrix(file["left"]), csr_matrix(file["right"])
    weight = float(file["weight"][w])
    actual = functions.general_simplicial_set_intersection(left, right, weight)
    assert isspmatrix_coo(actual)
    close(actual, file["intersection"][w])
    without = functions.general_simplicial_set_intersection(left, right, weight, right_complement=True)
    close(without, file["difference"][w])
    np.testing.assert_array_equal(left.toarray(), file["left"])
    np.testing.assert_array_equal(right.toarray(), file["right"])


def test_union_returns_golden_values(file: dict[str, NDArray[Any]]) -> None:
    for kind in (csr_matrix, coo_matrix):
        actual = functions.general_simplicial_set_union(kind(file["left"]), kind(file["right"]))
        assert isspmatrix_coo(actual)
        close(actual, file["union"])


def test_reset_local_connectivity_returns_golden_values(file: dict[str, NDArray[Any]]) -> None:
    joined = coo_matrix(file["intersection"][1])
    actual = functions.reset_local_connectivity(joined)
    assert isspmatrix_csr(actual)
    close(actual, file["reset"])
    np.testing.assert_allclose(actual.max(axis=1).toarray(), 1.0, rtol=1e-6)
    # Both bisections stop within 1e-5 of the sum, at different powers.
    close(functions.reset_local_connectivity(joined, reset_local_metric=True), file["reset_metric"], rtol=1e-3)
    np.testing.assert_array_equal(joined.toarray(), file["intersection"][1])


def test_reset_of_an_empty_row_is_finite() -> None:
    matrix = csr_matrix(np.diag([0.5, 0.25], 1).astype(np.float32)[:, [1, 2, 0]])
    for metric in (False, True):
        assert np.isfinite(functions.reset_local_connectivity(matrix, metric).toarray()).all()


def test_intersection_with_classes_returns_golden_values(file: dict[str, NDArray[Any]]) -> None:
    left = csr_matrix(file["left"])
    close(functions.discrete_metric_simplicial_set_intersection(left, file["labels"], 0.7, 3.0), file["classes"])
    np.testing.assert_array_equal(left.toarray(), file["left"])


def test_intersection_by_a_metric_fades_edges_by_the_distance_of_their_labels(file: dict[str, NDArray[Any]]) -> None:
    graph, labels = csr_matrix(file["left"]), np.arange(len(file["left"]), dtype=np.float32) % 5
    edges = graph.tocoo()
    apart = np.abs(labels[edges.row] - labels[edges.col])
    steps = np.array([0.0, 1.0, 2.0, 3.0 + np.log(2), 4.0 + np.log(12)])[labels.astype(int)]
    expected = {
        ("ordinal", (("support_size", 4.0),)): apart / 4.0,
        ("categorical", ()): apart > 0,
        # The improbabilities of a Poisson distribution with mean 1 are 1 for 0 and 1, 1 + log 2 for 2.
        ("count", (("normalization", -2.0),)): np.abs(steps[edges.row] - steps[edges.col]) / 2,
        ("manhattan", ()): apart,
        (lambda x, y: 3 * abs(float(x[0] - y[0])), ()): 3 * apart,
    }
    for (metric, keywords), distance in expected.items():
        faded = coo_matrix((edges.data * np.exp(-0.5 * distance), (edges.row, edges.col)), shape=edges.shape)
        actual = functions.discrete_metric_simplicial_set_intersection(
            graph, labels, metric=metric, metric_kws=dict(keywords), metric_scale=0.5
        )
        close(actual, functions.reset_local_connectivity(faded).toarray(), rtol=1e-4)
    with pytest.raises(ValueError, match="metric must be one of"):
        functions.discrete_metric_simplicial_set_intersection(graph, labels, metric="nowhere")


def test_intersection_by_texts_fades_edges_by_the_number_of_edits(file: dict[str, NDArray[Any]]) -> None:
    graph = csr_matrix(file["left"])
    labels = np.array(["ape", "apes", "grape", ""])[np.arange(graph.shape[0]) % 4]
    edits = np.array([[0, 1, 2, 3], [1, 0, 3, 4], [2, 3, 0, 5], [3, 4, 5, 0]])
    edges = graph.tocoo()
    apart = np.minimum(edits[edges.row % 4, edges.col % 4], 4.0) / 2.0
    faded = coo_matrix((edges.data * np.exp(-0.5 * apart), (edges.row, edges.col)), shape=edges.shape)
    actual = functions.discrete_metric_simplicial_set_intersection(
        graph, labels, metric="string", metric_kws={"normalization": 2.0, "max_dist": 4.0}, metric_scale=0.5
    )
    close(actual, functions.reset_local_connectivity(faded).toarray(), rtol=1e-4)


def test_make_epochs_per_sample_is_inverse_to_the_weight() -> None:
    np.testing.assert_allclose(functions.make_epochs_per_sample(np.array([1.0, 0.25, 0.0, 0.5]), 200), [1, 4, -1, 2])
    np.testing.assert_array_equal(functions.make_epochs_per_sample(np.zeros(2), 10), [-1, -1])


def test_fuzzy_simplicial_set_returns_golden_values(golden: Any, file: dict[str, NDArray[Any]]) -> None:
    rows = golden("iris")["data"][:60]
    index, distance = reference.exact_neighbors(rows, 8)
    given = {"knn_indices": index, "knn_dists": distance}
    directed, sigmas, rhos, edges = functions.fuzzy_simplicial_set(
        rows, 6, np.random.RandomState(0), "euclidean", **given, apply_set_operations=False, return_dists=True
    )
    assert isspmatrix_coo(directed)
    assert isspmatrix_dok(edges)
    np.testing.assert_allclose(directed.toarray(), file["directed"], atol=1e-5)
    close(edges, file["edge_distance"])
    graph, *scales, nothing = functions.fuzzy_simplicial_set(rows, 6, 0, "euclidean", **given, return_dists=False)
    assert nothing is None
    assert isspmatrix_csr(graph)
    p = file["directed"]
    np.testing.assert_allclose(graph.toarray(), p + p.T - p * p.T, atol=1e-5)
    np.testing.assert_array_equal(scales, [sigmas, rhos])


def test_fuzzy_simplicial_set_searches_neighbors_if_none_are_given(golden: Any) -> None:
    rows = golden("iris")["data"]
    found = functions.fuzzy_simplicial_set(rows, 15, np.random.RandomState(0), "euclidean")
    table = functions.nearest_neighbors(rows, 15, "euclidean", None, False, 3)
    given = functions.fuzzy_simplicial_set(rows, 15, 0, "euclidean", knn_indices=table[0], knn_dists=table[1])
    assert len(found) == 3
    assert (found[0] != given[0]).nnz == 0
    with pytest.raises(ValueError, match="knn_indices"):
        functions.fuzzy_simplicial_set(rows[:20], 15, 0, "euclidean", knn_indices=table[0], knn_dists=table[1])


def test_nearest_neighbors_accepts_all_kinds_of_input(iris: NDArray[np.float32]) -> None:
    from scipy.spatial.distance import cdist

    expected = functions.nearest_neighbors(iris, 10, "minkowski", {"p": 3.0}, False, 0)
    for rows, metric, kwds in (
        (csr_matrix(iris), "minkowski", {"p": 3.0}),
        (cdist(iris, iris, "minkowski", p=3.0), "precomputed", {}),
    ):
        index, distance, nothing = functions.nearest_neighbors(rows, 10, metric, kwds, False, 0)
        assert nothing is None
        np.testing.assert_allclose(distance, expected[1], atol=1e-4)
        assert (index[:, 0] == np.arange(150)).all()


def test_find_ab_params_returns_golden_values(golden: Any) -> None:
    kernel = golden("kernel")
    for spread, min_dist, a, b in zip(*(kernel[k] for k in ("spread", "min_dist", "a", "b")), strict=True):
        assert functions.find_ab_params(spread, min_dist) == pytest.approx((a, b), rel=1e-4)


def embed(rows: NDArray[np.float32], **changes: Any) -> tuple[NDArray[np.float32], dict[str, Any]]:
    graph, _, _ = functions.fuzzy_simplicial_set(rows, 15, 0, "euclidean")
    a, b = functions.find_ab_params(1.0, 0.1)
    arguments = {
        "data": rows, "graph": graph, "n_components": 2, "initial_alpha": 1.0, "a": a, "b": b, "gamma": 1.0,
        "negative_sample_rate": 5, "n_epochs": 200, "init": "spectral", "random_state": np.random.RandomState(5),
        "metric": "euclidean", "metric_kwds": {}, "densmap": False, "densmap_kwds": {}, "output_dens": False,
    }  # fmt: skip
    return functions.simplicial_set_embedding(**arguments | changes)


def test_simplicial_set_embedding_keeps_neighbors(iris: NDArray[np.float32]) -> None:
    from vicinal.quality.measures import trustworthiness

    places, aux = embed(iris)
    assert aux == {}
    assert places.shape == (150, 2)
    assert places.dtype == np.float32
    assert trustworthiness(iris, places) > 0.95
    np.testing.assert_array_equal(places, embed(iris, parallel=True)[0])


def test_simplicial_set_embedding_matches_densities(digits: NDArray[np.float32]) -> None:
    rows = digits[:400]
    graph, _, _, distances = functions.fuzzy_simplicial_set(rows, 15, 0, "euclidean", return_dists=True)
    keywords = {"lambda": 2.0, "frac": 0.3, "var_shift": 0.1, "n_neighbors": 15, "graph_dists": distances}

    def correlation(densmap: bool) -> float:
        arguments = {"graph": graph, "densmap": densmap, "densmap_kwds": keywords, "output_dens": True}
        _, aux = embed(rows, n_epochs=200, **arguments)
        assert aux["rad_orig"].shape == aux["rad_emb"].shape == (len(rows),)
        return float(np.corrcoef(aux["rad_orig"], aux["rad_emb"])[0, 1])

    assert correlation(densmap=True) > correlation(densmap=False) + 0.1


@pytest.mark.parametrize("init", ["random", "pca", "tswspectral"])
def test_simplicial_set_embedding_accepts_names_of_initializations(iris: NDArray[np.float32], init: str) -> None:
    assert np.isfinite(embed(iris, init=init, n_components=3, n_epochs=20)[0]).all()
    with pytest.raises(ValueError, match="init"):
        embed(iris, init="nowhere")


def test_simplicial_set_embedding_accepts_an_output_metric(iris: NDArray[np.float32]) -> None:
    places, _ = embed(iris, euclidean_output=False, output_metric="haversine", n_epochs=50)
    assert np.isfinite(places).all()
    assert not np.array_equal(places, embed(iris, output_metric="haversine", n_epochs=50)[0])


def test_simplicial_set_embedding_returns_maps_of_listed_epochs(iris: NDArray[np.float32]) -> None:
    start = np.random.default_rng(0).normal(size=(150, 2))
    places, aux = embed(iris, n_epochs=[10, 50], init=start)
    assert len(aux["embedding_list"]) == 2
    np.testing.assert_array_equal(aux["embedding_list"][-1], places)
    np.testing.assert_array_equal(places, embed(iris, n_epochs=50, init=start, verbose=True)[0])


def test_simplicial_set_embedding_refuses_invalid_arguments(iris: NDArray[np.float32]) -> None:
    with pytest.raises(ValueError, match="output_metric"):
        embed(iris, euclidean_output=False, output_metric="nowhere")
    for name in ("densmap", "output_dens"):
        with pytest.raises(ValueError, match="densmap_kwds must have 'graph_dists'"):
            embed(iris, **{name: True})
    with pytest.raises(ValueError, match="init must have shape"):
        embed(iris, init=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="square"):
        embed(iris, graph=csr_matrix((3, 4)))
