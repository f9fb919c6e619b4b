"""vicinal: neighbor embeddings, fast, deterministic on any number of threads, drop-in for umap-learn.

Public names are imported on first use, so that ``import vicinal`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0"

# The module of every public name.
PUBLIC = {
    "AlignedUMAP": "estimators.aligned",
    "Atlas": "atlas.atlas",
    "Clusters": "estimators.clustering",
    "DensMAP": "estimators.umap",
    "FullLayout": "layout.full",
    "Graph": "graph.graph",
    "KNeighborsTransformer": "estimators.kneighbors",
    "Kernel": "layout.forces",
    "LargeVis": "estimators.tsne",
    "Layout": "layout.sampled",
    "ModelFileError": "files.container",
    "NeighborIndex": "neighbors.index",
    "Neighbors": "neighbors.table",
    "OnlineNeighbors": "neighbors.online",
    "ParametricUMAP": "estimators.parametric",
    "Phase": "layout.full",
    "ProgressiveUMAP": "estimators.progressive",
    "Schedule": "layout.schedule",
    "TSNE": "estimators.tsne",
    "UMAP": "estimators.umap",
    "choose": "estimators.evaluation",
    "clusters": "estimators.clustering",
    "entropic_graph": "graph.entropic",
    "estimate_memory": "estimators.evaluation",
    "find_neighbors": "neighbors.index",
    "fit_ab": "layout.forces",
    "fuzzy_graph": "graph.fuzzy",
    "load": "files.models",
    "pca_start": "initialize.start",
    "random_start": "initialize.start",
    "reliability": "estimators.evaluation",
    "spectral_start": "initialize.start",
}
# Packages and modules that are attributes of the package; some have a shorter name than their path.
_PACKAGES = (
    "areas", "atlas", "backends", "cli", "cluster", "compat", "estimators", "files", "graph", "initialize", "layout",
    "neighbors", "parametric", "pipeline", "plot", "quality", "runtime", "scverse", "umap_", "viewer",
)  # fmt: skip
# umap-learn's modules. They can be imported by its names too ("import vicinal.spectral"), as the path below says.
_COMPAT = (
    "aligned_umap", "distances", "layouts", "parametric_umap", "sparse", "spectral", "utils", "validation",
)  # fmt: skip
_MODULES = (
    {name: name for name in _PACKAGES}
    | {name: f"compat.{name}" for name in _COMPAT}
    | {
        "losses": "quality.losses",
        "metrics": "neighbors.metrics",
        "pp": "scverse.pp",
        "set_operations": "graph.set_operations",
        "supervision": "graph.supervision",
        "tl": "scverse.tl",
    }
)

__all__ = sorted(PUBLIC)

__path__.append(f"{__path__[0]}/compat")

if TYPE_CHECKING:
    from vicinal.atlas.atlas import Atlas as Atlas
    from vicinal.estimators.aligned import AlignedUMAP as AlignedUMAP
    from vicinal.estimators.clustering import Clusters as Clusters
    from vicinal.estimators.clustering import clusters as clusters
    from vicinal.estimators.evaluation import choose as choose
    from vicinal.estimators.evaluation import estimate_memory as estimate_memory
    from vicinal.estimators.evaluation import reliability as reliability
    from vicinal.estimators.kneighbors import KNeighborsTransformer as KNeighborsTransformer
    from vicinal.estimators.parametric import ParametricUMAP as ParametricUMAP
    from vicinal.estimators.progressive import ProgressiveUMAP as ProgressiveUMAP
    from vicinal.estimators.tsne import TSNE as TSNE
    from vicinal.estimators.tsne import LargeVis as LargeVis
    from vicinal.estimators.umap import UMAP as UMAP
    from vicinal.estimators.umap import DensMAP as DensMAP
    from vicinal.files.container import ModelFileError as ModelFileError
    from vicinal.files.models import load as load
    from vicinal.graph.entropic import entropic_graph as entropic_graph
    from vicinal.graph.fuzzy import fuzzy_graph as fuzzy_graph
    from vicinal.graph.graph import Graph as Graph
    from vicinal.initialize.start import pca_start as pca_start
    from vicinal.initialize.start import random_start as random_start
    from vicinal.initialize.start import spectral_start as spectral_start
    from vicinal.layout.forces import Kernel as Kernel
    from vicinal.layout.forces import fit_ab as fit_ab
    from vicinal.layout.full import FullLayout as FullLayout
    from vicinal.layout.full import Phase as Phase
    from vicinal.layout.sampled import Layout as Layout
    from vicinal.layout.schedule import Schedule as Schedule
    from vicinal.neighbors.index import NeighborIndex as NeighborIndex
    from vicinal.neighbors.index import find_neighbors as find_neighbors
    from vicinal.neighbors.online import OnlineNeighbors as OnlineNeighbors
    from vicinal.neighbors.table import Neighbors as Neighbors


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        return getattr(importlib.import_module(f"vicinal.{PUBLIC[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"vicinal.{_MODULES[name]}")
    if name == "load_ParametricUMAP":  # umap-learn has it at this place
        return importlib.import_module("vicinal.compat.parametric_umap").load_ParametricUMAP
    raise AttributeError(f"module 'vicinal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC, *_MODULES})
