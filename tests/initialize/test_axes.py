"""Axes of eigenmaps that are not functions of one another: long sheets keep their width, other maps their axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from vicinal import UMAP, Graph, find_neighbors, fit_ab, fuzzy_graph, spectral_start
from vicinal.initialize.spectral import CANDIDATES, component_maps, curled_components, evened, independent_axes
from vicinal.initialize.task import LEAST_EXTENT, to_extent
from vicinal.quality.losses import effective_loss

Rows = NDArray[np.float32]


def graph_of(rows: Rows) -> Graph:
    return fuzzy_graph(find_neighbors(rows, 15))


def agreement(places: Rows, sheet: Rows) -> NDArray[np.float64]:
    """Return the rank correlation of each axis of a map with that of the sheet."""
    return np.array([abs(spearmanr(places[:, axis], sheet[:, axis]).statistic) for axis in range(2)])


def test_a_roll_starts_as_its_sheet_in_its_proportions(rolled: Any) -> None:
    rows, sheet = rolled(3000)
    start = spectral_start(graph_of(rows), rows)
    assert (agreement(start, sheet) > [0.99, 0.7]).all()
    sides = np.ptp(start, axis=0)
    true = np.ptp(sheet, axis=0)
    assert sides[0] / sides[1] == pytest.approx(true[0] / true[1], rel=0.25)
    assert sides[0] * sides[1] == pytest.approx(LEAST_EXTENT**2, rel=1e-5)
    np.testing.assert_allclose(start.min(axis=0), 0.0, atol=1e-5)


def test_a_roll_is_unrolled_and_torn_less_than_from_its_smoothest_vectors(rolled: Any) -> None:
    rows, sheet = rolled(3000)
    graph = graph_of(rows)

    def long_edges(places: Rows) -> float:
        edges = graph.to_scipy().tocoo()
        long = np.linalg.norm(places[edges.row] - places[edges.col], axis=1) > 2
        return float(edges.data[long].sum() / edges.data.sum())

    model = UMAP(random_state=1).fit(rows)
    plain = UMAP(random_state=1, init=component_maps(graph, 2).vectors).fit(rows)
    assert (agreement(model.embedding_, sheet) > 0.9).all()
    assert (agreement(plain.embedding_, sheet) < 0.9).any()
    assert long_edges(model.embedding_) < 0.5 * long_edges(plain.embedding_)
    low, high = (
        effective_loss(graph, one.embedding_, fit_ab(), negatives="resting", samples=None).value
        for one in (model, plain)
    )
    assert low < 0.97 * high


def test_each_component_has_its_own_axes(rolled: Any) -> None:
    rng = np.random.default_rng(3)
    first, sheet = rolled(1500)
    second, other = rolled(1200, 1)
    blob = rng.normal(size=(700, 3))
    rows = np.concatenate([first, second + 200, blob - 200]).astype(np.float32)
    graph = graph_of(rows)
    maps = component_maps(graph, 2)
    np.testing.assert_array_equal(curled_components(maps, graph), [0, 1])
    more = component_maps(graph, CANDIDATES)
    axes, shape = independent_axes(more, graph, np.array([0, 1]), 2)
    np.testing.assert_array_equal(axes[2], [0, 1])
    np.testing.assert_array_equal(shape[2], 1.0)
    np.testing.assert_allclose(shape.prod(axis=1), 1.0)
    chosen = more.with_axes(axes, shape)
    np.testing.assert_array_equal(chosen.vectors[2700:], more.vectors[2700:, :2])
    np.testing.assert_array_equal(evened(chosen).vectors[:2700], chosen.vectors[:2700])
    assert not np.array_equal(evened(chosen).vectors[2700:], chosen.vectors[2700:])
    boxed = np.empty_like(chosen.vectors)
    boxed[chosen.order] = chosen.boxed()
    np.testing.assert_allclose(np.ptp(boxed[:1500], axis=0), shape[0], rtol=1e-6)
    np.testing.assert_allclose(np.ptp(boxed[2700:], axis=0), 1.0, rtol=1e-6)
    # Components are turned, so that the two axes of a map are no longer those of the start.
    start = spectral_start(graph, rows)
    for part, flat in ((slice(1500), sheet), (slice(1500, 2700), other)):
        places = start[part] - start[part].mean(axis=0)
        along = places @ np.linalg.svd(places, full_matrices=False)[2].T
        assert (agreement(along, flat) > [0.99, 0.7]).all()


def test_three_axes_hold_the_length_and_the_width(rolled: Any) -> None:
    rows, sheet = rolled(3000)
    start = spectral_start(graph_of(rows), rows, n_components=3)
    assert (agreement(start[:, :2], sheet) > [0.99, 0.7]).all()
    assert spectral_start(graph_of(rows), rows, n_components=1).shape == (3000, 1)


def clusters_in_a_row() -> Rows:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2400, 5))
    rows[:, 0] += 4.5 * rng.integers(0, 3, len(rows))
    return rows.astype(np.float32)


def ring() -> Rows:
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 2000)
    return (np.stack([np.cos(angle), np.sin(angle)], axis=1) * 20 + rng.normal(size=(2000, 2))).astype(np.float32)


def square() -> Rows:
    return np.random.default_rng(0).uniform(size=(2000, 2)).astype(np.float32)


@pytest.mark.parametrize("make", [clusters_in_a_row, ring, square])
def test_other_shapes_start_from_their_smoothest_vectors(make: object) -> None:
    assert callable(make)
    graph = graph_of(make())
    assert curled_components(component_maps(graph, 2), graph).size == 0


def test_digits_start_from_their_smoothest_vectors(digits: Rows) -> None:
    graph = graph_of(digits)
    assert curled_components(component_maps(graph, 2), graph).size == 0


def test_a_thin_curve_starts_as_before() -> None:
    """Its first vectors are all functions of the place along it; a horseshoe is torn less than a line."""
    rng = np.random.default_rng(0)
    s = rng.uniform(0, 600, 3000)
    rows = np.stack([20 * np.sin(s / 20), 20 * np.cos(s / 20), s / 4], axis=1) + rng.normal(scale=0.05, size=(3000, 3))
    graph = graph_of(rows.astype(np.float32))
    maps = component_maps(graph, 2)
    assert curled_components(maps, graph).size == 1
    start = spectral_start(graph)
    np.testing.assert_allclose(start, to_extent(evened(maps).vectors), atol=2e-3)


def test_starts_have_the_same_bits_for_any_number_of_threads(rolled: Any) -> None:
    rows, _ = rolled(2000)
    graph = graph_of(rows)
    one, three = (spectral_start(graph, rows, seed=5, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one, three)
    assert not np.array_equal(one, spectral_start(graph, rows, seed=6))
