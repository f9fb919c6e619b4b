"""A fitted map as the beginning of a growing one: the same rows, neighbors, edges and places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vicinal.graph.fuzzy import membership_strengths
from vicinal.neighbors.metrics import allows_nan, is_packed
from vicinal.neighbors.online import OnlineNeighbors
from vicinal.neighbors.rows import as_rows
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.grow import GrowingMap
from vicinal.pipeline.online_graph import GraphChange, Pace
from vicinal.pipeline.recipe import Recipe, SampledPlan
from vicinal.runtime.cached import GrowingArray


def reason_against(fitted: FittedMap) -> str | None:
    """Return what of a fitted map a growing one cannot have, in words that follow "has"; None if it can have all."""
    data, recipe, options = fitted.data, fitted.recipe, fitted.options
    plan = recipe.plan if type(recipe.plan) is SampledPlan else None
    density = recipe.density is not None and recipe.density.match
    facts = {
        "no map, because transform_mode is 'graph'": fitted.embedding is None,
        "another layout than that of UMAP": plan is None,
        "densMAP's radii": density,
        "output_metric other than 'euclidean'": plan is not None and not plan.forces.space.is_euclidean,
        "update_negatives=True": plan is not None and plan.update_negatives,
        "labels (y)": options.y is not None,
        "sample_weight": options.weight is not None,
        "pinned rows (fixed_mask)": options.pins is not None and bool(options.pins.mask.any()),
        "unique=True": fitted.laid_out is not None,
        "rows without neighbors, and disconnected='nan'": recipe.isolated == "nan" and bool(fitted.disconnected.any()),
    }
    if not isinstance(data, TrainingRows):
        facts["metric='precomputed'"] = True
    else:
        facts |= {
            "precomputed_knn": data.given is not None,
            f"metric={data.metric!r} of packed bits": isinstance(data.metric, str) and is_packed(data.metric),
            f"metric={data.metric!r} of rows with missing values": allows_nan(data.metric),
            "short sparse rows, whose neighbors are chosen by what they share": data.prefers_shared,
        }
    return next((name for name, holds in facts.items() if holds), None)


def grown_from(fitted: FittedMap, recipe: Recipe, pace: Pace, k: int, n_jobs: int) -> GrowingMap:
    """Return a growing map with the rows, edges and places of a fitted one.

    ``k`` is the length of the neighbor lists. Memberships of the fitted rows stay as they are until the neighbors of a
    row change.
    """
    fitted = fitted.on(None)
    data, places = fitted.data, fitted.embedding
    assert isinstance(data, TrainingRows)
    assert places is not None
    rows = as_rows(data.rows)
    search = OnlineNeighbors(k, data.metric, metric_kwds=data.metric_kwds, seed=fitted.seed, n_jobs=n_jobs)
    grown = GrowingMap(search, recipe, pace, n_jobs)
    graph = grown.graph
    graph.queue_searched(rows, fitted.neighbors)
    change = graph.build(graph.rows_to_compute(np.empty(0, np.int64)), graph.relate(np.arange(data.n, dtype=np.int32)))
    graph.apply(_with_edges_of(fitted, change, graph.unrelated))
    grown.places = GrowingArray(places)
    grown.age = GrowingArray(np.full(data.n, fitted.report.n_epochs, np.int32))
    grown.left = GrowingArray(np.zeros(data.n, np.int32))
    grown.first_map_rows = grown.settled = data.n
    grown.init_used = fitted.report.init_used
    grown.warned = True  # the fit did
    return grown


def _with_edges_of(fitted: FittedMap, change: GraphChange, unrelated: float | None) -> GraphChange:
    """Return the lists of all rows with the memberships of a fit, in which sigma also depends on other rows."""
    related = fitted.recipe.affinity.related(fitted.neighbors, unrelated, fitted.data.n)
    rho, sigma = fitted.graph.rho, fitted.graph.sigma
    index, membership = np.full_like(change.index, -1), np.zeros_like(change.membership)
    index[:, : related.k] = related.index
    membership[:, : related.k] = membership_strengths(related, rho, sigma)
    return replace(change, index=index, membership=membership, rho=rho, sigma=sigma)
