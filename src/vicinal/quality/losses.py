"""The survey's costs of a map, exact or sampled, and what negative sampling makes of them.

    c1   cross_entropy             eq. 6, 17    UMAP's stated cost
    c2   reduced_cross_entropy     eq. 7-11     c1 without its constant
    c4   kl_divergence             eq. 22       t-SNE
    c5   negative_log_likelihood   eq. 23       LargeVis
    c6   density_cost              eq. 34       densMAP
         effective_loss            eq. 29       what UMAP's sampler minimises if negatives move too
         stated_gradient           eq. 26       of c2
         expected_gradient         eq. 25, 27   of the sampler

All are a sum over the edges of the graph plus a sum over all pairs of rows, which is exact for up to EXACT_ROWS rows
and estimated beyond, from SAMPLES random partners of every row; ``samples`` asks for one or the other. Results do not
depend on ``n_jobs``. -ln(1 - q) of rows that coincide would be infinite: d² counts as 1e-12 at least.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.backends import cpu
from vicinal.graph.fuzzy_sets import x_log_x
from vicinal.graph.graph import Graph
from vicinal.layout.density import radius_correlation
from vicinal.layout.kernel import Kernel
from vicinal.layout.schedule import Schedule
from vicinal.runtime.progress import LAYOUT

# 70,000 rows take a few seconds on two cores, and the time grows with the square.
EXACT_ROWS, SAMPLES = 100_000, 256
GROUP = 16  # partners are drawn in groups of this size
LARGEST_PLACE = 1e15  # squares of larger coordinates leave the range of float32
CAUCHY = Kernel(1.0, 1.0)

Floats = NDArray[np.float64]
Samples = int | Literal["auto"] | None


@dataclass(frozen=True)
class Loss:
    """A cost by its parts. ``standard_error`` is that of the sampled part, 0 if all of it is exact."""

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
    """c1: how far the fuzzy set of the map's pairs is from the graph, over all ordered pairs (eq. 6, 17)."""
    p = graph.weights.astype(np.float64)
    reduced = reduced_cross_entropy(graph, embedding, kernel, samples=samples, seed=seed, n_jobs=n_jobs)
    constant = float((x_log_x(p) + x_log_x(1.0 - p)).sum())
    return Loss(reduced.attraction, reduced.repulsion, constant, standard_error=reduced.standard_error)


def reduced_cross_entropy(
    graph: Graph, embedding: ArrayLike, kernel: Kernel, *, samples: Samples = "auto", seed: int = 0, n_jobs: int = -1
) -> Loss:
    """c2: the part of c1 that depends on the map (eq. 7, 10, 11)."""
    pairs = _Pairs(graph, embedding, samples, seed, n_jobs)
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
    """c4: the Kullback-Leibler divergence of the map from the graph (eq. 22).

    Weights are divided by their sum, which eq. 19 makes 1. ``dof`` is the number of degrees of freedom of the map's
    kernel; eq. 20 has one.
    """
    if not (dof > 0 and math.isfinite(dof)):
        raise ValueError(f"dof must be a positive number, got {dof!r}")
    total = float(graph.weights.sum(dtype=np.float64))
    if not total > 0:
        raise ValueError("kl_divergence needs a graph with edges")
    pairs = _Pairs(graph, embedding, samples, seed, n_jobs)
    # -ln of the unnormalised q is (dof + 1)/2 ln(1 + d²/dof).
    pull = 0.5 * (dof + 1.0) * pairs.over_edges("attract_cost", Kernel(1.0 / dof, 1.0)) / total
    z, error = pairs.over_all("student", Kernel(dof, 1.0))
    entropy = float(x_log_x(graph.weights / total).sum())
    return Loss(pull, math.log(z) if z > 0 else -math.inf, entropy, standard_error=error / z if z > 0 else 0.0)


def negative_log_likelihood(
    graph: Graph,
    embedding: ArrayLike,
    gamma: float = 7.0,
    *,
    samples: Samples = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Loss:
    """c5: LargeVis' cost, the survey's λ being ``gamma`` (eq. 23, with q of eq. 21)."""
    pairs = _Pairs(graph, embedding, samples, seed, n_jobs)
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
    """c6: c2 less ``dens_lambda`` times the correlation of log radii in the map and in the data (eq. 33, 34).

    ``log_radii`` are r_p, the logarithms of eq. 30; rows without one (NaN) and rows without edges do not count.
    """
    wanted = np.asarray(log_radii, dtype=np.float64)
    if wanted.shape != (graph.n,):
        raise ValueError(f"log_radii must hold one number for each of {graph.n} rows, got shape {wanted.shape}")
    reduced = reduced_cross_entropy(graph, embedding, kernel, samples=samples, seed=seed, n_jobs=n_jobs)
    density = -dens_lambda * radius_correlation(embedded_log_radii(graph, embedding, kernel), wanted)
    return Loss(reduced.attraction, reduced.repulsion, density=density, standard_error=reduced.standard_error)


def embedded_log_radii(graph: Graph, embedding: ArrayLike, kernel: Kernel) -> Floats:
    """r_q: ln of the mean squared length of a row's edges in the map, weighted by q (eq. 31); NaN without edges."""
    places = _places(graph, embedding).astype(np.float64)
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
    samples: Samples = "auto",
    seed: int = 0,
    n_jobs: int = -1,
) -> Loss:
    """What an epoch minimises on average if negatives move too (eq. 29).

    The schedule gives the m of the equation (``negative_sample_rate``) and a factor of its repulsion. p_ij is an edge's
    weight relative to the largest, as in the layout: that is how often it fires in an epoch.
    """
    schedule = schedule or Schedule()
    graph, degree = _firing(graph)
    pairs = _Pairs(graph, embedding, samples, seed, n_jobs)
    share = schedule.repulsion_strength * schedule.negative_sample_rate / max(graph.n, 1)
    repulsion, error = pairs.over_all("repel_cost", kernel, degree)
    pull = pairs.over_edges("attract_cost", kernel)
    return Loss(pull, share * repulsion, standard_error=share * error)


