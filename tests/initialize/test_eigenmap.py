"""Eigenmaps of connected components compared with dense eigenvectors and known solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import block_diag
from scipy.sparse.csgraph import connected_components

from vicinal import Graph, find_neighbors, fuzzy_graph
from vicinal.backends import cpu
from vicinal.initialize.spectral import component_maps


def eigenmap(graph: Graph, n_components: int, *, seed: int = 0, n_jobs: int = -1) -> NDArray[np.float64]:
    """Return the eigenvectors of a connected graph."""
    maps = component_maps(graph, n_components, seed=seed, n_jobs=n_jobs)
    assert maps.count == 1
    return maps.vectors.astype(np.float64)


def ring(n: int) -> Graph:
    rows = np.arange(n)
    indices = np.sort(np.stack([(rows - 1) % n, (rows + 1) % n], axis=1), axis=1)
    zeros = np.zeros(n, dtype=np.float32)
    weights = np.ones(2 * n, dtype=np.float32)
    return Graph(np.arange(0, 2 * n + 1, 2), indices.reshape(-1).astype(np.int32), weights, n, zeros, zeros)


def sheet(n: int, seed: int = 1) -> Graph:
    X = np.random.default_rng(seed).uniform(size=(n, 2)) * [3.0, 1.0]
    return fuzzy_graph(find_neighbors(X.astype(np.float32), min(12, n)))


def normalized(graph: Graph) -> Any:
    root = 1.0 / np.sqrt(graph.degree())
    return graph.to_scipy().astype(np.float64).multiply(root[:, None]).multiply(root[None, :]).tocsr()


def roughness(graph: Graph, vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Rayleigh quotients of I - M on the span of the vectors, ascending; smooth vectors have small ones."""
    q, _ = np.linalg.qr(vectors)
    return np.sort(1.0 - np.linalg.eigvalsh(q.T @ (normalized(graph) @ q)))


def true_roughness(graph: Graph, n_components: int) -> NDArray[np.float64]:
    return np.sort(1.0 - np.linalg.eigvalsh(normalized(graph).toarray()))[1 : n_components + 1]


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_tiny_graphs_have_exact_eigenvectors(iris: NDArray[np.float32], n_components: int) -> None:
    graph = fuzzy_graph(find_neighbors(iris[:16], 10))
    np.testing.assert_allclose(
        roughness(graph, eigenmap(graph, n_components)), true_roughness(graph, n_components), atol=1e-6
    )


@pytest.mark.parametrize("n_components", [1, 2, 5])
def test_small_graphs_have_nearly_exact_eigenvectors(iris: NDArray[np.float32], n_components: int) -> None:
    graph = fuzzy_graph(find_neighbors(iris, 60))
    np.testing.assert_allclose(
        roughness(graph, eigenmap(graph, n_components)), true_roughness(graph, n_components), rtol=1e-3, atol=1e-6
    )


@pytest.mark.parametrize(("n", "n_components"), [(500, 2), (500, 6), (2500, 2)])
def test_filtered_vectors_are_nearly_as_smooth_as_eigenvectors(n: int, n_components: int) -> None:
    """The larger graph starts from a coarser one."""
    X = np.random.default_rng(0).uniform(size=(n, 3)).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(X, 15))
    vectors = eigenmap(graph, n_components)
    assert vectors.shape == (n, n_components)
    assert (roughness(graph, vectors) <= 1.02 * true_roughness(graph, n_components) + 1e-5).all()


def test_coarser_graphs_lead_to_vectors_of_a_long_sheet() -> None:
    """Eigenvalues of the continuous problem, 3 wide and 1 high, are in the proportion 1 : 4 : 9 : 9 + 1."""
    rough = roughness(graph := sheet(20_000), eigenmap(graph, 3))
    np.testing.assert_allclose(rough / rough[0], [1, 4, 9], rtol=0.1)


