"""The survey's UMAP, equations 1 to 15 and Algorithm 1, and its t-SNE, 18 to 20 and 22, in float64 NumPy.

Equations are numbered as the survey's source numbers them: 1 to 4 the input graph, 5 the kernel,
6 to 11 the costs, 12 and 13 the gradients, 14 and 15 the same gradients as the proof derives them,
18 and 19 the entropic graph, 20 and 22 t-SNE's distribution and cost.

This file is the yardstick for the C++ core, so it imports nothing from the package and prefers the
shape of the formula to speed: graphs are dense matrices and loops are loops.
Where the survey is silent (ties, duplicates, clipping) the convention is umap-learn's; the docstrings say so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import curve_fit

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# umap-learn's constants; the survey leaves the search's tolerance and floor open.
SMOOTH_K_TOLERANCE = 1e-5
MIN_K_DIST_SCALE = 1e-3
SMOOTH_K_ITERATIONS = 64

# The survey's example value below eq. 13, and umap-learn's literal.
EPS = 0.001
# umap-learn's bound on every component of a gradient; Algorithm 1 has none (pass np.inf for that).
CLIP = 4.0


def exact_neighbors(data: ArrayLike, n_neighbors: int) -> tuple[Indices, Floats]:
    """The set N_i of eq. 1 with the point itself first, ties by index.

    `n_neighbors` counts the point itself, as in umap-learn.
    Differences are squared directly: |x|^2 + |y|^2 - 2xy would lose the zeros of duplicates.
    """
    points = np.asarray(data, dtype=np.float64)
    n = len(points)
    index = np.empty((n, n_neighbors), dtype=np.int64)
    distance = np.empty((n, n_neighbors))
    for i in range(n):
        row = np.sqrt(((points - points[i]) ** 2).sum(axis=1))
        key = row.copy()
        key[i] = -1.0
        index[i] = np.argsort(key, kind="stable")[:n_neighbors]
        distance[i] = row[index[i]]
    return index, distance


def nearest_distances(distance: ArrayLike, local_connectivity: float = 1.0) -> Floats:
    """rho of eq. 2: the distance to the nearest neighbour.

    umap-learn's reading, which the survey does not spell out: only distances above zero count, so duplicates
    are skipped; `local_connectivity` generalises the first such distance to a fractional rank;
    with fewer of them than that rank, the largest stands in; with none, rho is 0.
    """
    table = np.asarray(distance, dtype=np.float64)
    rho = np.zeros(len(table))
    whole = int(np.floor(local_connectivity))
    fraction = local_connectivity - whole
    for i, row in enumerate(table):
        above = row[(row > 0.0) & np.isfinite(row)]
        if len(above) >= local_connectivity and len(above) > 0:
            lower = above[whole - 1] if whole > 0 else 0.0
            rho[i] = lower
            if fraction > SMOOTH_K_TOLERANCE or whole == 0:
                rho[i] = lower + fraction * (above[whole] - lower)
        elif len(above) > 0:
            rho[i] = above.max()
    return rho


def membership_sum(row: Floats, rho: float, sigma: float) -> float:
    """The left-hand side of eq. 3 over the neighbours other than the point itself.

    Erratum: with k counting the point, the sum runs over the other k-1, while the target stays log2(k).
    A neighbour nearer than rho counts 1, not more.
    """
    return float(np.exp(-np.maximum(row[1:] - rho, 0.0) / sigma).sum())


def smooth_scale(row: Floats, rho: float, target: float, tolerance: float = SMOOTH_K_TOLERANCE) -> float:
    """sigma of eq. 3 for one row, by umap-learn's bisection: start at 1, double while unbounded above."""
    low, high, middle = 0.0, np.inf, 1.0
    for _ in range(SMOOTH_K_ITERATIONS):
        total = membership_sum(row, rho, middle)
        if abs(total - target) < tolerance:
            break
        if total > target:
            high = middle
        else:
            low = middle
        middle = middle * 2.0 if np.isinf(high) else (low + high) / 2.0
    return middle


