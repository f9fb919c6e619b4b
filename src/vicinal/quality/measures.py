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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.quality.ranks import placed_nearest, ranked_neighbors
from vicinal.quality.spaces import Floats, Indices, Space, blocks, check_matrix, data_and_map, sampled_rows

SAMPLE_ROWS = 2000
# The number of pairs is the square of the number of rows: 1,000 rows have half a million.
CORRELATION_ROWS = 1000
VOTERS = 10


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
    data, flat = data_and_map(X, embedding, metric)
    check_neighbors(n_neighbors, flat.n, half=True)
    return ranked_neighbors(data, flat, sampled_rows(flat.n, sample, seed), n_neighbors).trustworthiness()


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
    data, flat = data_and_map(X, embedding, metric)
    check_neighbors(n_neighbors, flat.n, half=True)
    return ranked_neighbors(data, flat, sampled_rows(flat.n, sample, seed), n_neighbors).continuity()


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
    data, flat = data_and_map(X, embedding, metric)
    check_neighbors(n_neighbors, flat.n, half=True)
    rows = sampled_rows(flat.n, sample, seed)
    scores = np.full(flat.n, np.nan)
    scores[rows] = ranked_neighbors(data, flat, rows, n_neighbors).local()
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
        votes = codes[placed_nearest(flat.distances(block), n_neighbors, flat.place)]
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

    upper = np.triu_indices(len(rows), k=1)
    high, low = (
        np.concatenate([space.on_host(space.distances(block, rows)) for block in blocks(rows, len(rows))])[upper]
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
    array = np.asarray(labels)
    if array.ndim != 1 or len(array) != n:
        raise ValueError(f"labels must be one-dimensional with {n} entries, got shape {array.shape}")
    return array


def check_neighbors(k: int, n: float = math.inf, *, half: bool = False, name: str = "n_neighbors") -> None:
    """Raise ValueError unless k is a positive integer below n, or below n / 2 if ``half`` is set."""
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ValueError(f"{name} must be a positive integer, got {k!r}")
    if k >= (n / 2 if half else n):
        raise ValueError(f"{name} must be less than n{' / 2' if half else ''}, got {k} for n = {n}")
