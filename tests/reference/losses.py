"""Theory and analysis of the survey's costs: local metrics (eq. 16), cross-entropy (eq. 17), losses (eq. 23-29)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reference.umap import (
    EPS,
    Floats,
    attract_coefficient,
    attract_cost,
    repel_coefficient,
    repel_cost,
    squared_distances,
    x_log_x,
)

Indicators = NDArray[np.bool_]


def local_distances(distance: ArrayLike, row: int, rho: float) -> Floats:
    """Return d_i(x_j, x_l) of eq. 16 as a dense matrix over j and l, from the matrix of distances.

    Errata: d_i(x_i, x_i) and any d_i(x_j, x_j) are 0, not -rho. Distances below rho, which duplicates have, count as 0.
    """
    d = np.asarray(distance, dtype=np.float64)
    local = np.full(d.shape, np.inf)
    local[row, :] = np.maximum(d[row, :] - rho, 0.0)
    local[:, row] = np.maximum(d[:, row] - rho, 0.0)
    np.fill_diagonal(local, 0.0)
    return local


def fuzzy_cross_entropy(mu1: ArrayLike, mu2: ArrayLike) -> float:
    """Return eq. 17 over all elements of the carrier set, with 0 ln 0 = 0."""
    p, q = np.asarray(mu1, dtype=np.float64), np.asarray(mu2, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        yes = np.where(p > 0.0, x_log_x(p) - p * np.log(q), 0.0)
        no = np.where(p < 1.0, x_log_x(1.0 - p) - (1.0 - p) * np.log(1.0 - q), 0.0)
    return float((yes + no).sum())


def off_diagonal(matrix: ArrayLike) -> Floats:
    values = np.asarray(matrix, dtype=np.float64)
    return values[~np.eye(len(values), dtype=bool)]


def largevis_cost(p: ArrayLike, embedding: ArrayLike, gamma: float) -> float:
    """Return c5 of eq. 23 with q of eq. 21; gamma is the survey's lambda."""
    q = 1.0 / (1.0 + off_diagonal(squared_distances(embedding)))
    return float(-(off_diagonal(p) * np.log(q) + gamma * np.log1p(-q)).sum())


def pair_vectors(coefficient: Floats, embedding: ArrayLike) -> Floats:
    """Return coefficient_ij (y_i - y_j) for all i and j."""
    y = np.asarray(embedding, dtype=np.float64)
    vectors: Floats = coefficient[:, :, None] * (y[:, None, :] - y[None, :, :])
    return vectors


def attract_gradients(embedding: ArrayLike, a: float, b: float) -> Floats:
    """Return dc^a_ij/dy_i for all i and j (eq. 12)."""
    return pair_vectors(attract_coefficient(squared_distances(embedding), a, b), embedding)


def repel_gradients(embedding: ArrayLike, a: float, b: float, eps: float = EPS) -> Floats:
    """Return dc^r_ij/dy_i for all i and j (eq. 13)."""
    return pair_vectors(repel_coefficient(squared_distances(embedding), a, b, eps), embedding)


def epoch_gradient(
    embedding: ArrayLike,
    fired: Indicators,
    drawn: Indicators,
    a: float,
    b: float,
    update_negatives: bool = False,
    eps: float = EPS,
) -> Floats:
    """Return the gradient of one epoch: eq. 24, or eq. 27 if negatives move too.

    `fired[i, j]` and `drawn[i, j, l]` are the survey's indicators: the pair (i, j) is selected, and l is among the
    negatives of that pair. They need not be symmetric.
    """
    attract = attract_gradients(embedding, a, b)
    repel = repel_gradients(embedding, a, b, eps)
    n = len(repel)
    gradient = np.zeros((n, repel.shape[2]))
    for i in range(n):
        for j in range(n):
            # c_ji = c_ij as a function of both places, so both have the same derivative by y_i.
            gradient[i] += fired[i, j] * attract[i, j] + fired[j, i] * attract[i, j]
            for other in range(n):
                gradient[i] += fired[i, j] * drawn[i, j, other] * repel[i, other]
                if update_negatives:
                    # Row i is a negative of the pair (j, other).
                    gradient[i] += fired[j, other] * drawn[j, other, i] * repel[i, j]
    return gradient


