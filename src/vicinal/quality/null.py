"""What a map of data without structure keeps, and which rows keep more than that.

Shuffling every column on its own leaves the distribution of each column and destroys what the columns have in common.
A map of such rows keeps some neighbors by chance: its scores are the null distribution that the scores of the real map
are compared with (Xia, Lee and Li 2024, scDEED). With m null scores,

    p_i = (1 + #{null >= score_i}) / (1 + m)        the chance that data without structure reach the score

and the same with <= for the other side. A row is *trustworthy* if its score is higher than the null's and *dubious* if
it is lower, each with the false discovery rate of Benjamini and Hochberg at ``rate``; other rows are *undecided*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows

Floats = NDArray[np.float64]

TRUSTWORTHY, UNDECIDED, DUBIOUS = "trustworthy", "undecided", "dubious"
LABELS = (TRUSTWORTHY, UNDECIDED, DUBIOUS)
# Share of false calls that is accepted among the rows called trustworthy, and among those called dubious.
FALSE_DISCOVERY_RATE = 0.05


@dataclass(frozen=True)
class Significance:
    """Rows compared with a null: p-values, p-values adjusted for the number of rows, and labels."""

    p_value: Floats
    q_value: Floats
    label: NDArray[np.str_]

    @staticmethod
    def unknown(n: int) -> Significance:
        """Return what is known without a null: no p-values, and no row is decided."""
        return Significance(
            np.full(n, np.nan), np.full(n, np.nan), np.full(n, UNDECIDED, dtype=f"<U{max(map(len, LABELS))}")
        )


def compare_with_null(score: Floats, null: Floats, rate: float = FALSE_DISCOVERY_RATE) -> Significance:
    """Label rows by their scores and those of a null map; rows whose score is NaN are undecided."""
    known = np.isfinite(score)
    null = np.sort(null[np.isfinite(null)])
    found = Significance.unknown(len(score))
    if not known.any() or not len(null):
        return found
    own = score[known]
    above = len(null) - np.searchsorted(null, own, side="left")
    below = np.searchsorted(null, own, side="right")
    p_above: Floats = np.divide(1.0 + above, 1.0 + len(null))
    p_below: Floats = np.divide(1.0 + below, 1.0 + len(null))
    q_above, q_below = adjusted(p_above), adjusted(p_below)
    label = np.where(q_above <= rate, TRUSTWORTHY, np.where(q_below <= rate, DUBIOUS, UNDECIDED))
    found.p_value[known], found.q_value[known], found.label[known] = p_above, q_above, label
    return found


def adjusted(p_value: Floats) -> Floats:
    """Return the smallest false discovery rate at which each row is called (Benjamini and Hochberg 1995)."""
    order = np.argsort(p_value, kind="stable")[::-1]
    rank = np.arange(len(p_value), 0, -1)
    scaled = np.minimum.accumulate(p_value[order] * len(p_value) / rank)
    out = np.empty_like(p_value)
    out[order] = np.minimum(scaled, 1.0)
    return out


def shuffled_data(data: TrainingData, seed: int) -> TrainingData | None:
    """Return data of the same size without structure, or None if there are no columns or pairs to shuffle.

    Rows have every column shuffled on its own; of a full matrix of distances the pairs are shuffled.
    """
    rng = np.random.default_rng(seed)
    if isinstance(data, TrainingRows):
        rows = _shuffled_sparse(data.rows, rng) if is_sparse(data.rows) else rng.permuted(data.rows, axis=0)
        return replace(data, rows=rows, given=None)
    if isinstance(data, TrainingDistances) and not is_sparse(data.rows):
        matrix = np.zeros_like(data.rows)
        upper = np.triu_indices(data.n, k=1)
        matrix[upper] = rng.permutation(data.rows[upper])
        return TrainingDistances(matrix + matrix.T, data.n_jobs)
    return None


def _shuffled_sparse(rows: Rows, rng: np.random.Generator) -> Rows:
    """Give the stored entries of each column to other rows, drawn without replacement."""
    columns = rows.tocsc(copy=True)
    for begin, end in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
        if end > begin:
            columns.indices[begin:end] = np.sort(rng.choice(rows.shape[0], size=end - begin, replace=False))
            columns.data[begin:end] = rng.permutation(columns.data[begin:end])
    shuffled = columns.tocsr()
    shuffled.sort_indices()
    return shuffled
