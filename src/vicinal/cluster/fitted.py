"""What a fit of a Dask array learned: its parts stay where they are. Transforms map over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from vicinal.cluster.engine import Engine, current_client, task
from vicinal.cluster.graph import GraphParts, joined_graph, load_graph
from vicinal.cluster.neighbors import NeighborParts, Search, part_count, search_parts, with_room
from vicinal.cluster.rows import DaskRows, read_block, require_declared
from vicinal.cluster.store import Stored
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.neighbors.metrics import ALIASES
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fitted import FitReport, FittedDensity, FittedMap, FittedNeighbors
from vicinal.pipeline.recipe import Recipe
from vicinal.pipeline.row_options import RowOptions, Selection
from vicinal.runtime.cached import cached
from vicinal.runtime.sizes import bytes_of, readable


@dataclass(frozen=True, eq=False)
class PartedTable:
    """A neighbor table as Dask arrays [rows, k]."""

    index: Any
    distance: Any


class Gatherable:
    """What was learned of a Dask array, in parts that are joined where they are needed."""

    engine: Engine
    is_sparse: bool  # whether rows are transformed into lines of a graph

    def _joining(self) -> tuple[Callable[..., Any], list[list[Any]]]:
        """Return a function that makes what a local fit returns, and its arguments: lists of parts."""
        raise NotImplementedError

    @cached
    def gathered(self) -> Any:
        """What a local fit would return, in the memory of this process."""
        return self._gather()

    def _gather(self) -> Any:
        join, parts = self._joining()
        return join(*(self.engine.values(one) for one in parts))

    def gathering(self) -> Any:
        """Return a task that makes what a local fit would return, where other tasks need it."""
        return task(_gathered, "gather")(*self._joining(), self.engine.held)


def _gathered(join: Callable[..., Any], parts: list[list[Any]], held: Any) -> Any:
    """Join parts. Here and below, ``held`` keeps the files as long as the task can be asked for."""
    return join(*parts)


@dataclass(frozen=True, eq=False)
class ClusterMap(Gatherable):
    """A map of a Dask array, and everything that placing new rows in it needs.

    ``places`` is a Dask array with the row chunks of the data (None if only the graph was asked for). Neighbors and
    graphs stay in the parts in which they were computed; they are files if all workers can reach one directory, which
    is removed when this value is gone.
    """

    data: DaskRows
    recipe: Recipe
    options: RowOptions
    search: Search
    parts: NeighborParts
    search_parts: GraphParts  # without labels
    graph_parts: GraphParts
    engine: Engine
    places: Any = None
    report: FitReport = field(default_factory=FitReport)
    density: FittedDensity | None = None

    @property
    def seed(self) -> int:
        return self.search.seed

    @property
    def embedding(self) -> Any:
        """The places as a Dask array."""
        return None if self.places is None else self.engine.reachable(self.places)

    @property
    def neighbors(self) -> PartedTable:
        """The neighbor table."""
        return parted_table(self.parts, self.engine, self.data.array.chunks[0])

    @property
    def graph(self) -> PartedGraph:
        """The graph."""
        return PartedGraph(self.graph_parts, self.engine)

    @cached
    def selection(self) -> Selection:
        """Whose place every row has: that of the first row that equals it."""
        first = self.engine.values([task(_first_rows, "first")(self.engine.reachable(self.parts.parts))])[0]
        return Selection(None, first.astype(np.int64), self.options)

    def _gather(self) -> Any:
        snapshots = tuple(np.asarray(one) for one in self.report.snapshots)
        return replace(super()._gather(), report=replace(self.report, snapshots=snapshots))

    @property
    def is_sparse(self) -> bool:  # type: ignore[override]
        return self.places is None

    def _joining(self) -> tuple[Callable[..., FittedMap], list[list[Any]]]:
        self.engine.reachable(None)
        self._check_room()
        learned: dict[str, Any] = {"recipe": self.recipe, "options": self.options, "density": self.density}
        report = replace(self.report, snapshots=())
        join = partial(_joined_map, self.search, self.engine.threads, report=report, **learned)
        places = [] if self.places is None else self.places.to_delayed().ravel().tolist()
        searched = [] if self.search_parts is self.graph_parts else self.search_parts.parts
        return join, [self.data.chunks, self.parts.parts, searched, self.graph_parts.parts, places]

    def _check_room(self) -> None:
        n, k = self.data.n, self.parts.k
        needed = 4.0 * n * self.data.d + 12.0 * self.graph_parts.n_edges + n * (8.0 * k + 64.0)
        if self.engine.memory is not None and needed > self.engine.memory:
            raise MemoryError(
                f"the map of {n} rows takes {readable(needed)} in one memory, more than "
                f"memory_limit={readable(self.engine.memory)}; embedding_ and graph_ stay in parts"
            )


def _first_rows(parts: list[Stored]) -> NDArray[np.int32]:
    return np.concatenate([part.load("first") for part in parts])


def _joined_map(
    search: Search,
    n_jobs: int,
    chunks: list[Any],
    table: list[Stored],
    searched: list[Stored],
    graph: list[Stored],
    places: list[Any],
    **learned: Any,
) -> FittedMap:
    """Join the parts of a map; ``searched`` is empty if labels did not change the graph."""
    whole = joined_graph(graph, search.n)
    return FittedMap(
        data=joined_data(chunks, search, n_jobs),
        neighbors=joined_table(table),
        search_graph=joined_graph(searched, search.n) if searched else whole,
        graph=whole,
        embedding=np.concatenate(places) if places else None,
        seed=search.seed,
        **learned,
    )


def joined_table(parts: list[Stored]) -> Neighbors:
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
        n, parts = self.parts.n, self.engine.reachable(self.parts.parts)
        made = [delayed(_matrix)(part, n, self.engine.held) for part in parts]
        return stacked(made, self.parts.bounds, csr_matrix((0, n), dtype=np.float32))


def _matrix(part: Stored, n: int, held: Any) -> csr_matrix:
    return load_graph(part, n).to_scipy()


def parted_table(table: NeighborParts, engine: Engine, chunks: tuple[int, ...]) -> PartedTable:
    """Return a table in parts as Dask arrays with the given row chunks."""
    parts, arrays = engine.reachable(table.parts), []
    for name, dtype in (("index", np.int32), ("distance", np.float32)):
        made = [delayed(_loaded)(part, name, engine.held) for part in parts]
        arrays.append(stacked(made, table.bounds, np.empty((0, table.k), dtype)).rechunk((chunks, -1)))
    return PartedTable(*arrays)


def _loaded(part: Stored, name: str, held: Any) -> Any:
    return part.load(name)


def stacked(made: list[Any], bounds: NDArray[np.int64], meta: Any) -> Any:
    """Return the rows that tasks make as one Dask array; ``meta`` has no rows, but their columns and their type."""
    sizes = np.diff(bounds).tolist()
    return da.concatenate(
        [da.from_delayed(one, (size, meta.shape[1]), meta=meta) for one, size in zip(made, sizes, strict=True)]
    )


def transform_blocks(model: Any, transform: Callable[[Any, Any], Any], X: Any, columns: int) -> Any:
    """Return ``transform(model, rows)`` for every block of rows of a Dask array, as a Dask array.

    Nothing is computed here. Blocks are transformed one by one, with the result that the rows would have in memory,
    because the result for a row does not depend on the other rows. Every worker receives the model once. What it
    learned of a Dask array is joined by a task, and passes from worker to worker, not through this process.
    """
    rows = DaskRows.of(X)
    learned = vars(model).get(model._result)
    if isinstance(learned, Gatherable):
        bare = delayed(model.without_result(), pure=False, traverse=False)
        sent, sparse = task(_learned, "model")(bare, model._result, learned.gathering()), learned.is_sparse
    else:
        client = current_client()
        # Every call has a key of its own: under its hash, a model would be lost when that of another call is freed.
        sent = (
            delayed(model, pure=False, traverse=False)
            if client is None
            else client.scatter(model, broadcast=True, hash=False)
        )
        sparse = issparse(transform(model, _one_row(rows)))
    meta: Any = csr_matrix((0, columns), dtype=np.float32) if sparse else np.empty((0, columns), np.float32)
    return rows.array.map_blocks(
        _transformed,
        transform,
        sent,
        rows.declared,
        dtype=np.float32,
        chunks=(rows.array.chunks[0], (columns,)),
        meta=meta,
    )


def _learned(model: Any, name: str, learned: Any) -> Any:
    return model._with(**{name: learned})


def _one_row(rows: DaskRows) -> Any:
    """Return a row of zeros of the same kind, which tells what the result is like; all metrics accept it."""
    return csr_matrix((1, rows.d), dtype=np.float32) if rows.sparse else np.zeros((1, rows.d), np.float32)


def _transformed(
    block: Any,
    transform: Callable[[Any, Any], Any],
    model: Any,
    declared: tuple[np.dtype[Any], bool],
    block_info: Mapping[int, Mapping[str, Any]],
) -> Any:
    place = block_info[0]
    shape = tuple(stop - start for start, stop in place["array-location"])
    require_declared(block, place["chunk-location"][0], declared, shape)
    return transform(model, read_block([block]))


CLUSTER_METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev")


@dataclass(frozen=True, eq=False)
class ClusterNeighbors(Gatherable):
    """The rows of a Dask array and their neighbors, in parts."""

    data: DaskRows
    search: Search
    parts: NeighborParts
    engine: Engine

    @property
    def table(self) -> PartedTable:
        """The neighbor table as Dask arrays."""
        return parted_table(self.parts, self.engine, self.data.array.chunks[0])

    def graph(self, k: int, mode: str) -> Any:
        """Return the graph of the k nearest rows of every row: a Dask array whose blocks are SciPy matrices."""
        n, table = self.data.n, self.table
        return da.map_blocks(
            _listed, table.index, table.distance, k, mode, n, chunks=(table.index.chunks[0], (n,)),
            meta=csr_matrix((0, n), dtype=np.float32),
        )  # fmt: skip

    def _joining(self) -> tuple[Callable[..., FittedNeighbors], list[list[Any]]]:
        join = partial(_joined_neighbors, self.search, self.engine.threads)
        return join, [self.data.chunks, self.parts.parts]

    is_sparse = True


def _joined_neighbors(search: Search, n_jobs: int, chunks: list[Any], table: list[Stored]) -> FittedNeighbors:
    joined = joined_table(table)
    return FittedNeighbors(joined_data(chunks, search, n_jobs), joined, fuzzy_graph(joined, n_jobs=n_jobs))


def search_array(X: Any, columns: Callable[[int], int], seed: int, parameters: Mapping[str, Any]) -> ClusterNeighbors:
    """Search the rows of a Dask array; ``columns`` gives the length of the lists for a number of rows."""
    check_supported(parameters)
    rows = DaskRows.of(X)
    k = columns(rows.n)
    if not 1 <= k <= rows.n:
        raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({rows.n}), got {k}")
    limit = parameters.get("memory_limit")
    engine = with_room(rows, k, Engine.current(parameters["n_jobs"], None if limit is None else bytes_of(limit)))
    search = Search(rows.n, k, parameters["metric"], parameters["metric_kwds"], seed)
    with engine.discarded_on_error():
        return ClusterNeighbors(rows, search, search_parts(rows, search, part_count(rows, k, engine), engine), engine)


def check_supported(parameters: Mapping[str, Any]) -> None:
    """Refuse metrics whose cells have no centers, and devices: tasks run on processors."""
    metric, device = parameters["metric"], parameters.get("device")
    if not isinstance(metric, str) or ALIASES.get(metric, metric) not in CLUSTER_METRICS:
        raise ValueError(f"metric must be one of {sorted(CLUSTER_METRICS)} for a Dask array, got {metric!r}")
    if device not in (None, "cpu"):
        raise ValueError(f"device must be None or 'cpu' for a Dask array, got {device!r}")


def _listed(index: NDArray[np.int32], distance: NDArray[np.float32], k: int, mode: str, n: int) -> csr_matrix:
    """Return the k nearest rows of each line, sorted by (distance, row)."""
    order = np.lexsort((index, distance), axis=1)[:, :k]
    index, distance = np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)
    present = index >= 0
    weights = distance if mode == "distance" else np.ones_like(distance)
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return csr_matrix((weights[present], index[present], indptr), shape=(len(index), n))
