"""Judge a map: preservation, null, stability, stretch and torn edges of every row (quality/reliability.py).

Stability is measured by ghosts: copies of all rows that start at the finished map and are laid out again for a few
epochs with other random numbers (docs/guides/reliability.md). They show where else the rows could have come to rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.areas.hierarchy import islands
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.layout.density import DensityTerm
from vicinal.layout.forces import Forces, fit_ab
from vicinal.layout.schedule import SMALL_ROWS
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData
from vicinal.pipeline.compose import ComposedMap, leftmost
from vicinal.pipeline.fit import ArrayExecutor, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import EdgeTotals, FuzzyAffinity, Places, Plan, Recipe, SampledPlan
from vicinal.pipeline.row_options import RowOptions
from vicinal.quality.reliability import (
    Preservation,
    Reliability,
    Standing,
    combine,
    compare_with_null,
    local_spread,
    map_radii,
    measure_placed,
    measure_preservation,
    measure_standing,
    measure_stretch,
    measure_tears,
    shuffled_data,
    smoothed,
)

# Epochs of a layer as a share of those of the fit, up to SMALL_ROWS rows and beyond. Correlation of the spread, see
# docs/guides/reliability.md, for 0.12, 0.15, 0.2: digits 0.63, 0.69, 0.71; 10,000 images 0.74, 0.75, 0.74.
GHOST_SHARE, LARGE_GHOST_SHARE = 0.2, 0.1
# The disturbance of t-SNE's ghosts is measured by the distance to the neighbor of this rank.
DISTURBANCE_RANK = 15


@dataclass(frozen=True)
class LaidOut:
    """What a layout was made from, so that it can be run again."""

    plan: Plan
    graph: Graph
    places: Places
    options: RowOptions = field(default_factory=RowOptions)
    density: DensityTerm | None = None
    seed: int = 0
    n_jobs: int = -1

    @property
    def n_epochs(self) -> int:
        return self.plan.epoch_stops(EdgeTotals.of(self.graph))[-1]

    def again(self, start: Places, n_epochs: int, seed: int) -> Places:
        """Lay the rows out from ``start`` with another seed; fewer epochs than those of the fit move them a little."""
        make: Any = self.plan.ghost_schedule if n_epochs < self.n_epochs else self.plan.schedule
        layout = self.plan.layout(
            self.graph,
            start,
            self.options,
            make(n_epochs, self.graph.n),
            seed=seed,
            n_jobs=self.n_jobs,
            density=self.density,
        )
        layout.step(n_epochs)
        places: Places = layout.embedding
        return places


def ghost_layers(laid_out: LaidOut, count: int) -> Iterator[NDArray[np.float32]]:
    """Yield the places of ``count`` layers of ghosts."""
    share = GHOST_SHARE if laid_out.graph.n <= SMALL_ROWS else LARGE_GHOST_SHARE
    n_epochs = max(1, round(share * laid_out.n_epochs))
    for layer in range(count):
        seed = other_seed(laid_out.seed, layer)
        start = laid_out.places
        if not laid_out.plan.draws_at_random:
            radius = map_radii(start, (min(DISTURBANCE_RANK, len(start) - 1),), laid_out.n_jobs)[0]
            noise = np.random.default_rng(seed).normal(size=start.shape) * radius[:, None]
            start = (start + noise).astype(np.float32)
        yield laid_out.again(start, n_epochs, seed)


def other_seed(seed: int, number: int) -> int:
    """Return a 31-bit seed that differs from ``seed`` and for every number."""
    return int(np.random.SeedSequence([seed, number + 1]).generate_state(1)[0] >> 1)


Embed = Callable[[Rows], NDArray[np.float32]]

NEIGHBORS, GHOSTS = 15, 4
# The null map has at most this many rows. A map of fewer rows keeps more neighbors by chance, so a null of a sample
# makes it harder to be called trustworthy, not easier: the median null score of Fashion-MNIST is 0.21 for 1,000 rows,
# 0.14 for 2,000.
NULL_ROWS = 4_000
# Fewer rows have no neighborhoods to compare.
LEAST_ROWS = 4


@dataclass(frozen=True)
class Judgment:
    """What to measure, and how.

    ``ghosts`` layers of ghosts measure the stability; ``seeds`` whole fits with other seeds are the slow reference and
    replace them, and so do ``others``, maps of the same rows that were made elsewhere. ``null`` says whether to
    compare with a map of shuffled data; ``embed`` makes that map, by default the recipe of the judged map.
    """

    n_neighbors: int | None = None
    ghosts: int = GHOSTS
    seeds: int = 0
    others: tuple[NDArray[np.float32], ...] = ()
    null: bool = True
    embed: Embed | None = None
    seed: int = 0


@dataclass(frozen=True)
class JudgedMap:
    """A map, its rows with their neighbors, and how it was made as far as that is known.

    ``data`` is None if there are no rows to compare, ``laid_out`` is None if the map cannot be laid out again.
    ``start`` makes the first places of a fit with another seed.
    """

    neighbors: Neighbors
    graph: Graph
    places: NDArray[np.float32]
    data: TrainingData | None = None
    recipe: Recipe | None = None
    laid_out: LaidOut | None = None
    start: Callable[[int], NDArray[np.float32]] | None = None
    twin: NDArray[np.int64] | None = None  # equal rows share the place of this row
    n_jobs: int = -1

    def table(self, n_neighbors: int | None) -> tuple[Neighbors, int]:
        """Return a neighbor table, and the number of its columns to compare; a longer table is searched if needed."""
        n = len(self.places)
        k = min(NEIGHBORS if n_neighbors is None else n_neighbors, n - 1)
        if k < self.neighbors.k or n_neighbors is None or self.data is None:
            return self.neighbors, max(1, min(k, self.neighbors.k - 1))
        return self.data.neighbors(k + 1), k


def of_fitted(fitted: FittedMap) -> JudgedMap:
    """Return the rows that a fit laid out as a map to judge."""
    assert fitted.embedding is not None
    data, recipe, n_jobs = fitted.searched, fitted.recipe, fitted.data.n_jobs
    places, options = fitted.embedding, fitted.selection.options
    if fitted.laid_out is not None:
        places = places[fitted.laid_out]
    density = None
    if recipe.density is not None and fitted.density is not None:
        density = recipe.density.term(fitted.density.radii)
    laid_out = LaidOut(recipe.plan, fitted.graph, places, options, density, fitted.seed, n_jobs)

    def start(seed: int) -> NDArray[np.float32]:
        if fitted.report.init_used == "array":
            return places  # the array that the fit started from is not kept
        return recipe.start(fitted.graph, data, seed)[0]

    twin = fitted.selection.position if fitted.laid_out is None else None
    can_run = laid_out if fitted.report.n_epochs > 0 else None
    return JudgedMap(fitted.neighbors, fitted.graph, places, data, recipe, can_run, start, twin, n_jobs)


def of_places(data: TrainingData, places: NDArray[np.float32], n_neighbors: int | None = None) -> JudgedMap:
    """Return a map that was made elsewhere: its neighbors are searched, and its graph is UMAP's."""
    k = NEIGHBORS if n_neighbors is None else n_neighbors
    neighbors = data.neighbors(min(k + 1, data.n))
    return JudgedMap(neighbors, fuzzy_graph(neighbors, n_jobs=data.n_jobs), places, data, n_jobs=data.n_jobs)


