"""Initial embeddings: spectral (Laplacian eigenmap, component by component), pca, random, neighbour mean.

``INITIALIZERS`` maps a name to a function of an :class:`InitialTask`. One that cannot do its work raises
:class:`CannotInitialize`, and the next of ``FALLBACKS`` is tried: fitting never fails for want of a start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph import Graph
from vicinal.interruption import interruptible, nearest_in_tree
from vicinal.sharing import blas
from vicinal.spectral import eigenmap

EXTENT = 10.0  # every initial embedding spans [0, EXTENT] on each axis, as in umap-learn
NOISE = 1e-4  # separates rows that the eigenvectors put in one place
NARROW = 1e-4  # standard deviation of t-SNE's start along its widest axis, as in scikit-learn and openTSNE


class CannotInitialize(Exception):
    """This way of starting does not apply; the message says why."""


@dataclass(frozen=True)
class InitialTask:
    """What an initialiser may use. ``X`` is None when there are no coordinates (precomputed distances)."""

    graph: Graph
    X: NDArray[np.float32] | None
    n_components: int
    seed: int
    n_jobs: int = -1

    @property
    def rng(self) -> np.random.Generator:
        return np.random.default_rng(self.seed)


def spectral(task: InitialTask) -> NDArray[np.float64]:
    from scipy.sparse.csgraph import connected_components

    n_parts, part = connected_components(task.graph.to_scipy(), directed=False)
    if n_parts > 1:
        return _by_component(task, n_parts, part)
    return eigenmap(task.graph, task.n_components, seed=task.seed, n_jobs=task.n_jobs)


def _by_component(task: InitialTask, n_parts: int, part: NDArray[np.int32]) -> NDArray[np.float64]:
    """Every component its own eigenmap, in a box as wide as the way to the next component's centre."""
    centres, reach = _component_centres(task, n_parts, part)
    out = centres[part]
    matrix = task.graph.to_scipy()
    order = np.argsort(part, kind="stable")
    bounds = np.searchsorted(part[order], np.arange(n_parts + 1))
    # Too small for an eigenmap: a random place in the box of its component.
    sizes = np.diff(bounds)
    tiny = sizes[part] <= max(task.n_components + 1, 4)
    out[tiny] += (task.rng.uniform(-0.5, 0.5, size=out.shape) * reach[part, None])[tiny]
    for c in np.flatnonzero(sizes > max(task.n_components + 1, 4)):
        rows = order[bounds[c] : bounds[c + 1]]
        inner = task.graph.with_weights(matrix[rows][:, rows])
        inner = Graph(inner.indptr, inner.indices, inner.weights, len(rows), inner.rho, inner.sigma)
        local = eigenmap(inner, task.n_components, seed=task.seed, n_jobs=task.n_jobs)
        out[rows] += (to_extent(local) / EXTENT - 0.5) * reach[c]
    return out


