"""The steps of a fit, once: every way of fitting rows goes through :func:`fit`.

======================  =============================================================  ========================
executor                rows                                                           where
======================  =============================================================  ========================
`ArrayExecutor`         arrays in memory, on the CPU or a GPU; updates of a map        here
`ComposedExecutor`      those of two maps, joined by a fuzzy set operation             pipeline/compose.py
`AlignedExecutor`       several related arrays, laid out together                      pipeline/align.py
`GrowingExecutor`       rows that arrive over time, a bounded amount of work a call    pipeline/grow.py
`PartExecutor`          the partitions of a Dask array                                 cluster/fit.py
`TrainingExecutor`      arrays; the layout is the training of a network                estimators/parametric.py
======================  =============================================================  ========================

An executor carries a step out, or refuses it by name (:class:`Refused`); it never skips one silently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import neighbor_medoid
from vicinal.layout.density import Radii, edge_distances, embedding_radii, radius_correlation
from vicinal.layout.sampled import run_layout
from vicinal.layout.schedule import SMALL_ROWS
from vicinal.layout.surroundings import Orientation, spread_rows, surrounded
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import explain_out_of_memory
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances
from vicinal.pipeline.fitted import FitReport, FittedDensity, FittedMap
from vicinal.pipeline.place import memberships, place_new, warn_of_isolated
from vicinal.pipeline.recipe import EdgeTotals, Places, Recipe, Refused
from vicinal.pipeline.row_options import RowOptions, Selection, select_rows
from vicinal.runtime.progress import Callback, Progress

# A recorded loss is evaluated about LOSS_RECORDS times, with LOSS_SAMPLES partners per row beyond SMALL_ROWS rows.
LOSS_RECORDS, LOSS_SAMPLES = 20, 64

STEPS = ("check", "search", "relate", "build_graph", "supervise", "start", "lay_out", "orient", "surround", "report")

Listeners = Callable[[Graph], Iterable[tuple[Callback, int]]]


def fit(executor: Executor, progress: Progress | None = None) -> Any:
    """Map rows by the steps of every fit, in this order, and return what the executor reports."""
    progress = Progress() if progress is None else progress

    def finish(places: Any) -> Any:
        for step in ("orient", "surround"):
            places = places if step in executor.refuses else getattr(executor, step)(places)
        return places

    with executor.prepared(progress):
        with progress.stage("neighbors"):
            executor.check()
            executor.search()
        with progress.stage("graph"):
            executor.relate()
            executor.build_graph()
            executor.supervise()
        if executor.ends_with_graph:
            return executor.report()
        with progress.stage("initialize"):
            executor.start()
        executor.lay_out(finish)
        return executor.report()


class Executor:
    """Carries out the steps of a fit. Each step stores its result in the executor, for the steps after it.

    ``refuses`` names the steps that this kind of executor cannot carry out, each with the reason.
    """

    refuses: ClassVar[dict[str, str]] = {}
    ends_with_graph: bool = False
    progress: Progress

    def prepared(self, progress: Progress) -> AbstractContextManager[Any]:
        """Return the context of the whole fit; ``progress`` hears about every stage."""
        self.progress = progress
        return nullcontext()

    def check(self) -> None:
        """Refuse what cannot be fitted, before any work, and choose the rows to lay out."""
        self.refuse("check")

    def search(self) -> None:
        """Find the nearest rows of every row."""
        self.refuse("search")

    def relate(self) -> None:
        """Cut neighbors at the metric's largest distance or the given one, and choose among them if there are more."""
        self.refuse("relate")

    def build_graph(self) -> None:
        """Turn the neighbors into a symmetric weighted graph."""
        self.refuse("build_graph")

    def supervise(self) -> None:
        """Intersect the graph with labels, if there are any, and warn of rows without edges."""
        self.refuse("supervise")

    def start(self) -> None:
        """Give every row its first place."""
        self.refuse("start")

    def lay_out(self, finish: Callable[[Any], Any]) -> None:
        """Move the rows that have edges; ``finish`` turns their places into those of the map at any moment."""
        self.refuse("lay_out")

    def orient(self, places: Any) -> Any:
        """Turn the components of a small map back to the direction in which they started."""
        self.refuse("orient")

    def surround(self, places: Any) -> Any:
        """Draw the rows without edges around the map; their position carries no information."""
        self.refuse("surround")

    def report(self) -> Any:
        """Return what the fit learned."""
        self.refuse("report")

    def refuse(self, step: str) -> None:
        """Raise Refused for a step."""
        reason = self.refuses.get(step, "there is nothing to do it with")
        raise Refused(f"{type(self).__name__} does not {step.replace('_', ' ')}: {reason}")