def smooth_scales(distance: ArrayLike, rho: ArrayLike, tolerance: float = SMOOTH_K_TOLERANCE) -> Floats:
    """sigma of eq. 3 for every row, with target log2(k) and umap-learn's floor.

    The floor keeps sigma from vanishing where more than log2(k) neighbours lie within rho:
    a thousandth of the row's mean distance, or of the whole table's where rho is 0. Means include the self
    distance and leave out infinite ones (umap-learn's do not, which makes sigma infinite, hence every
    membership 1, in any row that lost a neighbour to `disconnection_distance`).
    """
    table = np.asarray(distance, dtype=np.float64)
    rhos = np.asarray(rho, dtype=np.float64)
    target = np.log2(table.shape[1])
    mean_of_all = finite_mean(table)
    sigma = np.empty(len(table))
    for i, row in enumerate(table):
        mean = finite_mean(row) if rhos[i] > 0.0 else mean_of_all
        sigma[i] = max(smooth_scale(row, rhos[i], target, tolerance), MIN_K_DIST_SCALE * mean)
    return sigma


def finite_mean(distance: Floats) -> float:
    """The mean of the finite entries, 0 without any."""
    finite = distance[np.isfinite(distance)]
    return float(finite.mean()) if finite.size else 0.0


def conditional_memberships(index: ArrayLike, distance: ArrayLike, rho: ArrayLike, sigma: ArrayLike) -> Floats:
    """p_{j|i} of eq. 1 as a dense matrix: row i, column j.

    The point itself has membership 0 although it is first in its own neighbour list;
    index -1 is no neighbour; a neighbour at or nearer than rho has membership 1.
    """
    neighbors = np.asarray(index, dtype=np.int64)
    excess = np.asarray(distance, dtype=np.float64) - np.asarray(rho, dtype=np.float64)[:, None]
    scale = np.asarray(sigma, dtype=np.float64)
    n, k = neighbors.shape
    p = np.zeros((n, n))
    for i in range(n):
        for slot in range(k):
            j = neighbors[i, slot]
            if j in (-1, i):
                continue
            near = excess[i, slot] <= 0.0 or scale[i] == 0.0
            p[i, j] = 1.0 if near else np.exp(-excess[i, slot] / scale[i])
    return p


def symmetrize(conditional: ArrayLike, set_op_mix_ratio: float = 1.0) -> Floats:
    """p_ij of eq. 4, the fuzzy union, mixed with the fuzzy intersection p_{j|i} p_{i|j}.

    The survey's equation is `set_op_mix_ratio` 1; the mixture is umap-learn's.
    """
    p = np.asarray(conditional, dtype=np.float64)
    product = p * p.T
    return set_op_mix_ratio * (p + p.T - product) + (1.0 - set_op_mix_ratio) * product


def fuzzy_graph(
    index: ArrayLike, distance: ArrayLike, set_op_mix_ratio: float = 1.0, local_connectivity: float = 1.0
) -> Floats:
    """Eq. 1 to 4 in one: the dense symmetric graph of a neighbour table."""
    rho = nearest_distances(distance, local_connectivity)
    sigma = smooth_scales(distance, rho)
    return symmetrize(conditional_memberships(index, distance, rho, sigma), set_op_mix_ratio)


def kernel(d2: ArrayLike, a: float, b: float) -> Floats:
    """q of eq. 5 from the squared distance."""
    q: Floats = 1.0 / (1.0 + a * np.asarray(d2, dtype=np.float64) ** b)
    return q


