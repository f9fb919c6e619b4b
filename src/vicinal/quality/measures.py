"""How faithful a map is to its data, measured on the order of distances.

Let r_X(i, j) be the rank of j among the rows nearest to i in the data (the nearest has rank 1, i itself
none), r_Y(i, j) the same in the map, N_X(i) and N_Y(i) the k rows of lowest rank, m the number of rows i:

    trustworthiness = 1 - 2 / (m k (2n - 3k - 1)) * sum_i sum_{j in N_Y(i)} max(0, r_X(i, j) - k)
    continuity      = 1 - 2 / (m k (2n - 3k - 1)) * sum_i sum_{j in N_X(i)} max(0, r_Y(i, j) - k)
    neighbor recall = 1 / (m k) * #{(i, j) : j in N_X(i), r_Y(i, j) <= within}

(Venna and Kaski 2001; with m = n the first equals scikit-learn's.) Rows at equal distance are ranked by
index, so a result never depends on a sorting routine, and identical rows drawn onto one spot are well kept.

With `sample`, m rows are drawn without replacement and each is compared with all n rows: its ranks are exact,
only the mean over i is estimated. BLOCK_VALUES bounds the memory for any n; the data are not copied whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.runtime.interruption import imported
from vicinal.runtime.sharing import blas

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# Distances held at a time, per space: 8 M float64 = 64 MiB.
BLOCK_VALUES = 1 << 23
# Up to this width differences are squared directly: as fast as a matrix product, without its cancellation.
DIRECT_WIDTH = 8
# Columns of pairs that are compared in one call where that is no matrix product: a fraction of a second.
CALL_VALUES = 1 << 27
SAMPLE_ROWS = 2000
# Pairs grow with the square of the rows: 1,000 rows are already half a million.
CORRELATION_ROWS = 1000
VOTERS = 10
# The wide recall of a report asks whether true neighbours are at least in the same part of the map.
WIDE = 100

_PRODUCT_METRICS = ("euclidean", "sqeuclidean")
_ONE_MINUS_METRICS = ("cosine", "correlation")


def trustworthiness(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Whether neighbours in the map are neighbours in the data: 1 is perfect, random is about 0.5."""
    data, flat = _pair(X, embedding, metric)
    _check_neighbors(n_neighbors, flat.n, half=True)
    return _ranked_neighbors(data, flat, _rows(flat.n, sample, seed), n_neighbors).trustworthiness()


