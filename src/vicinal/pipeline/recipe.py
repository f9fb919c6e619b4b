"""The recipe of a fit: how rows become a map, as values that are kept with the map.

A :class:`Recipe` holds the affinity (how a neighbor table becomes a graph), the initializer, the plan of the layout,
and what labels and densities add. Rows that are placed later follow the same recipe, even if the estimator's parameters
have changed since.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.entropic import entropic_bipartite_graph, entropic_graph, total_of_units
from vicinal.graph.fuzzy import POOL, bipartite_graph, fuzzy_graph, local_memberships, prefer_shared
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import Supervision
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.initialize.start import initial_embedding, narrow_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.density import EXACT_SHARE, EXACT_SHIFT, PLACING_SHARE, DensityTerm, Radii
from vicinal.layout.forces import Forces, Kernel
from vicinal.layout.full import FullLayout, Phase, Repulsion
from vicinal.layout.sampled import Layout, Placement
from vicinal.layout.schedule import (
    DECAY,
    LARGE_ROWS,
    SMALL_ROWS,
    Schedule,
    default_epochs,
    default_hold,
    default_longest_push,
    default_single,
    default_sweeps,
)
from vicinal.layout.surroundings import spread_rows, surrounded
from vicinal.neighbors.search import Method
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData
from vicinal.pipeline.arrangement import arranged
from vicinal.pipeline.row_options import RowOptions

if TYPE_CHECKING:
    from vicinal.graph.partition import EdgeList

Places = NDArray[np.float32]
Weights = NDArray[np.floating[Any]]
Start = tuple[Places, str]
Memberships = tuple[NDArray[np.int32], Places, Places, Places]

# New rows move among others that stay: fewer epochs, and a smaller learning rate.
PLACEMENT_EPOCHS_SMALL, PLACEMENT_EPOCHS_LARGE, PLACEMENT_RATE = 100, 30, 0.25

# Rows that start from a coarse layout need fewer epochs, and a smaller first learning rate
# (docs/decisions/2026-11-arrangement.md).
ARRANGED_EPOCHS, ARRANGED_RATE, ARRANGED_SINGLE = 120, 0.6, 0.6

LARGEVIS_PLACEMENT_EPOCHS = 50
NEGATIVE_POWER = 0.75  # LargeVis draws negatives in proportion to degree^0.75, as word2vec does
# How many edge samples a row of LargeVis needs does not depend on the perplexity.
SAMPLES_PER_ROW, LARGE_SAMPLES_PER_ROW, LEAST_EPOCHS = 4_000, 2_400, 100
# Share of the epochs with a single negative. Fashion-MNIST, mean of 3 seeds: 10-NN accuracy, recall@15 and seconds of
# the layout by (samples per row, share): (4,000, 0.75) 0.824, 0.203, 3.4; (3,600, 0.5) 0.830, 3.5; (2,400, 0.2) 0.829,
# 0.215, 2.8; (2,400, 0) 0.827, 3.0; (2,000, 0.2) 0.828, 0.215, 2.3.
LARGEVIS_SINGLE = 0.2
# Fashion-MNIST, mean of 2 seeds: 10-NN accuracy 0.829 in 28 s of processor time with two sweeps, in 21 s with one.
LARGEVIS_SWEEPS, LARGEVIS_LARGE_SWEEPS = 2, 1
# A few negatives of a large weight are a noise that breaks small data into beads. Small data therefore draws more of
# them, each with its share of a lower weight (docs/decisions/2026-11-largevis-small.md). Short pushes do not help.
LARGEVIS_GAMMA, LARGEVIS_SMALL_GAMMA = 20.0, 12.0
LARGEVIS_SMALL_SWEEPS, SMALL_NEGATIVES = 4, 8

# t-SNE's new rows: each moves in the fixed landscape of the map.
TSNE_PLACEMENT = Phase(100, 1.5, 0.1, 0.8)

# Exponent of the learning rate of ghosts (pipeline/judge.py). Correlation of their spread with that of whole fits for
# 1, 1.5, 2, 3: digits 0.60, 0.71, 0.70, 0.71; 300 of them 0.46 for 1.5, 0.66 and 0.62.
GHOST_DECAY = 3.0


class Refused(ValueError):
    """A step that a method or an executor cannot carry out; the message names both."""


def _initial_task(graph: Graph, data: TrainingData | None, n_components: int, seed: int) -> InitialTask:
    if data is None:
        return InitialTask(graph, None, n_components, seed)
    return InitialTask(graph, data.coordinates, n_components, seed, data.n_jobs)


@dataclass(frozen=True)
class EdgeTotals:
    """The rows of a graph, the sum of its weights and the largest of them."""

    n: int
    total: float
    heaviest: float

    @staticmethod
    def of(graph: Graph) -> EdgeTotals:
        """Measure a graph."""
        weights = graph.weights
        return EdgeTotals(graph.n, float(weights.sum(dtype=np.float64)), float(weights.max(initial=0.0)))


@dataclass(frozen=True)
class SampledPlan:
    """UMAP: edges and negatives are sampled (survey Algorithm 1).

    A plan says how a layout is run. ``stops`` are the epochs whose maps are wanted, the last of which ends the layout;
    None chooses by the rows. A plan that ``arranges`` chooses its start by the data (arrangement.py), whatever
    initializer is named.
    """

    forces: Forces
    stops: tuple[int, ...] | None = None
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    update_negatives: bool = False
    placement_seed: int = 42
    arranges: bool = False

    orients: ClassVar[bool] = True  # components of a small map are turned back to the direction in which they started
    draws_at_random: ClassVar[bool] = True  # the layout depends on its seed
    can_update: ClassVar[bool] = True  # rows can be added to a finished map

    @property
    def kernel(self) -> Kernel:
        """The kernel of the map's similarities; None if it cannot be chosen."""
        return self.forces.kernel

    @property
    def has_outside(self) -> bool:
        """Whether rows without edges can be drawn around the map."""
        return self.forces.space.is_euclidean

    @property
    def first_rate(self) -> float:
        """The learning rate of the first epoch."""
        return self.learning_rate

    def start(self, init: str, graph: Graph, data: TrainingData | None, n_components: int, seed: int) -> Start:
        """Compute the first places, and the name of the initializer that was used; ``data`` gives coordinates."""
        # Rows without edges would take most of the room, since each of them is a component of the graph.
        isolated = graph.isolated()
        linked = np.flatnonzero(~isolated)
        if 0 < len(linked) < graph.n:
            graph, data = graph.among(linked), None if data is None else data.take(linked)
        places, used = self.first_places(init, _initial_task(graph, data, n_components, seed))
        if len(places) < len(isolated):
            places = surrounded(spread_rows(places, linked, len(isolated)), isolated)
        return self.forces.space.start(places), used

    def first_places(self, init: str, task: InitialTask) -> Start:
        """Compute the first places of rows that have edges, in a euclidean map of the usual size."""
        return arranged(task, self.forces, self.trial_schedule) if self.arranges else initial_embedding(init, task)

    @property
    def trial_schedule(self) -> Schedule:
        """Learning rate and negatives of layouts that only serve to find a start."""
        return self.refinement(0, 0, rate=1.0)

    def is_arranged(self, n: int) -> bool:
        """Tell whether ``n`` rows start from a coarse layout."""
        return self.arranges and n > LARGE_ROWS

    def epoch_stops(self, edges: EdgeTotals) -> list[int]:
        """Return the epochs whose maps are wanted; the last one ends the layout."""
        return [self.default_epochs(edges)] if self.stops is None else list(self.stops)

    def default_epochs(self, edges: EdgeTotals) -> int:
        """Return the number of epochs of a fit that asks for none."""
        return ARRANGED_EPOCHS if self.is_arranged(edges.n) else default_epochs(edges.n)

    def short_epochs(self, n: int) -> int:
        """Return the number of epochs for new rows among ``n`` that have their places."""
        if self.stops is not None:
            return self.stops[-1] // 3
        return PLACEMENT_EPOCHS_SMALL if n <= SMALL_ROWS else PLACEMENT_EPOCHS_LARGE

    def schedule(self, n_epochs: int, n: int) -> Schedule:
        """Return the schedule of a fit of ``n`` rows in ``n_epochs`` epochs."""
        refinement = self.refinement(n_epochs, n, rate=ARRANGED_RATE if self.is_arranged(n) else 1.0)
        return replace(
            refinement,
            decay=DECAY,
            constant_rate_share=default_hold(n),
            single_negative_share=self.single_negative_share(n),
            longest_push=self.longest_push(n),
        )

    def ghost_schedule(self, n_epochs: int, n: int) -> Schedule:
        """Return a short schedule that lays a finished map of ``n`` rows out again."""
        schedule = self.schedule(n_epochs, n)
        return replace(schedule, learning_rate=self.learning_rate, decay=GHOST_DECAY, constant_rate_share=0.0)

    def single_negative_share(self, n: int) -> float:
        """Return the share of the epochs in which a firing edge draws a single negative."""
        return ARRANGED_SINGLE if self.is_arranged(n) else default_single(n)

    def longest_push(self, n: int) -> float:
        """Return the longest move of a row by one negative; in other spaces coordinates have other units.

        Recall@15 of digits in the hyperbolic plane, mean of 5 seeds: 0.481 with the limit of euclidean maps, 0.517
        without one, 0.504 by umap-learn.
        """
        return default_longest_push(n) if self.forces.space.is_euclidean else math.inf

    def refinement(self, n_epochs: int, n: int, *, rate: float = PLACEMENT_RATE) -> Schedule:
        """Return the schedule that moves ``n`` rows of a finished map, at ``rate`` times the learning rate."""
        return Schedule(
            n_epochs,
            self.learning_rate * rate,
            self.negative_sample_rate,
            self.repulsion_strength,
            self.update_negatives,
            self.sweeps(n),
        )

    def sweeps(self, n: int) -> int:
        """Return the number of sweeps per epoch for ``n`` rows that move."""
        return default_sweeps(n)

    def negative_weights(self, degree: Callable[[], Weights], options: RowOptions) -> Weights | None:
        """Return the proportions in which rows are drawn as negatives; None draws uniformly.

        ``degree`` computes the sum of the weights of each row's edges.
        """
        return options.weight

    def layout(
        self,
        graph: Graph,
        start: Places,
        options: RowOptions,
        schedule: Schedule,
        *,
        seed: int,
        n_jobs: int,
        density: DensityTerm | None = None,
    ) -> Layout:
        negatives = self.negative_weights(graph.degree, options)
        if options.weight is not None:
            heaviest = graph.weights.max(initial=0.0)
            graph = graph.weighing_tails(options.weight)
            schedule = schedule.with_firings(max(1.0, float(graph.weights.max(initial=1.0) / (heaviest or 1.0))))
        return Layout(
            graph,
            start if options.pins is None else options.pins.start(start),
            self.forces,
            schedule,
            seed=seed,
            n_jobs=n_jobs,
            fixed=None if options.pins is None else options.pins.mask,
            negative_weights=negatives,
            density=density,
        )

    def place(
        self,
        graph: Graph,
        places: Places,
        keys: NDArray[np.uint64],
        *,
        negative_weights: Weights | None = None,
        n_jobs: int = -1,
        density: DensityTerm | None = None,
    ) -> Places:
        # A new row starts at the medoid of its neighbors. One sweep per epoch is enough, because the points that pull
        # and push it do not move.
        n_epochs, rate = self.short_epochs(len(places)), self.learning_rate * PLACEMENT_RATE
        layout = Placement(
            self.placement_graph(graph),
            neighbor_medoid(graph, places),
            places,
            self.forces,
            Schedule(n_epochs, rate, self.negative_sample_rate, self.repulsion_strength, sweeps=1),
            seed=self.placement_seed,
            n_jobs=n_jobs,
            row_keys=keys,
            negative_weights=negative_weights,
            density=density,
        )
        layout.step(n_epochs)
        return layout.embedding

    def placement_graph(self, graph: Graph) -> Graph:
        """Return the edges that pull new rows."""
        return graph

    def divergence(self, graph: Graph, places: Places, n_jobs: int) -> float | None:
        """Return the loss of a finished map if the plan reports it."""
        return None


