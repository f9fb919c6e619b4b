"""The forces of a sampled layout: attraction along edges, repulsion from negatives, and the distance of the map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import cpu


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


# Beyond these, a and the places of a map are no numbers of float32.
SMALLEST_SPREAD, LARGEST_SPREAD = 1e-15, 1e15


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
    if not SMALLEST_SPREAD <= spread <= LARGEST_SPREAD:
        raise ValueError(f"spread must lie between {SMALLEST_SPREAD:g} and {LARGEST_SPREAD:g}, got {spread:g}")
    # In units of the spread, so that the start of the fit is equally good for any spread.
    d = np.linspace(0, 3, 300)
    near = min_dist / spread
    wanted = np.where(d < near, 1.0, np.exp(-(d - near)))
    a, b = _least_squares(d[1:], wanted[1:])  # at d = 0 every kernel is 1
    return Kernel(a / spread ** (2 * b), b)


def _least_squares(d: NDArray[np.float64], wanted: NDArray[np.float64]) -> tuple[float, float]:
    """Return the a, b that minimize |q(d²) - wanted|², by damped Gauss-Newton steps on (ln a, b).

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


Floats = NDArray[np.float64]
Points = NDArray[np.float32]

WIDEST = 10.0  # of a start around the origin: distances in the hyperbolic plane grow exponentially


