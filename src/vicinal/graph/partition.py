"""Graphs of consecutive rows, so that a graph can be built in parts (survey eq. 1-4, 18, 19).

A part has the edges that leave its rows. The other direction of an edge lies in the part of its tail, so parts exchange
their directed edges once, sorted by tail, and combine both directions. The joined parts have the same bits as
:func:`~vicinal.graph.fuzzy.fuzzy_graph` and :func:`~vicinal.graph.entropic.entropic_graph` of the whole table.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.entropic import check_perplexity
from vicinal.graph.fuzzy import local_memberships
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import UNKNOWN_DISTANCE, code_factors, far_distance
from vicinal.neighbors.table import Neighbors


@dataclass(frozen=True)
class EdgeList:
    """Directed edges with a value each: the membership of the tail in the neighborhood of the head, or a distance."""

    head: NDArray[np.int32]
    tail: NDArray[np.int32]
    value: NDArray[np.float32]


Floats = NDArray[np.float32]
DistanceSum = tuple[float, int]  # of the finite distances of some rows, and their number
SUMMED = 1 << 16  # distances that are summed at a time


def add_distances(before: DistanceSum, distance: NDArray[np.float32]) -> DistanceSum:
    """Add the distances of the rows of a part to the sum of those before them, one by one as for the whole table."""
    total, count = before
    flat = distance.reshape(-1)
    for begin in range(0, len(flat), SUMMED):
        some = flat[begin : begin + SUMMED]
        some = some[np.isfinite(some)].astype(np.float64)
        total = float(np.add.accumulate(np.concatenate([[total], some]))[-1])
        count += len(some)
    return total, count


def fuzzy_part(
    neighbors: Neighbors, first: int, n: int, mean_distance: float, local_connectivity: float = 1.0, n_jobs: int = 1
) -> Graph:
    """Build UMAP's directed graph of the rows from ``first`` on, given their lines of the table of ``n`` rows.

    ``mean_distance`` is that of the whole table (:func:`add_distances`).
    """
    rows = np.arange(first, first + neighbors.n, dtype=np.int32)
    options = {"local_connectivity": local_connectivity, "mean_distance": mean_distance}
    return _directed(*local_memberships(rows, neighbors, n_jobs=n_jobs, **options), n)


def entropic_part(neighbors: Neighbors, first: int, n: int, perplexity: float, *, n_jobs: int = 1) -> Graph:
    """Build the directed graph of t-SNE and LargeVis of the rows from ``first`` on, as :func:`fuzzy_part` does."""
    check_perplexity(perplexity)
    rows = np.arange(first, first + neighbors.n, dtype=np.int32)
    tails = np.where(neighbors.index == rows[:, None], np.int32(-1), neighbors.index)
    conditional, sigma = cpu.perplexity_conditionals(tails, neighbors.distance, float(perplexity), True, n_jobs)
    return _directed(tails, conditional, np.zeros(neighbors.n, np.float32), sigma, n)


def _directed(tails: NDArray[np.int32], membership: Floats, rho: Floats, sigma: Floats, n: int) -> Graph:
    """Return the directed edges of a table with their tails in ascending order."""
    counts = membership > 0
    order = np.argsort(np.where(counts, tails, np.iinfo(np.int32).max), axis=1)
    tails, membership = np.take_along_axis(tails, order, axis=1), np.take_along_axis(membership, order, axis=1)
    counts = np.take_along_axis(counts, order, axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    return Graph(indptr, tails[counts], membership[counts], n, rho, sigma)


def sorted_by_tail(part: Graph, first: int) -> EdgeList:
    """Return the edges of a directed part in the order in which other parts take them: by (tail, head)."""
    order = np.argsort(part.indices, kind="stable")
    return EdgeList(part.heads()[order] + np.int32(first), part.indices[order], part.weights[order])


def table_part(neighbors: Neighbors, first: int, n: int) -> Graph:
    """Return the lines of the rows from ``first`` on of a table of ``n`` rows, as edges that weigh as they are long."""
    none = np.zeros(neighbors.n, np.float32)
    return Graph.to_known_rows(neighbors, neighbors.distance, n, none, none)


def distances_of_part(part: Graph, first: int, table: Graph, incoming: EdgeList) -> NDArray[np.float32]:
    """Return the distance in the data of every edge of a part, -1 for edges that are not in the neighbor table.

    The part has the rows from ``first`` on, with ascending tails; ``table`` their lines (:func:`table_part`), and
    ``incoming`` the entries of all lines whose tails lie in this part. Distances are those that
    :func:`~vicinal.layout.density.edge_distances` returns for the whole graph.
    """
    n = np.int64(part.n_tails)
    edges = part.heads() * n + part.indices
    distance = np.full(len(edges), -1, np.float32)
    # An approximate table may contain a pair in one direction only.
    for heads, tails, lengths in (
        (table.heads(), table.indices, table.weights),
        (incoming.tail - np.int32(first), incoming.head, incoming.value),
    ):
        wanted = heads * n + tails
        at = np.minimum(np.searchsorted(edges, wanted), max(len(edges) - 1, 0))
        found = edges[at] == wanted if len(edges) else np.zeros(len(wanted), np.bool_)
        distance[at[found]] = np.maximum(distance[at[found]], lengths[found])
    return distance


def joined_part(part: Graph, first: int, incoming: EdgeList, mix: float | None, n_jobs: int = 1) -> Graph:
    """Combine the edges that leave the rows of a part with those that lead to them.

    ``incoming`` holds the edges whose tails lie in this part; for each tail in ascending order of their heads. ``mix``
    is that of fuzzy union and intersection; None takes the mean of both directions.
    """
    order = np.argsort(incoming.tail, kind="stable")
    counts = np.bincount(incoming.tail - first, minlength=part.n)
    arriving = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    towards = incoming.head[order], incoming.value[order]
    indptr, indices, weights = cpu.join_directions(
        part.indptr, part.indices, part.weights, arriving, *towards, mix, n_jobs
    )
    return Graph(indptr, indices, weights, part.n_tails, part.rho, part.sigma)


def labeled_part(
    part: Graph, first: int, codes: NDArray[np.int64], target_weight: float
) -> tuple[Graph, NDArray[np.float64]]:
    """Weaken the edges of a part between classes; also return the strongest edge of each row.

    ``codes`` are the class numbers of all rows, -1 for unlabeled (survey section 2.5).
    """
    factors = code_factors(
        codes[part.heads() + first], codes[part.indices], UNKNOWN_DISTANCE, far_distance(target_weight)
    )
    weights = (part.weights.astype(np.float64) * factors).astype(np.float32)
    strongest = np.zeros(part.n)
    np.maximum.at(strongest, part.heads(), np.abs(weights.astype(np.float64)))
    return replace(part, weights=weights), strongest


def reconnected_part(part: Graph, first: int, strongest: NDArray[np.float64]) -> Graph:
    """Scale the strongest edge of every row to 1 and unite both directions; ``strongest`` covers all rows."""
    weights = part.weights.astype(np.float64)
    own, other = strongest[part.heads() + first], strongest[part.indices]
    p, q = (np.divide(weights, most, out=np.zeros_like(weights), where=most > 0) for most in (own, other))
    united = (p + q - p * q).astype(np.float32)
    present = united != 0
    kept = np.concatenate([[0], np.cumsum(present)])
    return replace(part, indptr=kept[part.indptr], indices=part.indices[present], weights=united[present])
