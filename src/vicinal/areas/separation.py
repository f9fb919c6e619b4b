"""Test whether the gap between two clusters of a map is in the data, or was made by the map.

    across(a, b) = w(a, b) / min(w(a), w(b))       w: weights of edges of the graph that join rows of both clusters
    within(a)    = the same for two halves of a, divided by a line through its middle: across an axis of its area
    ratio        = across(a, b) / min(within(a), within(b))

Where nothing separates two clusters, about as many edges cross their border as cross a line through one of them. Where
the data has a gap, hardly any edge crosses it. The map does not enter: it only says which rows to compare.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.areas.hierarchy import shares

Floats = NDArray[np.float64]

IN_THE_DATA, UNCLEAR, MADE_BY_THE_MAP = "in the data", "unclear", "made by the map"
# Ratios below the first limit are gaps of the data; above the second nothing in the data separates the clusters.
LARGEST_GAP, SMALLEST_BRIDGE = 0.1, 0.35
# Each cluster is compared with the nearest one on the map and with this number of the most strongly connected ones.
PARTNERS = 2
# Rows between clusters, which are noise, join the cluster to which they have most edges, in at most this many rounds.
ROUNDS = 3


class Gap(NamedTuple):
    """Two neighboring clusters and what joins them; ``verdict`` says where their gap comes from."""

    a: int
    b: int
    across: float
    within: float
    ratio: float
    verdict: str


def measure_gaps(
    weights: csr_matrix,
    places: NDArray[np.float32],
    labels: NDArray[np.int32],
    n_clusters: int,
    middles: NDArray[np.float32],
) -> list[Gap]:
    """Return the gaps between neighboring clusters, the widest first."""
    if n_clusters < 2:
        return []
    labels = _without_noise(weights, labels, n_clusters)
    joined = _joined(weights, labels, n_clusters)
    within = _within(weights, places, labels, n_clusters)
    gaps = []
    for a, b in _partners(joined, middles):
        across = _share(joined[a, b], joined[a, a], joined[b, b])
        limit = min(within[a], within[b])
        ratio = across / limit if limit > 0 else 0.0
        verdict = IN_THE_DATA if ratio < LARGEST_GAP else MADE_BY_THE_MAP if ratio > SMALLEST_BRIDGE else UNCLEAR
        gaps.append(Gap(a, b, across, float(limit), ratio, verdict))
    return sorted(gaps, key=lambda gap: (gap.ratio, gap.a, gap.b))


def _without_noise(weights: csr_matrix, labels: NDArray[np.int32], n_clusters: int) -> NDArray[np.int32]:
    """Return labels in which noise belongs to its most strongly connected cluster, if it has any."""
    for _ in range(ROUNDS):
        noise = np.flatnonzero(labels < 0)
        if not len(noise):
            break
        held = shares(weights[noise], labels, n_clusters)
        found = held.getnnz(axis=1) > 0
        labels = labels.copy()
        labels[noise[found]] = np.asarray(held.argmax(axis=1)).ravel()[found]
    return labels


def _joined(weights: csr_matrix, labels: NDArray[np.int32], n_clusters: int) -> Floats:
    """Return the weight of the edges between each pair of clusters; each edge counts in both directions."""
    known = np.flatnonzero(labels >= 0)
    member = csr_matrix((np.ones(len(known)), (labels[known], known)), shape=(n_clusters, len(labels)))
    return np.asarray((member @ weights.astype(np.float64) @ member.T).todense(), dtype=np.float64)


def _share(between: float, a: float, b: float) -> float:
    smaller = min(a, b) + between
    return float(between / smaller) if smaller > 0 else 0.0


def _within(weights: csr_matrix, places: NDArray[np.float32], labels: NDArray[np.int32], n_clusters: int) -> Floats:
    """Return the smallest share of weight that crosses a line through the middle of each cluster."""
    smallest = np.full(n_clusters, np.inf)
    order = np.argsort(labels, kind="stable")
    bounds = np.searchsorted(labels[order], np.arange(n_clusters + 1))
    members = [order[bounds[a] : bounds[a + 1]] for a in range(n_clusters)]
    centered = [places[rows].astype(np.float64) - np.median(places[rows], axis=0) for rows in members]
    axes = [np.linalg.eigh(one.T @ one)[1] for one in centered]
    for axis in range(places.shape[1]):
        halves = np.full(len(labels), -1, dtype=np.int32)
        for a, rows in enumerate(members):
            halves[rows] = 2 * a + (centered[a] @ axes[a][:, axis] > 0)
        joined = _joined(weights, halves, 2 * n_clusters)
        for a in range(n_clusters):
            share = _share(joined[2 * a, 2 * a + 1], joined[2 * a, 2 * a], joined[2 * a + 1, 2 * a + 1])
            smallest[a] = min(smallest[a], share)
    return smallest


def _partners(joined: Floats, middles: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Return pairs of clusters that are near each other on the map or strongly connected."""
    distance = np.linalg.norm(middles[:, None].astype(np.float64) - middles, axis=2)
    np.fill_diagonal(distance, np.inf)
    between = joined.copy()
    np.fill_diagonal(between, -1.0)
    count = min(PARTNERS, len(middles) - 1)
    near = np.argsort(distance, axis=1, kind="stable")[:, :1]
    strong = np.argsort(-between, axis=1, kind="stable")[:, :count]
    found = set()
    for a in range(len(middles)):
        for b in (*near[a].tolist(), *(b for b in strong[a].tolist() if between[a, b] > 0)):
            found.add((min(a, b), max(a, b)))
    return sorted(found)
