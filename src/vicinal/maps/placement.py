"""Places of rows in a finished map, which stays as it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.layout.density import DensityTerm
from vicinal.maps.disconnection import place_isolated
from vicinal.maps.fitted import FittedMap
from vicinal.maps.plans import FullPlan
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import hash_rows
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingDistances, recognize


def place(fitted: FittedMap, rows: Rows) -> NDArray[np.float32]:
    """Return the places of ``rows`` in a fitted map.

    A row of the training data has its place there; any other is placed among its neighbors. The result for a row
    depends on that row alone.
    """
    assert fitted.embedding is not None
    known, keys = recognize(fitted.data, rows)
    places: NDArray[np.float32] = fitted.embedding[np.maximum(known, 0)]
    new = np.flatnonzero(known < 0)
    if new.size:
        places[new] = place_new(fitted, rows if new.size == len(known) else rows[new], keys[new])
    return places


def place_new(fitted: FittedMap, rows: Rows, keys: NDArray[np.uint64] | None = None) -> NDArray[np.float32]:
    """Place rows that are not among the training rows; ``keys`` are their content hashes."""
    plan, n_jobs = fitted.recipe.plan, fitted.data.n_jobs
    keys = hash_rows(rows, n_jobs) if keys is None else keys
    neighbors = query(fitted, rows)
    graph = fitted.recipe.affinity.graph_to_known(neighbors, fitted.searched.n, n_jobs)
    if isinstance(plan, FullPlan):
        places = plan.place(graph, fitted.reference, n_jobs=n_jobs)
    else:
        density = _density_term(fitted, graph, neighbors)
        places = plan.place(graph, fitted.reference, keys, n_jobs=n_jobs, density=density)
    return place_isolated(places, graph, fitted, keys)


def memberships(fitted: FittedMap, rows: Rows) -> Graph:
    """Return the edges of ``rows`` to their nearest training rows."""
    return fitted.recipe.affinity.graph_to_known(query(fitted, rows), fitted.searched.n, fitted.data.n_jobs)


def query(fitted: FittedMap, rows: Rows) -> Neighbors:
    """Find the nearest training rows of ``rows``, without those that are too far away to be neighbors."""
    known = fitted.searched
    if fitted.laid_out is not None and isinstance(known, TrainingDistances):
        rows = rows[:, fitted.laid_out]
    columns = fitted.recipe.affinity.query_columns(known.n)
    neighbors = known.query(rows, columns, fitted.search_graph, fitted.neighbors.share)
    return fitted.recipe.affinity.related(neighbors, known)


def _density_term(fitted: FittedMap, graph: Graph, neighbors: Neighbors) -> DensityTerm | None:
    """Return the term that makes each new row match its own radius."""
    plan, density = fitted.recipe.density, fitted.density
    if plan is None or density is None or density.summary is None:
        return None
    return density.radii.placing(plan.placing_weight, density.summary, graph, neighbors)
