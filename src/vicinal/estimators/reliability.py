"""The reliability of fitted models and of maps made elsewhere."""

from __future__ import annotations

from dataclasses import replace
from numbers import Integral
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import Estimator
from vicinal.maps.composition import ComposedMap
from vicinal.maps.fitted import FittedMap
from vicinal.maps.judging import GHOSTS, JudgedMap, Judgement, judge, of_composed, of_fitted, of_places
from vicinal.neighbors.metrics import PRECOMPUTED, required_finite
from vicinal.neighbors.rows import as_rows, check_rows
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows
from vicinal.quality.reliability import Reliability
from vicinal.quality.spaces import check_matrix
from vicinal.runtime.jobs import resolve_n_jobs
from vicinal.runtime.parameters import Interval

# Results of `reliability_` by model, each with the places that it was measured for: a growing map changes.
_measured: WeakKeyDictionary[Any, tuple[NDArray[np.float32], Reliability]] = WeakKeyDictionary()


def reliability(
    model_or_X: Any,
    embedding: Any = None,
    *,
    n_neighbors: int | None = None,
    ghosts: int = GHOSTS,
    seeds: int = 0,
    others: Any = None,
    null: Any = True,
    metric: Any = "euclidean",
    metric_kwds: dict[str, Any] | None = None,
    random_state: int = 0,
    n_jobs: int | None = -1,
) -> Any:
    """Measure how far each row of a map can be believed.

    Parameters
    ----------
    model_or_X : fitted model, or array or sparse matrix of shape (n_rows, n_features)
        The model whose map is judged, or the rows of a map that was made elsewhere.
    embedding : array of shape (n_rows, n_components), optional
        The map; required with rows, and not allowed with a model.
    n_neighbors : int, optional
        Number of neighbors k of the near scale; the wide scale is 10 k. By default 15, or as many as the neighbor
        table of the model has.
    ghosts : int, default 4
        Layers of ghosts, which measure the stability of a map that vicinal laid out; 0 skips it.
    seeds : int, default 0
        Number of whole layouts with other seeds, the slow reference that replaces the ghosts.
    others : sequence of arrays of shape (n_rows, n_components), optional
        Maps of the same rows, made with other seeds, that replace the ghosts.
    null : bool or estimator, default True
        Whether to compare with a map of shuffled rows. An estimator makes that map by its ``fit_transform``; by default
        it is made as the judged map was, and for a map made elsewhere by :class:`UMAP` with default parameters.
    metric, metric_kwds
        Metric of the rows, or "precomputed"; not used with a model, which has its own.
    random_state : int, default 0
        Seed of the shuffled rows and of their map.
    n_jobs : int or None, default -1
        Number of threads for a map made elsewhere; a model uses its own. The result does not depend on it.

    Returns
    -------
    Reliability
        For :class:`AlignedUMAP`, a list with one for each slice.

    See Also
    --------
    choose : compare maps of several parameters.

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> X = np.random.default_rng(0).normal(size=(300, 10))
    >>> found = vicinal.reliability(X, X[:, :2], null=False)
    >>> found.reliability.shape
    (300,)
    """
    how = _checked(n_neighbors, ghosts, seeds, null, random_state)
    if isinstance(model_or_X, Estimator):
        if embedding is not None:
            raise ValueError("embedding must be None with a model; give the rows instead of the model to judge a map")
        maps = judged_maps(model_or_X)
        found = [_judged(*one, _with_others(how, others, one[0])) for one in maps]
        return found if hasattr(model_or_X, "mappers_") else found[0]
    if embedding is None:
        raise ValueError("embedding must be given with rows")
    data = _training_data(model_or_X, metric, metric_kwds, resolve_n_jobs(n_jobs))
    places = _places("embedding", embedding, data.n)
    judged = of_places(data, places, how.n_neighbors)
    return judge(judged, _with_others(how, others, judged))


