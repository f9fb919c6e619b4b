"""Rows that share nothing: the largest distance of a metric.

All such rows are equally far away, so that taking some of them as neighbors would be arbitrary.
"""

from __future__ import annotations

from typing import Any

from vicinal.neighbors.metrics import METRICS, PRECOMPUTED, Rows, canonical_metric, is_sparse


def is_bounded(metric: Any) -> bool:
    """Tell whether a metric has a largest distance, at least for rows without negative numbers."""
    if not isinstance(metric, str) or metric == PRECOMPUTED:
        return False
    facts = METRICS[canonical_metric(metric)]
    return facts.unrelated is not None or facts.unrelated_non_negative is not None


def unrelated_distance(metric: Any, rows: Rows | None) -> float | None:
    """Return the distance from which on rows share nothing, None if the metric has none.

    ``rows`` is None if not all of them are known yet: they may have negative numbers.
    """
    if not is_bounded(metric):
        return None
    facts = METRICS[canonical_metric(metric)]
    largest = facts.unrelated
    if facts.unrelated_non_negative is not None and rows is not None:
        values = rows.data if is_sparse(rows) else rows
        if not values.size or values.min() >= 0.0:
            largest = facts.unrelated_non_negative
    return largest
