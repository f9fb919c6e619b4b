"""The forces of LargeVis against eq. 21 and 23, and the distribution of weighted negatives."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from measured import assert_equation
from numpy.typing import NDArray

from vicinal import Graph, Kernel, Layout, Schedule
from vicinal.backends import _core
from vicinal.layout.forces import Forces
from vicinal.layout.sampled import Placement

FORCES = Forces(Kernel(1.0, 1.0), "largevis")
D2 = np.geomspace(1e-6, 1e4, 200).astype(np.float32)
EPSILON = 0.1  # of cpp/layout/force.hpp


@pytest.mark.parametrize("gamma", [1.0, 7.0, 0.3])
def test_forces_equal_the_reference(gamma: float) -> None:
    attract, repel = _core.force_table(D2, "largevis", 1.0, 1.0, gamma)
    assert_equation("21", attract, reference.largevis_attract(D2), rtol=1e-6)
    assert_equation("21", repel, reference.largevis_repel(D2, gamma, EPSILON), rtol=1e-6)


def test_forces_are_the_gradient_of_the_cost() -> None:
    """The attraction of p_ij and the repulsion of all pairs equal finite differences of c5."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(12, 2))
    p = rng.uniform(size=(12, 12))
    p = (p + p.T) / 2.0
    np.fill_diagonal(p, 0.0)
    gamma, step = 0.4, 1e-6
    d2 = reference.squared_distances(y) + np.eye(12)
    pair = 2.0 * (p * reference.largevis_attract(d2) + reference.largevis_repel(d2, gamma, 0.0))
    np.fill_diagonal(pair, 0.0)
    found = (pair[:, :, None] * (y[:, None] - y[None])).sum(axis=1)
    for row in range(12):
        for c in range(2):
            way = np.zeros_like(y)
            way[row, c] = step
            change = reference.largevis_cost(p, y + way, gamma) - reference.largevis_cost(p, y - way, gamma)
            assert found[row, c] == pytest.approx(change / (2 * step), rel=1e-5)


def ring(n: int) -> Graph:
    """Return a graph in which the only edge of each row leads to the next row."""
    tails = ((np.arange(n) + 1) % n).astype(np.int32)
    zeros = np.zeros(n, dtype=np.float32)
    return Graph(np.arange(n + 1), tails, np.ones(n, dtype=np.float32), n, zeros, zeros)


def drawn_counts(weights: NDArray[np.float64], epochs: int) -> NDArray[np.float64]:
    """Count how often each row was a negative.

    Point i of the reference lies alone on axis i, so a head at the origin is pushed along the axes of its negatives.
    """
    n = len(weights)
    heads = 400
    tails = np.zeros(heads, dtype=np.int32)
    zeros = np.zeros(heads, dtype=np.float32)
    graph = Graph(np.arange(heads + 1), tails, np.ones(heads, dtype=np.float32), n, zeros, zeros)
    counts = np.zeros(n)
    for epoch in range(epochs):
        layout = Placement(
            graph,
            np.zeros((heads, n), dtype=np.float32),
            np.eye(n, dtype=np.float32),
            FORCES,
            Schedule(1, negative_sample_rate=1, repulsion_strength=1e-3, sweeps=1),
            seed=epoch,
            negative_weights=weights,
        )
        pulled = Placement(
            graph,
            np.zeros((heads, n), dtype=np.float32),
            np.eye(n, dtype=np.float32),
            FORCES,
            Schedule(1, negative_sample_rate=0, sweeps=1),
            seed=epoch,
        )
        layout.step(1)
        pulled.step(1)
        push = layout.embedding - pulled.embedding
        counts += np.bincount(np.argmin(push, axis=1), minlength=n)
    return counts


def test_negatives_are_drawn_in_proportion_to_their_weights() -> None:
    weights = np.array([0.0, 1.0, 2.0, 5.0, 0.5, 11.0, 3.0, 0.25, 1.0, 8.0]) ** 0.75
    counts = drawn_counts(weights, 40)
    expected = weights / weights.sum() * counts.sum()
    assert counts.sum() == 40 * 400
    assert counts[0] == 0
    # The counts are within five standard deviations.
    assert (np.abs(counts - expected) <= 5.0 * np.sqrt(expected) + 1e-9).all()


def test_equal_weights_give_the_draws_of_no_weights() -> None:
    start = np.random.default_rng(1).uniform(0, 5, size=(64, 2)).astype(np.float32)
    plain, weighed = (
        Layout(ring(64), start, FORCES, Schedule(20), negative_weights=weights) for weights in (None, np.full(64, 3.0))
    )
    plain.step(20)
    weighed.step(20)
    np.testing.assert_array_equal(plain.embedding, weighed.embedding)


@pytest.mark.parametrize("weights", [np.ones(63), -np.ones(64), np.zeros(64), np.full(64, np.nan)], ids=str)
def test_invalid_negative_weights_are_rejected(weights: NDArray[np.float64]) -> None:
    start = np.zeros((64, 2), dtype=np.float32)
    with pytest.raises(ValueError, match="weight"):
        Layout(ring(64), start, FORCES, Schedule(20), negative_weights=weights)
