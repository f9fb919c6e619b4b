"""Rows as the core compares them: transformed for their metric, and scaled if float32 would overflow or underflow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.metrics import FittedMetric, Rows, is_sparse
from vicinal.neighbors.rows import scan_rows

# If the largest magnitude lies outside [SMALLEST_SAFE, LARGEST_SAFE], squares of float32 numbers overflow or underflow,
# and the data is multiplied by a power of two. Rows of a query are clipped at FARTHEST.
LARGEST_SAFE, SMALLEST_SAFE, FARTHEST = 1e15, 1e-12, 1e17


@dataclass(frozen=True)
class Preparation:
    """A metric, and the power of two by which its rows are multiplied."""

    metric: FittedMetric
    scale: float = 1.0
    n_jobs: int = -1

    @classmethod
    def of(
        cls, metric: FittedMetric, X: Rows, n_jobs: int = -1, largest: float | None = None
    ) -> tuple[Preparation, Rows]:
        """Choose the scale for X. Return the preparation and the prepared rows.

        ``largest`` is the largest magnitude in X if it is known; otherwise, and if the metric transforms the rows, they
        are scanned.
        """
        prepared = metric.prepare(X)
        scale = _safe_scale(metric, prepared, n_jobs, largest if prepared is X else None)
        preparation = cls(metric, scale, n_jobs)
        return preparation, prepared if scale == 1.0 else preparation._scale_rows(prepared)

    def rows(self, X: Rows, largest: float | None = None) -> Rows:
        """Prepare further rows; ``largest`` is their largest magnitude if it is known."""
        prepared = self.metric.prepare(X)
        if self.metric.facts.degree is None:
            return prepared
        if self.scale == 1.0:
            if largest is None or prepared is not X:
                largest, _ = scan_rows(prepared, self.n_jobs, allow_nan=True)
            if largest <= FARTHEST:
                return prepared
        return self._scale_rows(prepared)

    def likeness(self, prepared: Rows) -> NDArray[np.float32]:
        """Return dense rows to sketch: their euclidean distances show which rows are likely neighbors."""
        return np.ascontiguousarray(self.metric.likeness(prepared), dtype=np.float32)

    def distances(self, index: NDArray[np.int32], distance: NDArray[np.float32]) -> NDArray[np.float32]:
        """Convert distances of scaled rows to distances of the rows as they were given."""
        degree = self.metric.facts.degree
        if self.scale == 1.0 or not degree:
            return distance
        largest = np.finfo(np.float32).max
        unscaled = distance.astype(np.float64) / self.scale**degree
        return np.where(index < 0, np.inf, np.minimum(unscaled, largest)).astype(np.float32)

    def _scale_rows(self, prepared: Rows) -> Rows:
        values = prepared.data if is_sparse(prepared) else prepared
        scaled = np.clip(values.astype(np.float64) * self.scale, -FARTHEST, FARTHEST)
        if not is_sparse(prepared):
            return np.ascontiguousarray(scaled, dtype=np.float32)
        rows = prepared.copy()
        rows.data = scaled.astype(np.float32)
        return rows


def is_safe(largest: float | None) -> bool:
    """Tell whether rows of this largest magnitude are compared as they are."""
    return largest is not None and (largest == 0.0 or SMALLEST_SAFE <= largest <= LARGEST_SAFE)


def _safe_scale(metric: FittedMetric, X: Rows, n_jobs: int, largest: float | None) -> float:
    if metric.facts.degree is None:
        return 1.0
    if largest is None:
        largest, _ = scan_rows(X, n_jobs, allow_nan=True)
    if is_safe(largest):
        return 1.0
    return float(2.0 ** -np.floor(np.log2(float(largest))))
