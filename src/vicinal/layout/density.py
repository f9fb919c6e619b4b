"""densMAP's local radii (survey eq. 30, 31) and the term that keeps their logarithms correlated (eq. 33-35)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.layout.schedule import Schedule
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.search import nearest_points
from vicinal.neighbors.table import Neighbors

Floats = NDArray[np.float64]
Summary = tuple[float, float, float, float]  # Layout.density_summary

# Added under the logarithm, as a share of the mean radius, because rows that have only duplicates have radius 0.
EPSILON = 1e-8
# Factors on umap-learn's ``dens_lambda`` and ``dens_var_shift``, which were chosen for a sampled gradient. A larger
# weight follows the densities more closely and loses trustworthiness; a larger shift lets the radii vary more, and too
# large a one makes the weight act on their spread instead of their correlation (docs/decisions, densmap-weight).
EXACT_SHARE, EXACT_SHIFT = 0.75, 4.0
# The same factor for new rows. The points around them do not move, so that the radii follow more easily.
PLACING_SHARE = 0.5
# The gradient over all edges costs more than a sweep. Steps longer than this overshoot: recall@15 of digits at
# dens_lambda 5 is 0.385 with a step per 16 sweeps and 0.415 with a step per 4.
DENSITY_SWEEPS = 4
# With more components a tree compares nearly all pairs of rows.
MOST_TREE_COMPONENTS = 8


@dataclass(frozen=True)
class DensityTerm:
    """The cost -weight * Corr(r_q, r_p) of densMAP, which acts in the last ``fraction`` of the epochs.

    ``target`` is the standardized r_p, NaN for rows that are left out; ``variance_shift`` is added to the variance of
    r_q. ``fitted`` is the ``density_summary`` of a finished map into which rows are placed: each row then matches its
    own radius.
    """

    target: NDArray[np.float32]
    weight: float = 2.0
    fraction: float = 0.3
    variance_shift: float = 0.1
    fitted: Summary | None = None

    def of_rows(self, rows: NDArray[np.int64]) -> DensityTerm:
        """Return the term of some of the rows."""
        return replace(self, target=self.target[rows])

    def sweeps(self, schedule: Schedule) -> tuple[int, int]:
        """Return the first sweep of a schedule in which the term acts, and after how many sweeps it acts again."""
        first = schedule.n_epochs - int(np.floor(self.fraction * schedule.n_epochs))
        return first * schedule.sweeps, min(schedule.sweeps, DENSITY_SWEEPS)


@dataclass(frozen=True)
class Radii:
    """Logarithms of the local radii of rows.

    ``log_radius`` is NaN for rows without neighbors. ``mean`` and ``deviation`` are those of the other rows; ``floor``
    is the number that was added to the radii before taking the logarithm.
    """

    log_radius: Floats
    mean: float
    deviation: float
    floor: float

    @staticmethod
    def of(graph: Graph, distance: NDArray[np.float32]) -> Radii:
        """Compute r_p of eq. 30 from the distance of every edge; edges with a distance below 0 are left out."""
        return Radii.of_rows(local_radii(graph, distance))

    @staticmethod
    def of_rows(radius: Floats) -> Radii:
        """Return the logarithms of the local radii of all rows (:func:`local_radii`)."""
        known = np.isfinite(radius)
        floor = (EPSILON * float(radius[known].mean()) if known.any() else 0.0) or EPSILON
        log_radius = np.log(radius + floor)
        mean = float(log_radius[known].mean()) if known.any() else 0.0
        deviation = float(log_radius[known].std(ddof=1)) if known.sum() > 1 else 0.0
        return Radii(log_radius, mean, deviation, floor)

    def term(self, weight: float, fraction: float, variance_shift: float) -> DensityTerm:
        """Return the density term that has these radii as its target."""
        return DensityTerm(self.standardized(self.log_radius), weight, fraction, variance_shift)

    def standardized(self, log_radius: Floats) -> NDArray[np.float32]:
        """Return log radii in units of the deviation of these ones, 0 if these are all equal."""
        apart = log_radius - self.mean
        return (apart / self.deviation if self.deviation > 0 else 0.0 * apart).astype(np.float32)

    def placing(self, weight: float, summary: Summary, graph: Graph, neighbors: Neighbors) -> DensityTerm:
        """Return the term for rows that are placed into a finished map, which acts in every epoch.

        ``graph`` and ``neighbors`` lead from these rows to the rows of the map.
        """
        log_radius = np.log(local_radii(graph, neighbors.distance[neighbors.index >= 0]) + self.floor)
        return DensityTerm(self.standardized(log_radius), weight, 1.0, fitted=summary)


def local_radii(graph: Graph, distance: NDArray[np.float32]) -> Floats:
    """Compute the mean squared distance of each row's edges, weighted by membership (eq. 30); NaN without edges."""
    length = distance.astype(np.float64)
    known = (length >= 0) & np.isfinite(length) & (graph.weights > 0)
    weights = np.where(known, graph.weights, 0.0).astype(np.float64)
    heads = graph.heads()
    moment = np.bincount(heads, weights * np.where(known, length, 0.0) ** 2, minlength=graph.n)
    mass = np.bincount(heads, weights, minlength=graph.n)
    return np.asarray(np.divide(moment, mass, out=np.full(graph.n, np.nan), where=mass > 0))


