"""What a fit of a Dask array learned: its parts stay where they are."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from scipy.sparse import csr_matrix

from vicinal.cluster.engine import Engine, task
from vicinal.cluster.graph import GraphParts, load_graph
from vicinal.cluster.neighbors import NeighborParts, Search
from vicinal.cluster.rows import DaskRows, read_block
from vicinal.cluster.shelf import Kept
from vicinal.cluster.start import joined_graph
from vicinal.maps.fitted import FitReport, FittedMap
from vicinal.maps.recipe import Recipe
from vicinal.maps.row_facts import RowFacts
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.runtime.cached import cached
from vicinal.runtime.memory import readable


@dataclass(frozen=True, eq=False)
class PartedTable:
    """A neighbor table as Dask arrays [rows, k]."""

    index: Any
    distance: Any


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """A map of a Dask array, and everything that placing new rows in it needs.

    ``embedding`` is a Dask array with the row chunks of the data (None if only the graph was asked for). Neighbors and
    graph stay in the parts in which they were computed; they are files if all workers can reach one directory, which is
    removed when this value is gone.
    """

    data: DaskRows
    recipe: Recipe
    facts: RowFacts
    search: Search
    parts: NeighborParts
    graph_parts: GraphParts
    engine: Engine
    embedding: Any = None
    report: FitReport = field(default_factory=FitReport)
    density: None = None

    @property
    def seed(self) -> int:
        return self.search.seed

    @property
    def neighbors(self) -> PartedTable:
        """The neighbor table."""
        return parted_table(self.parts, self.engine, self.data.array.chunks[0])

    @property
    def graph(self) -> PartedGraph:
        """The graph."""
        return PartedGraph(self.graph_parts, self.engine)

    @cached
    def gathered(self) -> FittedMap:
        """The map as a local fit would return it, in the memory of this process."""
        self._check_room()
        values, places = self.engine.values, self.embedding
        report = replace(self.report, snapshots=tuple(np.asarray(one) for one in self.report.snapshots))
        return _gathered_map(
            values(self.parts.parts),
            values(self.graph_parts.parts),
            [self.data.array.compute()],
            [] if places is None else [places.compute()],
            self._facts(report),
        )

    def gathering(self) -> Any:
        """Return a task that makes the map as a local fit would return it, where other tasks need it."""
        self._check_room()
        places = [] if self.embedding is None else self.embedding.to_delayed().ravel().tolist()
        facts = self._facts(replace(self.report, snapshots=()))
        return task(_gathered_map, "map")(
            self.parts.parts, self.graph_parts.parts, self.data.chunks, places, facts, self.engine.held
        )

    @property
    def is_sparse(self) -> bool:
        """Whether rows are transformed into lines of a graph."""
        return self.embedding is None

    def _facts(self, report: FitReport) -> MapFacts:
        return MapFacts(self.recipe, self.facts, self.search, self.engine.threads, report)

    def _check_room(self) -> None:
        n, k = self.data.n, self.parts.k
        needed = 4.0 * n * self.data.d + 12.0 * self.graph_parts.n_edges + n * (8.0 * k + 64.0)
        if self.engine.memory is not None and needed > self.engine.memory:
            raise MemoryError(
                f"the map of {n} rows takes {readable(needed)} in one memory, more than "
                f"memory_limit={readable(self.engine.memory)}; embedding_ and graph_ stay in parts"
            )


@dataclass(frozen=True, eq=False)
class MapFacts:
    """What a map is made of besides its parts."""

    recipe: Recipe
    facts: RowFacts
    search: Search
    n_jobs: int
    report: FitReport


def _gathered_map(
    table: list[Kept], graph: list[Kept], chunks: list[Any], places: list[Any], facts: MapFacts, held: Any = None
) -> FittedMap:
    """Join the parts of a map; ``held`` keeps the files as long as the task can be asked for."""
    search = facts.search
    joined, data = joined_graph(graph, search.n), joined_data(chunks, search, facts.n_jobs)
    return FittedMap(
        data,
        facts.recipe,
        facts.facts,
        joined_table(table),
        joined,
        joined,
        np.concatenate(places) if places else None,
        search.seed,
        report=facts.report,
    )


def joined_table(parts: list[Kept]) -> Neighbors:
    """Join the parts of a neighbor table."""
    index, distance = (np.concatenate([part.load(name) for part in parts]) for name in ("index", "distance"))
    return Neighbors(index, distance)


def joined_data(chunks: list[Any], search: Search, n_jobs: int) -> TrainingRows:
    """Join chunks of rows, with what compares them."""
    return TrainingRows(read_block(chunks), search.metric, search.metric_kwds, search.seed, n_jobs)


@dataclass(frozen=True, eq=False)
class PartedGraph:
    """A graph whose parts stay where they are."""

    parts: GraphParts
    engine: Engine

    @property
    def n_tails(self) -> int:
        return self.parts.n

    def to_scipy(self) -> Any:
        """Return a Dask array whose blocks are SciPy matrices, one for each part."""
        n, bounds = self.parts.n, self.parts.bounds
        meta = csr_matrix((0, 0), dtype=np.float32)
        blocks = [
            da.from_delayed(delayed(_matrix)(part, n, self.engine.held), shape=(stop - first, n), meta=meta)
            for part, (first, stop) in zip(self.parts.parts, pairwise(bounds.tolist()), strict=True)
        ]
        return da.concatenate(blocks)


def _matrix(part: Kept, n: int, held: Any) -> csr_matrix:
    return load_graph(part, n).to_scipy()


def parted_table(table: NeighborParts, engine: Engine, chunks: tuple[int, ...]) -> PartedTable:
    """Return a table in parts as Dask arrays with the given row chunks."""

    def joined(name: str, dtype: Any) -> Any:
        blocks = [
            da.from_delayed(delayed(_loaded)(part, name, engine.held), shape=(stop - first, table.k), dtype=dtype)
            for part, (first, stop) in zip(table.parts, pairwise(table.bounds.tolist()), strict=True)
        ]
        return da.concatenate(blocks).rechunk((chunks, (table.k,)))

    return PartedTable(joined("index", np.int32), joined("distance", np.float32))


def _loaded(part: Kept, name: str, held: Any) -> Any:
    """Return an array of a part. ``held`` keeps the files as long as the task can be asked for."""
    return part.load(name)


def stacked(parts: list[Any], bounds: Any, n_components: int, chunks: tuple[int, ...]) -> Any:
    """Return places in parts as one Dask array with the given row chunks."""
    blocks = [
        da.from_delayed(part, shape=(stop - first, n_components), dtype=np.float32)
        if not isinstance(part, np.ndarray)
        else da.from_array(part, chunks=-1)
        for part, (first, stop) in zip(parts, pairwise(bounds.tolist()), strict=True)
    ]
    return da.concatenate(blocks).rechunk((chunks, (n_components,)))
