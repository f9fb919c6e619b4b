"""Dask array -> map: the stages of :mod:`vicinal.maps.fitting` over parts of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, task
from vicinal.cluster.fitted import ClusterMap, stacked
from vicinal.cluster.graph import GraphParts, build_graph, load_graph
from vicinal.cluster.layout import PartedLayout
from vicinal.cluster.neighborhoods import check_device, check_metric_name
from vicinal.cluster.neighbors import NeighborParts, Search, find_neighbors
from vicinal.cluster.rows import DaskRows
from vicinal.cluster.shelf import Kept, Shelf
from vicinal.cluster.sizes import part_count, with_room
from vicinal.cluster.start import first_places, joined_graph
from vicinal.cluster.sweeps import places_of
from vicinal.graph.supervision import class_codes
from vicinal.initialize.start import given_start
from vicinal.layout.orientation import Orientation
from vicinal.layout.output_space import OutputSpace
from vicinal.layout.partition import SweepRule
from vicinal.layout.running import run_layout
from vicinal.layout.schedule import SMALL_ROWS, default_epochs
from vicinal.maps.fitted import FitReport
from vicinal.maps.plans import LargeVisPlan, SampledPlan
from vicinal.maps.recipe import FuzzyAffinity, Recipe
from vicinal.maps.row_facts import RowFacts, check_weights
from vicinal.runtime.inputs import is_dask
from vicinal.runtime.memory import bytes_of
from vicinal.runtime.progress import Progress


@dataclass(frozen=True)
class ArrayInputs:
    """Checked arguments of :func:`fit_array`. ``labels`` are class numbers, -1 for unlabelled."""

    rows: DaskRows
    recipe: Recipe
    metric: Any = "euclidean"
    metric_kwds: dict[str, Any] | None = None
    labels: NDArray[np.int64] | None = None
    weight: NDArray[np.float32] | None = None
    start: NDArray[np.float32] | None = None
    seed: int = 0
    n_jobs: int = -1
    memory: float | None = None


def array_inputs(
    X: Any,
    recipe_of: Callable[[int], Recipe],
    parameters: Mapping[str, Any],
    y: Any,
    sample_weight: Any,
    seed: int,
    n_jobs: int,
) -> ArrayInputs:
    """Check the arguments of an estimator's ``fit``; ``recipe_of`` makes the recipe for a number of rows."""
    if given(parameters.get("precomputed_knn")):
        raise ValueError("precomputed_knn is not possible for a Dask array")
    rows = DaskRows.of(X)
    recipe = recipe_of(rows.n)
    metric = parameters["metric"]
    check_recipe(recipe, metric)
    check_device(parameters.get("device"))
    weight = check_weights(_computed(sample_weight), rows.n)
    if weight is not None and not weight.all():
        raise ValueError(
            f"sample_weight must be above 0 for a Dask array, but is 0 in row {int(np.argmin(weight))}; leave such "
            "rows out and transform them"
        )
    limit = parameters.get("memory_limit")
    return ArrayInputs(
        rows,
        recipe,
        metric,
        parameters.get("metric_kwds"),
        _class_numbers(recipe, _computed(y), rows.n),
        weight,
        given_start(_computed(parameters["init"]), rows.n, recipe.n_components),
        seed,
        n_jobs,
        None if limit is None else bytes_of(limit),
    )


def given(knn: Any) -> bool:
    """Tell whether precomputed neighbors are given; umap-learn's default is a tuple of three None."""
    return knn is not None and not (isinstance(knn, tuple | list) and all(part is None for part in knn))


def _computed(values: Any) -> Any:
    """Return an argument with one value per row in memory."""
    return values.compute() if is_dask(values) else values


def _class_numbers(recipe: Recipe, y: Any, n: int) -> NDArray[np.int64] | None:
    if y is None or recipe.supervision is None:
        return None
    if recipe.supervision.metric != "categorical":
        raise ValueError(
            f"target_metric must be 'categorical' for a Dask array, got {recipe.supervision.metric!r}: numbers are "
            "compared by a graph of their own"
        )
    return class_codes(recipe.supervision.check(y, n))


def check_recipe(recipe: Recipe, metric: Any) -> None:
    """Refuse what needs all rows in one place, naming the parameter."""
    if not isinstance(recipe.affinity, FuzzyAffinity) or not isinstance(recipe.plan, SampledPlan):
        raise ValueError("X must be an array in memory for this method: UMAP can fit a Dask array")
    if isinstance(recipe.plan, LargeVisPlan):
        raise ValueError("X must be an array in memory for LargeVis")
    check_metric_name(metric)
    refused = {
        "densmap or output_dens": recipe.density is not None,
        "unique=True": recipe.unique,
        "compute_loss=True": recipe.record_loss,
        "update_negatives=True": recipe.plan.update_negatives,
        f"init={recipe.init!r}": recipe.init == "pca",
        "output_metric": not recipe.plan.forces.space.is_euclidean,
    }
    for name, given in refused.items():
        if given:
            raise ValueError(f"{name} is not possible for a Dask array: it needs all rows in one memory")


