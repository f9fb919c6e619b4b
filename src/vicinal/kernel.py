"""The low-dimensional kernel q(d²) = 1 / (1 + a d^{2b}) (survey eq. 5) and the choice of a and b."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Kernel:
    """q(d²) = 1 / (1 + a d^{2b}); a = b = 1 is the Cauchy kernel of t-SNE and LargeVis."""

    a: float
    b: float

    def __call__(self, d2: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(1.0 / (1.0 + self.a * np.asarray(d2, dtype=np.float64) ** self.b))


def fit_ab(spread: float = 1.0, min_dist: float = 0.1) -> Kernel:
    """The kernel nearest to the curve that is 1 up to ``min_dist`` and then falls as exp(-(d - min_dist)/spread).

    The survey quotes a ≈ 1.929, b ≈ 0.7915, which belong to ``min_dist=0.001``; the default 0.1 gives
    a ≈ 1.577, b ≈ 0.8951.
    """
    from scipy.optimize import curve_fit

    if not spread > 0 or not 0 <= min_dist <= spread:
        raise ValueError(f"min_dist must lie in [0, spread], got min_dist={min_dist}, spread={spread}")
    # In units of the spread, so that the fit starts equally near for all of them.
    d = np.linspace(0, 3, 300)
    near = min_dist / spread
    wanted = np.where(d < near, 1.0, np.exp(-(d - near)))
    with np.errstate(divide="ignore", over="ignore"):  # on its way the fit may try a negative power of 0
        (a, b), _ = curve_fit(lambda d, a, b: 1.0 / (1.0 + a * d ** (2 * b)), d, wanted)
    return Kernel(float(a / spread ** (2 * b)), float(b))
