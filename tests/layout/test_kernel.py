"""Kernel and fit_ab: shape of the curve, and valid parameters over the whole range of arguments."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal import Kernel, fit_ab

SPREADS = (0.001, 0.01, 0.1, 0.5, 1.0, 3.0, 10.0, 100.0)


def test_kernel_falls_from_one_to_zero() -> None:
    q = Kernel(1.577, 0.8951)(np.array([0.0, 0.1, 1.0, 10.0, 1e12]))
    assert q[0] == 1.0
    assert (np.diff(q) < 0).all()
    assert q[-1] < 1e-6


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("spread", SPREADS)
def test_fitted_kernels_are_close_to_the_target_curve(spread: float) -> None:
    for min_dist in spread * np.array([0.0, 0.1, 0.5, 0.75, 1.0]):
        kernel = fit_ab(spread, float(min_dist))
        assert kernel.a > 0
        assert kernel.b > 0
        d = np.linspace(0, 3 * spread, 100)
        wanted = np.where(d < min_dist, 1.0, np.exp(-(d - min_dist) / spread))
        assert np.abs(kernel(d**2) - wanted).max() < 0.2


@pytest.mark.filterwarnings("error")
def test_fitted_kernels_scale_with_the_spread() -> None:
    """In units of the spread the curve is always the same, so b is constant and a is proportional to spread^-2b."""
    one = fit_ab(1.0, 0.1)
    for spread in SPREADS:
        kernel = fit_ab(spread, 0.1 * spread)
        assert kernel.b == pytest.approx(one.b, rel=1e-3)
        assert kernel.a * spread ** (2 * kernel.b) == pytest.approx(one.a, rel=1e-3)


def test_a_larger_min_dist_makes_the_top_flatter() -> None:
    tops = [fit_ab(1.0, min_dist)(0.25) for min_dist in (0.0, 0.1, 0.5, 0.9)]
    assert (np.diff(tops) > 0).all()


@pytest.mark.parametrize("spread", [1e300, 1e16, 1e-16, 1e-300])
def test_a_spread_beyond_float32_is_refused(spread: float) -> None:
    with pytest.raises(ValueError, match="spread must lie between 1e-15 and 1e\\+15, got"):
        fit_ab(spread=spread, min_dist=0.0)