def fit_array(inputs: ArrayInputs, progress: Progress | None = None) -> ClusterMap:
    """Map the rows of a Dask array.

    The map depends on the rows, the recipe and the seed, not on chunks, workers or parts.
    """
    progress = Progress() if progress is None else progress
    check_recipe(inputs.recipe, inputs.metric)
    engine = Engine.current(inputs.n_jobs, inputs.memory)
    with engine.discarded_on_error():
        return _fit(inputs, engine, progress)


def _fit(inputs: ArrayInputs, engine: Engine, progress: Progress) -> ClusterMap:
    rows, recipe = inputs.rows, inputs.recipe
    assert isinstance(recipe.affinity, FuzzyAffinity)
    search = Search(rows.n, recipe.affinity.columns(rows.n), inputs.metric, inputs.metric_kwds, inputs.seed)
    engine = with_room(rows, search.k, engine)
    parts = part_count(rows, search.k, engine)
    with progress.stage("neighbors"):
        table = find_neighbors(rows, search, parts, engine)
    with progress.stage("graph"):
        supervision = recipe.supervision
        labels = None if inputs.labels is None or supervision is None else (inputs.labels, supervision.weight)
        graph = build_graph(table, recipe.affinity, engine, labels)
    fitted = ClusterMap(rows, recipe, RowFacts(inputs.labels, inputs.weight), search, table, graph, engine)
    if recipe.output == "graph":
        return replace(fitted, report=FitReport(stage_times=progress.times))
    with progress.stage("initialize"):
        start, used = _start(inputs, graph, table, engine)
    return _lay_out(fitted, start, used, progress)


def _start(inputs: ArrayInputs, graph: GraphParts, table: NeighborParts, engine: Engine) -> tuple[list[Any], str]:
    recipe, bounds = inputs.recipe, graph.bounds
    if inputs.start is None:
        return first_places(recipe.init, recipe.n_components, inputs.seed, graph, table, inputs.rows, engine)
    return [
        engine.store(f"start-{first}", {"places": inputs.start[first:stop]})
        for first, stop in pairwise(bounds.tolist())
    ], "array"


def _lay_out(fitted: ClusterMap, start: list[Any], used: str, progress: Progress) -> ClusterMap:
    plan, graph, engine = fitted.recipe.plan, fitted.graph_parts, fitted.engine
    assert isinstance(plan, SampledPlan)
    stops = list(plan.stops or [default_epochs(graph.n)])
    schedule, heaviest, weight = plan.schedule(stops[-1], graph.n), graph.heaviest, fitted.facts.weight
    weights = None if weight is None else engine.store("weights", {"weights": weight})
    if weights is not None:
        weighted = [task(_heaviest_weighted, "weigh")(batch, graph.n, weights) for batch in engine.batches(graph.parts)]
        heaviest = max(engine.values(weighted))
        schedule = schedule.with_firings(max(1.0, float(np.float32(heaviest) / np.float32(graph.heaviest or 1.0))))
    rule = SweepRule(graph.n, fitted.recipe.n_components, plan.forces, schedule, fitted.seed, heaviest or 1.0)
    at_start = None
    if graph.n <= SMALL_ROWS:
        oriented = task(_orientation, "orientation")(graph.parts, start, graph.n, plan.forces.space, engine.shelf)
        at_start = engine.keep([oriented])[0]
    layout = PartedLayout(graph, start, rule, engine, weights)

    chunks, n_components = fitted.data.array.chunks[0], fitted.recipe.n_components

    def places() -> Any:
        kept = engine.share_all(layout.places)
        made = [task(_shared_places, "embedding")(kept, part, at_start) for part in fitted.parts.parts]
        return stacked(engine.run(made), graph.bounds, n_components, chunks)

    try:
        snapshots = run_layout(layout, stops, progress, places)
        embedding = snapshots[-1] if len(snapshots) == len(stops) else places()
    finally:
        layout.close()
    report = FitReport(used, layout.epoch, progress.times, tuple(snapshots) if len(stops) > 1 else ())
    return replace(fitted, embedding=embedding, report=report)


def _heaviest_weighted(parts: list[Kept], n: int, weight: Kept) -> float:
    weights = weight.load("weights")
    return max(float(load_graph(part, n).weighing_tails(weights).weights.max(initial=0.0)) for part in parts)


def _orientation(parts: list[Kept], start: list[Kept], n: int, space: OutputSpace, shelf: Shelf) -> Kept:
    """Keep the directions in which the components of a small map start, if it has several."""
    given = Orientation.of(joined_graph(parts, n), places_of(np.arange(n, dtype=np.int32), start), space)
    return shelf.keep("orientation", {} if given is None else {"component": given.component, "start": given.start})


def _shared_places(places: list[Kept], part: Kept, at_start: Kept | None) -> NDArray[np.float32]:
    """Return the places of the rows of a part; equal rows share the place of the first of them."""
    first = part.load("first")
    if at_start is None or not at_start.has("component"):
        return places_of(first, places)
    given = Orientation(at_start.load("component"), at_start.load("start"))
    return given.restored(places_of(np.arange(len(given.component), dtype=np.int32), places))[first]
