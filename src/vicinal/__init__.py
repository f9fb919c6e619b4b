"""vicinal: neighbour embeddings, fast, deterministic on any number of threads, drop-in for umap-learn.

Public names are imported when they are first used, so that ``import vicinal`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "UMAP": "vicinal.estimators.umap",
    "Neighbors": "vicinal.neighbors",
    "find_neighbors": "vicinal.neighbors",
    "Graph": "vicinal.graph",
    "fuzzy_graph": "vicinal.graph",
    "entropic_graph": "vicinal.graph",
    "Kernel": "vicinal.kernel",
    "fit_ab": "vicinal.kernel",
    "Layout": "vicinal.layout",
    "Schedule": "vicinal.layout",
}
_MODULES = ("graph", "initialize", "kernel", "layout", "neighbors", "plot", "quality", "supervision")

__all__ = [
    "UMAP",
    "Graph",
    "Kernel",
    "Layout",
    "Neighbors",
    "Schedule",
    "entropic_graph",
    "find_neighbors",
    "fit_ab",
    "fuzzy_graph",
]

if TYPE_CHECKING:
    from vicinal.estimators.umap import UMAP
    from vicinal.graph import Graph, entropic_graph, fuzzy_graph
    from vicinal.kernel import Kernel, fit_ab
    from vicinal.layout import Layout, Schedule
    from vicinal.neighbors import Neighbors, find_neighbors


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"vicinal.{name}")
    raise AttributeError(f"module 'vicinal' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
