"""The full layout: phases, split runs, grids, and results that do not depend on n_jobs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import FullLayout, Graph, Phase, entropic_graph, find_neighbors
from vicinal.backends import cpu
from vicinal.layout.full import MARGIN, SPACING, choose_repulsion, enclose

PHASES = [Phase(20, 12.0, 10.0), Phase(30, 1.0, 100.0, 0.7)]
METHODS = ("exact", "fft")


@pytest.fixture(scope="module")
def graph(digits: NDArray[np.float32]) -> Graph:
    return entropic_graph(find_neighbors(digits[:900], 31), 10.0)


def start(n_components: int = 2, n: int = 900) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(scale=1.0, size=(n, n_components)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("n_components", "dof"), [(1, 1.0), (2, 1.0), (2, 0.7), pytest.param(3, 0.7, marks=pytest.mark.nightly)]
)
def test_bits_do_not_depend_on_n_jobs_or_on_split_runs(
    graph: Graph, method: str, n_components: int, dof: float
) -> None:
    def run(n_jobs: int, *cuts: int) -> bytes:
        places = start(n_components)
        layout = FullLayout(graph, places, PHASES, dof=dof, method=method, n_jobs=n_jobs)  # type: ignore[arg-type]
        for cut in cuts:
            layout.step(cut)
        assert layout.epoch == 50
        return layout.embedding.tobytes()

    whole = run(1, 50)
    assert run(2, 50) == whole
    assert run(8, 3, 17, 30) == whole
    assert run(2, 25, 25) == whole


def test_phases_run_one_after_the_other(graph: Graph) -> None:
    one = FullLayout(graph, start(), PHASES, n_jobs=1)
    one.step(20)
    other = FullLayout(graph, start(), PHASES[:1], n_jobs=1)
    other.step(20)
    assert one.embedding.tobytes() == other.embedding.tobytes()
    one.step(1)
    other.step(1)
    assert one.embedding.tobytes() != other.embedding.tobytes()
    assert one.n_epochs == 50


def test_graph_and_start_are_not_changed(graph: Graph) -> None:
    places, weights = start(), graph.weights.copy()
    kept = places.copy()
    FullLayout(graph, places, PHASES).step(25)
    np.testing.assert_array_equal(places, kept)
    np.testing.assert_array_equal(graph.weights, weights)


@pytest.mark.parametrize("method", METHODS)
def test_map_remains_centered_and_finite_if_points_are_far_apart(graph: Graph, method: str) -> None:
    places = start()
    places[0], places[1] = 3e4, -3e4
    layout = FullLayout(graph, places, PHASES, method=method)  # type: ignore[arg-type]
    layout.step(3)
    assert np.isfinite(layout.embedding).all()
    np.testing.assert_allclose(layout.embedding.mean(axis=0), 0.0, atol=0.01)


@pytest.mark.parametrize(("width", "exact"), [(1.0, False), (300.0, True)])
def test_a_grid_with_too_many_nodes_for_few_points_is_replaced_by_all_pairs(width: float, exact: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(25, 3)).astype(np.float32)
    few = entropic_graph(find_neighbors(rows, 4), 1.0)
    layouts = [FullLayout(few, width * start(n=25), PHASES, method=method) for method in ("exact", "fft")]
    for layout in layouts:
        layout.step(20)
    assert (layouts[0].embedding.tobytes() == layouts[1].embedding.tobytes()) == exact


def test_places_of_coinciding_points_remain_finite(graph: Graph) -> None:
    for method in METHODS:
        layout = FullLayout(graph, np.zeros((900, 2), np.float32), PHASES, method=method)  # type: ignore[arg-type]
        layout.step(50)
        assert np.isfinite(layout.embedding).all()


@pytest.mark.parametrize("width", [0.0, 1e-4, 1.0, 20.0, 300.0, 1e5, 1e12])
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_grid_encloses_the_points_with_room_for_the_splines(width: float, n_components: int) -> None:
    low = np.full(n_components, -width / 3, dtype=np.float32)
    high = np.full(n_components, 2 * width / 3, dtype=np.float32)
    box = enclose(low, high, cpu.Transforms(1))
    assert np.prod(box.padded) < 2 * cpu.MOST_NODES
    for c in range(n_components):
        first = (float(low[c]) - box.origin[c]) / box.spacing
        last = (float(high[c]) - box.origin[c]) / box.spacing
        assert first >= MARGIN - 2
        assert last <= box.shape[c] - MARGIN + 2
        assert box.padded[c] >= 2 * box.shape[c]
    if 32.0 * SPACING < width < 100.0:
        assert box.spacing <= 2 * SPACING


@pytest.mark.parametrize(("n_rows", "n_components"), [(30_000, 2), (50_000, 2), (50_000, 1)])
def test_only_wide_maps_with_many_rows_per_area_get_a_coarser_grid(n_rows: int, n_components: int) -> None:
    def spacing(width: float) -> float:
        high = np.full(n_components, width, np.float32)
        return enclose(np.zeros_like(high), high, cpu.Transforms(1), n_rows).spacing

    assert spacing(40.0) == SPACING
    dense = n_components == 2 and n_rows > 200.0**2
    assert spacing(200.0) == (1.6 * SPACING if dense else SPACING)


def test_the_grid_supports_at_most_three_components() -> None:
    assert choose_repulsion("auto", 10**6, 4) == "exact"
    assert choose_repulsion("auto", 10**6, 3) == "fft"
    assert choose_repulsion("auto", 100, 2) == "exact"
    with pytest.raises(ValueError, match="at most 3 components"):
        choose_repulsion("fft", 100, 4)
