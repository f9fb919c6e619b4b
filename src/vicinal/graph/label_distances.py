"""Distances of labels that are counts or texts, for the intersection of a graph with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TABLED_COUNTS = 32  # smaller counts are summed up, for larger ones the expansion below has an error under 1e-9
ZETA_PRIME = -0.1654211437004509  # the derivative of Riemann's zeta function at -1
BLOCK_CELLS = 1 << 22  # cells of the tables of edit distances that are computed at a time, which bounds the memory


def count_levels(counts: Floats, mean: float | None = None) -> Floats:
    """Return a level for each count m, so that differences of levels are umap-learn's distances of counts.

    The level is the sum over k < m of -log P(k), where P is the Poisson distribution with the mean of the counts: a
    step between rare counts is long. With the mean t it is

        m t - log(t) m (m - 1) / 2 + sum over k < m of log(k!)

    and the last sum is the logarithm of Barnes' G function at m + 1.
    """
    known = np.isfinite(counts)
    if mean is None:
        mean = float(counts[known].mean()) if known.any() else 0.0
    mean = mean if mean > 0 else 1.0
    levels = np.full(len(counts), np.nan)
    m = counts[known]
    levels[known] = m * mean - np.log(mean) * m * (m - 1) / 2 + _log_barnes(m)
    return levels


def _log_barnes(m: Floats) -> Floats:
    """Return log G(m + 1) of whole numbers."""
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, TABLED_COUNTS)))])
    table = np.concatenate([[0.0], np.cumsum(factorials)])
    z = np.maximum(m, TABLED_COUNTS)
    log = np.log(z)
    square = z * z
    large = square * (log / 2 - 0.75) + z * np.log(2 * np.pi) / 2 - log / 12 + ZETA_PRIME - 1 / (240 * square)
    return np.where(m < TABLED_COUNTS, table[np.minimum(m, TABLED_COUNTS).astype(np.int64)], large)


def edit_distances(texts: Sequence[str], first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return the edit (Levenshtein) distances of pairs of texts, which are given by their numbers."""
    length = np.array([len(text) for text in texts], dtype=np.int32)
    width = int(length.max(initial=0))
    letters = np.zeros((len(texts), width), dtype=np.uint32)
    for row, text in zip(letters, texts, strict=True):
        row[: len(text)] = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    found = np.empty(len(first), dtype=np.int32)
    step = max(1, BLOCK_CELLS // (width + 1))
    for begin in range(0, len(first), step):
        block = slice(begin, begin + step)
        one, other = first[block], second[block]
        found[block] = _edits(letters[one], length[one], letters[other], length[other])
    return found


def _edits(
    one: NDArray[np.uint32], one_length: NDArray[np.int32], other: NDArray[np.uint32], other_length: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the edit distances of rows of letters.

    ``row[p, j]`` is the distance of the first i letters of one text of pair p and the first j of the other one.
    Insertions are a running minimum along j.
    """
    place = np.arange(other.shape[1] + 1, dtype=np.int32)
    row = np.repeat(place[None], len(one), axis=0)
    found = other_length.copy()
    pairs = np.arange(len(one))
    for i in range(int(one_length.max(initial=0))):
        reached = row + 1
        np.minimum(reached[:, 1:], row[:, :-1] + (one[:, i, None] != other), out=reached[:, 1:])
        row = np.minimum.accumulate(reached - place, axis=1) + place
        ended = one_length == i + 1
        found[ended] = row[pairs[ended], other_length[ended]]
    return found
