"""What a fit does, stage by stage, as values that are kept with the map.

A :class:`Recipe` names the affinity (how a neighbor table becomes a graph), the start, the plan of the layout, and what
labels and densities add. Rows that are placed later are treated by the same recipe, whatever has become of the
estimator's parameters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.entropic import entropic_bipartite_graph, entropic_graph, total_of_units
from vicinal.graph.fuzzy import POOL, bipartite_graph, fuzzy_graph, prefer_shared
from vicinal.graph.graph import Graph
from vicinal.graph.supervision import Supervision
from vicinal.initialize.medoid import aligned_to, neighbor_medoid
from vicinal.initialize.start import initial_embedding, narrow_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.density import EXACT_SHARE, EXACT_SHIFT, PLACING_SHARE, DensityTerm, Radii
from vicinal.layout.forces import Forces
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
from vicinal.runtime.cached import cached

if TYPE_CHECKING:
    from vicinal.graph.partition import EdgeList


@dataclass(frozen=True)
class Pins:
    """Rows that stay at given places. ``mask`` marks them; ``places`` has a line for every row."""

    mask: NDArray[np.bool_]
    places: NDArray[np.float32]

    def start(self, start: NDArray[np.float32]) -> NDArray[np.float32]:
        """Move a start as close as possible to the pinned places, with the pinned rows exactly there."""
        if not self.mask.any():
            return start
        moved = aligned_to(start, self.mask, self.places[self.mask])
        return np.where(self.mask[:, None], self.places, moved).astype(np.float32)


@dataclass(frozen=True)
class RowFacts:
    """Checked labels or numbers, weights and pins of the rows of a fit; None if not given."""

    y: NDArray[Any] | None = None
    weight: NDArray[np.float32] | None = None
    pins: Pins | None = None

    def with_equal_rows_pinned(self, first: NDArray[np.int64]) -> RowFacts:
        """Return the facts with every row pinned that equals a pinned one: equal rows share one place.

        ``first`` names for every row the first one that equals it. Raise ValueError if equal rows are pinned at
        different places.
        """
        if self.pins is None:
            return self
        mask, places = self.pins.mask, self.pins.places
        pinned = np.flatnonzero(mask)
        leader = np.full(len(first), -1, dtype=np.int64)
        leader[first[pinned[::-1]]] = pinned[::-1]  # the first pinned row of every group of equal rows
        leader = leader[first]
        differs = (places[pinned] != places[leader[pinned]]).any(axis=1)
        if differs.any():
            row = int(pinned[np.argmax(differs)])
            raise ValueError(
                f"fixed_positions has different places for rows {int(leader[row])} and {row}, which are equal"
            )
        shared = np.where((leader >= 0)[:, None], places[np.maximum(leader, 0)], np.float32(0))
        return replace(self, pins=Pins(leader >= 0, shared))

    def pinned(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the places with pinned rows exactly at theirs."""
        return places if self.pins is None else np.where(self.pins.mask[:, None], self.pins.places, places)

    def take(self, rows: NDArray[np.int64], weight: NDArray[np.float32] | None) -> RowFacts:
        """Return the facts of some rows, with the given weights."""
        return RowFacts(
            None if self.y is None else self.y[rows],
            weight,
            None if self.pins is None else Pins(self.pins.mask[rows], self.pins.places[rows]),
        )

    def extended(self, n: int, m: int, y: NDArray[Any] | None) -> RowFacts:
        """Return the facts of these ``n`` rows and ``m`` more with labels ``y`` or none, weight 1 and no pins."""
        pins = self.pins
        if pins is not None:
            free = np.zeros((m, pins.places.shape[1]), np.float32)
            pins = Pins(np.concatenate([pins.mask, np.zeros(m, bool)]), np.concatenate([pins.places, free]))
        weight = None if self.weight is None else np.concatenate([self.weight, np.ones(m, np.float32)])
        return RowFacts(_joined_labels(self.y, n, y, m), weight, pins)

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        if self.pins is not None and (
            self.pins.mask.ndim != 1 or self.pins.places.ndim != 2 or len(self.pins.mask) != len(self.pins.places)
        ):
            raise ValueError("the pinned rows of the model have no places")


