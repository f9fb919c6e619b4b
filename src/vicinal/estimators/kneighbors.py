"""Neighbor graphs as a transformer, with scikit-learn's contract: pipelines and scanpy use our search through it."""

from __future__ import annotations

from dataclasses import KW_ONLY
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.estimators.base import Estimator, Result, over_blocks, random_seed, require_fitted, whole_or_nothing
from vicinal.estimators.parameters import like, parameter, with_parameters
from vicinal.estimators.umap import UMAP
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.neighbors.metrics import PRECOMPUTED
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import recognize
from vicinal.pipeline.fitted import FittedNeighbors
from vicinal.pipeline.memory import add_graph, add_search
from vicinal.runtime.constraints import POSITIVE, StrOptions, whole
from vicinal.runtime.inputs import is_dask
from vicinal.runtime.sizes import InputShape, Ledger

# The graph along which new rows are searched has at least this many neighbors per row.
SEARCH_NEIGHBORS = 15


@with_parameters
class KNeighborsTransformer(Estimator):
    """Rows to the sparse graph of their nearest fitted rows, as ``sklearn.neighbors.KNeighborsTransformer``.

    Attributes
    ----------
    n_samples_fit_ : int
    effective_metric_ : str or callable
    effective_metric_params_ : dict

    See Also
    --------
    find_neighbors : the same search as a function.
    UMAP : takes the result as ``precomputed_knn``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import KNeighborsTransformer
    >>> X = load_iris().data
    >>> KNeighborsTransformer(n_neighbors=5).fit_transform(X).shape
    (150, 150)
    """

    # fmt: off
    _: KW_ONLY
    mode: str = parameter("distance", [StrOptions({"distance", "connectivity", "scanpy"})], """
        Entries of the graph: distances, or ones. As in scikit-learn, "distance" lists one neighbor more than
        ``n_neighbors``, since a fitted row finds itself. "scanpy" counts a row among its own ``n_neighbors`` and stores
        the distances of the others, as ``sc.pp.neighbors`` does.""")
    n_neighbors: int = parameter(15, [whole(1)], """
        Neighbors per row, the row itself not counted unless ``mode`` says so. ``sc.pp.neighbors`` takes this number
        instead of its own argument. scikit-learn's default is 5.""")
    algorithm: str = parameter("auto", [StrOptions({"auto", "exact", "approximate"})], """
        How neighbors are searched. "auto" compares every pair if that is faster.""")
    metric: Any = like(UMAP)
    p: float = parameter(2, [POSITIVE, float], """
        Power of metric="minkowski".""")
    metric_params: dict[str, Any] | None = parameter(None, [dict, None], "Keyword arguments of ``metric``.")
    random_state: Any = like(UMAP, default=0, doc="Seed of the approximate search.")
    n_jobs: int | None = like(UMAP, "The result has the same bits for any number.")
    memory_limit: float | str | None = like(UMAP)
    device: str | None = like(UMAP)
    # fmt: on

    _result = "neighbors_"
    _chooses_device = True

    @whole_or_nothing
    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer:
        """Make the rows of ``X``, which may be a Dask array, searchable; ``y`` is ignored."""
        self._validate_params()
        if is_dask(X):
            return self._fit_array(X)
        data = self._check_training_data(X, random_seed(self.random_state))
        method: Any = self.algorithm
        neighbors = data.neighbors(_columns(self.n_neighbors, data.n), method)
        search_graph = fuzzy_graph(neighbors, n_jobs=self._jobs())
        self._fit_params = self._settings()
        self.neighbors_ = FittedNeighbors(data, neighbors, search_graph)
        return self

    @over_blocks
    def transform(self, X: Any) -> csr_matrix:
        """Return the graph [rows of X, fitted rows], entries sorted by distance, then by row.

        A row that equals a fitted row has the list of that row, and itself in it.
        """
        require_fitted(self)
        table, known = self._query(X, self._listed())
        mode = self._fit_params["mode"]
        return self._graph(_others(table, known) if mode == "scanpy" else table, mode)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> csr_matrix:
        """Fit and return the graph of the fitted rows, which ``transform`` returns for the same rows.

        The graph of a Dask array is a Dask array with the same row chunks, whose blocks are SciPy matrices.
        """
        self.fit(X, y, **fit_params)
        k = self._listed()
        self._check_count(k)
        fitted: Any = self.neighbors_
        if not isinstance(fitted, FittedNeighbors):
            return fitted.graph(k, self._fit_params["mode"])
        mode, table = self._fit_params["mode"], self._own_lists(fitted.data.duplicates.first, k)
        return self._graph(_others(table, np.arange(table.n)) if mode == "scanpy" else table, mode)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Return distances and indices of the nearest fitted rows, by default of each fitted row among the others."""
        require_fitted(self)
        k = int(self._fit_params["n_neighbors"] if n_neighbors is None else n_neighbors)
        if k < 1:
            raise ValueError(f"n_neighbors must be at least 1, got {k}")
        if X is None:
            self._check_count(k + 1)
            fitted = self.in_memory().neighbors_
            table = fitted.neighbors
            if k >= table.k:
                method: Any = self._fit_params["algorithm"]
                table = fitted.data.neighbors(k + 1, method)
            index, distance = table.index[:, 1 : k + 1], table.distance[:, 1 : k + 1]
        else:
            table, _ = self._query(X, k)
            index, distance = table.index, table.distance
        return (distance, index.astype(np.int64)) if return_distance else index.astype(np.int64)

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> csr_matrix:
        """Return the neighbors that ``kneighbors`` finds, as a sparse graph of ones or distances."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}")
        distance, index = self.kneighbors(X, n_neighbors)
        return self._graph(Neighbors(index, distance), mode)

    n_samples_fit_ = Result(lambda fitted: fitted.data.n)
    _n_features_out = Result(lambda fitted: fitted.data.n)

    @property
    def effective_metric_(self) -> Any:
        self.learned("effective_metric_")
        return self._fit_params["metric"]

    @property
    def effective_metric_params_(self) -> dict[str, Any]:
        self.learned("effective_metric_params_")
        return _keywords(self._fit_params)

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, part by part."""
        k = _columns(self.n_neighbors, shape.n)
        add_search(ledger, shape, k, metric=self.metric, approximate=self.algorithm == "approximate")
        add_graph(ledger, shape.n, k)

    def _fit_array(self, X: Any) -> KNeighborsTransformer:
        """Search the rows of a Dask array (:mod:`vicinal.cluster`)."""
        from vicinal.cluster.fitted import search_array

        if self.mode == "scanpy":
            raise ValueError("mode must be 'distance' or 'connectivity' for a Dask array")
        if self.algorithm == "exact":
            raise ValueError("algorithm must be 'auto' or 'approximate' for a Dask array, which is searched by cells")
        given = self.get_params(deep=False) | {"metric_kwds": self._metric_keywords(), "n_jobs": self._jobs()}
        found: Any = search_array(X, lambda n: _columns(self.n_neighbors, n), random_seed(self.random_state), given)
        self._fit_params, self.neighbors_ = self.get_params(deep=False), found
        self.n_features_in_ = found.data.d
        return self

    def in_memory(self) -> KNeighborsTransformer:
        """Return the model with everything that it learned in the memory of this process; it may be this model."""
        fitted: Any = self.neighbors_
        return self if isinstance(fitted, FittedNeighbors) else self._with(neighbors_=fitted.gathered)

    def _state(self, include_data: bool) -> dict[str, Any]:
        state = super()._state(include_data)
        return state | {"neighbors_": self.in_memory().neighbors_} if "neighbors_" in state else state

    def _restore(self, state: dict[str, Any]) -> None:
        if not isinstance(state.get("neighbors_"), FittedNeighbors | None):
            raise TypeError("the model has no neighbors")
        super()._restore(state)

    def _metric_keywords(self) -> dict[str, Any] | None:
        """Keywords that a matrix of distances has no use for are ignored, as in scikit-learn."""
        return None if self.metric == PRECOMPUTED else _keywords(self._settings())

    def _listed(self) -> int:
        return int(self._fit_params["n_neighbors"]) + int(self._fit_params["mode"] == "distance")

    def _check_count(self, k: int) -> None:
        if k > self.n_samples_fit_:
            raise ValueError(f"n_neighbors is too large: {k} rows are needed, n_samples_fit = {self.n_samples_fit_}")

    def _query(self, X: Any, k: int) -> tuple[Neighbors, NDArray[np.int64]]:
        """Return the k nearest fitted rows of each row, and the fitted row that equals it, or -1."""
        fitted = self.in_memory().neighbors_
        rows = self._check_new_rows(X, fitted.data)
        self._check_count(k)
        known, _ = recognize(fitted.data, rows)
        new = np.flatnonzero(known < 0)
        if new.size == len(known):
            return fitted.data.query(rows, k, fitted.search_graph, fitted.neighbors.share), known
        lists = self._own_lists(np.maximum(known, 0), k)
        if new.size:
            found = fitted.data.query(rows[new], k, fitted.search_graph, fitted.neighbors.share)
            lists.index[new], lists.distance[new] = found.index, found.distance
        return lists, known

    def _own_lists(self, rows: NDArray[np.int64], k: int) -> Neighbors:
        """Return the k nearest fitted rows of some fitted rows, these included, by (distance, row).

        Equal rows have equal lists if ``rows`` names the first of them.
        """
        fitted = self.in_memory().neighbors_
        data, table = fitted.data, fitted.neighbors
        # A row is in its own list. If more than k rows equal it, the first k of them are listed, and it may not be one.
        if k >= table.k and table.k < data.n:
            method: Any = self._fit_params["algorithm"]
            table = data.neighbors(min(k + 1, data.n), method)
        index, distance = table.index[rows], table.distance[rows]
        order = np.lexsort((index, distance), axis=1)[:, :k]
        return Neighbors(np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1))

    def _graph(self, table: Neighbors, mode: str) -> csr_matrix:
        present = table.index >= 0  # a sparse matrix of distances may know fewer neighbors than were asked for
        weights = np.ones_like(table.distance) if mode == "connectivity" else table.distance
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        return csr_matrix((weights[present], table.index[present], indptr), shape=(table.n, self.n_samples_fit_))


def _others(table: Neighbors, rows: NDArray[np.int64]) -> Neighbors:
    """Return the lists without the rows themselves, or without the last entry where a row is not in its list."""
    dropped = table.index == rows[:, None]
    dropped[~dropped.any(axis=1), -1] = True
    kept = table.n, table.k - 1
    return Neighbors(table.index[~dropped].reshape(kept), table.distance[~dropped].reshape(kept))


def _columns(n_neighbors: int, n: int) -> int:
    """Return the length of the lists that a fit searches: a row itself, its neighbors, and one more (`_own_lists`)."""
    return min(max(n_neighbors + 2, SEARCH_NEIGHBORS), n)


def _keywords(params: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of the metric, the power of a Minkowski metric among them."""
    metric = params["metric"]
    power = {"p": params["p"]} if isinstance(metric, str) and metric in ("minkowski", "wminkowski") else {}
    return power | dict(params["metric_params"] or {})
