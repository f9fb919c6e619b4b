"""Where neighbours come from: rows compared by a metric, a matrix of distances, or a table computed elsewhere.

Every source answers the same questions, so that nothing after the neighbour search knows what it was given:
``neighbors(k)`` of all its rows, ``query(Q, k, graph)`` of new rows, ``seen`` (rows by content), ``coordinates`` (dense
rows, if there are such), ``chosen(rows)`` and ``extended(new, known)`` (itself with fewer or more rows; ``known`` is
the table it gave).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.neighbors.duplicates import SeenRows
from vicinal.neighbors.index import Method, NeighborIndex
from vicinal.neighbors.metrics import Rows, allows_nan, is_sparse
from vicinal.neighbors.precomputed import check_distances, neighbors_from_distances, query_from_distances
from vicinal.neighbors.rows import hash_rows
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.sharing import once


class Source(Protocol):
    """What a fit needs to know about its data."""

    rows: Rows
    n_jobs: int

    @property
    def n(self) -> int: ...
    @property
    def coordinates(self) -> NDArray[np.float32] | None: ...
    @property
    def seen(self) -> SeenRows: ...
    def neighbors(self, k: int, method: Method = "auto") -> Neighbors: ...
    def query(self, Q: Rows, k: int, graph: Graph) -> Neighbors: ...
    def chosen(self, which: NDArray[np.int64]) -> Source: ...
    def extended(self, new: Rows, known: Neighbors | None = None) -> Source: ...


class _Seen:
    """Rows recognised by their content. What is derived from the fields is made when it is first asked for, not kept
    in copies and files."""

    rows: Rows
    n_jobs: int

    def __getstate__(self) -> dict[str, Any]:
        return {one.name: getattr(self, one.name) for one in fields(self)}  # type: ignore[arg-type]

    @property
    def n(self) -> int:
        return int(self.rows.shape[0])

    @once
    def seen(self) -> SeenRows:
        return SeenRows(self.rows, self.n_jobs)


@dataclass
class RowSource(_Seen):
    """Rows, dense or sparse, and the metric that compares them; ``given`` replaces the search of all neighbours.

    ``share`` is what the search of all neighbours found out for queries (``NeighborIndex.share``).
    """

    rows: Rows
    metric: Any = "euclidean"
    metric_kwds: dict[str, Any] | None = None
    seed: int = 0
    n_jobs: int = -1
    given: Neighbors | None = None
    share: float = 1.0

    def check(self) -> None:
        """Raises if the rows are not as the core takes them: what comes from a file may be anything."""
        rows = self.rows if isinstance(self.rows, np.ndarray) else self.rows.data
        if self.rows.ndim != 2 or rows.dtype != np.float32 or not rows.flags.c_contiguous:
            raise ValueError("rows must be a matrix of float32")

    @once
    def index(self) -> NeighborIndex:
        index = NeighborIndex(self.rows, self.metric, metric_kwds=self.metric_kwds, seed=self.seed, n_jobs=self.n_jobs)
        index.share = self.share
        return index

    @property
    def coordinates(self) -> NDArray[np.float32] | None:
        return None if is_sparse(self.rows) or allows_nan(self.metric) else self.rows

    def neighbors(self, k: int, method: Method = "auto") -> Neighbors:
        if self.given is not None:
            return self.given
        known: Neighbors | None = self.__dict__.pop("_known", None)
        if known is not None and self._is_worth_growing(known, k):
            return self._grown(known)
        found = self.index.search(k, method)
        self.share = self.index.share
        return found

    def _is_worth_growing(self, known: Neighbors, k: int) -> bool:
        """Whether it pays to put the new rows among the known ones instead of searching all, and what is known of the
        metric and the table stays true."""
        if is_sparse(self.rows) or not isinstance(self.metric, str) or known.k != k or self.n > 2 * known.n:
            return False
        of_data = {"V", "VI"} & set(self.index.keywords) - set(self.metric_kwds or {})
        return k >= 2 and not of_data and not self.index.is_cheap(k)

    def _grown(self, known: Neighbors) -> Neighbors:
        from vicinal.neighbors.online import OnlineNeighbors

        online = OnlineNeighbors.from_neighbors(
            self.rows[: known.n], known, self.metric, metric_kwds=self.metric_kwds, seed=self.seed, n_jobs=self.n_jobs
        )
        online.insert(self.rows[known.n :])
        online.step()
        self.share = self.index.share = online.share
        return online.table()

    def query(self, Q: Rows, k: int, graph: Graph) -> Neighbors:
        return self.index.query(Q, k, graph)

    def chosen(self, which: NDArray[np.int64]) -> RowSource:
        """Some of the rows, in the given order."""
        return replace(self, rows=self.rows[which], given=None, share=1.0)

    def extended(self, new: Rows, known: Neighbors | None = None) -> RowSource:
        """A given table knows nothing of the new rows: all neighbours are then searched for. One that was searched,
        ``known``, is added to."""
        longer = replace(self, rows=stacked(self.rows, new), given=None, share=1.0)
        if self.given is None and known is not None:
            longer.__dict__["_known"] = known
        return longer


@dataclass
class DistanceSource(_Seen):
    """A square matrix of distances, dense or sparse (what is not stored is no neighbour)."""

    rows: Rows
    n_jobs: int = -1

    def __post_init__(self) -> None:
        self.rows = check_distances(self.rows, square=True)

    @property
    def coordinates(self) -> None:
        return None

    def neighbors(self, k: int, method: Method = "auto") -> Neighbors:
        return neighbors_from_distances(self.rows, k)

    def query(self, Q: Rows, k: int, graph: Graph) -> Neighbors:
        return query_from_distances(Q, k, self.n)

    def chosen(self, which: NDArray[np.int64]) -> DistanceSource:
        return DistanceSource(self.rows[which][:, which], self.n_jobs)

    def extended(self, new: Rows, known: Neighbors | None = None) -> DistanceSource:
        """``new`` holds the distances of the new rows to the known ones, then to each other."""
        n, m = self.n, new.shape[0]
        if new.shape[1] != n + m:
            raise ValueError(
                f"X must hold the distances of {m} new rows to the {n} known ones and to each other, "
                f"that is {n + m} columns, got {new.shape[1]}"
            )
        if is_sparse(self.rows):
            from scipy.sparse import hstack

            return DistanceSource(stacked(hstack([self.rows, new[:, :n].T], format="csr"), new), self.n_jobs)
        return DistanceSource(np.block([[self.rows, new[:, :n].T], [new]]), self.n_jobs)


def recognised(source: Source, Q: Rows) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """For each row of ``Q`` the known row of the same content or -1, and a number that names its content."""
    keys = hash_rows(Q, source.n_jobs)
    return source.seen.find(Q, keys), keys


def placed(
    source: Source,
    Q: Rows,
    places: NDArray[np.float32],
    settle: Callable[[Rows, NDArray[np.uint64]], NDArray[np.float32]],
) -> NDArray[np.float32]:
    """Places of the rows of ``Q``: a known row's own; ``settle(rows, keys)`` finds those of the others."""
    known, keys = recognised(source, Q)
    out = np.empty((Q.shape[0], places.shape[1]), dtype=np.float32)
    out[known >= 0] = places[known[known >= 0]]
    new = np.flatnonzero(known < 0)
    if new.size:
        everything = new.size == Q.shape[0]
        out[new] = settle(Q if everything else Q[new], keys[new])
    return out


def stacked(above: Rows, below: Rows) -> Rows:
    if is_sparse(above):
        from scipy.sparse import vstack

        return vstack([above, below], format="csr")
    return np.concatenate([above, below])