@pytest.mark.parametrize("n", [60, 700])
def test_eigenmap_of_a_ring_is_a_circle(n: int) -> None:
    vectors = eigenmap(ring(n), 2)
    radius = np.linalg.norm(vectors, axis=1)
    np.testing.assert_allclose(radius, radius.mean(), rtol=0.05)


def test_long_ring_stays_within_the_budget_of_products() -> None:
    """The eigenvalues of a long ring are too close for the iteration to converge."""
    vectors = eigenmap(ring(5000), 2)
    assert np.isfinite(vectors).all()
    assert (roughness(ring(5000), vectors) < 1e-4).all()


@pytest.mark.parametrize("n", [800, 1797])
def test_vectors_are_orthonormal_and_orthogonal_to_the_constant_one(digits: NDArray[np.float32], n: int) -> None:
    graph = fuzzy_graph(find_neighbors(digits[:n], 15))
    trivial = np.sqrt(graph.degree())
    vectors = eigenmap(graph, 3)
    assert np.abs(trivial @ vectors / np.linalg.norm(trivial)).max() < 1e-6
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-5)


def test_components_are_those_of_scipy_in_the_order_of_their_first_rows() -> None:
    rng = np.random.default_rng(4)
    n = 3000
    matrix = block_diag([ring(3).to_scipy(), ring(900).to_scipy(), ring(50).to_scipy(), sheet(n - 953).to_scipy()])
    shuffled = rng.permutation(n)
    graph = Graph.from_scipy(matrix.tocsr()[shuffled][:, shuffled])
    maps = component_maps(graph, 2)
    count, label = connected_components(graph.to_scipy(), directed=False)
    assert maps.count == count
    given = np.empty(n, dtype=np.int64)
    given[maps.order] = np.repeat(np.arange(count), maps.sizes)
    first = np.array([np.flatnonzero(given == c)[0] for c in range(count)])
    assert (np.diff(first) > 0).all()
    np.testing.assert_array_equal(label[first][given], label)


def test_boxes_hold_every_component_and_flat_axes_are_in_the_middle() -> None:
    graph = Graph.from_scipy(block_diag([ring(2).to_scipy(), ring(40).to_scipy(), np.zeros((1, 1))]).tocsr())
    boxed = component_maps(graph, 3).boxed()
    np.testing.assert_allclose(boxed[2:42].min(axis=0), -0.5)
    np.testing.assert_allclose(boxed[2:42].max(axis=0), 0.5)
    np.testing.assert_array_equal(boxed[:2, 1:], 0)  # two rows have one nontrivial vector
    np.testing.assert_array_equal(boxed[42], 0)


@pytest.mark.parametrize("sizes", [(100,), (900,), (7000,), (30, 40, 9000, 5, 1500, 2500, 2, 70)])
def test_result_has_the_same_bits_for_any_number_of_threads(sizes: tuple[int, ...]) -> None:
    graph = Graph.from_scipy(block_diag([sheet(n, n).to_scipy() for n in sizes]).tocsr())
    one = component_maps(graph, 2, seed=3, n_jobs=1)
    for n_jobs in (2, 5):
        np.testing.assert_array_equal(component_maps(graph, 2, seed=3, n_jobs=n_jobs).vectors, one.vectors)
    assert not np.array_equal(component_maps(graph, 2, seed=4).vectors, one.vectors)


@pytest.mark.parametrize(("begin", "end", "words"), [([0], [0], "empty"), ([0], [4], "range"), ([0, 1], [2], "length")])
def test_segment_means_check_their_sets(begin: list[int], end: list[int], words: str) -> None:
    rows, order = np.zeros((3, 2), np.float32), np.arange(3, dtype=np.int32)
    with pytest.raises(ValueError, match=words):
        cpu.segment_means(rows, order, np.array(begin), np.array(end), 5, 1)
    with pytest.raises(ValueError, match="no row"):
        cpu.segment_means(rows, order + 1, np.array([0]), np.array([3]), 5, 1)
