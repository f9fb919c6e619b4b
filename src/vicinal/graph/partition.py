"""The fuzzy graph of consecutive rows, so that a graph can be built in parts (survey eq. 1-4).

A part has the edges that leave its rows. The other direction of an edge lies in the part of its tail, so parts exchange
their directed edges once, sorted by tail, and combine both directions. The joined parts have the same edges as
:func:`~vicinal.graph.fuzzy.fuzzy_graph` of the whole table, except that a row whose nearest neighbors are all equal to
it takes the floor of sigma from its own mean distance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.graph.fuzzy import local_memberships
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import UNKNOWN_DISTANCE, code_factors, far_distance
from vicinal.neighbors.table import Neighbors


@dataclass(frozen=True)
class EdgeList:
    """Directed edges, sorted by (tail, head), with the membership of each tail in the neighborhood of its head."""

    head: NDArray[np.int32]
    tail: NDArray[np.int32]
    membership: NDArray[np.float32]


def directed_part(
    neighbors: Neighbors,
    first: int,
    n: int,
    *,
    local_connectivity: float = 1.0,
    disconnection_distance: float | None = None,
    n_jobs: int = 1,
) -> Graph:
    """Build the directed graph of the rows from ``first`` on, given their lines of the neighbor table of ``n`` rows."""
    rows = np.arange(first, first + neighbors.n, dtype=np.int32)
    tails, membership, rho, sigma = local_memberships(
        rows,
        neighbors,
        local_connectivity=local_connectivity,
        disconnection_distance=disconnection_distance,
        n_jobs=n_jobs,
    )
    counts = membership > 0
    order = np.argsort(np.where(counts, tails, np.iinfo(np.int32).max), axis=1)
    tails, membership = np.take_along_axis(tails, order, axis=1), np.take_along_axis(membership, order, axis=1)
    counts = np.take_along_axis(counts, order, axis=1)
    indptr = np.concatenate([[0], np.cumsum(counts.sum(axis=1))]).astype(np.int64)
    return Graph(indptr, tails[counts], membership[counts], n, rho, sigma)


def sorted_by_tail(part: Graph, first: int) -> EdgeList:
    """Return the edges of a directed part in the order in which other parts take them."""
    order = np.argsort(part.indices, kind="stable")
    return EdgeList(part.heads()[order] + np.int32(first), part.indices[order], part.weights[order])


def joined_part(part: Graph, first: int, incoming: list[EdgeList], mix: float, n_jobs: int = 1) -> Graph:
    """Combine the edges that leave the rows of a part with those that lead to them.

    ``incoming`` holds the edges of all parts, in ascending order of their heads, whose tails lie in this part.
    """
    head, tail, membership = (
        np.concatenate([getattr(edges, name) for edges in incoming]) for name in ("head", "tail", "membership")
    )
    order = np.argsort(tail, kind="stable")
    counts = np.bincount(tail - first, minlength=part.n)
    arriving = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    indptr, indices, weights = cpu.join_directions(
        part.indptr, part.indices, part.weights, arriving, head[order], membership[order], mix, n_jobs
    )
    return Graph(indptr, indices, weights, part.n_tails, part.rho, part.sigma)


def labelled_part(
    part: Graph, first: int, codes: NDArray[np.int64], target_weight: float
) -> tuple[Graph, NDArray[np.float64]]:
    """Weaken the edges of a part between classes; also return the strongest edge of each row.

    ``codes`` are the class numbers of all rows, -1 for unlabelled (survey section 2.5).
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
    return _without_zeros(part, (p + q - p * q).astype(np.float32))


def _without_zeros(part: Graph, weights: NDArray[np.float32]) -> Graph:
    present: NDArray[Any] = weights != 0
    kept = np.concatenate([[0], np.cumsum(present)])
    return replace(part, indptr=kept[part.indptr], indices=part.indices[present], weights=weights[present])
