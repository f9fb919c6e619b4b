"""umap-learn's module name, for code that imports from ``umap.umap_``: the estimator, the functions, the constants."""

from __future__ import annotations

from vicinal.compat import umap_functions
from vicinal.compat.umap_functions import *  # noqa: F403
from vicinal.estimators.umap import UMAP

# Bounds of the random integers that programs draw for umap-learn's generators.
INT32_MIN, INT32_MAX = -(2**31) + 1, 2**31 - 2

__all__ = ["INT32_MAX", "INT32_MIN", "UMAP", *umap_functions.__all__]