@dataclass(frozen=True)
class OutputSpace:
    """Distance of the map: the name of a distance in the backend, and its parameters.

    If ``kind`` is "function", ``function(x, y)`` returns the distance of two points and its gradient by the first.
    """

    kind: str = "euclidean"
    values: tuple[float, ...] = ()
    function: Callable[[Points, Points], tuple[float, Points]] | None = None

    @property
    def is_euclidean(self) -> bool:
        return self.kind == "euclidean"

    def start(self, embedding: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return initial places for this space, made from places of a euclidean start.

        For "haversine" the bounding box becomes a belt around the sphere that leaves the poles free. If the distance
        depends on the origin, the box is centered there and not larger than that of few rows.
        """
        if self.kind not in ("haversine", "hyperboloid", "cosine", "correlation") or embedding.size == 0:
            return embedding
        places = embedding.astype(np.float64)
        low, width = places.min(axis=0), np.ptp(places, axis=0)
        unit = (places - low) / np.where(width > 0, width, 1.0)
        unit[:, ~(width > 0)] = 0.5
        if self.kind == "haversine":
            places = np.pi * np.stack([0.15 + 0.7 * unit[:, 0], 1.8 * unit[:, 1]], axis=1)
        else:
            places = (unit - 0.5) * np.where(width > 0, np.minimum(width, WIDEST), 1.0)
        return places.astype(np.float32)

    def evaluate(self, heads: Points, tails: Points) -> tuple[Points, Points]:
        """Return the distance of each pair of rows, and its gradient with respect to the head."""
        if self.function is None:
            d2, half = cpu.space_table(heads, tails, self.kind, list(self.values))
            d = np.sqrt(d2)
            return d, np.divide(half, d[:, None], out=np.zeros_like(half), where=d[:, None] > 0)
        distances, gradients = np.empty(len(heads), dtype=np.float32), np.empty_like(heads)
        for i, (head, tail) in enumerate(zip(heads, tails, strict=True)):
            result = self.function(head, tail)
            try:
                distances[i], gradients[i] = result
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"output_metric must return a pair: the distance, and its gradient with {heads.shape[1]} numbers;"
                    f" got {result!r}"
                ) from error
        if not (np.isfinite(distances).all() and np.isfinite(gradients).all()):
            raise ValueError("output_metric returned a distance or a gradient that is not finite")
        return distances, gradients


EUCLIDEAN = OutputSpace()


def output_space(metric: Any, keywords: dict[str, Any] | None, n_components: int) -> OutputSpace:
    """Return the space of ``output_metric`` and ``output_metric_kwds``, or raise a ValueError that lists the names."""
    if callable(metric) and not isinstance(metric, str):
        space = OutputSpace("function", function=partial(metric, **(keywords or {})))
        # Two points show whether the function returns what it should.
        space.evaluate(*np.linspace(-1.0, 1.0, 2 * n_components, dtype=np.float32).reshape(2, 1, n_components))
        return space
    if not isinstance(metric, str) or metric not in OUTPUT_METRICS:
        raise ValueError(
            f"output_metric must be one of {sorted(OUTPUT_METRICS)} or a function that "
            f"returns (distance, gradient), got {metric!r}"
        )
    given = dict(keywords or {})
    space = OUTPUT_METRICS[metric](given, n_components)
    if given:
        raise ValueError(f"output_metric_kwds has {sorted(given)}, which output_metric={metric!r} does not accept")
    return space


def _plain(kind: str, least: int = 1, most: float = np.inf) -> Callable[[dict[str, Any], int], OutputSpace]:
    """Return a function that makes a space without parameters, for a limited number of components."""

    def make(keywords: dict[str, Any], n_components: int) -> OutputSpace:
        if not least <= n_components <= most:
            wanted = f"exactly {least}" if least == most else f"at least {least}"
            raise ValueError(f"output_metric={kind!r} requires n_components of {wanted}, got {n_components}")
        return OutputSpace(kind)

    return make


def _minkowski(keywords: dict[str, Any], n_components: int, p: float | None = None) -> OutputSpace:
    p = float(keywords.pop("p", 2.0)) if p is None else p
    if not 1.0 <= p < np.inf:
        raise ValueError(f"output_metric_kwds: p must be at least 1 and finite, got {p}")
    weights = _vector("w", keywords.pop("w", np.ones(n_components)), n_components)
    return OutputSpace("minkowski", (p, *weights))


def _seuclidean(keywords: dict[str, Any], n_components: int) -> OutputSpace:
    variances = _vector("V", _taken(keywords, "V", "sigma"), n_components)
    return OutputSpace("minkowski", (2.0, *(1.0 / variances)))


def _mahalanobis(keywords: dict[str, Any], n_components: int) -> OutputSpace:
    inverse = np.asarray(_taken(keywords, "VI", "vinv"), dtype=np.float64)
    if inverse.shape != (n_components, n_components) or not np.isfinite(inverse).all():
        raise ValueError(f"output_metric_kwds: VI must be a finite matrix of {n_components} by {n_components} numbers")
    try:
        factor = np.linalg.cholesky((inverse + inverse.T) / 2.0)
    except np.linalg.LinAlgError as error:
        raise ValueError("output_metric_kwds: VI must be positive definite") from error
    return OutputSpace("mahalanobis", tuple(factor.reshape(-1)))


def _taken(keywords: dict[str, Any], *names: str) -> Any:
    for name in names:
        if name in keywords:
            return keywords.pop(name)
    raise ValueError(f"output_metric_kwds lacks {names[0]}")


def _vector(name: str, values: ArrayLike, n: int) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.shape != (n,) or not np.isfinite(vector).all() or not (vector > 0).all():
        raise ValueError(f"output_metric_kwds: {name} must hold {n} positive numbers, got {values!r}")
    return vector


OUTPUT_METRICS: dict[str, Callable[[dict[str, Any], int], OutputSpace]] = {
    **dict.fromkeys(("euclidean", "l2"), _plain("euclidean")),
    **dict.fromkeys(("manhattan", "l1", "taxicab", "cityblock"), partial(_minkowski, p=1.0)),
    **dict.fromkeys(("chebyshev", "linfinity", "linfty", "linf"), _plain("chebyshev")),
    **dict.fromkeys(("minkowski", "wminkowski"), _minkowski),
    "seuclidean": _seuclidean,
    "mahalanobis": _mahalanobis,
    "canberra": _plain("canberra"),
    "braycurtis": _plain("braycurtis"),
    "cosine": _plain("cosine", 2),
    "correlation": _plain("correlation", 3),
    "haversine": _plain("haversine", 2, 2),
    "hyperboloid": _plain("hyperboloid"),
}


@dataclass(frozen=True)
class Forces:
    """Attraction and repulsion between points of a map, given the similarity of two points and their distance.

    ``kind`` is the cost that they are derived from: UMAP's cross-entropy (survey eq. 12, 13) or LargeVis' likelihood
    (eq. 23), which is defined for the euclidean distance only.
    """

    kernel: Kernel
    kind: Literal["umap", "largevis"] = "umap"
    space: OutputSpace = EUCLIDEAN

    def __post_init__(self) -> None:
        if self.kind not in cpu.FORCES:
            raise ValueError(f"kind must be {' or '.join(map(repr, cpu.FORCES))}, got {self.kind!r}")
        if self.kind != "umap" and not self.space.is_euclidean:
            raise ValueError(f"kind={self.kind!r} requires the euclidean distance, got space {self.space.kind!r}")
