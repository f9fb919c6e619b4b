"""Graph -> first places, in parts.

Up to WHOLE_ROWS rows the start is the local one, computed in one task. Beyond, the rows of each connected component are
grouped by their nearest landmark, the spectral start is computed for the graph of the groups, and a row starts at the
mean place of the groups of its neighbors, weighted by its edges. Weights between groups are summed as integers, and
noise is drawn for a fixed number of rows at a time, so the start does not depend on the parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components

from vicinal.cluster.engine import Engine, Kept, folded, task
from vicinal.cluster.graph import GraphParts, PartSpan, load_graph
from vicinal.cluster.neighbors import ROW_GRAIN, NeighborParts
from vicinal.cluster.rows import DaskRows, read_block
from vicinal.graph.graph import Graph
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import NOISE, InitialTask, extent
from vicinal.neighbors.cells import Cells, joined_rows
from vicinal.neighbors.metrics import is_sparse

WHOLE_ROWS = 20_000
UNIT = 2.0**-30  # of the weights between groups

Places = NDArray[np.float32]
Labels = NDArray[np.int32]
Sums = tuple[NDArray[np.int64], NDArray[np.int64]]


def first_places(
    init: str, n_components: int, seed: int, graph: GraphParts, table: NeighborParts, rows: DaskRows, engine: Engine
) -> tuple[list[Any], str]:
    """Compute the first places of each part, and the name of the initializer that was used."""
    every = range(len(graph.bounds) - 1)
    if init == "random" and graph.n > WHOLE_ROWS:
        drawn = [task(_drawn, "start")(graph.bounds, p, n_components, seed) for p in every]
        return engine.run(drawn), "random"
    if graph.n <= WHOLE_ROWS:
        blocks = [] if rows.sparse else rows.blocks
        whole = engine.run(
            [task(_whole_start, "start")(graph.parts, blocks, init, n_components, seed, graph.n, engine.threads)]
        )[0]
        places = [task(_slice, "places")(whole[0], int(graph.bounds[p]), int(graph.bounds[p + 1])) for p in every]
        return engine.run(places), str(engine.values([whole[1]])[0])
    spans = graph.spans
    labels = [task(_components, "components")(group, graph.n) for group in engine.spread(spans)]
    component = folded(labels, _joined_components, "components")
    grouped = engine.run([task(_groups, "groups")(table.parts, component)])[0]
    between = [task(_between_groups, "between")(part, first, graph.n, grouped) for part, first, _ in spans]
    summed = folded(between, _joined_sums, "between")
    coarse = engine.run(
        [task(_group_start, "start")(summed, grouped, table.cells, init, n_components, seed, engine.threads)]
    )[0]
    rough = engine.run(
        [task(_interpolated, "interpolate")(part, first, graph.n, grouped, coarse[0]) for part, first, _ in spans]
    )
    extremes = engine.values([task(_extremes, "extremes")(places) for places in rough])
    low, high = np.min([one[0] for one in extremes], axis=0), np.max([one[1] for one in extremes], axis=0)
    places = [task(_spread, "places")(rough[p], graph.bounds, p, low, high, seed) for p in every]
    return engine.run(places), f"{engine.values([coarse[1]])[0]} of groups"


def _whole_start(
    parts: list[Kept], blocks: list[Any], init: str, n_components: int, seed: int, n: int, n_jobs: int
) -> tuple[Places, str]:
    graph = joined_graph(parts, n)
    rows = joined_rows([read_block(block) for block in blocks]) if blocks else None
    return initial_embedding(init, InitialTask(graph, rows, n_components, seed, n_jobs))


def joined_graph(parts: list[Kept], n: int) -> Graph:
    graphs = [load_graph(part, n) for part in parts]
    degrees = np.concatenate([np.diff(graph.indptr) for graph in graphs])
    indptr = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    joined = (
        np.concatenate([getattr(graph, name) for graph in graphs]) for name in ("indices", "weights", "rho", "sigma")
    )
    indices, weights, rho, sigma = joined
    return Graph(indptr, indices, weights, n, rho, sigma)


def _slice(places: Places, first: int, stop: int) -> Places:
    return np.array(places[first:stop])


def _drawn(bounds: NDArray[np.int64], part: int, n_components: int, seed: int) -> Places:
    """Draw places uniformly, for ROW_GRAIN rows at a time."""
    first, stop = int(bounds[part]), int(bounds[part + 1])
    wide, shape = extent(int(bounds[-1]), n_components), (ROW_GRAIN, n_components)
    blocks = [
        np.random.default_rng([seed, 3, grain]).uniform(0.0, wide, size=shape)
        for grain in range(first // ROW_GRAIN, -(-stop // ROW_GRAIN))
    ]
    return np.concatenate(blocks)[: stop - first].astype(np.float32)


@dataclass(frozen=True)
class Groups:
    """The group of every row, and the landmark of every group."""

    of_row: NDArray[np.int32]
    landmark: NDArray[np.int64]


def _components(parts: list[PartSpan], n: int) -> Labels:
    """Return for each of the n rows the lowest row that the edges of some parts connect it with."""
    labels = np.arange(n, dtype=np.int32)
    for part, first, _ in parts:
        graph = load_graph(part, n)
        heads = graph.heads() + np.int32(first)
        one_way = graph.indices < heads  # the other direction is the same edge
        labels = _connected(labels, heads[one_way], graph.indices[one_way])
    return labels


def _joined_components(labels: Labels, others: Labels) -> Labels:
    return _connected(labels, np.arange(len(labels), dtype=np.int32), others)


def _connected(labels: Labels, heads: Labels, tails: Labels) -> Labels:
    """Return the lowest row that each row is connected with if pairs of rows are connected as well."""
    heads, tails = labels[heads], labels[tails]
    apart = heads != tails
    if not apart.any():
        return labels
    n = len(labels)
    matrix = csr_matrix((np.ones(apart.sum(), np.bool_), (heads[apart], tails[apart])), shape=(n, n))
    component = connected_components(matrix, directed=False)[1]
    # Of several entries of a row the last one assigned counts: in descending order that is the lowest.
    lowest = np.empty(int(component.max()) + 1, np.int32)
    lowest[component[::-1]] = np.arange(n - 1, -1, -1, dtype=np.int32)
    joined: Labels = lowest[component][labels]
    return joined


def _groups(parts: list[Kept], component: Labels) -> Groups:
    """Group the rows by landmark and connected component: a group of two would join them in the start."""
    landmark = np.concatenate([part.load("landmark") for part in parts]).astype(np.int64)
    keys, of_row = np.unique((landmark << 32) | component, return_inverse=True)
    return Groups(of_row.astype(np.int32), keys >> 32)


def _between_groups(part: Kept, first: int, n: int, groups: Groups) -> Sums:
    """Sum the weights of a part by pairs of groups, as multiples of UNIT; return keys and sums.

    An edge and its mirror image have the same weight, so only pairs in ascending order are summed.
    """
    graph = load_graph(part, n)
    heads = groups.of_row[graph.heads() + first].astype(np.int64)
    tails = groups.of_row[graph.indices]
    apart = heads < tails
    keys = (heads[apart] << 32) | tails[apart]
    return _summed(keys, np.rint(graph.weights[apart].astype(np.float64) / UNIT).astype(np.int64))


def _joined_sums(sums: Sums, others: Sums) -> Sums:
    return _summed(*(np.concatenate(pair) for pair in zip(sums, others, strict=True)))


def _summed(keys: NDArray[np.int64], units: NDArray[np.int64]) -> Sums:
    order = np.argsort(keys, kind="stable")
    keys, units = keys[order], units[order]
    begin = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])) if len(keys) else np.empty(0, np.int64)
    return keys[begin], np.add.reduceat(units, begin) if len(keys) else units


def _group_start(
    summed: Sums,
    groups: Groups,
    cells: Cells,
    init: str,
    n_components: int,
    seed: int,
    n_jobs: int,
) -> tuple[Places, str]:
    """Compute the start of the groups."""
    keys, units = summed
    count = len(groups.landmark)
    weights = units.astype(np.float64)
    between = (weights / max(weights.max(initial=0.0), 1.0), (keys >> 32, keys & 0xFFFFFFFF))
    upper = csr_matrix(between, shape=(count, count))
    graph = Graph.from_scipy(upper + upper.T)
    rows = None if is_sparse(cells.landmarks) else np.ascontiguousarray(cells.landmarks[groups.landmark])
    return initial_embedding(init, InitialTask(graph, rows, n_components, seed, n_jobs))


def _interpolated(part: Kept, first: int, n: int, groups: Groups, coarse: Places) -> NDArray[np.float64]:
    """Return the mean of the places of a row's own group and of those of its neighbors."""
    graph = load_graph(part, n)
    places = coarse.astype(np.float64)
    own = places[groups.of_row[first : first + graph.n]]
    pulls = csr_matrix(
        (graph.weights.astype(np.float64), groups.of_row[graph.indices], graph.indptr), shape=(graph.n, len(places))
    )
    total = np.asarray(pulls.sum(axis=1)).reshape(-1, 1)
    return np.asarray((own + pulls @ places) / (1.0 + total))


def _extremes(places: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return places.min(axis=0), places.max(axis=0)


def _spread(
    places: NDArray[np.float64],
    bounds: NDArray[np.int64],
    part: int,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    seed: int,
) -> Places:
    """Scale places to the box of all rows by the extremes of all parts, and add a little noise."""
    first, stop = int(bounds[part]), int(bounds[part + 1])
    noise = np.concatenate(
        [
            np.random.default_rng([seed, 2, grain]).normal(scale=NOISE, size=(ROW_GRAIN, places.shape[1]))
            for grain in range(first // ROW_GRAIN, -(-stop // ROW_GRAIN))
        ]
    )[: stop - first]
    width = np.where(high > low, high - low, 1.0)
    wide = extent(int(bounds[-1]), places.shape[1])
    spread: Places = (wide * (places - low) / width + noise).astype(np.float32)
    return spread