@dataclass(frozen=True)
class LargeVisPlan(SampledPlan):
    """LargeVis: as many epochs as give a row enough edge samples, negatives drawn by degree (survey eq. 21, 23)."""

    def default_epochs(self, edges: EdgeTotals) -> int:
        if not edges.total > 0:
            return LEAST_EPOCHS
        samples_per_epoch = edges.total / edges.heaviest / edges.n
        samples = SAMPLES_PER_ROW if edges.n <= LARGE_ROWS else LARGE_SAMPLES_PER_ROW
        return max(LEAST_EPOCHS, round(samples / samples_per_epoch))

    def short_epochs(self, n: int) -> int:
        return LARGEVIS_PLACEMENT_EPOCHS

    def sweeps(self, n: int) -> int:
        if n <= SMALL_ROWS:
            return LARGEVIS_SMALL_SWEEPS
        return LARGEVIS_SWEEPS if n <= LARGE_ROWS else LARGEVIS_LARGE_SWEEPS

    def schedule(self, n_epochs: int, n: int) -> Schedule:
        """Return the schedule of a fit of ``n`` rows, in which small data has more and weaker negatives."""
        schedule, share = super().schedule(n_epochs, n), SMALL_NEGATIVES if n <= SMALL_ROWS else 1
        return replace(
            schedule,
            negative_sample_rate=share * schedule.negative_sample_rate,
            repulsion_strength=schedule.repulsion_strength / share,
        )

    def single_negative_share(self, n: int) -> float:
        return LARGEVIS_SINGLE if n > LARGE_ROWS else 0.0

    def longest_push(self, n: int) -> float:
        return math.inf

    def negative_weights(self, degree: Callable[[], Weights], options: RowOptions) -> Weights | None:
        weights = degree() ** NEGATIVE_POWER
        return weights if weights.sum() > 0 else None

    def placement_graph(self, graph: Graph) -> Graph:
        """Return edges in units of each row's heaviest, so that what fires for a row depends on that row alone."""
        return graph.relative()