def continuity(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """Whether neighbours in the data are neighbours in the map: 1 is perfect, random is about 0.5."""
    data, flat = _pair(X, embedding, metric)
    _check_neighbors(n_neighbors, flat.n, half=True)
    return _ranked_neighbors(data, flat, _rows(flat.n, sample, seed), n_neighbors).continuity()


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
    """The fraction of the true `n_neighbors` among the `within` (default: as many) nearest in the map."""
    data, flat = _pair(X, embedding, metric)
    _check_neighbors(n_neighbors, flat.n)
    within = n_neighbors if within is None else within
    _check_neighbors(within, flat.n, name="within")
    return _ranked_neighbors(data, flat, _rows(flat.n, sample, seed), n_neighbors).recall(within)


def local_scores(
    X: ArrayLike,
    embedding: ArrayLike,
    *,
    n_neighbors: int = 15,
    metric: str = "euclidean",
    sample: int | None = SAMPLE_ROWS,
    seed: int = 0,
) -> Floats:
    """For each row the smaller of its own trustworthiness and continuity; NaN for rows that were not sampled."""
    data, flat = _pair(X, embedding, metric)
    _check_neighbors(n_neighbors, flat.n, half=True)
    rows = _rows(flat.n, sample, seed)
    scores = np.full(flat.n, np.nan)
    scores[rows] = _ranked_neighbors(data, flat, rows, n_neighbors).local()
    return scores


def knn_accuracy(
    embedding: ArrayLike,
    labels: ArrayLike,
    *,
    n_neighbors: int = VOTERS,
    sample: int | None = None,
    seed: int = 0,
) -> float:
    """How often the majority of a row's nearest rows in the map, itself excluded, has the row's label.

    A tied vote goes to the tied label that has the nearest member.
    """
    flat = _Space(_matrix("embedding", embedding), "euclidean")
    classes = _label_array(labels, flat.n)
    if missing_labels(classes).any():
        first = int(np.flatnonzero(missing_labels(classes))[0])
        raise ValueError(f"labels must all be known; row {first} has none")
    _check_neighbors(n_neighbors, flat.n)
    codes = np.unique(classes, return_inverse=True)[1]
    rows = _rows(flat.n, sample, seed)
    correct = 0
    for block in _blocks(rows, flat.n):
        votes = codes[_nearest(flat.distances(block), n_neighbors)]
        # votes[i, a] is shared by count[i, a] voters; argmax takes the first of a tie: the nearest voter
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
    """Spearman correlation of distances in the data with those in the map, over all pairs of `sample` rows.

    NaN where all the distances of one side are equal, since a constant has no ranks.
    """
    data, flat = _pair(X, embedding, metric)
    if min(flat.n, sample) < 3:
        raise ValueError(f"X and sample must have at least 3 rows, got {flat.n} and {sample}")
    return _correlation(data, flat, _rows(flat.n, sample, seed))


@dataclass(frozen=True)
class QualityReport:
    """The measures of one map. A measure is None where the data do not allow it; `notes` say why."""

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
        """Plain numbers, strings and lists, ready for JSON."""
        return {**asdict(self), "notes": list(self.notes)}

    def measures(self) -> dict[str, float | None]:
        """Readable names and values, in the order of a table."""
        k = self.n_neighbors
        return {
            f"trustworthiness (k={k})": self.trustworthiness,
            f"continuity (k={k})": self.continuity,
            f"neighbour recall @{k}": self.neighbor_recall,
            f"true {k} within {self.within}": self.neighbor_recall_within,
            "distance correlation": self.distance_correlation,
            "kNN accuracy of labels": self.knn_accuracy,
        }

    def __str__(self) -> str:
        sampled = "" if self.n_sampled == self.n_rows else f", measured on {self.n_sampled:,} of them"
        lines = [f"quality of a map of {self.n_rows:,} rows{sampled}"]
        lines += [f"  {name:<26}{_decimal(value):>8}" for name, value in self.measures().items()]
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
) -> QualityReport:
    """Every measure at once. Data too small for `n_neighbors` are measured with fewer; the notes say so."""
    data, flat = _pair(X, embedding, metric)
    _check_neighbors(n_neighbors)
    n, rows = flat.n, _rows(flat.n, sample, seed)
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
    ranked = _ranked_neighbors(data, flat, rows, k)
    paired = _rows(n, max(3, min(len(rows), CORRELATION_ROWS)), seed)
    correlation = _correlation(data, flat, paired)
    if math.isnan(correlation):
        notes.append("no distance correlation: the distances are all equal in the data or in the map")
    accuracy = None
    if labels is not None:
        accuracy, note = _known_accuracy(flat.points, labels, sample, seed)
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


