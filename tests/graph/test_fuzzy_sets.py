"""The laws of fuzzy sets of edges (survey section 3): union, intersection, local metrics, cross-entropy."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
import pytest
import reference
import reference.losses as reference_losses
from hypothesis import given, settings
from hypothesis import strategies as st
from measured import assert_equation
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal import Kernel, find_neighbors, fuzzy_graph, losses
from vicinal.graph.fuzzy_sets import fuzzy_cross_entropy, fuzzy_intersection, fuzzy_union, local_metric
from vicinal.graph.graph import Graph

common = settings(deadline=None, max_examples=60, derandomize=True)
TOLERANCE = 5e-7  # memberships are float32


def graph_of(p: NDArray[np.float64]) -> Graph:
    n = len(p)
    nothing = np.zeros(n, dtype=np.float32)
    empty = Graph(np.zeros(n + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32), n, nothing, nothing)
    return empty.with_weights(csr_matrix(p))


def dense(graph: Graph) -> NDArray[np.float64]:
    return graph.to_scipy().toarray().astype(np.float64)


@st.composite
def fuzzy_sets(draw: Any, count: int) -> list[Graph]:
    """Draw fuzzy sets over the same pairs, with memberships 0, 1 and between."""
    n = draw(st.integers(1, 9))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = []
    for _ in range(count):
        p = rng.uniform(size=(n, n)).astype(np.float32).astype(np.float64)
        p = np.select([rng.uniform(size=(n, n)) < draw(st.floats(0, 1)), rng.uniform(size=(n, n)) < 0.2], [0.0, 1.0], p)
        p = np.triu(p, 1)
        made.append(graph_of(p + p.T))
    return made


def complement(graph: Graph) -> Graph:
    rest = 1.0 - dense(graph)
    np.fill_diagonal(rest, 0.0)
    return graph_of(rest)


def assert_equal(left: Graph, right: Graph) -> None:
    np.testing.assert_allclose(dense(left), dense(right), rtol=0, atol=TOLERANCE)


@common
@given(fuzzy_sets(2))
def test_union_and_intersection_are_commutative(sets: list[Graph]) -> None:
    a, b = sets
    assert_equal(fuzzy_union(a, b), fuzzy_union(b, a))
    assert_equal(fuzzy_intersection(a, b), fuzzy_intersection(b, a))


@common
@given(fuzzy_sets(3))
def test_union_and_intersection_are_associative(sets: list[Graph]) -> None:
    a, b, c = sets
    assert_equal(fuzzy_union(fuzzy_union(a, b), c), fuzzy_union(a, fuzzy_union(b, c)))
    assert_equal(fuzzy_intersection(fuzzy_intersection(a, b), c), fuzzy_intersection(a, fuzzy_intersection(b, c)))


@common
@given(fuzzy_sets(2))
def test_de_morgans_laws_hold(sets: list[Graph]) -> None:
    a, b = sets
    assert_equal(complement(fuzzy_union(a, b)), fuzzy_intersection(complement(a), complement(b)))
    assert_equal(complement(fuzzy_intersection(a, b)), fuzzy_union(complement(a), complement(b)))


@common
@given(fuzzy_sets(2))
def test_intersection_is_below_and_union_above_both_sets(sets: list[Graph]) -> None:
    """Only edges with membership 0 or 1 are unchanged by the union or intersection with themselves."""
    a, b = sets
    p, q = dense(a), dense(b)
    union, intersection = dense(fuzzy_union(a, b)), dense(fuzzy_intersection(a, b))
    assert (intersection <= np.minimum(p, q) + TOLERANCE).all()
    assert (union >= np.maximum(p, q) - TOLERANCE).all()
    assert (union <= np.minimum(1.0, p + q) + TOLERANCE).all()
    twice, squared = dense(fuzzy_union(a, a)), dense(fuzzy_intersection(a, a))
    certain = (p == 0) | (p == 1)
    np.testing.assert_array_equal(twice[certain], p[certain])
    np.testing.assert_array_equal(squared[certain], p[certain])
    between = (p > 1e-3) & (p < 1 - 1e-3)
    assert (twice[between] > p[between]).all()
    assert (squared[between] < p[between]).all()


@common
@given(fuzzy_sets(1))
def test_the_empty_and_the_full_set_are_neutral_or_absorbing(sets: list[Graph]) -> None:
    (a,) = sets
    nothing, everything = graph_of(np.zeros((a.n, a.n))), graph_of(1.0 - np.eye(a.n))
    assert_equal(fuzzy_union(a, nothing), a)
    assert_equal(fuzzy_intersection(a, everything), a)
    assert_equal(fuzzy_union(a, everything), everything)
    assert_equal(fuzzy_intersection(a, nothing), nothing)


@common
@given(fuzzy_sets(2))
def test_cross_entropy_equals_the_reference_and_is_a_divergence(sets: list[Graph]) -> None:
    a, b = sets
    wanted = reference_losses.fuzzy_cross_entropy(dense(a), dense(b))
    assert_equation("17", fuzzy_cross_entropy(a, b), wanted, rtol=1e-9, atol=1e-12)
    assert fuzzy_cross_entropy(a, b) >= -1e-12
    assert fuzzy_cross_entropy(a, a) == 0.0


def test_cross_entropy_of_graph_and_map_equals_c1(iris: NDArray[np.float32]) -> None:
    """Eq. 17 with the fuzzy set of the map as the second set equals eq. 6."""
    kernel = Kernel(1.577, 0.8951)
    graph = fuzzy_graph(find_neighbors(iris, 10))
    places = np.random.default_rng(0).normal(scale=3.0, size=(len(iris), 2)).astype(np.float32)
    q = kernel(reference.squared_distances(places))
    np.fill_diagonal(q, 0.0)
    map_set = graph_of(q)
    assert fuzzy_cross_entropy(graph, map_set) == pytest.approx(
        losses.cross_entropy(graph, places, kernel).value, rel=1e-5
    )


def test_graphs_with_different_rows_or_invalid_memberships_are_rejected() -> None:
    small, large = graph_of(np.zeros((2, 2))), graph_of(np.zeros((3, 3)))
    heavy = graph_of(np.array([[0.0, 2.0], [2.0, 0.0]]))
    for operation in (fuzzy_union, fuzzy_intersection, fuzzy_cross_entropy):
        with pytest.raises(ValueError, match="must have the same rows"):
            operation(small, large)
        with pytest.raises(ValueError, match=r"\[0, 1\]"):
            operation(small, heavy)


@pytest.fixture(scope="module")
def repeated(iris: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return 28 rows, three of them twice."""
    return np.concatenate([iris[::6], iris[:18:6]])[:28]


