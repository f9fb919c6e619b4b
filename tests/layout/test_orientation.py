"""Components of a small map keep the direction in which they started."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr
from sklearn.datasets import load_iris

import vicinal
from vicinal.graph.graph import Graph
from vicinal.layout import surroundings as orientation
from vicinal.layout.forces import OutputSpace
from vicinal.layout.surroundings import Orientation

EUCLIDEAN = OutputSpace()


def two_rings(n: int) -> Graph:
    """A graph of two rings of n rows each."""
    one = np.arange(n)
    tails = np.concatenate([np.column_stack([(one - 1) % n, (one + 1) % n]) + first for first in (0, n)])
    indptr = np.arange(0, 4 * n + 1, 2)
    ones = np.ones(2 * n, np.float32)
    return Graph(indptr, tails.reshape(-1).astype(np.int32), np.ones(4 * n, np.float32), 2 * n, ones, ones)


def turned(places: NDArray[np.float32], angle: float) -> NDArray[np.float32]:
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    middle = places.mean(axis=0)
    return ((places - middle) @ matrix + middle).astype(np.float32)


@pytest.mark.parametrize(("first", "second"), [(0.3, -2.0), (3.1, 1.6)])
def test_turned_components_return_to_their_start(first: float, second: float) -> None:
    n = 40
    start = np.random.default_rng(0).normal(size=(2 * n, 2)).astype(np.float32)
    start[n:] += 20
    given = Orientation.of(two_rings(n), start, EUCLIDEAN)
    assert given is not None
    moved = np.concatenate([turned(start[:n], first), turned(start[n:], second)])
    np.testing.assert_allclose(given.restored(moved), start, atol=1e-4)


def test_only_directions_change() -> None:
    n, rng = 40, np.random.default_rng(1)
    start, moved = rng.normal(size=(2, 2 * n, 2)).astype(np.float32)
    given = Orientation.of(two_rings(n), start, EUCLIDEAN)
    assert given is not None
    back = given.restored(moved)
    for part in (slice(n), slice(n, None)):
        np.testing.assert_allclose(back[part].mean(axis=0), moved[part].mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(pdist(back[part]), pdist(moved[part]), rtol=1e-4)
        before, after = (np.sum((places[part] - start[part]) ** 2) for places in (moved, back))
        assert after < before


def test_a_component_without_extent_stays() -> None:
    n = 10
    start = np.zeros((2 * n, 2), np.float32)
    given = Orientation.of(two_rings(n), start, EUCLIDEAN)
    assert given is not None
    moved = np.random.default_rng(2).normal(size=start.shape).astype(np.float32)
    np.testing.assert_allclose(given.restored(moved), moved, atol=1e-6)


def test_large_maps_connected_maps_and_other_spaces_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, places = two_rings(10), np.zeros((20, 2), np.float32)
    whole = Graph(graph.indptr[:11], graph.indices[:20], graph.weights[:20], 10, graph.rho[:10], graph.sigma[:10])
    assert Orientation.of(whole, places[:10], EUCLIDEAN) is None
    assert Orientation.of(graph, np.zeros((20, 3), np.float32), EUCLIDEAN) is None
    assert Orientation.of(graph, places, OutputSpace("chebyshev")) is None
    monkeypatch.setattr(orientation, "SMALL_ROWS", 19)
    assert Orientation.of(graph, places, EUCLIDEAN) is None


@pytest.mark.parametrize("seed", [50, 51])
def test_pieces_of_iris_face_each_other_as_in_the_data(seed: int) -> None:
    """With these seeds the smaller piece turns by more than a right angle during the layout."""
    rows = load_iris().data.astype(np.float32)
    seen: list[Any] = []

    def watch(stage: str, done: int, steps: int, places: Any) -> None:
        seen.append(places)

    places = vicinal.UMAP(random_state=seed, callback=watch).fit_transform(rows)
    assert spearmanr(pdist(rows), pdist(places))[0] > 0.93
    np.testing.assert_array_equal(seen[-1], places)  # callbacks see the same map
