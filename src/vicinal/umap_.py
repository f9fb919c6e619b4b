"""umap-learn's module name, for code that imports from ``umap.umap_``: the estimator and the functions."""

from __future__ import annotations

from vicinal.compat.umap_functions import (
    compute_membership_strengths,
    discrete_metric_simplicial_set_intersection,
    find_ab_params,
    fuzzy_simplicial_set,
    general_simplicial_set_intersection,
    general_simplicial_set_union,
    nearest_neighbors,
    reset_local_connectivity,
    simplicial_set_embedding,
    smooth_knn_dist,
)
from vicinal.estimators.umap import UMAP

__all__ = [
    "UMAP",
    "compute_membership_strengths",
    "discrete_metric_simplicial_set_intersection",
    "find_ab_params",
    "fuzzy_simplicial_set",
    "general_simplicial_set_intersection",
    "general_simplicial_set_union",
    "nearest_neighbors",
    "reset_local_connectivity",
    "simplicial_set_embedding",
    "smooth_knn_dist",
]
