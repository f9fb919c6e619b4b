"""Dask array -> map: the stages of :mod:`vicinal.pipeline.fit` over parts of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import dask.array as da
import numpy as np
from dask.delayed import delayed
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from vicinal.cluster.engine import Engine, current_client, task
from vicinal.cluster.graph import GraphParts, build_graph, joined_graph, load_graph
from vicinal.cluster.layout import PartedLayout, places_of
from vicinal.cluster.neighbors import NeighborParts, Search, part_count, search_parts, with_room
from vicinal.cluster.rows import DaskRows, read_block
from vicinal.cluster.start import first_places
from vicinal.cluster.store import Store, Stored
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.supervision import class_codes
from vicinal.initialize.start import given_start
from vicinal.layout.forces import OutputSpace
from vicinal.layout.sampled import SweepRule, run_layout
from vicinal.layout.schedule import SMALL_ROWS, default_epochs
from vicinal.layout.surroundings import Orientation
from vicinal.neighbors.metrics import ALIASES
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fitted import FitReport, FittedMap, FittedNeighbors
from vicinal.pipeline.recipe import FuzzyAffinity, LargeVisPlan, Recipe, RowFacts, SampledPlan, check_weights
from vicinal.runtime.cached import cached
from vicinal.runtime.inputs import is_dask
from vicinal.runtime.memory import bytes_of, readable
from vicinal.runtime.progress import Progress


@dataclass(frozen=True, eq=False)
class PartedTable:
    """A neighbor table as Dask arrays [rows, k]."""

    index: Any
    distance: Any


@dataclass(frozen=True, eq=False)
class ClusterMap:
    """A map of a Dask array, and everything that placing new rows in it needs.

    ``embedding`` is a Dask array with the row chunks of the data (None if only the graph was asked for). Neighbors and
    graph stay in the parts in which they were computed; they are files if all workers can reach one directory, which is
    removed when this value is gone.
    """

    data: DaskRows
    recipe: Recipe
    facts: RowFacts
    search: Search
    parts: NeighborParts
    graph_parts: GraphParts
    engine: Engine
    embedding: Any = None
    report: FitReport = field(default_factory=FitReport)
    density: None = None

    @property
    def seed(self) -> int:
        return self.search.seed

    @property
    def neighbors(self) -> PartedTable:
        """The neighbor table."""
        return parted_table(self.parts, self.engine, self.data.array.chunks[0])

    @property
    def graph(self) -> PartedGraph:
        """The graph."""
        return PartedGraph(self.graph_parts, self.engine)

    @cached
    def gathered(self) -> FittedMap:
        """The map as a local fit would return it, in the memory of this process."""
        self._check_room()
        values, places = self.engine.values, self.embedding
        report = replace(self.report, snapshots=tuple(np.asarray(one) for one in self.report.snapshots))
        return _gathered_map(
            values(self.parts.parts),
            values(self.graph_parts.parts),
            [self.data.array.compute()],
            [] if places is None else [places.compute()],
            self._facts(report),
        )

    def gathering(self) -> Any:
        """Return a task that makes the map as a local fit would return it, where other tasks need it."""
        self._check_room()
        places = [] if self.embedding is None else self.embedding.to_delayed().ravel().tolist()
        facts = self._facts(replace(self.report, snapshots=()))
        return task(_gathered_map, "map")(
            self.parts.parts, self.graph_parts.parts, self.data.chunks, places, facts, self.engine.held
        )

    @property
    def is_sparse(self) -> bool:
        """Whether rows are transformed into lines of a graph."""
        return self.embedding is None

    def _facts(self, report: FitReport) -> MapFacts:
        return MapFacts(self.recipe, self.facts, self.search, self.engine.threads, report)

    def _check_room(self) -> None:
        n, k = self.data.n, self.parts.k
        needed = 4.0 * n * self.data.d + 12.0 * self.graph_parts.n_edges + n * (8.0 * k + 64.0)
        if self.engine.memory is not None and needed > self.engine.memory:
            raise MemoryError(
                f"the map of {n} rows takes {readable(needed)} in one memory, more than "
                f"memory_limit={readable(self.engine.memory)}; embedding_ and graph_ stay in parts"
            )


@dataclass(frozen=True, eq=False)
class MapFacts:
    """What a map is made of besides its parts."""

    recipe: Recipe
    facts: RowFacts
    search: Search
    n_jobs: int
    report: FitReport


def _gathered_map(
    table: list[Stored], graph: list[Stored], chunks: list[Any], places: list[Any], facts: MapFacts, held: Any = None
) -> FittedMap:
    """Join the parts of a map; ``held`` keeps the files as long as the task can be asked for."""
    search = facts.search
    joined, data = joined_graph(graph, search.n), joined_data(chunks, search, facts.n_jobs)
    return FittedMap(
        data,
        facts.recipe,
        facts.facts,
        joined_table(table),
        joined,
        joined,
        np.concatenate(places) if places else None,
        search.seed,
        report=facts.report,
    )


def joined_table(parts: list[Stored]) -> Neighbors:
    """Join the parts of a neighbor table."""
    index, distance = (np.concatenate([part.load(name) for part in parts]) for name in ("index", "distance"))
    return Neighbors(index, distance)


def joined_data(chunks: list[Any], search: Search, n_jobs: int) -> TrainingRows:
    """Join chunks of rows, with what compares them."""
    return TrainingRows(read_block(chunks), search.metric, search.metric_kwds, search.seed, n_jobs)


@dataclass(frozen=True, eq=False)
class PartedGraph:
    """A graph whose parts stay where they are."""

    parts: GraphParts
    engine: Engine

    @property
    def n_tails(self) -> int:
        return self.parts.n

    def to_scipy(self) -> Any:
        """Return a Dask array whose blocks are SciPy matrices, one for each part."""
        n, bounds = self.parts.n, self.parts.bounds
        meta = csr_matrix((0, 0), dtype=np.float32)
        blocks = [
            da.from_delayed(delayed(_matrix)(part, n, self.engine.held), shape=(stop - first, n), meta=meta)
            for part, (first, stop) in zip(self.parts.parts, pairwise(bounds.tolist()), strict=True)
        ]
        return da.concatenate(blocks)


def _matrix(part: Stored, n: int, held: Any) -> csr_matrix:
    return load_graph(part, n).to_scipy()


def parted_table(table: NeighborParts, engine: Engine, chunks: tuple[int, ...]) -> PartedTable:
    """Return a table in parts as Dask arrays with the given row chunks."""

    def joined(name: str, dtype: Any) -> Any:
        blocks = [
            da.from_delayed(delayed(_loaded)(part, name, engine.held), shape=(stop - first, table.k), dtype=dtype)
            for part, (first, stop) in zip(table.parts, pairwise(table.bounds.tolist()), strict=True)
        ]
        return da.concatenate(blocks).rechunk((chunks, (table.k,)))

    return PartedTable(joined("index", np.int32), joined("distance", np.float32))


def _loaded(part: Stored, name: str, held: Any) -> Any:
    """Return an array of a part. ``held`` keeps the files as long as the task can be asked for."""
    return part.load(name)


def stacked(parts: list[Any], bounds: Any, n_components: int, chunks: tuple[int, ...]) -> Any:
    """Return places in parts as one Dask array with the given row chunks."""
    blocks = [
        da.from_delayed(part, shape=(stop - first, n_components), dtype=np.float32)
        if not isinstance(part, np.ndarray)
        else da.from_array(part, chunks=-1)
        for part, (first, stop) in zip(parts, pairwise(bounds.tolist()), strict=True)
    ]
    return da.concatenate(blocks).rechunk((chunks, (n_components,)))


def transform_blocks(model: Any, transform: Callable[[Any, Any], Any], X: Any, columns: int) -> Any:
    """Return ``transform(model, rows)`` for every block of rows of a Dask array, as a Dask array.

    Nothing is computed here. Blocks are transformed one by one, with the result that the rows would have in memory,
    because the result for a row does not depend on the other rows.

    Parameters
    ----------
    model : estimator
        A fitted model, which every worker receives once. What a model learned of a Dask array is joined by a task, and
        passes from worker to worker, not through this process.
    transform : callable
        A method of its class, which takes the model and rows in memory.
    X : Dask array or data frame
        The rows.
    columns : int
        Number of columns of the result.
    """
    rows = DaskRows.of(X)
    learned = vars(model).get(model._result)
    if isinstance(learned, Gatherable):
        bare = delayed(model._with(**{model._result: None}), pure=False, traverse=False)
        sent, sparse = task(_learned, "model")(bare, model._result, learned.gathering()), learned.is_sparse
    else:
        client = current_client()
        sent = delayed(model, pure=False, traverse=False) if client is None else client.scatter(model, broadcast=True)
        sparse = issparse(transform(model, _one_row(rows)))
    meta: Any = csr_matrix((0, columns), dtype=np.float32) if sparse else np.empty((0, columns), np.float32)
    return rows.array.map_blocks(
        _transformed, transform, sent, dtype=np.float32, chunks=(rows.array.chunks[0], (columns,)), meta=meta
    )


@runtime_checkable
class Gatherable(Protocol):
    """What was learned of a Dask array, and is joined where it is needed."""

    @property
    def is_sparse(self) -> bool: ...

    def gathering(self) -> Any: ...


def _learned(model: Any, name: str, learned: Any) -> Any:
    return model._with(**{name: learned})


def _one_row(rows: DaskRows) -> Any:
    """Return a row of zeros of the same kind, which tells what the result is like; all metrics accept it."""
    return csr_matrix((1, rows.d), dtype=np.float32) if rows.sparse else np.zeros((1, rows.d), np.float32)


def _transformed(block: Any, transform: Callable[[Any, Any], Any], model: Any) -> Any:
    return transform(model, read_block([block]))


CLUSTER_METRICS = ("euclidean", "sqeuclidean", "cosine", "correlation", "manhattan", "chebyshev")


@dataclass(frozen=True, eq=False)
class ClusterNeighbors:
    """The rows of a Dask array and their neighbors, in parts."""

    data: DaskRows
    search: Search
    parts: NeighborParts
    engine: Engine

    @property
    def table(self) -> PartedTable:
        """The neighbor table as Dask arrays."""
        return parted_table(self.parts, self.engine, self.data.array.chunks[0])

    def graph(self, k: int, mode: str) -> Any:
        """Return the graph of the k nearest rows of every row: a Dask array whose blocks are SciPy matrices."""
        n, table = self.data.n, self.table
        return da.map_blocks(
            _listed, table.index, table.distance, k, mode, n, chunks=(table.index.chunks[0], (n,)),
            meta=csr_matrix((0, n), dtype=np.float32),
        )  # fmt: skip

    @cached
    def gathered(self) -> FittedNeighbors:
        """The same in the memory of this process."""
        return _gathered_neighbors(
            self.engine.values(self.parts.parts), [self.data.array.compute()], self.search, self.engine.threads
        )

    def gathering(self) -> Any:
        """Return a task that makes the same where other tasks need it."""
        return task(_gathered_neighbors, "neighbors")(
            self.parts.parts, self.data.chunks, self.search, self.engine.threads, self.engine.held
        )

    is_sparse = True  # rows are transformed into lines of a graph


def _gathered_neighbors(
    table: list[Stored], chunks: list[Any], search: Search, n_jobs: int, held: Any = None
) -> FittedNeighbors:
    """Join the parts of a table; ``held`` keeps the files as long as the task can be asked for."""
    joined = joined_table(table)
    return FittedNeighbors(joined_data(chunks, search, n_jobs), joined, fuzzy_graph(joined, n_jobs=n_jobs))


def search_array(X: Any, columns: Callable[[int], int], seed: int, parameters: Mapping[str, Any]) -> ClusterNeighbors:
    """Search the rows of a Dask array; ``columns`` gives the length of the lists for a number of rows."""
    check_metric_name(parameters["metric"])
    check_device(parameters.get("device"))
    rows = DaskRows.of(X)
    k = columns(rows.n)
    if not 1 <= k <= rows.n:
        raise ValueError(f"n_neighbors must lie between 1 and the number of rows ({rows.n}), got {k}")
    limit = parameters.get("memory_limit")
    engine = with_room(rows, k, Engine.current(parameters["n_jobs"], None if limit is None else bytes_of(limit)))
    search = Search(rows.n, k, parameters["metric"], parameters["metric_kwds"], seed)
    with engine.discarded_on_error():
        return ClusterNeighbors(rows, search, search_parts(rows, search, part_count(rows, k, engine), engine), engine)


def check_metric_name(metric: Any) -> None:
    """Refuse metrics whose cells have no centers."""
    if not isinstance(metric, str) or ALIASES.get(metric, metric) not in CLUSTER_METRICS:
        raise ValueError(f"metric must be one of {sorted(CLUSTER_METRICS)} for a Dask array, got {metric!r}")


def check_device(device: Any) -> None:
    """Refuse a device: tasks run on processors."""
    if device not in (None, "cpu"):
        raise ValueError(f"device must be None or 'cpu' for a Dask array, got {device!r}")


def _listed(index: NDArray[np.int32], distance: NDArray[np.float32], k: int, mode: str, n: int) -> csr_matrix:
    """Return the k nearest rows of each line, sorted by (distance, row)."""
    order = np.lexsort((index, distance), axis=1)[:, :k]
    index, distance = np.take_along_axis(index, order, axis=1), np.take_along_axis(distance, order, axis=1)
    present = index >= 0
    weights = distance if mode == "distance" else np.ones_like(distance)
    indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    return csr_matrix((weights[present], index[present], indptr), shape=(len(index), n))


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
        table = search_parts(rows, search, parts, engine)
    with progress.stage("graph"):
        supervision = recipe.supervision
        labels = None if inputs.labels is None or supervision is None else (inputs.labels, supervision.weight)
        limit = recipe.affinity.disconnection_distance
        graph = build_graph(table, recipe.affinity, engine, limit=np.inf if limit is None else limit, labels=labels)
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
        engine.put(f"start-{first}", {"places": inputs.start[first:stop]}) for first, stop in pairwise(bounds.tolist())
    ], "array"


def _lay_out(fitted: ClusterMap, start: list[Any], used: str, progress: Progress) -> ClusterMap:
    plan, graph, engine = fitted.recipe.plan, fitted.graph_parts, fitted.engine
    assert isinstance(plan, SampledPlan)
    stops = list(plan.stops or [default_epochs(graph.n)])
    schedule, weight = plan.schedule(stops[-1], graph.n), fitted.facts.weight
    weighed = graph if weight is None else graph.weighing_tails(weight, engine)
    if weight is not None:
        heaviest = np.float32(weighed.heaviest) / np.float32(graph.heaviest or 1.0)
        schedule = schedule.with_firings(max(1.0, float(heaviest)))
    rule = SweepRule(graph.n, fitted.recipe.n_components, plan.forces, schedule, fitted.seed, weighed.heaviest or 1.0)
    at_start = None
    if graph.n <= SMALL_ROWS:
        oriented = task(_orientation, "orientation")(graph.parts, start, graph.n, plan.forces.space, engine.store)
        at_start = engine.keep([oriented])[0]
    layout = PartedLayout(weighed, start, rule, engine, negative_weights=weight)

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


def _orientation(parts: list[Stored], start: list[Stored], n: int, space: OutputSpace, store: Store) -> Stored:
    """Keep the directions in which the components of a small map start, if it has several."""
    given = Orientation.of(joined_graph(parts, n), places_of(np.arange(n, dtype=np.int32), start), space)
    return store.keep("orientation", {} if given is None else {"component": given.component, "start": given.start})


def _shared_places(places: list[Stored], part: Stored, at_start: Stored | None) -> NDArray[np.float32]:
    """Return the places of the rows of a part; equal rows share the place of the first of them."""
    first = part.load("first")
    if at_start is None or not at_start.has("component"):
        return places_of(first, places)
    given = Orientation(at_start.load("component"), at_start.load("start"))
    return given.restored(places_of(np.arange(len(given.component), dtype=np.int32), places))[first]
