"""Layers of clusters as values: found from a map and its graph, compared and matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.areas.hierarchy import NOISE, Labels, basins, majority, merge_basins, shares

# Resolutions of the layers from coarse to fine.
RESOLUTIONS = (1 / 32, 1 / 8, 1 / 2, 2.0, 8.0)
# The main layer is the finest one up to this resolution that is stable: as many rows keep their clusters if others are
# left out. Beyond it even single classes of the digits are divided.
FINEST_MAIN, STABLE = 1 / 2, 0.9
# A layer whose largest cluster has more than this share of the rows is not the main one.
MOST_IN_ONE = 0.9
# Layers are found again without this share of the rows, this number of times.
LEFT_OUT, REPEATS, SEED = 0.1, 2, 0
# The smallest cluster has this number of rows, or this multiple of the square root of all, whichever is more.
SMALLEST, SMALLEST_FACTOR = 10, 0.25
# A cluster with at least this share of its parent's rows is the same area.
SAME_AREA = 0.8


@dataclass(frozen=True)
class Layer:
    """One division of the rows, at one resolution.

    Attributes
    ----------
    resolution : float
        Parts are clusters if less weight joins them than this multiple of what chance would.
    labels : int32 array of shape (n_rows,)
        The cluster of each row, numbered from 0 by falling size; -1 is noise.
    strength : float32 array of shape (n_rows,)
        Share of the weight of the row's edges that leads into its cluster; 0 for noise.
    parent : int32 array of shape (n_clusters,)
        The cluster of the next coarser layer around each cluster; -1 in the coarsest layer.
    places : float32 array of shape (n_clusters, n_components)
        A point in the middle of each cluster.
    names : tuple of str
        Name of each cluster, "" if it has none.
    stability : float
        Share of the rows that keep their clusters if a tenth of the rows is left out.
    """

    resolution: float
    labels: Labels
    strength: NDArray[np.float32]
    parent: Labels
    places: NDArray[np.float32]
    names: tuple[str, ...]
    stability: float = 1.0

    @property
    def n_clusters(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each cluster."""
        return np.bincount(self.labels[self.labels >= 0], minlength=self.n_clusters)

    @property
    def noise(self) -> float:
        """Share of rows without a cluster."""
        return float((self.labels == NOISE).mean()) if len(self.labels) else 0.0

    def spread_to(self, position: NDArray[np.int64]) -> Layer:
        """Return the layer of all rows; ``position`` says which of these rows stands for each, or -1."""
        missing = position < 0
        labels = np.where(missing, np.int32(NOISE), self.labels[np.maximum(position, 0)])
        strength = np.where(missing, np.float32(0.0), self.strength[np.maximum(position, 0)])
        return replace(self, labels=labels, strength=strength)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a file may hold anything."""
        n, k = len(self.labels), self.n_clusters
        fits = self.labels.dtype == np.int32 and self.strength.shape == self.labels.shape == (n,)
        if not fits or len(self.parent) != k or len(self.places) != k or self.places.ndim != 2:
            raise ValueError("the parts of a layer of clusters do not fit together")
        if not NOISE <= self.labels.min(initial=NOISE) <= self.labels.max(initial=NOISE) < k:
            raise ValueError("a layer names clusters that do not exist")


def find_layers(
    weights: csr_matrix,
    places: NDArray[np.float32],
    *,
    resolutions: Sequence[float] = RESOLUTIONS,
    min_size: int | None = None,
    repeats: int = REPEATS,
    n_jobs: int = -1,
) -> tuple[list[Layer], int]:
    """Find clusters of the points of a map whose rows are joined by a symmetric graph; return the main layer too.

    ``repeats`` is how often the layers are found again to measure their stability; with 0 every layer counts as stable.
    """
    n = len(places)
    smallest = max(SMALLEST, round(SMALLEST_FACTOR * n**0.5)) if min_size is None else min_size
    divided = _divisions(weights, places, resolutions, smallest, n_jobs)
    stability = _stability(weights, places, divided, smallest, repeats, n_jobs)
    layers: list[Layer] = []
    for resolution, (labels, strength) in divided.items():
        before = layers[-1] if layers else None
        layer = _layer(resolution, labels, strength, places, before)
        # a layer that divides nothing further is left out
        if before is not None and layer.n_clusters <= before.n_clusters:
            continue
        layers.append(replace(layer, stability=stability[resolution]))
    return layers, _main(layers)


def _divisions(
    weights: csr_matrix, places: NDArray[np.float32], resolutions: Sequence[float], smallest: int, n_jobs: int
) -> dict[float, tuple[Labels, NDArray[np.float32]]]:
    """Return labels and strength of all rows by resolution, from coarse to fine."""
    basin = basins(places, n_jobs)
    tree = merge_basins(weights, basin)
    found = {}
    for resolution in sorted(resolutions):
        cut = tree.cut(resolution, smallest)
        found[resolution] = majority(shares(weights, cut[basin], int(cut.max(initial=NOISE)) + 1))
    return found


def _stability(
    weights: csr_matrix,
    places: NDArray[np.float32],
    divided: dict[float, tuple[Labels, NDArray[np.float32]]],
    smallest: int,
    repeats: int,
    n_jobs: int,
) -> dict[float, float]:
    """Return by resolution the mean share of rows that keep their clusters if others are left out."""
    if not repeats:
        return dict.fromkeys(divided, 1.0)
    n = len(places)
    kept = np.zeros((repeats, len(divided)))
    for repeat, rng in enumerate(np.random.default_rng(SEED).spawn(repeats)):
        rows = np.sort(rng.permutation(n)[: n - round(LEFT_OUT * n)])
        again = _divisions(weights[rows][:, rows], places[rows], list(divided), smallest, n_jobs)
        for a, resolution in enumerate(divided):
            kept[repeat, a] = agreement(again[resolution][0], divided[resolution][0][rows])
    return dict(zip(divided, kept.mean(axis=0).tolist(), strict=True))


def _main(layers: Sequence[Layer]) -> int:
    """Return the finest stable layer, or else the most stable one with several clusters."""
    able = [a for a, layer in enumerate(layers) if _divides(layer) and layer.resolution <= FINEST_MAIN]
    stable = [a for a in able if layers[a].stability >= STABLE]
    if stable:
        return stable[-1]
    several = able or [a for a, layer in enumerate(layers) if _divides(layer)] or list(range(len(layers)))
    return max(several, key=lambda a: layers[a].stability)


def _divides(layer: Layer) -> bool:
    """Return whether a layer has several clusters, and more than satellites of a single one."""
    return layer.n_clusters > 1 and int(layer.sizes[0]) <= MOST_IN_ONE * len(layer.labels)


def agreement(a: Labels, b: Labels) -> float:
    """Return the share of rows with the same cluster in both labelings, after the best renumbering; noise counts."""
    number = np.full(int(a.max(initial=NOISE)) + 2, NOISE, dtype=np.int64)
    for pair in matched(a, b, int(a.max(initial=NOISE)) + 1, int(b.max(initial=NOISE)) + 1):
        number[pair["cluster"]] = pair["other"]
    same = np.where(a >= 0, (number[a] == b) & (b >= 0), b < 0)
    return float(same.mean()) if len(a) else 1.0


def _layer(
    resolution: float, labels: Labels, strength: NDArray[np.float32], places: NDArray[np.float32], before: Layer | None
) -> Layer:
    """Return a layer whose clusters are numbered by size, with their parents and middles."""
    used, inverse = np.unique(labels, return_inverse=True)
    labels = (inverse - int(used[0] == NOISE)).astype(np.int32)
    sizes = np.bincount(labels[labels >= 0])
    order = np.argsort(-sizes, kind="stable")
    number = np.append(np.argsort(order), NOISE).astype(np.int32)
    labels = number[labels]
    order_of_rows = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order_of_rows], np.arange(len(sizes) + 1))
    middles = np.zeros((len(sizes), places.shape[1]), dtype=np.float32)
    parent = np.full(len(sizes), NOISE, dtype=np.int32)
    for cluster in range(len(sizes)):
        rows = order_of_rows[bounds[cluster] : bounds[cluster + 1]]
        middle = np.median(places[rows], axis=0)
        middles[cluster] = places[rows[np.square(places[rows] - middle).sum(axis=1).argmin()]]
        if before is not None:
            parent[cluster] = before.labels[rows[0]]
    return Layer(float(resolution), labels, strength, parent, middles, ("",) * len(sizes))


def same_area(layer: Layer, before: Layer) -> NDArray[np.bool_]:
    """Return which clusters of a layer are most of their parent: the same area of the map."""
    whole = before.sizes[layer.parent] if before.n_clusters else np.zeros(layer.n_clusters)
    return np.asarray((layer.parent >= 0) & (layer.sizes >= SAME_AREA * whole))


def matched(a: Labels, b: Labels, n_a: int, n_b: int) -> list[dict[str, Any]]:
    """Return pairs of clusters of two label arrays with as many shared rows as possible, each cluster at most once."""
    from scipy.optimize import linear_sum_assignment

    n = min(len(a), len(b))
    a, b = a[:n], b[:n]
    both = (a >= 0) & (b >= 0)
    shared = np.bincount(a[both].astype(np.int64) * n_b + b[both], minlength=n_a * n_b).reshape(n_a, n_b)
    sizes_a, sizes_b = (np.bincount(one[one >= 0], minlength=k) for one, k in ((a, n_a), (b, n_b)))
    pairs = zip(*linear_sum_assignment(-shared), strict=True)
    return [
        {
            "cluster": int(i),
            "other": int(j),
            "shared": int(shared[i, j]),
            "share": float(shared[i, j] / max(sizes_a[i], 1)),
            "jaccard": float(shared[i, j] / max(sizes_a[i] + sizes_b[j] - shared[i, j], 1)),
        }
        for i, j in pairs
        if shared[i, j]
    ]