def fit_ab(spread: float = 1.0, min_dist: float = 0.1) -> tuple[float, float]:
    """a and b of eq. 5, fitted to the curve that is 1 up to `min_dist` and decays by `spread` beyond it.

    Erratum: the a = 1.929, b = 0.7915 that the survey calls defaults belong to min_dist = 0.001;
    the defaults spread = 1, min_dist = 0.1 give a = 1.577, b = 0.8951.
    The 300 points on [0, 3 spread] are umap-learn's.
    """
    x = np.linspace(0.0, 3.0 * spread, 300)
    y = np.where(x < min_dist, 1.0, np.exp(-(x - min_dist) / spread))
    (a, b), _ = curve_fit(lambda t, a, b: 1.0 / (1.0 + a * t ** (2.0 * b)), x, y)
    return float(a), float(b)


def squared_distances(embedding: ArrayLike) -> Floats:
    """All pairs' squared distances in the embedding."""
    y = np.asarray(embedding, dtype=np.float64)
    d2: Floats = ((y[:, None, :] - y[None, :, :]) ** 2).sum(axis=2)
    return d2


def attract_cost(d2: ArrayLike, a: float, b: float) -> Floats:
    """c^a of eq. 8, -ln q, as ln(1 + a d^2b)."""
    return np.log1p(a * np.asarray(d2, dtype=np.float64) ** b)


def repel_cost(d2: ArrayLike, a: float, b: float) -> Floats:
    """c^r of eq. 9, -ln(1 - q), as ln(1 + 1/(a d^2b)): 1 - q itself would round to 0 for near pairs."""
    return np.log1p(1.0 / (a * np.asarray(d2, dtype=np.float64) ** b))


def cross_entropy(p: ArrayLike, embedding: ArrayLike, a: float, b: float) -> float:
    """c1 of eq. 6, the fuzzy cross-entropy over all ordered pairs i != j, with 0 ln 0 = 0."""
    off = ~np.eye(len(np.asarray(p)), dtype=bool)
    member = np.asarray(p, dtype=np.float64)[off]
    d2 = squared_distances(embedding)[off]
    entropy = x_log_x(member) + x_log_x(1.0 - member)
    return float((entropy + member * attract_cost(d2, a, b) + (1.0 - member) * repel_cost(d2, a, b)).sum())


def x_log_x(x: Floats) -> Floats:
    """x ln x, 0 at 0."""
    return np.where(x > 0.0, x * np.log(np.where(x > 0.0, x, 1.0)), 0.0)


def reduced_cross_entropy(p: ArrayLike, embedding: ArrayLike, a: float, b: float) -> float:
    """c2 of eq. 7, written with c^a and c^r as eq. 10 does: over all ordered pairs i != j."""
    off = ~np.eye(len(np.asarray(p)), dtype=bool)
    member = np.asarray(p, dtype=np.float64)[off]
    d2 = squared_distances(embedding)[off]
    return float((member * attract_cost(d2, a, b) + (1.0 - member) * repel_cost(d2, a, b)).sum())


def reduced_cross_entropy_by_pairs(p: ArrayLike, embedding: ArrayLike, a: float, b: float) -> float:
    """c2 of eq. 11: twice the sum over unordered pairs, for a symmetric p."""
    upper = np.triu_indices(len(np.asarray(p)), k=1)
    member = np.asarray(p, dtype=np.float64)[upper]
    d2 = squared_distances(embedding)[upper]
    return float(2.0 * (member * attract_cost(d2, a, b) + (1.0 - member) * repel_cost(d2, a, b)).sum())


def attract_coefficient(d2: ArrayLike, a: float, b: float) -> Floats:
    """Eq. 12 without its vector: the derivative of c^a by the head is this times (y_i - y_j).

    At distance 0, where d^2(b-1) is infinite for b < 1, it is 0 as in umap-learn.
    """
    squared = np.asarray(d2, dtype=np.float64)
    safe = np.where(squared > 0.0, squared, 1.0)
    coefficient: Floats = 2.0 * a * b * safe ** (b - 1.0) / (1.0 + a * safe**b)
    return np.where(squared > 0.0, coefficient, 0.0)