def test_local_metrics_are_extended_pseudo_metrics(repeated: NDArray[np.float32]) -> None:
    n = len(repeated)
    table = find_neighbors(repeated, n)
    graph = fuzzy_graph(table)
    everywhere = np.sqrt(((repeated[:, None].astype(np.float64) - repeated[None]) ** 2).sum(axis=-1))
    for row in (0, 5, n - 1):
        metric = local_metric(table, row, float(graph.rho[row]))
        found = np.array([[metric(j, other) for other in range(n)] for j in range(n)])
        wanted = reference_losses.local_distances(everywhere, row, float(graph.rho[row]))
        assert_equation("16", found, wanted, atol=1e-6)
        assert (found >= 0).all()
        np.testing.assert_array_equal(found, found.T)
        assert (np.diag(found) == 0).all()
        # The triangle inequality holds for pairs that contain the row.
        assert (found[row][None, :] <= found[row][:, None] + found + 1e-9).all()


def test_the_union_of_local_fuzzy_sets_equals_the_graph(repeated: NDArray[np.float32]) -> None:
    """The fuzzy topological representation of section 3 equals the graph of eq. 1 to 4."""
    table = find_neighbors(repeated, 8)
    graph = fuzzy_graph(table)
    stars = [
        local_metric(table, row, float(graph.rho[row])).fuzzy_set(float(graph.sigma[row]), graph.n)
        for row in range(graph.n)
    ]
    np.testing.assert_allclose(dense(reduce(fuzzy_union, stars)), dense(graph), atol=1e-6)
