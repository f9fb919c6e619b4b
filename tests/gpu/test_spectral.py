"""Eigenmaps on a device: as smooth as the CPU's, component by component."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import Graph, find_neighbors, fuzzy_graph, spectral_start
from vicinal.backends import backend_of
from vicinal.backends.cuda import spectral
from vicinal.initialize import spectral as eigenmap
from vicinal.initialize.spectral import Boxes, ComponentMaps, component_maps, evened


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Return the graph of three large components and two small ones."""
    rng = np.random.default_rng(0)
    sizes = (500, 40, 700, 7, 600)
    parts = [rng.normal(size=(size, 3)) + 50 * j for j, size in enumerate(sizes)]
    rows = rng.permutation(np.concatenate(parts)).astype(np.float32)
    return fuzzy_graph(find_neighbors(rows, 7))


def roughness(graph: Graph, vectors: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
    """Return the Rayleigh quotients of the normalized Laplacian for the vectors of some rows."""
    weights = graph.to_scipy().astype(np.float64)
    root = np.sqrt(np.asarray(weights.sum(axis=1)).reshape(-1))
    scaled = vectors[rows] / root[rows][:, None]
    inside = weights[rows][:, rows].tocoo()
    differences = scaled[inside.row] - scaled[inside.col]
    total = (inside.data[:, None] * differences**2).sum(axis=0) / 2
    return total / (vectors[rows].astype(np.float64) ** 2).sum(axis=0)


def test_eigenmaps_are_as_smooth_as_those_of_the_cpu(place: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigenmap, "DEVICE_ROWS", 100)
    monkeypatch.setattr(spectral, "SMALL_COMPONENT", 400)
    here, there = component_maps(graph, 2), component_maps(graph.on(place), 2)
    np.testing.assert_array_equal(here.order, there.order)
    np.testing.assert_array_equal(here.bounds, there.bounds)
    for c in range(here.count):
        rows = here.order[here.bounds[c] : here.bounds[c + 1]]
        if len(rows) < 400:  # left to the CPU
            np.testing.assert_array_equal(there.vectors[rows], here.vectors[rows])
            continue
        mine, theirs = roughness(graph, there.vectors, rows), roughness(graph, here.vectors, rows)
        assert (mine <= 1.1 * theirs + 1e-4).all()
        gram = there.vectors[rows].astype(np.float64).T @ there.vectors[rows]
        np.testing.assert_allclose(gram, np.eye(2), atol=1e-4)


def test_two_starts_have_the_same_bits(place: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eigenmap, "DEVICE_ROWS", 100)
    monkeypatch.setattr(spectral, "SMALL_COMPONENT", 400)
    starts = [spectral_start(graph.on(place), seed=3) for _ in range(2)]
    np.testing.assert_array_equal(*starts)


@pytest.mark.parametrize("turned", [True, False])
def test_maps_are_evened_and_put_in_boxes_as_on_the_cpu(
    place: Any, graph: Graph, monkeypatch: pytest.MonkeyPatch, turned: bool
) -> None:
    monkeypatch.setattr(eigenmap, "DEVICE_ROWS", 100)
    monkeypatch.setattr(spectral, "SMALL_COMPONENT", graph.n + 1)
    here, there = component_maps(graph, 2), component_maps(graph.on(place), 2)
    assert not isinstance(there, ComponentMaps)
    even_here, even_there = evened(here), evened(there)
    assert not np.array_equal(even_here.vectors, here.vectors)
    np.testing.assert_allclose(even_there.vectors, even_here.vectors, rtol=1e-6, atol=1e-7)
    rng = np.random.default_rng(0)
    turns = np.linalg.qr(rng.normal(size=(here.count, 2, 2)))[0] if turned else None
    boxes = Boxes(rng.normal(size=(here.count, 2)), rng.uniform(1, 2, here.count), turns, np.zeros(here.count, bool))
    placed = even_there.in_boxes(boxes, 0)
    assert not isinstance(placed, np.ndarray)
    np.testing.assert_allclose(placed.to_numpy(), even_here.in_boxes(boxes, 0), rtol=1e-5, atol=1e-5)


def test_small_graphs_start_on_the_cpu(place: Any, graph: Graph) -> None:
    np.testing.assert_array_equal(spectral_start(graph.on(place), seed=3), spectral_start(graph, seed=3))


def test_many_components_are_left_to_the_cpu(place: Any) -> None:
    assert backend_of(place).MOST_MAP_AXES == 4


def test_a_sheet_starts_in_its_proportions_as_on_the_cpu(place: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    sheet = np.stack([rng.uniform(0, 25, 4000), rng.uniform(0, 10, 4000)], axis=1)
    rows = np.stack([8 * np.sin(sheet[:, 0] / 8), 8 * np.cos(sheet[:, 0] / 8), sheet[:, 1]], axis=1).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(rows, 15))
    monkeypatch.setattr(eigenmap, "DEVICE_ROWS", 100)
    here, there = spectral_start(graph, rows), spectral_start(graph.on(place), rows)
    np.testing.assert_allclose(np.ptp(there, axis=0), np.ptp(here, axis=0), rtol=1e-4)
    assert np.ptp(there[:, 0]) > 2 * np.ptp(there[:, 1])
    for axis in range(2):
        assert abs(np.corrcoef(there[:, axis], here[:, axis])[0, 1]) > 0.9
    two = np.concatenate([rows, rows + 100])
    places = spectral_start(fuzzy_graph(find_neighbors(two, 15)).on(place), two)
    for part in (places[:4000], places[4000:]):
        lengths = np.linalg.svd(part - part.mean(axis=0), compute_uv=False)
        assert lengths[0] > 2 * lengths[1]
