"""All measures of a map in one report."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vicinal.backends import Place, backend_of, resolve_place, say_fallback
from vicinal.quality.measures import (
    CORRELATION_ROWS,
    SAMPLE_ROWS,
    VOTERS,
    Space,
    check_labels,
    check_neighbors,
    correlate_distances,
    data_and_map,
    missing_labels,
    ranked_neighbors,
    sampled_rows,
    vote_accuracy,
)

# Rank of the wide recall, which asks whether true neighbors are at least in the same part of the map.
WIDE = 100


@dataclass(frozen=True)
class QualityReport:
    """The measures of one map. A measure is None if the data do not allow it; ``notes`` say why."""

    n_rows: int
    n_sampled: int
    n_neighbors: int
    within: int
    trustworthiness: float | None = None
    continuity: float | None = None
    neighbor_recall: float | None = None
    neighbor_recall_within: float | None = None
    distance_correlation: float | None = None
    knn_accuracy: float | None = None
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return numbers, strings and lists only, ready for JSON."""
        return {**asdict(self), "notes": list(self.notes)}

    def measures(self) -> dict[str, float | None]:
        """Return readable names and values, in the order of a table."""
        k = self.n_neighbors
        return {
            f"trustworthiness (k={k})": self.trustworthiness,
            f"continuity (k={k})": self.continuity,
            f"neighbor recall @{k}": self.neighbor_recall,
            f"true {k} within {self.within}": self.neighbor_recall_within,
            "distance correlation": self.distance_correlation,
            "kNN accuracy of labels": self.knn_accuracy,
        }

    def __str__(self) -> str:
        sampled = "" if self.n_sampled == self.n_rows else f", measured on {self.n_sampled:,} of them"
        lines = [f"quality of a map of {self.n_rows:,} rows{sampled}"]
        for name, value in self.measures().items():
            lines.append(f"  {name:<26}{'-' if value is None else f'{value:.4f}':>8}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


def report(
    X: ArrayLike,
    embedding: ArrayLike,
    labels: ArrayLike | None = None,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = SAMPLE_ROWS,
    seed: int = 0,
    device: str | None = None,
) -> QualityReport:
    """Compute all measures of a map.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The data, or all distances if the metric is "precomputed".
    embedding : array of shape (n_rows, n_components)
        The map.
    labels : array of shape (n_rows,), optional
        Labels for the accuracy of nearest neighbors; None and NaN count as missing.
    n_neighbors : int, default 15
        Number of neighbors. Small data are measured with fewer; the notes then say so.
    metric : str, default "euclidean"
        Distance of the data.
    sample : int, default 2000
        Number of rows to measure; None measures all.
    seed : int, default 0
        Seed of the sample.
    device : {None, "cpu", "cuda", "cuda:N"}, default None
        Where distances are computed and ranked; None means where X lives. A GPU has the metrics "euclidean",
        "sqeuclidean", "cosine" and "correlation" for rows that fit into it; otherwise the report is made on the CPU,
        and the log says so. Both compute in float64: ranks, and so the measures, differ only if two distances are
        equal up to rounding.

    Returns
    -------
    report : QualityReport
    """
    check_neighbors(n_neighbors)
    data, flat = data_and_map(X, embedding, metric, _place(X, metric, n_neighbors, device))
    n, rows = flat.n, sampled_rows(flat.n, sample, seed)
    most = (n - 1) // 2  # trustworthiness is defined for k < n / 2
    if most < 1:
        return QualityReport(n, len(rows), 0, 0, notes=(f"too few rows ({n}) to measure",))
    k, within = min(n_neighbors, most), max(n_neighbors, WIDE)
    notes = []
    if k < n_neighbors:
        notes.append(f"n_neighbors reduced from {n_neighbors} to {k}: there are only {n} rows")
    if within > most:
        within = most
        notes.append(f"the wide recall looks within {within} rows: there are only {n}")
    ranked = ranked_neighbors(data, flat, rows, k)
    correlated = sampled_rows(n, max(3, min(len(rows), CORRELATION_ROWS)), seed)
    correlation = correlate_distances(data, flat, correlated)
    if math.isnan(correlation):
        notes.append("no distance correlation: the distances are all equal in the data or in the map")
    accuracy = None
    if labels is not None:
        accuracy, note = _labeled_accuracy(flat, labels, sample, seed)
        notes += [note] if note else []
    return QualityReport(
        n_rows=n,
        n_sampled=len(rows),
        n_neighbors=k,
        within=within,
        trustworthiness=ranked.trustworthiness(),
        continuity=ranked.continuity(),
        neighbor_recall=ranked.recall(k),
        neighbor_recall_within=ranked.recall(within),
        distance_correlation=None if math.isnan(correlation) else correlation,
        knn_accuracy=accuracy,
        notes=tuple(notes),
    )


def _place(X: Any, metric: str, k: int, device: str | None) -> Place:
    """Return the device that computes the report, or None for the CPU."""
    place, shape = resolve_place(device, X), np.shape(X)
    if len(shape) != 2:
        return None
    backend = backend_of(place)
    if not backend.has_distances(metric) or not backend.can_search("euclidean", k):
        say_fallback("the quality report", f"a GPU has none for metric={metric!r} and n_neighbors={k}")
        return None
    if not backend.holds_rows(*shape):
        say_fallback("the quality report", f"{shape[0]} rows of {shape[1]} columns do not fit into {place.name}")
        return None
    return place


def _labeled_accuracy(flat: Space, labels: ArrayLike, sample: int | None, seed: int) -> tuple[float | None, str]:
    """Return the accuracy over the rows with a label, with as many voters as possible, and a note about both."""
    classes = check_labels(labels, flat.n)
    known = np.flatnonzero(~missing_labels(classes))
    voters = min(VOTERS, len(known) - 1)
    if voters < 1:
        return None, "no kNN accuracy: fewer than two rows have a label"
    labeled = flat if len(known) == flat.n else flat.take(known)
    accuracy = vote_accuracy(labeled, classes[known], sampled_rows(len(known), sample, seed), voters)
    notes = []
    if len(known) < flat.n:
        notes.append(f"kNN accuracy is over the {len(known)} rows that have a label")
    if voters < VOTERS:
        notes.append(f"kNN accuracy has {voters} instead of {VOTERS} voters")
    return accuracy, "; ".join(notes)
