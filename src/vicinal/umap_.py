"""umap-learn's module name, for code that imports from ``umap.umap_``: the estimator and the functions."""

from __future__ import annotations

from vicinal.compat import umap_functions
from vicinal.compat.umap_functions import *  # noqa: F403
from vicinal.estimators.umap import UMAP

__all__ = ["UMAP", *umap_functions.__all__]
