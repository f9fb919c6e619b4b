"""The reliability of fitted models and of maps made elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vicinal.estimators.base import Estimator
from vicinal.estimators.umap import UMAP
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import PRECOMPUTED, required_finite
from vicinal.neighbors.rows import as_rows, check_rows
from vicinal.neighbors.table import Neighbors, neighbors_from_distances
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows
from vicinal.pipeline.compose import ComposedMap
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.judge import GHOSTS, NEIGHBORS, JudgedMap, Judgment, judge, of_composed, of_fitted, of_places
from vicinal.quality.measures import check_matrix, check_neighbors
from vicinal.quality.reliability import Reliability, measure_preservation
from vicinal.runtime.constraints import whole
from vicinal.runtime.inputs import ROW_TYPES, resolve_n_jobs
from vicinal.runtime.sizes import InputShape, Ledger

# Local, usual and wide neighborhoods, points drawn closely together or apart.
GRID = {"n_neighbors": (5, 15, 50), "min_dist": (0.0, 0.1, 0.5)}


@dataclass(frozen=True)
class Choice:
    """Fitted models and their scores, the best first.

    Attributes
    ----------
    models : list of fitted models
    table : list of dict
        For each model its parameters, ``score``, ``near``, ``wide`` and the ``seconds`` of its fit.
    """

    models: list[Any]
    table: list[dict[str, Any]]

    @property
    def best(self) -> Any:
        """The model with the highest score."""
        return self.models[0]

    def __str__(self) -> str:
        names = list(self.table[0])
        lines = [
            [f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in names]
            for row in self.table
        ]
        widths = [max(map(len, column)) for column in zip(names, *lines, strict=True)]
        return "\n".join(
            "  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in [names, *lines]
        )


def choose(
    X: Any,
    model: Any = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    *,
    n_neighbors: int = NEIGHBORS,
    random_state: int | None = 0,
    n_jobs: int | None = -1,
) -> Choice:
    """Fit a model for every combination of parameters, and score what each map keeps.

    All maps are compared with the same ``n_neighbors`` true neighbors of each row, for all parameters: ``near`` is
    the share of them among as many nearest points of the map, ``wide`` among ten times as many, both averaged over the
    rows, and ``score`` is the mean of both. The fits run one after the other, each on all threads, so that memory is
    that of one fit beside the finished models.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_features)
        The rows; distances if the model's metric is "precomputed".
    model : estimator, optional
        The model whose parameters are varied; :class:`UMAP` by default.
    grid : mapping of str to sequence, optional
        Values by parameter. By default ``n_neighbors`` in 5, 15, 50 and ``min_dist`` in 0, 0.1, 0.5.
    n_neighbors : int, default 15
        Number of true neighbors per row that maps are scored by.
    random_state : int or None, default 0
        Seed of every fit, unless the model has its own.
    n_jobs : int or None, default -1
        Number of threads.

    Returns
    -------
    Choice
        Fitted models and a table, the best first.

    See Also
    --------
    reliability : which points of one map to believe.

    Examples
    --------
    >>> import numpy as np, vicinal
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> choice = vicinal.choose(X, grid={"n_neighbors": [5, 20]}, n_neighbors=10)
    >>> len(choice.models), sorted(choice.table[0])
    (2, ['n_neighbors', 'near', 'score', 'seconds', 'wide'])
    """
    base = UMAP() if model is None else model
    if not isinstance(base, Estimator):
        raise ValueError(f"model must be an estimator of vicinal, got {type(base).__name__}")
    jobs = resolve_n_jobs(n_jobs)
    candidates = list(_candidates(base, GRID if grid is None else grid, random_state, jobs))
    true = _true_neighbors(X, base, n_neighbors, jobs)
    found = []
    for parameters, one in candidates:
        start = time.perf_counter()
        one.fit(X)
        seconds = time.perf_counter() - start
        kept = measure_preservation(true, one.embedding_, true.k - 1, jobs)
        near, wide = float(np.nanmean(kept.near)), float(np.nanmean(kept.wide))
        found.append(
            (one, {**parameters, "score": 0.5 * (near + wide), "near": near, "wide": wide, "seconds": seconds})
        )
    found.sort(key=lambda pair: -pair[1]["score"])
    return Choice([one for one, _ in found], [row for _, row in found])


def _candidates(
    base: Any, grid: Mapping[str, Sequence[Any]], random_state: int | None, jobs: int
) -> Iterator[tuple[dict[str, Any], Any]]:
    known = base.get_params(deep=False)
    for name, values in grid.items():
        if name not in known:
            raise ValueError(f"grid has the parameter {name!r}, which {type(base).__name__} does not have")
        if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray) or len(values) == 0:
            raise ValueError(f"grid[{name!r}] must be a list of values, got {values!r}")
    if not grid:
        raise ValueError("grid must have at least one parameter")
    for values in product(*grid.values()):
        parameters = dict(zip(grid, values, strict=True))
        one = clone(base).set_params(**parameters, n_jobs=jobs)
        if one.random_state is None:
            one.set_params(random_state=random_state)
        yield parameters, one


def _true_neighbors(X: Any, base: Any, n_neighbors: int, jobs: int) -> Neighbors:
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    check_neighbors(n_neighbors)
    if n < 3:
        raise ValueError(f"X must have at least 3 rows to compare maps, got {n}")
    k = min(n_neighbors, (n - 1) // 2)
    if base.metric == PRECOMPUTED:
        return neighbors_from_distances(X, k + 1)
    index = NeighborIndex(X, base.metric, metric_kwds=getattr(base, "metric_kwds", None), n_jobs=jobs)
    return index.search(k + 1)


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
        found = []
        for judged, position, rows in judged_maps(model_or_X):
            one = judge(judged, _with_others(how, others, judged))
            found.append(one if position is None or rows is None else one.spread_to(position, rows))
        return found if hasattr(model_or_X, "mappers_") else found[0]
    judged = map_made_elsewhere(model_or_X, embedding, metric, metric_kwds, resolve_n_jobs(n_jobs), how.n_neighbors)
    return judge(judged, _with_others(how, others, judged))


def map_made_elsewhere(
    X: Any, embedding: Any, metric: Any, metric_kwds: Any, n_jobs: int, n_neighbors: int | None = None
) -> JudgedMap:
    """Check rows and their map; return them with UMAP's graph of the rows."""
    if embedding is None:
        raise ValueError("embedding must be given with rows")
    data = _training_data(X, metric, metric_kwds, n_jobs)
    return of_places(data, _places("embedding", embedding, data.n), n_neighbors)


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


