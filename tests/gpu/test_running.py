"""Layouts on a device are watched, stopped and interrupted like those of the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.backends.cuda import layout as device_layout

Rows = NDArray[np.float32]


def watched(rows: Rows, device: str, last: int) -> tuple[list[tuple[int, bytes]], vicinal.UMAP]:
    """Fit with a callback that stops the layout at an epoch; return what it saw, and the model."""
    seen: list[tuple[int, bytes]] = []

    def watch(stage: str, done: int, steps: int, places: Rows | None) -> bool:
        if stage == "layout" and places is not None:
            seen.append((done, places.tobytes()))
        return stage == "layout" and done >= last

    settings = {"n_neighbors": 8, "n_epochs": 20, "random_state": 0, "callback": watch}
    return seen, vicinal.UMAP(device=device, **settings).fit(rows)


def test_callback_sees_the_maps_of_the_cpu_and_stops_the_layout(place: Any, rows: Rows) -> None:
    (here, one), (there, other) = (watched(rows, device, 7) for device in ("cpu", "cuda"))
    assert len(here) > 3
    assert here == there
    assert one.embedding_.tobytes() == other.embedding_.tobytes()
    assert other.map_.report.n_epochs == here[-1][0] < 20


@pytest.mark.parametrize("moving", [False, True])
def test_interrupted_step_leaves_complete_sweeps(
    place: Any, rows: Rows, moving: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, start = fuzzy_graph(find_neighbors(rows, 8)), np.random.default_rng(1).uniform(0, 3, (len(rows), 2))
    schedule = Schedule(8, sweeps=4, update_negatives=moving)

    def new_layout() -> Layout:
        return Layout(graph, start.astype(np.float32), fit_ab(), schedule, seed=2, device="cuda")

    whole, layout = new_layout(), new_layout()
    whole.step(8)
    run, calls = device_layout.launch_warps, iter(range(1000))

    def interrupted(*arguments: Any, **options: Any) -> None:
        run(*arguments, **options)
        if next(calls) == 13:  # the sweep is computed, but not complete
            raise KeyboardInterrupt

    monkeypatch.setattr(device_layout, "launch_warps", interrupted)
    with pytest.raises(KeyboardInterrupt):
        layout.step(8)
    monkeypatch.undo()
    assert layout.epoch == 3
    layout.step(5)
    assert layout.epoch == 8
    assert layout.embedding.tobytes() == whole.embedding.tobytes()