def stated_gradient(
    graph: Graph, embedding: ArrayLike, kernel: Kernel, *, rows: ArrayLike | None = None, n_jobs: int = -1
) -> Floats:
    """The gradient of c2 by the places of ``rows``, all of them unless given, with eq. 13's ε (eq. 26)."""
    pairs = _Pairs(graph, embedding, None, 0, n_jobs, rows)
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
    """The mean of what an epoch of the sampler steps along, for ``rows`` or for all of them (eq. 25).

    With ``schedule.update_negatives`` it is the mean of eq. 27, the gradient of :func:`effective_loss`. Gradients are
    not clipped here.
    """
    schedule = schedule or Schedule()
    graph, degree = _firing(graph)
    pairs = _Pairs(graph, embedding, None, 0, n_jobs, rows)
    share = schedule.repulsion_strength * schedule.negative_sample_rate / max(graph.n, 1)
    own = degree if pairs.rows is None else degree[pairs.rows]
    push = own[:, None] * pairs.forces("repel", kernel)
    if schedule.update_negatives:
        push += pairs.forces("repel", kernel, degree)
    return 2.0 * pairs.edge_forces("attract", kernel) + share * push


class History:
    """Losses along a layout: a callback that evaluates ``loss(embedding)`` every so many epochs and at the end."""

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


class _Pairs:
    """Sums of a term over the pairs of a map, all of them or the graph's edges."""

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
        self._places = _places(graph, embedding)
        self._groups = _groups(samples, graph.n)
        self._plain = cpu.PairSums(self._places, None)
        self.rows = None if rows is None else _checked_rows(rows, graph.n)

    def over_all(self, term: str, kernel: Kernel, degree: Floats | None = None) -> tuple[float, float]:
        """Σ_i w_i Σ_{j ≠ i} t(d²_ij), w_i = 1 or the degree, and its standard error."""
        quantity = _quantity(term, kernel)
        if self._groups is None or self._graph.n < 2:
            # Every pair once, with the weights of both rows.
            return float(self._weighted(degree).costs(quantity, self._n_jobs).sum()), 0.0
        value, variance = self._plain.draws(quantity, self._groups, self._seed, self._n_jobs)
        weight = 1.0 if degree is None else degree
        return float((weight * value).sum()), math.sqrt(float((weight * weight * variance).sum()))

    def over_edges(self, term: str, kernel: Kernel) -> float:
        """Σ p_ij t(d²_ij) over the edges."""
        return float(self._edges(term, kernel, vectors=False).sum())

    def forces(self, term: str, kernel: Kernel, degree: Floats | None = None) -> Floats:
        """Σ_j w_j t(d²_ij) (y_i - y_j) of the chosen rows."""
        return self._weighted(degree).forces(_quantity(term, kernel), self.rows, self._n_jobs)

    def edge_forces(self, term: str, kernel: Kernel) -> Floats:
        """Σ_j p_ij t(d²_ij) (y_i - y_j) of the chosen rows."""
        return self._edges(term, kernel, vectors=True)

    def _edges(self, term: str, kernel: Kernel, vectors: bool) -> Floats:
        graph = self._graph
        return self._plain.edges(
            _quantity(term, kernel), vectors, graph.indptr, graph.indices, graph.weights, self.rows, self._n_jobs
        )

    def _weighted(self, degree: Floats | None) -> cpu.PairSums:
        return self._plain if degree is None else cpu.PairSums(self._places, degree.astype(np.float32))


def _quantity(term: str, kernel: Kernel) -> cpu.PairQuantity:
    return cpu.PairQuantity(term, "umap", kernel.a, kernel.b, 1.0)


def _places(graph: Graph, embedding: ArrayLike) -> NDArray[np.float32]:
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
    """Groups of partners to draw for every row, or None to look at all rows."""
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


def _firing(graph: Graph) -> tuple[Graph, Floats]:
    """The graph with weights relative to the largest, and its degrees."""
    most = float(graph.weights.max(initial=0.0))
    if most not in (0.0, 1.0):
        graph = Graph(graph.indptr, graph.indices, graph.weights / most, graph.n_tails, graph.rho, graph.sigma)
    return graph, graph.degree()
