"""Graph -> first places, in parts.

Rows without edges are left out of the graph, and of the start. Up to WHOLE_ROWS rows the start is the local one,
computed in one task. Beyond, the rows of each connected component are grouped by their nearest landmark, the start is
computed for the graph of the groups, and a row starts at the mean place of the groups of its neighbors, weighted by its
edges. Where a local fit starts from a layout of aggregates, the groups take the place of aggregates. Weights between
groups are summed as integers, and noise is drawn for a fixed number of rows at a time, so the start does not depend on
the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.cluster.engine import Engine, folded, task
from vicinal.cluster.graph import (
    GraphParts,
    Labels,
    PartSpan,
    component_labels,
    joined_graph,
    joined_labels,
    load_graph,
)
from vicinal.cluster.neighbors import ROW_GRAIN, NeighborParts
from vicinal.cluster.rows import DaskRows, read_block
from vicinal.cluster.store import Store, Stored
from vicinal.graph.graph import Graph
from vicinal.initialize.aggregates import Aggregates
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import NOISE, InitialTask, extent
from vicinal.neighbors.cells import Cells, joined_rows
from vicinal.neighbors.metrics import is_sparse
from vicinal.pipeline.arrangement import Trial
from vicinal.pipeline.recipe import EdgeTotals, Recipe, SampledPlan

WHOLE_ROWS = 20_000
UNIT = 2.0**-30  # of the weights between groups
MOST_FORESTS = 4  # of components that a process makes at the same time

Places = NDArray[np.float32]
Numbers = NDArray[np.int64]
Spans = list[tuple[int, int]]  # for each part the numbers of its first row and of the row after its last one
Sums = tuple[NDArray[np.int64], NDArray[np.int64]]
Box = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]  # lowest, highest coordinates, proportions


def first_places(
    recipe: Recipe, seed: int, graph: GraphParts, table: NeighborParts, rows: DaskRows, engine: Engine
) -> tuple[list[Any], str]:
    """Compute the first places of each part (kept as "places"), and the name of the initializer that was used."""
    plan: Any = recipe.plan  # a sampled one: t-SNE is refused before
    init, edges = recipe.init, EdgeTotals(graph.n, graph.total, graph.heaviest)
    tasks = engine.share(StartTasks(graph.n, recipe.n_components, seed, engine.store, plan, edges))
    batches, own = engine.batches(graph.spans), engine.share(graph.rows)
    spans = [[(first, stop) for _, first, stop in batch] for batch in batches]
    if init == "random" and graph.n > WHOLE_ROWS:
        made = engine.keep([task(StartTasks.drawn, "start")(tasks, some) for some in spans])
        return _each(made, batches), "random"
    if graph.n <= WHOLE_ROWS:
        blocks = [] if rows.sparse else rows.blocks
        start = task(StartTasks.whole, "start")(tasks, graph.parts, blocks, own, init, engine.alone_jobs)
        whole = engine.run([start])[0]
        made = engine.keep([task(StartTasks.sliced, "places")(tasks, whole[0], some) for some in spans])
        return _each(made, batches), str(engine.values([whole[1]])[0])
    labels = [
        task(component_labels, "components")(group, graph.n)
        for group in engine.spread(graph.spans, min(engine.concurrent, MOST_FORESTS) * len(engine.workers))
    ]
    component = folded(labels, joined_labels, "components")
    grouped = engine.run([task(_groups, "groups")(table.parts, component, own)])[0]
    between = [task(_between_groups, "between")(batch, grouped) for batch in batches]
    summed = folded(between, _joined_sums, "between")
    start = task(StartTasks.of_groups, "start")(tasks, summed, grouped, table.cells, init, engine.alone_jobs)
    coarse = engine.run([start])[0]
    rough = engine.keep(
        [task(StartTasks.interpolated, "interpolate")(tasks, batch, grouped, coarse[0]) for batch in batches]
    )
    boxes = engine.values([one[1] for one in rough])
    lows, highs, shapes = zip(*boxes, strict=True)
    box = np.min(lows, axis=0), np.max(highs, axis=0), shapes[0]
    made = engine.keep(
        [task(StartTasks.spread, "places")(tasks, one[0], some, box) for one, some in zip(rough, spans, strict=True)]
    )
    engine.store.discard("rough")
    return _each(made, batches), f"{engine.values([coarse[1]])[0]} of groups"


@dataclass(frozen=True)
class StartTasks:
    """The tasks that make the start of the n rows of a graph."""

    n: int
    n_components: int
    seed: int
    store: Store
    plan: SampledPlan
    edges: EdgeTotals

    def keep(self, first: int, places: NDArray[Any]) -> Stored:
        """Keep the first places of the rows of a part."""
        return self.store.keep(f"start-{first}", {"places": places.astype(np.float32, copy=False)})

    def whole(
        self, parts: list[Stored], blocks: list[Any], own: Numbers | None, init: str, n_jobs: int
    ) -> tuple[Places, str]:
        """Compute the local start of all rows; ``own`` are their numbers in the data, None stands for all."""
        graph = joined_graph(parts, self.n)
        rows = joined_rows([read_block(block) for block in blocks]) if blocks else None
        if rows is not None and own is not None:
            rows = rows[own]
        return self.plan.first_places(init, InitialTask(graph, rows, self.n_components, self.seed, n_jobs))

    def sliced(self, places: Places, spans: Spans) -> list[Stored]:
        """Keep the places of some parts."""
        return [self.keep(first, places[first:stop]) for first, stop in spans]

    def drawn(self, spans: Spans) -> list[Stored]:
        """Draw places uniformly."""
        side, shape = extent(self.n, self.n_components), (ROW_GRAIN, self.n_components)

        def draw(rng: np.random.Generator) -> NDArray[Any]:
            return rng.uniform(0.0, side, size=shape)

        return [self.keep(first, _drawn(draw, [self.seed, 3], first, stop)) for first, stop in spans]

    def of_groups(self, summed: Sums, groups: Groups, cells: Cells, init: str, n_jobs: int) -> tuple[Places, str]:
        """Compute the start of the groups."""
        keys, units = summed
        count = len(groups.landmark)
        weights = units.astype(np.float64)
        between = (weights / max(weights.max(initial=0.0), 1.0), (keys >> 32, keys & 0xFFFFFFFF))
        upper = csr_matrix(between, shape=(count, count))
        graph = Graph.from_scipy(upper + upper.T)
        rows = None if is_sparse(cells.landmarks) else np.ascontiguousarray(cells.landmarks[groups.landmark])
        start = InitialTask(graph, rows, self.n_components, self.seed, n_jobs)
        if not self.plan.is_arranged(self.n):
            return self.plan.first_places(init, start)
        mass, own = np.bincount(groups.of_row).astype(np.float32), np.arange(count, dtype=np.int32)
        sums = (upper + upper.T) * (max(weights.max(initial=0.0), 1.0) * UNIT)
        coarse = Aggregates.from_sums(own, mass, sums, (self.edges.total, self.edges.heaviest))
        places, used = initial_embedding("spectral", start)
        return Trial(start, self.plan.forces, self.plan.trial_schedule, coarse).laid_out(places), used

    def interpolated(self, parts: list[PartSpan], groups: Groups, coarse: Places) -> tuple[list[Stored], Box]:
        """Return the mean of the places of a row's own group and of those of its neighbors, and their box.

        Groups that were laid out have the size of the map already. Otherwise a sheet may have its own proportions
        (initialize/spectral.py), and the groups have the usual box.
        """
        places, kept, lows, highs = coarse.astype(np.float64), [], [], []
        for part, first, stop in parts:
            graph = load_graph(part, self.n)
            own = places[groups.of_row[first:stop]]
            pulls = csr_matrix(
                (graph.weights.astype(np.float64), groups.of_row[graph.indices], graph.indptr),
                shape=(graph.n, len(places)),
            )
            total = np.asarray(pulls.sum(axis=1)).reshape(-1, 1)
            rough = np.asarray((own + pulls @ places) / (1.0 + total))
            lows.append(rough.min(axis=0))
            highs.append(rough.max(axis=0))
            kept.append(self.store.keep(f"rough-{first}", {"rough": rough}))
        shape = np.round(np.ptp(places, axis=0) / extent(*places.shape), 3)
        return kept, (np.min(lows, axis=0), np.max(highs, axis=0), shape)

    def spread(self, rough: list[Stored], spans: Spans, box: Box) -> list[Stored]:
        """Scale places to the box of all rows by the extremes of all parts, and add a little noise."""
        low, high, shape = box
        scale, made = extent(self.n, self.n_components) * shape, []
        width = np.where(high > low, high - low, 1.0)
        if self.plan.is_arranged(self.n):
            scale = width

        def draw(rng: np.random.Generator) -> NDArray[Any]:
            return rng.normal(scale=NOISE, size=(ROW_GRAIN, self.n_components))

        for kept, (first, stop) in zip(rough, spans, strict=True):
            boxed = scale * (kept.load("rough") - low) / width
            made.append(self.keep(first, boxed + _drawn(draw, [self.seed, 2], first, stop)))
        return made


def _each(made: list[Any], batches: list[list[Any]]) -> list[Any]:
    """Return the results of each part, given those of each batch of parts."""
    return [one[at] for one, batch in zip(made, batches, strict=True) for at in range(len(batch))]


def _drawn(draw: Callable[[np.random.Generator], NDArray[Any]], seed: list[int], first: int, stop: int) -> NDArray[Any]:
    """Draw the lines ``first : stop``, for ROW_GRAIN rows at a time, so that they do not depend on the parts."""
    grains = range(first // ROW_GRAIN, -(-stop // ROW_GRAIN))
    lines = np.concatenate([draw(np.random.default_rng([*seed, grain])) for grain in grains])
    return lines[first % ROW_GRAIN :][: stop - first]


@dataclass(frozen=True)
class Groups:
    """The group of every row, and the landmark of every group."""

    of_row: NDArray[np.int32]
    landmark: NDArray[np.int64]


def _groups(parts: list[Stored], component: Labels, own: Numbers | None) -> Groups:
    """Group the rows by landmark and connected component: a group of two would join them in the start.

    ``parts`` are those of the neighbor table. ``own`` are the numbers of the rows in it; None stands for all.
    """
    groups = np.unique(np.concatenate([np.unique(keys) for keys in _group_keys(parts, component, own)]))
    of_row = [np.searchsorted(groups, keys).astype(np.int32) for keys in _group_keys(parts, component, own)]
    return Groups(np.concatenate(of_row), groups >> 32)


def _group_keys(parts: list[Stored], component: Labels, own: Numbers | None) -> Iterator[NDArray[np.int64]]:
    """Return a number for each pair of landmark and component, for the rows of one part after the other."""
    first, begin = 0, 0
    for part in parts:
        landmark = part.load("landmark").astype(np.int64)
        stop = first + len(landmark)
        if own is not None:
            landmark = landmark[own[np.searchsorted(own, first) : np.searchsorted(own, stop)] - first]
        yield (landmark << 32) | component[begin : begin + len(landmark)]
        first, begin = stop, begin + len(landmark)


def _between_groups(parts: list[PartSpan], groups: Groups) -> Sums:
    """Sum the weights of parts by pairs of groups, as multiples of UNIT; return keys and sums.

    An edge and its mirror image have the same weight, so only pairs in ascending order are summed.
    """
    total: Sums | None = None
    for part, first, _ in parts:
        graph = load_graph(part, len(groups.of_row))
        heads, tails = groups.of_row[graph.heads() + np.int32(first)], groups.of_row[graph.indices]
        apart = heads < tails
        keys = (heads[apart].astype(np.int64) << 32) | tails[apart]
        sums = _summed(keys, np.rint(graph.weights[apart].astype(np.float64) / UNIT).astype(np.int64))
        total = sums if total is None else _joined_sums(total, sums)
    assert total is not None
    return total


def _joined_sums(sums: Sums, others: Sums) -> Sums:
    return _summed(*(np.concatenate(pair) for pair in zip(sums, others, strict=True)))


def _summed(keys: NDArray[np.int64], units: NDArray[np.int64]) -> Sums:
    distinct, at = np.unique(keys, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, at, units)
    return distinct, sums