@dataclass(frozen=True)
class FullPlan:
    """t-SNE: gradient descent on all pairs in ``phases`` (survey eq. 20, 22)."""

    phases: tuple[Phase, ...]
    dof: float = 1.0
    repulsion: Repulsion = "auto"

    kernel: ClassVar[None] = None
    has_outside: ClassVar[bool] = True
    orients: ClassVar[bool] = False
    draws_at_random: ClassVar[bool] = False
    can_update: ClassVar[bool] = False
    arranges: ClassVar[bool] = False
    negative_sample_rate: ClassVar[int] = 0

    @property
    def forces(self) -> Forces:
        raise Refused("lay_out: t-SNE's layout adds up all pairs, it does not sample forces")

    @property
    def first_rate(self) -> float:
        return self.phases[0].learning_rate

    def start(self, init: str, graph: Graph, data: TrainingData | None, n_components: int, seed: int) -> Start:
        return narrow_embedding(init, _initial_task(graph, data, n_components, seed))

    def epoch_stops(self, edges: EdgeTotals) -> list[int]:
        return [sum(phase.n_epochs for phase in self.phases)]

    def schedule(self, n_epochs: int, n: int) -> Any:
        return self.phases

    def ghost_schedule(self, n_epochs: int, n: int) -> Any:
        return (replace(self.phases[-1], n_epochs=n_epochs),)

    def short_epochs(self, n: int) -> int:
        return TSNE_PLACEMENT.n_epochs

    def refinement(self, n_epochs: int, n: int, *, rate: float = PLACEMENT_RATE) -> Schedule:
        raise Refused("update: t-SNE's layout moves all rows at once, so rows cannot be added to a finished map")

    def negative_weights(self, degree: Callable[[], Weights], options: RowOptions) -> None:
        return None

    def layout(
        self,
        graph: Graph,
        start: Places,
        options: RowOptions,
        schedule: tuple[Phase, ...],
        *,
        seed: int,
        n_jobs: int,
        density: DensityTerm | None = None,
    ) -> FullLayout:
        return FullLayout(graph, start, schedule, dof=self.dof, method=self.repulsion, n_jobs=n_jobs)

    def place(
        self,
        graph: Graph,
        places: Places,
        keys: NDArray[np.uint64],
        *,
        negative_weights: Weights | None = None,
        n_jobs: int = -1,
        density: DensityTerm | None = None,
    ) -> Places:
        layout = FullLayout(
            graph,
            neighbor_medoid(graph, places),
            [TSNE_PLACEMENT],
            dof=self.dof,
            method=self.repulsion,
            n_jobs=n_jobs,
            reference=places,
        )
        layout.step(layout.n_epochs)
        return layout.embedding

    def divergence(self, graph: Graph, places: Places, n_jobs: int) -> float:
        """Return t-SNE's loss of a map (survey eq. 22), over rows that have edges; it is 0 if the graph has none."""
        from vicinal.quality.losses import kl_divergence, total_weight

        if not total_weight(graph) > 0:
            return 0.0
        return float(kl_divergence(*_linked(graph, places), self.dof, n_jobs=n_jobs))

    def gradient_norm(self, graph: Graph, places: Places, n_jobs: int) -> float:
        """Return the norm of the gradient of that loss: the length of one step from rest, whose gains are 1.2."""
        graph, places = _linked(graph, places)
        if not graph.n:
            return 0.0
        step = Phase(1, learning_rate=float(graph.n), momentum=0.0)  # a row's share of the gradient is about 1 / n
        layout = FullLayout(graph, places, [step], dof=self.dof, method=self.repulsion, n_jobs=n_jobs)
        layout.step()
        moved = layout.embedding - np.asarray(places, dtype=np.float64)
        return float(np.linalg.norm(moved - moved.mean(axis=0)) / (1.2 * step.learning_rate))


