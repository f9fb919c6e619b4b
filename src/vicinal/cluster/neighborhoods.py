"""The neighbors of a Dask array alone: a table, or a graph for pipelines and scanpy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.cluster.engine import Engine, task
from vicinal.cluster.fitted import PartedTable, joined_data, joined_table, parted_table
from vicinal.cluster.neighbors import NeighborParts, Search, find_neighbors
from vicinal.cluster.rows import DaskRows
from vicinal.cluster.shelf import Kept
from vicinal.cluster.sizes import part_count, with_room
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.maps.fitted import FittedNeighbors
from vicinal.neighbors.metrics import ALIASES
from vicinal.runtime.cached import cached
from vicinal.runtime.memory import bytes_of

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
    table: list[Kept], chunks: list[Any], search: Search, n_jobs: int, held: Any = None
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
        return ClusterNeighbors(rows, search, find_neighbors(rows, search, part_count(rows, k, engine), engine), engine)


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
