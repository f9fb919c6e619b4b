"""Rows as the core compares them: transformed as their metric wants, scaled where float32 would overflow or vanish."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.neighbors.metrics import FittedMetric, Rows, is_sparse
from vicinal.neighbors.rows import scan_rows

# Squares of float32 numbers beyond these overflow or vanish; such data is scaled by a power of two first.
LARGEST_SAFE, SMALLEST_SAFE, FARTHEST = 1e15, 1e-12, 1e17

_RANKED_BY_PAIRS: dict[str, bool] = dict(cpu.metrics())


@dataclass(frozen=True)
class Preparation:
    """A metric, and the power of two that suits the data which it was chosen for."""

    metric: FittedMetric
    scale: float = 1.0
    n_jobs: int = -1

    @classmethod
    def of(
        cls, metric: FittedMetric, X: Rows, n_jobs: int = -1, largest: float | None = None
    ) -> tuple[Preparation, Rows]:
        """The preparation that suits ``X``, and ``X`` prepared; ``largest`` is its largest magnitude, if known."""
        prepared = metric.prepare(X)
        chosen = cls(metric, _safe_scale(metric, prepared, n_jobs, largest), n_jobs)
        # A scale of 1 was chosen because the data is safe as it is: no need to look again.
        return chosen, prepared if chosen.scale == 1.0 else chosen.scaled(prepared)

    @property
    def by_pairs(self) -> bool:
        """Whether ranks are known by evaluation only, not by sketches of the rows."""
        return _RANKED_BY_PAIRS[self.metric.core]

    def rows(self, X: Rows) -> Rows:
        """The rows that the core ranks."""
        return self.scaled(self.metric.prepare(X))

    def likeness(self, prepared: Rows) -> NDArray[np.float32]:
        """Dense rows whose distances tell where neighbours are, or are the distances."""
        return np.ascontiguousarray(self.metric.likeness(prepared), dtype=np.float32)

    def scaled(self, prepared: Rows) -> Rows:
        """The rows themselves where that is safe; they may be far beyond the data the scale was chosen for."""
        if self.metric.facts.degree is None:
            return prepared
        if self.scale == 1.0 and scan_rows(prepared, self.n_jobs, allow_nan=True)[0] <= FARTHEST:
            return prepared
        values = prepared.data if is_sparse(prepared) else prepared
        scaled = np.clip(values.astype(np.float64) * self.scale, -FARTHEST, FARTHEST)
        if not is_sparse(prepared):
            return np.ascontiguousarray(scaled, dtype=np.float32)
        rows = prepared.copy()
        rows.data = scaled.astype(np.float32)
        return rows

    def distances(self, index: NDArray[np.int32], distance: NDArray[np.float32]) -> NDArray[np.float32]:
        """Distances of the data as it was before it was scaled."""
        degree = self.metric.facts.degree
        if self.scale == 1.0 or not degree:
            return distance
        largest = np.finfo(np.float32).max
        unscaled = distance.astype(np.float64) / self.scale**degree
        return np.where(index < 0, np.inf, np.minimum(unscaled, largest)).astype(np.float32)


def _safe_scale(metric: FittedMetric, X: Rows, n_jobs: int, largest: float | None) -> float:
    if metric.facts.degree is None:
        return 1.0
    if largest is None:
        largest, _ = scan_rows(X, n_jobs, allow_nan=True)
    if largest == 0.0 or SMALLEST_SAFE <= largest <= LARGEST_SAFE:
        return 1.0
    return float(2.0 ** -np.floor(np.log2(float(largest))))
