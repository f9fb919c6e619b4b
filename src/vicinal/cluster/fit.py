"""A fit of a Dask array: the steps of :mod:`vicinal.pipeline.fit` over parts of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.cluster.engine import Engine, task
from vicinal.cluster.fitted import ClusterMap, check_supported, stacked
from vicinal.cluster.graph import build_graph, joined_graph, parted_radii, supervised_graph
from vicinal.cluster.layout import PartedLayout, places_of
from vicinal.cluster.neighbors import Search, part_count, search_parts, with_room
from vicinal.cluster.rows import DaskRows, read_block
from vicinal.cluster.start import first_places
from vicinal.cluster.store import Store, Stored
from vicinal.graph.fuzzy import prefer_shared
from vicinal.graph.supervision import class_codes
from vicinal.initialize.start import given_start
from vicinal.layout.density import Radii, embedding_radii, radius_correlation
from vicinal.layout.forces import OutputSpace
from vicinal.layout.sampled import SweepRule, run_layout
from vicinal.layout.schedule import SMALL_ROWS
from vicinal.layout.surroundings import Orientation, spread_rows, surrounded
from vicinal.neighbors.metrics import is_bounded, is_non_negative, unrelated_distance
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import prefers_shared
from vicinal.pipeline.fit import Executor
from vicinal.pipeline.fitted import FitReport, FittedDensity
from vicinal.pipeline.place import warn_of_isolated
from vicinal.pipeline.recipe import EdgeTotals, Recipe, Refused
from vicinal.pipeline.row_options import RowOptions, check_weights
from vicinal.runtime.inputs import is_dask
from vicinal.runtime.progress import Progress
from vicinal.runtime.sizes import bytes_of


@dataclass(frozen=True)
class PartedPlaces:
    """Places of the linked rows in pieces, and what ``orient`` and ``surround`` do with them where they are needed."""

    pieces: Any
    direction: Any = None  # the directions in which components started
    linked: Any = None  # the numbers of the linked rows among all, if some rows have no edge


class PartExecutor(Executor):
    """A fit of the rows of a Dask array.

    The map depends on the rows, the recipe and the seed, not on chunks, workers or parts. It has the bits of the local
    map of the same graph up to the number of rows that start in one task (cluster/start.py). ``recipe_of`` makes the
    recipe for a number of rows, ``parameters`` are those of the estimator.
    """

    def __init__(
        self,
        X: Any,
        recipe_of: Callable[[int], Recipe],
        parameters: Mapping[str, Any],
        y: Any = None,
        sample_weight: Any = None,
        *,
        seed: int = 0,
        n_jobs: int = -1,
    ) -> None:
        self.data = DaskRows.of(X)
        n = self.data.n
        self.recipe: Recipe = recipe_of(n)
        self.parameters, self.seed = parameters, seed
        self.ends_with_graph = self.recipe.output == "graph"
        self._refuse()
        weight = check_weights(_computed(sample_weight), n)
        if weight is not None and not weight.all():
            raise Refused(
                f"sample_weight must be above 0 for a Dask array, but is 0 in row {int(np.argmin(weight))}; leave such "
                "rows out and transform them"
            )
        self.options = RowOptions(self._class_numbers(_computed(y)), weight)
        self.given = given_start(_computed(parameters["init"]), n, self.recipe.n_components)
        limit = parameters.get("memory_limit")
        self.engine = Engine.current(n_jobs, None if limit is None else bytes_of(limit))
        self.places: Any = None
        self.density: FittedDensity | None = None
        self._report = FitReport()

    def _refuse(self) -> None:
        """Refuse what needs all rows in one memory, naming the step and the parameter."""
        plan, parameters = self.recipe.plan, self.parameters
        space = plan.forces.space  # refuses to lay out if the method does not sample
        check_supported(parameters)
        refused = {
            "search: precomputed_knn": _is_given(parameters.get("precomputed_knn")),
            "check: unique=True": self.recipe.unique,
            "lay_out: compute_loss=True": self.recipe.record_loss,
            "lay_out: update_negatives=True": bool(parameters.get("update_negatives")),
            "lay_out: output_metric": not space.is_euclidean,
            "surround: disconnected='nan'": self.recipe.isolated == "nan",
        }
        for name, given in refused.items():
            if given:
                raise Refused(f"{name} is not possible for a Dask array: it needs all rows in one memory")

    def _class_numbers(self, y: Any) -> NDArray[np.int64] | None:
        labels = self.recipe.supervision
        if y is None or labels is None:
            return None
        if labels.metric != "categorical":
            raise Refused(
                f"supervise: target_metric must be 'categorical' for a Dask array, got {labels.metric!r}: numbers are "
                "compared by a graph of their own"
            )
        return class_codes(labels.check(y, self.data.n))

    def prepared(self, progress: Progress) -> AbstractContextManager[Any]:
        self.progress = progress
        return self.engine.discarded_on_error()

    def check(self) -> None:
        parameters, n, affinity = self.parameters, self.data.n, self.recipe.affinity
        metric, self.unrelated, shared = parameters["metric"], None, False
        if is_bounded(metric):
            looked_at = self.engine.values([task(_look_at, "look")(block) for block in self.data.blocks])
            self.unrelated = unrelated_distance(metric, all(non_negative for non_negative, _ in looked_at))
            shared = self.data.sparse and prefers_shared(self.unrelated, sum(stored for _, stored in looked_at), n)
        self.limit = affinity.limit(self.unrelated)
        columns = affinity.search_columns(n, shared)
        self.search_for = Search(n, columns, metric, parameters.get("metric_kwds"), self.seed)
        self.engine = with_room(self.data, columns, self.engine)

    def search(self) -> None:
        parts = part_count(self.data, self.search_for.k, self.engine)
        self.table = search_parts(self.data, self.search_for, parts, self.engine)

    def relate(self) -> None:
        # Neighbors are cut at the limit where they become edges.
        k = self.recipe.affinity.columns(self.data.n)
        self.related = self.table
        if self.table.k > k and self.unrelated is not None:
            engine, every = self.engine, self.engine.share_all(self.table.parts)
            made = engine.keep(
                [
                    task(_choose, "relate")(part, p, every, k, self.limit, self.unrelated, engine.store)
                    for p, part in enumerate(self.table.parts)
                ]
            )
            self.table = replace(self.table, parts=[one[0] for one in made], k=k)
            self.related = replace(self.table, parts=[one[1] for one in made])

    def build_graph(self) -> None:
        self.search_graph = build_graph(self.related, self.recipe.affinity, self.engine, limit=self.limit)

    def supervise(self) -> None:
        self.graph, labels = self.search_graph, self.recipe.supervision
        if self.options.y is not None and labels is not None:
            self.graph = supervised_graph(self.graph, self.options.y, labels.weight, self.engine)
        self.isolated = self.graph.isolated(self.engine)
        warn_of_isolated(self.isolated, self.limit)

    def start(self) -> None:
        self.linked = np.flatnonzero(~self.isolated) if self.isolated.any() else None
        self.laid_out = self.graph if self.linked is None else self.graph.among(self.linked, self.engine)
        if self.given is None:
            of = self.laid_out, self.table, self.data, self.engine
            self.started, self.init_used = first_places(self.recipe, self.seed, *of)
            return
        given = self.given if self.linked is None else self.given[self.linked]
        self.init_used = "array"
        self.started = [
            self.engine.put(f"start-{first}", {"places": given[first:stop]})
            for first, stop in pairwise(self.laid_out.bounds.tolist())
        ]

    def lay_out(self, finish: Callable[[PartedPlaces], PartedPlaces]) -> None:
        plan, engine, recipe, graph = self.recipe.plan, self.engine, self.recipe, self.laid_out
        stops = plan.epoch_stops(EdgeTotals(self.graph.n, self.graph.total, self.graph.heaviest))
        schedule = plan.schedule(stops[-1], self.graph.n)
        options = self.options
        if self.linked is not None:
            weight = None if options.weight is None else options.weight[self.linked]
            options = RowOptions(None if options.y is None else options.y[self.linked], weight)
        negatives = plan.negative_weights(lambda: graph.degree(engine), options)
        radii = None
        if recipe.density is not None:
            radii = parted_radii(self.graph, self.related, engine, limit=self.limit)
        term = None if radii is None or recipe.density is None else recipe.density.term(radii)
        if term is not None and self.linked is not None:
            term = term.of_rows(self.linked)
        if options.weight is not None:
            heaviest, graph = graph.heaviest, graph.weighing_tails(options.weight, engine)
            schedule = schedule.with_firings(
                max(1.0, float(np.float32(graph.heaviest or 1.0) / np.float32(heaviest or 1.0)))
            )
        rule = SweepRule(graph.n, recipe.n_components, plan.forces, schedule, self.seed, graph.heaviest or 1.0)
        self.direction = None
        if plan.orients and graph.n <= SMALL_ROWS:
            oriented = task(_orientation, "orientation")(
                self.laid_out.parts, self.started, graph.n, plan.forces.space, engine.store
            )
            self.direction = engine.keep([oriented])[0]
        layout = PartedLayout(graph, self.started, rule, engine, negative_weights=negatives, density=term)

        def places() -> Any:
            return self._stacked(finish(PartedPlaces(engine.share_all(layout.places))))

        try:
            snapshots = run_layout(layout, stops, self.progress, places)
            self.places = snapshots[-1] if len(snapshots) == len(stops) else places()
            if radii is not None:
                self.density = self._fitted_density(radii, layout, finish)
        finally:
            layout.close()
        self._report = FitReport(
            self.init_used, layout.epoch, self.progress.times, tuple(snapshots) if len(stops) > 1 else ()
        )

    def orient(self, places: PartedPlaces) -> PartedPlaces:
        return replace(places, direction=self.direction)

    def surround(self, places: PartedPlaces) -> PartedPlaces:
        if self.linked is None:
            return places
        linked = self.engine.put("linked", {"linked": self.linked, "isolated": self.isolated})
        return replace(places, linked=linked)

    def report(self) -> ClusterMap:
        return ClusterMap(
            self.data,
            self.recipe,
            self.options,
            self.search_for,
            self.table,
            self.search_graph,
            self.graph,
            self.engine,
            self.places,
            replace(self._report, stage_times=self.progress.times),
            self.density,
        )

    def _stacked(self, places: PartedPlaces) -> Any:
        """Return places as a Dask array with the row chunks of the data."""
        made = [task(_finished_part, "embedding")(places, part) for part in self.table.parts]
        whole = stacked(self.engine.run(made), self.table.bounds, np.empty((0, self.recipe.n_components), np.float32))
        return whole.rechunk((self.data.array.chunks[0], -1))

    def _fitted_density(
        self, radii: Radii, layout: PartedLayout, finish: Callable[[PartedPlaces], PartedPlaces]
    ) -> FittedDensity:
        engine, plan = self.engine, self.recipe.density
        places, k = finish(PartedPlaces(engine.share_all(layout.places))), self.recipe.affinity.columns(self.data.n)
        embedded = engine.values([task(_embedded_radii, "radii")(places, k, engine.alone_jobs)])[0]
        summary = layout.density_summary if plan is not None and plan.match else None
        return FittedDensity(radii, embedded, radius_correlation(radii.log_radius, embedded), summary)


def _is_given(knn: Any) -> bool:
    """Tell whether precomputed neighbors are given; umap-learn's default is a tuple of three None."""
    return knn is not None and not (isinstance(knn, tuple | list) and all(part is None for part in knn))


