"""The data of a fit: rows compared by a metric, or a matrix of distances.

Both kinds have the same methods, so that nothing after the neighbor search depends on the kind of input.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import (
    Rows,
    allows_nan,
    is_bounded,
    is_non_negative,
    is_packed,
    is_sparse,
    required_finite,
    unrelated_distance,
)
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.rows import DuplicateRows, HasRows, hash_rows, stack_rows
from vicinal.neighbors.search import Method
from vicinal.neighbors.table import (
    Neighbors,
    SearchGraph,
    check_distances,
    neighbors_from_distances,
    query_from_distances,
)
from vicinal.runtime.cached import cached
from vicinal.runtime.inputs import ROW_TYPES

# Stored numbers per row, on average, up to which neighbors are chosen by what they share (graph/fuzzy.py).
SHORT_ROW = 20


class _Rows(HasRows):
    """Properties of both kinds. Cached values are left out of copies and files."""

    n_jobs: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @cached
    def duplicates(self) -> DuplicateRows:
        """Rows with equal content."""
        return DuplicateRows(self if self.on_device else self.rows, self.n_jobs)


@dataclass(frozen=True, eq=False)
class TrainingRows(_Rows):
    """Rows as ``as_rows`` returns them, checked by ``check_rows``, and the metric that compares them.

    The parameters are those of ``NeighborIndex``. A precomputed table that is ``given`` is used instead of a search.
    ``largest`` is what ``check_rows`` returned; with None the rows are scanned for it. It is not a field: copies with
    other rows do not have it.
    """

    rows: Rows
    metric: Any = "euclidean"
    metric_kwds: dict[str, Any] | None = None
    seed: int = 0
    n_jobs: int = -1
    given: Neighbors | None = None
    largest: InitVar[float | None] = None

    def __post_init__(self, largest: float | None) -> None:
        object.__setattr__(self, "_largest", largest)

    @classmethod
    def of(
        cls,
        source: HasRows,
        metric: Any,
        metric_kwds: dict[str, Any] | None,
        seed: int,
        n_jobs: int,
        *,
        given: Neighbors | None = None,
        largest: float | None = None,
    ) -> TrainingRows:
        """Return rows, with the metric that compares them, where they are."""
        return cls(source.held("rows"), metric, metric_kwds, seed, n_jobs, given, largest=largest)

    def check(self) -> None:
        """Raise ValueError if the fields, which may come from a file, do not fit together."""
        values = self.rows if isinstance(self.rows, np.ndarray) else self.rows.data
        allowed = ROW_TYPES if values is self.rows else ROW_TYPES[:1]
        if self.rows.ndim != 2 or values.dtype not in allowed or not values.flags.c_contiguous:
            raise ValueError(f"rows must be a matrix of {', '.join(map(str, allowed))}")
        if self.given is not None and (self.given.n != self.n or self.given.index.max(initial=-1) >= self.n):
            raise ValueError(f"given must be a neighbor table of the {self.n} rows")

    @cached
    def index(self) -> NeighborIndex:
        """The search index. Making it validates the metric, and the rows against the metric."""
        return NeighborIndex.from_checked(
            self if self.on_device or self.streamed else self.rows,
            self.metric,
            metric_kwds=self.metric_kwds,
            seed=self.seed,
            n_jobs=self.n_jobs,
            largest=self.__dict__["_largest"],
        )

    @property
    def coordinates(self) -> HasRows | None:
        """The rows, if they are dense and have no missing values; otherwise None."""
        if self.sparse or allows_nan(self.metric):
            return None
        return self if required_finite(self.metric) or np.isfinite(self.rows).all() else None

    @cached
    def unrelated_distance(self) -> float | None:
        """The metric's largest distance, that of rows with nothing in common; None if there is none."""
        # Rows on a device are fetched only if they must be looked at.
        return unrelated_distance(self.metric, is_non_negative(self.rows)) if is_bounded(self.metric) else None

    @property
    def prefers_shared(self) -> bool:
        """Whether neighbors are chosen by what they share: short sparse rows, compared by what they have in common."""
        if self.given is not None or not self.sparse:
            return False
        return prefers_shared(self.unrelated_distance, self.rows.nnz, self.n)

    def neighbors(self, k: int, method: Method = "auto", *, known: Neighbors | None = None) -> Neighbors:
        """Return the k nearest rows of every row; a ``given`` table is returned as it is.

        ``known`` is the table of the first rows, found by an earlier search. If that is cheaper, only the other rows
        are searched, and inserted into it.
        """
        if self.given is not None:
            return self.given.on(self.place)
        if known is not None and method != "exact" and self._can_insert_into(known, k):
            kwds = {"metric_kwds": self.metric_kwds, "seed": self.seed, "n_jobs": self.n_jobs}
            online = OnlineNeighbors.from_neighbors(self.rows[: known.n], known, self.metric, **kwds)
            online.insert(self.rows[known.n :])
            online.step()
            return online.table().on(self.place)
        return self.index.search(k, method).on(self.place)

    def _can_insert_into(self, known: Neighbors, k: int) -> bool:
        """Tell whether inserting rows into a table is possible and cheaper than a search."""
        named = isinstance(self.metric, str) and not is_packed(self.metric)
        if self.sparse or not named or known.k != k or self.n > 2 * known.n:
            return False
        from_data = {"V", "VI"} & set(self.index.keywords) - set(self.metric_kwds or {})
        return k >= 2 and not from_data and not self.index.is_exact(k)

    def query(self, Q: Rows, k: int, graph: SearchGraph, share: float = 1.0) -> Neighbors:
        """Return the k nearest rows of unseen rows (``NeighborIndex.query``)."""
        return self.index.query(Q, k, graph, share)

    def take(self, which: NDArray[np.int64]) -> TrainingRows:
        """Return some of the rows, in the given order, without the precomputed table."""
        return replace(self, rows=self[which], given=None).on(self.place)

    def extended(self, new: Rows) -> TrainingRows:
        """Return the rows followed by new ones, without the precomputed table, which does not cover them."""
        return replace(self, rows=stack_rows(self.rows, new), given=None).on(self.place)


