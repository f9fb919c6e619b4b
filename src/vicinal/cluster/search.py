"""The neighbor search of any rows, in memory or in a Dask array."""

from __future__ import annotations

from typing import Any

from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.policy import Method, check_method
from vicinal.runtime.inputs import is_dask
from vicinal.runtime.jobs import resolve_n_jobs


def find_neighbors(
    X: Any,
    n_neighbors: int = 15,
    *,
    metric: Any = "euclidean",
    metric_kwds: dict[str, Any] | None = None,
    method: Method = "auto",
    seed: int = 0,
    n_jobs: int | None = -1,
    device: str | None = None,
) -> Any:
    """Find the nearest rows of every row.

    Parameters
    ----------
    X : array-like, sparse matrix or Dask array, shape (n, d)
        The rows.
    n_neighbors : int, default=15
        Number of neighbors per row, the row itself included.
    metric, metric_kwds, seed, n_jobs, device
        As for ``NeighborIndex``; a Dask array is searched where its blocks are, and takes no ``device``.
    method : {"auto", "exact", "approximate"}, default="auto"
        "auto" compares all pairs if that is faster, or if an approximate search finds too few neighbors. A Dask array
        is searched cell by cell, and "exact" is refused.

    Returns
    -------
    Neighbors
        A table with the row itself in the first column; the same bits for any ``n_jobs``. Of a Dask array, ``index``
        and ``distance`` are Dask arrays, with the same bits for any chunks and workers.

    See Also
    --------
    NeighborIndex : an index that also answers queries.

    Examples
    --------
    >>> from vicinal import find_neighbors
    >>> find_neighbors([[0.0], [1.0], [3.0]], 2).index[:, 1]
    array([1, 0, 1], dtype=int32)
    """
    check_method(method)
    if not is_dask(X):
        index = NeighborIndex(X, metric, metric_kwds=metric_kwds, seed=seed, n_jobs=n_jobs, device=device)
        return index.search(n_neighbors, method)
    if device is not None:
        raise ValueError(f"device must be None for a Dask array, got {device!r}")
    if method == "exact":
        raise ValueError("method must be 'auto' or 'approximate' for a Dask array, which is searched cell by cell")
    from vicinal.cluster.neighborhoods import search_array

    given = {"metric": metric, "metric_kwds": metric_kwds, "n_jobs": resolve_n_jobs(n_jobs)}
    return search_array(X, lambda n: n_neighbors, seed, given).table