class ArrayExecutor(Executor):
    """A fit of rows in memory, on the CPU or on the GPU where they live.

    Parameters
    ----------
    data : TrainingData
        The rows with the metric that compares them, or their distances.
    recipe : Recipe
    options : RowOptions, optional
        Labels, weights and pins, checked.
    first_places : array [rows, n_components], optional
        First places that replace the recipe's initializer; ``init_used`` is what the report calls them.
    seed : int
        Seed of everything random.
    listeners : callable, optional
        Called with the graph before the layout; returns callbacks, each with the number of epochs between its calls.
    """

    init_used = "array"
    neighbors: Neighbors  # of the rows that are laid out
    related: Neighbors  # those that the graph joins
    search_graph: Graph  # without labels
    graph: Graph
    known: Neighbors | None = None  # the table of the first rows, if an earlier search found it

    def __init__(
        self,
        data: TrainingData,
        recipe: Recipe,
        options: RowOptions | None = None,
        *,
        first_places: Places | None = None,
        seed: int = 0,
        listeners: Listeners | None = None,
    ) -> None:
        self.data, self.recipe, self.seed = data, recipe, seed
        self.options = RowOptions() if options is None else options
        self.first_places, self._listeners = first_places, listeners
        self.ends_with_graph = recipe.output == "graph"
        self.finished: Places | None = None
        self._report = FitReport()
        self._density: FittedDensity | None = None

    def prepared(self, progress: Progress) -> AbstractContextManager[Any]:
        super().prepared(progress)
        return explain_out_of_memory(self.data, self.recipe.affinity.columns(self.data.n))

    def check(self) -> None:
        self.options.check_length(self.data.n)
        self.selection: Selection = select_rows(self.data, self.options, unique=self.recipe.unique)
        self.rows = self.data if self.selection.rows is None else self.data.take(self.selection.rows)

    def search(self) -> None:
        affinity = self.recipe.affinity
        columns = affinity.search_columns(self.rows.n, self.rows.prefers_shared)
        self._found = self.rows.neighbors(columns, self.recipe.search, known=self.known)
        self.neighbors = self._found.first(affinity.columns(self.rows.n))

    def relate(self) -> None:
        self.related = self.recipe.affinity.related(self._found, self.rows.unrelated_distance, self.rows.n)

    def build_graph(self) -> None:
        self.search_graph = self.recipe.affinity.graph(self.related, self.data.n_jobs).on(self.data.place)

    def supervise(self) -> None:
        self.graph = self.recipe.supervised(self.search_graph, self.selection.options.y).on(self.data.place)
        if self.related.k > 1:
            limit = self.recipe.affinity.limit(self.rows.unrelated_distance)
            warn_of_isolated(self.graph.isolated(), limit)

    def start(self) -> None:
        if self.first_places is None:
            self.started, self.init_used = self.recipe.start(self.graph, self.rows, self.seed)
        else:
            self.started = self.selection.take(self.first_places)

    def schedule(self) -> tuple[Any, list[int]]:
        """Return the schedule of the layout, and the epochs whose maps are wanted."""
        stops = self.recipe.plan.epoch_stops(EdgeTotals.of(self.graph))
        return self.recipe.plan.schedule(stops[-1], self.graph.n), stops

    def lay_out(self, finish: Callable[[Places], Places]) -> None:
        if self._listeners is not None:
            for callback, every in self._listeners(self.graph):
                self.progress.listen(callback, every)
        plan, n_jobs, (schedule, stops) = self.recipe.plan, self.data.n_jobs, self.schedule()
        graph, start, options, radii = self.graph, self.started, self.selection.options, self._radii()
        term = None if radii is None or self.recipe.density is None else self.recipe.density.term(radii)
        self.linked = linked_rows(graph) if plan.has_outside else None
        if self.linked is not None:
            graph, start = graph.among(self.linked), start[self.linked]
            options = options.take(self.linked, None if options.weight is None else options.weight[self.linked])
            term = None if term is None else term.of_rows(self.linked)
        layout = plan.layout(graph, start, options, schedule, seed=self.seed, n_jobs=n_jobs, density=term)
        guided = self.guide(layout)
        self.direction = None
        if plan.orients and options.pins is None:
            self.direction = Orientation.of(graph, start, plan.forces.space, n_jobs)

        def places() -> Places:
            return self.options.pinned(self.selection.spread(finish(guided.embedding)))

        history = self._loss_history(schedule) if self.recipe.record_loss else None
        if history is not None:
            self.progress.listen(history, history.every, last=True)
        snapshots = run_layout(guided, stops, self.progress, places)
        losses = None if history is None else {"epoch": history.epochs, "loss": history.values.tolist()}
        divergence = self._divergence(graph, layout)
        self._report = FitReport(
            self.init_used,
            layout.epoch,
            self.progress.times,
            tuple(snapshots) if len(stops) > 1 else (),
            losses,
            divergence,
        )
        if radii is not None:
            self._density = self._fitted_density(radii, layout, finish(layout.embedding))
        self.finished = places()

    def guide(self, layout: Any) -> Any:
        """Return what is stepped instead of the layout of the rows that have edges: the layout itself."""
        return layout

    def orient(self, places: Places) -> Places:
        return places if self.direction is None else self.direction.restored(places)

    def surround(self, places: Places) -> Places:
        if self.linked is None:
            return places
        isolated = np.ones(self.graph.n, dtype=bool)
        isolated[self.linked] = False
        return surrounded(spread_rows(places, self.linked, self.graph.n), isolated)

    def report(self) -> Any:
        report = replace(self._report, stage_times=self.progress.times)
        fitted = FittedMap(
            data=self.data,
            recipe=self.recipe,
            options=self.options,
            neighbors=self.neighbors,
            search_graph=self.search_graph,
            graph=self.graph,
            embedding=self.finished,
            seed=self.seed,
            laid_out=self.selection.rows,
            density=self._density,
            report=report,
        )
        missing = np.flatnonzero(self.selection.position < 0)
        if not missing.size or fitted.embedding is None:
            return fitted
        # Rows of weight 0 were not laid out: they are placed as new rows are.
        embedding = fitted.embedding.copy()
        embedding[missing] = place_new(fitted, fitted.data.rows[missing])
        return replace(fitted, embedding=fitted.options.pinned(embedding))

    def _radii(self) -> Radii | None:
        if self.recipe.density is None:
            return None
        return Radii.of(self.graph, edge_distances(self.graph, self.related, self.data.n_jobs))

    def _fitted_density(self, radii: Radii, layout: Any, places: Places) -> FittedDensity:
        plan, n = self.recipe.density, len(radii.log_radius)
        embedded = embedding_radii(places, self.recipe.affinity.columns(n), self.data.n_jobs)
        summary = layout.density_summary if plan is not None and plan.match else None
        return FittedDensity(radii, embedded, radius_correlation(radii.log_radius, embedded), summary)

    def _divergence(self, graph: Graph, layout: Any) -> float | None:
        if self.recipe.plan.draws_at_random:
            return None
        with self.progress.stage("divergence"):
            return self.recipe.plan.divergence(graph, layout.embedding, self.data.n_jobs)

    def _loss_history(self, schedule: Any) -> Any:
        """Record the expected loss of the schedule's negatives (:func:`effective_loss`) along the layout."""
        from vicinal.quality.losses import History, effective_loss

        graph, selection, kernel = self.graph, self.selection, self.recipe.plan.forces.kernel
        samples = None if graph.n <= SMALL_ROWS else LOSS_SAMPLES

        def loss(embedding: Places) -> Any:
            places = selection.take(embedding)
            return effective_loss(graph, places, kernel, schedule, samples=samples, n_jobs=self.data.n_jobs)

        return History(loss, every=max(1, schedule.n_epochs // LOSS_RECORDS))


class GivenPlaces(ArrayExecutor):
    """The map of rows whose places were computed elsewhere: neighbors and graph are found, no point moves."""

    init_used = "given"

    def lay_out(self, finish: Callable[[Places], Places]) -> None:
        self.finished = self.first_places
        self._report = FitReport(self.init_used, 0, self.progress.times)


class GivenGraph(ArrayExecutor):
    """The map of a graph that was made elsewhere; the data are the distances of its neighbors."""

    def __init__(self, edges: Graph, prepared: ArrayExecutor) -> None:
        """Take everything but the graph from a prepared fit of the distances."""
        places, seed = prepared.first_places, prepared.seed
        super().__init__(prepared.data, prepared.recipe, prepared.options, first_places=places, seed=seed)
        if edges.n != self.data.n:
            raise ValueError(f"the graph must have a row for each of {self.data.n} rows, got {edges.n}")
        self._edges = edges

    def build_graph(self) -> None:
        self.search_graph = self._edges.on(self.data.place)


class UpdateExecutor(ArrayExecutor):
    """A fitted map with more rows: the known rows start where they are, the new ones at their neighbors."""

    init_used = "update"

    def __init__(self, fitted: FittedMap, rows: Rows, labels: NDArray[Any] | None = None) -> None:
        plan, n, m = fitted.recipe.plan, fitted.data.n, rows.shape[0]
        if fitted.embedding is None or not plan.can_update:
            raise Refused("only maps of the sampled layout can be updated")
        data, options = fitted.data.extended(rows), fitted.options.extended(n, m, labels)
        if options.pins is not None:
            options = options.with_equal_rows_pinned(data.duplicates.first)
        to_known = memberships(fitted, rows[:, :n] if isinstance(fitted.data, TrainingDistances) else rows)
        start = np.concatenate([fitted.embedding, neighbor_medoid(to_known, fitted.reference_places)])
        super().__init__(data, fitted.recipe, options, first_places=start, seed=fitted.seed)
        searched = getattr(fitted.data, "given", None) is None
        self.known = fitted.neighbors if searched and fitted.laid_out is None and not fitted.recipe.unique else None

    def schedule(self) -> tuple[Any, list[int]]:
        plan = self.recipe.plan
        n_epochs = plan.short_epochs(self.data.n)
        return plan.refinement(n_epochs, self.graph.n), [n_epochs]


def update(
    fitted: FittedMap, rows: Rows, labels: NDArray[Any] | None = None, progress: Progress | None = None
) -> FittedMap:
    """Return the map with ``rows`` added; its points move a little to make room.

    ``labels`` are the checked labels of the rows. For precomputed distances ``rows`` holds the distances to the known
    rows and then to each other.
    """
    updated: FittedMap = fit(UpdateExecutor(fitted, rows, labels), progress)
    return updated


def linked_rows(graph: Graph) -> NDArray[np.int64] | None:
    """Return the rows that have edges; None if all have."""
    isolated = graph.isolated()
    return np.flatnonzero(~isolated) if isolated.any() else None
