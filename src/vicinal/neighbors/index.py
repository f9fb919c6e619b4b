"""Nearest neighbors of all rows, exact or approximate, and of unseen rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import backend_of, say_fallback
from vicinal.neighbors import search as policy
from vicinal.neighbors.metrics import ALIASES, VECTOR_METRICS, Keywords, Rows, fit_metric, is_sparse, required_finite
from vicinal.neighbors.rows import (
    HasRows,
    PlacedRows,
    Preparation,
    as_placed_rows,
    as_rows,
    check_placed_rows,
    check_room,
    check_rows,
    explain_out_of_memory,
)
from vicinal.neighbors.search import (
    DenseEngine,
    DeviceEngine,
    Method,
    SearchOptions,
    SparseEngine,
    check_method,
)
from vicinal.neighbors.table import Neighbors as Neighbors
from vicinal.neighbors.table import SearchGraph
from vicinal.runtime.cached import cached, uncached_state
from vicinal.runtime.constraints import SEED
from vicinal.runtime.inputs import is_dask, resolve_n_jobs


class NeighborIndex:
    """Find the nearest rows of every row, and of unseen rows.

    The results are a function of (X, metric, metric_kwds, seed): they have the same bits for any ``n_jobs``. An index
    does not change; what it builds on first use is built again, not stored, when it is pickled.

    Parameters
    ----------
    X : array-like or sparse matrix, shape (n, d)
        The rows. C-contiguous float32, float16, int8 and uint8, and canonical CSR of float32, are used without a copy;
        other input is converted. Do not change X while the index is in use.
    metric : str, callable or scipy.LowLevelCallable, default="euclidean"
        A name of ``vicinal.metrics.METRICS`` or an alias, a Python function ``f(x, y, **metric_kwds)`` of two float32
        rows, or a compiled function with the signature ``double (float *x, float *y, int n, void *user_data)``, the
        same with ``double *``, or either without ``user_data``. A compiled function is called without the GIL from
        several threads, a Python function from one thread. The row that comes first in X is the first argument.
    metric_kwds : dict or None, default=None
        Keywords of the metric.
    seed : int, default=0
        Seed of the approximate search.
    n_jobs : int or None, default=-1
        Number of threads; -1 uses all processors, None means what it means in scikit-learn.
    device : {None, "cpu", "cuda", "cuda:N"}, default=None
        Where rows are compared; None means where X lives.

    See Also
    --------
    find_neighbors : one search without an index to keep.
    OnlineNeighbors : rows that arrive over time.

    Notes
    -----
    A function is called for a limited number of pairs: for all of them up to ``policy.EXACT_CALLED_ROWS`` (Python) or
    ``policy.EXACT_EVALUATED_ROWS`` rows (compiled), and beyond that for those that NN-descent proposes, starting from
    euclidean neighbors and a few random rows.

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal import NeighborIndex, fuzzy_graph
    >>> X = np.random.default_rng(0).normal(size=(500, 8))
    >>> index = NeighborIndex(X, "cosine")
    >>> table = index.search(10)
    >>> table.index.shape
    (500, 10)
    >>> unseen = np.random.default_rng(1).normal(size=(3, 8))
    >>> index.query(unseen, 5, fuzzy_graph(table), table.share).index.shape
    (3, 5)
    """

    def __init__(
        self,
        X: Any,
        metric: Any = "euclidean",
        *,
        metric_kwds: Any = None,
        seed: int = 0,
        n_jobs: int | None = -1,
        device: str | None = None,
    ) -> None:
        jobs = resolve_n_jobs(n_jobs)
        placed = as_placed_rows(X, device, metric=metric, typed=True)
        ndim = placed.anywhere("rows").ndim
        if ndim != 2:
            raise ValueError(f"X must be 2-D, got {ndim} dimensions")
        check_room(placed, fit=False)
        largest = check_placed_rows(placed, jobs, finite=required_finite(metric))
        self._set(placed, metric, metric_kwds, seed, jobs, largest)

    @classmethod
    def from_checked(
        cls,
        rows: Rows | HasRows,
        metric: Any = "euclidean",
        *,
        metric_kwds: Any = None,
        seed: int = 0,
        n_jobs: int = -1,
        largest: float | None = None,
    ) -> NeighborIndex:
        """Make an index of rows, possibly on a device, that ``as_rows`` converted and ``check_rows`` accepted.

        ``largest`` is what ``check_rows`` returned; with None the rows are scanned for it.
        """
        index = cls.__new__(cls)
        index._set(rows if isinstance(rows, HasRows) else PlacedRows(rows), metric, metric_kwds, seed, n_jobs, largest)
        return index

    def _set(
        self, source: HasRows, metric: Any, metric_kwds: Any, seed: int, n_jobs: int, largest: float | None
    ) -> None:
        if not SEED.allows(seed):
            raise ValueError(f"seed must be {SEED}, got {seed!r}")
        self._source = source
        # The other metrics look at the values.
        values_matter = not (isinstance(metric, str) and ALIASES.get(metric, metric) in VECTOR_METRICS)
        rows = source.rows if values_matter else source.anywhere("rows")
        self.metric = metric
        self.metric_kwds = metric_kwds
        self.seed = seed
        self._metric = fit_metric(metric, metric_kwds, rows)
        self._metric.check_domain(rows)
        self.n_jobs = 1 if self._metric.calls_python else n_jobs
        self._largest = largest

    def __getstate__(self) -> dict[str, Any]:
        return uncached_state(self)

    @property
    def X(self) -> Rows:
        """The rows, on the host."""
        return self._source.rows

    @property
    def keywords(self) -> Keywords:
        """The keywords of the metric, including those computed from the data."""
        return self._metric.keywords

    def search(self, k: int, method: Method = "auto") -> Neighbors:
        """Find the k nearest rows of every row.

        Parameters
        ----------
        k : int
            Number of neighbors, the row itself included.
        method : {"auto", "exact", "approximate"}, default="auto"
            "auto" compares all pairs if that is faster, or if an approximate search finds too few neighbors.

        Returns
        -------
        Neighbors
            A table with the row itself in the first column. Pass its ``share`` to ``query``.
        """
        n, d = self._source.shape
        if not 1 <= k <= n:
            raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({n}), got {k}")
        policy.check_method(method)
        exact = method == "exact" or k < 2 or n <= SearchOptions.leaf_rows or (method == "auto" and self.is_exact(k))
        if self._searches_on_device(k):
            check_room(self._source, k, self._metric.core, fit=False)
            with explain_out_of_memory(self._source, k):
                if self._source.streamed:
                    return self._search_by_groups(k, method)
                return self._search_on_device(k, method, exact)
        if self._source.sparse:
            return self._sparse.search(k, exact)
        if exact:
            return self._dense.search_exact(k)
        options = self._dense.options
        found, structured = self._dense.search_approximate(k, options.for_table(k))
        if self._metric.calls_python or self._sample_recall(found) >= policy.GOOD_RECALL:
            return found
        if method == "auto" and policy.can_repeat_exactly(n, d):
            return replace(self._dense.search_exact(k), share=found.share)
        return self._dense.search_approximate(k, options.harder())[0] if structured else found

    def _search_on_device(self, k: int, method: Method, exact: bool) -> Neighbors:
        n, d = self._source.shape
        if exact:
            return self._device.search_exact(k)
        found = self._device.search_approximate(k)
        recall = self._device.sample_recall(found, policy.recall_sample(n))
        if recall >= policy.GOOD_RECALL or method != "auto" or not policy.can_repeat_exactly(n, d):
            return found
        return self._device.search_exact(k)

    def _search_by_groups(self, k: int, method: Method) -> Neighbors:
        """Search rows that the device cannot hold: groups of similar rows, one after the other."""
        from vicinal.neighbors.cells import GroupSearch

        place, (n, d) = self._source.place, self._source.shape
        backend = backend_of(place)
        need = backend.need(d, k, self._metric.core)
        if method == "exact":
            backend.require_room(n, need)
        options = {"metric_kwds": self.metric_kwds, "seed": self.seed, "n_jobs": self.n_jobs, "largest": self._largest}

        def search(rows: NDArray[np.float32], wanted: int) -> Neighbors:
            place.release()  # memory of the group before, in blocks of other sizes
            group = NeighborIndex.from_checked(PlacedRows(rows).on(place), self.metric, **options)
            return group._search_on_device(wanted, "auto", wanted < 2 or group.is_exact(wanted))

        place.collect()
        room = backend.group_rows(n, need)
        some = self.X if self._metric.facts.prepare is None else self.X[: max(1, min(n, room))]
        preparation, _ = Preparation.of(self._metric, some, self.n_jobs, self._largest)
        return GroupSearch(self.X, preparation, place, room, self._largest).run(k, search)

    def _searches_on_device(self, k: int) -> bool:
        """Tell whether the rows are searched where they live, if they live on a device."""
        place = self._source.place
        if place is None:
            return False
        dense = self._source.on_device or self._source.streamed
        if dense and backend_of(place).can_search(self._metric.core, k):
            return True
        say_fallback("the neighbor search", f"a GPU has none for sparse rows, metric={self.metric!r} or k={k}")
        return False

    @cached
    def _device(self) -> DeviceEngine:
        return DeviceEngine(self._source, self._metric, self.n_jobs, self._largest)

    def query(self, Q: Any, k: int, graph: SearchGraph, share: float = 1.0) -> Neighbors:
        """Find the k nearest rows of unseen rows, each independently of the others in Q.

        Parameters
        ----------
        Q : array-like or sparse matrix, shape (m, d)
            The unseen rows, sparse if the rows of the index are.
        k : int
            Number of neighbors.
        graph : Graph
            A neighbor graph of the rows of the index (``indptr`` and ``indices``), along which the search proceeds.
        share : float, default=1.0
            The ``share`` of the table that the graph was made from.

        Returns
        -------
        Neighbors
            A table of m rows.
        """
        n = self._source.shape[0]
        if not 1 <= k <= n:
            raise ValueError(f"k must lie between 1 and the number of rows ({n}), got {k}")
        queries, largest = self._checked_queries(Q)
        if self._source.on_device and n > self._exact_rows() and self._searches_on_device(k) and len(queries):
            return self._device.query(queries, largest, k, graph)
        if is_sparse(queries):
            exact = self._sparse.additive or n <= policy.EXACT_EVALUATED_ROWS
            return self._sparse.query(queries, largest, k, exact)
        # The search keeps a few more rows than asked for.
        prepared, pool = self._dense.preparation.rows(queries, largest), min(k + max(k // 8, 2), n)
        if n <= self._exact_rows():
            return self._dense.query(prepared, k, pool)
        return self._dense.query(prepared, k, pool, graph, share)

    def distances(self, Q: Any) -> NDArray[np.float32]:
        """Return the distances of rows to all rows of the index, as an array [rows of Q, rows of the index].

        Pairs that cannot be compared are infinitely far apart.
        """
        queries, largest = self._checked_queries(Q)
        n = self._source.shape[0]
        if is_sparse(queries):
            found = self._sparse.query(queries, largest, n, exact=True)
        else:
            found = self._dense.query(self._dense.preparation.rows(queries, largest), n, n)
        table = np.full((found.n, n), np.inf, dtype=np.float32)
        there = found.index >= 0
        table[np.nonzero(there)[0], found.index[there]] = found.distance[there]
        return table

    def _checked_queries(self, Q: Any) -> tuple[Rows, float]:
        """Check rows against those of the index; return them and their largest magnitude."""
        queries = as_rows(Q, "Q", typed=self._source.place is None)
        d = self._source.shape[1]
        if queries.ndim != 2 or queries.shape[1] != d:
            raise ValueError(f"queries must have the {d} columns of the rows, got shape {queries.shape}")
        if is_sparse(queries) != self._source.sparse:
            raise TypeError("queries must be sparse if the rows of the index are, and dense if they are dense")
        largest = check_rows(queries, self.n_jobs, finite=required_finite(self.metric), name="Q")
        self._metric.check_domain(queries)
        return queries, largest

    def is_exact(self, k: int) -> bool:
        """Tell whether ``search(k)`` compares all pairs of rows because that is faster."""
        n, d = self._source.shape
        if self._source.sparse:
            return self._sparse.compares_all()
        return n <= self._exact_rows() if self._metric.by_pairs else policy.compares_all_sketches(n, d, k)

    def _exact_rows(self) -> int:
        """Return the number of dense rows up to which all are compared, for any width."""
        if self._metric.calls_python:
            return policy.EXACT_CALLED_ROWS
        return policy.EXACT_EVALUATED_ROWS if self._metric.by_pairs else policy.EXACT_ROWS

    @cached
    def _dense(self) -> DenseEngine:
        return DenseEngine(self.X, self._metric, self.seed, self.n_jobs, self._largest)

    @cached
    def _sparse(self) -> SparseEngine:
        return SparseEngine(self.X, self._metric, self.seed, self.n_jobs, self._largest)

    def _sample_recall(self, found: Neighbors) -> float:
        """Estimate the recall of a table, by comparing a few rows with all rows."""
        sample = policy.recall_sample(found.n)
        rows = np.ascontiguousarray(self._dense.rows[sample])
        # A row that ties with the last true neighbor counts as found; the factor allows for rounding.
        last = self._dense.query(rows, found.k, found.k).distance[:, -1:]
        return float(np.mean(found.distance[sample, 1:] <= last * 1.0001))


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
    from vicinal.cluster.fitted import search_array

    given = {"metric": metric, "metric_kwds": metric_kwds, "n_jobs": resolve_n_jobs(n_jobs)}
    return search_array(X, lambda n: n_neighbors, seed, given).table
