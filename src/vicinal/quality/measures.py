"""How faithful a map is to its data, measured by the order of distances.

Let r_X(i, j) be the rank of row j among the rows nearest to row i in the data (the nearest has rank 1, i itself has no
rank), r_Y(i, j) the same in the map, N_X(i) and N_Y(i) the k rows of lowest rank, and m the number of measured rows i:

    trustworthiness = 1 - 2 / (m k (2n - 3k - 1)) * sum_i sum_{j in N_Y(i)} max(0, r_X(i, j) - k)
    continuity      = 1 - 2 / (m k (2n - 3k - 1)) * sum_i sum_{j in N_X(i)} max(0, r_Y(i, j) - k)
    neighbor recall = 1 / (m k) * #{(i, j) : j in N_X(i), r_Y(i, j) <= within}

(Venna and Kaski 2001; with m = n the first equals scikit-learn's.) Equal distances are ranked by index, so that
identical rows at one place of the map count as preserved.

With ``sample``, m rows are drawn without replacement and each is compared with all n rows: the ranks are exact, only
the mean over i is an estimate. Memory is bounded for any n, and the data are not copied as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import Place, backend_of, is_on_gpu
from vicinal.neighbors.rows import PlacedRows, as_placed_rows, check_placed_rows
from vicinal.runtime.inputs import as_array

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]
# Distances where they are computed: float64 in host memory or on a device.
Table = Any

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
        Where the points are; a device has the metrics of its ``has_distances``.
    """

    def __init__(self, points: Any, metric: str, place: Place = None) -> None:
        self.place = place
        self.work = backend_of(place)
        self.xp: Any = self.work.xp
        self.n, width = (int(size) for size in points.shape)
        self.points = points
        self.metric = metric
        self.product = metric in PRODUCT_METRICS
        self.direct = width <= DIRECT_WIDTH
        self.block_values = int(self.work.table_values())
        self.chunk = max(1, self.block_values // width)
        self.scale = 1.0
        with self.work.active():
            self.center = self.xp.zeros(width)
            self.norm = self.xp.zeros(self.n)
            if self.product:
                self._condition()

    def take(self, rows: Indices) -> Space:
        """Return the space of some of the points."""
        with self.work.active():
            return Space(self._taken(self.points, rows), self.metric, self.place)

    def _condition(self) -> None:
        """Choose the center and scale that keep |x|^2 + |y|^2 - 2 x.y free of overflow and cancellation.

        Both are exact in binary: the scale is a power of two, and the center is the mean rounded to a power of two
        near the column's deviation. Integer data therefore keep exact distances, and equal distances stay equal.
        """
        xp = self.xp
        largest = max(abs(float(self.points.max())), abs(float(self.points.min())))
        # The reciprocal of this power of two is finite even for the smallest and largest numbers.
        self.scale = float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))
        chunks = [np.arange(a, min(a + self.chunk, self.n)) for a in range(0, self.n, self.chunk)]
        mean, mean_square = xp.zeros_like(self.center), xp.zeros_like(self.center)
        for part in map(self._conditioned, chunks):
            mean += part.sum(axis=0) / self.n
            mean_square += xp.einsum("ij,ij->j", part, part) / self.n
        variance = xp.maximum(mean_square - mean**2, 0.0)
        grid = xp.ldexp(xp.ones_like(mean), xp.frexp(xp.sqrt(variance))[1])
        self.center = xp.where(variance > 0, xp.rint(mean / grid) * grid, mean)
        for chunk in chunks:
            part = self._conditioned(chunk)
            self.norm[int(chunk[0]) : int(chunk[-1]) + 1] = xp.einsum("ij,ij->i", part, part)

    def _taken(self, values: Any, rows: Indices) -> Any:
        """Return some rows of an array; consecutive rows as a view, without gathering a copy first."""
        if rows[-1] - rows[0] == len(rows) - 1:
            return values[int(rows[0]) : int(rows[-1]) + 1]
        return values[self.xp.asarray(rows)]

    def _conditioned(self, rows: Indices) -> Any:
        """Return some points in float64, scaled and centered."""
        conditioned = self.xp.multiply(self._taken(self.points, rows), self.scale, dtype=np.float64)
        conditioned -= self.center
        return conditioned

    def distances(self, rows: Indices, others: Indices | None = None) -> Table:
        """Return the distances from ``rows`` to ``others``, where the points are.

        The default of ``others`` is all points; a row is then infinitely far from itself.
        """
        xp, to_all = self.xp, others is None
        others = np.arange(self.n) if others is None else others
        with self.work.active():
            if self.metric == "precomputed":
                table = self.points[np.ix_(rows, others)].astype(np.float64)
            else:
                table = xp.empty((len(rows), len(others)))
                heads = self._conditioned(rows)
                chunk = self.chunk if self.product else _chunk(self.chunk, int(heads.size))
                for a in range(0, len(others), chunk):
                    part = others[a : a + chunk]
                    table[:, a : a + chunk] = self._between(heads, rows, part)
            if to_all:
                table[xp.arange(len(rows)), xp.asarray(rows)] = np.inf
            return table

    def on_host(self, table: Table) -> Floats:
        """Return a table of distances in host memory."""
        host: Floats = self.work.to_numpy(table)
        return host

    def _between(self, heads: Any, rows: Indices, part: Indices) -> Table:
        tails = self._conditioned(part)
        if self.product and self.direct:
            return self.work.squared_distances(heads, tails)
        if self.product:
            total = self._taken(self.norm, rows)[:, None] + self._taken(self.norm, part)[None, :]
            d2 = total - 2.0 * (heads @ tails.T)
            # Distances within rounding of zero belong to duplicates, which must tie with each other.
            rounding = 4.0 * math.sqrt(heads.shape[1]) * np.finfo(np.float64).eps
            d2[d2 <= rounding * total] = 0.0
            return d2
        distance = self.work.pairwise_distances(heads, tails, self.metric)
        if self.metric in ONE_MINUS_METRICS:
            # A zero row has no direction: its distance to all others is 1.
            distance = self.xp.nan_to_num(distance, nan=1.0)
            distance[distance < LEAST_ANGLE] = 0.0
        return distance