def repel_coefficient(d2: ArrayLike, a: float, b: float, eps: float = EPS) -> Floats:
    """Eq. 13 without its vector, stabilised by eps; the exact derivative of c^r for eps = 0.

    At distance 0 it is 0, as in umap-learn: coinciding points stay together.
    """
    squared = np.asarray(d2, dtype=np.float64)
    safe = np.where(squared > 0.0, squared, 1.0)
    coefficient: Floats = -2.0 * b / ((eps + safe) * (1.0 + a * safe**b))
    return np.where(squared > 0.0, coefficient, 0.0)


def difference_of(head: ArrayLike, tail: ArrayLike) -> tuple[Floats, Floats]:
    """y_i - y_j and its squared length."""
    difference = np.asarray(head, dtype=np.float64) - np.asarray(tail, dtype=np.float64)
    return difference, np.asarray((difference**2).sum())


def attract_gradient(head: ArrayLike, tail: ArrayLike, a: float, b: float) -> Floats:
    """Eq. 12: the derivative of c^a by the head; the tail's is its negative."""
    difference, d2 = difference_of(head, tail)
    return attract_coefficient(d2, a, b) * difference


def repel_gradient(head: ArrayLike, tail: ArrayLike, a: float, b: float, eps: float = EPS) -> Floats:
    """Eq. 13: the derivative of c^r by the head; the tail's is its negative."""
    difference, d2 = difference_of(head, tail)
    return repel_coefficient(d2, a, b, eps) * difference


def attract_gradient_by_chain_rule(head: ArrayLike, tail: ArrayLike, a: float, b: float) -> Floats:
    """Eq. 14: (dc^a/dq)(dq/dy), before simplification."""
    difference, d2 = difference_of(head, tail)
    cost_by_q = -1.0 / kernel(d2, a, b)
    q_by_head: Floats = -1.0 / (1.0 + a * d2**b) ** 2 * 2.0 * a * b * difference * d2 ** (b - 1.0)
    return cost_by_q * q_by_head


def repel_gradient_by_chain_rule(head: ArrayLike, tail: ArrayLike, a: float, b: float) -> Floats:
    """Eq. 15: (dc^r/dq)(dq/dy), before simplification and without eps."""
    difference, d2 = difference_of(head, tail)
    q = kernel(d2, a, b)
    by_head: Floats = -2.0 * a * b * d2 ** (b - 1.0) / ((1.0 - q) * (1.0 + a * d2**b) ** 2) * difference
    return by_head


def fired_pairs(p: ArrayLike, uniforms: ArrayLike) -> list[tuple[int, int]]:
    """The `if u <= p_ij` of Algorithm 1 over i, then j, given its draws; p_ij = 0 never fires."""
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
    """One pass of Algorithm 1's loops over the edges that fire, in order, each with its negatives l.

    Sequential: every step sees the positions that the steps before it left. Head and tail move together along
    the gradient at the positions before the step, since the tail's gradient is the negative of the head's.
    `update_negatives` is the line that does not exist in the original UMAP: y_l moves as well.
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
) -> Floats:
    """Algorithm 1's epoch as the library runs it: one writer a row, everything else read from the snapshot.

    `edges_by_row[i]` lists the tails of row i's firing edges in order, `negatives_by_row[i][e]` the negatives
    of the e-th. For each edge the row steps towards the tail's snapshot `pulls` times, each from where the last
    led: the second makes up for the pull of the mirrored edge, which in Algorithm 1 moves this row too. Then all
    the edge's negatives are evaluated at the moved position, each clipped on its own, and their sum is added.
    A negative that is the row itself does nothing, as in Algorithm 1, where y_i - y_i is 0. Measured against
    the row's own snapshot it would kick the row by the clipping bound, since it has just moved a little.
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
                    push += np.clip(repel, -clip, clip)
            position -= learning_rate * push
        result[row] = position
    return result


