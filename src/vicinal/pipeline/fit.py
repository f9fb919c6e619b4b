"""A fitted map with more rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.layout.density import Radii, edge_distances, embedding_radii, radius_correlation
from vicinal.layout.sampled import Layout, run_layout
from vicinal.layout.schedule import SMALL_ROWS, Schedule
from vicinal.layout.surroundings import Orientation, spread_rows, surrounded
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import named_room
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances
from vicinal.pipeline.fitted import FitReport, FittedDensity, FittedMap
from vicinal.pipeline.place import memberships, place_new, surroundable, warn_of_isolated
from vicinal.pipeline.recipe import PLACEMENT_RATE, FullPlan, Recipe, RowFacts, SampledPlan, Selection, select_rows
from vicinal.quality.losses import History, Loss, effective_loss, kl_divergence, total_weight
from vicinal.runtime.progress import Callback, Progress

# A recorded loss is evaluated about LOSS_RECORDS times, with LOSS_SAMPLES partners per row beyond SMALL_ROWS rows.
LOSS_RECORDS, LOSS_SAMPLES = 20, 64

Listeners = Callable[[Graph], Iterable[tuple[Callback, int]]]


@dataclass(frozen=True)
class FitInputs:
    """Checked arguments of :func:`fit`."""

    data: TrainingData
    recipe: Recipe
    facts: RowFacts = field(default_factory=RowFacts)
    start: NDArray[np.float32] | None = None
    seed: int = 0


@dataclass(frozen=True)
class Prepared:
    """The rows that are laid out, their nearest rows, those that the graph joins, and the graphs."""

    selection: Selection
    data: TrainingData
    neighbors: Neighbors
    related: Neighbors
    search_graph: Graph
    graph: Graph


@dataclass(frozen=True)
class LayoutTask:
    """A fit that has its graph and is about to be laid out."""

    data: TrainingData
    recipe: Recipe
    facts: RowFacts
    prepared: Prepared
    seed: int
    progress: Progress

    def finished(
        self,
        report: FitReport,
        embedding: NDArray[np.float32] | None = None,
        density: FittedDensity | None = None,
    ) -> FittedMap:
        """Return the result of the fit."""
        return FittedMap(
            data=self.data,
            recipe=self.recipe,
            facts=self.facts,
            neighbors=self.prepared.neighbors,
            search_graph=self.prepared.search_graph,
            graph=self.prepared.graph,
            embedding=embedding,
            seed=self.seed,
            laid_out=self.prepared.selection.rows,
            density=density,
            report=report,
        )


def fit(inputs: FitInputs, progress: Progress | None = None, listeners: Listeners | None = None) -> FittedMap:
    """Map rows.

    Parameters
    ----------
    inputs : FitInputs
        The rows with the metric that compares them (or their distances), the recipe, labels, weights and pins, first
        places that replace the recipe's initializer, and the seed of everything random.
    progress : Progress, optional
        Told about every stage; may stop the layout early.
    listeners : callable, optional
        Called with the graph before the layout; returns callbacks, each with the number of epochs between its calls.
    """
    with named_room(inputs.data, inputs.recipe.affinity.columns(inputs.data.n)):
        return _fit(inputs, Progress() if progress is None else progress, listeners)


def _fit(inputs: FitInputs, progress: Progress, listeners: Listeners | None) -> FittedMap:
    recipe, start, seed = inputs.recipe, inputs.start, inputs.seed
    prepared = prepare(inputs.data, recipe, inputs.facts, progress)
    task = LayoutTask(inputs.data, recipe, inputs.facts, prepared, seed, progress)
    if recipe.output == "graph":
        return task.finished(FitReport(stage_times=progress.times))
    with progress.stage("initialize"):
        if start is None:
            start, init_used = recipe.start(prepared.graph, prepared.data, seed)
        else:
            start, init_used = prepared.selection.take(start), "array"
    if listeners is not None:
        for callback, every in listeners(prepared.graph):
            progress.listen(callback, every)
    if isinstance(recipe.plan, FullPlan):
        return _lay_out_fully(task, recipe.plan, start, init_used)
    stops = recipe.plan.epoch_stops(prepared.graph)
    return lay_out(task, start, init_used, recipe.plan.schedule(stops[-1], prepared.graph.n), stops)


def adopt(inputs: FitInputs, embedding: NDArray[np.float32], progress: Progress | None = None) -> FittedMap:
    """Return the map of rows whose places were computed elsewhere: neighbors and graph are found, no point moves."""
    progress = Progress() if progress is None else progress
    prepared = prepare(inputs.data, inputs.recipe, inputs.facts, progress)
    task = LayoutTask(inputs.data, inputs.recipe, inputs.facts, prepared, inputs.seed, progress)
    return task.finished(FitReport("given", 0, progress.times), embedding)


def prepare(
    data: TrainingData, recipe: Recipe, facts: RowFacts, progress: Progress, known: Neighbors | None = None
) -> Prepared:
    """Find the neighbors and build the graph of the rows that are laid out.

    ``known`` is the neighbor table of the first rows, if an earlier search found it.
    """
    with progress.stage("neighbors"):
        selection = select_rows(data, facts, unique=recipe.unique)
        rows = data if selection.rows is None else data.take(selection.rows)
        found = rows.neighbors(recipe.affinity.search_columns(rows), recipe.search, known=known)
        neighbors = found.first(recipe.affinity.columns(rows.n))
    with progress.stage("graph"):
        related = recipe.affinity.related(found, rows)
        search_graph = recipe.affinity.graph(related, data.n_jobs).on(data.place)
        graph = recipe.supervised(search_graph, selection.facts.y).on(data.place)
    if related.k > 1:
        warn_of_isolated(graph, recipe.affinity.limit(rows))
    return Prepared(selection, rows, neighbors, related, search_graph, graph)


def lay_out(
    task: LayoutTask, start: NDArray[np.float32], init_used: str, schedule: Schedule, stops: list[int]
) -> FittedMap:
    """Run the sampled layout from ``start`` to the last of ``stops``."""
    plan, prepared, n_jobs = task.recipe.plan, task.prepared, task.data.n_jobs
    assert isinstance(plan, SampledPlan)
    radii = None
    if task.recipe.density is not None:
        radii = Radii.of(prepared.graph, edge_distances(prepared.graph, prepared.related, n_jobs))
    term = None if radii is None or task.recipe.density is None else task.recipe.density.term(radii)
    selection, graph, facts = prepared.selection, prepared.graph, prepared.selection.facts
    isolated = surroundable(graph, plan)
    if isolated is not None:
        linked = np.flatnonzero(~isolated)
        graph, start = graph.among(linked), start[linked]
        facts = facts.take(linked, None if facts.weight is None else facts.weight[linked])
        term = None if term is None else term.of_rows(linked)
    layout = plan.layout(graph, start, facts, schedule, seed=task.seed, n_jobs=n_jobs, density=term)
    at_start = Orientation.of(graph, start, plan.forces.space, n_jobs) if facts.pins is None else None

    def laid_out() -> NDArray[np.float32]:
        moved = layout.embedding if at_start is None else at_start.restored(layout.embedding)
        return moved if isolated is None else surrounded(spread_rows(moved, linked, len(isolated)), isolated)

    def places() -> NDArray[np.float32]:
        return task.facts.pinned(selection.spread(laid_out()))

    history = _loss_history(task, schedule) if task.recipe.record_loss else None
    if history is not None:
        task.progress.listen(history, history.every, last=True)
    snapshots = run_layout(layout, stops, task.progress, places)
    losses = None if history is None else {"epoch": history.epochs, "loss": history.values.tolist()}
    report = FitReport(init_used, layout.epoch, task.progress.times, tuple(snapshots) if len(stops) > 1 else (), losses)
    density = None if radii is None else _fitted_density(radii, layout, laid_out(), task)
    return _with_left_out(task.finished(report, places(), density), selection)


def _fitted_density(radii: Radii, layout: Layout, laid_out: NDArray[np.float32], task: LayoutTask) -> FittedDensity:
    plan, n = task.recipe.density, len(radii.log_radius)
    embedded = embedding_radii(laid_out, task.recipe.affinity.columns(n), task.data.n_jobs)
    summary = layout.density_summary if plan is not None and plan.match else None
    return FittedDensity(radii, embedded, radius_correlation(radii.log_radius, embedded), summary)


def _with_left_out(fitted: FittedMap, selection: Selection) -> FittedMap:
    """Place the rows that were not laid out (weight 0) as new rows are placed."""
    missing = np.flatnonzero(selection.position < 0)
    if not missing.size or fitted.embedding is None:
        return fitted
    embedding = fitted.embedding.copy()
    embedding[missing] = place_new(fitted, fitted.data.rows[missing])
    return replace(fitted, embedding=fitted.facts.pinned(embedding))


def _lay_out_fully(task: LayoutTask, plan: FullPlan, start: NDArray[np.float32], init_used: str) -> FittedMap:
    """Run t-SNE's layout, then compute the divergence of the map; rows without edges take part in neither."""
    graph, n_jobs, selection = task.prepared.graph, task.data.n_jobs, task.prepared.selection
    isolated = surroundable(graph, plan)
    linked = None if isolated is None else np.flatnonzero(~isolated)
    if linked is not None:
        graph, start = graph.among(linked), start[linked]
    layout = plan.layout(graph, start, n_jobs=n_jobs)

    def laid_out() -> NDArray[np.float32]:
        if isolated is None or linked is None:
            return layout.embedding
        return surrounded(spread_rows(layout.embedding, linked, len(isolated)), isolated)

    def places() -> NDArray[np.float32]:
        return selection.spread(laid_out())

    run_layout(layout, plan.epoch_stops(graph), task.progress, places)
    with task.progress.stage("divergence"):
        divergence = map_divergence(graph, layout.embedding, plan.dof, n_jobs)
    return task.finished(FitReport(init_used, layout.epoch, task.progress.times, divergence=divergence), places())


