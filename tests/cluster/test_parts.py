"""Graphs, starts and layouts in parts have the bits of the local ones."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from cluster.conftest import Rows

from vicinal import Graph, Layout, Neighbors, Schedule, find_neighbors, fit_ab
from vicinal.cluster import engine as engine_module
from vicinal.cluster.engine import Engine
from vicinal.cluster.graph import GraphParts, build_graph, joined_graph, parted_radii
from vicinal.cluster.layout import PartedLayout, places_of
from vicinal.cluster.neighbors import NeighborParts
from vicinal.cluster.rows import DaskRows
from vicinal.cluster.start import first_places
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.density import Radii, edge_distances
from vicinal.layout.forces import Forces
from vicinal.layout.sampled import SweepRule
from vicinal.pipeline.recipe import EntropicAffinity, FuzzyAffinity, Recipe, SampledPlan

BOUNDS = np.array([0, 300, 301, 1100, 1500])
AFFINITIES = [FuzzyAffinity(), FuzzyAffinity(set_op_mix_ratio=0.5), EntropicAffinity(4.0, False), EntropicAffinity(4.0)]


@pytest.fixture(scope="module")
def rows(grouped: Any) -> Rows:
    some: Rows = grouped(1500, 6)
    some[[5, 290, 305, *range(900, 912)]] = some[5]  # more equal rows than a row has neighbors
    some[[0, 20, 300, 1400]] *= 50  # far from all others
    return some


@pytest.fixture(scope="module")
def table(rows: Rows) -> Neighbors:
    return find_neighbors(rows, 12)


@pytest.fixture
def engine() -> Engine:
    return Engine.current(2)


def stored(table: Neighbors, engine: Engine) -> NeighborParts:
    parts = []
    for p, (first, stop) in enumerate(pairwise(BOUNDS.tolist())):
        arrays = {"index": table.index[first:stop], "distance": table.distance[first:stop]}
        parts.append(engine.put(f"table-{p}", arrays))
    return NeighborParts(BOUNDS, parts, None, table.k)


def assert_same(parts: GraphParts, graph: Graph, engine: Engine) -> None:
    joined = joined_graph(engine.values(parts.parts), parts.n)
    for name in ("indptr", "indices", "weights", "rho", "sigma"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(graph, name))
    assert (parts.n_edges, parts.heaviest) == (graph.n_edges, graph.weights.max())
    np.testing.assert_allclose(parts.total, graph.weights.sum(dtype=np.float64), rtol=1e-14)


@pytest.mark.parametrize("affinity", AFFINITIES, ids=repr)
@pytest.mark.parametrize("limit", [math.inf, 8.0])
def test_graph(table: Neighbors, engine: Engine, affinity: Any, limit: float) -> None:
    local = affinity.graph(table.within(limit), 1)
    parts = build_graph(stored(table, engine), affinity, engine, limit=limit)
    assert_same(parts, local, engine)
    isolated = parts.isolated(engine)
    assert isolated.any() == (limit < math.inf)
    np.testing.assert_array_equal(isolated, local.isolated())
    np.testing.assert_array_equal(parts.degree(engine), local.degree())
    weight = np.random.default_rng(0).uniform(0.5, 2, size=1500).astype(np.float32)
    assert_same(parts.weighing_tails(weight, engine), local.weighing_tails(weight), engine)
    linked = np.flatnonzero(~isolated)
    among = parts.among(linked, engine)
    assert_same(among, local.among(linked), engine)
    assert among.n == len(linked)


@pytest.mark.parametrize("limit", [math.inf, 8.0])
def test_radii(table: Neighbors, engine: Engine, limit: float) -> None:
    related = table.within(limit)
    local = FuzzyAffinity().graph(related, 1)
    expected = Radii.of(local, edge_distances(local, related))
    parts = stored(table, engine)
    found = parted_radii(build_graph(parts, FuzzyAffinity(), engine, limit=limit), parts, engine, limit=limit)
    np.testing.assert_array_equal(found.log_radius, expected.log_radius)
    assert (found.mean, found.deviation, found.floor) == (expected.mean, expected.deviation, expected.floor)


@pytest.mark.parametrize("init", ["spectral", "random"])
def test_start_of_linked_rows(rows: Rows, table: Neighbors, engine: Engine, init: str) -> None:
    local = FuzzyAffinity().graph(table.within(8.0), 1)
    linked = np.flatnonzero(~local.isolated())
    expected, used = initial_embedding(init, InitialTask(local.among(linked), rows[linked], 2, 7))
    parts = stored(table, engine)
    graph = build_graph(parts, FuzzyAffinity(), engine, limit=8.0).among(linked, engine)
    recipe = Recipe(FuzzyAffinity(), SampledPlan(Forces(fit_ab())), init=init)
    start, found = first_places(recipe, 7, graph, parts, DaskRows.of(da.from_array(rows, chunks=(400, -1))), engine)
    np.testing.assert_array_equal(all_places(start, engine), expected)
    assert found == used


def all_places(parts: list[Any], engine: Engine) -> Any:
    kept = engine.values(parts)
    return places_of(np.arange(sum(one.length("places") for one in kept), dtype=np.int32), kept)


def check_layout(table: Neighbors, engine: Engine, affinity: Any) -> None:
    """Lay out in parts and at once, with a density term and negatives by degree."""
    related = table.within(8.0)
    local = affinity.graph(related, 1)
    linked = np.flatnonzero(~local.isolated())
    term = Radii.of(local, edge_distances(local, related)).term(2.0, 0.5, 0.3).of_rows(linked)
    graph = local.among(linked)
    start = np.random.default_rng(1).uniform(0, 10, size=(graph.n, 2)).astype(np.float32)
    schedule, forces = Schedule(n_epochs=6, sweeps=3), Forces(fit_ab(), "largevis")
    options: dict[str, Any] = {"negative_weights": graph.degree() ** 0.75, "density": term}
    layout = Layout(graph, start, forces, schedule, seed=3, **options)
    layout.step(6)
    with engine.discarded_on_error():
        built = build_graph(stored(table, engine), affinity, engine, limit=8.0).among(linked, engine)
        rule = SweepRule(graph.n, 2, forces, schedule, 3, built.heaviest)
        pieces = [engine.put("start-0", {"places": start[:700]}), engine.put("start-1", {"places": start[700:]})]
        parted = PartedLayout(built, pieces, rule, engine, **options)
        for epochs in (1, 4, 1):
            parted.step(epochs)
        np.testing.assert_array_equal(all_places(parted.places, engine), layout.embedding)
        assert parted.density_summary == layout.density_summary
        assert parted.epoch == 6
        parted.close()


@pytest.mark.parametrize("affinity", AFFINITIES[1:3], ids=repr)
def test_layout(table: Neighbors, engine: Engine, affinity: Any) -> None:
    check_layout(table, engine, affinity)


@pytest.mark.parametrize("kind", ["processes", "directory", "memory"])
def test_layout_on_a_cluster(
    client: Any, table: Neighbors, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if kind != "processes":
        monkeypatch.setattr(engine_module, "LOCAL_HOSTS", ())
    with dask.config.set({"vicinal.directory": str(tmp_path) if kind == "directory" else None}):
        check_layout(table, Engine.current(1), FuzzyAffinity())
