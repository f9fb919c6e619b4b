"""Distances between the rows of data or of a map, block by block, so that memory is bounded for any number of rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import backend_of, is_on_gpu
from vicinal.neighbors.rows import as_placed_rows, check_placed_rows
from vicinal.runtime.residence import Place, working_on

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
# Distances where they are computed: float64 in host memory or on a device.
Table = Any

# Distances held at a time, per space: 8 M float64 = 64 MiB.
BLOCK_VALUES = 1 << 23
# Up to this width differences are squared directly: as fast as a matrix product, without its cancellation.
DIRECT_WIDTH = 8
# Coordinate pairs that are compared in one call if the metric is not a matrix product: a fraction of a second, so that
# an interrupt is answered soon.
CALL_VALUES = 1 << 27

PRODUCT_METRICS = ("euclidean", "sqeuclidean")
ONE_MINUS_METRICS = ("cosine", "correlation")
# Distances below this are the rounding of 1 - cos.
LEAST_ANGLE = 1e-14


class Space:
    """Points and the distances between them.

    Euclidean distances are squared, since only their order is used.

    Parameters
    ----------
    points : array of shape (n, width)
        Coordinates, or all distances if the metric is "precomputed". The array is not copied.
    metric : str
        Any metric of :func:`sklearn.metrics.pairwise_distances`, or "precomputed".
    place : device, optional
        Where the points are; a device has the metrics of `computes_on_device`.
    """

    def __init__(self, points: Any, metric: str, place: Place = None) -> None:
        self.place = place
        self.xp: Any = np if place is None else place.xp
        self.n, width = (int(size) for size in points.shape)
        self.points = points
        self.metric = metric
        self.product = metric in PRODUCT_METRICS
        self.direct = width <= DIRECT_WIDTH
        self.block_values = BLOCK_VALUES if place is None else int(backend_of(place).table_values())
        self.chunk = max(1, self.block_values // width)
        self.scale = 1.0
        with working_on(place):
            self.centre = self.xp.zeros(width)
            self.norm = self.xp.zeros(self.n)
            if self.product:
                self._condition()

    def take(self, rows: Indices) -> Space:
        """Return the space of some of the points."""
        with working_on(self.place):
            return Space(self._taken(self.points, rows), self.metric, self.place)

    def _condition(self) -> None:
        """Choose the centre and scale that keep |x|^2 + |y|^2 - 2 x.y free of overflow and cancellation.

        Both are exact in binary: the scale is a power of two, and the centre is the mean rounded to a power of two
        near the column's deviation. Integer data therefore keep exact distances, and equal distances stay equal.
        """
        xp = self.xp
        largest = max(abs(float(self.points.max())), abs(float(self.points.min())))
        # The reciprocal of this power of two is finite even for the smallest and largest numbers.
        self.scale = float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))
        chunks = [np.arange(a, min(a + self.chunk, self.n)) for a in range(0, self.n, self.chunk)]
        mean, mean_square = xp.zeros_like(self.centre), xp.zeros_like(self.centre)
        for part in map(self._conditioned, chunks):
            mean += part.sum(axis=0) / self.n
            mean_square += xp.einsum("ij,ij->j", part, part) / self.n
        variance = xp.maximum(mean_square - mean**2, 0.0)
        grid = xp.ldexp(xp.ones_like(mean), xp.frexp(xp.sqrt(variance))[1])
        self.centre = xp.where(variance > 0, xp.rint(mean / grid) * grid, mean)
        for chunk in chunks:
            part = self._conditioned(chunk)
            self.norm[int(chunk[0]) : int(chunk[-1]) + 1] = xp.einsum("ij,ij->i", part, part)

    def _taken(self, values: Any, rows: Indices) -> Any:
        """Return some rows of an array; consecutive rows as a view, without gathering a copy first."""
        if rows[-1] - rows[0] == len(rows) - 1:
            return values[int(rows[0]) : int(rows[-1]) + 1]
        return values[self.xp.asarray(rows)]

    def _conditioned(self, rows: Indices) -> Any:
        """Return some points in float64, scaled and centred."""
        conditioned = self.xp.multiply(self._taken(self.points, rows), self.scale, dtype=np.float64)
        conditioned -= self.centre
        return conditioned

    def distances(self, rows: Indices, others: Indices | None = None) -> Table:
        """Return the distances from ``rows`` to ``others``, where the points are.

        The default of ``others`` is all points; a row is then infinitely far from itself.
        """
        xp, to_all = self.xp, others is None
        others = np.arange(self.n) if others is None else others
        with working_on(self.place):
            if self.metric == "precomputed":
                table = self.points[np.ix_(rows, others)].astype(np.float64)
            else:
                table = xp.empty((len(rows), len(others)))
                heads = self._conditioned(rows)
                chunk = self.chunk if self.place or self.product else _chunk(self.chunk, int(heads.size))
                for a in range(0, len(others), chunk):
                    part = others[a : a + chunk]
                    table[:, a : a + chunk] = self._between(heads, rows, part)
            if to_all:
                table[xp.arange(len(rows)), xp.asarray(rows)] = np.inf
            return table

    def on_host(self, table: Table) -> Floats:
        """Return a table of distances in host memory."""
        host: Floats = table if self.place is None else self.place.to_numpy(table)
        return host

    def _between(self, heads: Any, rows: Indices, part: Indices) -> Table:
        tails = self._conditioned(part)
        if self.product and self.direct and self.place is None:
            from scipy.spatial.distance import cdist

            return cdist(heads, tails, "sqeuclidean")
        if self.product and self.direct:
            return _squared(self.xp, heads, tails)
        if self.product:
            total = self._taken(self.norm, rows)[:, None] + self._taken(self.norm, part)[None, :]
            d2 = total - 2.0 * (heads @ tails.T)
            # Distances within rounding of zero belong to duplicates, which must tie with each other.
            rounding = 4.0 * math.sqrt(heads.shape[1]) * np.finfo(np.float64).eps
            d2[d2 <= rounding * total] = 0.0
            return d2
        if self.place is not None:
            distance = 1.0 - _directions(self.xp, heads, self.metric) @ _directions(self.xp, tails, self.metric).T
        else:
            from sklearn.metrics import pairwise_distances

            distance = pairwise_distances(heads, tails, metric=self.metric)
        if self.metric in ONE_MINUS_METRICS:
            # A zero row has no direction: its distance to all others is 1.
            distance = self.xp.nan_to_num(distance, nan=1.0)
            distance[distance < LEAST_ANGLE] = 0.0
        return distance


def computes_on_device(metric: str) -> bool:
    """Tell whether a device has the distances of a metric."""
    return metric in PRODUCT_METRICS + ONE_MINUS_METRICS


def _chunk(most: int, values: int) -> int:
    """Return the number of points that are compared in one call with heads of so many values."""
    return max(1, min(most, CALL_VALUES // max(1, values)))


def _squared(xp: Any, heads: Any, tails: Any) -> Table:
    """Return squared distances, added up column by column as SciPy does it."""
    total = xp.zeros((len(heads), len(tails)))
    for column in range(heads.shape[1]):
        apart = heads[:, column, None] - tails[None, :, column]
        apart *= apart
        total += apart
    return total


def _directions(xp: Any, rows: Any, metric: str) -> Any:
    """Return rows of length 1, centred for correlation; rows without direction stay 0."""
    if metric == "correlation":
        rows = rows - rows.mean(axis=1, keepdims=True)
    length = xp.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return rows / xp.where(length > 0, length, 1.0)


def data_and_map(X: ArrayLike, embedding: ArrayLike, metric: str, place: Place = None) -> tuple[Space, Space]:
    """Check the rows of the data and of the map, and return their spaces."""
    data, flat = _placed("X", X, place), _placed("embedding", embedding, place)
    if len(data) != len(flat):
        raise ValueError(f"embedding must have one row for each of the {len(data)} rows of X, got {len(flat)}")
    if metric == "precomputed" and data.shape[0] != data.shape[1]:
        raise ValueError(f"X must be square for metric='precomputed', got shape {data.shape}")
    return Space(data, metric, place), Space(flat, "euclidean", place)


def _placed(name: str, values: Any, place: Place) -> Any:
    """Check points, and return them on a device, or on the host if ``place`` is None."""
    if not is_on_gpu(values):
        points = check_matrix(name, values)
        return points if place is None else place.asarray(points)
    placed = as_placed_rows(values, name=name)
    if 0 in placed.shape:
        raise ValueError(f"{name} must be two-dimensional and not empty, got shape {placed.shape}")
    check_placed_rows(placed, name=name)
    return placed.rows if place is None else placed.on(place).array("rows")


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


def blocks(rows: Indices, width: int, values: int | None = None) -> Iterator[Indices]:
    """Divide ``rows`` so that a table of ``width`` columns has at most ``values``, or BLOCK_VALUES, per block."""
    size = max(1, (BLOCK_VALUES if values is None else values) // width)
    for a in range(0, len(rows), size):
        yield rows[a : a + size]
