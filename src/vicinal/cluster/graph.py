"""Neighbor table -> graph, in parts: parts exchange their directed edges once, sorted by tail.

Everything here has the bits that the local functions have for the whole table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from vicinal.backends import cpu
from vicinal.cluster.engine import Engine, picked, task
from vicinal.cluster.neighbors import NeighborParts
from vicinal.cluster.store import Piece, Pieces, Store, Stored, joined_pieces
from vicinal.graph.entropic import weight_units
from vicinal.graph.graph import Graph
from vicinal.graph.partition import (
    DistanceSum,
    EdgeList,
    add_distances,
    distances_of_part,
    labeled_part,
    reconnected_part,
    sorted_by_tail,
    table_part,
)
from vicinal.layout.density import Radii, local_radii
from vicinal.neighbors.table import Neighbors

if TYPE_CHECKING:
    from vicinal.pipeline.recipe import Affinity

PartSpan = tuple[Any, int, int]
GRAPH = ("indptr", "indices", "weights", "rho", "sigma")
EDGE = np.dtype([("head", np.int32), ("tail", np.int32), ("value", np.float32)])


@dataclass(frozen=True, eq=False)
class GraphParts:
    """A symmetric graph in parts, kept as arrays of compressed sparse rows.

    Part p has the rows ``bounds[p] : bounds[p + 1]``. ``heaviest`` and ``total`` are the largest weight and the sum of
    all weights. ``rows`` are the numbers that the rows have in the data; None if the graph has all rows.
    """

    bounds: NDArray[np.int64]
    parts: list[Any]
    heaviest: float
    n_edges: int
    total: float
    rows: NDArray[np.int64] | None = None

    @property
    def n(self) -> int:
        return int(self.bounds[-1])

    @property
    def spans(self) -> list[PartSpan]:
        """The parts, each with the numbers of its first row and of the row after its last one."""
        return list(zip(self.parts, self.bounds[:-1].tolist(), self.bounds[1:].tolist(), strict=True))

    def degree(self, engine: Engine) -> NDArray[np.float64]:
        """Return the sum of the weights of each row."""
        return np.concatenate(self._each_batch(_degrees, engine))

    def isolated(self, engine: Engine) -> NDArray[np.bool_]:
        """Return which rows have no edge."""
        return np.concatenate(self._each_batch(_isolated, engine))

    def among(self, rows: NDArray[np.int64], engine: Engine) -> GraphParts:
        """Return the graph of some rows, in ascending order, which must hold the ends of all edges."""
        number = np.zeros(self.n, dtype=np.int32)
        number[rows] = np.arange(len(rows), dtype=np.int32)
        numbers = engine.put("numbers", {"numbers": number, "rows": rows})
        begin = np.searchsorted(rows, self.bounds)
        some = [p for p in range(len(self.parts)) if begin[p + 1] > begin[p]]
        made = engine.keep(
            [task(_renumber, "among")(self.parts[p], int(self.bounds[p]), numbers, self.n, engine.store) for p in some]
        )
        return replace(self, bounds=np.append(begin[some], len(rows)), parts=made, rows=rows)

    def weighing_tails(self, weight: NDArray[np.floating], engine: Engine) -> GraphParts:
        """Return the graph with each edge multiplied by the weight of its tail, relative to the mean weight."""
        weights = engine.put("weights", {"weights": weight})
        weighed = engine.keep(
            [task(_weigh_tails, "weigh")(part, first, self.n, weights, engine.store) for part, first, _ in self.spans]
        )
        return replace(_measured(self.bounds, weighed, engine), rows=self.rows)

    def _each_batch(self, function: Callable[[list[Stored], int], Any], engine: Engine) -> list[Any]:
        return engine.values(
            [task(function, function.__name__.strip("_"))(batch, self.n) for batch in engine.batches(self.parts)]
        )


def load_graph(kept: Stored, n: int) -> Graph:
    """Return a part of a graph: edges from its rows to all rows."""
    indptr, indices, weights, rho, sigma = (kept.load(name) for name in GRAPH)
    return Graph(indptr, indices, weights, n, rho, sigma)


def joined_graph(parts: list[Stored], n: int) -> Graph:
    """Join the parts of a graph of ``n`` rows."""
    graphs = [load_graph(part, n) for part in parts]
    degrees = np.concatenate([np.diff(graph.indptr) for graph in graphs])
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    rest = (np.concatenate([getattr(graph, name) for graph in graphs]) for name in GRAPH[1:])
    indices, weights, rho, sigma = rest
    return Graph(indptr, indices, weights, n, rho, sigma)


def _degrees(parts: list[Stored], n: int) -> NDArray[np.float64]:
    return np.concatenate([load_graph(part, n).degree() for part in parts])


def _isolated(parts: list[Stored], n: int) -> NDArray[np.bool_]:
    return np.concatenate([np.diff(part.load("indptr")) == 0 for part in parts])


def _renumber(part: Stored, first: int, numbers: Stored, n: int, store: Store) -> Stored:
    """Keep the edges of those rows of a part that have a number, with the numbers of their tails."""
    graph, rows = load_graph(part, n), numbers.load("rows")
    own = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + graph.n)] - first
    indptr = np.concatenate([[0], np.cumsum(np.diff(graph.indptr)[own])]).astype(np.int64)
    tails = numbers.load("numbers")[graph.indices]
    linked = Graph(indptr, tails, graph.weights, len(rows), graph.rho[own], graph.sigma[own])
    return _keep(store, f"linked-{first}", linked)


def _weigh_tails(part: Stored, first: int, n: int, weights: Stored, store: Store) -> tuple[Stored, Measure]:
    graph = load_graph(part, n).weighing_tails(weights.load("weights"))
    return _keep(store, f"weighed-{first}", graph), _measure(graph)


def _keep(store: Store, name: str, graph: Graph) -> Stored:
    return store.keep(name, {part: getattr(graph, part) for part in GRAPH})


Measure = tuple[float, int, float, int]


def _measure(graph: Graph) -> Measure:
    """Return the largest weight, the number of edges, the sum of the weights, and this sum as a number of units."""
    weights = graph.weights
    return float(weights.max(initial=0.0)), len(weights), float(weights.sum(dtype=np.float64)), weight_units(weights)


def _measured(bounds: NDArray[np.int64], made: list[Any], engine: Engine) -> GraphParts:
    """Return the graph whose parts were made, each together with its measure."""
    heaviest, n_edges, totals, _ = zip(*engine.values([one[1] for one in made]), strict=True)
    return GraphParts(bounds, [one[0] for one in made], max(heaviest), sum(n_edges), math.fsum(totals))


@dataclass(frozen=True, eq=False)
class GraphTasks:
    """The tasks that build a graph whose part p has the rows ``bounds[p] : bounds[p + 1]``.

    Rows at the distance ``limit`` or beyond are not neighbors.
    """

    bounds: NDArray[np.int64]
    affinity: Affinity
    limit: float
    store: Store
    n_jobs: int

    @property
    def n(self) -> int:
        return int(self.bounds[-1])

    def add_distances(self, before: DistanceSum, table: Stored) -> DistanceSum:
        """Add the distances of a part to the sum of those before it."""
        return add_distances(before, _neighbors(table, self.limit).distance)

    def direct(self, table: Stored, part: int, summed: DistanceSum) -> tuple[Pieces | list[Piece], Stored]:
        """Return the directed edges of a part, one piece for each part that they lead to, and the part itself."""
        total, count = summed
        mean, first = total / count if count else 0.0, int(self.bounds[part])
        graph = self.affinity.directed_part(_neighbors(table, self.limit), first, self.n, mean, self.n_jobs)
        return _pieces(f"edges-{part}", graph, first, self.bounds, self.store), _keep(
            self.store, f"directed-{part}", graph
        )

    def join(self, own: Stored, others: list[Any], part: int) -> tuple[Stored, Measure]:
        """Combine both directions of the edges of a part."""
        first, incoming = int(self.bounds[part]), _incoming(others, part)
        joined = self.affinity.joined_part(load_graph(own, self.n), first, incoming, self.n_jobs)
        return _keep(self.store, f"graph-{part}", joined), _measure(joined)

    def divide(self, own: Stored, part: int, total: float) -> tuple[Stored, Measure]:
        """Divide the weights of a part by the sum of those of all parts."""
        graph = load_graph(own, self.n)
        divided = replace(graph, weights=cpu.divide_weights(graph.weights, total))
        return _keep(self.store, f"divided-{part}", divided), _measure(divided)


def _neighbors(table: Stored, limit: float) -> Neighbors:
    """Return the lines of a part of the neighbor table, without rows at the distance ``limit`` or beyond."""
    neighbors = Neighbors(table.load("index"), table.load("distance"))
    return neighbors.within(limit) if limit < math.inf else neighbors


def _pieces(name: str, graph: Graph, first: int, bounds: NDArray[np.int64], store: Store) -> Pieces | list[Piece]:
    """Keep directed edges, one piece for each part that they lead to."""
    edges = sorted_by_tail(graph, first)
    lines = np.empty(len(edges.head), EDGE)
    lines["head"], lines["tail"], lines["value"] = edges.head, edges.tail, edges.value
    return store.pieces(name, {"edges": lines}, np.searchsorted(edges.tail, bounds))


def _incoming(others: list[Any], part: int) -> EdgeList:
    """Return the edges that lead to a part."""
    lines = joined_pieces(picked(others, part), "edges")
    return EdgeList(*(np.ascontiguousarray(lines[name]) for name in EDGE.names or ()))


def build_graph(table: NeighborParts, affinity: Affinity, engine: Engine, *, limit: float = math.inf) -> GraphParts:
    """Build the symmetric graph of a neighbor table; rows at the distance ``limit`` or beyond are not neighbors."""
    bounds, every = table.bounds, range(len(table.parts))
    tasks = engine.share(GraphTasks(bounds, affinity, limit, engine.store, engine.task_jobs))
    summed: Any = (0.0, 0)
    if affinity.uses_mean_distance:
        for part in table.parts:
            summed = task(GraphTasks.add_distances, "sum")(tasks, summed, part)
        summed = engine.values([summed])[0]
    directed = engine.keep([task(GraphTasks.direct, "direct")(tasks, table.parts[p], p, summed) for p in every])
    edges = engine.columns([one[0] for one in directed])
    made = engine.keep([task(GraphTasks.join, "join")(tasks, directed[p][1], edges(p), p) for p in every])
    for kind in ("edges", "directed"):
        engine.store.discard(kind)
    total = affinity.divisor(sum(measure[3] for measure in engine.values([one[1] for one in made])))
    if total != 1.0:
        made = engine.keep([task(GraphTasks.divide, "divide")(tasks, made[p][0], p, total) for p in every])
        engine.store.discard("graph")
    return _measured(bounds, made, engine)


def supervised_graph(graph: GraphParts, codes: NDArray[np.int64], weight: float, engine: Engine) -> GraphParts:
    """Intersect a graph with the class numbers of all rows, whose influence is ``weight`` (survey section 2.5)."""
    labels, n = engine.put("codes", {"codes": codes}), graph.n
    marked = engine.keep(
        [task(_label, "label")(part, first, n, labels, weight, engine.store) for part, first, _ in graph.spans]
    )
    strongest = engine.share_all([one[1] for one in marked])
    made = engine.keep(
        [
            task(_reconnect, "reconnect")(one[0], first, n, strongest, engine.store)
            for one, (_, first, _) in zip(marked, graph.spans, strict=True)
        ]
    )
    return _measured(graph.bounds, made, engine)


def _label(own: Stored, first: int, n: int, codes: Stored, weight: float, store: Store) -> tuple[Stored, Stored]:
    """Return the part with its edges between classes weakened, and the strongest edge of each row."""
    graph, strongest = labeled_part(load_graph(own, n), first, codes.load("codes"), weight)
    return _keep(store, f"labeled-{first}", graph), store.keep(f"strongest-{first}", {"strongest": strongest})


def _reconnect(own: Stored, first: int, n: int, all_strongest: list[Stored], store: Store) -> tuple[Stored, Measure]:
    """Scale the strongest edge of every row of a part to 1."""
    strongest = np.concatenate([one.load("strongest") for one in all_strongest])
    graph = reconnected_part(load_graph(own, n), first, strongest)
    return _keep(store, f"supervised-{first}", graph), _measure(graph)


def parted_radii(graph: GraphParts, table: NeighborParts, engine: Engine, *, limit: float = math.inf) -> Radii:
    """Compute the local radii of all rows of a graph in the data (survey eq. 30).

    ``table`` is the neighbor table of the same rows; rows at the distance ``limit`` or beyond are not neighbors.
    """
    bounds, store = engine.share(table.bounds), engine.store
    every = list(enumerate(zip(graph.parts, table.parts, strict=True)))
    listed = engine.columns(
        engine.keep([task(_list_distances, "distances")(lines, p, bounds, limit, store) for p, (_, lines) in every])
    )
    radii = engine.values([task(_radii, "radii")(own, lines, listed(p), p, bounds, limit) for p, (own, lines) in every])
    store.discard("distances")
    return Radii.of_rows(np.concatenate(radii))


def _list_distances(
    table: Stored, part: int, bounds: NDArray[np.int64], limit: float, store: Store
) -> Pieces | list[Piece]:
    """Return the entries of a part of the table, one piece for each part that they lead to."""
    first, n = int(bounds[part]), int(bounds[-1])
    return _pieces(f"distances-{part}", table_part(_neighbors(table, limit), first, n), first, bounds, store)


def _radii(
    own: Stored, table: Stored, others: list[Any], part: int, bounds: NDArray[np.int64], limit: float
) -> NDArray[np.float64]:
    """Return the local radii of the rows of a part."""
    graph, first = load_graph(own, int(bounds[-1])), int(bounds[part])
    lines = table_part(_neighbors(table, limit), first, graph.n_tails)
    return local_radii(graph, distances_of_part(graph, first, lines, _incoming(others, part)))


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
