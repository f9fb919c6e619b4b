"""Edge bundling: edges that lead the same way share a path, so that the main connections of a graph can be seen.

An edge is a chain of points. In each round the density of the points of all edges is estimated on a grid with a
Gaussian kernel, every point but the ends moves uphill by up to half a width of the kernel, and the chains are smoothed.
The kernel becomes narrower from round to round (kernel density estimation edge bundling).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

PIECES = 16  # straight pieces per edge
GRID = 256  # cells along the longer side of the map
ROUNDS = 8
WIDEST, NARROWING = 12.0, 0.75  # the deviation of the kernel, in cells, and its factor per round
REACH = 0.5  # the longest step, in deviations of the kernel
SMOOTHINGS = 2  # per round
BLOCK = 1 << 16  # edges that are moved at a time, which bounds the memory and the time to an interrupt


def bundled(start: Floats, end: Floats, weights: Floats) -> Floats:
    """Return the paths of edges as an array [edges, PIECES + 1, 2]; the first and last points are the given ones."""
    along = np.linspace(0.0, 1.0, PIECES + 1)[None, :, None]
    paths: Floats = start[:, None] * (1.0 - along) + end[:, None] * along
    if not len(paths):
        return paths
    low = np.minimum(start.min(axis=0), end.min(axis=0))
    cell = float((np.maximum(start.max(axis=0), end.max(axis=0)) - low).max()) / (GRID - 1) or 1.0
    paths = (paths - low) / cell
    for number in range(ROUNDS):
        deviation = WIDEST * NARROWING**number
        slopes = _slopes(paths, weights, deviation)
        for begin in range(0, len(paths), BLOCK):
            _climb(paths[begin : begin + BLOCK], slopes, REACH * deviation)
    paths = paths * cell + low
    paths[:, 0], paths[:, -1] = start, end
    return paths


def _slopes(paths: Floats, weights: Floats, deviation: float) -> Floats:
    """Return the gradient of the logarithm of the density at every cell, [2, GRID, GRID], in units of the steepest one.

    The logarithm makes paths join single neighbors as well as thick bundles.
    """
    from scipy.ndimage import gaussian_filter

    counts = np.zeros(GRID * GRID)
    for begin in range(0, len(paths), BLOCK):
        place = np.rint(paths[begin : begin + BLOCK, 1:-1]).astype(np.int64)
        mass = np.repeat(weights[begin : begin + BLOCK], PIECES - 1)
        counts += np.bincount((place[..., 0] * GRID + place[..., 1]).ravel(), weights=mass, minlength=GRID * GRID)
    density = gaussian_filter(counts.reshape(GRID, GRID), deviation, mode="constant")
    slopes = np.stack(np.gradient(np.log(density + 1e-3 * density.max() + np.finfo(float).tiny)))
    steepest = float(np.sqrt((slopes**2).sum(axis=0)).max())
    return slopes / steepest if steepest > 0 else slopes


def _climb(paths: Floats, slopes: Floats, reach: float) -> None:
    """Move the inner points of some paths uphill and smooth the paths, in place."""
    from scipy.ndimage import map_coordinates

    inner = paths[:, 1:-1].reshape(-1, 2).T
    step = np.stack([map_coordinates(slope, inner, order=1, mode="nearest") for slope in slopes])
    # Points between two edges have a small slope, but must not stay behind.
    length = np.sqrt((step**2).sum(axis=0))
    moved = inner + reach * step / np.sqrt(np.maximum(length, 1e-12))
    paths[:, 1:-1] = np.clip(moved, 0, GRID - 1).T.reshape(len(paths), -1, 2)
    for _ in range(SMOOTHINGS):
        paths[:, 1:-1] = (paths[:, :-2] + 2.0 * paths[:, 1:-1] + paths[:, 2:]) / 4.0
