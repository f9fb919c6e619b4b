"""umap-learn's ``umap.parametric_umap``: the estimator, on PyTorch, and the function that loads one."""

from __future__ import annotations

import os
from typing import Any

from vicinal.estimators.parametric import ParametricUMAP

__all__ = ["ParametricUMAP", "load_ParametricUMAP"]


def load_ParametricUMAP(save_location: str | os.PathLike[str], verbose: bool = True, **given: Any) -> ParametricUMAP:
    """Load a model that ``ParametricUMAP.save`` wrote.

    Parameters
    ----------
    save_location : path
        The file, or the folder that was given to ``save``.
    verbose : bool
        Whether to print what was loaded.
    **given
        ``encoder``, ``decoder`` and ``device``, as for :meth:`vicinal.ParametricUMAP.load`.
    """
    model = ParametricUMAP.load(save_location, **given)
    if verbose:
        print(f"ParametricUMAP model loaded from {os.fspath(save_location)}")
    return model
