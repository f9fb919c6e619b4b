"""Distances of the map against the reference, and their gradients against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import reference
from numpy.typing import NDArray
from scipy.spatial import distance as scipy_distance

from vicinal.backends import _core
from vicinal.layout.forces import OUTPUT_METRICS, output_space

INVERSE = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.2], [0.1, -0.2, 0.7]])
WEIGHTS = np.array([0.5, 2.0, 1.3])
CASES: dict[str, tuple[str, dict[str, Any], int]] = {
    "euclidean": ("euclidean", {}, 3),
    "manhattan": ("manhattan", {}, 3),
    "chebyshev": ("chebyshev", {}, 3),
    "minkowski 1.5": ("minkowski", {"p": 1.5}, 3),
    "minkowski 7": ("minkowski", {"p": 7.0}, 2),
    "wminkowski": ("wminkowski", {"p": 3.0, "w": WEIGHTS}, 3),
    "seuclidean": ("seuclidean", {"V": WEIGHTS}, 3),
    "mahalanobis": ("mahalanobis", {"VI": INVERSE}, 3),
    "canberra": ("canberra", {}, 3),
    "braycurtis": ("braycurtis", {}, 3),
    "cosine": ("cosine", {}, 3),
    "correlation": ("correlation", {}, 4),
    "haversine": ("haversine", {}, 2),
    "hyperboloid": ("hyperboloid", {}, 3),
}


def pairs(dim: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return heads and tails at distances from far to very near, around the origin and away from it."""
    rng = np.random.default_rng(3)
    heads = rng.normal(scale=3.0, size=(600, dim)).astype(np.float32)
    apart = rng.normal(size=(600, dim)) * np.repeat(np.geomspace(1e-2, 5.0, 6), 100)[:, None]
    return heads, (heads + apart).astype(np.float32)


def table(case: str, heads: Any, tails: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    name, keywords, dim = CASES[case]
    space = output_space(name, keywords, dim)
    d2, delta = _core.space_table(heads, tails, space.kind, list(space.values))
    return d2.astype(np.float64), delta.astype(np.float64)


@pytest.mark.parametrize("case", CASES)
def test_distances_equal_the_reference(case: str) -> None:
    name, keywords, dim = CASES[case]
    heads, tails = pairs(dim)
    d2, _ = table(case, heads, tails)
    expected = np.array([reference.output_distance(name, x, y, **keywords) for x, y in zip(heads, tails, strict=True)])
    # The tolerance allows for the rounding of places to float32.
    np.testing.assert_allclose(np.sqrt(d2), expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("case", CASES)
def test_gradients_equal_finite_differences(case: str) -> None:
    """delta is half the gradient of d² by the head."""
    name, keywords, dim = CASES[case]
    heads, tails = pairs(dim)
    _, delta = table(case, heads, tails)

    def half_square(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        return 0.5 * reference.output_distance(name, x, y, **keywords) ** 2

    step, compared = 1e-6, 0
    for x, y, found in zip(heads.astype(np.float64), tails.astype(np.float64), delta, strict=True):
        if name in ("manhattan", "chebyshev", "minkowski", "canberra", "braycurtis") and near_kink(x, y):
            continue
        compared += 1
        ways = step * np.eye(dim)
        expected = [(half_square(x + way, y) - half_square(x - way, y)) / (2 * step) for way in ways]
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=f"{x} {y}")
    assert compared > 400


def near_kink(x: NDArray[np.float64], y: NDArray[np.float64]) -> bool:
    """Return whether an absolute value or a maximum changes sides within the finite difference."""
    sizes = np.sort(np.abs(x - y))
    return bool(sizes[0] < 1e-4 or sizes[-1] - sizes[-2] < 1e-4 or min(np.abs(x).min(), np.abs(x + y).min()) < 1e-4)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_finite_everywhere(case: str) -> None:
    """The places include equal places, the origin, antipodes, axes and places far away."""
    dim = CASES[case][2]
    spots = np.concatenate([np.zeros((1, dim)), np.eye(dim), -np.eye(dim), np.full((1, dim), 1e-20), 1e6 * np.eye(dim)])
    if dim == 2:
        spots = np.concatenate([spots, [[0.0, np.pi], [np.pi, 0.0], [np.pi / 2, 0.0], [np.pi / 2, np.pi]]])
    heads = np.repeat(spots, len(spots), axis=0).astype(np.float32)
    tails = np.tile(spots, (len(spots), 1)).astype(np.float32)
    d2, delta = table(case, heads, tails)
    assert np.isfinite(d2).all()
    assert np.isfinite(delta).all()
    assert (d2 >= 0).all()
    same = (heads == tails).all(axis=1)
    np.testing.assert_allclose(d2[same], 0.0, atol=1e-6)


@pytest.mark.parametrize("case", [c for c in CASES if c not in ("haversine", "hyperboloid", "wminkowski")])
def test_the_reference_agrees_with_scipy(case: str) -> None:
    name, keywords, dim = CASES[case]
    heads, tails = (part[:50].astype(np.float64) for part in pairs(dim))
    found = [reference.output_distance(name, x, y, **keywords) for x, y in zip(heads, tails, strict=True)]
    metric = {"manhattan": "cityblock"}.get(name, name)
    expected = np.diag(scipy_distance.cdist(heads, tails, metric, **keywords))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_every_output_metric_is_tested() -> None:
    tested = {output_space(name, keywords, dim).kind for name, keywords, dim in CASES.values()}
    keywords = {"seuclidean": {"V": WEIGHTS}, "mahalanobis": {"VI": INVERSE}}
    for name in OUTPUT_METRICS:
        dim = 2 if name == "haversine" else 3
        assert output_space(name, keywords.get(name), dim).kind in tested
