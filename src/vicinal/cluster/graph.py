"""Neighbor table -> graph, in parts: parts exchange their directed edges once, sorted by tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, Kept, Piece, Shelf, picked, task
from vicinal.cluster.neighbors import NeighborParts
from vicinal.graph.graph import Graph
from vicinal.graph.partition import (
    EdgeList,
    directed_part,
    joined_part,
    labelled_part,
    reconnected_part,
    sorted_by_tail,
)
from vicinal.maps.recipe import FuzzyAffinity
from vicinal.neighbors.table import Neighbors

PartSpan = tuple[Any, int, int]
GRAPH = ("indptr", "indices", "weights", "rho", "sigma")


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


def build_graph(
    table: NeighborParts,
    affinity: FuzzyAffinity,
    engine: Engine,
    labels: tuple[NDArray[np.int64], float] | None = None,
) -> GraphParts:
    """Build the fuzzy graph of a table; ``labels`` are class numbers of all rows and their influence."""
    bounds, shelf, jobs = table.bounds, engine.shelf, engine.task_jobs
    every = range(len(bounds) - 1)
    directed = engine.run([task(_direct, "direct")(table.parts[p], p, bounds, affinity, shelf, jobs) for p in every])
    joined = engine.run(
        [
            task(_join, "join")(
                engine.column([directed[p]], -1), engine.column(directed, p), p, bounds, affinity, shelf, jobs
            )
            for p in every
        ]
    )
    del directed
    if labels is not None:
        joined = _with_labels(joined, bounds, labels, engine)
    measured = engine.values([task(_measure, "measure")(part) for part in joined])
    heaviest = max(one[0] for one in measured)
    return GraphParts(bounds, joined, heaviest, sum(one[1] for one in measured))


def _with_labels(
    joined: list[Any], bounds: NDArray[np.int64], labels: tuple[NDArray[np.int64], float], engine: Engine
) -> list[Any]:
    n, codes, every = int(bounds[-1]), engine.share(labels[0]), range(len(bounds) - 1)
    marked = engine.run(
        [task(_label, "label")(joined[p], int(bounds[p]), n, codes, labels[1], engine.shelf) for p in every]
    )
    strongest = [task(_strongest, "strongest")(one) for one in marked]
    return engine.run(
        [task(_reconnect, "reconnect")(marked[p], int(bounds[p]), n, strongest, engine.shelf) for p in every]
    )


def _keep(shelf: Shelf, name: str, graph: Graph, **more: Any) -> Kept:
    return shelf.keep(name, {part: getattr(graph, part) for part in GRAPH} | more)


def _direct(
    table: Kept, part: int, bounds: NDArray[np.int64], affinity: FuzzyAffinity, shelf: Shelf, n_jobs: int
) -> list[Piece | Kept]:
    """Return the directed edges of a part, one piece for each part that they lead to, and last the part itself."""
    neighbors = Neighbors(table.load("index"), table.load("distance"))
    first = int(bounds[part])
    graph = directed_part(
        neighbors,
        first,
        int(bounds[-1]),
        local_connectivity=affinity.local_connectivity,
        disconnection_distance=affinity.disconnection_distance,
        n_jobs=n_jobs,
    )
    edges = sorted_by_tail(graph, first)
    arrays = {"head": edges.head, "tail": edges.tail, "membership": edges.membership}
    pieces = shelf.pieces(f"edges-{part}", arrays, None, np.searchsorted(edges.tail, bounds))
    return [*pieces, _keep(shelf, f"directed-{part}", graph)]


def _join(
    own: list[Any],
    others: list[Any],
    part: int,
    bounds: NDArray[np.int64],
    affinity: FuzzyAffinity,
    shelf: Shelf,
    n_jobs: int,
) -> Kept:
    incoming = [
        EdgeList(piece.load("head"), piece.load("tail"), piece.load("membership")) for piece in picked(others, part)
    ]
    graph = load_graph(picked(own, -1)[0], int(bounds[-1]))
    joined = joined_part(graph, int(bounds[part]), incoming, affinity.set_op_mix_ratio, n_jobs)
    return _keep(shelf, f"graph-{part}", joined)


def _label(part: Kept, first: int, n: int, codes: NDArray[np.int64], weight: float, shelf: Shelf) -> Kept:
    graph, strongest = labelled_part(load_graph(part, n), first, codes, weight)
    return _keep(shelf, f"labelled-{first}", graph, strongest=strongest)


def _strongest(part: Kept) -> NDArray[np.float64]:
    return part.load("strongest")


def _reconnect(part: Kept, first: int, n: int, strongest: list[NDArray[np.float64]], shelf: Shelf) -> Kept:
    graph = reconnected_part(load_graph(part, n), first, np.concatenate(strongest))
    return _keep(shelf, f"supervised-{first}", graph)


def _measure(part: Kept) -> tuple[float, int]:
    weights = part.load("weights")
    return float(weights.max(initial=0.0)), len(weights)
