"""Intersection of a graph with labels, as in umap-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Graph, find_neighbors, fuzzy_graph
from vicinal.graph.supervision import far_distance, intersect_labels, restore_connectivity


@pytest.fixture(scope="module")
def graph(iris: NDArray[np.float32]) -> Graph:
    return fuzzy_graph(find_neighbors(iris, 10))


LABELS = np.random.default_rng(0).integers(-1, 3, size=150)


def by_definition(graph: Graph, labels: NDArray[np.int64], weight: float) -> NDArray[np.float64]:
    p = graph.to_scipy().toarray().astype(np.float64)
    unknown = (labels[:, None] == -1) | (labels[None, :] == -1)
    differ = ~unknown & (labels[:, None] != labels[None, :])
    p = p * np.where(unknown, np.exp(-1.0), np.where(differ, np.exp(-far_distance(weight)), 1.0))
    strongest = p.max(axis=1, keepdims=True)
    p = p / np.where(strongest > 0, strongest, 1.0)
    return p + p.T - p * p.T


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 0.9])
def test_intersection_equals_its_definition(graph: Graph, weight: float) -> None:
    actual = intersect_labels(graph, LABELS, weight).to_scipy().toarray()
    np.testing.assert_allclose(actual, by_definition(graph, LABELS, weight), atol=1e-6)


def test_result_is_symmetric_and_bounded_and_every_row_is_connected(graph: Graph) -> None:
    joined = intersect_labels(graph, LABELS)
    matrix = joined.to_scipy()
    assert abs(matrix - matrix.T).max() < 1e-6
    assert (joined.weights > 0).all()
    assert (joined.weights <= 1.0 + 1e-6).all()
    np.testing.assert_allclose(matrix.max(axis=1).toarray(), 1.0, rtol=1e-6)


def test_with_weight_one_there_are_no_edges_between_classes(graph: Graph) -> None:
    labels = np.arange(150) // 50
    joined = intersect_labels(graph, labels, 1.0)
    same = labels[joined.heads()] == labels[joined.indices]
    # A row whose neighbors all belong to other classes keeps its edges.
    alone = np.array([not (labels[graph.indices[s]] == labels[i]).any() for i, s in enumerate(row_slices(graph))])
    assert (same | alone[joined.heads()] | alone[joined.indices]).all()


def row_slices(graph: Graph) -> list[slice]:
    return [slice(graph.indptr[i], graph.indptr[i + 1]) for i in range(graph.n)]


def test_a_single_class_keeps_all_edges(graph: Graph) -> None:
    joined = intersect_labels(graph, np.zeros(150, dtype=int))
    expected = restore_connectivity(graph)
    np.testing.assert_array_equal(joined.weights, expected.weights)


def test_edges_of_unlabeled_rows_are_weakened_equally(graph: Graph) -> None:
    """If all rows are unlabeled, all edges have the same factor, which the restored connectivity cancels."""
    joined = intersect_labels(graph, np.full(150, -1))
    np.testing.assert_allclose(joined.weights, restore_connectivity(graph).weights, rtol=1e-5)


@pytest.mark.parametrize(
    "kind",
    [
        lambda y: y.astype(np.float64),
        lambda y: y.astype(np.int8),
        lambda y: np.where(y == 1, 1000, y),
        lambda y: y.reshape(-1, 1)[:, 0],
    ],
)
def test_result_does_not_depend_on_names_and_types_of_classes(graph: Graph, kind: object) -> None:
    expected = intersect_labels(graph, LABELS)
    actual = intersect_labels(graph, kind(LABELS))  # type: ignore[operator]
    np.testing.assert_array_equal(actual.weights, expected.weights)


def test_classes_may_be_strings(graph: Graph) -> None:
    labels = np.abs(LABELS)
    expected = intersect_labels(graph, labels)
    actual = intersect_labels(graph, np.array(["zero", "one", "two"])[labels])
    np.testing.assert_array_equal(actual.weights, expected.weights)


def test_far_distance_increases_with_the_weight() -> None:
    assert far_distance(0.0) == 2.5
    assert far_distance(0.5) == 5.0
    assert far_distance(1.0) > 1e9