def of_graph(graph: Graph, places: NDArray[np.float32], n_neighbors: int = NEIGHBORS, n_jobs: int = -1) -> JudgedMap:
    """Return a map of which only the graph is known: the neighbors of a row are those with its heaviest edges."""
    n, k = graph.n, min(n_neighbors, max(1, int(np.diff(graph.indptr).max(initial=1))))
    index = np.full((n, k + 1), -1, dtype=np.int32)
    distance = np.full((n, k + 1), np.inf, dtype=np.float32)
    index[:, 0], distance[:, 0] = np.arange(n), 0.0
    heads = graph.heads()
    order = np.lexsort((graph.indices, -graph.weights, heads))
    rank = np.arange(graph.n_edges) - graph.indptr[heads]
    first = rank < k
    index[heads[first], rank[first] + 1] = graph.indices[order[first]]
    # A weight is an order, not a length: stretch is unknown without distances.
    distance[heads[first], rank[first] + 1] = 0.0
    return JudgedMap(Neighbors(index, distance), graph, places, n_jobs=n_jobs)


def of_composed(composed: ComposedMap) -> tuple[JudgedMap, NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Return a composed map to judge, with the measured row whose place every row has if only some were laid out."""
    first = leftmost(composed)
    judged = of_graph(composed.graph, composed.embedding, n_jobs=first.data.n_jobs)
    n_jobs = first.data.n_jobs
    laid_out = LaidOut(composed.plan, composed.graph, composed.embedding, seed=first.seed, n_jobs=n_jobs)
    judged = replace(judged, laid_out=laid_out, start=lambda seed: composed.embedding)
    return judged, None if first.laid_out is None else first.selection.position, first.laid_out


def judge(judged: JudgedMap, how: Judgment) -> Reliability:
    """Measure all parts of the reliability of every row."""
    neighbors, k = judged.table(how.n_neighbors)
    n = len(judged.places)
    if n < LEAST_ROWS:
        return _unmeasured(n, k)
    notes: list[str] = []
    kept = measure_preservation(neighbors, judged.places, k, judged.n_jobs)
    null, null_placed = _null_preservation(judged, how, k, notes)
    significance = compare_with_null(kept.score, None if null is None else null.score)
    others = _other_maps(judged, how, notes)
    spread = local_spread(judged.places, others, n_jobs=judged.n_jobs)
    # Whole fits are the reference, and are not smoothed.
    spread = spread if how.seeds or how.others else smoothed(spread, judged.graph)
    island = islands(judged.places, judged.n_jobs)
    tears = measure_tears(judged.graph, judged.places, kept.wide_radius, island)
    known = np.zeros(0) if null is None else null.wide[np.isfinite(null.wide)]
    chance = float(np.median(known)) if len(known) else float("nan")
    standing = measure_standing(neighbors, kept, island, chance, null_placed)
    return combine(kept, significance, spread, measure_stretch(neighbors, kept), tears, standing, tuple(notes))


def _null_preservation(judged: JudgedMap, how: Judgment, k: int, notes: list[str]) -> tuple[Preservation | None, float]:
    """Return what a map of shuffled rows keeps, and how far its rows are on the islands of their neighbors."""
    if not how.null:
        return None, 0.0
    data = judged.data
    if data is not None and data.n > NULL_ROWS:
        sample = np.random.default_rng(how.seed).choice(data.n, NULL_ROWS, replace=False)
        data = data.take(np.sort(sample))
    shuffled = None if data is None else shuffled_data(data, how.seed)
    if shuffled is None:
        notes.append("no p-values and labels: there are no columns to shuffle")
        return None, 0.0
    if how.embed is not None:
        places = np.ascontiguousarray(how.embed(shuffled.rows), dtype=np.float32)
        neighbors = shuffled.neighbors(min(k + 1, shuffled.n))
    else:
        recipe = _default_recipe(judged) if judged.recipe is None else judged.recipe
        plain = replace(recipe, supervision=None, density=None, unique=False, record_loss=False, output="embedding")
        fitted = fit(ArrayExecutor(shuffled, plain, seed=how.seed))
        assert fitted.embedding is not None
        places, neighbors = fitted.embedding, fitted.neighbors
        if neighbors.k <= k:
            neighbors = shuffled.neighbors(min(k + 1, shuffled.n))
    k = min(k, neighbors.k - 1)
    placed = float(np.median(measure_placed(neighbors, k, islands(places, judged.n_jobs))))
    return measure_preservation(neighbors, places, k, judged.n_jobs), placed


def _default_recipe(judged: JudgedMap) -> Recipe:
    """Return UMAP with default parameters: the null of a map whose method is not known."""
    plan = SampledPlan(Forces(fit_ab()))
    return Recipe(FuzzyAffinity(judged.neighbors.k), plan, n_components=judged.places.shape[1])


def _other_maps(judged: JudgedMap, how: Judgment, notes: list[str]) -> list[NDArray[np.float32]]:
    """Return maps of the same rows that differ by chance only."""
    if how.others:
        return list(how.others)
    laid_out = judged.laid_out
    if laid_out is None:
        if how.ghosts or how.seeds:
            notes.append("no stability: it is not known how the map was made; give maps of other seeds as others")
        return []
    if how.seeds:
        assert judged.start is not None
        seeds = [other_seed(laid_out.seed, 1_000 + number) for number in range(how.seeds)]
        maps = [laid_out.again(judged.start(seed), laid_out.n_epochs, seed) for seed in seeds]
    else:
        maps = list(ghost_layers(laid_out, how.ghosts))
    return maps if judged.twin is None else [one[judged.twin] for one in maps]


def _unmeasured(n: int, k: int) -> Reliability:
    unknown = np.full(n, np.nan)
    kept = Preservation(k, k, unknown, unknown, unknown, unknown)
    tears = measure_tears(Graph.without_edges(n), np.zeros((n, 2), np.float32), unknown)
    note = f"too few rows ({n}) to measure"
    standing = Standing(unknown, unknown, unknown, np.zeros(n, np.int32), float("nan"))
    return combine(kept, compare_with_null(unknown, None), unknown, unknown, tears, standing, (note,))