def _computed(values: Any) -> Any:
    """Return an argument with one value per row in memory."""
    return values.compute() if is_dask(values) else values


def _look_at(chunks: list[Any]) -> tuple[bool, int]:
    """Return whether rows have no negative number, and how many numbers they store."""
    rows = read_block(chunks)
    return is_non_negative(rows), int(rows.size)


def _choose(
    part: Stored, number: int, parts: list[Stored], k: int, limit: float, largest: float, store: Store
) -> tuple[Stored, Stored]:
    """Keep the k nearest rows of the rows of a part, and k neighbors chosen by what they share with their rows."""
    found = Neighbors(part.load("index"), part.load("distance"))
    nearest = [Neighbors(one.load("index"), one.load("distance")).first(k).within(limit).index for one in parts]
    chosen = prefer_shared(found.within(limit), k, largest, np.concatenate(nearest))
    first = found.first(k)
    others = {name: part.load(name) for name in ("first", "landmark")}
    table = store.keep(f"nearest-{number}", {"index": first.index, "distance": first.distance, **others})
    return table, store.keep(f"related-{number}", {"index": chosen.index, "distance": chosen.distance})


def _orientation(parts: list[Stored], start: list[Stored], n: int, space: OutputSpace, store: Store) -> Stored:
    """Keep the directions in which the components of a small map start, if it has several."""
    given = Orientation.of(joined_graph(parts, n), places_of(np.arange(n, dtype=np.int32), start), space)
    return store.keep("orientation", {} if given is None else {"component": given.component, "start": given.start})


def _finished(made: PartedPlaces) -> NDArray[np.float32]:
    """Return the places of all rows that are laid out, turned back, with the isolated ones around them."""
    n = sum(piece.length("places") for piece in made.pieces)
    places = places_of(np.arange(n, dtype=np.int32), made.pieces)
    if made.direction is not None and made.direction.has("component"):
        places = Orientation(made.direction.load("component"), made.direction.load("start")).restored(places)
    if made.linked is not None:
        isolated = made.linked.load("isolated")
        places = surrounded(spread_rows(places, made.linked.load("linked"), len(isolated)), isolated)
    return places


def _finished_part(made: PartedPlaces, part: Stored) -> NDArray[np.float32]:
    """Return the places of the rows of a part; equal rows share the place of the first of them."""
    first = part.load("first")
    if made.linked is None and (made.direction is None or not made.direction.has("component")):
        return places_of(first, made.pieces)
    return _finished(made)[first]


def _embedded_radii(made: PartedPlaces, k: int, n_jobs: int) -> NDArray[np.float64]:
    return embedding_radii(_finished(made), k, n_jobs)
