"""From parameters to parts of a recipe, for the estimators that share UMAP's parameters."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from vicinal.graph.supervision import Supervision
from vicinal.initialize.start import INITIALIZER_ALIASES
from vicinal.layout.forces import Forces, Kernel, OutputSpace, fit_ab, output_space
from vicinal.neighbors.metrics import PRECOMPUTED
from vicinal.neighbors.rows import HasRows
from vicinal.neighbors.table import Neighbors, neighbors_from_knn
from vicinal.pipeline.online_graph import Pace
from vicinal.pipeline.recipe import DensityPlan, FuzzyAffinity, Recipe, SampledPlan
from vicinal.runtime.parameters import Interval


def check_curve(model: Any) -> None:
    """Check the parameters of the low-dimensional kernel against each other."""
    if model.min_dist > model.spread:
        raise ValueError(f"min_dist must not exceed spread, got min_dist={model.min_dist}, spread={model.spread}")
    if (model.a is None) != (model.b is None):
        raise ValueError(f"a and b must be given together, got a={model.a}, b={model.b}")


def check_precomputed(model: Any) -> None:
    """Check precomputed distances and neighbors against the other parameters."""
    pairwise = isinstance(model.metric, str) and model.metric == PRECOMPUTED
    knn = given_knn(model.precomputed_knn)
    if model.unique and (pairwise or knn is not None):
        raise ValueError("unique=True compares rows: it cannot be used with precomputed distances or neighbors")
    if pairwise and knn is not None:
        raise ValueError("precomputed_knn cannot be used with metric='precomputed': give one of them")


def kernel_of(model: Any) -> Kernel:
    """Return the kernel of ``a`` and ``b``, or the one fitted to ``spread`` and ``min_dist``."""
    if model.a is not None and model.b is not None:
        return Kernel(float(model.a), float(model.b))
    return fit_ab(model.spread, model.min_dist)


def affinity_of(model: Any) -> FuzzyAffinity:
    """Return how the neighbor table becomes a fuzzy graph."""
    return FuzzyAffinity(
        int(model.n_neighbors), model.local_connectivity, model.set_op_mix_ratio, model.disconnection_distance
    )


def initializer_of(init: Any) -> str:
    """Return the name of the initializer; an array is used as it is, and "spectral" stands in if it cannot be."""
    return str(INITIALIZER_ALIASES.get(init, init)) if isinstance(init, str) else "spectral"


def output_space_of(model: Any) -> OutputSpace:
    """Return the distance of the map."""
    return output_space(model.output_metric, model.output_metric_kwds, int(model.n_components))


def recipe_of(model: Any, seed: int, n_jobs: int, *, matches_density: bool) -> Recipe:
    """Return what a fit of UMAP does; ``matches_density`` makes the map's local radii follow the data's."""
    plan = SampledPlan(
        Forces(kernel_of(model), space=output_space_of(model)),
        epoch_stops(model.n_epochs),
        model.learning_rate,
        int(model.negative_sample_rate),
        model.repulsion_strength,
        bool(model.update_negatives),
        int(model.transform_seed),
    )
    density = None
    if matches_density or model.output_dens:
        density = DensityPlan(matches_density, model.dens_lambda, model.dens_frac, model.dens_var_shift)
    return Recipe(
        affinity_of(model),
        plan,
        int(model.n_components),
        initializer_of(model.init),
        search="approximate" if model.force_approximation_algorithm else "auto",
        supervision=supervision_of(model, seed, n_jobs),
        density=density,
        unique=bool(model.unique),
        record_loss=bool(model.compute_loss),
        output="graph" if model.transform_mode == "graph" else "embedding",
    )


def supervision_of(model: Any, seed: int, n_jobs: int) -> Supervision:
    """Return how labels or numbers shape the graph."""
    k = model.n_neighbors if model.target_n_neighbors == -1 else model.target_n_neighbors
    keywords = dict(model.target_metric_kwds or {})
    return Supervision(model.target_metric, keywords, model.target_weight, int(k), seed, n_jobs)


def growing_recipe_of(model: Any, seed: int, n_jobs: int) -> Recipe:
    """Return the recipe of a growing map."""
    plan = SampledPlan(
        Forces(kernel_of(model)),
        learning_rate=model.learning_rate,
        negative_sample_rate=int(model.negative_sample_rate),
        repulsion_strength=model.repulsion_strength,
        placement_seed=int(model.transform_seed),
    )
    labels = Supervision(
        model.target_metric, weight=model.target_weight, n_neighbors=int(model.n_neighbors), seed=seed, n_jobs=n_jobs
    )
    init, n_components = initializer_of(model.init), int(model.n_components)
    return Recipe(affinity_of(model), plan, n_components, init, supervision=labels)


def pace_of(model: Any) -> Pace:
    """Return for how many epochs the rows of a growing map move."""
    return Pace(int(model.new_epochs), int(model.updated_epochs), model.move == "all")


def given_knn(precomputed_knn: Any) -> Any:
    """Return the precomputed neighbors, or None; umap-learn's default is a tuple of three None."""
    sequence = isinstance(precomputed_knn, tuple | list)
    missing = precomputed_knn is None or (sequence and all(part is None for part in precomputed_knn))
    return None if missing else precomputed_knn


def given_neighbors(precomputed_knn: Any, rows: HasRows, n_neighbors: int) -> Neighbors | None:
    """Return the precomputed neighbors as a table of ``n_neighbors`` columns, or None."""
    given, n = given_knn(precomputed_knn), int(rows.shape[0])
    return None if given is None else neighbors_from_knn(given, n, min(int(n_neighbors), n))


def epoch_stops(n_epochs: Any) -> tuple[int, ...] | None:
    """Return the epochs whose maps are wanted, in ascending order; None if the default is asked for."""
    if n_epochs is None:
        return None
    if isinstance(n_epochs, list | tuple):
        whole = Interval(Integral, 0, None, closed="left")
        if not n_epochs or not all(whole.allows(epoch) for epoch in n_epochs):
            raise ValueError(f"n_epochs must list whole numbers of at least 0, got {n_epochs!r}")
    return tuple(sorted({int(epoch) for epoch in np.atleast_1d(np.asarray(n_epochs))}))
