"""The neighbor table: the k nearest rows of every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import Movable, Place, backend_of, placed
from vicinal.neighbors.metrics import first_row, is_non_negative, is_sparse, stored_values
from vicinal.runtime.inputs import as_array, check_input, read_rows

# Distances this close to a limit, relatively, are taken as equal to it: the rounding error of float32.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Neighbors(Movable, arrays=("index", "distance")):
    """The k nearest rows of every row.

    Parameters
    ----------
    index : ndarray of int32, shape (n, k)
        Numbers of the nearest rows, sorted by (distance, index), in a table of all rows with the row itself first; -1
        if a row has fewer than k neighbors.
    distance : ndarray of float32, shape (n, k)
        Their distances, infinity for missing neighbors.
    share : float, default=1.0
        Average fraction of a neighbor's rank that its sketch shows, as an approximate search measured it; 1 if sketches
        show all of it. Later queries use it to decide which rows they need not evaluate.

    See Also
    --------
    find_neighbors : makes a table.
    fuzzy_graph : a graph of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal import find_neighbors
    >>> table = find_neighbors(np.array([[0.0], [1.0], [3.0]]), 2)
    >>> table.index
    array([[0, 1],
           [1, 0],
           [2, 1]], dtype=int32)
    >>> table.distance[:, 1]
    array([1., 1., 2.], dtype=float32)
    """

    index: NDArray[np.int32]
    distance: NDArray[np.float32]
    share: float = 1.0

    def __post_init__(self) -> None:
        place, index, distance = self.place, self.array("index"), self.array("distance")
        if index.ndim != 2 or index.shape != distance.shape:
            raise ValueError(
                f"index and distance must be 2-D and have the same shape, got shapes {index.shape} and {distance.shape}"
            )
        asarray = backend_of(place).asarray
        object.__setattr__(self, "index", placed(place, asarray(index, np.int32)))
        object.__setattr__(self, "distance", placed(place, asarray(distance, np.float32)))

    @classmethod
    def at(cls, place: Place, index: Any, distance: Any, share: float = 1.0) -> Neighbors:
        """Return the table of arrays of a place."""
        return cls(placed(place, index), placed(place, distance), share)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.anywhere("index").shape[0])

    @property
    def k(self) -> int:
        """Number of neighbors per row."""
        return int(self.anywhere("index").shape[1])

    def distances_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the distances of some rows, without moving the whole table to the host."""
        some: NDArray[np.float32] = backend_of(self.place).take_rows(self.array("distance"), rows)
        return some

    def first(self, k: int) -> Neighbors:
        """Return the table of the first k neighbors of every row."""
        if k >= self.k:
            return self
        return replace(self, index=self.index[:, :k], distance=self.distance[:, :k]).on(self.place)

    def among(self, rows: NDArray[np.integer[Any]]) -> Neighbors:
        """Return the table of some rows among themselves, numbered from 0 in their order; missing neighbors come last.

        Parameters
        ----------
        rows : array of int
            Numbers of distinct rows, ascending.

        Returns
        -------
        neighbors : Neighbors
            It has the same number of columns, or as many as there are rows.
        """
        rows = np.asarray(rows)
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or (np.diff(rows) <= 0).any():
            raise ValueError("rows must be ascending row numbers")
        if len(rows) and not 0 <= rows[0] <= rows[-1] < self.n:
            raise ValueError(f"rows must be numbers from 0 to {self.n - 1}, got {rows[0]} to {rows[-1]}")
        number = np.full(self.n + 1, -1, dtype=np.int32)
        number[rows] = np.arange(len(rows), dtype=np.int32)
        index = number[self.index[rows]]
        distance = np.where(index < 0, np.inf, self.distance[rows]).astype(np.float32)
        order = np.argsort(index < 0, axis=1, kind="stable")[:, : len(rows)]
        index, distance = (np.take_along_axis(one, order, axis=1) for one in (index, distance))
        return replace(self, index=index, distance=distance).on(self.place)

    def within(self, distance: float) -> Neighbors:
        """Return the table without neighbors at or beyond ``distance``, up to the rounding error of distances."""
        far = self.distance >= distance * (1.0 - ROUNDING)
        near = np.where(far, np.inf, self.distance).astype(np.float32)
        return replace(self, index=np.where(far, -1, self.index), distance=near).on(self.place)