def _linked(graph: Graph, places: Places) -> tuple[Graph, Places]:
    """Return the rows that have edges."""
    isolated = graph.isolated()
    if not isolated.any():
        return graph, places
    linked = np.flatnonzero(~isolated)
    return graph.among(linked), places[linked]


# Neighbors in the table per unit of perplexity: the Gaussian is small beyond (van der Maaten's number).
NEIGHBORS_PER_PERPLEXITY = 3


def _within(neighbors: Neighbors, limit: float) -> Neighbors:
    return neighbors.within(limit) if limit < math.inf else neighbors


@dataclass(frozen=True)
class FuzzyAffinity:
    """UMAP's memberships (survey eq. 1-4)."""

    n_neighbors: int = 15
    local_connectivity: float = 1.0
    set_op_mix_ratio: float = 1.0
    disconnection_distance: float | None = None

    composable: ClassVar[bool] = True  # graphs of this kind can be joined by fuzzy set operations
    normalized: ClassVar[bool] = False  # the weights sum to 1 over the whole graph

    @property
    def perplexity(self) -> float:
        """The perplexity of a row's probabilities; raises Refused if the affinity has none."""
        raise Refused("perplexity: memberships of a fuzzy graph have none")

    def columns(self, n: int) -> int:
        """Return the columns of the neighbor table of ``n`` rows, the row itself included."""
        return min(self.n_neighbors, n)

    query_columns = columns

    def search_columns(self, n: int, prefers_shared: bool) -> int:
        """Return the columns of the table that is searched: more than needed if neighbors are chosen from it."""
        k = self.columns(n)
        return min(POOL * (k - 1) + 1, n) if prefers_shared else k

    def limit(self, unrelated: float | None) -> float:
        """Return the cut-off: rows at least this far apart are not neighbors.

        ``unrelated`` is the metric's largest distance, that of rows with nothing in common, or None.
        """
        limit = unrelated if self.disconnection_distance is None else self.disconnection_distance
        return math.inf if limit is None else limit

    def related(self, neighbors: Neighbors, unrelated: float | None, n: int) -> Neighbors:
        """Return the neighbors that the graph of ``n`` rows joins: nearer than the cut-off, and chosen if too many."""
        neighbors, k = _within(neighbors, self.limit(unrelated)), self.columns(n)
        return neighbors if unrelated is None or neighbors.k <= k else prefer_shared(neighbors, k, unrelated)

    def graph(self, neighbors: Neighbors, n_jobs: int) -> Graph:
        """Build the symmetric graph of the fitted rows."""
        return fuzzy_graph(
            neighbors,
            local_connectivity=self.local_connectivity,
            set_op_mix_ratio=self.set_op_mix_ratio,
            n_jobs=n_jobs,
        )

    def memberships(self, rows: NDArray[np.int32], neighbors: Neighbors, n_jobs: int) -> Memberships:
        """Return neighbors, memberships, rho and sigma of some rows; raises Refused if they depend on other rows."""
        return local_memberships(rows, neighbors, local_connectivity=self.local_connectivity, n_jobs=n_jobs)

    def graph_to_known(self, neighbors: Neighbors, n_known: int, n_jobs: int) -> Graph:
        """Build the bipartite graph from new rows to the fitted ones."""
        return bipartite_graph(neighbors, n_known, local_connectivity=self.local_connectivity, n_jobs=n_jobs)

    uses_mean_distance: ClassVar[bool] = True  # the edges of a row depend on the mean distance of the whole table

    def directed_part(self, neighbors: Neighbors, first: int, n: int, mean_distance: float, n_jobs: int) -> Graph:
        """Build the directed graph of the rows from ``first`` on, given their lines of the table of ``n`` rows."""
        from vicinal.graph.partition import fuzzy_part

        return fuzzy_part(neighbors, first, n, mean_distance, local_connectivity=self.local_connectivity, n_jobs=n_jobs)

    def joined_part(self, part: Graph, first: int, incoming: EdgeList, n_jobs: int) -> Graph:
        """Combine both directions of the edges of a part."""
        from vicinal.graph.partition import joined_part

        return joined_part(part, first, incoming, self.set_op_mix_ratio, n_jobs)

    def divisor(self, units: int) -> float:
        """Return what divides the weights, given their sum as a number of units (graph/entropic.py)."""
        return 1.0


