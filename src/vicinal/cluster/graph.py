"""Neighbor table -> graph, in parts: parts exchange their directed edges once, sorted by tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from vicinal.cluster.engine import Engine, picked, task
from vicinal.cluster.neighbors import NeighborParts
from vicinal.cluster.store import Kept, Piece, Pieces, Shelf, joined_pieces
from vicinal.graph.graph import Graph
from vicinal.graph.partition import (
    EdgeList,
    directed_part,
    joined_part,
    labelled_part,
    reconnected_part,
    sorted_by_tail,
)
from vicinal.neighbors.table import Neighbors
from vicinal.pipeline.recipe import FuzzyAffinity

PartSpan = tuple[Any, int, int]
Measure = tuple[float, int]
GRAPH = ("indptr", "indices", "weights", "rho", "sigma")
EDGE = np.dtype([("head", np.int32), ("tail", np.int32), ("membership", np.float32)])


@dataclass(frozen=True, eq=False)
class GraphParts:
    """A symmetric graph in parts, kept as arrays of compressed sparse rows; ``heaviest`` is its largest weight."""

    bounds: NDArray[np.int64]
    parts: list[Any]
    heaviest: float
    n_edges: int

    @property
    def n(self) -> int:
        return int(self.bounds[-1])

    @property
    def spans(self) -> list[PartSpan]:
        """The parts, each with the numbers of its first row and of the row after its last one."""
        return list(zip(self.parts, self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True))


def load_graph(kept: Kept, n: int) -> Graph:
    """Return a part of a graph: edges from its rows to all rows."""
    indptr, indices, weights, rho, sigma = (kept.load(name) for name in GRAPH)
    return Graph(indptr, indices, weights, n, rho, sigma)


@dataclass(frozen=True, eq=False)
class GraphPlan:
    """What the tasks of a graph have in common: part p has the rows ``bounds[p] : bounds[p + 1]``."""

    bounds: NDArray[np.int64]
    affinity: FuzzyAffinity
    shelf: Shelf
    n_jobs: int

    @property
    def n(self) -> int:
        return int(self.bounds[-1])


def build_graph(
    table: NeighborParts,
    affinity: FuzzyAffinity,
    engine: Engine,
    labels: tuple[NDArray[np.int64], float] | None = None,
) -> GraphParts:
    """Build the fuzzy graph of a table; ``labels`` are class numbers of all rows and their influence."""
    bounds = table.bounds
    plan = engine.share(GraphPlan(bounds, affinity, engine.shelf, engine.task_jobs))
    every = range(len(bounds) - 1)
    directed = engine.keep([task(_direct, "direct")(table.parts[p], p, plan) for p in every])
    edges = engine.columns([one[0] for one in directed])
    joined = engine.keep([task(_join, "join")(directed[p][1], edges(p), p, plan) for p in every])
    for kind in ("edges", "directed"):
        engine.shelf.discard(kind)
    if labels is not None:
        joined = _with_labels([one[0] for one in joined], plan, bounds, labels, engine)
    sizes = engine.values([one[1] for one in joined])
    heaviest = max(heaviest for heaviest, _ in sizes)
    return GraphParts(bounds, [one[0] for one in joined], heaviest, sum(edges for _, edges in sizes))


def _with_labels(
    joined: list[Any],
    plan: Any,
    bounds: NDArray[np.int64],
    labels: tuple[NDArray[np.int64], float],
    engine: Engine,
) -> list[Any]:
    codes, firsts = engine.store("codes", {"codes": labels[0]}), bounds[:-1].tolist()
    marked = engine.keep(
        [task(_label, "label")(part, first, codes, labels[1], plan) for part, first in zip(joined, firsts, strict=True)]
    )
    strongest = engine.share_all([one[1] for one in marked])
    return engine.keep(
        [
            task(_reconnect, "reconnect")(one[0], first, strongest, plan)
            for one, first in zip(marked, firsts, strict=True)
        ]
    )


def _keep(shelf: Shelf, name: str, graph: Graph) -> Kept:
    return shelf.keep(name, {part: getattr(graph, part) for part in GRAPH})


def _direct(table: Kept, part: int, plan: GraphPlan) -> tuple[Pieces | list[Piece], Kept]:
    """Return the directed edges of a part, one piece for each part that they lead to, and the part itself."""
    neighbors = Neighbors(table.load("index"), table.load("distance"))
    first, affinity = int(plan.bounds[part]), plan.affinity
    graph = directed_part(
        neighbors,
        first,
        plan.n,
        local_connectivity=affinity.local_connectivity,
        disconnection_distance=affinity.disconnection_distance,
        n_jobs=plan.n_jobs,
    )
    del neighbors
    own = _keep(plan.shelf, f"directed-{part}", graph)
    edges = sorted_by_tail(graph, first)
    lines = np.empty(len(edges.head), EDGE)
    lines["head"], lines["tail"], lines["membership"] = edges.head, edges.tail, edges.membership
    return plan.shelf.pieces(f"edges-{part}", {"edges": lines}, np.searchsorted(edges.tail, plan.bounds)), own


def _join(own: Kept, others: list[Any], part: int, plan: GraphPlan) -> tuple[Kept, Measure]:
    lines = joined_pieces(picked(others, part), "edges")
    incoming = EdgeList(*(np.ascontiguousarray(lines[name]) for name in EDGE.names or ()))
    del lines
    mix = plan.affinity.set_op_mix_ratio
    joined = joined_part(load_graph(own, plan.n), int(plan.bounds[part]), [incoming], mix, plan.n_jobs)
    return _keep(plan.shelf, f"graph-{part}", joined), _measure(joined)


def _label(part: Kept, first: int, codes: Kept, weight: float, plan: GraphPlan) -> tuple[Kept, Kept]:
    """Return the part with its edges between classes weakened, and the strongest edge of each row."""
    graph, strongest = labelled_part(load_graph(part, plan.n), first, codes.load("codes"), weight)
    kept = _keep(plan.shelf, f"labelled-{first}", graph)
    return kept, plan.shelf.keep(f"strongest-{first}", {"strongest": strongest})


def _reconnect(part: Kept, first: int, all_strongest: list[Kept], plan: GraphPlan) -> tuple[Kept, Measure]:
    strongest = np.concatenate([one.load("strongest") for one in all_strongest])
    graph = reconnected_part(load_graph(part, plan.n), first, strongest)
    return _keep(plan.shelf, f"supervised-{first}", graph), _measure(graph)


def _measure(graph: Graph) -> Measure:
    """Return the largest weight and the number of edges."""
    return float(graph.weights.max(initial=0.0)), len(graph.weights)


Labels = NDArray[np.int32]
JOINED_ROWS = 1 << 18  # edges, or rows of two forests, that are joined at a time


def component_labels(parts: list[PartSpan], n: int) -> Labels:
    """Return for each of the n rows the lowest row that the edges of some parts connect it with."""
    parent = np.arange(n, dtype=np.int32)
    for part, first, _ in parts:
        graph = load_graph(part, n)
        heads = graph.heads() + np.int32(first)
        for begin in range(0, len(heads), JOINED_ROWS):
            some, tails = heads[begin : begin + JOINED_ROWS], graph.indices[begin : begin + JOINED_ROWS]
            one_way = tails < some  # the other direction is the same edge
            _join_trees(parent, some[one_way], tails[one_way])
    return _flat(parent)


def joined_labels(labels: Labels, others: Labels) -> Labels:
    """Return the lowest row that each row is connected with by the edges of either side."""
    parent = labels.copy()
    for first in range(0, len(parent), JOINED_ROWS):
        rows = np.arange(first, min(first + JOINED_ROWS, len(parent)), dtype=np.int32)
        _join_trees(parent, rows, others[first : first + JOINED_ROWS])
    return _flat(parent)


def _join_trees(parent: Labels, heads: Labels, tails: Labels) -> None:
    """Join the trees of pairs of rows."""
    heads, tails = _roots(parent, heads), _roots(parent, tails)
    apart = heads != tails
    if not apart.any():
        return
    roots, at = np.unique(np.concatenate([heads[apart], tails[apart]]), return_inverse=True)
    pairs, size = at.reshape(2, -1), len(roots)
    matrix = csr_matrix((np.ones(pairs.shape[1], np.bool_), (pairs[0], pairs[1])), shape=(size, size))
    count, component = connected_components(matrix, directed=False)
    # Of several entries of a component the last one assigned counts: in descending order that is the lowest.
    lowest = np.empty(count, np.int32)
    lowest[component[::-1]] = roots[::-1]
    parent[roots] = lowest[component]


def _roots(parent: Labels, rows: Labels) -> Labels:
    above = parent[rows]
    while True:
        higher = parent[above]
        if np.array_equal(higher, above):
            return above
        above = higher


def _flat(parent: Labels) -> Labels:
    """Make every row a child of its root."""
    for first in range(0, len(parent), JOINED_ROWS):
        rows = parent[first : first + JOINED_ROWS]
        rows[:] = _roots(parent, rows)
    return parent