def reliability_of(model: Estimator) -> Any:
    """Return the reliability of a fitted model with default options, measured on first use."""
    if not model.__sklearn_is_fitted__():
        raise AttributeError(f"reliability_: this {type(model).__name__} is not fitted yet")
    try:
        places = np.concatenate(model.embeddings_) if hasattr(model, "mappers_") else model.embedding_
    except AttributeError as error:
        raise AttributeError(f"reliability_: this {type(model).__name__} has no map") from error
    known = _measured.get(model)
    if known is None or not np.array_equal(known[0], places):
        known = _measured[model] = places.copy(), reliability(model)
    return known[1]


Whole = tuple[JudgedMap, "NDArray[np.int64] | None", "NDArray[np.int64] | None"]


def judged_maps(model: Any) -> list[Whole]:
    """Return the maps of a model, each with the measured row whose place every row has, if these are not the same."""
    if hasattr(model, "mappers_"):
        return [one for mapper in model.mappers_ for one in judged_maps(mapper)]
    if hasattr(model, "to_umap"):
        return judged_maps(model.to_umap())
    fitted = getattr(model, "map_", None)
    if isinstance(fitted, FittedMap) and fitted.embedding is not None:
        position = None if fitted.laid_out is None else fitted.selection.position
        return [(of_fitted(fitted), position, fitted.laid_out)]
    if isinstance(fitted, ComposedMap):
        return [of_composed(fitted)]
    trained = getattr(fitted, "training", None)
    if trained is not None:
        return [(replace(trained, places=model.embedding_), None, None)]
    raise AttributeError(
        f"this {type(model).__name__} does not hold the rows of its map; call reliability(X, model.embedding_)"
    )


def _judged(
    judged: JudgedMap, position: NDArray[np.int64] | None, rows: NDArray[np.int64] | None, how: Judgement
) -> Reliability:
    found = judge(judged, how)
    return found if position is None or rows is None else found.spread_to(position, rows)


def _checked(n_neighbors: Any, ghosts: Any, seeds: Any, null: Any, random_state: Any) -> Judgement:
    counts = {"ghosts": (ghosts, 0), "seeds": (seeds, 0), "random_state": (random_state, 0)}
    if n_neighbors is not None:
        counts["n_neighbors"] = (n_neighbors, 1)
    for name, (value, least) in counts.items():
        allowed = Interval(Integral, least, None, closed="left")
        if isinstance(value, bool) or not allowed.allows(value):
            raise ValueError(f"{name} must be {allowed}, got {value!r}")
    if not isinstance(null, bool) and not hasattr(null, "fit_transform"):
        raise ValueError(f"null must be True, False or an estimator with fit_transform, got {null!r}")
    embed = None if isinstance(null, bool) else null.fit_transform
    k = None if n_neighbors is None else int(n_neighbors)
    return Judgement(k, int(ghosts), int(seeds), (), bool(null) or embed is not None, embed, int(random_state))


def _with_others(how: Judgement, others: Any, judged: JudgedMap) -> Judgement:
    if others is None:
        return how
    n = len(judged.places)
    return replace(how, others=tuple(_places(f"others[{i}]", one, n) for i, one in enumerate(others)))


def _places(name: str, values: Any, n: int) -> NDArray[np.float32]:
    places = check_matrix(name, values)
    if len(places) != n:
        raise ValueError(f"{name} must have one row for each of the {n} rows, got {len(places)}")
    return np.ascontiguousarray(places, dtype=np.float32)


def _training_data(X: Any, metric: Any, metric_kwds: dict[str, Any] | None, n_jobs: int) -> TrainingData:
    rows = as_rows(X)
    if rows.ndim != 2:
        raise ValueError(f"X must be 2-D, got {rows.ndim} dimensions")
    if isinstance(metric, str) and metric == PRECOMPUTED:
        return TrainingDistances(rows, n_jobs)
    largest = check_rows(rows, n_jobs, finite=required_finite(metric))
    data = TrainingRows(rows, metric, metric_kwds, 0, n_jobs, largest=largest)
    _ = data.index  # checks the metric, and the rows against it
    return data