class SearchGraph(Protocol):
    """The edges of a neighbor graph in compressed sparse rows, along which queries search."""

    @property
    def indptr(self) -> NDArray[np.int64]: ...
    @property
    def indices(self) -> NDArray[np.int32]: ...
    @property
    def place(self) -> Place: ...
    def array(self, name: str) -> Any: ...


# Distances that are sorted per block: limits the memory, and the delay of a signal.
BLOCK_VALUES = 1 << 22


def neighbors_from_distances(D: Any, k: int) -> Neighbors:
    """Return the k nearest rows of every row, the row itself first, given a matrix of all distances.

    Row i of the matrix holds the distances of row i; it need not be symmetric. Entries that a sparse matrix does not
    store, and infinite distances, are not neighbors.
    """
    D = check_distances(D, square=True)
    n = D.shape[0]
    if not 1 <= k <= n:
        raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({n}), got {k}")
    others = _nearest_stored(D, k - 1, True) if is_sparse(D) else _nearest_columns(D, k - 1, True)
    own = np.arange(n, dtype=np.int32)[:, None]
    return Neighbors(np.hstack([own, others.index]), np.hstack([np.zeros((n, 1), np.float32), others.distance]))


def query_from_distances(D: Any, k: int, n: int | None = None) -> Neighbors:
    """Return the k nearest known rows of every new row; D[i, j] is the distance of new row i to known row j.

    ``n`` is the number of known rows, if D is to be checked against it.
    """
    D = check_distances(D)
    if n is not None and D.shape[1] != n:
        raise ValueError(f"X must hold a distance to each of the {n} rows of the fit, got shape {D.shape}")
    if not 1 <= k <= D.shape[1]:
        raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({D.shape[1]}), got {k}")
    return _nearest_stored(D, k, False) if is_sparse(D) else _nearest_columns(D, k, False)


def neighbors_from_knn(precomputed_knn: Any, n: int, k: int) -> Neighbors:
    """Return the table of k neighbors of ``n`` rows, the row itself first, from neighbors that were computed elsewhere.

    ``precomputed_knn`` is (indices, distances, search index or None) as in umap-learn, (indices, distances) as in cuML,
    or a sparse graph of distances. A negative index means that there is no neighbor.
    """
    if is_sparse(precomputed_knn) or hasattr(precomputed_knn, "tocsr"):
        check_input(precomputed_knn, "precomputed_knn")
        graph = precomputed_knn.tocsr()
        if graph.shape != (n, n):
            raise ValueError(f"precomputed_knn must have shape {(n, n)} as a graph, got {graph.shape}")
        return neighbors_from_distances(graph, k)
    if not isinstance(precomputed_knn, tuple | list) or len(precomputed_knn) not in (2, 3):
        raise TypeError(
            "precomputed_knn must be (indices, distances), (indices, distances, search index) or a sparse graph, "
            f"got {type(precomputed_knn).__name__}"
        )
    index, distance = _check_table(precomputed_knn[0], precomputed_knn[1], n)
    if index.shape[1] < k:
        raise ValueError(f"precomputed_knn holds {index.shape[1]} neighbors per row, n_neighbors asks for {k}")
    own = np.arange(n)[:, None]
    # The row itself comes first, then the others by (distance, index), then missing ones. If the row itself was not
    # among its neighbors, its farthest neighbor is dropped.
    distance = np.where(index < 0, np.inf, distance)
    itself = index == own
    index = np.hstack([own, np.where(itself, -1, index)])
    distance = np.hstack([np.zeros((n, 1)), np.where(itself, np.inf, distance)])
    front = np.broadcast_to(np.arange(index.shape[1]) > 0, index.shape)
    order = np.lexsort((np.where(index < 0, n, index), distance, front))[:, :k]
    index, distance = np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)
    named = np.sort(index, axis=1)
    twice = ((named[:, 1:] == named[:, :-1]) & (named[:, 1:] >= 0)).any(axis=1)
    if twice.any():
        raise ValueError(f"precomputed_knn[0] names a neighbor twice, first in row {int(np.argmax(twice))}")
    return Neighbors(index.astype(np.int32), distance.astype(np.float32))


