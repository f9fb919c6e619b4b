"""What a fit of a Dask array learned: its parts stay where they are. Transforms map over blocks of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from vicinal.cluster.engine import Engine, current_client, task
from vicinal.cluster.graph import GraphParts, joined_graph, load_graph
from vicinal.cluster.neighbors import NeighborParts, Search, part_count, search_parts, with_room
from vicinal.cluster.rows import DaskRows, read_block
from vicinal.cluster.store import Stored
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.neighbors.metrics import ALIASES
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fitted import FitReport, FittedDensity, FittedMap, FittedNeighbors
from vicinal.pipeline.options import RowOptions, Selection
from vicinal.pipeline.recipe import Recipe
from vicinal.runtime.cached import cached
from vicinal.runtime.memory import bytes_of, readable


@dataclass(frozen=True, eq=False)
class PartedTable:
    """A neighbor table as Dask arrays [rows, k]."""

    index: Any
    distance: Any


@dataclass(frozen=True, eq=False)
class ClusterMap:
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

    @cached
    def gathered(self) -> FittedMap:
        """The map as a local fit would return it, in the memory of this process."""
        self.engine.reachable(None)
        self._check_room()
        values, places = self.engine.values, self.embedding
        report = replace(self.report, snapshots=tuple(np.asarray(one) for one in self.report.snapshots))
        return _gathered_map(
            self._without_parts(report),
            values(self.parts.parts),
            [] if self.search_parts is self.graph_parts else values(self.search_parts.parts),
            values(self.graph_parts.parts),
            [self.data.array.compute()],
            [] if places is None else [places.compute()],
        )

    def gathering(self) -> Any:
        """Return a task that makes the map as a local fit would return it, where other tasks need it.

        ``search_graph`` is empty if labels did not change the graph.
        """
        self.engine.reachable(None)
        self._check_room()
        places = [] if self.places is None else self.embedding.to_delayed().ravel().tolist()
        return task(_gathered_map, "map")(
            self._without_parts(replace(self.report, snapshots=())),
            self.parts.parts,
            [] if self.search_parts is self.graph_parts else self.search_parts.parts,
            self.graph_parts.parts,
            self.data.chunks,
            places,
            self.engine.held,
        )

    @property
    def is_sparse(self) -> bool:
        """Whether rows are transformed into lines of a graph."""
        return self.places is None

    def _without_parts(self, report: FitReport) -> Callable[..., FittedMap]:
        """Return what makes a map of its parts, and can be sent to a worker."""
        return partial(_joined_map, self.recipe, self.options, self.search, self.density, report, self.engine.threads)

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


def _gathered_map(
    join: Callable[..., FittedMap],
    table: list[Stored],
    search_graph: list[Stored],
    graph: list[Stored],
    chunks: list[Any],
    places: list[Any],
    held: Any = None,
) -> FittedMap:
    """Join the parts of a map; ``held`` keeps the files as long as the task can be asked for."""
    return join(table, search_graph, graph, chunks, places)


def _joined_map(
    recipe: Recipe,
    options: RowOptions,
    search: Search,
    density: FittedDensity | None,
    report: FitReport,
    n_jobs: int,
    table: list[Stored],
    search_graph: list[Stored],
    graph: list[Stored],
    chunks: list[Any],
    places: list[Any],
) -> FittedMap:
    whole = joined_graph(graph, search.n)
    return FittedMap(
        joined_data(chunks, search, n_jobs),
        recipe,
        options,
        joined_table(table),
        joined_graph(search_graph, search.n) if search_graph else whole,
        whole,
        np.concatenate(places) if places else None,
        search.seed,
        density=density,
        report=report,
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
        n, bounds, parts = self.parts.n, self.parts.bounds, self.engine.reachable(self.parts.parts)
        meta = csr_matrix((0, 0), dtype=np.float32)
        blocks = [
            da.from_delayed(delayed(_matrix)(part, n, self.engine.held), shape=(stop - first, n), meta=meta)
            for part, (first, stop) in zip(parts, pairwise(bounds.tolist()), strict=True)
        ]
        return da.concatenate(blocks)


def _matrix(part: Stored, n: int, held: Any) -> csr_matrix:
    return load_graph(part, n).to_scipy()


def parted_table(table: NeighborParts, engine: Engine, chunks: tuple[int, ...]) -> PartedTable:
    """Return a table in parts as Dask arrays with the given row chunks."""
    table = replace(table, parts=engine.reachable(table.parts))

    def joined(name: str, dtype: Any) -> Any:
        blocks = [
            da.from_delayed(delayed(_loaded)(part, name, engine.held), shape=(stop - first, table.k), dtype=dtype)
            for part, (first, stop) in zip(table.parts, pairwise(table.bounds.tolist()), strict=True)
        ]
        return da.concatenate(blocks).rechunk((chunks, (table.k,)))

    return PartedTable(joined("index", np.int32), joined("distance", np.float32))


def _loaded(part: Stored, name: str, held: Any) -> Any:
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


def transform_blocks(model: Any, transform: Callable[[Any, Any], Any], X: Any, columns: int) -> Any:
    """Return ``transform(model, rows)`` for every block of rows of a Dask array, as a Dask array.

    Nothing is computed here. Blocks are transformed one by one, with the result that the rows would have in memory,
    because the result for a row does not depend on the other rows.

    Parameters
    ----------
    model : estimator
        A fitted model, which every worker receives once. What a model learned of a Dask array is joined by a task, and
        passes from worker to worker, not through this process.
    transform : callable
        A method of its class, which takes the model and rows in memory.
    X : Dask array or data frame
        The rows.
    columns : int
        Number of columns of the result.
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
        _transformed, transform, sent, dtype=np.float32, chunks=(rows.array.chunks[0], (columns,)), meta=meta
    )


