"""A graph in parts has the edges of the whole graph."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from vicinal import Graph, Neighbors, entropic_graph, find_neighbors, fuzzy_graph
from vicinal.backends import cpu
from vicinal.graph.entropic import weight_units
from vicinal.graph.partition import (
    EdgeList,
    add_distances,
    distances_of_part,
    labeled_part,
    reconnected_part,
    sorted_by_tail,
    table_part,
)
from vicinal.graph.supervision import class_codes, intersect_labels
from vicinal.layout.density import edge_distances
from vicinal.pipeline.recipe import EntropicAffinity, FuzzyAffinity

BOUNDS = [0, 100, 350, 500]
SPANS = list(pairwise(BOUNDS))


def lines_of(table: Neighbors) -> list[Neighbors]:
    return [Neighbors(table.index[a:b], table.distance[a:b]) for a, b in SPANS]


def exchanged(parts: list[Graph]) -> list[EdgeList]:
    """Return the edges that lead to each part."""
    lists = [sorted_by_tail(part, a) for part, (a, _) in zip(parts, SPANS, strict=True)]
    head, tail, value = (np.concatenate([getattr(one, name) for one in lists]) for name in ("head", "tail", "value"))
    inside = [(tail >= a) & (tail < b) for a, b in SPANS]
    return [EdgeList(head[mine], tail[mine], value[mine]) for mine in inside]


def in_parts(table: Neighbors, affinity: FuzzyAffinity | EntropicAffinity) -> list[Graph]:
    lines, summed = lines_of(table), (0.0, 0)
    for one in lines:
        summed = add_distances(summed, one.distance)
    mean = summed[0] / summed[1]
    directed = [affinity.directed_part(one, a, table.n, mean, 1) for one, (a, _) in zip(lines, SPANS, strict=True)]
    joined = [
        affinity.joined_part(part, a, incoming, 1)
        for part, (a, _), incoming in zip(directed, SPANS, exchanged(directed), strict=True)
    ]
    total = affinity.divisor(sum(weight_units(part.weights) for part in joined))
    return [replace(part, weights=cpu.divide_weights(part.weights, total)) for part in joined]


def assert_same(parts: list[Graph], whole: Graph) -> None:
    np.testing.assert_array_equal(np.concatenate([np.diff(part.indptr) for part in parts]), np.diff(whole.indptr))
    for name in ("indices", "weights", "rho", "sigma"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


@pytest.mark.parametrize("mix", [1.0, 0.3, 0.0])
def test_parts_equal_the_whole_graph(grouped: Any, mix: float) -> None:
    table = find_neighbors(grouped(500, 5), 8)
    assert_same(in_parts(table, FuzzyAffinity(set_op_mix_ratio=mix)), fuzzy_graph(table, set_op_mix_ratio=mix))


@pytest.mark.parametrize("local_connectivity", [0.0, 1.0, 2.5])
def test_rows_of_equal_neighbors_have_the_sigma_of_the_whole_table(grouped: Any, local_connectivity: float) -> None:
    rows = grouped(500, 5)
    rows[[5, 77, 120, 130, 290, 300, 310, 340, 345, 400]] = rows[5]  # more than a row has neighbors
    table = find_neighbors(rows, 8)
    parts = in_parts(table, FuzzyAffinity(local_connectivity=local_connectivity))
    assert_same(parts, fuzzy_graph(table, local_connectivity=local_connectivity))


@pytest.mark.parametrize("normalized", [False, True])
def test_entropic_parts_equal_the_whole_graph(grouped: Any, normalized: bool) -> None:
    table = find_neighbors(grouped(500, 5), 16).within(1.5)  # some rows have few neighbors
    whole = entropic_graph(table, 5.0, normalized=normalized)
    assert_same(in_parts(table, EntropicAffinity(5.0, normalized)), whole)


def test_distances_of_edges_in_parts(grouped: Any) -> None:
    table = find_neighbors(grouped(500, 5), 8)
    whole, merged = fuzzy_graph(table), fuzzy_graph(find_neighbors(grouped(500, 5), 9))
    lines = [table_part(one, a, 500) for one, (a, _) in zip(lines_of(table), SPANS, strict=True)]
    for graph in (whole, merged):  # some edges of the other graph are not in the table
        found = []
        for (a, b), own, incoming in zip(SPANS, lines, exchanged(lines), strict=True):
            edges = slice(graph.indptr[a], graph.indptr[b])
            indptr = graph.indptr[a : b + 1] - graph.indptr[a]
            part = Graph(indptr, graph.indices[edges], graph.weights[edges], 500, graph.rho[a:b], graph.sigma[a:b])
            found.append(distances_of_part(part, a, own, incoming))
        np.testing.assert_array_equal(np.concatenate(found), edge_distances(graph, table))


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_labels_act_on_parts_as_on_the_whole(grouped: Any, weight: float) -> None:
    table = find_neighbors(grouped(500, 5), 8)
    labels = np.random.default_rng(0).integers(-1, 4, size=500)
    codes = class_codes(labels)
    marked = [
        labeled_part(part, a, codes, weight) for part, a in zip(in_parts(table, FuzzyAffinity()), BOUNDS, strict=False)
    ]
    strongest = np.concatenate([one[1] for one in marked])
    parts = [reconnected_part(part, a, strongest) for (part, _), a in zip(marked, BOUNDS, strict=False)]
    assert_same(parts, intersect_labels(fuzzy_graph(table), labels, weight))
