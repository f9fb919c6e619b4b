"""The kernel of the map, q(d²) = 1 / (1 + a d^{2b}) (survey eq. 5), and the choice of a and b."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Kernel:
    """Similarity of two points of a map, q(d²) = 1 / (1 + a d^{2b}).

    a = b = 1 is the Cauchy kernel of t-SNE and LargeVis. Calling a kernel with squared distances returns q.

    See Also
    --------
    fit_ab : the kernel of ``min_dist`` and ``spread``.

    Examples
    --------
    >>> from vicinal import Kernel
    >>> float(Kernel(1.0, 1.0)(4.0))
    0.2
    """

    a: float
    b: float

    def __call__(self, d2: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(1.0 / (1.0 + self.a * np.asarray(d2, dtype=np.float64) ** self.b))


def fit_ab(spread: float = 1.0, min_dist: float = 0.1) -> Kernel:
    """Fit a kernel to the curve that is 1 up to ``min_dist`` and then decays as exp(-(d - min_dist) / spread).

    Parameters
    ----------
    spread : float, default 1
        Scale of the decay.
    min_dist : float, default 0.1
        Width of the flat top, at most ``spread``.

    Returns
    -------
    kernel : Kernel
        a ≈ 1.577, b ≈ 0.8951 for the defaults. (The survey's a ≈ 1.929, b ≈ 0.7915 belong to ``min_dist=0.001``.)

    See Also
    --------
    Kernel : the result.

    Examples
    --------
    >>> from vicinal import fit_ab
    >>> kernel = fit_ab(min_dist=0.1)
    >>> round(kernel.a, 3), round(kernel.b, 4)
    (1.577, 0.8951)
    """
    if not spread > 0 or not 0 <= min_dist <= spread:
        raise ValueError(f"min_dist must lie in [0, spread], got min_dist={min_dist}, spread={spread}")
    # In units of the spread, so that the start of the fit is equally good for any spread.
    d = np.linspace(0, 3, 300)
    near = min_dist / spread
    wanted = np.where(d < near, 1.0, np.exp(-(d - near)))
    a, b = _least_squares(d[1:], wanted[1:])  # at d = 0 every kernel is 1
    return Kernel(a / spread ** (2 * b), b)


def _least_squares(d: NDArray[np.float64], wanted: NDArray[np.float64]) -> tuple[float, float]:
    """Return the a, b that minimise |q(d²) - wanted|², by damped Gauss-Newton steps on (ln a, b).

    With s = ln a + 2b ln d the kernel is q = 1/(1 + e^s), and dq/ds = -q (1 - q). Two unknowns do not need
    scipy.optimize, whose import takes longer than the fit of a small map.
    """
    slope = np.stack([np.ones_like(d), 2.0 * np.log(d)], axis=1)  # derivative of s by (ln a, b)
    at, damping = np.array([0.0, 1.0]), 1e-3

    def kernel(at: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(1.0 / (1.0 + np.exp(np.minimum(slope @ at, 700.0))))

    q = kernel(at)
    for _ in range(200):
        jacobian = -(q * (1.0 - q))[:, None] * slope
        normal = jacobian.T @ jacobian
        step = np.linalg.solve(normal + damping * np.diag(np.diag(normal)), jacobian.T @ (wanted - q))
        q_there = kernel(at + step)
        if np.sum((q_there - wanted) ** 2) <= np.sum((q - wanted) ** 2):
            at, q, damping = at + step, q_there, damping * 0.1
            if np.abs(step).max() < 1e-12:
                break
        else:
            damping *= 10.0
    return float(np.exp(at[0])), float(at[1])