def missing_labels(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Where a label is absent: None or NaN."""
    if labels.dtype.kind == "f":
        return np.asarray(np.isnan(labels))
    if labels.dtype.kind == "O":
        return np.array([label is None or label != label for label in labels], dtype=bool)
    return np.zeros(len(labels), dtype=bool)


class _Space:
    """Points and their distances; squared for euclidean, since only their order is ever used."""

    def __init__(self, points: NDArray[Any], metric: str) -> None:
        self.n, width = points.shape
        self.points = points
        self.metric = metric
        self.product = metric in _PRODUCT_METRICS
        self.direct = width <= DIRECT_WIDTH
        self.chunk = max(1, BLOCK_VALUES // width)
        self.shrink = 1.0
        self.centre: Floats = np.zeros(width)
        self.norm: Floats = np.zeros(self.n)
        if self.product:
            self._condition()

    def _condition(self) -> None:
        """Choose the centre and scale that keep |x|^2 + |y|^2 - 2 x.y free of overflow and cancellation.

        Both are exact in binary: the scale is a power of two, the centre the mean rounded to a power of two
        near the column's deviation, so that integer data keep exact distances and equal ones stay equal.
        """
        largest = max(abs(float(self.points.max())), abs(float(self.points.min())))
        # a power of two whose reciprocal is finite even for the smallest and largest of numbers
        self.shrink = float(np.ldexp(1.0, -int(np.clip(np.frexp(largest)[1], -1000, 1000))))
        chunks = [np.arange(a, min(a + self.chunk, self.n)) for a in range(0, self.n, self.chunk)]
        mean, mean_square = np.zeros_like(self.centre), np.zeros_like(self.centre)
        for taken in map(self._taken, chunks):
            mean += taken.sum(axis=0) / self.n
            mean_square += np.einsum("ij,ij->j", taken, taken) / self.n
        variance = np.maximum(mean_square - mean**2, 0.0)
        grid = np.ldexp(1.0, np.frexp(np.sqrt(variance))[1])
        self.centre = np.where(variance > 0, np.round(mean / grid) * grid, mean)
        for chunk in chunks:
            taken = self._taken(chunk)
            self.norm[chunk] = np.einsum("ij,ij->i", taken, taken)

    def _taken(self, rows: Indices) -> Floats:
        # a run of consecutive rows is converted from a view, without first gathering a copy
        together = rows[-1] - rows[0] == len(rows) - 1
        part = self.points[rows[0] : rows[-1] + 1] if together else self.points[rows]
        taken: Floats = np.multiply(part, self.shrink, dtype=np.float64)
        taken -= self.centre
        return taken

    def distances(self, rows: Indices, others: Indices | None = None) -> Floats:
        """Rows against others. Against all points, the default, a row is infinitely far from itself."""
        everything = others is None
        others = np.arange(self.n) if others is None else others
        if self.metric == "precomputed":
            table = self.points[np.ix_(rows, others)].astype(np.float64)
        else:
            table = np.empty((len(rows), len(others)))
            heads = self._taken(rows)
            chunk = self.chunk if self.product else max(1, min(self.chunk, CALL_VALUES // max(1, heads.size)))
            for a in range(0, len(others), chunk):
                part = others[a : a + chunk]
                table[:, a : a + chunk] = self._between(heads, rows, part)
        if everything:
            table[np.arange(len(rows)), rows] = np.inf
        return table

    def _between(self, heads: Floats, rows: Indices, part: Indices) -> Floats:
        tails = self._taken(part)
        if self.product and self.direct:
            return np.asarray(imported("scipy.spatial.distance").cdist(heads, tails, "sqeuclidean"))
        if self.product:
            total = self.norm[rows][:, None] + self.norm[part][None, :]
            with blas():
                d2 = total - 2.0 * (heads @ tails.T)
            # What is within rounding of zero is a duplicate: it must tie with the other duplicates.
            rounding = 4.0 * math.sqrt(heads.shape[1]) * np.finfo(np.float64).eps
            d2[d2 <= rounding * total] = 0.0
            return d2
        distance: Floats = imported("sklearn.metrics").pairwise_distances(heads, tails, metric=self.metric)
        if self.metric in _ONE_MINUS_METRICS:
            # 1 - cos carries the rounding of 1; a row without a direction is at distance 1 from all others
            distance = np.nan_to_num(distance, nan=1.0)
            distance[distance < 1e-14] = 0.0
        return distance


@dataclass(frozen=True)
class _RankedNeighbors:
    """For each measured row: the ranks its k true neighbours have in the map, and the reverse."""

    n: int
    true_in_map: Indices
    map_in_data: Indices

    def trustworthiness(self) -> float:
        return self._rank_score(self.map_in_data)

    def continuity(self) -> float:
        return self._rank_score(self.true_in_map)

    def recall(self, within: int) -> float:
        return float((self.true_in_map <= within).mean())

    def local(self) -> Floats:
        """The smaller of both scores, row by row."""
        return np.minimum(*(self._scores(ranks, axis=1) for ranks in (self.map_in_data, self.true_in_map)))

    def _rank_score(self, ranks: Indices) -> float:
        return float(self._scores(ranks, axis=None))

    def _scores(self, ranks: Indices, axis: int | None) -> Floats:
        m, k = ranks.shape if axis is None else (1, ranks.shape[1])
        excess = np.maximum(ranks - k, 0).sum(axis=axis)
        return np.asarray(1.0 - excess * (2.0 / (m * k * (2.0 * self.n - 3.0 * k - 1.0))))


def _ranked_neighbors(data: _Space, flat: _Space, rows: Indices, k: int) -> _RankedNeighbors:
    true_in_map, map_in_data = [], []
    for block in _blocks(rows, flat.n):
        high, low = data.distances(block), flat.distances(block)
        true_in_map.append(_ranks(low, _nearest(high, k)))
        map_in_data.append(_ranks(high, _nearest(low, k)))
    return _RankedNeighbors(flat.n, np.concatenate(true_in_map), np.concatenate(map_in_data))


def _correlation(data: _Space, flat: _Space, rows: Indices) -> float:
    upper = np.triu_indices(len(rows), k=1)
    high, low = (
        np.concatenate([space.distances(block, rows) for block in _blocks(rows, len(rows))])[upper]
        for space in (data, flat)
    )
    if np.ptp(high) == 0 or np.ptp(low) == 0:
        return math.nan
    return float(imported("scipy.stats").spearmanr(high, low).statistic)


def _nearest(distance: Floats, k: int) -> Indices:
    """The k lowest columns of each row, in the order of (distance, index)."""
    furthest = np.partition(distance, k - 1, axis=1)[:, k - 1]
    nearest = np.empty((len(distance), k), dtype=np.int64)
    for row, limit, out in zip(distance, furthest, nearest, strict=True):
        candidates = np.flatnonzero(row <= limit)
        out[:] = candidates[np.argsort(row[candidates], kind="stable")[:k]]
    return nearest


def _ranks(distance: Floats, columns: Indices) -> Indices:
    """The rank, by (distance, index) and from 1, of the given columns in each row.

    Counting what comes before a handful of columns is several times cheaper than sorting a whole row.
    """
    ranks = np.empty_like(columns)
    for row, wanted, out in zip(distance, columns, ranks, strict=True):
        for a, (j, value) in enumerate(zip(wanted, row[wanted], strict=True)):
            out[a] = np.count_nonzero(row < value) + np.count_nonzero(row[: j + 1] == value)
    return ranks


def _rows(n: int, sample: int | None, seed: int) -> Indices:
    if sample is not None and (not isinstance(sample, (int, np.integer)) or sample < 1):
        raise ValueError(f"sample must be a positive number of rows or None, got {sample!r}")
    if sample is None or sample >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, size=sample, replace=False))


def _blocks(rows: Indices, width: int) -> Iterator[Indices]:
    size = max(1, BLOCK_VALUES // width)
    for a in range(0, len(rows), size):
        yield rows[a : a + size]


def _pair(X: ArrayLike, embedding: ArrayLike, metric: str) -> tuple[_Space, _Space]:
    data, flat = _matrix("X", X), _matrix("embedding", embedding)
    if len(data) != len(flat):
        raise ValueError(f"embedding must have one row for each of the {len(data)} rows of X, got {len(flat)}")
    if metric == "precomputed" and data.shape[0] != data.shape[1]:
        raise ValueError(f"X must be square for metric='precomputed', got shape {data.shape}")
    return _Space(data, metric), _Space(flat, "euclidean")


def _matrix(name: str, values: ArrayLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be an array of real numbers, got dtype {array.dtype}")
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{name} must be two-dimensional and not empty, got shape {array.shape}")
    # a finite sum has finite terms, so most data need no table of booleans; the reverse fails on overflow
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum(dtype=np.float64)
    if not np.isfinite(total):
        bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
        if len(bad):
            raise ValueError(f"{name} must be finite; row {bad[0]} holds NaN or infinity")
    return array


def _label_array(labels: ArrayLike, n: int) -> NDArray[Any]:
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"labels must be one-dimensional with {n} entries, got shape {array.shape}")
    return array


def _check_neighbors(k: int, n: float = math.inf, *, half: bool = False, name: str = "n_neighbors") -> None:
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"{name} must be a positive integer, got {k!r}")
    if k >= (n / 2 if half else n):
        raise ValueError(f"{name} must be less than n{' / 2' if half else ''}, got {k} for n = {n}")


def _known_accuracy(
    embedding: NDArray[Any], labels: ArrayLike, sample: int | None, seed: int
) -> tuple[float | None, str]:
    """The accuracy over the labelled rows, with as many voters as there can be, and a note on both."""
    classes = _label_array(labels, len(embedding))
    known = ~missing_labels(classes)
    voters = min(VOTERS, int(known.sum()) - 1)
    if voters < 1:
        return None, "no kNN accuracy: fewer than two rows have a label"
    accuracy = knn_accuracy(embedding[known], classes[known], n_neighbors=voters, sample=sample, seed=seed)
    notes = []
    if not known.all():
        notes.append(f"kNN accuracy is over the {known.sum()} rows that have a label")
    if voters < VOTERS:
        notes.append(f"kNN accuracy has {voters} instead of {VOTERS} voters")
    return accuracy, "; ".join(notes)


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
