"""densMAP's term on a device, with the bits of the CPU's."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.layout.density import DensityTerm, Radii, edge_distances

Rows = NDArray[np.float32]


@pytest.mark.parametrize(("n_components", "moving", "pinned"), [(2, False, False), (2, True, True), (3, False, True)])
def test_density_term_has_the_bits_of_the_cpu(
    place: Any, rows: Rows, n_components: int, moving: bool, pinned: bool
) -> None:
    table = find_neighbors(rows, 8)
    graph, rng = fuzzy_graph(table), np.random.default_rng(1)
    radii = Radii.of(graph, edge_distances(graph, table))
    target = radii.standardized(radii.log_radius)
    target[::50] = np.nan
    term = DensityTerm(target, 2.5, 0.6, 0.75)
    start = rng.uniform(0.5, 3.0, (len(rows), n_components)).astype(np.float32)
    fixed = np.arange(len(rows)) % 3 == 0 if pinned else None
    schedule, maps, summaries = Schedule(12, sweeps=4, update_negatives=moving), [], []
    for device, steps in (("cpu", (12,)), ("cuda", (5, 7))):
        layout = Layout(graph, start, fit_ab(), schedule, seed=9, device=device, density=term, fixed=fixed)
        for step in steps:
            layout.step(step)
        maps.append(layout.embedding)
        summaries.append(layout.density_summary)
    plain = Layout(graph, start, fit_ab(), schedule, seed=9, fixed=fixed)
    plain.step(12)
    assert not np.array_equal(maps[0], plain.embedding)
    assert maps[0].tobytes() == maps[1].tobytes()
    assert summaries[0] == summaries[1]


def test_summary_needs_a_density_term(place: Any, rows: Rows) -> None:
    graph = fuzzy_graph(find_neighbors(rows, 8))
    layout = Layout(graph, np.ones((len(rows), 2), np.float32), fit_ab(), Schedule(2), device="cuda")
    with pytest.raises(ValueError, match="density"):
        _ = layout.density_summary


def test_densmap_has_the_bits_of_the_cpu_from_rows_to_new_rows(place: Any, rows: Rows) -> None:
    settings = {"n_neighbors": 8, "random_state": 0, "n_epochs": 30}
    here, there = (vicinal.DensMAP(device=device, **settings).fit(rows) for device in ("cpu", "cuda"))
    assert there.map_.graph.place is place
    assert here.embedding_.tobytes() == there.embedding_.tobytes()
    new = rows[::20] + np.float32(0.2)
    expected = here.transform(new)
    assert expected.tobytes() == there.transform(new).tobytes()
    assert expected.tobytes() == pickle.loads(pickle.dumps(there)).transform(new).tobytes()
