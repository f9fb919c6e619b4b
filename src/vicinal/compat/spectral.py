"""umap-learn's ``umap.spectral``: the spectral start of a layout as a function."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.compat.umap_functions import dense_rows
from vicinal.estimators.base import random_seed
from vicinal.graph.graph import Graph
from vicinal.initialize.start import initial_places
from vicinal.initialize.task import InitialTask

__all__ = ["spectral_layout", "tswspectral_layout"]


def spectral_layout(
    data: Any,
    graph: Any,
    dim: int,
    random_state: Any,
    metric: Any = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    tol: float = 0.0,
    maxiter: int = 0,
) -> NDArray[np.float64]:
    """Return the smoothest eigenvectors of the graph's normalized Laplacian as places, as :func:`spectral_start` does.

    Parameters
    ----------
    data : array [rows, columns] or None
        The rows; they decide where the components of a disconnected graph are placed.
    graph : matrix [rows, rows]
        Symmetric weights, dense or sparse.
    dim : int
        Number of eigenvectors.
    random_state : int, RandomState or None
        Seed of the solver.
    metric, metric_kwds, tol, maxiter
        Ignored: components are placed by their means, and the tolerance of the solver is fixed.
    """
    edges = Graph.from_scipy(csr_matrix(graph))
    task = InitialTask(edges, dense_rows(data, edges.n), int(dim), random_seed(random_state), -1)
    places, used = initial_places("spectral", task)
    if used != "spectral":
        warnings.warn(f"Spectral initialization failed: the places are {used}", UserWarning, stacklevel=2)
    return places


def tswspectral_layout(
    data: Any,
    graph: Any,
    dim: int,
    random_state: Any,
    metric: Any = "euclidean",
    metric_kwds: Mapping[str, Any] | None = None,
    method: str | None = None,
    tol: float = 0.0,
    maxiter: int = 0,
) -> NDArray[np.float64]:
    """Return :func:`spectral_layout`. ``method`` is ignored, because there is only one solver."""
    return spectral_layout(data, graph, dim, random_state)
