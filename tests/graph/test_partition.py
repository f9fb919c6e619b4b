"""A graph in parts has the edges of the whole graph."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from vicinal import Graph, Neighbors, find_neighbors, fuzzy_graph
from vicinal.graph.partition import (
    EdgeList,
    directed_part,
    joined_part,
    labelled_part,
    reconnected_part,
    sorted_by_tail,
)
from vicinal.graph.supervision import class_codes, intersect_labels

BOUNDS = [0, 100, 350, 500]


def in_parts(table: Neighbors, mix: float) -> list[Graph]:
    spans = list(pairwise(BOUNDS))
    directed = [directed_part(Neighbors(table.index[a:b], table.distance[a:b]), a, table.n) for a, b in spans]
    lists = [sorted_by_tail(part, a) for part, (a, _) in zip(directed, spans, strict=True)]
    joined = []
    for part, (a, b) in zip(directed, spans, strict=True):
        incoming = []
        for edges in lists:
            mine = (edges.tail >= a) & (edges.tail < b)
            incoming.append(EdgeList(edges.head[mine], edges.tail[mine], edges.membership[mine]))
        joined.append(joined_part(part, a, incoming, mix))
    return joined


def assert_same(parts: list[Graph], whole: Graph) -> None:
    np.testing.assert_array_equal(np.concatenate([np.diff(part.indptr) for part in parts]), np.diff(whole.indptr))
    for name in ("indices", "weights", "rho", "sigma"):
        np.testing.assert_array_equal(np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name))


@pytest.mark.parametrize("mix", [1.0, 0.3, 0.0])
def test_parts_equal_the_whole_graph(grouped: Any, mix: float) -> None:
    table = find_neighbors(grouped(500, 5), 8)
    assert_same(in_parts(table, mix), fuzzy_graph(table, set_op_mix_ratio=mix))


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_labels_act_on_parts_as_on_the_whole(grouped: Any, weight: float) -> None:
    table = find_neighbors(grouped(500, 5), 8)
    labels = np.random.default_rng(0).integers(-1, 4, size=500)
    codes = class_codes(labels)
    marked = [labelled_part(part, a, codes, weight) for part, a in zip(in_parts(table, 1.0), BOUNDS, strict=False)]
    strongest = np.concatenate([one[1] for one in marked])
    parts = [reconnected_part(part, a, strongest) for (part, _), a in zip(marked, BOUNDS, strict=False)]
    assert_same(parts, intersect_labels(fuzzy_graph(table), labels, weight))
