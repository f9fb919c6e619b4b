"""Neighbour graphs as a transformer, with scikit-learn's contract: pipelines and scanpy use our search through it."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._sourced import Sourced
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.maps.memory import ByteSize, Ledger, Table, add_graph, add_search
from vicinal.neighbors.metrics import ALIASES, METRICS, PRECOMPUTED
from vicinal.neighbors.table import Neighbors
from vicinal.runtime.parameters import Interval, StrOptions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# The graph that a search of unseen rows goes along has at least this many neighbours a row.
SEARCH_NEIGHBORS = 15


class KNeighborsTransformer(Sourced):
    """Rows to the sparse graph of their nearest fitted rows, as ``sklearn.neighbors.KNeighborsTransformer``.

    Parameters
    ----------
    mode : {"distance", "connectivity"}, default "distance"
        What the graph's entries are: distances, or ones. As in scikit-learn, "distance" lists one neighbour more
        than ``n_neighbors``, since a fitted row finds itself.
    n_neighbors : int, default 5
        Neighbours of a row, the row itself not counted.
    algorithm : {"auto", "exact", "approximate"}, default "auto"
        "auto" compares every pair where that is the faster way.
    metric : str or callable, default "euclidean"
        A metric of :class:`vicinal.UMAP`; "precomputed" if ``X`` holds distances.
    p : float, default 2
        Power of metric="minkowski".
    metric_params : dict, optional
        Keywords of the metric.
    random_state : int, RandomState or None, default 0
        Seed of the approximate search.
    n_jobs : int, optional
        Threads; None and -1 use all. The result has the same bits for any number.
    memory_limit : int or str, optional
        As in :class:`vicinal.UMAP`.

    Attributes
    ----------
    n_samples_fit_ : int
    effective_metric_ : str or callable
    effective_metric_params_ : dict
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "mode": [StrOptions({"distance", "connectivity"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"auto", "exact", "approximate"})],
        "metric": [StrOptions({*METRICS, *ALIASES, PRECOMPUTED}), callable, tuple],
        "p": [Interval(Real, 0, None, closed="neither"), float],
        "metric_params": [dict, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
        "memory_limit": [ByteSize(), None],
    }

    def __init__(
        self,
        *,
        mode: str = "distance",
        n_neighbors: int = 5,
        algorithm: str = "auto",
        metric: Any = "euclidean",
        p: float = 2,
        metric_params: dict[str, Any] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_limit: float | str | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.metric = metric
        self.p = p
        self.metric_params = metric_params
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit

    @property
    def _n_features_out(self) -> int:
        return int(self.n_samples_fit_)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """A name for every fitted row."""
        self._check_is_fitted("n_samples_fit_")
        return np.asarray([f"kneighborstransformer{i}" for i in range(self.n_samples_fit_)], dtype=object)

    def _add_memory(self, ledger: Ledger, table: Table) -> None:
        k = min(max(self.n_neighbors + 1, SEARCH_NEIGHBORS), table.n)
        add_search(ledger, table, k, metric=self.metric, approximate=self.algorithm == "approximate")
        add_graph(ledger, table.n, k)

    def fit(self, X: Any, y: Any = None) -> KNeighborsTransformer:
        """Makes the rows of ``X`` searchable."""
        self._validate_params()
        self.effective_metric_ = self.metric
        self.effective_metric_params_ = self._keywords()
        rows = self._check_data(X, reset=True)
        self.n_samples_fit_ = int(rows.shape[0])
        self._source = self._source_of(rows, self._seed(self.random_state))
        self._table = self._search(max(self.n_neighbors + 1, SEARCH_NEIGHBORS))
        self._search_graph = fuzzy_graph(self._table, n_jobs=self._jobs())
        return self

    def transform(self, X: Any) -> csr_matrix:
        """The graph [rows of X, fitted rows], rows sorted by distance."""
        self._check_is_fitted("n_samples_fit_")
        return self._graph(self._query(X, self._listed()), self.mode)

    def fit_transform(self, X: Any, y: Any = None) -> csr_matrix:
        """The graph of the fitted rows; every row lists itself first."""
        self.fit(X, y)
        k = self._listed()
        self._check_count(k)
        return self._graph(Neighbors(self._table.index[:, :k], self._table.distance[:, :k]), self.mode)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Distances and indices of the nearest fitted rows; without ``X``, of the fitted rows among the others."""
        self._check_is_fitted("n_samples_fit_")
        k = self.n_neighbors if n_neighbors is None else int(n_neighbors)
        if k < 1:
            raise ValueError(f"n_neighbors must be at least 1, got {k}")
        if X is None:
            self._check_count(k + 1)
            table = self._table if k < self._table.k else self._search(k + 1)
            index, distance = table.index[:, 1 : k + 1], table.distance[:, 1 : k + 1]
        else:
            table = self._query(X, k)
            index, distance = table.index, table.distance
        return (distance, index.astype(np.int64)) if return_distance else index.astype(np.int64)

    def kneighbors_graph(self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity") -> csr_matrix:
        """The neighbours that ``kneighbors`` finds, as a sparse graph of ones or distances."""
        if mode not in ("connectivity", "distance"):
            raise ValueError(f"mode must be 'connectivity' or 'distance', got {mode!r}")
        distance, index = self.kneighbors(X, n_neighbors)
        return self._graph(Neighbors(index, distance), mode)

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if "_table" in state:
            n, index = state["_source"].n, state["_table"].index
            if self.n_samples_fit_ != n or len(index) != n or not -1 <= index.min() <= index.max() < n:
                raise ValueError("the table of neighbours leads to rows that are not there")

    def _keywords(self) -> dict[str, Any]:
        power = {"p": self.p} if isinstance(self.metric, str) and self.metric in ("minkowski", "wminkowski") else {}
        return power | dict(self.metric_params or {})

    def _metric_keywords(self) -> dict[str, Any] | None:
        """What a matrix of distances has no use for is passed over, as in scikit-learn."""
        return None if self.metric == PRECOMPUTED else self.effective_metric_params_

    def _listed(self) -> int:
        return self.n_neighbors + (self.mode == "distance")

    def _check_count(self, k: int) -> None:
        if k > self.n_samples_fit_:
            raise ValueError(f"n_neighbors is too large: {k} rows are needed, n_samples_fit = {self.n_samples_fit_}")

    def _search(self, k: int) -> Neighbors:
        return self._source.neighbors(min(k, self.n_samples_fit_), self.algorithm)  # type: ignore[arg-type]

    def _query(self, X: Any, k: int) -> Neighbors:
        rows = self._check_data(X, reset=False)
        self._check_count(k)
        return self._source.query(rows, k, self._search_graph)

    def _graph(self, table: Neighbors, mode: str) -> csr_matrix:
        from scipy.sparse import csr_matrix

        there = table.index >= 0  # a sparse matrix of distances may know fewer neighbours than were asked for
        weights = table.distance if mode == "distance" else np.ones_like(table.distance)
        indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        return csr_matrix((weights[there], table.index[there], indptr), shape=(table.n, self.n_samples_fit_))
