"""Maps of several models of the same rows: ``a * b`` (close in both), ``a + b`` (in one), ``a - b`` (in a only).

Each model sees the rows in its own way (other columns, another metric); their graphs are joined by fuzzy set
operations and laid out once more. A composition is a model that can be composed again; a new row is given to
``transform`` as each part wants it, for ``(a * b) + c`` as ``((rows_a, rows_b), rows_c)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._base import Embedding
from vicinal.graph.graph import Graph
from vicinal.graph.set_operations import intersect, missing_weights, reset_connectivity, unite
from vicinal.initialize.start import initial_embedding
from vicinal.initialize.task import InitialTask
from vicinal.maps.row_facts import Given

if TYPE_CHECKING:
    from vicinal.estimators.umap import UMAP

Missing = tuple[float, float]

# What joins two matrices of weights, and whether the joined neighbourhoods get a metric of their own again.
OPERATIONS: dict[str, tuple[Callable[[Any, Any, Missing], Any], bool]] = {
    "intersection": (lambda p, q, missing: intersect(p, q, missing=missing), True),
    "union": (lambda p, q, missing: unite(p, q, missing=missing), True),
    "difference": (lambda p, q, missing: intersect(p, q, right_complement=True, missing=missing), False),
}


class Composable:
    """Fitted models of the same rows that ``*``, ``+`` and ``-`` join."""

    def __mul__(self, other: Any) -> ComposedUMAP:
        return compose(self, other, "intersection")

    def __add__(self, other: Any) -> ComposedUMAP:
        return compose(self, other, "union")

    def __sub__(self, other: Any) -> ComposedUMAP:
        return compose(self, other, "difference")


def compose(left: Any, right: Any, operation: str) -> ComposedUMAP:
    """The map of two fitted models; ``operation`` is "intersection", "union" or "difference"."""
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {sorted(OPERATIONS)}, got {operation!r}")
    for model in (left, right):
        if not isinstance(model, Composable):
            raise TypeError(f"only fitted models can be composed, got {type(model).__name__}")
        model._check_is_fitted("graph_")  # type: ignore[attr-defined]
    n, m = left.graph_.shape[0], right.graph_.shape[0]
    if n != m:
        raise ValueError(f"models of the same rows are composed, got one of {n} rows and one of {m}")
    return ComposedUMAP(left, right, operation)._embed()


class ComposedUMAP(Composable, Embedding):
    """What ``compose`` makes. The layout's parameters are those of the leftmost model."""

    def __init__(self, left: Any, right: Any, operation: str = "intersection") -> None:
        self.left = left
        self.right = right
        self.operation = operation

    @property
    def _first(self) -> UMAP:
        """The leftmost model, which is not composed."""
        model: UMAP = self.left._first if isinstance(self.left, ComposedUMAP) else self.left
        return model

    def _embed(self) -> ComposedUMAP:
        first, jobs = self._first, self._first._jobs()
        seed, kernel = first._fit_seed, first._kernel()
        join, own_metric = OPERATIONS[self.operation]
        self._missing = missing_weights(self.left.graph_, self.right.graph_, self.operation == "difference")
        joined = reset_connectivity(join(self.left.graph_, self.right.graph_, self._missing), own_metric)
        graph = first._search_graph.with_weights(joined)
        task = InitialTask(graph, None, int(first.n_components), seed, jobs)
        name = first._initializer() if isinstance(first.init, str) else "spectral"
        start, self.init_used_ = initial_embedding(name, task)
        n_epochs = first._epoch_stops(graph.n)[-1]
        schedule = first._schedule(n_epochs, first.learning_rate)
        layout = first._layout(graph, first._output_space().start(start), kernel, Given(), schedule, seed)
        layout.step(n_epochs)
        self.embedding_, self.graph_ = layout.embedding, graph.to_scipy()
        self._a, self._b = kernel.a, kernel.b
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Places of new rows, given as a pair: as the left model wants them, and as the right one does."""
        self._check_is_fitted("embedding_")
        rows = self._check_data(X, reset=False)
        known, keys = self._recognised(rows)
        out = self.embedding_[np.maximum(known, 0)]
        new = np.flatnonzero(known < 0)
        if new.size:
            out[new] = self._first._settled(self._memberships(taken(rows, new)), self.embedding_, keys[new])
        return out

    def _check_data(self, X: Any, *, reset: bool) -> Any:
        if not isinstance(X, tuple | list) or len(X) != 2:
            raise TypeError("X must be a pair: the rows of the left model and those of the right one")
        rows = self.left._check_data(X[0], reset=reset), self.right._check_data(X[1], reset=reset)
        if count(rows[0]) != count(rows[1]):
            raise ValueError(f"X must hold the same rows twice, got {count(rows[0])} and {count(rows[1])}")
        return rows

    def _recognised(self, rows: Any) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Rows that both parts know as the same one, and a number for their content."""
        left, left_keys = self.left._recognised(rows[0])
        right, right_keys = self.right._recognised(rows[1])
        return np.where(left == right, left, -1), left_keys * np.uint64(0x9E3779B97F4A7C15) ^ right_keys

    def _memberships(self, rows: Any) -> Graph:
        left: Graph = self.left._memberships(rows[0])
        right: Graph = self.right._memberships(rows[1])
        joined = OPERATIONS[self.operation][0](left.to_scipy(), right.to_scipy(), self._missing).tocsr()
        strongest = joined.max(axis=1).toarray().reshape(-1)
        joined.data = joined.data / np.repeat(np.where(strongest > 0, strongest, 1.0), np.diff(joined.indptr))
        return left.with_weights(joined)


def count(rows: Any) -> int:
    """Rows of a matrix, or of each part of a pair."""
    return count(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0])


def taken(rows: Any, which: NDArray[np.int64]) -> Any:
    """Some rows of a matrix, or of each part of a pair."""
    return tuple(taken(part, which) for part in rows) if isinstance(rows, tuple) else rows[which]