def _chunk(most: int, values: int) -> int:
    """Return the number of points that are compared in one call with this many values per head."""
    return max(1, min(most, CALL_VALUES // max(1, values)))


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
        return PlacedRows(check_matrix(name, values)).on(place).array("rows")
    placed = as_placed_rows(values, name=name)
    if 0 in placed.shape:
        raise ValueError(f"{name} must be two-dimensional and not empty, got shape {placed.shape}")
    check_placed_rows(placed, name=name)
    return placed.on(place).array("rows")


def check_matrix(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return ``values`` as a two-dimensional array of finite numbers, or raise ValueError."""
    array = as_array(values, name)
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


def blocks(rows: Indices, width: int, values: int) -> Iterator[Indices]:
    """Divide ``rows`` so that a table of ``width`` columns has at most ``values`` per block."""
    size = max(1, values // width)
    for a in range(0, len(rows), size):
        yield rows[a : a + size]


@dataclass(frozen=True)
class RankedNeighbors:
    """Ranks of the k nearest rows of each measured row.

    ``true_in_map`` holds the ranks in the map of the nearest rows in the data, ``map_in_data`` the ranks in the data
    of the nearest rows in the map. ``n`` is the number of all rows.
    """

    n: int
    true_in_map: Indices
    map_in_data: Indices

    def trustworthiness(self) -> float:
        return float(self._scores(self.map_in_data, axis=None))

    def continuity(self) -> float:
        return float(self._scores(self.true_in_map, axis=None))

    def recall(self, within: int) -> float:
        """Return the share of the true neighbors whose rank in the map is at most ``within``."""
        return float((self.true_in_map <= within).mean())

    def local(self) -> Floats:
        """Return the smaller of trustworthiness and continuity for each row."""
        return np.minimum(*(self._scores(ranks, axis=1) for ranks in (self.map_in_data, self.true_in_map)))

    def _scores(self, ranks: Indices, axis: int | None) -> Floats:
        m, k = ranks.shape if axis is None else (1, ranks.shape[1])
        excess = np.maximum(ranks - k, 0).sum(axis=axis)
        return np.asarray(1.0 - excess * (2.0 / (m * k * (2.0 * self.n - 3.0 * k - 1.0))))


def ranked_neighbors(data: Space, flat: Space, rows: Indices, k: int) -> RankedNeighbors:
    """Rank the k nearest rows of ``rows`` against all rows, in the data and in the map, where these are."""
    true_in_map, map_in_data, work = [], [], flat.work
    for block in blocks(rows, flat.n, flat.block_values):
        high, low = data.distances(block), flat.distances(block)
        true_in_map.append(work.ranks_of(low, work.nearest_columns(high, k)))
        map_in_data.append(work.ranks_of(high, work.nearest_columns(low, k)))
        del high, low  # before the next ones are made
    return RankedNeighbors(flat.n, np.concatenate(true_in_map), np.concatenate(map_in_data))


SAMPLE_ROWS = 2000
# The number of pairs is the square of the number of rows: 1,000 rows have half a million.
CORRELATION_ROWS = 1000
VOTERS = 10


def _ranked(X: ArrayLike, embedding: ArrayLike, metric: str, k: int, sample: int | None, seed: int) -> RankedNeighbors:
    """Check the arguments of a measure, and rank the k nearest rows of the sampled ones."""
    data, flat = data_and_map(X, embedding, metric)
    check_neighbors(k, flat.n, half=True)
    return ranked_neighbors(data, flat, sampled_rows(flat.n, sample, seed), k)


def trustworthiness(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Measure whether neighbors in the map are neighbors in the data.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The data, or all distances if the metric is "precomputed".
    embedding : array of shape (n_rows, n_components)
        The map.
    n_neighbors : int, default 15
        Number of neighbors k, less than half of the rows.
    metric : str, default "euclidean"
        Distance of the data, as in :func:`sklearn.metrics.pairwise_distances`.
    sample : int, optional
        Number of rows to measure; all by default.
    seed : int, default 0
        Seed of the sample.

    Returns
    -------
    score : float
        1 for a perfect map, about 0.5 for a random one.
    """
    return _ranked(X, embedding, metric, n_neighbors, sample, seed).trustworthiness()


def continuity(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Measure whether neighbors in the data are neighbors in the map.

    Parameters are those of :func:`trustworthiness`.

    Returns
    -------
    score : float
        1 for a perfect map, about 0.5 for a random one.
    """
    return _ranked(X, embedding, metric, n_neighbors, sample, seed).continuity()


def neighbor_recall(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    within: int | None = None,
    metric: str = "euclidean",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Measure the share of the nearest rows in the data that are near in the map.

    Parameters
    ----------
    n_neighbors : int, default 15
        Number of nearest rows in the data, less than the number of rows.
    within : int, optional
        Number of nearest rows in the map among which they are counted; ``n_neighbors`` by default.
    X, embedding, metric, sample, seed
        As in :func:`trustworthiness`.

    Returns
    -------
    recall : float
        A share in [0, 1].
    """
    data, flat = data_and_map(X, embedding, metric)
    check_neighbors(n_neighbors, flat.n)
    within = n_neighbors if within is None else within
    check_neighbors(within, flat.n, name="within")
    return ranked_neighbors(data, flat, sampled_rows(flat.n, sample, seed), n_neighbors).recall(within)


def local_scores(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = SAMPLE_ROWS,
    seed: int = 0,
) -> Floats:
    """Measure each row by the smaller of its own trustworthiness and continuity.

    Parameters are those of :func:`trustworthiness`, with a sample of 2,000 rows by default.

    Returns
    -------
    scores : array of shape (n_rows,)
        NaN for rows that are not in the sample.
    """
    ranked = _ranked(X, embedding, metric, n_neighbors, sample, seed)
    scores = np.full(ranked.n, np.nan)
    scores[sampled_rows(ranked.n, sample, seed)] = ranked.local()
    return scores


def knn_accuracy(
    embedding: ArrayLike,
    labels: ArrayLike,
    *,
    n_neighbors: int = VOTERS,
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Measure how often the majority of the nearest rows in the map has the label of the row.

    Parameters
    ----------
    embedding : array of shape (n_rows, n_components)
        The map.
    labels : array of shape (n_rows,)
        One label per row; none may be missing.
    n_neighbors : int, default 10
        Number of voters; the row itself does not vote. A tie is decided by the nearest of the tied voters.
    sample, seed
        As in :func:`trustworthiness`.

    Returns
    -------
    accuracy : float
        A share in [0, 1].
    """
    flat = Space(check_matrix("embedding", embedding), "euclidean")
    classes = check_labels(labels, flat.n)
    if missing_labels(classes).any():
        first = int(np.flatnonzero(missing_labels(classes))[0])
        raise ValueError(f"labels must all be known; row {first} has none")
    check_neighbors(n_neighbors, flat.n)
    return vote_accuracy(flat, classes, sampled_rows(flat.n, sample, seed), n_neighbors)


def vote_accuracy(flat: Space, classes: NDArray[Any], rows: Indices, n_neighbors: int) -> float:
    """Return how often the majority of the nearest rows has the label of the row; all labels are known."""
    codes = np.unique(classes, return_inverse=True)[1]
    correct = 0
    for block in blocks(rows, flat.n, flat.block_values):
        votes = codes[flat.work.nearest_columns(flat.distances(block), n_neighbors)]
        # count[i, a] is the number of voters that agree with votes[i, a]. argmax takes the first of a tie, the nearest.
        count = np.stack([(votes == votes[:, [a]]).sum(axis=1) for a in range(n_neighbors)], axis=1)
        winner = votes[np.arange(len(block)), count.argmax(axis=1)]
        correct += int((winner == codes[block]).sum())
    return correct / len(rows)


def distance_correlation(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    metric: str = "euclidean",
    sample: int = CORRELATION_ROWS,
    seed: int = 0,
) -> float:
    """Measure the Spearman correlation of distances in the data with distances in the map.

    Parameters
    ----------
    sample : int, default 1000
        Number of rows, at least 3; all pairs of them are compared.
    X, embedding, metric, seed
        As in :func:`trustworthiness`.

    Returns
    -------
    correlation : float
        NaN if all distances of one side are equal, since equal distances have no order.
    """
    data, flat = data_and_map(X, embedding, metric)
    if min(flat.n, sample) < 3:
        raise ValueError(f"X and sample must have at least 3 rows, got {flat.n} and {sample}")
    return correlate_distances(data, flat, sampled_rows(flat.n, sample, seed))


def correlate_distances(data: Space, flat: Space, rows: Indices) -> float:
    """Return the Spearman correlation of the distances between ``rows``, NaN if those of one space are all equal."""
    from scipy.stats import spearmanr

    upper, parts = np.triu_indices(len(rows), k=1), list(blocks(rows, len(rows), flat.block_values))
    high, low = (
        np.concatenate([space.on_host(space.distances(block, rows)) for block in parts])[upper]
        for space in (data, flat)
    )
    if np.ptp(high) == 0 or np.ptp(low) == 0:
        return math.nan
    return float(spearmanr(high, low).statistic)


def missing_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of the labels that are missing: None or NaN."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind == "O":
        return np.array([label is None or label != label for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


def check_labels(labels: ArrayLike, n: int) -> NDArray[Any]:
    """Return ``labels`` as an array with one entry per row, or raise ValueError."""
    array = as_array(labels, "labels", text=True)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"labels must be one-dimensional with {n} entries, got shape {array.shape}")
    return array


def check_neighbors(k: int, n: float = math.inf, *, half: bool = False, name: str = "n_neighbors") -> None:
    """Raise ValueError unless k is a positive integer below n, or below n / 2 if ``half`` is set."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"{name} must be a positive integer, got {k!r}")
    if k >= (n / 2 if half else n):
        raise ValueError(f"{name} must be less than n{' / 2' if half else ''}, got {k} for n = {n}")
