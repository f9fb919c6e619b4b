"""Uses of a growing map that leave it as it is: placing other rows in it, and taking it as the result of a fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vicinal.maps.fitted import FitReport, FittedMap
from vicinal.maps.growing_map import GrowingMap
from vicinal.maps.plans import Reference
from vicinal.maps.row_facts import RowFacts
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.training_data import recognize


def place_in(grown: GrowingMap, rows: Rows, placement_seed: int) -> NDArray[np.float32]:
    """Return the places of rows in the map as it is; rows of the map have their own."""
    grown.complete()
    places, n_jobs = grown.embedding, grown.growth.n_jobs
    known, keys = recognize(grown.placed_rows(), rows)
    found: NDArray[np.float32] = places[np.maximum(known, 0)]
    new = np.flatnonzero(known < 0)
    if new.size:
        plan, affinity = grown.growth.plan(placement_seed), grown.growth.affinity(grown.search.k)
        neighbors = grown.search.query(rows[new], affinity.query_columns(len(places)))
        graph = affinity.graph_to_known(neighbors, len(places), n_jobs)
        found[new] = plan.place(graph, Reference(places), keys[new], n_jobs=n_jobs)
    return found


def as_fitted(grown: GrowingMap, placement_seed: int) -> FittedMap:
    """Return the rows placed so far as the result of a fit, which shares nothing with the growing map."""
    graph, rows, n_jobs = grown.whole_graph(), grown.placed_rows(), grown.growth.n_jobs
    recipe = grown.growth.recipe(grown.search.k, placement_seed)
    # The share of the online search is not that of the sketches with which a fitted map is searched.
    neighbors = replace(grown.search.table(), share=1.0)
    return FittedMap(
        data=replace(rows, rows=rows.rows.copy()),
        recipe=recipe,
        facts=RowFacts(grown.graph.targets.given(grown.n_placed)),
        neighbors=neighbors,
        search_graph=recipe.affinity.graph(recipe.affinity.related(neighbors, rows), n_jobs)
        if grown.graph.targets.is_known
        else graph,
        graph=graph,
        embedding=grown.embedding,
        seed=rows.seed,
        report=FitReport(grown.init_used, int(grown.age.view.max(initial=0))),
    )
