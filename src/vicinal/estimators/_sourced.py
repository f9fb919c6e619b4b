"""Estimators that compare rows by a metric: what they accept, and the source of neighbours made from it."""

from __future__ import annotations

from typing import Any

from vicinal.estimators._base import Embedding
from vicinal.metrics import PRECOMPUTED, Rows, allows_nan, check_metric, is_sparse
from vicinal.source import DistanceSource, RowSource, Source


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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.metric == PRECOMPUTED
        tags.input_tags.allow_nan = allows_nan(self.metric)
        return tags
