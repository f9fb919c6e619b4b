"""vicinal: neighbour embeddings, fast, deterministic on any number of threads, drop-in for umap-learn.

Public names are imported when they are first used, so that ``import vicinal`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vicinal import sharing as _sharing  # noqa: F401  # from here on no fork comes in the middle of an import

__version__ = "0.1.0"

# Where the public names live.
_NAMES = {
    "estimators.aligned": ("AlignedUMAP",),
    "estimators.densmap": ("DensMAP",),
    "estimators.kneighbors": ("KNeighborsTransformer",),
    "estimators.largevis": ("LargeVis",),
    "estimators.parametric": ("ParametricUMAP",),
    "estimators.progressive": ("ProgressiveUMAP",),
    "estimators.tsne": ("TSNE",),
    "estimators.umap": ("UMAP",),
    "full_layout": ("FullLayout", "Phase"),
    "functions": (
        "find_ab_params",
        "fuzzy_simplicial_set",
        "general_simplicial_set_intersection",
        "general_simplicial_set_union",
        "nearest_neighbors",
        "reset_local_connectivity",
        "simplicial_set_embedding",
        "smooth_knn_dist",
    ),
    "density": (),
    "graph": ("Graph", "entropic_graph", "fuzzy_graph"),
    "initialize": (),
    "kernel": ("Kernel", "fit_ab"),
    "layout": ("Layout", "Schedule"),
    "losses": (),
    "memory": ("estimate_memory",),
    "model_io": ("ModelFileError", "load"),
    "neighbors": ("Neighbors", "find_neighbors"),
    "online": ("OnlineNeighbors",),
    "plot": (),
    "quality": (),
    "set_operations": (),
    "supervision": (),
    "umap_": (),
    "viewer": (),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
_MODULES = {module for module in _NAMES if "." not in module}

__all__ = list(_HOME)

if TYPE_CHECKING:
    from vicinal.estimators.aligned import AlignedUMAP as AlignedUMAP
    from vicinal.estimators.densmap import DensMAP as DensMAP
    from vicinal.estimators.kneighbors import KNeighborsTransformer as KNeighborsTransformer
    from vicinal.estimators.largevis import LargeVis as LargeVis
    from vicinal.estimators.parametric import ParametricUMAP as ParametricUMAP
    from vicinal.estimators.progressive import ProgressiveUMAP as ProgressiveUMAP
    from vicinal.estimators.tsne import TSNE as TSNE
    from vicinal.estimators.umap import UMAP as UMAP
    from vicinal.full_layout import FullLayout as FullLayout
    from vicinal.full_layout import Phase as Phase
    from vicinal.functions import find_ab_params as find_ab_params
    from vicinal.functions import fuzzy_simplicial_set as fuzzy_simplicial_set
    from vicinal.functions import general_simplicial_set_intersection as general_simplicial_set_intersection
    from vicinal.functions import general_simplicial_set_union as general_simplicial_set_union
    from vicinal.functions import nearest_neighbors as nearest_neighbors
    from vicinal.functions import reset_local_connectivity as reset_local_connectivity
    from vicinal.functions import simplicial_set_embedding as simplicial_set_embedding
    from vicinal.functions import smooth_knn_dist as smooth_knn_dist
    from vicinal.graph import Graph as Graph
    from vicinal.graph import entropic_graph as entropic_graph
    from vicinal.graph import fuzzy_graph as fuzzy_graph
    from vicinal.kernel import Kernel as Kernel
    from vicinal.kernel import fit_ab as fit_ab
    from vicinal.layout import Layout as Layout
    from vicinal.layout import Schedule as Schedule
    from vicinal.memory import estimate_memory as estimate_memory
    from vicinal.model_io import ModelFileError as ModelFileError
    from vicinal.model_io import load as load
    from vicinal.neighbors import Neighbors as Neighbors
    from vicinal.neighbors import find_neighbors as find_neighbors
    from vicinal.online import OnlineNeighbors as OnlineNeighbors


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"vicinal.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"vicinal.{name}")
    raise AttributeError(f"module 'vicinal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