@dataclass(frozen=True)
class EntropicAffinity:
    """The probabilities of t-SNE and LargeVis (survey eq. 18, 19).

    ``normalized`` weights sum to 1 over the whole graph. ``query_perplexity`` is that of new rows, if it differs: few
    neighbors place a row more sharply.
    """

    perplexity: float = 30.0
    normalized: bool = True
    query_perplexity: float | None = None

    composable: ClassVar[bool] = False

    @property
    def set_op_mix_ratio(self) -> float:
        raise Refused("set_op_mix_ratio: probabilities are averaged, not joined by fuzzy set operations")

    def memberships(self, rows: NDArray[np.int32], neighbors: Neighbors, n_jobs: int) -> Memberships:
        raise Refused("build_graph: the graph of t-SNE and LargeVis cannot grow row by row")

    def columns(self, n: int) -> int:
        return min(n, int(NEIGHBORS_PER_PERPLEXITY * self.perplexity) + 1)

    def query_columns(self, n: int) -> int:
        if self.query_perplexity is None:
            return self.columns(n)
        return min(n, int(NEIGHBORS_PER_PERPLEXITY * self.query_perplexity))

    def search_columns(self, n: int, prefers_shared: bool) -> int:
        return self.columns(n)

    def limit(self, unrelated: float | None) -> float:
        return math.inf if unrelated is None else unrelated

    def related(self, neighbors: Neighbors, unrelated: float | None, n: int) -> Neighbors:
        return _within(neighbors, self.limit(unrelated))

    def graph(self, neighbors: Neighbors, n_jobs: int) -> Graph:
        return entropic_graph(neighbors, self.perplexity, normalized=self.normalized, n_jobs=n_jobs)

    def graph_to_known(self, neighbors: Neighbors, n_known: int, n_jobs: int) -> Graph:
        perplexity = self.perplexity if self.query_perplexity is None else self.query_perplexity
        return entropic_bipartite_graph(neighbors, n_known, perplexity, n_jobs=n_jobs)

    uses_mean_distance: ClassVar[bool] = False

    def directed_part(self, neighbors: Neighbors, first: int, n: int, mean_distance: float, n_jobs: int) -> Graph:
        from vicinal.graph.partition import entropic_part

        return entropic_part(neighbors, first, n, self.perplexity, n_jobs=n_jobs)

    def joined_part(self, part: Graph, first: int, incoming: EdgeList, n_jobs: int) -> Graph:
        from vicinal.graph.partition import joined_part

        return joined_part(part, first, incoming, None, n_jobs)

    def divisor(self, units: int) -> float:
        return total_of_units(units) if self.normalized and units else 1.0