def _component_centres(
    task: InitialTask, n_parts: int, part: NDArray[np.int32]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Where components go (principal components of their centroids, else at random) and how wide each may be."""
    centres = task.rng.uniform(size=(n_parts, task.n_components)) * EXTENT
    if task.X is not None:
        sums = np.zeros((n_parts, task.X.shape[1]))
        np.add.at(sums, part, task.X)
        centroids = sums / np.bincount(part, minlength=n_parts)[:, None]
        spread = _principal(centroids, task.n_components)
        if np.ptp(spread, axis=0).max() > 0:
            centres = to_extent(spread) + task.rng.normal(scale=NOISE, size=centres.shape)
    distance, _ = nearest_in_tree(centres, centres, 2, workers=1)
    return centres, distance[:, 1]


# Rows of a table that are float64 at once.
PRINCIPAL_ROWS = 4096


def _principal(rows: NDArray[np.floating], n_components: int) -> NDArray[np.float64]:
    """Coordinates along the leading principal axes; axes the data does not have are zero."""
    n, d = rows.shape
    mean = rows.mean(axis=0, dtype=np.float64)
    parts = [slice(begin, begin + PRINCIPAL_ROWS) for begin in range(0, n, PRINCIPAL_ROWS)]
    largest = max((np.abs(rows[part] - mean).max(initial=0.0) for part in parts), default=0.0)
    scale = 1.0 / largest if largest > 0 else 1.0

    @blas()
    def scored() -> NDArray[np.float64]:
        if n <= d:
            u, s, _ = np.linalg.svd((rows - mean) * scale, full_matrices=False)
            return np.asarray(u * s)[:, :n_components]
        gram = np.zeros((d, d))
        for part in parts:
            centred = (rows[part] - mean) * scale
            gram += centred.T @ centred
        axes = np.linalg.eigh(gram)[1][:, ::-1][:, :n_components]
        return np.concatenate([((rows[part] - mean) * scale) @ axes for part in parts])

    scores = interruptible(scored, float(n) * d * min(n, d))
    return np.pad(scores, ((0, 0), (0, n_components - scores.shape[1])))


def pca(task: InitialTask) -> NDArray[np.float64]:
    if task.X is None:
        raise CannotInitialize("there are no coordinates to take principal components of")
    if task.X.shape[1] > 5_000 and task.X.shape[0] > 5_000:
        raise CannotInitialize(f"{task.X.shape[1]} columns are too many for principal components")
    scores = _principal(task.X, task.n_components)
    if not np.ptp(scores[:, 0]) > 0:
        raise CannotInitialize("the data does not vary")
    return scores


def random(task: InitialTask) -> NDArray[np.float64]:
    return task.rng.uniform(size=(task.graph.n, task.n_components))


INITIALIZERS: dict[str, Callable[[InitialTask], NDArray[np.float64]]] = {
    "spectral": spectral,
    "pca": pca,
    "random": random,
}
# umap-learn's second solver for the same eigenvectors has no counterpart here.
INITIALIZER_ALIASES = {"tswspectral": "spectral"}
FALLBACKS = {"spectral": "pca", "pca": "random"}


def initial_places(name: str, task: InitialTask) -> tuple[NDArray[np.float64], str]:
    """The places that ``name`` or a fallback gives, not scaled, and a word on how they came about."""
    used, why = name, ""
    while True:
        try:
            places = INITIALIZERS[used](task)
            if not np.isfinite(places).all():
                raise CannotInitialize("the result was not finite")
            break
        except (CannotInitialize, np.linalg.LinAlgError) as error:
            why = f"{used}: {error}" if not why else f"{why}; {used}: {error}"
            used = FALLBACKS[used]
    return places, f"{used} ({why})" if why else used


def initial_embedding(name: str, task: InitialTask) -> tuple[NDArray[np.float32], str]:
    """The places that ``name`` gives, scaled to [0, EXTENT] with a little noise, and a word on how they came about."""
    places, used = initial_places(name, task)
    scaled = to_extent(places) + task.rng.normal(scale=NOISE, size=places.shape)
    return to_extent(scaled).astype(np.float32), used


def narrow_embedding(name: str, task: InitialTask) -> tuple[NDArray[np.float32], str]:
    """The places that ``name`` gives around 0 in their own proportions, so narrow that all rows repel each other."""
    places, used = initial_places(name, task)
    places = places - places.mean(axis=0)
    deviation = places.std(axis=0).max() if places.size else 0.0
    return (places * (NARROW / deviation if deviation > 0 else 1.0)).astype(np.float32), used


def to_extent(places: NDArray[np.floating]) -> NDArray[np.float64]:
    """Each axis stretched to [0, EXTENT]; an axis without extent becomes its middle."""
    out: NDArray[np.float64] = np.array(places, dtype=np.float64)
    if out.shape[0] == 0:
        return out
    low, width = out.min(axis=0), np.ptp(out, axis=0)
    flat = ~(width > 0)
    out = EXTENT * (out - low) / np.where(flat, 1.0, width)
    out[:, flat] = EXTENT / 2
    return out


def given_start(init: Any, n: int, n_components: int, *, stretched: bool = True) -> NDArray[np.float32] | None:
    """A start that the user gives as an array, stretched to the usual extent unless it is told, or None for a name."""
    if isinstance(init, str):
        return None
    try:
        places = np.asarray(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be one of {sorted(INITIALIZERS)} or an array of numbers: {error}") from error
    if places.shape != (n, n_components):
        raise ValueError(f"init must have shape {(n, n_components)}, got {places.shape}")
    if not np.isfinite(places).all():
        bad = int(np.argmin(np.isfinite(places).all(axis=1)))
        raise ValueError(f"init contains NaN or infinity, first in row {bad}")
    return (to_extent(places) if stretched else places).astype(np.float32)


def fitted_to(
    start: NDArray[np.float32], known: NDArray[Any], places: NDArray[np.float32], *, scaled: bool = True
) -> NDArray[np.float64]:
    """``start`` shifted, turned (or mirrored) and, if ``scaled``, scaled so that its ``known`` rows (numbers, or a
    mask) lie nearest to ``places``, one for each of them."""
    source, target = start.astype(np.float64), places.astype(np.float64)
    if not len(target):
        return source
    middle, goal = source[known].mean(axis=0), target.mean(axis=0)
    left, right = source[known] - middle, target - goal
    spread = np.square(left).sum()
    if spread > 0 and np.square(right).sum() > 0:
        # einsum adds in one fixed order, a product by BLAS in one that depends on its threads.
        u, s, vt = np.linalg.svd(np.einsum("ni,nj->ij", left, right))
        turn, scale = u @ vt, s.sum() / spread if scaled else 1.0
    else:  # one place tells nothing about directions
        turn, scale = np.eye(source.shape[1]), 1.0
    return np.asarray(scale * np.einsum("nc,cd->nd", source - middle, turn) + goal)


# Rows whose neighbours are compared at once: bounds the memory for it.
MEDOID_ROWS = 4096


def neighbor_medoid(graph: Graph, reference: NDArray[np.float32]) -> NDArray[np.float32]:
    """The place of that neighbour which is nearest to all of them, weighted by membership (bipartite graphs).

    The mean of neighbours in two clusters lies in neither, and few epochs do not lead out of there: 5-NN accuracy of
    held-out digits, no labels and labels in the fit, 0.983 and 0.979 from the mean, 0.985 and 0.988 from the medoid.
    A row without any neighbour starts in the middle of the map.
    """
    lengths = np.diff(graph.indptr)
    out = np.empty((graph.n, reference.shape[1]), dtype=np.float32)
    for begin in range(0, graph.n, MEDOID_ROWS):
        rows = slice(begin, begin + MEDOID_ROWS)
        out[rows] = _medoids(graph, reference, lengths, rows)
    alone = lengths == 0
    if alone.any():
        out[alone] = reference.mean(axis=0, dtype=np.float64)
    return out


def _medoids(
    graph: Graph, reference: NDArray[np.float32], lengths: NDArray[np.int64], rows: slice
) -> NDArray[np.float32]:
    lengths = lengths[rows]
    slots = np.arange(int(lengths.max(initial=1)))
    there = slots < lengths[:, None]
    edges = np.where(there, graph.indptr[:-1][rows][:, None] + slots, 0)
    tails = np.where(there, graph.indices[edges] if graph.n_edges else 0, 0)
    weights = np.where(there, graph.weights[edges] if graph.n_edges else np.float32(0), np.float32(0))
    places = reference[tails]
    # One neighbour and one component after the other: the order of a sum must not depend on how many rows there are.
    total = np.where(there, np.float32(0), np.float32(np.inf))
    for slot in slots:
        d2 = sum(np.square(places[:, :, c] - places[:, slot, None, c]) for c in range(places.shape[2]))
        total += weights[:, slot, None] * np.sqrt(d2)
    nearest = np.argmin(total, axis=1)
    chosen: NDArray[np.float32] = reference[np.take_along_axis(tails, nearest[:, None], axis=1)[:, 0]]
    return chosen