def _checked(n_neighbors: Any, ghosts: Any, seeds: Any, null: Any, random_state: Any) -> Judgment:
    counts = {"n_neighbors": (n_neighbors, 1), "ghosts": (ghosts, 0), "seeds": (seeds, 0)}
    for name, (value, least) in (counts | {"random_state": (random_state, 0)}).items():
        if not whole(least).allows(value) and not (name == "n_neighbors" and value is None):
            raise ValueError(f"{name} must be {whole(least)}, got {value!r}")
    if not isinstance(null, bool) and not hasattr(null, "fit_transform"):
        raise ValueError(f"null must be True, False or an estimator with fit_transform, got {null!r}")
    embed = None if isinstance(null, bool) else null.fit_transform
    k = None if n_neighbors is None else int(n_neighbors)
    return Judgment(k, int(ghosts), int(seeds), (), bool(null) or embed is not None, embed, int(random_state))


def _with_others(how: Judgment, others: Any, judged: JudgedMap) -> Judgment:
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
    rows = as_rows(X, typed=not (isinstance(metric, str) and metric == PRECOMPUTED))
    if rows.ndim != 2:
        raise ValueError(f"X must be 2-D, got {rows.ndim} dimensions")
    if isinstance(metric, str) and metric == PRECOMPUTED:
        return TrainingDistances(rows, n_jobs)
    largest = check_rows(rows, n_jobs, finite=required_finite(metric))
    data = TrainingRows(rows, metric, metric_kwds, 0, n_jobs, largest=largest)
    _ = data.index  # checks the metric, and the rows against it
    return data


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
        Type of the input. Dense rows of float16, int8 and uint8 are searched as they are; any other type than float32
        is converted, which takes a copy.
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
    import vicinal

    homes = vicinal.PUBLIC.items()
    classes = sorted(name for name, home in homes if home.startswith("estimators.") and name[0].isupper())
    if estimator not in classes:
        raise ValueError(f"estimator must be one of {classes}, got {estimator!r}")
    model = getattr(vicinal, estimator)(**params)
    ledger = Ledger()
    kept = ROW_TYPES if nnz is None and model.keeps_types else ROW_TYPES[:1]
    copied = np.dtype(dtype) not in kept
    kind = ROW_TYPES[0] if copied else np.dtype(dtype)
    model.add_input_and_fit(ledger, InputShape(int(n), int(d), nnz, copied, kind))
    return int(ledger.peak)
