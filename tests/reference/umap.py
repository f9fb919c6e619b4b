"""UMAP of the survey: kernel (eq. 5), costs (eq. 6-11), gradients (eq. 12-15) and the epochs of Algorithm 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import curve_fit

Floats = NDArray[np.float64]

# The survey's example value below eq. 13, and umap-learn's constant.
EPS = 0.001
# umap-learn's bound on each component of a gradient. Algorithm 1 has none (pass np.inf).
CLIP = 4.0


def kernel(d2: ArrayLike, a: float, b: float) -> Floats:
    """Return q of eq. 5 from squared distances."""
    q: Floats = 1.0 / (1.0 + a * np.asarray(d2, dtype=np.float64) ** b)
    return q


def fit_ab(spread: float = 1.0, min_dist: float = 0.1) -> tuple[float, float]:
    """Return a and b of eq. 5, fitted to the curve that is 1 up to `min_dist` and then decays with scale `spread`.

    Erratum: a = 1.929, b = 0.7915, which the survey calls defaults, belong to min_dist = 0.001. The defaults
    spread = 1, min_dist = 0.1 give a = 1.577, b = 0.8951. The 300 points on [0, 3 spread] are umap-learn's.
    """
    x = np.linspace(0.0, 3.0 * spread, 300)
    y = np.where(x < min_dist, 1.0, np.exp(-(x - min_dist) / spread))
    (a, b), _ = curve_fit(lambda t, a, b: 1.0 / (1.0 + a * t ** (2.0 * b)), x, y)
    return float(a), float(b)


def squared_distances(embedding: ArrayLike) -> Floats:
    """Return the squared distances of all pairs."""
    y = np.asarray(embedding, dtype=np.float64)
    d2: Floats = ((y[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)
    return d2


def attract_cost(d2: ArrayLike, a: float, b: float) -> Floats:
    """Return c^a of eq. 8, -ln q, as ln(1 + a d^2b)."""
    return np.log1p(a * np.asarray(d2, dtype=np.float64) ** b)


def repel_cost(d2: ArrayLike, a: float, b: float) -> Floats:
    """Return c^r of eq. 9, -ln(1 - q), as ln(1 + 1/(a d^2b)), since 1 - q rounds to 0 for near pairs."""
    return np.log1p(1.0 / (a * np.asarray(d2, dtype=np.float64) ** b))


def cross_entropy(p: ArrayLike, embedding: ArrayLike, a: float, b: float) -> float:
    """Return c1 of eq. 6, the fuzzy cross-entropy over all ordered pairs i != j, with 0 ln 0 = 0."""
    off = ~np.eye(len(np.asarray(p)), dtype=bool)
    member = np.asarray(p, dtype=np.float64)[off]
    d2 = squared_distances(embedding)[off]
    entropy = x_log_x(member) + x_log_x(1.0 - member)
    return float((entropy + member * attract_cost(d2, a, b) + (1.0 - member) * repel_cost(d2, a, b)).sum())


def x_log_x(x: Floats) -> Floats:
    """Return x ln x, with 0 at x = 0."""
    return np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0)), 0.0)


def reduced_cross_entropy(p: ArrayLike, embedding: ArrayLike, a: float, b: float) -> float:
    """Return c2 of eq. 7 over all ordered pairs i != j, written with c^a and c^r as in eq. 10."""
    off = ~np.eye(len(np.asarray(p)), dtype=bool)
    member = np.asarray(p, dtype=np.float64)[off]
    d2 = squared_distances(embedding)[off]
    return float((member * attract_cost(d2, a, b) + (1.0 - member) * repel_cost(d2, a, b)).sum())


def reduced_cross_entropy_by_pairs(p: ArrayLike, embedding: ArrayLike, a: float, b: float) -> float:
    """Return c2 of eq. 11, twice the sum over unordered pairs, for a symmetric p."""
    upper = np.triu_indices(len(np.asarray(p)), k=1)
    member = np.asarray(p, dtype=np.float64)[upper]
    d2 = squared_distances(embedding)[upper]
    return float(2.0 * (member * attract_cost(d2, a, b) + (1.0 - member) * repel_cost(d2, a, b)).sum())


def attract_coefficient(d2: ArrayLike, a: float, b: float) -> Floats:
    """Return the coefficient of eq. 12: the derivative of c^a by the head is this times (y_i - y_j).

    At distance 0, where d^2(b-1) is infinite for b < 1, it is 0 as in umap-learn.
    """
    squared = np.asarray(d2, dtype=np.float64)
    safe = np.where(squared > 0.0, squared, 1.0)
    coefficient: Floats = 2.0 * a * b * safe ** (b - 1.0) / (1.0 + a * safe**b)
    return np.where(squared > 0.0, coefficient, 0.0)


def repel_coefficient(d2: ArrayLike, a: float, b: float, eps: float = EPS) -> Floats:
    """Return the coefficient of eq. 13, stabilised by eps; with eps = 0 it gives the exact derivative of c^r.

    At distance 0 it is 0, as in umap-learn: coinciding points stay together.
    """
    squared = np.asarray(d2, dtype=np.float64)
    safe = np.where(squared > 0.0, squared, 1.0)
    coefficient: Floats = -2.0 * b / ((eps + safe) * (1.0 + a * safe**b))
    return np.where(squared > 0.0, coefficient, 0.0)


def difference_of(head: ArrayLike, tail: ArrayLike) -> tuple[Floats, Floats]:
    """Return y_i - y_j and its squared length."""
    difference = np.asarray(head, dtype=np.float64) - np.asarray(tail, dtype=np.float64)
    return difference, np.asarray((difference**2).sum())


def attract_gradient(head: ArrayLike, tail: ArrayLike, a: float, b: float) -> Floats:
    """Return eq. 12, the derivative of c^a by the head; that by the tail is its negative."""
    difference, d2 = difference_of(head, tail)
    return attract_coefficient(d2, a, b) * difference


def repel_gradient(head: ArrayLike, tail: ArrayLike, a: float, b: float, eps: float = EPS) -> Floats:
    """Return eq. 13, the derivative of c^r by the head; that by the tail is its negative."""
    difference, d2 = difference_of(head, tail)
    return repel_coefficient(d2, a, b, eps) * difference


def attract_gradient_by_chain_rule(head: ArrayLike, tail: ArrayLike, a: float, b: float) -> Floats:
    """Return eq. 14, (dc^a/dq)(dq/dy), before simplification."""
    difference, d2 = difference_of(head, tail)
    cost_by_q = -1.0 / kernel(d2, a, b)
    q_by_head: Floats = -1.0 / (1.0 + a * d2**b) ** 2 * 2.0 * a * b * difference * d2 ** (b - 1.0)
    return cost_by_q * q_by_head


def repel_gradient_by_chain_rule(head: ArrayLike, tail: ArrayLike, a: float, b: float) -> Floats:
    """Return eq. 15, (dc^r/dq)(dq/dy), before simplification and without eps."""
    difference, d2 = difference_of(head, tail)
    q = kernel(d2, a, b)
    by_head: Floats = -2.0 * a * b * d2 ** (b - 1.0) / ((1.0 - q) * (1.0 + a * d2**b) ** 2) * difference
    return by_head


def fired_pairs(p: ArrayLike, uniforms: ArrayLike) -> list[tuple[int, int]]:
    """Return the pairs that pass `if u <= p_ij` of Algorithm 1, over i, then j; p_ij = 0 never fires."""
    member = np.asarray(p, dtype=np.float64)
    fires = (np.asarray(uniforms) <= member) & (member > 0.0)
    return [(int(i), int(j)) for i, j in np.argwhere(fires)]


def algorithm1_epoch(
    embedding: ArrayLike,
    edges: Sequence[tuple[int, int]],
    negatives: Sequence[Sequence[int]],
    a: float,
    b: float,
    *,
    learning_rate: float = 1.0,
    gamma: float = 1.0,
    update_negatives: bool = False,
    eps: float = EPS,
    clip: float = CLIP,
) -> Floats:
    """Run one epoch of Algorithm 1 over the firing edges in order, each with its negatives l.

    It is sequential: every step starts from the places after the previous step. Head and tail move together along the
    gradient at the places before the step, since the gradient of the tail is the negative of that of the head.
    `update_negatives` is the line that the original UMAP does not have: y_l moves too.
    """
    y = np.array(embedding, dtype=np.float64)
    for (head, tail), drawn in zip(edges, negatives, strict=True):
        step = learning_rate * np.clip(attract_gradient(y[head], y[tail], a, b), -clip, clip)
        y[head] -= step
        y[tail] += step
        for negative in drawn:
            if negative == head:
                continue
            step = learning_rate * np.clip(gamma * repel_gradient(y[head], y[negative], a, b, eps), -clip, clip)
            y[head] -= step
            if update_negatives:
                y[negative] += step
    return y


def row_owned_epoch(
    embedding: ArrayLike,
    edges_by_row: Sequence[Sequence[int]],
    negatives_by_row: Sequence[Sequence[Sequence[int]]],
    a: float,
    b: float,
    gamma: float,
    learning_rate: float,
    pulls: int = 2,
    eps: float = EPS,
    clip: float = CLIP,
    longest_push: float = np.inf,
) -> Floats:
    """Run one epoch of Algorithm 1 as the library does: each row has one writer and reads the others from a snapshot.

    `edges_by_row[i]` lists the tails of the firing edges of row i in order, `negatives_by_row[i][e]` the negatives of
    the e-th of them. For each edge the row makes `pulls` steps towards the snapshot of the tail, each from the place
    after the previous one. The second replaces the pull of the mirrored edge, which in Algorithm 1 moves this row too.
    Then all negatives of the edge are evaluated at the moved place, each is clipped, and their sum is added. A negative
    that is the row itself has no effect, as in Algorithm 1, where y_i - y_i is 0. If it were compared with the
    snapshot, it would push the row by the clipping bound, since the row has just moved a little. No negative moves the
    row by more than `longest_push` along an axis.
    """
    snapshot = np.array(embedding, dtype=np.float64)
    result = snapshot.copy()
    for row, (tails, drawn) in enumerate(zip(edges_by_row, negatives_by_row, strict=True)):
        position = snapshot[row].copy()
        for tail, negatives in zip(tails, drawn, strict=True):
            for _ in range(pulls):
                pull = np.clip(attract_gradient(position, snapshot[tail], a, b), -clip, clip)
                position -= learning_rate * pull
            push = np.zeros_like(position)
            for negative in negatives:
                if negative != row:
                    repel = gamma * repel_gradient(position, snapshot[negative], a, b, eps)
                    bound = min(clip, longest_push / learning_rate)
                    push += np.clip(repel, -bound, bound)
            position -= learning_rate * push
        result[row] = position
    return result


def learning_rate_after(epoch: int, n_epochs: int, initial: float = 1.0) -> float:
    """Return eta after `epoch` epochs, which falls linearly to 0 (last line of Algorithm 1)."""
    return initial * (1.0 - epoch / n_epochs)
