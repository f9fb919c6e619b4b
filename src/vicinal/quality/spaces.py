"""Distances between the rows of data or of a map, block by block, so that memory is bounded for any number of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Distances held at a time, per space: 8 M float64 = 64 MiB.
BLOCK_VALUES = 1 << 23
# Up to this width differences are squared directly: as fast as a matrix product, without its cancellation.
DIRECT_WIDTH = 8
# Coordinate pairs that are compared in one call if the metric is not a matrix product: a fraction of a second, so that
# an interrupt is answered soon.
CALL_VALUES = 1 << 27

PRODUCT_METRICS = ("euclidean", "sqeuclidean")
ONE_MINUS_METRICS = ("cosine", "correlation")


class Space:
    """Points and the distances between them.

    Euclidean distances are squared, since only their order is used.

    Parameters
    ----------
    points : array of shape (n, width)
        Coordinates, or all distances if the metric is "precomputed". The array is not copied.
    metric : str
        Any metric of :func:`sklearn.metrics.pairwise_distances`, or "precomputed".
    """

    def __init__(self, points: NDArray[Any], metric: str) -> None:
        self.n, width = points.shape
        self.points = points
        self.metric = metric
        self.product = metric in PRODUCT_METRICS
        self.direct = width <= DIRECT_WIDTH
        self.chunk = max(1, BLOCK_VALUES // width)
        self.scale = 1.0
        self.centre: Floats = np.zeros(width)
        self.norm: Floats = np.zeros(self.n)
        if self.product:
            self._condition()

    def _condition(self) -> None:
        """Choose the centre and scale that keep |x|^2 + |y|^2 - 2 x.y free of overflow and cancellation.

        Both are exact in binary: the scale is a power of two, and the centre is the mean rounded to a power of two
        near the column's deviation. Integer data therefore keep exact distances, and equal distances stay equal.
        """
        largest = max(abs(float(self.points.max())), abs(float(self.points.min())))
        # The reciprocal of this power of two is finite even for the smallest and largest numbers.
        self.scale = float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))
        chunks = [np.arange(a, min(a + self.chunk, self.n)) for a in range(0, self.n, self.chunk)]
        mean, mean_square = np.zeros_like(self.centre), np.zeros_like(self.centre)
        for part in map(self._conditioned, chunks):
            mean += part.sum(axis=0) / self.n
            mean_square += np.einsum("ij,ij->j", part, part) / self.n
        variance = np.maximum(mean_square - mean**2, 0.0)
        grid = np.ldexp(1.0, np.frexp(np.sqrt(variance))[1])
        self.centre = np.where(variance > 0, np.round(mean / grid) * grid, mean)
        for chunk in chunks:
            part = self._conditioned(chunk)
            self.norm[chunk] = np.einsum("ij,ij->i", part, part)

    def _conditioned(self, rows: Indices) -> Floats:
        """Return some points in float64, scaled and centred."""
        # Consecutive rows are converted from a view, without gathering a copy first.
        consecutive = rows[-1] - rows[0] == len(rows) - 1
        part = self.points[rows[0] : rows[-1] + 1] if consecutive else self.points[rows]
        conditioned: Floats = np.multiply(part, self.scale, dtype=np.float64)
        conditioned -= self.centre
        return conditioned

    def distances(self, rows: Indices, others: Indices | None = None) -> Floats:
        """Return the distances from ``rows`` to ``others``.

        The default of ``others`` is all points; a row is then infinitely far from itself.
        """
        to_all = others is None
        others = np.arange(self.n) if others is None else others
        if self.metric == "precomputed":
            table = self.points[np.ix_(rows, others)].astype(np.float64)
        else:
            table = np.empty((len(rows), len(others)))
            heads = self._conditioned(rows)
            chunk = self.chunk if self.product else max(1, min(self.chunk, CALL_VALUES // max(1, heads.size)))
            for a in range(0, len(others), chunk):
                part = others[a : a + chunk]
                table[:, a : a + chunk] = self._between(heads, rows, part)
        if to_all:
            table[np.arange(len(rows)), rows] = np.inf
        return table

    def _between(self, heads: Floats, rows: Indices, part: Indices) -> Floats:
        tails = self._conditioned(part)
        if self.product and self.direct:
            from scipy.spatial.distance import cdist

            return np.asarray(cdist(heads, tails, "sqeuclidean"))
        if self.product:
            total = self.norm[rows][:, None] + self.norm[part][None, :]
            d2 = total - 2.0 * (heads @ tails.T)
            # Distances within rounding of zero belong to duplicates, which must tie with each other.
            rounding = 4.0 * math.sqrt(heads.shape[1]) * np.finfo(np.float64).eps
            d2[d2 <= rounding * total] = 0.0
            return np.asarray(d2)
        from sklearn.metrics import pairwise_distances

        distance: Floats = pairwise_distances(heads, tails, metric=self.metric)
        if self.metric in ONE_MINUS_METRICS:
            # 1 - cos carries the rounding of 1. A zero row has no direction: its distance to all others is 1.
            distance = np.nan_to_num(distance, nan=1.0)
            distance[distance < 1e-14] = 0.0
        return distance


def data_and_map(X: ArrayLike, embedding: ArrayLike, metric: str) -> tuple[Space, Space]:
    """Check the rows of the data and of the map, and return their spaces."""
    data, flat = check_matrix("X", X), check_matrix("embedding", embedding)
    if len(data) != len(flat):
        raise ValueError(f"embedding must have one row for each of the {len(data)} rows of X, got {len(flat)}")
    if metric == "precomputed" and data.shape[0] != data.shape[1]:
        raise ValueError(f"X must be square for metric='precomputed', got shape {data.shape}")
    return Space(data, metric), Space(flat, "euclidean")


def check_matrix(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return ``values`` as a two-dimensional array of finite numbers, or raise ValueError."""
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be two-dimensional and not empty, got shape {array.shape}")
    # A finite sum has finite terms, so most data need no table of booleans. A sum may overflow for finite terms.
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum(dtype=np.float64)
    if not np.isfinite(total):
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            raise ValueError(f"{name} must be finite; row {bad[0]} holds NaN or infinity")
    return array


def sampled_rows(n: int, sample: int | None, seed: int) -> Indices:
    """Return ``sample`` of ``n`` rows in ascending order, all of them if ``sample`` is None."""
    if sample is not None and (not isinstance(sample, (int, np.integer)) or sample < 1):
        raise ValueError(f"sample must be a positive number of rows or None, got {sample!r}")
    if sample is None or sample >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=sample, replace=False))


def blocks(rows: Indices, width: int) -> Iterator[Indices]:
    """Divide ``rows`` so that a table of ``width`` columns has at most BLOCK_VALUES entries per block."""
    size = max(1, BLOCK_VALUES // width)
    for a in range(0, len(rows), size):
        yield rows[a : a + size]
