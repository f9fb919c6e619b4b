"""The forces of UMAP against eq. 12 and 13, and against finite differences of their costs."""

from __future__ import annotations

import os

import numpy as np
import pytest
import reference
from measured import assert_equation

from vicinal.backends import _core

KERNELS = ((1.577, 0.8951), (1.929, 0.7915), (1.0, 1.0), (0.3, 1.4), (5.0, 0.55))
D2 = np.geomspace(1e-6, 1e4, 200).astype(np.float32)
# The backend computes powers by a polynomial in float32.
TOLERANCE = 1e-5


@pytest.mark.parametrize(("a", "b"), KERNELS)
@pytest.mark.parametrize("gamma", [1.0, 0.3, 4.0])
def test_forces_equal_the_reference(a: float, b: float, gamma: float) -> None:
    attract, repel = _core.force_table(D2, "umap", a, b, gamma)
    d2 = D2.astype(np.float64)
    assert_equation("12", attract, reference.attract_coefficient(d2, a, b), rtol=TOLERANCE)
    assert_equation("13", repel, gamma * reference.repel_coefficient(d2, a, b), rtol=TOLERANCE)


@pytest.mark.parametrize(("a", "b"), KERNELS)
def test_forces_are_the_derivatives_of_the_costs(a: float, b: float) -> None:
    """With t = d², the gradient by y_i is 2 c'(t) (y_i - y_j); eps multiplies eq. 13 by d² / (eps + d²)."""
    attract, repel = _core.force_table(D2, "umap", a, b, 1.0)
    d2 = D2.astype(np.float64)
    step = 1e-5 * d2
    by_attract = reference.attract_cost(d2 + step, a, b) - reference.attract_cost(d2 - step, a, b)
    by_repel = reference.repel_cost(d2 + step, a, b) - reference.repel_cost(d2 - step, a, b)
    np.testing.assert_allclose(attract, by_attract / step, rtol=1e-4)
    np.testing.assert_allclose(repel, by_repel / step * d2 / (reference.EPS + d2), rtol=1e-4)


@pytest.mark.parametrize(("a", "b"), KERNELS)
def test_forces_are_finite_at_all_distances(a: float, b: float) -> None:
    d2 = np.array([0.0, 1e-45, 1e-38, 1e-30, 1e-12, 1e20, 1e30, 3e38], dtype=np.float32)
    attract, repel = _core.force_table(d2, "umap", a, b, 1.0)
    assert np.isfinite(attract).all()
    assert np.isfinite(repel).all()
    assert (attract >= 0).all()
    assert (repel <= 0).all()
    # The step is the coefficient times a vector of length d, so it must go to 0 with d.
    assert attract[1] * np.sqrt(d2[1]) < 1e-6


@pytest.mark.skipif("VICINAL_SANITIZED" in os.environ, reason="torch is not built for the sanitizers")
@pytest.mark.parametrize(("a", "b"), KERNELS)
@pytest.mark.parametrize("d2", [D2, np.array([0.0, 1e-45, 1e-38, 1e-30, 1e-12, 1e20], dtype=np.float32)])
def test_the_parametric_loss_has_the_gradients_of_the_layout(a: float, b: float, d2: np.ndarray) -> None:
    """The gradient in torch is the coefficient of the table times the difference, each component clipped to 4."""
    torch = pytest.importorskip("torch")
    from vicinal.layout.forces import Kernel
    from vicinal.parametric import loss

    d = np.sqrt(d2)
    table = _core.force_table(d2, "umap", a, b, 1.0)
    for cost, coefficient in zip((loss.attract_cost, loss.repel_cost), table, strict=True):
        difference = torch.tensor(np.stack([0.6 * d, -0.8 * d], axis=1), requires_grad=True)
        value = cost(difference, Kernel(a, b))
        value.sum().backward()
        assert np.isfinite(value.detach().numpy()).all()
        expected = np.clip(coefficient[:, None] * difference.detach().numpy(), -loss.CLIP, loss.CLIP)
        np.testing.assert_allclose(difference.grad.numpy(), expected, rtol=1e-4, atol=1e-6)
    d2 = D2.astype(np.float64)
    places = torch.tensor(np.sqrt(d2))[:, None]
    assert_equation(
        "8, Algorithm 2", loss.attract_cost(places, Kernel(a, b)), reference.attract_cost(d2, a, b), rtol=1e-9
    )
    assert_equation("9, Algorithm 2", loss.repel_cost(places, Kernel(a, b)), reference.repel_cost(d2, a, b), rtol=1e-9)