@runtime_checkable
class Gatherable(Protocol):
    """What was learned of a Dask array, and is joined where it is needed."""

    @property
    def is_sparse(self) -> bool: ...

    def gathering(self) -> Any: ...


def _learned(model: Any, name: str, learned: Any) -> Any:
    return model._with(**{name: learned})


def _one_row(rows: DaskRows) -> Any:
    """Return a row of zeros of the same kind, which tells what the result is like; all metrics accept it."""
    return csr_matrix((1, rows.d), dtype=np.float32) if rows.sparse else np.zeros((1, rows.d), np.float32)


def _transformed(block: Any, transform: Callable[[Any, Any], Any], model: Any) -> Any:
    return transform(model, read_block([block]))


CLUSTER_METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev")


@dataclass(frozen=True, eq=False)
class ClusterNeighbors:
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

    @cached
    def gathered(self) -> FittedNeighbors:
        """The same in the memory of this process."""
        return _gathered_neighbors(
            self.engine.values(self.parts.parts), [self.data.array.compute()], self.search, self.engine.threads
        )

    def gathering(self) -> Any:
        """Return a task that makes the same where other tasks need it."""
        return task(_gathered_neighbors, "neighbors")(
            self.parts.parts, self.data.chunks, self.search, self.engine.threads, self.engine.held
        )

    is_sparse = True  # rows are transformed into lines of a graph


def _gathered_neighbors(
    table: list[Stored], chunks: list[Any], search: Search, n_jobs: int, held: Any = None
) -> FittedNeighbors:
    """Join the parts of a table; ``held`` keeps the files as long as the task can be asked for."""
    joined = joined_table(table)
    return FittedNeighbors(joined_data(chunks, search, n_jobs), joined, fuzzy_graph(joined, n_jobs=n_jobs))


def search_array(X: Any, columns: Callable[[int], int], seed: int, parameters: Mapping[str, Any]) -> ClusterNeighbors:
    """Search the rows of a Dask array; ``columns`` gives the length of the lists for a number of rows."""
    check_metric_name(parameters["metric"])
    check_device(parameters.get("device"))
    rows = DaskRows.of(X)
    k = columns(rows.n)
    if not 1 <= k <= rows.n:
        raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({rows.n}), got {k}")
    limit = parameters.get("memory_limit")
    engine = with_room(rows, k, Engine.current(parameters["n_jobs"], None if limit is None else bytes_of(limit)))
    search = Search(rows.n, k, parameters["metric"], parameters["metric_kwds"], seed)
    with engine.discarded_on_error():
        return ClusterNeighbors(rows, search, search_parts(rows, search, part_count(rows, k, engine), engine), engine)


def check_metric_name(metric: Any) -> None:
    """Refuse metrics whose cells have no centers."""
    if not isinstance(metric, str) or ALIASES.get(metric, metric) not in CLUSTER_METRICS:
        raise ValueError(f"metric must be one of {sorted(CLUSTER_METRICS)} for a Dask array, got {metric!r}")


def check_device(device: Any) -> None:
    """Refuse a device: tasks run on processors."""
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