def map_divergence(graph: Graph, places: NDArray[np.float32], dof: float, n_jobs: int) -> float:
    """Return t-SNE's loss of a map (survey eq. 22), over rows that have edges; it is 0 if the graph has none."""
    if not total_weight(graph) > 0:
        return 0.0
    isolated = graph.isolated()
    if isolated.any():
        linked = np.flatnonzero(~isolated)
        graph, places = graph.among(linked), places[linked]
    return float(kl_divergence(graph, places, dof, n_jobs=n_jobs))


def _loss_history(task: LayoutTask, schedule: Schedule) -> History:
    """Record the expected loss of the schedule's negatives (:func:`effective_loss`) along the layout."""
    graph, plan, selection = task.prepared.graph, task.recipe.plan, task.prepared.selection
    assert isinstance(plan, SampledPlan)
    kernel, samples = plan.forces.kernel, None if graph.n <= SMALL_ROWS else LOSS_SAMPLES

    def loss(embedding: NDArray[np.float32]) -> Loss:
        places = selection.take(embedding)
        return effective_loss(graph, places, kernel, schedule, samples=samples, n_jobs=task.data.n_jobs)

    return History(loss, every=max(1, schedule.n_epochs // LOSS_RECORDS))


# What `init_used_` says of an updated map: it starts from the earlier map, and new rows from their neighbors there.
INIT_USED = "update"


def update(
    fitted: FittedMap, rows: Rows, labels: NDArray[Any] | None = None, progress: Progress | None = None
) -> FittedMap:
    """Return the map with ``rows`` added; its points move a little to make room.

    ``labels`` are the checked labels of the rows. For precomputed distances ``rows`` holds the distances to the known
    rows and then to each other.
    """
    plan, n, m = fitted.recipe.plan, fitted.data.n, rows.shape[0]
    if fitted.embedding is None or not isinstance(plan, SampledPlan):
        raise ValueError("only maps of the sampled layout can be updated")
    progress = Progress() if progress is None else progress
    data = fitted.data.extended(rows)
    facts = fitted.facts.extended(n, m, labels)
    if facts.pins is not None:
        facts = facts.with_equal_rows_pinned(data.duplicates.first)
    to_known = memberships(fitted, rows[:, :n] if isinstance(fitted.data, TrainingDistances) else rows)
    start = np.concatenate([fitted.embedding, neighbor_medoid(to_known, fitted.reference.places)])
    given = getattr(fitted.data, "given", None)
    known = fitted.neighbors if given is None and fitted.laid_out is None and not fitted.recipe.unique else None
    prepared = prepare(data, fitted.recipe, facts, progress, known)
    n_epochs = plan.short_epochs(n + m)
    task = LayoutTask(data, fitted.recipe, facts, prepared, fitted.seed, progress)
    schedule = plan.refinement(n_epochs, prepared.graph.n, rate=PLACEMENT_RATE)
    with progress.stage("initialize"):
        start = prepared.selection.take(start)
    return lay_out(task, start, INIT_USED, schedule, [n_epochs])
