"""a and b of eq. 5 against golden values of umap-learn and against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from measured import assert_equation

from vicinal import Kernel, fit_ab


def test_fit_ab_equals_that_of_umap_learn(golden: Any) -> None:
    file = golden("kernel")
    for spread, min_dist, a, b in zip(file["spread"], file["min_dist"], file["a"], file["b"], strict=True):
        kernel = fit_ab(float(spread), float(min_dist))
        assert (kernel.a, kernel.b) == pytest.approx((a, b), rel=1e-5), (spread, min_dist)


def test_the_defaults_have_the_values_for_min_dist_0_1() -> None:
    kernel = fit_ab()
    assert (kernel.a, kernel.b) == pytest.approx((1.577, 0.8951), abs=1e-3)
    early = fit_ab(min_dist=0.001)
    assert (early.a, early.b) == pytest.approx((1.929, 0.7915), abs=1e-3)
    assert (kernel.a, kernel.b) == pytest.approx(reference.fit_ab(), rel=1e-6)


@pytest.mark.parametrize(("a", "b"), [(1.577, 0.8951), (1.0, 1.0), (5.0, 0.55)])
def test_kernel_equals_the_reference(a: float, b: float) -> None:
    d2 = np.concatenate([[0.0], np.geomspace(1e-6, 1e6, 50)])
    assert_equation("5", Kernel(a, b)(d2), reference.kernel(d2, a, b), rtol=1e-12)
