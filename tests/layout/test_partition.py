"""A layout in parts has the bits of the whole layout."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from vicinal import Graph, Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.layout.density import Radii, edge_distances
from vicinal.layout.forces import Forces
from vicinal.layout.sampled import LayoutPart, Measured, NegativeTable, PartedDensity, SweepRule

SCHEDULE = Schedule(n_epochs=6, sweeps=3)


def part_of(graph: Graph, first: int, stop: int, rule: SweepRule) -> LayoutPart:
    indptr = graph.indptr[first : stop + 1]
    edges = slice(indptr[0], indptr[-1])
    return LayoutPart.of(first, (indptr - indptr[0], graph.indices[edges], graph.weights[edges]), rule)


@pytest.mark.parametrize("bounds", [[0, 700], [0, 1, 260, 700]])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_components", [2, 3])
def test_parts_equal_the_whole_layout(grouped: Any, bounds: list[int], weighted: bool, n_components: int) -> None:
    rows = grouped(700, 6)
    graph = fuzzy_graph(find_neighbors(rows, 10))
    rng = np.random.default_rng(1)
    start = rng.uniform(0, 10, size=(700, n_components)).astype(np.float32)
    weights = rng.uniform(0.5, 2, size=700).astype(np.float32) if weighted else None
    layout = Layout(graph, start, fit_ab(), SCHEDULE, seed=3, negative_weights=weights)
    layout.step(4)
    rule = SweepRule(700, n_components, Forces(fit_ab()), SCHEDULE, 3, float(graph.weights.max()))
    parts = [part_of(graph, first, stop, rule) for first, stop in pairwise(bounds)]
    whole, joined = LayoutPart.of(0, (graph.indptr, graph.indices, graph.weights), rule), LayoutPart.joined(parts)
    for name in ("indptr", "tails", "rate", "phase"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(whole, name))
    negatives = None if weights is None else NegativeTable.of(weights)
    places = start
    for number in range(4 * SCHEDULE.sweeps):
        places = np.concatenate([part.sweep(places, rule, number, negatives=negatives) for part in parts])
    np.testing.assert_array_equal(places, layout.embedding)


@pytest.mark.parametrize("n_components", [2, 3])
def test_density_in_parts_equals_the_whole_layout(grouped: Any, n_components: int) -> None:
    rows = grouped(700, 6)
    table = find_neighbors(rows, 10)
    graph = fuzzy_graph(table)
    start = np.random.default_rng(1).uniform(0, 10, size=(700, n_components)).astype(np.float32)
    term = Radii.of(graph, edge_distances(graph, table)).term(2.0, 0.5, 0.3)
    term.target[[3, 400]] = np.nan  # rows that the term leaves out
    schedule = Schedule(n_epochs=6, sweeps=6)
    layout = Layout(graph, start, fit_ab(), schedule, seed=3, density=term)
    layout.step(6)
    rule = SweepRule(700, n_components, Forces(fit_ab()), schedule, 3, float(graph.weights.max()))
    parts = [part_of(graph, first, stop, rule) for first, stop in pairwise([0, 1, 260, 700])]
    density = PartedDensity(term, schedule, sum(part.rates for part in parts))
    places, acted = start, []
    for number in range(6 * schedule.sweeps):
        acts = density.acts_in(number)
        acted += [number] if acts else []
        given = density.step(Measured.joined([part.measure(places, rule) for part in parts])) if acts else None
        places = np.concatenate([part.sweep(places, rule, number, density=given) for part in parts])
    assert acted == [18, 22, 26, 30, 34]
    np.testing.assert_array_equal(places, layout.embedding)
    last = Measured.joined([part.measure(places, rule) for part in parts])
    assert density.summary(last) == layout.density_summary


def test_moving_negatives_are_refused() -> None:
    with pytest.raises(ValueError, match="update_negatives"):
        SweepRule(10, 2, Forces(fit_ab()), Schedule(update_negatives=True), 0, 1.0)
