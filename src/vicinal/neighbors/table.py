"""The neighbor table: the k nearest rows of every row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.runtime.residence import Place, Resident

# Distances this close to a limit, relatively, are taken as equal to it: the rounding error of float32.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Neighbors(Resident):
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

    _resident: ClassVar[tuple[str, ...]] = ("index", "distance")

    def __post_init__(self) -> None:
        if self.index.ndim != 2 or self.index.shape != self.distance.shape:
            raise ValueError(
                "index and distance must be 2-D and have the same shape, "
                f"got shapes {self.index.shape} and {self.distance.shape}"
            )
        object.__setattr__(self, "index", np.ascontiguousarray(self.index, dtype=np.int32))
        object.__setattr__(self, "distance", np.ascontiguousarray(self.distance, dtype=np.float32))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.array("index").shape[0])

    @property
    def k(self) -> int:
        """Number of neighbors per row."""
        return int(self.array("index").shape[1])

    def distances_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the distances of some rows, without moving the whole table to the host."""
        if self.place is None:
            return self.distance[rows]
        some: Any = self.array("distance")[self.place.asarray(rows)]
        return np.asarray(self.place.to_numpy(some))

    def first(self, k: int) -> Neighbors:
        """Return the table of the first k neighbors of every row."""
        if k >= self.k:
            return self
        return replace(self, index=self.index[:, :k], distance=self.distance[:, :k]).on(self.place)

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
