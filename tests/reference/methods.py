"""The other methods of the survey: t-SNE (eq. 20, 22), LargeVis (eq. 21, 23), densMAP (eq. 30-35), output metrics."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from reference.umap import Floats, kernel, reduced_cross_entropy, squared_distances


def largevis_kernel(d2: ArrayLike) -> Floats:
    """Return q of eq. 21, which is eq. 5 with a = b = 1."""
    q: Floats = 1.0 / (1.0 + np.asarray(d2, dtype=np.float64))
    return q


def largevis_cost(p: ArrayLike, embedding: ArrayLike, gamma: float) -> float:
    """Return c5 of eq. 23 over all ordered pairs i != j, with lambda = gamma."""
    off = ~np.eye(len(np.asarray(p)), dtype=bool)
    q = largevis_kernel(squared_distances(embedding)[off])
    return float(-(np.asarray(p, dtype=np.float64)[off] * np.log(q) + gamma * np.log(1.0 - q)).sum())


def largevis_attract(d2: ArrayLike) -> Floats:
    """Return the coefficient of y_i - y_j in the derivative of -ln q by the head."""
    return 2.0 * largevis_kernel(d2)


def largevis_repel(d2: ArrayLike, gamma: float, eps: float) -> Floats:
    """Return the coefficient of y_i - y_j in the derivative of -gamma ln(1 - q) by the head; exact for eps = 0."""
    squared = np.asarray(d2, dtype=np.float64)
    repel: Floats = -2.0 * gamma / ((eps + squared) * (1.0 + squared))
    return repel


def local_radius(p: ArrayLike, d2: ArrayLike) -> Floats:
    """Return R_p of eq. 30 for every row. Erratum: the expectation divides by sum_j p_ij."""
    weights = np.asarray(p, dtype=np.float64)
    radius: Floats = (weights * np.asarray(d2)).sum(axis=1) / weights.sum(axis=1)
    return radius


def embedded_radius(edges: ArrayLike, embedding: ArrayLike, a: float, b: float) -> Floats:
    """Return R_q of eq. 31 for every row, over the edges of the graph as in densMAP. Erratum as in eq. 30."""
    d2 = squared_distances(embedding)
    return local_radius(np.where(np.asarray(edges), kernel(d2, a, b), 0.0), d2)


def correlation(r_q: ArrayLike, r_p: ArrayLike, shift: float = 0.0) -> float:
    """Return Corr of eq. 33 with the sums below it; densMAP adds `shift` to Var(r_q)."""
    q, p = np.asarray(r_q, dtype=np.float64), np.asarray(r_p, dtype=np.float64)
    n = len(q)
    covariance = ((q - q.mean()) * (p - p.mean())).sum() / (n - 1)
    return float(covariance / np.sqrt(((q - q.mean()) ** 2).sum() / (n - 1) + shift) / p.std(ddof=1))


def power_law(r_q: ArrayLike, r_p: ArrayLike) -> tuple[float, float]:
    """Return alpha and beta of eq. 32 by the normal equations of r_q = beta r_p + gamma, with gamma = ln alpha."""
    q, p = np.asarray(r_q, dtype=np.float64), np.asarray(r_p, dtype=np.float64)
    columns = np.stack([p, np.ones_like(p)], axis=1)
    beta, gamma = np.linalg.solve(columns.T @ columns, columns.T @ q)
    return float(np.exp(gamma)), float(beta)


def densmap_cost(
    p: ArrayLike, embedding: ArrayLike, r_p: ArrayLike, a: float, b: float, weight: float, shift: float = 0.0
) -> float:
    """Return c6 of eq. 34, c2 minus `weight` times the correlation."""
    r_q = np.log(embedded_radius(np.asarray(p) > 0.0, embedding, a, b))
    return reduced_cross_entropy(p, embedding, a, b) - weight * correlation(r_q, r_p, shift)


def correlation_gradient(
    edges: ArrayLike, r_p: ArrayLike, embedding: ArrayLike, a: float, b: float, shift: float = 0.0
) -> Floats:
    """Return the derivative of Corr by every place, from eq. 35 and the two derivatives below it.

    Errata: eq. 35 has no sum over i, and a factor 2 from d(d^2)/dy; the pair's derivative divides by the deviation of
    r_p and takes r_p minus its mean, and (r_p^j - mu_q) reads (r_q^j - mu_q); dr/dd^2 lacks the 1 / sum_j q_ij of
    eq. 31, and its last d^2 reads d^2b.
    """
    graph, y = np.asarray(edges), np.asarray(embedding, dtype=np.float64)
    d2 = squared_distances(y)
    q = np.where(graph, kernel(d2, a, b), 0.0)
    mass = q.sum(axis=1)
    r_q = np.log(embedded_radius(graph, y, a, b))
    p = np.asarray(r_p, dtype=np.float64)
    n, centered, standard = len(y), r_q - r_q.mean(), (p - p.mean()) / p.std(ddof=1)
    variance = (centered**2).sum() / (n - 1) + shift
    covariance = (centered * standard).sum() / (n - 1)
    gradient = np.zeros_like(y)
    for i in range(n):
        for j in np.flatnonzero(graph[i]):
            t = d2[i, j]
            slope = (1.0 + a * t**b) ** -2 * np.array(
                [a * b * t ** (b - 1.0) + np.exp(-r_q[v]) * (1.0 + a * (1.0 - b) * t**b) for v in (i, j)]
            )
            dr_i, dr_j = slope[0] / mass[i], slope[1] / mass[j]
            pair = variance * (standard[i] * dr_i + standard[j] * dr_j)
            pair -= covariance * (centered[i] * dr_i + centered[j] * dr_j)
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
    """Return a distance of the map by its name, as in SciPy or, if SciPy does not have it, as in umap-learn.

    `haversine` takes (polar angle, azimuth); `hyperboloid` takes the coordinates except z = sqrt(1 + |x|^2).
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


