"""Spectral initialization: a Laplacian eigenmap for each connected component of the graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.initialize.axes import CANDIDATES, curled_components, independent_axes
from vicinal.initialize.eigenmap import (
    Boxes,
    Eigenmaps,
    Places,
    component_maps,
    evened,
    most_device_axes,
    slots_of,
)
from vicinal.initialize.pca import principal_axes
from vicinal.initialize.task import LEAST_EXTENT, NOISE, InitialTask, to_extent
from vicinal.neighbors.points import nearest_points
from vicinal.neighbors.rows import HasRows

SAMPLE_ROWS = 256  # rows of a component whose mean stands for its centroid
TURN_ROWS, TURN_VALUES = 16, 1 << 19  # rows that decide how a component is turned; values of them in memory at a time
BLOCK_COMPONENTS = 1024  # centroids in memory at a time
# The width of a component's box as a share of the distance to the nearest other centre, unless the component has more
# than LARGE_SHARE of the rows, which need their share of the room. Correlation of distances of iris, mean of 10 seeds,
# for 1, 0.4, 0.25: 0.914, 0.925, 0.955 (0.93 over 30 seeds); umap-learn 0.934. Loss J of 17,500 images and ten small
# clusters: all boxes of 1 48,963, of 0.25 49,444, the large component by its rows 48,768.
BOX_SHARE, LARGE_SHARE = 0.25, 0.5
AXES_WORK = 4e9  # multiplications for the principal axes of the centroids; of more components a sample is used


def spectral_places(task: InitialTask) -> NDArray[np.float64] | Places:
    """Compute the eigenmap of the graph, or one per component if the graph is disconnected."""
    maps = _maps(task)
    if maps.count <= 1:
        return maps.whole()
    return _side_by_side(task, maps)


def _maps(task: InitialTask) -> Eigenmaps:
    """Return evened maps of the smoothest vectors; a sheet is shown in its proportions."""

    def smoothest(n: int) -> Eigenmaps:
        return component_maps(task.graph, n, seed=task.seed, n_jobs=task.n_jobs)

    maps = smoothest(task.n_components)
    curled = curled_components(maps, task.graph)
    if curled.size:
        on_device = most_device_axes(task.graph)
        more = smoothest(on_device if task.n_components <= on_device else max(CANDIDATES, task.n_components))
        axes, shape = independent_axes(more, task.graph, curled, task.n_components)
        if (shape != 1.0).any():
            maps = more.with_axes(axes, shape)
    return evened(maps)


def _side_by_side(task: InitialTask, maps: Eigenmaps) -> NDArray[np.float64] | Places:
    """Put every component into a box: narrower than the distance to the nearest other centre, except for a large one.

    Components that touch turn each other before they are apart.
    """
    centres, axes = _component_centres(task, maps)
    width = BOX_SHARE * nearest_points(centres, centres, 2, task.n_jobs).distance[:, 1]
    share = maps.sizes / maps.sizes.sum()
    width = np.where(share > LARGE_SHARE, np.ptp(centres, axis=0).max() * np.sqrt(share), width)
    # Components too small for an eigenmap: random places in their box.
    tiny = maps.sizes <= max(task.n_components + 1, 4)
    return maps.in_boxes(Boxes(centres, width, None if axes is None else _turns(task, maps, axes), tiny), task.seed)


def _component_centres(task: InitialTask, maps: Eigenmaps) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Place the components: principal components of their centroids, or at random if there are no coordinates.

    Return the centres and the principal axes, if there are any.
    """
    centres = task.rng.uniform(size=(maps.count, task.n_components)) * LEAST_EXTENT
    if task.source is not None:
        scores, axes = _centroid_scores(task, maps)
        if np.ptp(scores, axis=0).max() > 0:
            return to_extent(scores) + task.rng.normal(scale=NOISE, size=centres.shape), axes
    return centres, None


def _turns(task: InitialTask, maps: Eigenmaps, axes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each component the matrix that turns or mirrors its map as its rows lie along the axes of the centres.

    Without it the side of a component that is close to another one may face away from it.
    """
    assert task.source is not None
    turns = np.empty((maps.count, task.n_components, task.n_components))
    step = max(1, TURN_VALUES // (TURN_ROWS * task.source.shape[1]))
    for first in range(0, maps.count, step):
        several = slice(first, first + step)
        slots = slots_of(maps, several, TURN_ROWS)
        rows = task.source[maps.order[slots].reshape(-1).astype(np.int64)]
        scores = (rows.astype(np.float64) @ axes).reshape(*slots.shape, -1)
        places = maps.sample(slots).astype(np.float64)
        places /= np.maximum(np.ptp(places, axis=1, keepdims=True), np.finfo(np.float64).tiny)
        along = np.einsum("csi,csj->cij", places, scores - scores.mean(axis=1, keepdims=True))
        left, _, right = np.linalg.svd(np.nan_to_num(along))
        turns[several] = left @ right
    return turns


def _centroid_scores(task: InitialTask, maps: Eigenmaps) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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
    return np.concatenate([(centroids(block) - mean) @ axes for block in blocks]), axes


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
