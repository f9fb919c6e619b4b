"""Initial embeddings by name, with fallbacks.

``INITIALIZERS`` maps a name to a function of an :class:`InitialTask`. An initializer that cannot do its work raises
:class:`CannotInitialize`, and its entry in ``FALLBACKS`` is tried next: a fit never fails because of its start.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.graph.graph import Graph
from vicinal.initialize.spectral import ShapedPlaces, spectral_places
from vicinal.initialize.task import NARROW, NOISE, CannotInitialize, InitialTask, extent, pca_places, to_extent
from vicinal.runtime.inputs import as_array

AnyPlaces = NDArray[np.float64] | ShapedPlaces

INITIALIZERS: dict[str, Callable[[InitialTask], AnyPlaces]] = {
    "spectral": spectral_places,
    "pca": pca_places,
    "random": lambda task: task.rng.uniform(size=(task.graph.n, task.n_components)),
}
# umap-learn's second solver for the same eigenvectors has no counterpart here.
INITIALIZER_ALIASES = {"tswspectral": "spectral"}
FALLBACKS = {"spectral": "pca", "pca": "random"}


def spectral_start(
    graph: Graph, X: ArrayLike | None = None, *, n_components: int = 2, seed: int = 0, n_jobs: int = -1
) -> NDArray[np.float32]:
    """Compute an initial embedding from the graph's Laplacian eigenvectors.

    Parameters
    ----------
    graph : Graph
        A symmetric graph.
    X : array [rows, columns], optional
        The rows; they decide where the components of a disconnected graph are placed.
    n_components : int, default 2
    seed : int, default 0
    n_jobs : int, default -1
        Threads; the result has the same bits for any number.

    Returns
    -------
    array [rows, n_components]
        Places between 0 and 10 on each axis, or a larger number for more than 20,000 rows, for
        :class:`vicinal.Layout`. A long sheet has its own proportions in a box of the same area.

    See Also
    --------
    pca_start, random_start

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import find_neighbors, fuzzy_graph, spectral_start
    >>> X = load_iris().data
    >>> spectral_start(fuzzy_graph(find_neighbors(X, 10)), X).shape
    (150, 2)
    """
    rows = None if X is None else _rows(X)
    return initial_embedding("spectral", InitialTask(graph, rows, n_components, seed, n_jobs))[0]


def pca_start(X: ArrayLike, *, n_components: int = 2, seed: int = 0) -> NDArray[np.float32]:
    """Compute an initial embedding from the principal components of ``X``, in the box of :func:`spectral_start`.

    See Also
    --------
    spectral_start, random_start

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import pca_start
    >>> X = load_iris().data
    >>> pca_start(X).shape
    (150, 2)
    """
    rows = _rows(X)
    return initial_embedding("pca", InitialTask(Graph.without_edges(len(rows)), rows, n_components, seed))[0]


def random_start(n: int, *, n_components: int = 2, seed: int = 0) -> NDArray[np.float32]:
    """Draw an initial embedding of ``n`` rows uniformly in the box of :func:`spectral_start`.

    See Also
    --------
    spectral_start, pca_start

    Examples
    --------
    >>> from vicinal import random_start
    >>> random_start(100).shape
    (100, 2)
    """
    return initial_embedding("random", InitialTask(Graph.without_edges(n), None, n_components, seed))[0]


def _rows(X: ArrayLike) -> NDArray[np.float32]:
    rows = as_array(X).astype(np.float32, copy=False)
    if rows.ndim != 2 or not np.isfinite(rows).all():
        raise ValueError(f"X must be a 2-D array of finite numbers, got shape {rows.shape}")
    return rows


def initial_places(name: str, task: InitialTask) -> tuple[NDArray[np.float64], str]:
    """Compute unscaled places by ``name`` or a fallback; also return the name used, with the reason for a fallback."""
    places, used = _any_places(name, task)
    return places if isinstance(places, np.ndarray) else places.to_numpy(), used


def _any_places(name: str, task: InitialTask) -> tuple[AnyPlaces, str]:
    """Compute unscaled places where the graph lives."""
    used = name
    why: list[str] = []
    while True:
        try:
            places = INITIALIZERS[used](task)
            if np.isfinite(places).all() if isinstance(places, np.ndarray) else places.is_finite():
                return places, f"{used} ({'; '.join(why)})" if why else used
            raise CannotInitialize("the result was not finite")
        except (CannotInitialize, np.linalg.LinAlgError) as error:
            why.append(f"{used}: {error}")
            used = FALLBACKS[used]


def initial_embedding(name: str, task: InitialTask) -> tuple[NDArray[np.float32], str]:
    """Compute places by ``name``, scaled to their box with a little noise, and the name of what was used."""
    places, used = _any_places(name, task)
    boxed = ShapedPlaces(places) if isinstance(places, np.ndarray) else places
    return boxed.start(extent(task.graph.n, task.n_components), NOISE, task.seed), used


def narrow_embedding(name: str, task: InitialTask) -> tuple[NDArray[np.float32], str]:
    """Compute places by ``name``, centered and in their own proportions, so narrow that all rows repel each other."""
    places, used = initial_places(name, task)
    places = places - places.mean(axis=0)
    deviation = places.std(axis=0).max() if places.size else 0.0
    return (places * (NARROW / deviation if deviation > 0 else 1.0)).astype(np.float32), used


def given_start(init: Any, n: int, n_components: int, *, stretched: bool = True) -> NDArray[np.float32] | None:
    """Check a start given as an array; return None if it is a name.

    It is scaled to its box by one factor for all axes if ``stretched``, so that it keeps its shape.
    """
    if isinstance(init, str):
        return None
    given = as_array(init, "init")
    try:
        places = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be one of {sorted(INITIALIZERS)} or an array of numbers: {error}") from error
    if places.shape != (n, n_components):
        raise ValueError(f"init must have shape {(n, n_components)}, got {places.shape}")
    if not np.isfinite(places).all():
        bad = int(np.argmin(np.isfinite(places).all(axis=1)))
        raise ValueError(f"init contains NaN or infinity, first in row {bad}")
    if not stretched:
        return places.astype(np.float32)
    width = np.ptp(places, axis=0) if n else np.zeros(n_components)
    widest = width.max(initial=0.0)
    return to_extent(places, width / widest if widest > 0 else 1.0).astype(np.float32)
