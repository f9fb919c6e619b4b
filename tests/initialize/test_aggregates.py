"""Aggregates of rows: which rows they join, their graph, and the way back to the rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from vicinal import Graph, find_neighbors, fuzzy_graph
from vicinal.backends import cpu
from vicinal.initialize.aggregates import ROUNDS, Aggregates

N = 1_500


@pytest.fixture
def graph(global_random_seed: int) -> Graph:
    rows = np.random.default_rng(global_random_seed).normal(size=(N, 4)).astype(np.float32)
    rows[: N // 2] += 50.0
    return fuzzy_graph(find_neighbors(rows, 10))


def test_aggregates_have_similar_masses_and_stay_in_their_component(graph: Graph) -> None:
    found = Aggregates.of(graph)
    np.testing.assert_array_equal(found.mass, np.bincount(found.group))
    assert N / 20 < len(found.mass) < N / 5
    assert found.mass.max() < 6 * np.median(found.mass)
    component = connected_components(graph.to_scipy())[1]
    first = np.unique(found.group, return_index=True)[1]
    np.testing.assert_array_equal(component[first][found.group], component)


def test_weights_between_aggregates_are_those_of_their_rows(graph: Graph) -> None:
    found = Aggregates.of(graph)
    dense, member = graph.to_scipy().toarray(), np.eye(len(found.mass))[found.group]
    sums = member.T @ dense.astype(np.float64) @ member
    np.fill_diagonal(sums, 0.0)
    expected = sums / np.sqrt(np.outer(found.mass, found.mass))
    np.testing.assert_allclose(found.graph.to_scipy().toarray(), expected, rtol=1e-5)
    assert found.repulsion * found.graph.degree().mean() == pytest.approx(graph.degree().mean(), rel=1e-6)


def test_aggregates_have_the_same_bits_for_any_number_of_threads(graph: Graph) -> None:
    one, three = (cpu.aggregate_rows(*graph.edges, ROUNDS, jobs) for jobs in (1, 3))
    for a, b in zip((*one[:2], *one[2]), (*three[:2], *three[2]), strict=True):
        np.testing.assert_array_equal(a, b)
    places = np.random.default_rng(0).normal(size=(N, 3)).astype(np.float32)
    means = [cpu.neighbor_means(*graph.edges, places, jobs) for jobs in (1, 3)]
    np.testing.assert_array_equal(*means)
    dense = graph.to_scipy().toarray().astype(np.float64)
    np.testing.assert_allclose(means[0], dense @ places / dense.sum(axis=1, keepdims=True), atol=1e-5)


def test_lifted_rows_lie_near_their_aggregates(graph: Graph) -> None:
    found = Aggregates.of(graph)
    places = np.where(np.arange(N)[:, None] < N // 2, [[0.0, 0.0]], [[9.0, 3.0]]).astype(np.float32)
    np.testing.assert_allclose(found.lifted(found.means(places), graph, seed=0), places, atol=0.02)


def test_rows_without_edges_are_their_own_aggregates_and_keep_their_places() -> None:
    alone = Graph.without_edges(5)
    group, mass, (indptr, indices, _) = cpu.aggregate_rows(*alone.edges, ROUNDS, 1)
    np.testing.assert_array_equal(group, np.arange(5))
    np.testing.assert_array_equal(mass, np.ones(5))
    assert indptr[-1] == len(indices) == 0
    places = np.arange(10, dtype=np.float32).reshape(5, 2)
    np.testing.assert_array_equal(cpu.neighbor_means(*alone.edges, places, 1), places)
