"""How much memory a fit will take, before it takes any."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from vicinal.runtime.memory import InputShape, Ledger

ESTIMATORS = {
    "AlignedUMAP": "aligned",
    "DensMAP": "densmap",
    "KNeighborsTransformer": "kneighbors",
    "LargeVis": "largevis",
    "ParametricUMAP": "parametric",
    "ProgressiveUMAP": "progressive",
    "TSNE": "tsne",
    "UMAP": "umap",
}


def estimate_memory(
    n: int, d: int, *, estimator: str = "UMAP", nnz: int | None = None, dtype: Any = np.float32, **params: Any
) -> int:
    """Estimate the peak memory of a fit, in bytes beyond the input itself.

    Parameters
    ----------
    n, d : int
        Rows and columns of the input.
    estimator : str, default "UMAP"
        Name of the class: "UMAP", "DensMAP", "TSNE", "LargeVis", "KNeighborsTransformer", ...
    nnz : int, optional
        Stored entries, if the rows are sparse.
    dtype : dtype, default float32
        Type of the input; any other than float32 is converted, which takes a copy.
    **params
        Parameters of the estimator.

    See Also
    --------
    UMAP : its ``memory_limit`` refuses fits that would take more.

    Examples
    --------
    >>> from vicinal import estimate_memory
    >>> bool(estimate_memory(1_000_000, 100) < 4e9)
    True
    """
    for name, value in (("n", n), ("d", d)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
    if estimator not in ESTIMATORS:
        raise ValueError(f"estimator must be one of {sorted(ESTIMATORS)}, got {estimator!r}")
    model = getattr(import_module(f"vicinal.estimators.{ESTIMATORS[estimator]}"), estimator)(**params)
    ledger = Ledger()
    model.add_input_and_fit(ledger, InputShape(int(n), int(d), nnz, np.dtype(dtype) != np.float32))
    return int(ledger.peak)
