"""Divide the rows of a map into clusters, in layers from coarse to fine.

1. **Basins.** Every point of the map follows its densest near point until it arrives at a peak of the density. The
   points that arrive at one peak are a basin: a few dozen rows that the map shows as one heap.
2. **Merges.** Basins are joined pairwise, the most strongly connected first. The strength of a pair is the weight of
   the edges between a and b, relative to edges drawn at random with the same degrees:

       strength(a, b) = w(a, b) w / (w(a) w(b))        w(a): weight of all edges of a; w: of all edges

   (the linkage of Paris: Bonald, Charpentier, Galland and Hollocou 2018, arXiv:1806.01664). Weights are those of the
   fuzzy graph, so the merges show how the *data* is connected, whatever gaps the map drew.
3. **Layers.** A layer undoes all merges that are weaker than its resolution. Parts with fewer than ``min_size`` rows
   are noise.
4. **Votes.** A row belongs to the cluster that has more than half of the weight of the row's edges; without such a
   cluster it is noise. New rows are assigned by the same rule.

Clusters are nested: a majority in a fine cluster is a majority in the coarse cluster around it. All sums run in a fixed
order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.neighbors.search import nearest_points

Labels = NDArray[np.int32]

NOISE = -1
# Points among which each point looks for a denser one, and the rank of the neighbor whose distance measures density.
NEAR, DENSITY_RANK = 15, 10
# A row belongs to a cluster that has more than this share of the weight of its edges.
MAJORITY = 0.5
# Parts of a map are islands if less than this multiple of the near pairs joins them that chance would give them.
ISLAND = 1 / 32


def basins(places: NDArray[np.float32], n_jobs: int = -1) -> Labels:
    """Return the number of the basin of each point."""
    n = len(places)
    near = nearest_points(places, places, min(NEAR, n - 1) + 1, n_jobs)
    reach = near.distance[:, min(DENSITY_RANK, near.k - 1)]
    rank = np.empty(n, dtype=np.int64)
    rank[np.lexsort((np.arange(n), reach))] = np.arange(n)
    densest = np.take_along_axis(near.index, rank[near.index].argmin(axis=1)[:, None], axis=1)[:, 0]
    peak = np.where(rank[densest] < rank, densest, np.arange(n))
    while True:
        farther = peak[peak]
        if np.array_equal(farther, peak):
            return np.unique(peak, return_inverse=True)[1].astype(np.int32)
        peak = farther


def islands(places: NDArray[np.float32], n_jobs: int = -1) -> Labels:
    """Return the number of the island of each point: parts of a map that gaps separate, whatever the data is like."""
    n = len(places)
    near = nearest_points(places, places, min(NEAR, n - 1) + 1, n_jobs)
    heads = np.repeat(np.arange(n), near.k)
    edges = csr_matrix((np.ones(heads.size), (heads, near.index.ravel())), shape=(n, n))
    basin = basins(places, n_jobs)
    return merge_basins((edges + edges.T).tocsr(), basin).cut(ISLAND, 1)[basin]


@dataclass(frozen=True)
class MergeTree:
    """Basins and their merges.

    Parts are numbered: first the basins, then the results of the merges. ``sizes`` are rows per part, ``children`` the
    two parts of each merge, ``strength`` how strongly they are connected; parts without an edge between them are never
    merged.
    """

    n_basins: int
    sizes: NDArray[np.int64]
    children: NDArray[np.int64]
    strength: NDArray[np.float64]

    def cut(self, resolution: float, min_size: int) -> Labels:
        """Return the cluster of each basin if merges weaker than ``resolution`` are undone."""
        inner = np.zeros(len(self.sizes), dtype=bool)
        inner[self.children.ravel()] = True
        waiting = np.flatnonzero(~inner).tolist()[::-1]
        found: list[int] = []
        while waiting:
            part = waiting.pop()
            if self.sizes[part] < min_size:
                continue
            pair = None if part < self.n_basins else self.children[part - self.n_basins]
            if pair is None or self.strength[part - self.n_basins] >= resolution or max(self.sizes[pair]) < min_size:
                found.append(part)
            else:
                waiting += pair[::-1].tolist()
        labels = np.full(len(self.sizes), NOISE, dtype=np.int32)
        labels[found] = np.arange(len(found))
        # a part comes after its children: downwards, each child takes the label of its parent
        for part in range(len(self.sizes) - 1, self.n_basins - 1, -1):
            if labels[part] >= 0:
                labels[self.children[part - self.n_basins]] = labels[part]
        return labels[: self.n_basins]


def merge_basins(weights: csr_matrix, basin: Labels) -> MergeTree:
    """Merge basins by the edges between their rows, the most strongly connected pairs first.

    A chain goes from part to its best partner until two are each other's best, which are merged. Since a merged part is
    connected no more strongly than its better child, this gives the tree of all merges in the order of their strength.
    """
    near, volume = _connections(weights, basin)
    count, total = len(near), sum(volume)
    sizes = np.bincount(basin, minlength=count).tolist()
    children: list[tuple[int, int]] = []
    strength: list[float] = []
    chain: list[int] = []
    first = 0  # parts before this one are merged or have no partner
    while True:
        if not chain:
            while first < len(near) and not near[first]:
                first += 1
            if first == len(near):
                break
            chain.append(first)
        a = chain[-1]
        before = chain[-2] if len(chain) > 1 else -1
        b, best = before, near[a][before] / (volume[a] * volume[before]) if before >= 0 else -1.0
        for c, w in near[a].items():
            now = w / (volume[a] * volume[c])
            if now > best or (now == best and b != before and c < b):
                b, best = c, now
        if b != before:
            chain.append(b)
            continue
        del chain[-2:]
        children.append((min(a, b), max(a, b)))
        strength.append(best * total)
        sizes.append(sizes[a] + sizes[b])
        volume.append(volume[a] + volume[b])
        _join(near, *children[-1])
    pairs = np.array(children, dtype=np.int64).reshape(-1, 2)
    return MergeTree(count, np.array(sizes, dtype=np.int64), pairs, np.array(strength))


def _connections(weights: csr_matrix, basin: Labels) -> tuple[list[dict[int, float]], list[float]]:
    """Return the weight between each basin and its partners, and the weight of all edges of each basin."""
    count = int(basin.max()) + 1
    member = csr_matrix((np.ones(len(basin)), (basin, np.arange(len(basin)))), shape=(count, len(basin)))
    between = (member @ weights.astype(np.float64) @ member.T).tocsr()
    # rounding may differ in the two directions, and partners must agree about their weight
    between = (0.5 * (between + between.T)).tocsr()
    between.sort_indices()
    volume = np.asarray(between.sum(axis=1)).ravel().tolist()
    near: list[dict[int, float]] = []
    for a in range(count):
        part = slice(between.indptr[a], between.indptr[a + 1])
        pairs = zip(between.indices[part].tolist(), between.data[part].tolist(), strict=True)
        near.append({b: w for b, w in pairs if b != a and w > 0})
    return near, volume


def _join(near: list[dict[int, float]], a: int, b: int) -> None:
    """Append the part that two parts make, and connect it instead of them."""
    joined, around = len(near), near[a]
    for c, w in near[b].items():
        around[c] = around.get(c, 0.0) + w
    del around[a], around[b]
    for c, w in around.items():
        near[c].pop(a, None)
        near[c].pop(b, None)
        near[c][joined] = w
    near.append(around)
    near[a] = near[b] = {}


def shares(weights: csr_matrix, labels: Labels, n_clusters: int) -> csr_matrix:
    """Return the share of each cluster in the weight of the edges of each row (head), [heads, clusters]."""
    known = np.flatnonzero(labels >= 0)
    member = csr_matrix((np.ones(len(known)), (known, labels[known])), shape=(len(labels), n_clusters))
    held = (weights.astype(np.float64) @ member).tocsr()
    held.sort_indices()
    degree = np.asarray(weights.sum(axis=1, dtype=np.float64)).ravel()
    held.data /= np.repeat(degree, np.diff(held.indptr))
    return held


def majority(held: csr_matrix) -> tuple[Labels, NDArray[np.float32]]:
    """Return the cluster with the majority of each row and its share; noise has strength 0."""
    n = held.shape[0]
    labels, strength = np.full(n, NOISE, dtype=np.int32), np.zeros(n, dtype=np.float32)
    # more than one half: at most one entry of a row
    most = np.flatnonzero(held.data > MAJORITY)
    rows = np.repeat(np.arange(n), np.diff(held.indptr))[most]
    labels[rows], strength[rows] = held.indices[most], np.minimum(held.data[most], 1.0)
    return labels, strength
