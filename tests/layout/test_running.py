"""run_layout: the same map whoever watches, the places at all stops, and an end on request."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import FullLayout, Graph, Kernel, Layout, Phase, Schedule, find_neighbors, fuzzy_graph
from vicinal.layout.alignment import AlignedLayouts, Alignment, link_slices
from vicinal.layout.sampled import MOST_EPOCHS_PER_STEP, run_layout
from vicinal.runtime.progress import LAYOUT, Progress

KERNEL = Kernel(1.577, 0.8951)
N_EPOCHS = 30


@pytest.fixture(scope="module")
def graph(iris: NDArray[np.float32]) -> Graph:
    return fuzzy_graph(find_neighbors(iris, 10))


def start(seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).uniform(0, 10, size=(150, 2)).astype(np.float32)


class Counted:
    """A layout without places that records the size of its steps."""

    def __init__(self) -> None:
        self.epoch, self.steps = 0, []

    def step(self, n: int = 1) -> None:
        self.steps.append(n)
        self.epoch += n


def places_of(layout: Any) -> Any:
    return lambda: layout.embedding


@pytest.mark.parametrize("watching", ["nobody", "every epoch", "every 7 epochs"])
def test_the_map_does_not_depend_on_who_watches(graph: Graph, watching: str) -> None:
    whole = Layout(graph, start(), KERNEL, Schedule(N_EPOCHS))
    whole.step(N_EPOCHS)
    layout = Layout(graph, start(), KERNEL, Schedule(N_EPOCHS))
    progress = Progress()
    if watching != "nobody":
        progress.listen(lambda *_: None, every=1 if watching == "every epoch" else 7)
    (found,) = run_layout(layout, [N_EPOCHS], progress, places_of(layout))
    np.testing.assert_array_equal(found, whole.embedding)
    assert list(progress.times) == [LAYOUT]


def test_the_layout_is_stepped_straight_to_the_next_report() -> None:
    for every, expected in ((1, [1] * 10), (4, [4, 4, 2]), (50, [10])):
        layout, progress = Counted(), Progress()
        progress.listen(lambda *_: None, every=every)
        run_layout(layout, [10], progress, lambda: start())
        assert layout.steps == expected
    layout = Counted()
    run_layout(layout, [10], Progress(), lambda: start())
    assert layout.steps == [10]


def test_very_many_epochs_make_no_table_of_all_of_them() -> None:
    layout, n_epochs = Counted(), 2**31 - 1
    run_layout(layout, [n_epochs], Progress(), lambda: start())
    assert max(layout.steps) == MOST_EPOCHS_PER_STEP
    assert sum(layout.steps) == n_epochs


def test_the_places_at_every_stop_are_returned(graph: Graph) -> None:
    layout = Layout(graph, start(), KERNEL, Schedule(N_EPOCHS))
    found = run_layout(layout, [0, 12, N_EPOCHS], Progress(), places_of(layout))
    split = Layout(graph, start(), KERNEL, Schedule(N_EPOCHS))
    np.testing.assert_array_equal(found[0], start())
    split.step(12)
    np.testing.assert_array_equal(found[1], split.embedding)
    split.step(N_EPOCHS - 12)
    np.testing.assert_array_equal(found[2], split.embedding)


def test_a_true_answer_ends_the_layout_and_later_stops_are_not_reached() -> None:
    layout, seen = Counted(), []

    def callback(stage: str, epoch: int, n_epochs: int, places: Any) -> bool:
        seen.append((stage, epoch, n_epochs))
        return epoch == 5

    found = run_layout(layout, [3, 5, 9], Progress(callback=callback), lambda: start())
    assert layout.epoch == 5
    assert len(found) == 2
    assert seen == [(LAYOUT, epoch, 9) for epoch in range(1, 6)]


def test_a_request_to_stop_before_the_layout_leaves_the_start() -> None:
    progress = Progress(callback=lambda *_: True)
    with progress.stage("graph"):
        pass
    layout = Counted()
    assert run_layout(layout, [10], progress, lambda: start()) == []
    assert layout.epoch == 0


def test_a_full_layout_is_run_by_the_same_loop(graph: Graph) -> None:
    phases = [Phase(10, 12.0, 10.0), Phase(20, 1.0, 50.0)]
    whole, watched = (FullLayout(graph, start(), phases) for _ in range(2))
    whole.step(30)
    progress = Progress()
    epochs: list[int] = []
    progress.listen(lambda _, epoch, *__: epochs.append(epoch), every=8)
    run_layout(watched, [watched.n_epochs], progress, places_of(watched))
    np.testing.assert_array_equal(watched.embedding, whole.embedding)
    assert epochs == [8, 16, 24]


def two_slices(graph: Graph) -> tuple[list[Layout], Alignment]:
    """Layouts of two equal slices that start at different places; row i of one is related to row i of the other."""
    layouts = [Layout(graph, start(seed), KERNEL, Schedule(N_EPOCHS), seed=seed) for seed in (0, 1)]
    links = link_slices([np.arange(graph.n)], [graph, graph], 1)
    return layouts, Alignment(links, np.full(2 * graph.n, 20.0), 0.05)


def test_aligned_layouts_pull_after_every_epoch(graph: Graph) -> None:
    layouts, alignment = two_slices(graph)
    for epoch, rate in enumerate(layouts[0].schedule.learning_rates(np.arange(N_EPOCHS))):
        for layout in layouts:
            layout.step(1)
            assert layout.epoch == epoch + 1
        own = np.concatenate([layout.embedding for layout in layouts])
        moved = alignment.pulled(own, own, float(rate))
        layouts[0].embedding, layouts[1].embedding = np.split(moved, 2)

    aligned = AlignedLayouts(*two_slices(graph))
    run_layout(aligned, [N_EPOCHS], Progress(), places_of(aligned))
    assert aligned.epoch == N_EPOCHS
    for found, layout in zip(aligned.embeddings, layouts, strict=True):
        np.testing.assert_array_equal(found, layout.embedding)


def test_aligned_layouts_bring_related_rows_together(graph: Graph) -> None:
    def apart(regularisation: float) -> float:
        layouts, alignment = two_slices(graph)
        aligned = AlignedLayouts(layouts, Alignment(alignment.links, alignment.steps, regularisation))
        aligned.step(N_EPOCHS)
        one, other = aligned.embeddings
        return float(np.linalg.norm(one - other, axis=1).mean())

    assert apart(0.05) < 0.2 * apart(0.0)


def test_aligned_layouts_follow_the_fixed_places_of_earlier_slices(graph: Graph) -> None:
    others = start(5)
    links = link_slices([np.arange(graph.n)], [graph, graph], 1)[graph.n :]
    alignment = Alignment(links, np.full(graph.n, 20.0), 0.05, mutual=False)
    layout = Layout(graph, start(1), KERNEL, Schedule(N_EPOCHS))
    aligned = AlignedLayouts([layout], alignment, others)
    aligned.step(10)
    aligned.step(N_EPOCHS - 10)

    expected = Layout(graph, start(1), KERNEL, Schedule(N_EPOCHS))
    for rate in expected.schedule.learning_rates(np.arange(N_EPOCHS)):
        expected.step(1)
        own = expected.embedding
        expected.embedding = alignment.pulled(own, np.concatenate([others, own]), float(rate))
    np.testing.assert_array_equal(aligned.embedding, expected.embedding)
    np.testing.assert_array_equal(others, start(5))
