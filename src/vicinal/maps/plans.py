"""How a layout is run: the sampled layout of UMAP and LargeVis, the full layout of t-SNE.

A plan builds the layout of a fit (`layout`) and places new rows in a finished map (`place`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.layout.density import DensityTerm
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
from vicinal.maps.row_facts import RowFacts

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
