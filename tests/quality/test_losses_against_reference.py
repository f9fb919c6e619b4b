"""Costs and gradients against the reference, and the sampler against its expected gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import reference
import reference.losses as reference_losses
from measured import assert_equation
from numpy.typing import NDArray

from vicinal import find_neighbors, losses
from vicinal.graph.entropic import entropic_graph
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.layout.forces import Kernel
from vicinal.layout.sampled import Layout
from vicinal.layout.schedule import Schedule

KERNELS = (Kernel(1.577, 0.8951), Kernel(1.0, 1.0), Kernel(5.0, 0.55))
ROWS = 300


@pytest.fixture(scope="module")
def fuzzy(digits: NDArray[np.float32]) -> Graph:
    return fuzzy_graph(find_neighbors(digits[:ROWS], 15))


@pytest.fixture(scope="module")
def entropic(digits: NDArray[np.float32]) -> Graph:
    return entropic_graph(find_neighbors(digits[:ROWS], 46), 15.0)


@pytest.fixture(scope="module", params=[1, 2, 3, 5])
def embedding(request: Any) -> NDArray[np.float32]:
    """Clusters of many sizes, with pairs at all distances."""
    rng = np.random.default_rng(request.param)
    centers = rng.normal(scale=8.0, size=(12, request.param))
    scale = rng.uniform(0.01, 2.0, size=(12, 1))
    group = rng.integers(12, size=ROWS)
    return (centers[group] + scale[group] * rng.normal(size=(ROWS, request.param))).astype(np.float32)


def dense(graph: Graph) -> NDArray[np.float64]:
    return graph.to_scipy().toarray().astype(np.float64)


@pytest.mark.parametrize("kernel", KERNELS)
def test_umap_costs_equal_the_reference(fuzzy: Graph, embedding: NDArray[np.float32], kernel: Kernel) -> None:
    p, ab = dense(fuzzy), (kernel.a, kernel.b)
    radii = np.random.default_rng(0).normal(size=ROWS)
    schedule = Schedule(negative_sample_rate=7)
    found = [
        losses.cross_entropy(fuzzy, embedding, kernel),
        losses.reduced_cross_entropy(fuzzy, embedding, kernel),
        losses.effective_loss(fuzzy, embedding, kernel, schedule, negatives="moving"),
        losses.effective_loss(fuzzy, embedding, kernel, schedule, negatives="resting"),
        losses.density_cost(fuzzy, embedding, kernel, radii, 40.0),
    ]
    wanted = [
        reference.cross_entropy(p, embedding, *ab),
        reference.reduced_cross_entropy(p, embedding, *ab),
        reference_losses.effective_loss(p / p.max(), embedding, *ab, 7),
        reference_losses.resting_loss(p / p.max(), embedding, *ab, 7),
        reference.densmap_cost(p, embedding, radii, *ab, 40.0),
    ]
    for name, one, value in zip(("6", "7, 10", "29", "29", "34"), found, wanted, strict=True):
        assert_equation(name, float(one), value, rtol=1e-6)
    by_pairs = reference.reduced_cross_entropy_by_pairs(p, embedding, *ab)
    assert_equation("11", float(found[1]), by_pairs, rtol=1e-6)
    assert all(one.standard_error == 0.0 for one in found)


@pytest.mark.parametrize("kernel", KERNELS)
def test_radii_of_the_map_equal_the_reference(fuzzy: Graph, embedding: NDArray[np.float32], kernel: Kernel) -> None:
    r_q = np.log(reference.embedded_radius(dense(fuzzy) > 0, embedding, kernel.a, kernel.b))
    r_p = 0.3 * r_q + np.random.default_rng(0).normal(size=ROWS)
    assert_equation("31", losses.embedded_log_radii(fuzzy, embedding, kernel), r_q, rtol=1e-5, atol=1e-6)
    assert_equation(
        "32", losses.radius_power_law(fuzzy, embedding, kernel, r_p), reference.power_law(r_q, r_p), rtol=1e-6
    )
    found = losses.density_correlation(fuzzy, embedding, kernel, r_p)
    assert_equation("33", found, reference.correlation(r_q, r_p), rtol=1e-6)


@pytest.mark.parametrize("dof", [1.0, 0.5, 3.0])
def test_kl_divergence_equals_the_reference(entropic: Graph, embedding: NDArray[np.float32], dof: float) -> None:
    p = dense(entropic)
    wanted = reference.kl_divergence(p / p.sum(), embedding, dof)
    assert losses.kl_divergence(entropic, embedding, dof).value == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("gamma", [7.0, 0.01])
def test_largevis_cost_equals_the_reference(entropic: Graph, embedding: NDArray[np.float32], gamma: float) -> None:
    wanted = reference_losses.largevis_cost(dense(entropic), embedding, gamma)
    assert_equation("23", losses.negative_log_likelihood(entropic, embedding, gamma).value, wanted, rtol=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_equal_the_reference(fuzzy: Graph, embedding: NDArray[np.float32], kernel: Kernel) -> None:
    p, ab = dense(fuzzy), (kernel.a, kernel.b)
    moving = Schedule(negative_sample_rate=3, update_negatives=True)
    pairs = [
        (
            "26",
            losses.stated_gradient(fuzzy, embedding, kernel),
            reference_losses.stated_gradient(p, embedding, *ab),
        ),
        (
            "25",
            losses.expected_gradient(fuzzy, embedding, kernel),
            reference_losses.expected_gradient(p / p.max(), embedding, *ab, 5),
        ),
        (
            "27",
            losses.expected_gradient(fuzzy, embedding, kernel, moving),
            reference_losses.effective_gradient(p / p.max(), embedding, *ab, 3),
        ),
    ]
    for name, found, wanted in pairs:
        # The forces are those of the layout, in float32.
        assert_equation(name, found, wanted, rtol=0, atol=2e-5 * np.abs(wanted).max())


def test_gradients_of_some_rows_are_those_rows_of_the_whole_gradient(
    fuzzy: Graph, embedding: NDArray[np.float32]
) -> None:
    rows = np.array([299, 0, 17, 17])
    for gradient in (losses.stated_gradient, losses.expected_gradient):
        everywhere = gradient(fuzzy, embedding, KERNELS[0])
        np.testing.assert_array_equal(gradient(fuzzy, embedding, KERNELS[0], rows=rows), everywhere[rows])


def test_gradients_are_derivatives_of_the_losses(fuzzy: Graph, embedding: NDArray[np.float32]) -> None:
    """Near pairs are avoided, since there ε damps the gradient but not the cost."""
    kernel, moving = KERNELS[0], Schedule(update_negatives=True)
    rng = np.random.default_rng(1)
    spread = (40.0 * rng.normal(size=embedding.shape)).astype(np.float32)
    if spread.shape[1] == 1:
        spread = np.linspace(-50.0, 50.0, ROWS, dtype=np.float32)[rng.permutation(ROWS), None]
    direction = rng.normal(size=spread.shape)
    step = 1e-3
    p = dense(fuzzy)
    for cost, gradient in (
        (
            lambda y: reference.reduced_cross_entropy(p, y, kernel.a, kernel.b),
            losses.stated_gradient(fuzzy, spread, kernel),
        ),
        (
            lambda y: reference_losses.effective_loss(p / p.max(), y, kernel.a, kernel.b, 5),
            losses.expected_gradient(fuzzy, spread, kernel, moving),
        ),
    ):
        difference = (cost(spread + step * direction) - cost(spread - step * direction)) / (2 * step)
        assert (gradient * direction).sum() == pytest.approx(difference, rel=0.02)


def central_differences(cost: Callable[[NDArray[np.float64]], Any], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the derivatives of a cost, or of a vector of them in the last axis, by the coordinates of y."""
    step, out = 1e-5, []
    for at in np.ndindex(y.shape):
        shift = np.zeros_like(y)
        shift[at] = step
        out.append((np.asarray(cost(y + shift)) - np.asarray(cost(y - shift))) / (2 * step))
    return np.array(out)