def _check_table(index: Any, distance: Any, n: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    indices, distances = (as_array(one, f"precomputed_knn[{i}]") for i, one in enumerate((index, distance)))
    if indices.ndim != 2 or indices.dtype.kind not in "iu":
        raise ValueError(f"precomputed_knn[0] must be 2-D whole numbers, got {indices.dtype} {indices.shape}")
    if distances.shape != indices.shape or distances.dtype.kind not in "fiu":
        raise ValueError(
            f"precomputed_knn[1] must be numbers of shape {indices.shape}, got {distances.dtype} {distances.shape}"
        )
    if indices.shape[0] != n:
        raise ValueError(f"precomputed_knn has {indices.shape[0]} rows, X has {n}")
    if indices.size and indices.max() >= n:
        row = int(np.argmax((indices >= n).any(axis=1)))
        raise ValueError(f"precomputed_knn[0] names row {int(indices.max())} of {n}, first in row {row}")
    bad = (np.isnan(distances) | (distances < 0)) & (indices >= 0)
    if bad.any():
        raise ValueError(f"precomputed_knn[1] is negative or NaN, first in row {int(np.argmax(bad.any(axis=1)))}")
    return indices.astype(np.int64), distances.astype(np.float64)


def check_distances(D: Any, *, square: bool = False) -> Any:
    """Convert to a 2-D array or a canonical CSR matrix; raise ValueError if it holds NaN or negative numbers."""
    D, _ = read_rows(D)
    if hasattr(D, "tocsr"):
        D = D.tocsr()
        if not D.has_canonical_format:
            D = D.copy()
            D.sum_duplicates()
    else:
        D = np.asarray(D)
    if D.ndim != 2 or D.dtype.kind not in "fiub":
        raise ValueError(f"X must be a 2-D matrix of distances, got {D.dtype} of shape {D.shape}")
    if square and D.shape[0] != D.shape[1]:
        raise ValueError(f"X must be a square distance matrix for metric='precomputed', got shape {D.shape}")
    if not is_non_negative(D):
        row = first_row(D, ~(stored_values(D) >= 0))
        raise ValueError(f"distances must be positive or 0: X contains NaN or a negative distance, first in row {row}")
    return D


def _nearest_columns(D: NDArray[Any], k: int, square: bool) -> Neighbors:
    """Sort by (distance, column), without infinite distances and the diagonal of a square matrix."""
    n = D.shape[0]
    index, distance = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
    n_rows = max(1, BLOCK_VALUES // max(1, D.shape[1]))
    for begin in range(0, n, n_rows):
        block = np.array(D[begin : begin + n_rows], dtype=np.float32)
        rows = np.arange(len(block))
        if square:
            block[rows, begin + rows] = np.inf
        if 0 < k < block.shape[1]:
            # All columns that tie with the k-th are kept, so that ties are broken by column.
            last = np.partition(block, k - 1, axis=1)[:, k - 1 : k]
            width = int((block <= last).sum(axis=1).max())
            near = np.sort(np.argpartition(np.where(block <= last, -1.0, 1.0), width - 1, axis=1)[:, :width], axis=1)
        else:
            near = np.broadcast_to(np.arange(block.shape[1]), block.shape)
        values = np.take_along_axis(block, near, axis=1)
        order = np.argsort(values, axis=1, kind="stable")[:, :k]
        distance[begin : begin + len(block)] = np.take_along_axis(values, order, axis=1)
        index[begin : begin + len(block)] = np.take_along_axis(near, order, axis=1)
    return Neighbors(np.where(np.isinf(distance), -1, index), distance)


def _nearest_stored(D: Any, k: int, square: bool) -> Neighbors:
    n = D.shape[0]
    row = np.repeat(np.arange(n), np.diff(D.indptr))
    column, value = D.indices, D.data.astype(np.float32)
    kept = np.isfinite(value) & (row != column if square else True)
    row, column, value = row[kept], column[kept], value[kept]
    order = np.lexsort((column, value, row))
    row, column, value = row[order], column[order], value[order]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(n))[row]
    near = rank < k
    index, distance = np.full((n, k), -1, np.int32), np.full((n, k), np.inf, np.float32)
    index[row[near], rank[near]] = column[near]
    distance[row[near], rank[near]] = value[near]
    return Neighbors(index, distance)