def _joined_labels(y: NDArray[Any] | None, n: int, more: NDArray[Any] | None, m: int) -> NDArray[Any] | None:
    if y is None and more is None:
        return None
    old = unlabeled(n, more) if y is None else y
    new = unlabeled(m, old) if more is None else more
    if old.shape[1:] != new.shape[1:]:
        raise ValueError(f"y must have shape {old.shape[1:]} per row like the labels so far, got {new.shape[1:]}")
    kinds = {"text" if kind in "US" else kind for kind in (old.dtype.kind, new.dtype.kind)}
    mixed = "O" in kinds or ("text" in kinds and len(kinds) > 1)
    return np.concatenate([old.astype(object), new.astype(object)] if mixed else [old, new])


def unlabeled(n: int, like: NDArray[Any] | None) -> NDArray[Any]:
    """Return ``n`` missing labels of the same type as ``like``: -1 for integers, NaN for floats, otherwise None."""
    assert like is not None
    shape = (n, *like.shape[1:])
    if like.dtype.kind in "iu":
        return np.full(shape, -1, dtype=np.int64)
    return np.full(shape, np.nan) if like.dtype.kind == "f" else np.full(shape, None, dtype=object)


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float32] | None:
    """Check for one number of at least 0 per row, not all of them 0; uniform weights are treated as no weights."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from error
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of {n} rows, got shape {weight.shape}")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        raise ValueError(f"sample_weight must be finite and at least 0, but is not in row {int(np.argmax(bad))}")
    if not weight.any():
        raise ValueError("sample_weight must not be zero in all rows: at least one row must count")
    return None if (weight == weight[0]).all() else weight.astype(np.float32)


def check_pins(mask: Any, positions: Any, n: int, n_components: int) -> Pins | None:
    """Check the pinned rows and their places; both arguments must be given together, or neither."""
    if mask is None and positions is None:
        return None
    if mask is None or positions is None:
        raise ValueError("fixed_mask and fixed_positions must be given together")
    marked = np.asarray(mask)
    if marked.dtype != np.bool_ or marked.shape != (n,):
        raise ValueError(f"fixed_mask must hold one bool for each of {n} rows, got {marked.dtype} of {marked.shape}")
    try:
        places = np.asarray(positions, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fixed_positions must hold numbers: {error}") from error
    if places.shape != (n, n_components):
        raise ValueError(f"fixed_positions must have shape {(n, n_components)}, got {places.shape}")
    bad = marked & ~np.isfinite(places).all(axis=1)
    if bad.any():
        raise ValueError(f"fixed_positions contains NaN or infinity, first in row {int(np.argmax(bad))}")
    return Pins(marked.copy(), np.where(marked[:, None], places, np.float32(0)))


@dataclass(frozen=True)
class Selection:
    """The rows that are laid out.

    ``rows`` lists them (None: all rows) and ``facts`` are theirs. ``position`` says for every row of the data which of
    the laid out rows has its place, or -1 if none has.
    """

    rows: NDArray[np.int64] | None
    position: NDArray[np.int64]
    facts: RowFacts

    @cached
    def _is_identity(self) -> bool:
        """Whether every row is laid out and has a place of its own."""
        return self.rows is None and bool((self.position == np.arange(len(self.position))).all())

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the rows that are laid out."""
        return values if self.rows is None else values[self.rows]

    def spread(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the places of all rows; a row without one is put in the middle of the map."""
        if self._is_identity:
            return places
        spread: NDArray[np.float32] = places[self.position]
        missing = self.position < 0
        if missing.any():
            spread[missing] = places.mean(axis=0, dtype=np.float64)
        return spread


def select_rows(data: TrainingData, facts: RowFacts, *, unique: bool = False) -> Selection:
    """Choose the rows to lay out: those whose weight is not 0, and with ``unique`` only the first of equal rows.

    Equal rows share one place in any case, since a row that is placed later could not be told apart from them.
    """
    first = data.duplicates.first
    counts = np.ones(data.n, dtype=bool) if facts.weight is None else facts.weight > 0
    if counts.all() and not unique:
        return Selection(None, first, facts)
    # The first row that counts, for each group of equal rows.
    leader = np.full(data.n, -1, dtype=np.int64)
    counting = np.flatnonzero(counts)[::-1]
    leader[first[counting]] = counting
    leader = leader[first]
    rows = np.unique(leader[leader >= 0]) if unique else np.flatnonzero(counts)
    position = np.where(leader >= 0, np.searchsorted(rows, leader), -1)
    return Selection(rows, position, facts.take(rows, _weights(facts.weight, rows, position, unique)))


def _weights(
    weight: NDArray[np.float32] | None, rows: NDArray[np.int64], position: NDArray[np.int64], unique: bool
) -> NDArray[np.float32] | None:
    """Return the weights of the rows that are laid out; a row that stands for equal ones has the sum of theirs."""
    if weight is None:
        return None
    own = weight[rows]
    if unique:
        placed = position >= 0
        own = np.bincount(position[placed], weights=weight[placed], minlength=len(rows)).astype(np.float32)
    return None if (own == own[0]).all() else own


# New rows move among others that stay: fewer epochs, and a smaller learning rate.
PLACEMENT_EPOCHS_SMALL, PLACEMENT_EPOCHS_LARGE, PLACEMENT_RATE = 100, 30, 0.25

LARGEVIS_PLACEMENT_EPOCHS = 50
NEGATIVE_POWER = 0.75  # LargeVis draws negatives in proportion to degree^0.75, as word2vec does
# How many edge samples a row of LargeVis needs does not depend on the perplexity.
SAMPLES_PER_ROW, LARGE_SAMPLES_PER_ROW, LEAST_EPOCHS = 4_000, 2_400, 100
# Share of the epochs with a single negative. Fashion-MNIST, mean of 3 seeds: 10-NN accuracy, recall@15 and seconds of
# the layout by (samples per row, share): (4,000, 0.75) 0.824, 0.203, 3.4; (3,600, 0.5) 0.830, 3.5; (2,400, 0.2) 0.829,
# 0.215, 2.8; (2,400, 0) 0.827, 3.0; (2,000, 0.2) 0.828, 0.215, 2.3. Version 0.1: 0.827, 8.3.
LARGEVIS_SINGLE = 0.2
# Fashion-MNIST, mean of 2 seeds: 10-NN accuracy 0.829 in 28 s of processor time with two sweeps, in 21 s with one.
LARGEVIS_SWEEPS, LARGEVIS_LARGE_SWEEPS = 2, 1

# t-SNE's new rows: each moves in the fixed landscape of the map.
TSNE_PLACEMENT = Phase(100, 1.5, 0.1, 0.8)


@dataclass(frozen=True)
class Reference:
    """A finished map that new rows are placed in: its places, and in which proportion its rows are drawn as negatives
    (None: uniformly)."""

    places: NDArray[np.float32]
    negative_weights: NDArray[np.floating[Any]] | None = None


@dataclass(frozen=True)
class SampledPlan:
    """UMAP: edges and negatives are sampled (survey Algorithm 1).

    ``stops`` are the epochs whose maps are wanted, the last of which ends the layout; None chooses by the rows.
    """

    forces: Forces
    stops: tuple[int, ...] | None = None
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    update_negatives: bool = False
    placement_seed: int = 42

    def epoch_stops(self, graph: Graph) -> list[int]:
        """Return the epochs whose maps are wanted."""
        return [self.default_epochs(graph)] if self.stops is None else list(self.stops)

    def default_epochs(self, graph: Graph) -> int:
        """Return the number of epochs of a fit that asks for none."""
        return default_epochs(graph.n)

    def short_epochs(self, n: int) -> int:
        """Return the number of epochs for new rows among ``n`` that have their places."""
        if self.stops is not None:
            return self.stops[-1] // 3
        return PLACEMENT_EPOCHS_SMALL if n <= SMALL_ROWS else PLACEMENT_EPOCHS_LARGE

    def schedule(self, n_epochs: int, n: int) -> Schedule:
        """Return the schedule of a fit of ``n`` rows in so many epochs."""
        refinement = self.refinement(n_epochs, n, rate=1.0)
        return replace(
            refinement, decay=DECAY, hold=default_hold(n), single=self.single(n), longest_push=self.longest_push(n)
        )

    def single(self, n: int) -> float:
        """Return the share of the epochs in which a firing edge draws a single negative."""
        return default_single(n)

    def longest_push(self, n: int) -> float:
        """Return the longest move of a row by one negative."""
        return default_longest_push(n)

    def refinement(self, n_epochs: int, n: int, *, rate: float) -> Schedule:
        """Return the schedule that moves ``n`` rows of a map on, at ``rate`` times the learning rate."""
        return Schedule(
            n_epochs,
            self.learning_rate * rate,
            self.negative_sample_rate,
            self.repulsion_strength,
            self.update_negatives,
            self.sweeps(n),
        )

    def _placement_schedule(self, n_epochs: int) -> Schedule:
        # One sweep per epoch is enough, because the points that pull and push a new row do not move.
        rate = self.learning_rate * PLACEMENT_RATE
        return Schedule(n_epochs, rate, self.negative_sample_rate, self.repulsion_strength, sweeps=1)

    def sweeps(self, n: int) -> int:
        """Return the number of sweeps per epoch for ``n`` rows that move."""
        return default_sweeps(n)

    def negative_weights(self, graph: Graph, facts: RowFacts) -> NDArray[np.floating[Any]] | None:
        """Return in which proportion rows are drawn as negatives; None if uniformly."""
        return facts.weight

    def layout(
        self,
        graph: Graph,
        start: NDArray[np.float32],
        facts: RowFacts,
        schedule: Schedule,
        *,
        seed: int,
        n_jobs: int,
        density: DensityTerm | None = None,
    ) -> Layout:
        """Build the layout of a fit."""
        negatives = self.negative_weights(graph, facts)
        if facts.weight is not None:
            heaviest = graph.weights.max(initial=0.0)
            graph = graph.weighing_tails(facts.weight)
            schedule = schedule.with_firings(max(1.0, float(graph.weights.max(initial=1.0) / (heaviest or 1.0))))
        return Layout(
            graph,
            start if facts.pins is None else facts.pins.start(start),
            self.forces,
            schedule,
            seed=seed,
            n_jobs=n_jobs,
            fixed=None if facts.pins is None else facts.pins.mask,
            negative_weights=negatives,
            density=density,
        )

    def place(
        self,
        graph: Graph,
        reference: Reference,
        keys: NDArray[np.uint64],
        *,
        n_jobs: int,
        density: DensityTerm | None = None,
    ) -> NDArray[np.float32]:
        """Place new rows: at the medoid of their neighbors, then a short layout among the fixed map."""
        n_epochs = self.short_epochs(len(reference.places))
        layout = Placement(
            self.placement_graph(graph),
            neighbor_medoid(graph, reference.places),
            reference.places,
            self.forces,
            self._placement_schedule(n_epochs),
            seed=self.placement_seed,
            n_jobs=n_jobs,
            row_keys=keys,
            negative_weights=reference.negative_weights,
            density=density,
        )
        layout.step(n_epochs)
        return layout.embedding

    def placement_graph(self, graph: Graph) -> Graph:
        """Return the edges that pull new rows."""
        return graph


@dataclass(frozen=True)
class LargeVisPlan(SampledPlan):
    """LargeVis: as many epochs as give a row enough edge samples, negatives drawn by degree (survey eq. 21, 23)."""

    def default_epochs(self, graph: Graph) -> int:
        if graph.n_edges == 0:
            return LEAST_EPOCHS
        samples_per_epoch = float(graph.weights.sum(dtype=np.float64)) / float(graph.weights.max()) / graph.n
        samples = SAMPLES_PER_ROW if graph.n <= LARGE_ROWS else LARGE_SAMPLES_PER_ROW
        return max(LEAST_EPOCHS, round(samples / samples_per_epoch))

    def short_epochs(self, n: int) -> int:
        return LARGEVIS_PLACEMENT_EPOCHS

    def sweeps(self, n: int) -> int:
        return LARGEVIS_SWEEPS if n <= LARGE_ROWS else LARGEVIS_LARGE_SWEEPS

    def single(self, n: int) -> float:
        return LARGEVIS_SINGLE if n > LARGE_ROWS else 0.0

    def longest_push(self, n: int) -> float:
        return math.inf

    def negative_weights(self, graph: Graph, facts: RowFacts) -> NDArray[np.floating[Any]] | None:
        weights = graph.degree() ** NEGATIVE_POWER
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

    def epoch_stops(self, graph: Graph) -> list[int]:
        """Return the iteration that ends the layout."""
        return [sum(phase.n_epochs for phase in self.phases)]

    def layout(self, graph: Graph, start: NDArray[np.float32], *, n_jobs: int) -> FullLayout:
        """Build the layout of a fit."""
        return FullLayout(graph, start, self.phases, dof=self.dof, method=self.repulsion, n_jobs=n_jobs)

    def place(self, graph: Graph, reference: Reference, *, n_jobs: int) -> NDArray[np.float32]:
        """Place new rows, each in the landscape of the fixed map."""
        layout = FullLayout(
            graph,
            neighbor_medoid(graph, reference.places),
            [TSNE_PLACEMENT],
            dof=self.dof,
            method=self.repulsion,
            n_jobs=n_jobs,
            reference=reference.places,
        )
        layout.step(layout.n_epochs)
        return layout.embedding


# Neighbors in the table per unit of perplexity: the Gaussian is small beyond (van der Maaten's number).
NEIGHBORS_PER_PERPLEXITY = 3


def _limit(data: TrainingData, given: float | None) -> float:
    limit = data.unrelated_distance if given is None else given
    return float("inf") if limit is None else limit


def _within(neighbors: Neighbors, limit: float) -> Neighbors:
    return neighbors.within(limit) if limit < float("inf") else neighbors


@dataclass(frozen=True)
class FuzzyAffinity:
    """UMAP's memberships (survey eq. 1-4)."""

    n_neighbors: int = 15
    local_connectivity: float = 1.0
    set_op_mix_ratio: float = 1.0
    disconnection_distance: float | None = None

    def columns(self, n: int) -> int:
        """Return the columns of the neighbor table of ``n`` rows, the row itself included."""
        return min(self.n_neighbors, n)

    query_columns = columns

    def search_columns(self, data: TrainingData) -> int:
        """Return the columns of the table that is searched: more than needed if neighbors are chosen from it."""
        k = self.columns(data.n)
        return min(POOL * (k - 1) + 1, data.n) if data.prefers_shared else k

    def limit(self, data: TrainingData) -> float:
        """Return the distance from which on rows are no neighbors: as given, or that of rows that share nothing."""
        return _limit(data, self.disconnection_distance)

    def related(self, neighbors: Neighbors, data: TrainingData) -> Neighbors:
        """Return the neighbors of the graph: without rows that are too far away, and chosen if there are too many."""
        neighbors, k = _within(neighbors, self.limit(data)), self.columns(data.n)
        largest = data.unrelated_distance
        return neighbors if largest is None or neighbors.k <= k else prefer_shared(neighbors, k, largest)

    def graph(self, neighbors: Neighbors, n_jobs: int) -> Graph:
        """Build the symmetric graph of the fitted rows."""
        return fuzzy_graph(
            neighbors,
            local_connectivity=self.local_connectivity,
            set_op_mix_ratio=self.set_op_mix_ratio,
            n_jobs=n_jobs,
        )

    def graph_to_known(self, neighbors: Neighbors, n_known: int, n_jobs: int) -> Graph:
        """Build the bipartite graph from new rows to the fitted ones."""
        return bipartite_graph(neighbors, n_known, local_connectivity=self.local_connectivity, n_jobs=n_jobs)

    # Whether the edges of a row depend on the mean distance of the whole table.
    uses_mean_distance: ClassVar[bool] = True

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

    def columns(self, n: int) -> int:
        """Return the columns of the neighbor table of ``n`` rows, the row itself included."""
        return min(n, int(NEIGHBORS_PER_PERPLEXITY * self.perplexity) + 1)

    def query_columns(self, n: int) -> int:
        """Return the number of neighbors of a new row."""
        if self.query_perplexity is None:
            return self.columns(n)
        return min(n, int(NEIGHBORS_PER_PERPLEXITY * self.query_perplexity))

    def search_columns(self, data: TrainingData) -> int:
        """Return the columns of the table that is searched."""
        return self.columns(data.n)

    def limit(self, data: TrainingData) -> float:
        """Return the distance from which on rows are no neighbors: that of rows that share nothing."""
        return _limit(data, None)

    def related(self, neighbors: Neighbors, data: TrainingData) -> Neighbors:
        """Return the neighbors of the graph: without rows that are too far away."""
        return _within(neighbors, self.limit(data))

    def graph(self, neighbors: Neighbors, n_jobs: int) -> Graph:
        """Build the symmetric graph of the fitted rows."""
        return entropic_graph(neighbors, self.perplexity, normalised=self.normalized, n_jobs=n_jobs)

    def graph_to_known(self, neighbors: Neighbors, n_known: int, n_jobs: int) -> Graph:
        """Build the bipartite graph from new rows to the fitted ones."""
        perplexity = self.perplexity if self.query_perplexity is None else self.query_perplexity
        return entropic_bipartite_graph(neighbors, n_known, perplexity, n_jobs=n_jobs)

    uses_mean_distance: ClassVar[bool] = False

    def directed_part(self, neighbors: Neighbors, first: int, n: int, mean_distance: float, n_jobs: int) -> Graph:
        """Build the directed graph of the rows from ``first`` on, given their lines of the table of ``n`` rows."""
        from vicinal.graph.partition import entropic_part

        return entropic_part(neighbors, first, n, self.perplexity, n_jobs=n_jobs)

    def joined_part(self, part: Graph, first: int, incoming: EdgeList, n_jobs: int) -> Graph:
        """Combine both directions of the edges of a part."""
        from vicinal.graph.partition import joined_part

        return joined_part(part, first, incoming, None, n_jobs)

    def divisor(self, units: int) -> float:
        """Return what divides the weights, given their sum as a number of units (graph/entropic.py)."""
        return total_of_units(units) if self.normalized and units else 1.0


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

    ``unique`` lays out equal rows as one. ``output`` "graph" ends a fit after its graph.
    """

    affinity: FuzzyAffinity | EntropicAffinity
    plan: SampledPlan | FullPlan
    n_components: int = 2
    init: str = "spectral"
    search: Method = "auto"
    supervision: Supervision | None = None
    density: DensityPlan | None = None
    unique: bool = False
    record_loss: bool = False
    output: Literal["embedding", "graph"] = "embedding"

    def supervised(self, graph: Graph, labels: NDArray[Any] | None) -> Graph:
        """Intersect a graph with labels, if there are any."""
        if labels is None or self.supervision is None:
            return graph
        return self.supervision.apply(graph, labels)

    def start(self, graph: Graph, data: TrainingData, seed: int) -> tuple[NDArray[np.float32], str]:
        """Compute the first places, and the name of the initializer that was used."""
        coordinates = data.coordinates
        if isinstance(self.plan, FullPlan):
            return narrow_embedding(self.init, InitialTask(graph, coordinates, self.n_components, seed, data.n_jobs))
        # Rows without edges would take most of the room, since each of them is a component of the graph.
        isolated = graph.isolated()
        linked = np.flatnonzero(~isolated)
        if 0 < len(linked) < graph.n:
            graph, coordinates = graph.among(linked), None if coordinates is None else data.take(linked).coordinates
        task = InitialTask(graph, coordinates, self.n_components, seed, data.n_jobs)
        places, used = initial_embedding(self.init, task)
        if len(places) < len(isolated):
            places = surrounded(spread_rows(places, linked, len(isolated)), isolated)
        return self.plan.forces.space.start(places), used