def ring_and_star(n: int = 6) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the memberships of two graphs: in a ring all degrees are equal, in a star they are not."""
    ring, star = np.zeros((n, n)), np.zeros((n, n))
    for i in range(n):
        ring[i, (i + 1) % n] = ring[(i + 1) % n, i] = 0.5
        star[0, i] = star[i, 0] = 0.5 * (i > 0)
    return ring, star


def test_mean_step_of_resting_negatives_is_a_gradient_only_if_degrees_are_equal() -> None:
    """The step is the gradient of J in a ring; in a star its derivatives are not symmetric, so no loss has it."""
    y, ab, negatives = 3.0 * np.random.default_rng(8).normal(size=(6, 2)), (1.577, 0.8951), 5
    for p, equal in zip(ring_and_star(), (True, False), strict=True):

        def step(places: NDArray[np.float64], p: NDArray[np.float64] = p) -> NDArray[np.float64]:
            return reference_losses.expected_gradient(p, places, *ab, negatives, eps=0.0).ravel()

        def loss(places: NDArray[np.float64], p: NDArray[np.float64] = p) -> float:
            return reference_losses.resting_loss(p, places, *ab, negatives)

        slope, derivatives = central_differences(loss, y), central_differences(step, y)
        asymmetry = np.abs(derivatives - derivatives.T).max() / np.abs(derivatives).max()
        distance = np.abs(slope - step(y)).max() / np.abs(slope).max()
        assert (asymmetry < 1e-6, distance < 1e-6) == (equal, equal)
        assert equal or (asymmetry > 0.01 and distance > 0.01)


def test_gradient_of_the_resting_loss_is_that_of_moving_negatives_with_half_the_repulsion(fuzzy: Graph) -> None:
    spread = 40.0 * np.random.default_rng(1).normal(size=(ROWS, 2))
    half = Schedule(update_negatives=True, repulsion_strength=0.5)
    gradient = losses.expected_gradient(fuzzy, spread, KERNELS[0], half)
    p, ab = dense(fuzzy), (KERNELS[0].a, KERNELS[0].b)
    wanted = reference_losses.effective_gradient(p / p.max(), spread, *ab, 5)
    attraction = reference_losses.effective_gradient(p / p.max(), spread, *ab, 0)
    np.testing.assert_allclose(gradient, (wanted + attraction) / 2, rtol=0, atol=2e-5 * np.abs(wanted).max())
    direction, step = np.random.default_rng(2).normal(size=spread.shape), 1e-3
    above, below = (
        reference_losses.resting_loss(p / p.max(), spread + sign * step * direction, *ab, 5) for sign in (1, -1)
    )
    assert (gradient * direction).sum() == pytest.approx((above - below) / (2 * step), rel=0.02)


def test_the_mean_of_epoch_gradients_is_the_expected_gradient() -> None:
    """The means of eq. 24, 27 and 28 over random indicators are eq. 25, the gradient of eq. 29, and eq. 29."""
    rng = np.random.default_rng(3)
    n, negatives, epochs, ab = 4, 2, 1200, (1.577, 0.8951)
    p = rng.uniform(size=(n, n))
    p = np.triu(p, 1) + np.triu(p, 1).T
    y = rng.normal(scale=2.0, size=(n, 2))
    plain, moving, costs = [], [], []
    for _ in range(epochs):
        fired = rng.uniform(size=(n, n)) <= p
        drawn = rng.uniform(size=(n, n, n)) <= negatives / n
        plain.append(reference_losses.epoch_gradient(y, fired, drawn, *ab))
        moving.append(reference_losses.epoch_gradient(y, fired, drawn, *ab, update_negatives=True))
        costs.append(reference_losses.epoch_cost(y, fired, drawn, *ab))
    for found, wanted in (
        (plain, reference_losses.expected_gradient(p, y, *ab, negatives)),
        (moving, reference_losses.effective_gradient(p, y, *ab, negatives)),
        (costs, reference_losses.effective_loss(p, y, *ab, negatives)),
    ):
        error = np.std(found, axis=0) / np.sqrt(epochs)
        assert (np.abs(np.mean(found, axis=0) - wanted) < 4.5 * error).all()


def test_epoch_gradients_are_those_of_the_cost_of_an_epoch() -> None:
    """Eq. 27 is the gradient of eq. 28; eq. 24 is the part of it in which a row is pushed by its own negatives."""
    rng = np.random.default_rng(4)
    n, ab, step = 5, (1.577, 0.8951), 1e-6
    fired, drawn = rng.uniform(size=(n, n)) < 0.5, rng.uniform(size=(n, n, n)) < 0.4
    y = rng.normal(scale=2.0, size=(n, 2))

    def own_cost(places: NDArray[np.float64], i: int) -> float:
        d2 = reference.squared_distances(places)[i]
        others = np.arange(n) != i
        pulls = (fired[i] * 1.0 + fired[:, i]) * reference.attract_cost(np.where(others, d2, 1.0), *ab)
        pushes = (fired[i] & others) @ drawn[i] * reference.repel_cost(np.where(others, d2, 1.0), *ab)
        return float((pulls + pushes)[others].sum())

    def slopes(cost: Callable[[NDArray[np.float64], int], float]) -> NDArray[np.float64]:
        found = np.empty((n, 2))
        for i, axis in np.ndindex(n, 2):
            moved = np.zeros((n, 2))
            moved[i, axis] = step
            found[i, axis] = (cost(y + moved, i) - cost(y - moved, i)) / (2 * step)
        return found

    fired &= ~np.eye(n, dtype=bool)
    whole = slopes(lambda places, _: reference_losses.epoch_cost(places, fired, drawn, *ab))
    moving = reference_losses.epoch_gradient(y, fired, drawn, *ab, update_negatives=True, eps=0.0)
    resting = reference_losses.epoch_gradient(y, fired, drawn, *ab, eps=0.0)
    assert_equation("28", moving, whole, rtol=1e-6, atol=1e-7)
    assert_equation("24", resting, slopes(own_cost), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("update_negatives", [False, True])
def test_the_sampler_moves_by_the_expected_gradient(fuzzy: Graph, update_negatives: bool) -> None:
    """An epoch with a tiny learning rate moves every row by -rate times eq. 25 (27), on average over seeds.

    The points are so far apart that no gradient is clipped, and the rate is so small that the moves of a row within
    the epoch do not change its forces.
    """
    kernel, seeds, rate = Kernel(1.577, 0.8951), 400, 1e-3
    side = np.arange(18)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)[:ROWS]
    rng = np.random.default_rng(5)
    start = (grid + rng.uniform(-0.3, 0.3, grid.shape)).astype(np.float32)
    schedule = Schedule(1, rate, 5, 1.0, update_negatives)
    moves = np.empty((seeds, *start.shape))
    for seed in range(seeds):
        layout = Layout(fuzzy, start, kernel, schedule, seed=seed, n_jobs=1)
        layout.step(1)
        moves[seed] = (layout.embedding.astype(np.float64) - start) / -rate
    wanted = losses.expected_gradient(fuzzy, start, kernel, schedule)
    error = moves.std(axis=0, ddof=1) / np.sqrt(seeds)
    deviation = (moves.mean(axis=0) - wanted) / error
    # The deviations of the 600 components, in standard errors, are a standard normal sample.
    assert np.abs(deviation).max() < 4.5
    assert 0.9 < np.sqrt((deviation**2).mean()) < 1.1
    # The gradient of the stated loss is clearly different.
    assert np.abs(losses.stated_gradient(fuzzy, start, kernel) - wanted).max() > 50 * error.max()
