"""Where a map changes the scale of the data, and which edges of the graph it tears.

    stretch_i = log2(R_i / r_i) - median     r: mean distance to the k nearest rows; R: distance to the k-th point

is 0 for rows that are drawn at the usual scale, 1 for those drawn twice as large: their neighborhood is denser in the
data than it looks. An edge is torn if neither end is among the 10 k nearest points of the other in the map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.neighbors.table import Neighbors
from vicinal.quality.preservation import ROUNDING, Preservation, distances_between

Floats = NDArray[np.float64]

# A torn edge is listed if it has at least this share of the heaviest edge of one of its ends.
LARGE_WEIGHT = 0.5


@dataclass(frozen=True)
class TornEdges:
    """Heavy edges of the graph that a map tears, each once, the worst first.

    ``length`` is the edge's length in the map in units of the larger of its ends' wide radii, so above 1; edges are
    sorted by weight times length.
    """

    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    weight: Floats
    length: Floats

    def __len__(self) -> int:
        return len(self.head)

    def renumbered(self, rows: NDArray[np.int64]) -> TornEdges:
        """Return the edges with other row numbers."""
        return TornEdges(rows[self.head], rows[self.tail], self.weight, self.length)


def measure_stretch(neighbors: Neighbors, preservation: Preservation) -> Floats:
    """Return the stretch of each row; NaN if all its neighbors are equal to it, in the data or in the map."""
    distance = neighbors.distance[:, 1 : preservation.n_neighbors + 1].astype(np.float64)
    present = np.isfinite(distance) & (neighbors.index[:, 1 : preservation.n_neighbors + 1] >= 0)
    count = present.sum(axis=1)
    radius = np.where(present, distance, 0.0).sum(axis=1) / np.maximum(count, 1)
    known = (radius > 0) & (preservation.near_radius > 0)
    stretch = np.full(len(radius), np.nan)
    stretch[known] = np.log2(preservation.near_radius[known] / radius[known])
    return stretch - np.median(stretch[known]) if known.any() else stretch


def measure_tears(graph: Graph, places: NDArray[np.float32], wide_radius: Floats) -> tuple[Floats, TornEdges]:
    """Return the share of each row's edge weight that is torn, and the list of heavy torn edges."""
    n, weights = graph.n, graph.weights.astype(np.float64)
    relative, torn = np.empty(graph.n_edges), np.zeros(graph.n_edges, dtype=bool)
    heads = graph.heads()
    block = 1 << 20
    for begin in range(0, graph.n_edges, block):
        part = slice(begin, begin + block)
        head, tail = heads[part], graph.indices[part]
        reach = np.maximum(wide_radius[head], wide_radius[tail])
        length = distances_between(places[head], places[tail])
        torn[part] = length > reach * (1.0 + ROUNDING)
        relative[part] = length / np.where(reach > 0, reach, 1.0)
    degree = np.bincount(heads, weights, minlength=n)
    lost = np.bincount(heads[torn], weights[torn], minlength=n)
    share = np.divide(lost, degree, out=np.zeros(n), where=degree > 0)
    heaviest = np.zeros(n)
    np.maximum.at(heaviest, heads, weights)
    listed = np.flatnonzero(torn & (heads < graph.indices))
    limit = LARGE_WEIGHT * np.minimum(heaviest[heads[listed]], heaviest[graph.indices[listed]])
    listed = listed[weights[listed] >= limit]
    listed = listed[np.argsort(-(weights[listed] * relative[listed]), kind="stable")]
    ends = heads[listed].astype(np.int64), graph.indices[listed].astype(np.int64)
    return share, TornEdges(*ends, weights[listed], relative[listed])
