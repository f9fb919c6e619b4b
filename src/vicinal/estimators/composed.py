"""Maps of several models of the same rows: ``a * b`` (close in both), ``a + b`` (in one), ``a - b`` (only in a)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import Estimator, over_blocks, require_fitted
from vicinal.pipeline.compose import OPERATIONS, ComposedMap, place_composed
from vicinal.pipeline.compose import compose as compose_maps
from vicinal.pipeline.fitted import FittedMap


def compose(left: Any, right: Any, operation: str) -> ComposedUMAP:
    """Map two fitted models of the same rows; ``operation`` is "intersection", "union" or "difference"."""
    if operation not in OPERATIONS:
        raise ValueError(f"operation must be one of {sorted(OPERATIONS)}, got {operation!r}")
    for model in (left, right):
        if not isinstance(model, Estimator):
            raise TypeError(f"only fitted models can be composed, got {type(model).__name__}")
        require_fitted(model)
        fitted = getattr(model, "map_", None)
        if not isinstance(fitted, ComposedMap) and not (
            isinstance(fitted, FittedMap) and fitted.recipe.affinity.composable
        ):
            raise TypeError(f"only models of fuzzy graphs can be composed, got {type(model).__name__}")
    composed = ComposedUMAP(left, right, operation)
    composed.map_ = compose_maps(left.map_, right.map_, operation)
    return composed


def intersection(left: Any, right: Any) -> ComposedUMAP:
    """Map the fuzzy intersection of two models of the same rows: rows that are close in both are close."""
    return compose(left, right, "intersection")


def union(left: Any, right: Any) -> ComposedUMAP:
    """Map the fuzzy union of two models of the same rows: rows that are close in one of them are close."""
    return compose(left, right, "union")


def difference(left: Any, right: Any) -> ComposedUMAP:
    """Map what the right model does not have: rows that are close in the left one and not in the right are close."""
    return compose(left, right, "difference")


class ComposedUMAP(Estimator):
    """The map of two fitted models, as ``*``, ``+`` and ``-`` make it.

    The layout's parameters are those of the leftmost model. New rows are given as a pair: as the left model expects
    them and as the right one does.

    Parameters
    ----------
    left, right : fitted models
        Models of the same rows, which may be composed themselves.
    operation : {"intersection", "union", "difference"}, default "intersection"

    Attributes
    ----------
    embedding_ : array [rows, n_components]
    graph_ : sparse matrix
    init_used_ : str
    """

    map_: ComposedMap

    def __init__(self, left: Any, right: Any, operation: str = "intersection") -> None:
        self.left = left
        self.right = right
        self.operation = operation

    __mul__ = intersection
    __add__ = union
    __sub__ = difference

    @over_blocks
    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the places of rows, given as a pair: for the left model and for the right one."""
        return place_composed(self.map_, self.check_new_rows(X))

    def check_new_rows(self, X: Any) -> Any:
        """Check rows for ``transform``: a pair, each part by its own model."""
        require_fitted(self)
        if not isinstance(X, tuple | list) or len(X) != 2:
            raise TypeError("X must be a pair: the rows of the left model and those of the right one")
        rows = self.left.check_new_rows(X[0]), self.right.check_new_rows(X[1])
        left, right = _count(rows[0]), _count(rows[1])
        if left != right:
            raise ValueError(f"X must hold the same rows twice, got {left} and {right}")
        return rows

    @property
    def embedding_(self) -> NDArray[np.float32]:
        return self.map_.places

    @property
    def graph_(self) -> Any:
        return self.map_.graph.to_scipy()

    @property
    def init_used_(self) -> str:
        return self.map_.init_used

    @property
    def _n_features_out(self) -> int:
        return int(self.embedding_.shape[1])

    def _state(self, include_data: bool) -> dict[str, Any]:
        """The parts are in the file as the models that they came from."""
        state = super()._state(include_data)
        if "map_" in state:
            own = state.pop("map_")
            names = ("missing", "graph", "embedding", "init_used")
            state["composed"] = {name: getattr(own, name) for name in names}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        parts = state.pop("composed", None)
        super()._restore(state)
        if parts is not None:
            self.map_ = ComposedMap(self.left.map_, self.right.map_, self.operation, **parts)
            self.map_.check()


def _count(rows: Any) -> int:
    """Return the number of rows of a matrix, or of each part of a pair."""
    return _count(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0])
