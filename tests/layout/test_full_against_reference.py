"""Gradient and cost of t-SNE (survey eq. 20, 22) against finite differences and the reference."""

from __future__ import annotations

import numpy as np
import pytest
import reference
from measured import assert_equation
from numpy.typing import NDArray

from vicinal import FullLayout, Graph, Phase, entropic_graph, find_neighbors
from vicinal.backends import _core, cpu
from vicinal.quality.losses import kl_divergence

DOFS = (1.0, 0.5, 3.0)
FIRST_GAIN = 1.2


@pytest.fixture(scope="module")
def small() -> Graph:
    data = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    return entropic_graph(find_neighbors(data, 61), 20.0)


@pytest.fixture(scope="module")
def large() -> Graph:
    data = np.random.default_rng(0).normal(size=(4000, 6)).astype(np.float32)
    return entropic_graph(find_neighbors(data, 31), 10.0)


def first_move(
    graph: Graph, places: NDArray[np.float32], method: str, dof: float, **phase: float
) -> NDArray[np.float64]:
    """Return the moves of the first iteration, centered."""
    layout = FullLayout(graph, places, [Phase(1, momentum=0.0, **phase)], dof=dof, method=method)  # type: ignore[arg-type]
    layout.step(1)
    move = layout.embedding.astype(np.float64) - places
    return np.asarray(move - move.mean(axis=0))


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_reference_gradient_is_the_derivative_of_its_cost(dof: float, n_components: int) -> None:
    rng = np.random.default_rng(1)
    p = rng.random((12, 12)) * (rng.random((12, 12)) < 0.5)
    p = p + p.T
    np.fill_diagonal(p, 0.0)
    p /= p.sum()
    y = rng.normal(size=(12, n_components))
    gradient = reference.kl_gradient(p, y, dof)
    step = 1e-6
    for i in range(12):
        for c in range(n_components):
            ahead, behind = y.copy(), y.copy()
            ahead[i, c] += step
            behind[i, c] -= step
            slope = (reference.kl_divergence(p, ahead, dof) - reference.kl_divergence(p, behind, dof)) / (2 * step)
            assert gradient[i, c] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
