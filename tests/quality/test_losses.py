"""Losses: standard errors of samples, threads, degenerate maps, invalid arguments, histories."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from vicinal import UMAP, Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph, losses
from vicinal.graph.graph import Graph
from vicinal.layout.sampled import run_layout
from vicinal.pipeline.recipe import LARGEVIS_GAMMA
from vicinal.quality import losses as pairs
from vicinal.runtime.progress import Progress

KERNEL = fit_ab()
Evaluate = Callable[..., losses.Loss]
LOSSES: dict[str, Evaluate] = {
    "cross_entropy": lambda g, y, **k: losses.cross_entropy(g, y, KERNEL, **k),
    "reduced_cross_entropy": lambda g, y, **k: losses.reduced_cross_entropy(g, y, KERNEL, **k),
    "kl_divergence": losses.kl_divergence,
    "negative_log_likelihood": losses.negative_log_likelihood,
    "density_cost": lambda g, y, **k: losses.density_cost(g, y, KERNEL, np.arange(g.n), **k),
    "resting_negatives": lambda g, y, **k: losses.effective_loss(g, y, KERNEL, negatives="resting", **k),
    "moving_negatives": lambda g, y, **k: losses.effective_loss(g, y, KERNEL, negatives="moving", **k),
}


def test_default_gamma_is_that_of_largevis() -> None:
    default = inspect.signature(losses.negative_log_likelihood).parameters["gamma"].default
    assert default == LARGEVIS_GAMMA


@pytest.fixture(scope="module")
def graph(digits: NDArray[np.float32]) -> Graph:
    return fuzzy_graph(find_neighbors(digits[:700], 10))


@pytest.fixture(scope="module")
def embedding() -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(scale=5.0, size=(700, 2)).astype(np.float32)


@pytest.mark.parametrize("name", LOSSES)
def test_estimates_vary_by_their_standard_error(name: str, graph: Graph, embedding: NDArray[np.float32]) -> None:
    exact = LOSSES[name](graph, embedding, samples=None)
    drawn = [LOSSES[name](graph, embedding, samples=32, seed=seed) for seed in range(60)]
    deviation = np.array([(one.value - exact.value) / one.standard_error for one in drawn])
    assert len({one.value for one in drawn}) == len(drawn)
    assert abs(deviation.mean()) < 4 / np.sqrt(len(drawn))
    assert 0.75 < deviation.std() < 1.3
    assert all(one.attraction == exact.attraction and one.constant == exact.constant for one in drawn)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("samples", [None, 40])
def test_losses_do_not_depend_on_n_jobs(
    name: str, samples: int | None, graph: Graph, embedding: NDArray[np.float32]
) -> None:
    once = LOSSES[name](graph, embedding, samples=samples, n_jobs=1)
    assert all(LOSSES[name](graph, embedding, samples=samples, n_jobs=jobs) == once for jobs in (2, 8))


def test_gradients_do_not_depend_on_n_jobs(graph: Graph, embedding: NDArray[np.float32]) -> None:
    moving = Schedule(update_negatives=True)
    for gradient in (losses.stated_gradient, partial(losses.expected_gradient, schedule=moving)):
        once = gradient(graph, embedding, KERNEL, n_jobs=1)
        for jobs in (2, 8):
            np.testing.assert_array_equal(gradient(graph, embedding, KERNEL, n_jobs=jobs), once)


def test_losses_of_many_rows_are_sampled(
    graph: Graph, embedding: NDArray[np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert losses.cross_entropy(graph, embedding, KERNEL).standard_error == 0.0
    monkeypatch.setattr(pairs, "EXACT_ROWS", 699)
    assert losses.cross_entropy(graph, embedding, KERNEL).standard_error > 0.0


def test_repulsion_strength_and_negatives_multiply_the_repulsion(graph: Graph, embedding: NDArray[np.float32]) -> None:
    plain = losses.effective_loss(graph, embedding, KERNEL)
    strong = losses.effective_loss(graph, embedding, KERNEL, Schedule(negative_sample_rate=10, repulsion_strength=3.0))
    assert strong.attraction == plain.attraction
    assert strong.repulsion == pytest.approx(6.0 * plain.repulsion)


def test_effective_loss_has_half_the_repulsion_if_negatives_rest(graph: Graph, embedding: NDArray[np.float32]) -> None:
    resting = losses.effective_loss(graph, embedding, KERNEL, negatives="resting")
    moving = losses.effective_loss(graph, embedding, KERNEL, negatives="moving")
    assert moving == losses.Loss(resting.attraction, 2.0 * resting.repulsion)


def test_effective_loss_is_that_of_the_negatives_of_the_schedule(graph: Graph, embedding: NDArray[np.float32]) -> None:
    for moves, kind, other in ((False, "resting", "moving"), (True, "moving", "resting")):
        schedule = Schedule(update_negatives=moves)
        named = {k: losses.effective_loss(graph, embedding, KERNEL, schedule, negatives=k) for k in (kind, other)}
        assert losses.effective_loss(graph, embedding, KERNEL, schedule) == named[kind] != named[other]


def test_effective_loss_uses_weights_relative_to_the_largest(graph: Graph, embedding: NDArray[np.float32]) -> None:
    """In the layout these are the probabilities of firing."""
    halved = graph.with_weights(graph.to_scipy() * np.float32(0.5))
    assert losses.effective_loss(halved, embedding, KERNEL) == losses.effective_loss(graph, embedding, KERNEL)


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_coinciding_points_are_finite(name: str, graph: Graph) -> None:
    for places in (np.zeros((700, 2)), np.full((700, 3), 1e14), np.repeat([[0.0, 1.0]], 700, axis=0)):
        assert np.isfinite(LOSSES[name](graph, places).value)
    assert np.isfinite(losses.stated_gradient(graph, np.zeros((700, 2)), KERNEL)).all()
    assert (losses.expected_gradient(graph, np.zeros((700, 2)), KERNEL) == 0.0).all()


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33])
def test_losses_accept_few_rows(n: int) -> None:
    rows = np.random.default_rng(n).normal(size=(n, 4)).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(rows, min(n, 5)))
    places = rows[:, :2]
    for samples in (None, 16):
        assert np.isfinite(losses.cross_entropy(graph, places, KERNEL, samples=samples).value)
    assert losses.expected_gradient(graph, places, KERNEL).shape == (n, 2)
    assert losses.stated_gradient(graph, places, KERNEL, rows=[]).shape == (0, 2)


def test_the_embedding_is_not_changed(graph: Graph, embedding: NDArray[np.float32]) -> None:
    before = embedding.copy()
    for evaluate in LOSSES.values():
        evaluate(graph, embedding)
    np.testing.assert_array_equal(embedding, before)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g, y: losses.cross_entropy(g, y[:-1], KERNEL), "embedding must hold one place"),
        (lambda g, y: losses.cross_entropy(g, y[:, 0], KERNEL), "embedding must hold one place"),
        (lambda g, y: losses.cross_entropy(g, np.where(np.arange(700)[:, None] == 7, np.nan, y), KERNEL), "row 7"),
        (lambda g, y: losses.cross_entropy(g, y * 1e18, KERNEL), "first in row 0"),
        (lambda g, y: losses.cross_entropy(g, y, KERNEL, samples=0), "samples must be"),
        (lambda g, y: losses.cross_entropy(g, y, KERNEL, samples="all"), "samples must be"),
        (lambda g, y: losses.effective_loss(g, y, KERNEL, negatives="both"), "negatives must be 'resting', 'moving'"),
        (lambda g, y: losses.kl_divergence(g, y, 0.0), "dof must be a positive number"),
        (lambda g, y: losses.kl_divergence(g.with_weights(g.to_scipy() * 0), y), "requires a graph with edges"),
        (lambda g, y: losses.density_cost(g, y, KERNEL, [1.0]), "log_radii must hold"),
        (lambda g, y: losses.density_correlation(g, y, KERNEL, [1.0]), "log_radii must hold"),
        (lambda g, y: losses.radius_power_law(g, y, KERNEL, np.full(g.n, np.nan)), "no row has a radius"),
        (lambda g, y: losses.stated_gradient(g, y, KERNEL, rows=[700]), "rows must be row numbers below 700"),
        (lambda g, y: losses.stated_gradient(g, y, KERNEL, rows=[0.5]), "rows must be row numbers"),
        (lambda g, y: losses.History(lambda y: losses.Loss(0, 0), every=0), "every must be at least 1"),
    ],
)
def test_invalid_arguments_raise_an_error_that_names_them(
    call: Callable[[Graph, Any], Any], message: str, graph: Graph, embedding: NDArray[np.float32]
) -> None:
    with pytest.raises(ValueError, match=message):
        call(graph, embedding)


def test_a_history_records_its_period_and_the_last_epoch(graph: Graph, embedding: NDArray[np.float32]) -> None:
    history = losses.History(partial(losses.effective_loss, graph, kernel=KERNEL), every=20)
    layout = Layout(graph, embedding, KERNEL, Schedule(50), seed=0)
    history("neighbors", 0, 1, None)
    progress = Progress()
    progress.listen(history, history.every, last=True)
    run_layout(layout, [50], progress, lambda: layout.embedding)
    assert history.epochs == [20, 40, 50]
    assert float(history.losses[-1]) == history.values[-1]
    assert history.values[-1] < losses.effective_loss(graph, embedding, KERNEL).value
    assert losses.effective_loss(graph, layout.embedding, KERNEL) == history.losses[-1]


def test_a_history_can_be_the_callback_of_an_estimator(digits: NDArray[np.float32], graph: Graph) -> None:
    history = losses.History(partial(losses.cross_entropy, graph, kernel=KERNEL), every=5)
    UMAP(n_neighbors=10, n_epochs=12, callback=history, random_state=0).fit(digits[:700])
    assert history.epochs == [5, 10, 12]
    assert np.isfinite(history.values).all()
