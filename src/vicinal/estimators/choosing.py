"""Choose parameters by measurement: a small grid of models, each scored by what its map keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import clone

from vicinal.estimators.base import Estimator
from vicinal.estimators.umap import UMAP
from vicinal.maps.judging import NEIGHBORS
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import PRECOMPUTED
from vicinal.neighbors.precomputed import neighbors_from_distances
from vicinal.neighbors.table import Neighbors
from vicinal.quality.measures import check_neighbors
from vicinal.quality.preservation import measure_preservation
from vicinal.runtime.jobs import resolve_n_jobs

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
        lines = [[_text(row[name]) for name in names] for row in self.table]
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

    All maps are compared with the same ``n_neighbors`` true neighbors of each row, whatever the parameters: ``near`` is
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


def _text(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)
