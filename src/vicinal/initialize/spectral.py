"""Spectral initialization: a Laplacian eigenmap for each connected component of the graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.eigenmap import eigenmap
from vicinal.initialize.pca import principal_scores
from vicinal.initialize.task import EXTENT, NOISE, InitialTask, to_extent

BLOCK_COMPONENTS = 1024  # component centres compared with all others at a time


def spectral_places(task: InitialTask) -> NDArray[np.float64]:
    """Compute the eigenmap of the graph, or one per component if the graph is disconnected."""
    from scipy.sparse.csgraph import connected_components

    n_components, component = connected_components(task.graph.to_scipy(), directed=False)
    if n_components > 1:
        return _per_component(task, n_components, component)
    return eigenmap(task.graph, task.n_components, seed=task.seed, n_jobs=task.n_jobs)


def _per_component(task: InitialTask, count: int, component: NDArray[np.int32]) -> NDArray[np.float64]:
    """Give every component its own eigenmap, in a box as wide as the distance to the nearest other centre."""
    centres, width = _component_centres(task, count, component)
    out = centres[component]
    matrix = task.graph.to_scipy()
    order = np.argsort(component, kind="stable")
    bounds = np.searchsorted(component[order], np.arange(count + 1))
    # Components too small for an eigenmap: random places in their box.
    sizes = np.diff(bounds)
    smallest = max(task.n_components + 1, 4)
    tiny = sizes[component] <= smallest
    out[tiny] += (task.rng.uniform(-0.5, 0.5, size=out.shape) * width[component, None])[tiny]
    for c in np.flatnonzero(sizes > smallest):
        rows = order[bounds[c] : bounds[c + 1]]
        inner = task.graph.with_weights(matrix[rows][:, rows])
        inner = Graph(inner.indptr, inner.indices, inner.weights, len(rows), inner.rho, inner.sigma)
        local = eigenmap(inner, task.n_components, seed=task.seed, n_jobs=task.n_jobs)
        out[rows] += (to_extent(local) / EXTENT - 0.5) * width[c]
    return out


def _component_centres(
    task: InitialTask, count: int, component: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Place the components (principal components of their centroids, else at random); the width of each one's box."""
    centres = task.rng.uniform(size=(count, task.n_components)) * EXTENT
    if task.X is not None:
        sums = np.zeros((count, task.X.shape[1]))
        np.add.at(sums, component, task.X)
        centroids = sums / np.bincount(component, minlength=count)[:, None]
        scores = principal_scores(centroids, task.n_components)
        if np.ptp(scores, axis=0).max() > 0:
            centres = to_extent(scores) + task.rng.normal(scale=NOISE, size=centres.shape)
    return centres, _distance_to_nearest(centres)


def _distance_to_nearest(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each point to the nearest other one."""
    nearest = np.empty(len(points))
    for begin in range(0, len(points), BLOCK_COMPONENTS):
        block = slice(begin, begin + BLOCK_COMPONENTS)
        d2 = np.zeros((len(points[block]), len(points)))
        for axis in range(points.shape[1]):
            d2 += np.square(points[block, axis, None] - points[None, :, axis])
        d2[np.arange(len(d2)), begin + np.arange(len(d2))] = np.inf
        nearest[block] = np.sqrt(d2.min(axis=1))
    return nearest