def student_weights(d2: ArrayLike, dof: float = 1.0) -> Floats:
    """Return the numerator of eq. 20, (1 + d^2)^-1, in openTSNE's form for `dof` degrees of freedom."""
    return np.asarray((1.0 + np.asarray(d2, dtype=np.float64) / dof) ** (-(dof + 1.0) / 2.0))


def student_probabilities(embedding: ArrayLike, dof: float = 1.0) -> Floats:
    """Return q_ij of eq. 20, 0 on the diagonal."""
    weight = student_weights(squared_distances(embedding), dof)
    np.fill_diagonal(weight, 0.0)
    return np.asarray(weight / weight.sum())


def kl_divergence(p: ArrayLike, embedding: ArrayLike, dof: float = 1.0) -> float:
    """Return c4 of eq. 22, the sum of p ln(p / q) over ordered pairs, with 0 ln 0 = 0."""
    member = np.asarray(p, dtype=np.float64)
    q = student_probabilities(embedding, dof)
    some = member > 0.0
    return float((member[some] * np.log(member[some] / q[some])).sum())


def kl_gradient(p: ArrayLike, embedding: ArrayLike, dof: float = 1.0, exaggeration: float = 1.0) -> Floats:
    """Return the derivative of c4 by every y_i; the attractive part is multiplied by `exaggeration`.

    dc4/dy_i = 2 (dof + 1)/dof * sum over j of (p_ij - q_ij) (y_i - y_j) / (1 + d_ij^2/dof),
    which for one degree of freedom is t-SNE's 4 sum (p_ij - q_ij) (y_i - y_j) / (1 + d_ij^2).
    """
    y = np.asarray(embedding, dtype=np.float64)
    force = exaggeration * np.asarray(p, dtype=np.float64) - student_probabilities(y, dof)
    force = force / (1.0 + squared_distances(y) / dof)
    gradient: Floats = force.sum(axis=1)[:, None] * y - force @ y
    return 2.0 * (dof + 1.0) / dof * gradient