def learning_rate_after(epoch: int, n_epochs: int, initial: float = 1.0) -> float:
    """Algorithm 1's last line: eta after `epoch` epochs have run, falling linearly to 0."""
    return initial * (1.0 - epoch / n_epochs)


def largevis_kernel(d2: ArrayLike) -> Floats:
    """q of eq. 21: eq. 5 with a = b = 1."""
    q: Floats = 1.0 / (1.0 + np.asarray(d2, dtype=np.float64))
    return q


def largevis_cost(p: ArrayLike, embedding: ArrayLike, gamma: float) -> float:
    """c5 of eq. 23 over all ordered pairs i != j, with lambda = gamma."""
    off = ~np.eye(len(np.asarray(p)), dtype=bool)
    q = largevis_kernel(squared_distances(embedding)[off])
    return float(-(np.asarray(p, dtype=np.float64)[off] * np.log(q) + gamma * np.log(1.0 - q)).sum())


def largevis_attract(d2: ArrayLike) -> Floats:
    """The derivative of -ln q by the head, without its vector y_i - y_j."""
    return 2.0 * largevis_kernel(d2)


def largevis_repel(d2: ArrayLike, gamma: float, eps: float) -> Floats:
    """The derivative of -gamma ln(1 - q) by the head, without its vector; stabilised by eps, exact for eps = 0."""
    squared = np.asarray(d2, dtype=np.float64)
    repel: Floats = -2.0 * gamma / ((eps + squared) * (1.0 + squared))
    return repel


def local_radius(p: ArrayLike, d2: ArrayLike) -> Floats:
    """R_p of eq. 30 for every row. Erratum: the expectation divides by sum_j p_ij."""
    weights = np.asarray(p, dtype=np.float64)
    radius: Floats = (weights * np.asarray(d2)).sum(axis=1) / weights.sum(axis=1)
    return radius


def embedded_radius(edges: ArrayLike, embedding: ArrayLike, a: float, b: float) -> Floats:
    """R_q of eq. 31 for every row, over the edges of the graph as in densMAP. Erratum as in eq. 30."""
    d2 = squared_distances(embedding)
    return local_radius(np.where(np.asarray(edges), kernel(d2, a, b), 0.0), d2)


def correlation(r_q: ArrayLike, r_p: ArrayLike, shift: float = 0.0) -> float:
    """Corr of eq. 33 with the sums below it; densMAP adds `shift` to Var(r_q)."""
    q, p = np.asarray(r_q, dtype=np.float64), np.asarray(r_p, dtype=np.float64)
    n = len(q)
    covariance = ((q - q.mean()) * (p - p.mean())).sum() / (n - 1)
    return float(covariance / np.sqrt(((q - q.mean()) ** 2).sum() / (n - 1) + shift) / p.std(ddof=1))


def densmap_cost(
    p: ArrayLike, embedding: ArrayLike, r_p: ArrayLike, a: float, b: float, weight: float, shift: float = 0.0
) -> float:
    """c6 of eq. 34: c2 less `weight` times the correlation."""
    r_q = np.log(embedded_radius(np.asarray(p) > 0.0, embedding, a, b))
    return reduced_cross_entropy(p, embedding, a, b) - weight * correlation(r_q, r_p, shift)