# Plans have the same methods, and so have affinities: no step of the pipeline asks for their class.
Plan = SampledPlan | FullPlan
Affinity = FuzzyAffinity | EntropicAffinity


@dataclass(frozen=True)
class DensityPlan:
    """densMAP: how strongly the map's local radii follow the data's; without ``match`` they are only reported."""

    match: bool = True
    dens_lambda: float = 2.0
    fraction: float = 0.3
    variance_shift: float = 0.1

    @property
    def placing_weight(self) -> float:
        """The weight of the radii of new rows."""
        return PLACING_SHARE * self.dens_lambda

    def term(self, radii: Radii) -> DensityTerm | None:
        """Return the term that pulls a map towards these radii."""
        if not self.match:
            return None
        return radii.term(EXACT_SHARE * self.dens_lambda, self.fraction, EXACT_SHIFT * self.variance_shift)


@dataclass(frozen=True)
class Recipe:
    """Everything that decides how rows become a map, except the rows and the seed.

    ``unique`` lays out equal rows as one. ``output`` "graph" ends a fit after its graph. ``isolated`` says whether rows
    without edges are shown around the map or have NaN as coordinates.
    """

    affinity: Affinity
    plan: Plan
    n_components: int = 2
    init: str = "spectral"
    search: Method = "auto"
    supervision: Supervision | None = None
    density: DensityPlan | None = None
    unique: bool = False
    record_loss: bool = False
    output: Literal["embedding", "graph"] = "embedding"
    isolated: Literal["around", "nan"] = "around"

    def shown(self, places: Places, isolated: NDArray[np.bool_]) -> Places:
        """Return places as results show them: with NaN for isolated rows, if that is wanted."""
        if self.isolated == "around" or not isolated.any():
            return places
        return np.where(isolated[:, None], np.float32(np.nan), places)

    def supervised(self, graph: Graph, labels: NDArray[Any] | None) -> Graph:
        """Intersect a graph with labels, if there are any."""
        if labels is None or self.supervision is None:
            return graph
        return self.supervision.apply(graph, labels)

    def start(self, graph: Graph, data: TrainingData | None, seed: int) -> Start:
        """Compute the first places, and the name of the initializer that was used."""
        return self.plan.start(self.init, graph, data, self.n_components, seed)
