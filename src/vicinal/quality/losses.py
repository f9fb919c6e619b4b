"""The survey's costs of a map, exact or sampled, and the loss that negative sampling lowers::

    c1   cross_entropy             eq. 6, 17    UMAP's stated cost
    c2   reduced_cross_entropy     eq. 7-11     c1 without its constant
    c4   kl_divergence             eq. 22       t-SNE
    c5   negative_log_likelihood   eq. 23       LargeVis
    c6   density_cost              eq. 34       densMAP
         density_correlation       eq. 33       correlation of the log radii of map and data
         radius_power_law          eq. 32       power law between these radii
         effective_loss            eq. 29       loss of UMAP's sampler, for resting or moving negatives
         stated_gradient           eq. 26       gradient of c2
         expected_gradient         eq. 25, 27   mean step of the sampler

Let A be the attraction Σ p_ij c^a_ij over the edges and R the repulsion (m/n) Σ_i d_i Σ_j c^r_ij over all pairs, with
d_i = Σ_j p_ij. Negatives that move give eq. 29, A + R. Negatives that rest, UMAP's default, give J = A + R/2: in a pair
(i, j) both rows draw each other as negatives, but only the row that draws moves, so the pair is pushed apart half as
much.

Each cost is a sum over the edges of the graph plus a sum over all pairs of rows. The second sum is exact for up to
EXACT_ROWS rows; for more rows it is estimated from SAMPLES random partners per row.

These parameters are common to all of them::

    graph      a symmetric graph
    embedding  array of shape (n_rows, n_components), the map
    kernel     similarity of two points of the map
    samples    "auto", None for the exact sum, or the number of partners per row
    seed       seed of the partners
    n_jobs     number of threads; results do not depend on it

For points that coincide -ln(1 - q) would be infinite, so d² is at least 1e-12.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import backend_of, cpu
from vicinal.graph.fuzzy_sets import x_log_x
from vicinal.graph.graph import Graph
from vicinal.layout.density import radius_correlation
from vicinal.layout.forces import Kernel
from vicinal.layout.schedule import Schedule
from vicinal.runtime.progress import LAYOUT

__all__ = [
    "History",
    "Loss",
    "cross_entropy",
    "density_correlation",
    "density_cost",
    "effective_loss",
    "embedded_log_radii",
    "expected_gradient",
    "kl_divergence",
    "negative_log_likelihood",
    "radius_power_law",
    "reduced_cross_entropy",
    "stated_gradient",
]

# The exact sum over 70,000 rows takes a few seconds on two cores; the time grows with the square of the rows.
EXACT_ROWS, SAMPLES = 100_000, 256
GROUP = 16  # partners are drawn in groups of this size
LARGEST_PLACE = 1e15  # the squares of larger coordinates overflow float32

Floats = NDArray[np.float64]
Samples = int | Literal["auto"] | None


class Pairs:
    """Sums of a term over all pairs of points, or over the edges of the graph."""

    def __init__(
        self,
        graph: Graph,
        embedding: ArrayLike,
        samples: Samples,
        seed: int,
        n_jobs: int,
        rows: ArrayLike | None = None,
    ) -> None:
        self._graph, self._seed, self._n_jobs = graph, seed, n_jobs
        self._places = checked_places(graph, embedding)
        self._groups = _groups(samples, graph.n)
        # Costs are summed up where the graph lives, gradients on the CPU.
        self._work = backend_of(graph.place)
        self.rows = None if rows is None else _checked_rows(rows, graph.n)

    def over_all(self, term: str, kernel: Kernel, degree: Floats | None = None) -> tuple[float, float]:
        """Return Σ_i w_i Σ_{j ≠ i} t(d²_ij), w_i = 1 or the degree, and its standard error."""
        quantity = _quantity(self._work, term, kernel)
        if self._groups is None or self._graph.n < 2:
            # Each pair is visited once, with the weights of both rows.
            return float(self._sums(self._work, degree).costs(quantity, self._n_jobs).sum()), 0.0
        value, variance = self._sums(self._work).draws(quantity, self._groups, self._seed, self._n_jobs)
        weight = 1.0 if degree is None else degree
        return float((weight * value).sum()), math.sqrt(float((weight * weight * variance).sum()))

    def over_edges(self, term: str, kernel: Kernel) -> float:
        """Return Σ p_ij t(d²_ij) over the edges."""
        quantity, edges = _quantity(self._work, term, kernel), self._graph.edges
        return float(self._sums(self._work).edges(quantity, False, *edges, None, self._n_jobs).sum())

    def forces(self, term: str, kernel: Kernel, degree: Floats | None = None) -> Floats:
        """Return Σ_j w_j t(d²_ij) (y_i - y_j) for the chosen rows."""
        forces: Floats = self._sums(cpu, degree).forces(_quantity(cpu, term, kernel), self.rows, self._n_jobs)
        return forces

    def edge_forces(self, term: str, kernel: Kernel) -> Floats:
        """Return Σ_j p_ij t(d²_ij) (y_i - y_j) for the chosen rows."""
        graph, sums = self._graph, self._sums(cpu)
        edges = graph.indptr, graph.indices, graph.weights
        forces: Floats = sums.edges(_quantity(cpu, term, kernel), True, *edges, self.rows, self._n_jobs)
        return forces

    def _sums(self, work: Any, degree: Floats | None = None) -> Any:
        return work.PairSums(self._places, None if degree is None else degree.astype(np.float32))


def _quantity(work: Any, term: str, kernel: Kernel) -> Any:
    return work.PairQuantity(term, "umap", kernel.a, kernel.b, 1.0)


def checked_places(graph: Graph, embedding: ArrayLike) -> NDArray[np.float32]:
    """Return the places of the rows of a symmetric graph, or raise ValueError."""
    places = np.require(embedding, dtype=np.float32, requirements=["C", "A"])
    if places.ndim != 2 or graph.n_tails != graph.n or places.shape[0] != graph.n:
        raise ValueError(
            f"embedding must hold one place for each row of a symmetric graph of {graph.n} rows,"
            f" got shape {places.shape}"
        )
    bad = ~(np.abs(places) <= LARGEST_PLACE).all(axis=1)
    if bad.any():
        raise ValueError(f"embedding contains NaN, infinity or huge places, first in row {int(np.argmax(bad))}")
    return places


def _groups(samples: Samples, n: int) -> int | None:
    """Return the number of groups of partners per row, or None for the exact sum."""
    if samples == "auto":
        samples = None if n <= EXACT_ROWS else SAMPLES
    if samples is None:
        return None
    if isinstance(samples, str) or samples < 1:
        raise ValueError(f"samples must be 'auto', None or a positive number, got {samples!r}")
    return max(2, -(-int(samples) // GROUP))


def _checked_rows(rows: ArrayLike, n: int) -> NDArray[np.int32]:
    given = np.asarray(rows)
    numbers = given.dtype.kind in "iu" or given.size == 0
    if given.ndim != 1 or not numbers or (given.size and (given.min() < 0 or given.max() >= n)):
        raise ValueError(f"rows must be row numbers below {n}, got {rows!r}")
    return np.ascontiguousarray(given, dtype=np.int32)


CAUCHY = Kernel(1.0, 1.0)

Negatives = Literal["resting", "moving"]
# The part of R, the repulsion of eq. 29, in the loss of each kind of negatives.
REPULSION_SHARE = {"resting": 0.5, "moving": 1.0}


@dataclass(frozen=True)
class Loss:
    """A cost and its parts.

    Attributes
    ----------
    attraction, repulsion, constant, density : float
        The terms of the cost.
    standard_error : float
        Standard error of the sampled part, 0 if the cost is exact.
    value : float
        The sum of the terms.
    """

    attraction: float
    repulsion: float
    constant: float = 0.0
    density: float = 0.0
    standard_error: float = 0.0

    @property
    def value(self) -> float:
        return self.attraction + self.repulsion + self.constant + self.density

    def __float__(self) -> float:
        return self.value


def cross_entropy(
    graph: Graph, embedding: ArrayLike, kernel: Kernel, *, samples: Samples = "auto", seed: int = 0, n_jobs: int = -1
) -> Loss:
    """Compute c1, the fuzzy cross-entropy of the graph and the map over all ordered pairs (eq. 6, 17)."""
    p = graph.weights.astype(np.float64)
    reduced = reduced_cross_entropy(graph, embedding, kernel, samples=samples, seed=seed, n_jobs=n_jobs)
    return replace(reduced, constant=float((x_log_x(p) + x_log_x(1.0 - p)).sum()))


def reduced_cross_entropy(
    graph: Graph, embedding: ArrayLike, kernel: Kernel, *, samples: Samples = "auto", seed: int = 0, n_jobs: int = -1
) -> Loss:
    """Compute c2, the part of c1 that depends on the map (eq. 7, 10, 11)."""
    pairs = Pairs(graph, embedding, samples, seed, n_jobs)
    everywhere, error = pairs.over_all("repel_cost", kernel)
    repulsion = everywhere - pairs.over_edges("repel_cost", kernel)
    return Loss(pairs.over_edges("attract_cost", kernel), repulsion, standard_error=error)


def kl_divergence(
    graph: Graph,
    embedding: ArrayLike,
    dof: float = 1.0,
    *,
    samples: Samples = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Loss:
    """Compute c4, the Kullback-Leibler divergence of the map from the graph (eq. 22).

    The weights are divided by their sum, which is 1 in eq. 19. ``dof`` is the number of degrees of freedom of the
    kernel, 1 in eq. 20.
    """
    if not (dof > 0 and math.isfinite(dof)):
        raise ValueError(f"dof must be a positive number, got {dof!r}")
    total = total_weight(graph)
    if not total > 0:
        raise ValueError("kl_divergence requires a graph with edges")
    pairs = Pairs(graph, embedding, samples, seed, n_jobs)
    # -ln of the unnormalized q is (dof + 1)/2 ln(1 + d²/dof).
    pull = 0.5 * (dof + 1.0) * pairs.over_edges("attract_cost", Kernel(1.0 / dof, 1.0)) / total
    z, error = pairs.over_all("student", Kernel(dof, 1.0))
    entropy = float(backend_of(graph.place).negative_entropy(graph.array("weights"), total))
    return Loss(pull, math.log(z) if z > 0 else -math.inf, entropy, standard_error=error / z if z > 0 else 0.0)


def total_weight(graph: Graph) -> float:
    """Return the sum of the weights of all edges."""
    return float(backend_of(graph.place).total_weight(graph.array("weights")))


def negative_log_likelihood(
    graph: Graph,
    embedding: ArrayLike,
    gamma: float = 20.0,
    *,
    samples: Samples = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Loss:
    """Compute c5, the cost of LargeVis (eq. 23 with q of eq. 21).

    ``gamma`` is the survey's λ; its default is that of :class:`vicinal.LargeVis` for large data.
    """
    pairs = Pairs(graph, embedding, samples, seed, n_jobs)
    everywhere, error = pairs.over_all("repel_cost", CAUCHY)
    pull = pairs.over_edges("attract_cost", CAUCHY)
    return Loss(pull, gamma * everywhere, standard_error=abs(gamma) * error)


def density_cost(
    graph: Graph,
    embedding: ArrayLike,
    kernel: Kernel,
    log_radii: ArrayLike,
    dens_lambda: float = 2.0,
    *,
    samples: Samples = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Loss:
    """Compute c6: c2 minus ``dens_lambda`` times the correlation of the log radii in map and data (eq. 33, 34).

    ``log_radii`` are the r_p, the logarithms of eq. 30. Rows with NaN and rows without edges are left out.
    """
    density = -dens_lambda * density_correlation(graph, embedding, kernel, log_radii)
    reduced = reduced_cross_entropy(graph, embedding, kernel, samples=samples, seed=seed, n_jobs=n_jobs)
    return replace(reduced, density=density)


def density_correlation(graph: Graph, embedding: ArrayLike, kernel: Kernel, log_radii: ArrayLike) -> float:
    """Compute Corr(r_q, r_p), which densMAP raises: r_q by eq. 31, ``log_radii`` are the r_p (eq. 33).

    Rows with NaN and rows without edges are left out; without any variance the correlation is 0. Fitted models have it
    as ``density_correlation_``.
    """
    return radius_correlation(embedded_log_radii(graph, embedding, kernel), _log_radii(graph, log_radii))


def radius_power_law(graph: Graph, embedding: ArrayLike, kernel: Kernel, log_radii: ArrayLike) -> tuple[float, float]:
    """Fit alpha and beta of the power law R_q = alpha R_p^beta, by least squares of r_q = beta r_p + ln alpha (eq. 32).

    ``log_radii`` are the r_p. Rows with NaN and rows without edges are left out. If all r_p are equal, beta is 0.
    """
    r_q, r_p = embedded_log_radii(graph, embedding, kernel), _log_radii(graph, log_radii)
    known = np.isfinite(r_q) & np.isfinite(r_p)
    if not known.any():
        raise ValueError("no row has a radius both in the map and in log_radii")
    r_q, r_p = r_q[known], r_p[known]
    centered = r_p - r_p.mean()
    spread = float(centered @ centered)
    beta = float(centered @ r_q) / spread if spread > 0 else 0.0
    return math.exp(float(r_q.mean()) - beta * float(r_p.mean())), beta


def _log_radii(graph: Graph, log_radii: ArrayLike) -> Floats:
    radii = np.asarray(log_radii, dtype=np.float64)
    if radii.shape != (graph.n,):
        raise ValueError(f"log_radii must hold one number for each of {graph.n} rows, got shape {radii.shape}")
    return radii


def embedded_log_radii(graph: Graph, embedding: ArrayLike, kernel: Kernel) -> Floats:
    """Compute r_q, the log of the mean squared length of each row's edges in the map, weighted by q (eq. 31).

    Rows without edges have NaN.
    """
    places = checked_places(graph, embedding).astype(np.float64)
    heads = graph.heads()
    d2 = ((places[heads] - places[graph.indices]) ** 2).sum(axis=1)
    q = kernel(d2)
    moment = np.bincount(heads, q * d2, minlength=graph.n)
    mass = np.bincount(heads, q, minlength=graph.n)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.log(np.maximum(moment / mass, 1e-12)))


def effective_loss(
    graph: Graph,
    embedding: ArrayLike,
    kernel: Kernel,
    schedule: Schedule | None = None,
    *,
    negatives: Negatives | None = None,
    samples: Samples = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Loss:
    """Compute the expected loss of an epoch of sampling: J = A + R/2 for resting, eq. 29 for moving negatives.

    A and R are those of the module. p_ij is the weight of an edge relative to the largest weight, which is its
    probability to fire in an epoch of the layout.

    For moving negatives the gradient of this loss is :func:`expected_gradient`. For resting ones that is true only if
    all degrees d_i are equal: row j pushes row i with weight d_i in the sampler, and with (d_i + d_j)/2 in J.

    Parameters
    ----------
    schedule : Schedule, optional
        Gives m (``negative_sample_rate``) and the strength of the repulsion.
    negatives : {"resting", "moving"}, optional
        Which negatives the loss is for, by default those of the schedule (``update_negatives``). Maps are compared by
        the same loss, however they were made: J is ``negatives="resting"``, eq. 29 is ``negatives="moving"``.
    graph, embedding, kernel, samples, seed, n_jobs
        See the module.
    """
    schedule = schedule or Schedule()
    kind = negatives or ("moving" if schedule.update_negatives else "resting")
    if kind not in REPULSION_SHARE:
        raise ValueError(f"negatives must be 'resting', 'moving' or None, got {negatives!r}")
    graph, degree = _firing(graph)
    pairs = Pairs(graph, embedding, samples, seed, n_jobs)
    share = REPULSION_SHARE[kind] * _draws_per_pair(schedule, graph.n)
    repulsion, error = pairs.over_all("repel_cost", kernel, degree)
    pull = pairs.over_edges("attract_cost", kernel)
    return Loss(pull, share * repulsion, standard_error=share * error)


def stated_gradient(
    graph: Graph, embedding: ArrayLike, kernel: Kernel, *, rows: ArrayLike | None = None, n_jobs: int = -1
) -> Floats:
    """Compute the gradient of c2 (eq. 26) with the ε of eq. 13, for ``rows`` or by default for all rows."""
    pairs = Pairs(graph, embedding, None, 0, n_jobs, rows)
    pull = pairs.edge_forces("attract", kernel) - pairs.edge_forces("repel", kernel)
    return 2.0 * (pull + pairs.forces("repel", kernel))


def expected_gradient(
    graph: Graph,
    embedding: ArrayLike,
    kernel: Kernel,
    schedule: Schedule | None = None,
    *,
    rows: ArrayLike | None = None,
    n_jobs: int = -1,
) -> Floats:
    """Compute the mean step of an epoch of the sampler (eq. 25), for ``rows`` or by default for all rows.

    It is the mean displacement of a row in an epoch, divided by the negative learning rate. With
    ``schedule.update_negatives`` it is the mean of eq. 27, which is the gradient of :func:`effective_loss`. For resting
    negatives it is the gradient of no loss, unless all degrees are equal: row i pushes itself away from row j with
    weight d_i, row j itself away from row i with weight d_j, so the matrix of its derivatives is not symmetric.
    Unlike in the layout, gradients are not clipped.
    """
    schedule = schedule or Schedule()
    graph, degree = _firing(graph)
    pairs = Pairs(graph, embedding, None, 0, n_jobs, rows)
    share = _draws_per_pair(schedule, graph.n)
    own = degree if pairs.rows is None else degree[pairs.rows]
    push = own[:, None] * pairs.forces("repel", kernel)
    if schedule.update_negatives:
        push += pairs.forces("repel", kernel, degree)
    return 2.0 * pairs.edge_forces("attract", kernel) + share * push


class History:
    """Callback that records losses during a layout.

    Parameters
    ----------
    loss : callable
        ``loss(embedding)`` returns the :class:`Loss` of a map.
    every : int, default 10
        Period in epochs; the last epoch is always recorded.

    Attributes
    ----------
    epochs : list of int
    losses : list of Loss
    values : array of float
        The values of the losses.
    """

    def __init__(self, loss: Callable[[NDArray[np.float32]], Loss], every: int = 10) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self.epochs: list[int] = []
        self.losses: list[Loss] = []
        self.every = every
        self._loss = loss

    def __call__(self, stage: str, done: int, steps: int, embedding: NDArray[np.float32] | None) -> None:
        if stage == LAYOUT and embedding is not None and (done % self.every == 0 or done == steps):
            self.epochs.append(done)
            self.losses.append(self._loss(embedding))

    @property
    def values(self) -> Floats:
        return np.array([loss.value for loss in self.losses])


def _draws_per_pair(schedule: Schedule, n: int) -> float:
    """Return how often a firing edge draws a given row, m/n, times the strength of the repulsion."""
    return schedule.repulsion_strength * schedule.negative_sample_rate / max(n, 1)


def _firing(graph: Graph) -> tuple[Graph, Floats]:
    """Return the graph with weights relative to the largest, and its degrees."""
    most = float(graph.weights.max(initial=0.0))
    if most not in (0.0, 1.0):
        graph = replace(graph, weights=graph.weights / most).on(graph.place)
    return graph, graph.degree()