def correlation_gradient(
    edges: ArrayLike, r_p: ArrayLike, embedding: ArrayLike, a: float, b: float, shift: float = 0.0
) -> Floats:
    """The derivative of Corr by every place, by eq. 35 and the two derivatives below it.

    Errata: eq. 35 has no sum over i, and a factor 2 from d(d^2)/dy; the pair's derivative divides by the deviation of
    r_p and takes r_p less its mean, and (r_p^j - mu_q) reads (r_q^j - mu_q); dr/dd^2 lacks the 1 / sum_j q_ij of
    eq. 31, and its last d^2 reads d^2b.
    """
    graph, y = np.asarray(edges), np.asarray(embedding, dtype=np.float64)
    d2 = squared_distances(y)
    q = np.where(graph, kernel(d2, a, b), 0.0)
    mass = q.sum(axis=1)
    r_q = np.log(embedded_radius(graph, y, a, b))
    p = np.asarray(r_p, dtype=np.float64)
    n, centred, standard = len(y), r_q - r_q.mean(), (p - p.mean()) / p.std(ddof=1)
    variance = (centred**2).sum() / (n - 1) + shift
    covariance = (centred * standard).sum() / (n - 1)
    gradient = np.zeros_like(y)
    for i in range(n):
        for j in np.flatnonzero(graph[i]):
            t = d2[i, j]
            slope = (1.0 + a * t**b) ** -2 * np.array(
                [a * b * t ** (b - 1.0) + np.exp(-r_q[v]) * (1.0 + a * (1.0 - b) * t**b) for v in (i, j)]
            )
            dr_i, dr_j = slope[0] / mass[i], slope[1] / mass[j]
            pair = variance * (standard[i] * dr_i + standard[j] * dr_j)
            pair -= covariance * (centred[i] * dr_i + centred[j] * dr_j)
            gradient[i] += 2.0 * pair / ((n - 1) * variance**1.5) * (y[i] - y[j])
    return gradient


def output_distance(
    metric: str,
    head: ArrayLike,
    tail: ArrayLike,
    p: float = 2.0,
    w: ArrayLike | None = None,
    V: ArrayLike | None = None,
    VI: ArrayLike | None = None,
) -> float:
    """Distances a map may have instead of the euclidean; umap-learn's where SciPy has none of the name.

    `haversine` takes (polar angle, azimuth); `hyperboloid` the coordinates other than z = sqrt(1 + |x|^2).
    """
    x, y = np.asarray(head, dtype=np.float64), np.asarray(tail, dtype=np.float64)
    apart = np.abs(x - y)
    weights = np.ones(len(x)) if w is None else np.asarray(w, dtype=np.float64)
    if metric == "manhattan":
        return float(apart.sum())
    if metric == "chebyshev":
        return float(apart.max())
    if metric in ("euclidean", "minkowski", "wminkowski"):
        return float((weights * apart**p).sum() ** (1.0 / p))
    if metric == "seuclidean":
        return float(np.sqrt((apart**2 / np.asarray(V)).sum()))
    if metric == "mahalanobis":
        return float(np.sqrt((x - y) @ np.asarray(VI) @ (x - y)))
    if metric == "canberra":
        return float((apart / (np.abs(x) + np.abs(y))).sum())
    if metric == "braycurtis":
        return float(apart.sum() / np.abs(x + y).sum())
    if metric == "correlation":
        x, y = x - x.mean(), y - y.mean()
    if metric in ("cosine", "correlation"):
        return float(1.0 - x @ y / np.sqrt((x @ x) * (y @ y)))
    if metric == "haversine":
        h = np.sin((x[0] - y[0]) / 2) ** 2 + np.sin(x[0]) * np.sin(y[0]) * np.sin((x[1] - y[1]) / 2) ** 2
        return float(2.0 * np.arcsin(np.sqrt(h)))
    if metric == "hyperboloid":
        return float(np.arccosh(np.sqrt(1.0 + x @ x) * np.sqrt(1.0 + y @ y) - x @ y))
    raise ValueError(metric)


def entropy(p: ArrayLike) -> float:
    """-sum p ln p in nats, the logarithm of the perplexity."""
    return float(-x_log_x(np.asarray(p, dtype=np.float64)).sum())


def gaussian_conditionals(d2: Floats, sigma: float) -> Floats:
    """Eq. 18 for one row, from the squared distances to its neighbours.

    Erratum: t-SNE squares the distance and divides by 2 sigma^2. Shifting all d2 by the smallest changes nothing.
    """
    weight = np.exp(-(d2 - d2.min()) / (2.0 * sigma**2))
    return np.asarray(weight / weight.sum())


