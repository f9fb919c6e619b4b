"""Graphs of the survey: the fuzzy graph of UMAP (eq. 1-4) and the entropic graph of t-SNE (eq. 18, 19)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reference.umap import x_log_x

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

# umap-learn's constants; the survey does not state the tolerance of the search and the floor.
SMOOTH_K_TOLERANCE = 1e-5
MIN_K_DIST_SCALE = 1e-3
SMOOTH_K_ITERATIONS = 64


def exact_neighbors(data: ArrayLike, n_neighbors: int) -> tuple[Indices, Floats]:
    """Return N_i of eq. 1 with the row itself first; ties are ordered by index.

    `n_neighbors` counts the row itself, as in umap-learn. Differences are squared directly, because
    |x|^2 + |y|^2 - 2xy is not exactly 0 for duplicates.
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
    """Return rho of eq. 2, the distance to the nearest neighbor.

    Details that the survey does not state are umap-learn's: only distances above zero count, so duplicates are skipped;
    `local_connectivity` is the rank of the distance, fractions interpolate; with fewer distances than that rank, rho is
    the largest of them, without any it is 0.
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
    """Return the left-hand side of eq. 3 over the neighbors other than the row itself.

    Erratum: k counts the row itself, so the sum has k - 1 terms, while the target is log2(k). A neighbor nearer than
    rho counts 1.
    """
    return float(np.exp(-np.maximum(row[1:] - rho, 0.0) / sigma).sum())


def smooth_scale(row: Floats, rho: float, target: float, tolerance: float = SMOOTH_K_TOLERANCE) -> float:
    """Return sigma of eq. 3 for one row, by umap-learn's bisection: start at 1, double until bounded above."""
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
    """Return sigma of eq. 3 for every row, with target log2(k) and umap-learn's floor.

    The floor keeps sigma above 0 if more than log2(k) neighbors lie within rho. It is a thousandth of the mean distance
    of the row, or of the whole table if rho is 0. Means include the distance of the row to itself and exclude infinite
    distances. (umap-learn includes them, so that sigma is infinite and all memberships are 1 in any row that lost a
    neighbor to `disconnection_distance`.)
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
    """Return the mean of the finite entries, 0 if there are none."""
    finite = distance[np.isfinite(distance)]
    return float(finite.mean()) if finite.size else 0.0


def conditional_memberships(index: ArrayLike, distance: ArrayLike, rho: ArrayLike, sigma: ArrayLike) -> Floats:
    """Return p_{j|i} of eq. 1 as a dense matrix with row i and column j.

    A row has membership 0 in itself, although it is first in its own neighbor list. Index -1 means no neighbor. A
    neighbor at distance rho or nearer has membership 1.
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
    """Return p_ij of eq. 4, the fuzzy union, mixed with the fuzzy intersection p_{j|i} p_{i|j}.

    The survey has `set_op_mix_ratio` 1; the mixture is umap-learn's.
    """
    p = np.asarray(conditional, dtype=np.float64)
    product = p * p.T
    return set_op_mix_ratio * (p + p.T - product) + (1.0 - set_op_mix_ratio) * product


def fuzzy_graph(
    index: ArrayLike, distance: ArrayLike, set_op_mix_ratio: float = 1.0, local_connectivity: float = 1.0
) -> Floats:
    """Return the dense symmetric graph of a neighbor table (eq. 1 to 4)."""
    rho = nearest_distances(distance, local_connectivity)
    sigma = smooth_scales(distance, rho)
    return symmetrize(conditional_memberships(index, distance, rho, sigma), set_op_mix_ratio)


def entropy(p: ArrayLike) -> float:
    """Return -sum p ln p in nats, the logarithm of the perplexity."""
    return float(-x_log_x(np.asarray(p, dtype=np.float64)).sum())


def gaussian_conditionals(d2: Floats, sigma: float) -> Floats:
    """Return eq. 18 for one row, from the squared distances to its neighbors.

    Erratum: t-SNE squares the distance and divides by 2 sigma^2. Subtracting the smallest d2 does not change it.
    """
    weight = np.exp(-(d2 - d2.min()) / (2.0 * sigma**2))
    return np.asarray(weight / weight.sum())


def perplexity_scale(d2: Floats, perplexity: float) -> float:
    """Return sigma of eq. 18 for one row, so that the entropy is ln(perplexity), by bisection of ln(sigma).

    The perplexity must be possible: above the number of ties at the smallest distance, below the number of neighbors.
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
    """Return p_{j|i} of eq. 18 as a dense matrix (row i, column j), 0 outside the neighbor table, and sigma.

    p_{i|i} = 0. Index -1 means no neighbor. With at most as many neighbors as the perplexity, all are equally likely.
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
    """Return p_ij of eq. 19, the mean of both conditionals divided by n."""
    p = np.asarray(conditional, dtype=np.float64)
    return np.asarray((p + p.T) / (2.0 * len(p)))
