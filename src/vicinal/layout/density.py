"""densMAP's local radii (survey eq. 30, 31) and the term that keeps their logarithms correlated (eq. 33-35)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.neighbors.index import find_neighbors
from vicinal.neighbors.points import nearest_points
from vicinal.neighbors.table import Neighbors

Floats = NDArray[np.float64]
Summary = tuple[float, float, float, float]  # Layout.density_summary

# Under the logarithm, so that rows of nothing but duplicates have one: a part of the mean radius, since data has any
# unit.
EPSILON = 1e-8
# An exact gradient wastes none of its weight on noise, and can let radii spread wider before their variance counts
# against it. What is applied of ``dens_lambda``, and how many times ``dens_var_shift``. Fashion-MNIST, (weight, shift):
# correlation and recall@15 (2, 0.1) 0.662 0.074, (0.5, 0.1) 0.665 0.096, (0.5, 2) 0.754 0.118, (1, 2) 0.789 0.110,
# (2, 2) 0.815 0.094, (1, 4) 0.782 0.112.
EXACT_SHARE, EXACT_SHIFT = 0.5, 20.0
# Trees find neighbours of maps fast; with more components they look at every row.
MOST_TREE_COMPONENTS = 8


@dataclass(frozen=True)
class DensityTerm:
    """-weight * Corr(r_q, r_p) in the last ``fraction`` of the epochs.

    ``target`` holds standardised r_p, NaN for rows that are left out. ``fitted`` is the (mean, variance, covariance,
    strength) of a finished map when new rows are placed into it: each then matches its own radius alone.
    """

    target: NDArray[np.float32]
    weight: float = 2.0
    fraction: float = 0.3
    variance_shift: float = 0.1
    fitted: Summary | None = None


@dataclass(frozen=True)
class Radii:
    """Logarithms of local radii, NaN where a row has no neighbours, with their mean, their standard deviation, and
    the smallest radius that is told from none."""

    log_radius: Floats
    mean: float
    deviation: float
    floor: float

    @staticmethod
    def of(graph: Graph, distance: NDArray[np.float32]) -> Radii:
        """r_p of eq. 30 from the distance of every edge; edges of unknown distance (below 0) do not count."""
        radius = local_radii(graph, distance)
        known = np.isfinite(radius)
        floor = (EPSILON * float(radius[known].mean()) if known.any() else 0.0) or EPSILON
        log_radius = np.log(radius + floor)
        mean = float(log_radius[known].mean()) if known.any() else 0.0
        deviation = float(log_radius[known].std(ddof=1)) if known.sum() > 1 else 0.0
        return Radii(log_radius, mean, deviation, floor)

    def term(self, weight: float, fraction: float, variance_shift: float) -> DensityTerm:
        """The term that draws a map towards these radii."""
        return DensityTerm(self.standardised(self.log_radius), weight, fraction, variance_shift)

    def standardised(self, log_radius: Floats) -> NDArray[np.float32]:
        """In units of these radii's deviation; equal radii ask for nothing."""
        apart = log_radius - self.mean
        return (apart / self.deviation if self.deviation > 0 else 0.0 * apart).astype(np.float32)

    def placing(self, weight: float, summary: Summary, graph: Graph, neighbors: Neighbors) -> DensityTerm:
        """The term for new rows, from the graph that leads from them to the fitted ones; it acts in every epoch."""
        log_radius = np.log(local_radii(graph, neighbors.distance.reshape(-1)) + self.floor)
        return DensityTerm(self.standardised(log_radius), weight, 1.0, fitted=summary)


def local_radii(graph: Graph, distance: NDArray[np.float32]) -> Floats:
    """The mean squared distance of a row's edges, weighted by membership (eq. 30); NaN without edges."""
    length = distance.astype(np.float64)
    known = (length >= 0) & np.isfinite(length) & (graph.weights > 0)
    weights = np.where(known, graph.weights, 0.0).astype(np.float64)
    heads = graph.heads()
    moment = np.bincount(heads, weights * np.where(known, length, 0.0) ** 2, minlength=graph.n)
    mass = np.bincount(heads, weights, minlength=graph.n)
    return np.asarray(np.divide(moment, mass, out=np.full(graph.n, np.nan), where=mass > 0))


def edge_distances(graph: Graph, neighbors: Neighbors, n_jobs: int = -1) -> NDArray[np.float32]:
    """The input distance of every edge of a graph made from a neighbour table; -1 for edges that are not from there."""
    return cpu.edge_distances(graph.indptr, graph.indices, graph.weights, neighbors.index, neighbors.distance, n_jobs)


def embedding_radii(embedding: NDArray[np.float32], n_neighbors: int, n_jobs: int = -1) -> Floats:
    """ln of the local radii of a map, by the same rule as those of data: from its own neighbours and fuzzy graph."""
    n, n_components = embedding.shape
    k = min(n_neighbors, n)
    if k < 2:
        return np.full(n, np.nan)
    if n_components <= MOST_TREE_COMPONENTS:
        neighbors = _self_first(nearest_points(embedding, embedding, k, n_jobs))
    else:
        neighbors = find_neighbors(embedding, k, n_jobs=n_jobs)
    graph = fuzzy_graph(neighbors, n_jobs=n_jobs)
    return Radii.of(graph, edge_distances(graph, neighbors, n_jobs)).log_radius


def _self_first(neighbors: Neighbors) -> Neighbors:
    """Rows at one place may stand before the row itself, or instead of it."""
    index = neighbors.index.copy()
    rows = np.arange(neighbors.n, dtype=np.int32)
    at = np.where((index == rows[:, None]).any(axis=1), (index == rows[:, None]).argmax(axis=1), neighbors.k - 1)
    index[rows, at] = index[:, 0]
    index[:, 0] = rows
    return Neighbors(index, neighbors.distance)


def finite_radii(log_radius: Floats) -> NDArray[np.float32]:
    """Rows without neighbours get the largest radius there is: nothing is near them."""
    if np.isfinite(log_radius).any():
        return np.where(np.isfinite(log_radius), log_radius, np.nanmax(log_radius)).astype(np.float32)
    return np.zeros(len(log_radius), dtype=np.float32)


def radius_correlation(first: Floats, second: Floats) -> float:
    """Corr of eq. 33 over the rows that have both; 0 where either does not vary."""
    both = np.isfinite(first) & np.isfinite(second)
    if both.sum() < 2 or not (np.ptp(first[both]) > 0 and np.ptp(second[both]) > 0):
        return 0.0
    return float(np.corrcoef(first[both], second[both])[0, 1])
