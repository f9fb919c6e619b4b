"""What a fit does, stage by stage, as values that are kept with the map.

A :class:`Recipe` names the affinity (how a neighbor table becomes a graph), the start, the plan of the layout, and what
labels and densities add. Rows that are placed later are treated by the same recipe, whatever has become of the
estimator's parameters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.entropic import entropic_bipartite_graph, entropic_graph
from vicinal.graph.fuzzy import bipartite_graph, fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.graph.shared_neighbors import POOL, prefer_shared
from vicinal.graph.supervision import Supervision
from vicinal.initialize.start import initial_embedding, narrow_embedding
from vicinal.initialize.task import InitialTask
from vicinal.layout.density import EXACT_SHARE, EXACT_SHIFT, PLACING_SHARE, DensityTerm, Radii
from vicinal.layout.surroundings import spread_rows, surrounded
from vicinal.maps.plans import FullPlan, SampledPlan
from vicinal.neighbors.policy import Method
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData

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