@dataclass(frozen=True, eq=False)
class TrainingDistances(_Rows):
    """A square matrix of distances. Entries that a sparse matrix does not store are not neighbors."""

    rows: Rows
    n_jobs: int = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", check_distances(self.rows, square=True))

    def check(self) -> None:
        """Raise ValueError if the matrix is not square or holds NaN or negative numbers."""
        check_distances(self.rows, square=True)

    # Distances have no coordinates and no bound, and do not show what rows share.
    coordinates: ClassVar[None] = None
    unrelated_distance: ClassVar[None] = None
    prefers_shared: ClassVar[bool] = False

    def neighbors(self, k: int, method: Method = "auto", *, known: Neighbors | None = None) -> Neighbors:
        """Return the k nearest rows of every row by the matrix; ``method`` and ``known`` make no difference."""
        return neighbors_from_distances(self.rows, k).on(self.place)

    def query(self, Q: Rows, k: int, graph: SearchGraph, share: float = 1.0) -> Neighbors:
        """Return the k nearest rows of unseen rows; Q holds their distances to all n rows."""
        return query_from_distances(Q, k, self.n)

    def take(self, which: NDArray[np.int64]) -> TrainingDistances:
        """Return the distances between some of the rows, in the given order."""
        return TrainingDistances(self.rows[which][:, which], self.n_jobs).on(self.place)

    def extended(self, new: Rows) -> TrainingDistances:
        """Add rows: ``new`` holds their distances to the known rows, then to each other."""
        n, m = self.n, new.shape[0]
        if new.shape[1] != n + m:
            raise ValueError(
                f"X must hold the distances of {m} new rows to the {n} known ones and to each other, "
                f"that is {n + m} columns, got {new.shape[1]}"
            )
        if is_sparse(self.rows):
            from scipy.sparse import hstack

            wide = hstack([self.rows, new[:, :n].T], format="csr")
            return TrainingDistances(stack_rows(wide, new), self.n_jobs)
        return TrainingDistances(np.block([[self.rows, new[:, :n].T], [new]]), self.n_jobs)


TrainingData: TypeAlias = TrainingRows | TrainingDistances


def prefers_shared(unrelated: float | None, stored: int, n: int) -> bool:
    """Tell whether neighbors are chosen by what they share: sparse rows are short, and the metric has a bound."""
    return unrelated is not None and stored <= SHORT_ROW * n


def recognize(data: TrainingData, Q: Rows) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return for each row of Q the training row of the same content or -1, and a hash of its content."""
    keys = hash_rows(Q, data.n_jobs)
    return data.duplicates.find(Q, keys), keys
