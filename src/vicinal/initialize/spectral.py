"""Spectral initialization: a Laplacian eigenmap for each connected component of the graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.initialize.eigenmap import Eigenmaps, Places, component_maps
from vicinal.initialize.pca import principal_axes
from vicinal.initialize.task import EXTENT, NOISE, InitialTask, to_extent
from vicinal.neighbors.points import nearest_points
from vicinal.neighbors.rows import HasRows

SAMPLE_ROWS = 256  # rows of a component whose mean stands for its centroid
BLOCK_COMPONENTS = 1024  # centroids in memory at a time
AXES_WORK = 4e9  # multiplications for the principal axes of the centroids; of more components a sample is used


def spectral_places(task: InitialTask) -> NDArray[np.float64] | Places:
    """Compute the eigenmap of the graph, or one per component if the graph is disconnected."""
    maps = component_maps(task.graph, task.n_components, seed=task.seed, n_jobs=task.n_jobs)
    if maps.count <= 1:
        return maps.whole()
    return _side_by_side(task, maps)


def _side_by_side(task: InitialTask, maps: Eigenmaps) -> NDArray[np.float64] | Places:
    """Put every component into a box as wide as the distance to the nearest other centre."""
    centres = _component_centres(task, maps)
    width = nearest_points(centres, centres, 2, task.n_jobs).distance[:, 1]
    # Components too small for an eigenmap: random places in their box.
    tiny = maps.sizes <= max(task.n_components + 1, 4)
    return maps.in_boxes(centres, width, tiny, task.seed)


def _component_centres(task: InitialTask, maps: Eigenmaps) -> NDArray[np.float64]:
    """Place the components: principal components of their centroids, or at random if there are no coordinates."""
    centres = task.rng.uniform(size=(maps.count, task.n_components)) * EXTENT
    if task.source is not None:
        scores = _centroid_scores(task, maps)
        if np.ptp(scores, axis=0).max() > 0:
            centres = to_extent(scores) + task.rng.normal(scale=NOISE, size=centres.shape)
    return centres


def _centroid_scores(task: InitialTask, maps: Eigenmaps) -> NDArray[np.float64]:
    assert task.source is not None
    source = task.source
    begin, end = maps.bounds[:-1].copy(), maps.bounds[1:].copy()

    def centroids(which: slice | NDArray[np.int64]) -> NDArray[np.float64]:
        return _segment_means(source, maps.order, begin[which], end[which], task.n_jobs)

    columns = source.shape[1]
    most = maps.count
    if float(most) * columns * min(most, columns) > AXES_WORK:
        most = min(most, max(int(np.sqrt(AXES_WORK / columns)), 64))
    sample = np.arange(most) * maps.count // most
    mean, axes = principal_axes(centroids(sample), task.n_components)
    blocks = (slice(first, first + BLOCK_COMPONENTS) for first in range(0, maps.count, BLOCK_COMPONENTS))
    return np.concatenate([(centroids(block) - mean) @ axes for block in blocks])


def _segment_means(
    source: HasRows, order: NDArray[np.int32], begin: NDArray[np.int64], end: NDArray[np.int64], n_jobs: int
) -> NDArray[np.float64]:
    """Return the means of sets of rows. Only the rows that count are moved if all of them are on a device."""
    if "rows" in vars(source):
        rows = np.ascontiguousarray(source.rows, dtype=np.float32)
        return cpu.segment_means(rows, order, begin, end, SAMPLE_ROWS, n_jobs)
    size = end - begin
    taken = np.minimum(size, SAMPLE_ROWS)
    last = np.cumsum(taken)
    at = np.arange(last[-1]) - np.repeat(last - taken, taken)
    chosen = order[np.repeat(begin, taken) + at * np.repeat(size, taken) // np.repeat(taken, taken)]
    rows = np.ascontiguousarray(source[chosen.astype(np.int64)])
    return cpu.segment_means(rows, np.arange(len(chosen), dtype=np.int32), last - taken, last, SAMPLE_ROWS, n_jobs)