def edge_distances(graph: Graph, neighbors: Neighbors, n_jobs: int = -1) -> NDArray[np.float32]:
    """Return the distance in the data of every edge of a graph, -1 for edges that are not in the neighbor table."""
    return cpu.edge_distances(graph.indptr, graph.indices, graph.weights, neighbors.index, neighbors.distance, n_jobs)


def embedding_radii(embedding: NDArray[np.float32], n_neighbors: int, n_jobs: int = -1) -> Floats:
    """Compute the log radii of the points of a map as those of data: from its own neighbors and fuzzy graph."""
    n, n_components = embedding.shape
    k = min(n_neighbors, n)
    if k < 2:
        return np.full(n, np.nan)
    if n_components <= MOST_TREE_COMPONENTS:
        neighbors = _self_first(nearest_points(embedding, embedding, k, n_jobs))
    else:
        neighbors = NeighborIndex(embedding, n_jobs=n_jobs).search(k)
    graph = fuzzy_graph(neighbors, n_jobs=n_jobs)
    return Radii.of(graph, edge_distances(graph, neighbors, n_jobs)).log_radius


def _self_first(neighbors: Neighbors) -> Neighbors:
    """Put each row first in its own list of neighbors, where another row at the same place may come before it."""
    index = neighbors.index.copy()
    rows = np.arange(neighbors.n, dtype=np.int32)
    at = np.where((index == rows[:, None]).any(axis=1), (index == rows[:, None]).argmax(axis=1), neighbors.k - 1)
    index[rows, at] = index[:, 0]
    index[:, 0] = rows
    return Neighbors(index, neighbors.distance)


def finite_radii(log_radius: Floats) -> NDArray[np.float32]:
    """Return float32 radii in which rows without neighbors have the largest radius of all rows."""
    if np.isfinite(log_radius).any():
        return np.where(np.isfinite(log_radius), log_radius, np.nanmax(log_radius)).astype(np.float32)
    return np.zeros(len(log_radius), dtype=np.float32)


def radius_correlation(first: Floats, second: Floats) -> float:
    """Compute the correlation of eq. 33 over rows with finite values in both, 0 if either is constant."""
    both = np.isfinite(first) & np.isfinite(second)
    if both.sum() < 2 or not (np.ptp(first[both]) > 0 and np.ptp(second[both]) > 0):
        return 0.0
    return float(np.corrcoef(first[both], second[both])[0, 1])