def test_exact_gradient_equals_the_reference(small: Graph, dof: float, n_components: int) -> None:
    places = (np.random.default_rng(2).normal(size=(300, n_components)) * 5).astype(np.float32)
    expected = reference.kl_gradient(small.to_scipy().toarray(), places, dof, exaggeration=3.0)
    # The moves are larger than the rounding of the places and shorter than the longest step.
    rate = 1.0 / np.abs(expected).max()
    move = first_move(small, places, "exact", dof, exaggeration=3.0, learning_rate=rate)
    expected = -rate * FIRST_GAIN * (expected - expected.mean(axis=0))
    assert_equation("20", move, expected, rtol=0, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize(
    ("n_components", "width", "tolerance"),
    [
        (1, 30.0, 0.01),
        # Such a narrow start lies within one cell, where float32 resolves the slope to a few hundredths.
        (2, 1e-4, 0.05),
        (2, 1.0, 0.01),
        (2, 6.0, 0.01),
        (2, 15.0, 0.01),
        (3, 4.0, 0.02),
    ],
)
def test_grid_gradient_equals_the_exact_gradient(
    large: Graph, dof: float, n_components: int, width: float, tolerance: float
) -> None:
    places = (np.random.default_rng(3).normal(size=(4000, n_components)) * width).astype(np.float32)
    places -= places.mean(axis=0)
    # Repulsion only, since both methods compute the attraction by the same code.
    alone = Graph(np.zeros(4001, np.int64), large.indices[:0], large.weights[:0], 4000, large.rho, large.sigma)
    rate = 1e4 * max(width, 1.0)
    exact, grid = (first_move(alone, places, m, dof, learning_rate=rate) for m in ("exact", "fft"))
    assert np.linalg.norm(grid - exact) < tolerance * np.linalg.norm(exact)


@pytest.mark.parametrize("shape", [(17,), (40,), (13, 25), (41, 16), (12, 13, 17)])
def test_convolution_equals_the_sum_over_all_nodes(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(5)
    values = rng.random(shape).astype(np.float32)
    transforms = cpu.Transforms(2)
    padded = transforms.lengths(tuple(2 * nodes for nodes in shape))
    half = np.meshgrid(*(np.arange(length // 2 + 1) for length in padded), indexing="ij")
    kernel = 1.0 / (1.0 + 0.3 * sum(offset**2 for offset in half))
    transfer = transforms.transform_even(kernel, padded).astype(np.float32)
    found = transforms.convolution(transfer, padded)(values)
    nodes = np.indices(shape).reshape(len(shape), -1)
    offsets = np.abs(nodes[:, :, None] - nodes[:, None, :])
    expected = kernel[tuple(offsets)] @ values.reshape(-1).astype(np.float64)
    assert_equation("20", found.reshape(-1), expected, rtol=2e-6, atol=0)
    alone = cpu.Transforms(1).convolution(transfer, padded)(values)
    assert alone.tobytes() == found.tobytes()


@pytest.mark.parametrize("padded", [[1, 1, 30], [14, 1, 32], [1, 33, 64]])
def test_convolution_refuses_lengths_that_it_cannot_transform(padded: list[int]) -> None:
    transfer = np.zeros(int(np.prod([length // 2 + 1 for length in padded])), np.float32)
    with pytest.raises(ValueError, match=r"padded length|too short"):
        _core.GridConvolution(padded, transfer)


def test_convolution_refuses_grids_of_other_sizes() -> None:
    with pytest.raises(ValueError, match="another shape"):
        _core.GridConvolution([1, 1, 32], np.zeros(16, np.float32))
    convolve = _core.GridConvolution([1, 1, 32], np.zeros(17, np.float32))
    with pytest.raises(ValueError, match="at most half"):
        convolve(np.zeros(17, np.float32), [1, 1, 17], 1)
    with pytest.raises(ValueError, match="differ in their number"):
        convolve(np.zeros(16, np.float32), [1, 1, 15], 1)


@pytest.mark.parametrize("dof", DOFS)
@pytest.mark.parametrize("n_components", [1, 2, 3, 6])
def test_divergence_equals_the_reference(small: Graph, dof: float, n_components: int) -> None:
    places = (np.random.default_rng(4).normal(size=(300, n_components)) * 4).astype(np.float32)
    expected = reference.kl_divergence(small.to_scipy().toarray(), places, dof)
    assert_equation("22", kl_divergence(small, places, dof).value, expected, rtol=1e-6)


def test_divergence_is_zero_for_equal_distributions() -> None:
    places = np.random.default_rng(5).normal(size=(40, 2)).astype(np.float32)
    q = reference.student_probabilities(places)
    graph = entropic_graph(find_neighbors(places, 40), 10.0)
    indptr = np.arange(0, 1601, 40, dtype=np.int64)
    indices = np.tile(np.arange(40, dtype=np.int32), 40)
    graph = Graph(indptr, indices, q.astype(np.float32).reshape(-1), 40, graph.rho, graph.sigma)
    assert kl_divergence(graph, places).value == pytest.approx(0.0, abs=1e-6)


def test_layout_reduces_the_divergence(small: Graph) -> None:
    start = (np.random.default_rng(6).normal(size=(300, 2)) * 1e-4).astype(np.float32)
    layout = FullLayout(small, start, [Phase(100, 12.0, 300 / 48), Phase(200, 1.0, 75.0)])
    found = []
    for steps in (100, 50, 150):
        layout.step(steps)
        found.append(kl_divergence(small, layout.embedding).value)
    assert kl_divergence(small, start).value > found[0] > found[1] > found[2]
