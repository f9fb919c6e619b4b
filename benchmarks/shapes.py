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
SMALL_ROWS, SMALL_COLUMNS, STRIPS = 3000, 50, 12
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


def strips(place: np.ndarray) -> np.ndarray:
    """Return classes of about equal size along a coordinate."""
    return np.digitize(place, np.quantile(place, np.arange(1, STRIPS) / STRIPS))


def swiss_hole() -> Labeled:
    """Make a swiss roll with a rectangular hole, in random order, with strips along the roll as classes."""
    from sklearn.datasets import make_swiss_roll

    rows, angle = make_swiss_roll(SMALL_ROWS, noise=ROLL_NOISE, hole=True, random_state=SEED)
    return rows, strips(angle)


def s_curve() -> Labeled:
    """Make a sheet bent to an S, with strips along the curve as classes."""
    from sklearn.datasets import make_s_curve

    rows, angle = make_s_curve(SMALL_ROWS, noise=0.02, random_state=SEED)
    return rows, strips(angle)


def straightened(rows: np.ndarray) -> np.ndarray:
    """Return the sheet of an S curve, whose two arcs have radius 1: the length along the curve, and the height."""
    side = np.where(rows[:, 2] < 0.0, 1.0, -1.0)
    angle = np.arctan2(side * rows[:, 0], 1.0 - np.abs(rows[:, 2]))
    # Near the middle noise makes small angles negative; angles beyond pi belong to the ends of the arcs.
    angle = np.where(angle < -np.pi / 4.0, angle + 2.0 * np.pi, angle)
    return np.stack([side * angle, rows[:, 1]], axis=1)


def torus() -> Labeled:
    """Make the surface of a ring, with sectors of the ring as classes."""
    rng = np.random.default_rng(SEED)
    around, across = 2.0 * np.pi * rng.random((2, SMALL_ROWS))
    radius = 3.0 + np.cos(across)
    rows = np.stack([radius * np.cos(around), radius * np.sin(around), np.sin(across)], axis=1)
    return rows + 0.02 * rng.normal(size=rows.shape), strips(around)


def shells() -> Labeled:
    """Make four spheres of 10 dimensions with a common center."""
    rng = np.random.default_rng(SEED)
    labels = rng.integers(4, size=SMALL_ROWS)
    rows = rng.normal(size=(SMALL_ROWS, 10))
    return rows * ((labels + 1.0) / np.linalg.norm(rows, axis=1))[:, None], labels


def tree() -> Labeled:
    """Make a binary tree of 31 straight branches of 50 dimensions, with noise."""
    rng = np.random.default_rng(SEED)
    branches = 31
    labels = rng.integers(branches, size=SMALL_ROWS)
    steps = rng.normal(size=(branches, SMALL_COLUMNS))
    steps /= np.linalg.norm(steps, axis=1, keepdims=True)
    ends = np.zeros((branches, SMALL_COLUMNS))
    for branch in range(branches):
        ends[branch] = steps[branch] + (ends[(branch - 1) // 2] if branch else 0.0)
    along = rng.random((SMALL_ROWS, 1))
    rows = ends[labels] - (1.0 - along) * steps[labels]
    return rows + 0.03 * rng.normal(size=rows.shape), labels


def lineages() -> Labeled:
    """Make counts of 200 genes in cells of five lineages, which leave a common trunk one after the other."""
    rng = np.random.default_rng(SEED)
    genes, count = 200, 5
    labels, time = rng.integers(count, size=SMALL_ROWS), rng.random(SMALL_ROWS)
    waves = rng.random((count + 1, genes)), rng.normal(size=(count + 1, genes))
    leave = np.linspace(0.2, 0.7, count)[labels]
    shared, own = np.minimum(time, leave)[:, None], np.maximum(time - leave, 0.0)[:, None]
    trunk = np.sin(2.0 * np.pi * (shared + waves[0][-1])) * waves[1][-1]
    level = trunk + 2.0 * own * waves[1][labels] * np.sin(np.pi * waves[0][labels] + own)
    counts = rng.poisson(np.exp(1.0 + level))
    return np.log1p(counts / counts.sum(axis=1, keepdims=True) * 1e3), labels


def hierarchy() -> Labeled:
    """Make 125 Gaussian clusters: five groups of five groups of five, of spreads 100, 30, 10 and 3."""
    rng = np.random.default_rng(SEED)
    centers = np.zeros((1, SMALL_COLUMNS))
    for spread in (100.0, 30.0, 10.0):
        centers = np.repeat(centers, 5, axis=0)
        centers += spread / np.sqrt(SMALL_COLUMNS) * rng.normal(size=centers.shape)
    labels = np.arange(SMALL_ROWS) % len(centers)
    return centers[labels] + 3.0 / np.sqrt(SMALL_COLUMNS) * rng.normal(size=(SMALL_ROWS, SMALL_COLUMNS)), labels


def imbalanced() -> Labeled:
    """Make eight Gaussian clusters of 1,500 to 12 rows."""
    rng = np.random.default_rng(SEED)
    labels = np.repeat(np.arange(8), [1507, 750, 370, 185, 92, 56, 28, 12])
    centers = 1.2 * rng.normal(size=(8, SMALL_COLUMNS))
    return centers[labels] + rng.normal(size=(len(labels), SMALL_COLUMNS)), labels


def densities() -> Labeled:
    """Make ten Gaussian clusters of spreads 0.1 to 2."""
    rng = np.random.default_rng(SEED)
    labels = rng.integers(10, size=SMALL_ROWS)
    centers, spread = 1.5 * rng.normal(size=(10, SMALL_COLUMNS)), np.geomspace(0.1, 2.0, 10)
    return centers[labels] + spread[labels, None] * rng.normal(size=(SMALL_ROWS, SMALL_COLUMNS)), labels


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
    "swiss hole": swiss_hole,
    "s-curve": s_curve,
    "torus": torus,
    "shells": shells,
    "tree": tree,
    "lineages": lineages,
    "hierarchy": hierarchy,
    "imbalanced": imbalanced,
    "densities": densities,
    "noise": noise,
    **{name: partial(mixture, clusters) for name, clusters in MIXTURES.items()},
}
# The sheets that were bent, whose distances a map can show.
SHEETS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "swiss roll": unrolled,
    "swiss hole": unrolled,
    "s-curve": straightened,
}
# The metric of data that are not Euclidean.
METRICS = {"sets": "jaccard"}
