"""Estimators that compare rows by a metric: what they accept, and the source of neighbours made from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from vicinal.estimators._base import Embedding
from vicinal.graph.graph import Graph
from vicinal.neighbors.metrics import PRECOMPUTED, Rows, allows_nan, check_metric, is_sparse
from vicinal.neighbors.training_data import DistanceSource, RowSource, Source


class Sourced(Embedding):
    """Has the parameters ``metric`` and, unless it says otherwise, ``metric_kwds``."""

    metric: Any
    metric_kwds: dict[str, Any] | None

    def _metric_keywords(self) -> dict[str, Any] | None:
        return self.metric_kwds

    def _check_data(self, X: Any, *, reset: bool) -> Rows:
        """Rows or, with ``metric="precomputed"``, distances, dense or sparse; checked against the metric."""
        known, pairwise = allows_nan(self.metric), self.metric == PRECOMPUTED
        rows = self._check_rows(X, reset=reset, sparse=True, allow_nan=known, check_finite=not pairwise)
        check_metric(self.metric, self._metric_keywords(), rows.shape[1], is_sparse(rows))
        return rows

    def _source_of(self, rows: Rows, seed: int) -> Source:
        """Rows with what compares them; whatever cannot be compared is refused here."""
        if self.metric == PRECOMPUTED:
            return DistanceSource(rows, self._jobs())
        source = RowSource(rows, self.metric, self._metric_keywords(), seed, self._jobs())
        _ = source.index  # made now, since making it checks the rows against the metric
        return source

    def _restore(self, state: dict[str, Any]) -> None:
        """A fitted model has a source, graphs of its rows, and a place for each of them."""
        super()._restore(state)
        if not state.keys() & {"embedding_", "graph_", "n_samples_fit_"}:
            return
        source = state["_source"]
        everything = state.get("_everything", source)
        if not all(isinstance(one, RowSource | DistanceSource) for one in (source, everything)):
            raise TypeError(f"the rows of a model are a source, not a {type(source).__name__}")
        for name, value in state.items():
            if isinstance(value, Graph) and not value.n == value.n_tails == source.n:
                raise ValueError(f"{name} is not a graph of the {source.n} rows")
        places = state.get("embedding_")
        if places is not None and (places.dtype != np.float32 or places.shape[:-1] != (everything.n,)):
            raise ValueError(f"embedding_ has no places for the {everything.n} rows")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        tags.input_tags.allow_nan = allows_nan(self.metric)
        return tags