def epoch_cost(embedding: ArrayLike, fired: Indicators, drawn: Indicators, a: float, b: float) -> float:
    """Return eq. 28, the cost of one epoch, whose gradient is eq. 27.

    A row is not a negative of itself, since that cost is infinite.
    """
    d2 = squared_distances(embedding)
    total = 0.0
    for i in range(len(d2)):
        for j in range(len(d2)):
            if i == j or not fired[i, j]:
                continue
            total += float(attract_cost(d2[i, j], a, b))
            total += sum(float(repel_cost(d2[i, other], a, b)) for other in np.flatnonzero(drawn[i, j]) if other != i)
    return total


def expected_gradient(
    p: ArrayLike, embedding: ArrayLike, a: float, b: float, negatives: int, eps: float = EPS
) -> Floats:
    """Return eq. 25, the mean of eq. 24 over epochs."""
    member = np.asarray(p, dtype=np.float64)
    weight = member.sum(axis=1)[:, None] * negatives / (2.0 * len(member))
    attract, repel = attract_gradients(embedding, a, b), repel_gradients(embedding, a, b, eps)
    return 2.0 * np.asarray((member[:, :, None] * attract + weight[:, :, None] * repel).sum(axis=1))


def stated_gradient(p: ArrayLike, embedding: ArrayLike, a: float, b: float, eps: float = EPS) -> Floats:
    """Return eq. 26, the gradient of c2."""
    member = np.asarray(p, dtype=np.float64)[:, :, None]
    attract, repel = attract_gradients(embedding, a, b), repel_gradients(embedding, a, b, eps)
    return 2.0 * np.asarray((member * attract + (1.0 - member) * repel).sum(axis=1))


def effective_loss(p: ArrayLike, embedding: ArrayLike, a: float, b: float, negatives: int) -> float:
    """Return eq. 29, the mean of eq. 28 over epochs, as a sum over unordered pairs."""
    member = np.asarray(p, dtype=np.float64)
    degree = member.sum(axis=1)
    d2 = squared_distances(embedding)
    first, second = np.triu_indices(len(member), k=1)
    weight = (degree[first] + degree[second]) * negatives / (2.0 * len(member))
    cost = member[first, second] * attract_cost(d2[first, second], a, b)
    return float(2.0 * (cost + weight * repel_cost(d2[first, second], a, b)).sum())


def resting_loss(p: ArrayLike, embedding: ArrayLike, a: float, b: float, negatives: int) -> float:
    """Return J: eq. 29 with half the repulsion, since of a pair that repels only the row that drew the other moves."""
    member, d2 = np.asarray(p, dtype=np.float64), squared_distances(embedding)
    total = 0.0
    for i, degree in enumerate(member.sum(axis=1)):
        others = np.arange(len(member)) != i
        total += float((member[i, others] * attract_cost(d2[i, others], a, b)).sum())
        total += 0.5 * degree * negatives / len(member) * float(repel_cost(d2[i, others], a, b).sum())
    return total


def effective_gradient(
    p: ArrayLike, embedding: ArrayLike, a: float, b: float, negatives: int, eps: float = EPS
) -> Floats:
    """Return the mean of eq. 27 over epochs, which is the gradient of eq. 29."""
    member = np.asarray(p, dtype=np.float64)
    degree = member.sum(axis=1)
    weight = (degree[:, None] + degree[None, :]) * negatives / (2.0 * len(member))
    attract, repel = attract_gradients(embedding, a, b), repel_gradients(embedding, a, b, eps)
    return 2.0 * np.asarray((member[:, :, None] * attract + weight[:, :, None] * repel).sum(axis=1))
