"""The eigenmap compared with dense eigenvectors and known solutions; its budget of products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from vicinal import Graph, find_neighbors, fuzzy_graph
from vicinal.backends import _core
from vicinal.initialize import eigenmap as spectral
from vicinal.initialize.eigenmap import eigenmap


def ring(n: int) -> Graph:
    rows = np.arange(n)
    indices = np.sort(np.stack([(rows - 1) % n, (rows + 1) % n], axis=1), axis=1)
    zeros = np.zeros(n, dtype=np.float32)
    weights = np.ones(2 * n, dtype=np.float32)
    return Graph(np.arange(0, 2 * n + 1, 2), indices.reshape(-1).astype(np.int32), weights, n, zeros, zeros)


def normalised(graph: Graph) -> NDArray[np.float64]:
    matrix = graph.to_scipy().toarray().astype(np.float64)
    root = 1.0 / np.sqrt(matrix.sum(axis=1))
    return matrix * root[:, None] * root[None, :]


def roughness(graph: Graph, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Rayleigh quotients of I - M on the span of the vectors, ascending; smooth vectors have small ones."""
    q, _ = np.linalg.qr(vectors)
    return np.sort(np.linalg.eigvalsh(q.T @ (np.eye(graph.n) - normalised(graph)) @ q))


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_small_graphs_have_exact_eigenvectors(iris: NDArray[np.float32], n_components: int) -> None:
    graph = fuzzy_graph(find_neighbors(iris, 60))
    vectors = eigenmap(graph, n_components)
    true = np.sort(1.0 - np.linalg.eigvalsh(normalised(graph)))[1 : n_components + 1]
    np.testing.assert_allclose(roughness(graph, vectors), true, atol=1e-9)


@pytest.mark.parametrize("n_components", [2, 6])
def test_filtered_vectors_are_nearly_as_smooth_as_eigenvectors(grouped: Any, n_components: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(500, 3)).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(X, 15))
    vectors = eigenmap(graph, n_components)
    true = np.sort(1.0 - np.linalg.eigvalsh(normalised(graph)))[1 : n_components + 1]
    assert vectors.shape == (500, n_components)
    assert (roughness(graph, vectors) <= 1.5 * true + 1e-3).all()


def test_eigenmap_of_a_ring_is_a_circle() -> None:
    vectors = eigenmap(ring(60), 2)
    radius = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(radius, radius.mean(), rtol=1e-6)


def test_vectors_are_orthogonal_to_the_constant_one(digits: NDArray[np.float32]) -> None:
    graph = fuzzy_graph(find_neighbors(digits[:800], 15))
    trivial = np.sqrt(graph.degree())
    vectors = eigenmap(graph, 3)
    assert np.abs(trivial @ vectors / np.linalg.norm(trivial)).max() < 1e-6


@pytest.mark.parametrize("n", [100, 900])
def test_result_depends_on_the_seed_and_not_on_n_jobs(grouped: Any, n: int) -> None:
    graph = fuzzy_graph(find_neighbors(np.random.default_rng(0).uniform(size=(n, 3)), 12))
    one = eigenmap(graph, 2, seed=3, n_jobs=1)
    np.testing.assert_array_equal(eigenmap(graph, 2, seed=3, n_jobs=4), one)


def test_budget_limits_the_number_of_filters(monkeypatch: pytest.MonkeyPatch) -> None:
    """The eigenvalues of a long ring are too close for the iteration to converge."""
    calls = []
    inner = spectral._filter

    def counted(*arguments: Any) -> NDArray[np.float64]:
        calls.append(arguments[3])
        return inner(*arguments)

    monkeypatch.setattr(spectral, "_filter", counted)
    vectors = eigenmap(ring(5000), 2)
    budget = spectral.Budget()
    assert sum(calls) <= budget.filters * (budget.degree + 1)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("degree", [1, 2, 5, 12])
@pytest.mark.parametrize("cut", [-0.5, 0.2, 0.9, 1.0])
def test_filter_is_the_chebyshev_polynomial(iris: NDArray[np.float32], degree: int, cut: float) -> None:
    graph = fuzzy_graph(find_neighbors(iris, 10))
    matrix = normalised(graph)
    scaled = graph.with_weights(csr_matrix(matrix))
    block = np.random.default_rng(0).normal(size=(150, 8)).astype(np.float32)
    actual = _core.chebyshev_filter(scaled.indptr, scaled.indices, scaled.weights, block, cut, degree, 2)
    values, vectors = np.linalg.eigh(matrix)
    mapped = (values - (cut - 1.0) / 2.0) / ((cut + 1.0) / 2.0)
    gain = np.polynomial.chebyshev.chebval(mapped, [0.0] * degree + [1.0])
    expected = vectors @ (gain[:, None] * (vectors.T @ block))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=2e-4 * np.abs(expected).max())


def sheet(n: int) -> Graph:
    X = np.random.default_rng(1).uniform(size=(n, 2)) * [3.0, 1.0]
    return fuzzy_graph(find_neighbors(X.astype(np.float32), 12))


def test_groups_are_connected_and_keep_the_total_weight() -> None:
    graph = sheet(3000)
    group, (indptr, indices, weights) = _core.coarsen(graph.indptr, graph.indices, graph.weights, 2)
    groups = len(indptr) - 1
    assert group.shape == (3000,)
    np.testing.assert_array_equal(np.unique(group), np.arange(groups))
    assert groups < 3000 / 4
    member = csr_matrix((np.ones(3000), (np.arange(3000), group)), shape=(3000, groups))
    wanted = (member.T @ graph.to_scipy().astype(np.float64) @ member).toarray()
    given = csr_matrix((weights, indices, indptr), shape=(groups, groups)).toarray()
    np.testing.assert_allclose(given, wanted, rtol=1e-6)
    for g in range(0, groups, 17):
        inside = graph.to_scipy()[group == g][:, group == g]
        assert connected_components(inside, directed=False)[0] == 1


def test_rows_without_edges_are_groups_of_one() -> None:
    group, (indptr, indices, _) = _core.coarsen(
        np.zeros(5, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), 2
    )
    np.testing.assert_array_equal(group, np.arange(4))
    assert len(indptr) == 5
    assert len(indices) == 0


def test_large_graph_starts_from_a_coarser_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vectors are as smooth with fewer products of the whole matrix."""
    graph = sheet(spectral.COARSE_ROWS + 1000)
    inner, sizes = spectral._filter, []

    def counted(matrix: Graph, *others: Any) -> NDArray[np.float64]:
        sizes.append(matrix.n)
        return inner(matrix, *others)

    monkeypatch.setattr(spectral, "_filter", counted)
    vectors = eigenmap(graph, 2)
    products = sizes.count(graph.n)
    assert min(sizes) < graph.n / 4
    np.testing.assert_array_equal(eigenmap(graph, 2, n_jobs=1), vectors)
    sizes.clear()
    monkeypatch.setattr(spectral, "COARSE_ROWS", graph.n)
    alone = eigenmap(graph, 2)
    assert products < sizes.count(graph.n)
    root = 1.0 / np.sqrt(graph.degree())
    matrix = graph.to_scipy().astype(np.float64).multiply(root[:, None]).multiply(root[None, :]).tocsr()
    rough = [1.0 - np.linalg.eigvalsh(q.T @ (matrix @ q)) for q in (np.linalg.qr(v)[0] for v in (vectors, alone))]
    assert (rough[0] <= 1.1 * rough[1] + 1e-6).all()
