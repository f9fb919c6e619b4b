"""The arrays of a Graph, and general properties of fuzzy graphs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Graph, Neighbors, find_neighbors, fuzzy_graph
from vicinal.graph.fuzzy import bipartite_graph


@pytest.fixture(scope="module")
def neighbors(iris: NDArray[np.float32]) -> Neighbors:
    return find_neighbors(iris, 10)


def test_arrays_have_the_documented_types_and_rows_are_sorted(neighbors: Neighbors) -> None:
    graph = fuzzy_graph(neighbors)
    assert graph.indptr.dtype == np.int64
    assert graph.indices.dtype == np.int32
    assert graph.weights.dtype == graph.rho.dtype == graph.sigma.dtype == np.float32
    assert graph.n == graph.n_tails == 150
    assert graph.n_edges == graph.indptr[-1] == len(graph.indices) == len(graph.weights)
    for i in range(graph.n):
        assert (np.diff(graph.indices[graph.indptr[i] : graph.indptr[i + 1]]) > 0).all()


def test_heads_and_degrees_equal_those_of_the_matrix(neighbors: Neighbors) -> None:
    graph = fuzzy_graph(neighbors)
    matrix = graph.to_scipy()
    np.testing.assert_array_equal(graph.heads(), matrix.tocoo().row)
    np.testing.assert_allclose(graph.degree(), np.asarray(matrix.sum(axis=1)).ravel(), rtol=1e-6)


def test_the_mixture_lies_between_intersection_and_union(neighbors: Neighbors) -> None:
    union, middle, intersection = (
        fuzzy_graph(neighbors, set_op_mix_ratio=mix).to_scipy().toarray() for mix in (1.0, 0.5, 0.0)
    )
    assert (union >= middle).all()
    assert (middle >= intersection).all()
    np.testing.assert_allclose(middle, (union + intersection) / 2, atol=1e-6)


def test_every_row_has_membership_one_in_its_nearest_neighbor(neighbors: Neighbors) -> None:
    graph = fuzzy_graph(neighbors)
    strongest = graph.to_scipy().max(axis=1).toarray().ravel()
    np.testing.assert_allclose(strongest, 1.0, rtol=1e-6)


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_graph_does_not_depend_on_n_jobs(neighbors: Neighbors, n_jobs: int) -> None:
    one, other = fuzzy_graph(neighbors, n_jobs=1), fuzzy_graph(neighbors, n_jobs=n_jobs)
    for name in ("indptr", "indices", "weights", "rho", "sigma"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_with_weights_drops_zeros(neighbors: Neighbors) -> None:
    graph = fuzzy_graph(neighbors)
    matrix = graph.to_scipy()
    matrix.data[::2] = 0.0
    other = graph.with_weights(matrix)
    assert other.n_edges == np.count_nonzero(matrix.data)
    assert (other.weights > 0).all()
    assert other.rho is graph.rho
    np.testing.assert_array_equal(other.to_scipy().toarray(), matrix.toarray())


def test_missing_neighbors_have_no_edges() -> None:
    index = np.array([[0, 1, -1], [1, 0, -1], [2, -1, -1]], dtype=np.int32)
    distance = np.array([[0, 1, np.inf], [0, 1, np.inf], [0, np.inf, np.inf]], dtype=np.float32)
    graph = fuzzy_graph(Neighbors(index, distance))
    np.testing.assert_array_equal(graph.to_scipy().toarray(), [[0, 1, 0], [1, 0, 0], [0, 0, 0]])


def test_rows_of_a_bipartite_graph_do_not_depend_on_each_other() -> None:
    """One row is very near to known rows, the other far away. Neither changes the scale of the other."""
    near = np.array([[1e-6, 2e-6, 3e-6, 4e-6, 9.0]], dtype=np.float32)
    far = np.array([[1e6, 2e6, 3e6, 4e6, 5e6]], dtype=np.float32)
    index = np.arange(5, dtype=np.int32)[None, :]
    alone = bipartite_graph(Neighbors(index, near), 5)
    together = bipartite_graph(Neighbors(np.repeat(index, 2, axis=0), np.concatenate([near, far])), 5)
    np.testing.assert_array_equal(together.weights[:5], alone.weights)
    assert together.sigma[0] == alone.sigma[0]


def test_attributes_of_a_graph_cannot_be_assigned(neighbors: Neighbors) -> None:
    graph = fuzzy_graph(neighbors)
    with pytest.raises(AttributeError):
        graph.weights = graph.weights  # type: ignore[misc]
    assert isinstance(graph, Graph)