def perplexity_scale(d2: Floats, perplexity: float) -> float:
    """sigma of eq. 18 for one row: the conditionals have the entropy ln(perplexity); by bisection of ln(sigma).

    The perplexity must be attainable: more than the ties at the smallest distance, fewer than the neighbours.
    """
    low, high = -350.0, 350.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if entropy(gaussian_conditionals(d2, float(np.exp(middle)))) > np.log(perplexity):
            high = middle
        else:
            low = middle
    return float(np.exp((low + high) / 2.0))


def entropic_conditionals(index: ArrayLike, distance: ArrayLike, perplexity: float) -> tuple[Floats, Floats]:
    """p_{j|i} of eq. 18 as a dense matrix (row i, column j), 0 beyond the neighbour table, and sigma.

    p_{i|i} = 0; index -1 is no neighbour. With no more neighbours than the perplexity all are equally likely.
    """
    neighbors = np.asarray(index, dtype=np.int64)
    squared = np.asarray(distance, dtype=np.float64) ** 2
    n = len(neighbors)
    p, sigma = np.zeros((n, n)), np.full(n, np.inf)
    for i in range(n):
        others = (neighbors[i] >= 0) & (neighbors[i] != i)
        if not others.any():
            continue
        d2 = squared[i, others]
        if len(d2) > perplexity:
            sigma[i] = perplexity_scale(d2, perplexity)
        p[i, neighbors[i, others]] = gaussian_conditionals(d2, sigma[i])
    return p, sigma


def mean_probabilities(conditional: ArrayLike) -> Floats:
    """p_ij of eq. 19: the mean of the two conditionals over n."""
    p = np.asarray(conditional, dtype=np.float64)
    return np.asarray((p + p.T) / (2.0 * len(p)))


def student_weights(d2: ArrayLike, dof: float = 1.0) -> Floats:
    """The numerator of eq. 20, (1 + d^2)^-1; openTSNE's generalisation to `dof` degrees of freedom."""
    return np.asarray((1.0 + np.asarray(d2, dtype=np.float64) / dof) ** (-(dof + 1.0) / 2.0))


def student_probabilities(embedding: ArrayLike, dof: float = 1.0) -> Floats:
    """q_ij of eq. 20, 0 on the diagonal."""
    weight = student_weights(squared_distances(embedding), dof)
    np.fill_diagonal(weight, 0.0)
    return np.asarray(weight / weight.sum())


def kl_divergence(p: ArrayLike, embedding: ArrayLike, dof: float = 1.0) -> float:
    """c4 of eq. 22: sum of p ln(p / q) over ordered pairs, with 0 ln 0 = 0."""
    member = np.asarray(p, dtype=np.float64)
    q = student_probabilities(embedding, dof)
    some = member > 0.0
    return float((member[some] * np.log(member[some] / q[some])).sum())


def kl_gradient(p: ArrayLike, embedding: ArrayLike, dof: float = 1.0, exaggeration: float = 1.0) -> Floats:
    """The derivative of c4 by every y_i; with `exaggeration` the attractive part is multiplied by it.

    dc4/dy_i = 2 (dof + 1)/dof * sum over j of (p_ij - q_ij) (y_i - y_j) / (1 + d_ij^2/dof),
    which for one degree of freedom is t-SNE's 4 sum (p_ij - q_ij) (y_i - y_j) / (1 + d_ij^2).
    """
    y = np.asarray(embedding, dtype=np.float64)
    force = exaggeration * np.asarray(p, dtype=np.float64) - student_probabilities(y, dof)
    force = force / (1.0 + squared_distances(y) / dof)
    gradient: Floats = force.sum(axis=1)[:, None] * y - force @ y
    return 2.0 * (dof + 1.0) / dof * gradient
