"""Synthetic rows of known shape. Grid, swiss roll and signal come in the order in which such data are recorded."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

SEED = 20240229
GRID_SIDE, GRID_NOISE = 70, 0.1
ROLL_ROWS, ROLL_NOISE = 5000, 0.05
SIGNAL_ROWS, SIGNAL_PERIODS, SIGNAL_NOISE = 5000, (100.0, 137.3), 0.05
DELAYS, DELAY_STEP = 10, 5
CUBE_ROWS, CUBE_COLUMNS = 20_000, 5
SPHERES, SPHERE_ROWS, SPHERE_COLUMNS, SPHERE_RADIUS, OUTER_ROWS, OUTER_RADIUS = 10, 500, 101, 5.0, 5000, 25.0
SKEWED_ROWS, SKEWED_COLUMNS = 10_000, 10
SET_ROWS, SET_ITEMS, SET_WIDTH, SET_CHANCE, SET_NOISE = 5000, 300, 0.15, 0.6, 0.01
NOISE_ROWS, NOISE_COLUMNS = 50_000, 500
MIXTURE_ROWS, MIXTURE_COLUMNS, MIXTURE_RANK = 250_000, 50, 8
MIXTURE_SPREAD, MIXTURE_NOISE = 0.5, 0.1

Labeled = tuple[np.ndarray, np.ndarray | None]


def grid() -> Labeled:
    """Make a noisy square grid in raster order, as pixels or cells of a table come."""
    down, right = np.divmod(np.arange(GRID_SIDE**2), GRID_SIDE)
    rng = np.random.default_rng(SEED)
    return np.stack([down, right], axis=1) + GRID_NOISE * rng.normal(size=(GRID_SIDE**2, 2)), None


def swiss_roll() -> Labeled:
    """Make a swiss roll whose rows are sorted along the roll."""
    rng = np.random.default_rng(SEED)
    angle = np.sort(1.5 * np.pi * (1.0 + 2.0 * rng.random(ROLL_ROWS)))
    places = np.stack([angle * np.cos(angle), 21.0 * rng.random(ROLL_ROWS), angle * np.sin(angle)], axis=1)
    return places + ROLL_NOISE * rng.normal(size=places.shape), None


def unrolled(rows: np.ndarray) -> np.ndarray:
    """Return the sheet of a swiss roll: the length along the roll, whose radius is its angle, and the height."""
    angle = np.hypot(rows[:, 0], rows[:, 2])
    return np.stack([(angle * np.hypot(1.0, angle) + np.arcsinh(angle)) / 2.0, rows[:, 1]], axis=1)


def signal() -> Labeled:
    """Make delayed copies of a noisy signal of two periods, in the order of time."""
    rng = np.random.default_rng(SEED)
    time = np.arange(SIGNAL_ROWS + DELAYS * DELAY_STEP)
    first, second = (np.sin(2.0 * np.pi * time / period) for period in SIGNAL_PERIODS)
    values = first + 0.5 * second + SIGNAL_NOISE * rng.normal(size=len(time))
    starts = range(0, DELAYS * DELAY_STEP, DELAY_STEP)
    return np.stack([values[start : start + SIGNAL_ROWS] for start in starts], axis=1), None


def uniform() -> Labeled:
    """Make uniform rows in a cube."""
    return np.random.default_rng(SEED).random((CUBE_ROWS, CUBE_COLUMNS)), None


def spheres() -> Labeled:
    """Make ten spheres of 100 dimensions inside a large one."""
    rng = np.random.default_rng(SEED)
    sizes = [*[SPHERE_ROWS] * SPHERES, OUTER_ROWS]
    labels = np.repeat(np.arange(SPHERES + 1), sizes)
    centers = rng.normal(scale=10.0 / np.sqrt(SPHERE_COLUMNS), size=(SPHERES + 1, SPHERE_COLUMNS))
    centers[-1] = 0.0
    radii = np.array([*[SPHERE_RADIUS] * SPHERES, OUTER_RADIUS])
    rows = rng.normal(size=(len(labels), SPHERE_COLUMNS))
    rows *= radii[labels, None] / np.linalg.norm(rows, axis=1, keepdims=True)
    shuffled = rng.permutation(len(labels))
    return (centers[labels] + rows)[shuffled], labels[shuffled]


def lognormal() -> Labeled:
    """Make rows with independent lognormal columns: a dense center and few distant rows."""
    return np.random.default_rng(SEED).lognormal(size=(SKEWED_ROWS, SKEWED_COLUMNS)), None


def sets() -> Labeled:
    """Make binary rows: a row and every item have a place in a square, and a row holds mostly the items near it."""
    rng = np.random.default_rng(SEED)
    rows, items = rng.random((SET_ROWS, 2)), rng.random((SET_ITEMS, 2))
    d2 = ((rows[:, None, :] - items[None, :, :]) ** 2).sum(axis=2)
    chance = SET_CHANCE * np.exp(-d2 / (2.0 * SET_WIDTH**2)) + SET_NOISE
    return (rng.random(d2.shape) < chance), None


def noise() -> Labeled:
    """Make Gaussian rows without structure, in which neighbors are as hard to find as they can be."""
    return np.random.default_rng(SEED).normal(size=(NOISE_ROWS, NOISE_COLUMNS)), None


def mixture(clusters: int, n: int = MIXTURE_ROWS, columns: int = MIXTURE_COLUMNS) -> Labeled:
    """Make flat Gaussian clusters, each of its own 8 directions, most of which are separate pieces of the graph."""
    rng = np.random.default_rng(SEED)
    centers = rng.normal(size=(clusters, columns))
    labels = rng.integers(clusters, size=n)
    rows = np.empty((n, columns), dtype=np.float32)
    by_cluster = np.split(np.argsort(labels, kind="stable"), np.cumsum(np.bincount(labels, minlength=clusters))[:-1])
    for center, members in zip(centers, by_cluster, strict=True):
        directions = MIXTURE_SPREAD * rng.normal(size=(MIXTURE_RANK, columns))
        inside = rng.normal(size=(len(members), MIXTURE_RANK)) @ directions
        rows[members] = center + inside + MIXTURE_NOISE * rng.normal(size=inside.shape)
    return rows, labels


MIXTURES = {f"mixture-{clusters}": clusters for clusters in (1, 200, 2000, 20_000)}
SHAPES: dict[str, Callable[[], Labeled]] = {
    "grid": grid,
    "swiss roll": swiss_roll,
    "signal": signal,
    "uniform": uniform,
    "spheres": spheres,
    "lognormal": lognormal,
    "sets": sets,
    "noise": noise,
    **{name: partial(mixture, clusters) for name, clusters in MIXTURES.items()},
}
# The metric of data that are not Euclidean.
METRICS = {"sets": "jaccard"}
