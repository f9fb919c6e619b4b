"""Maps of several models of the same rows: ``a * b`` (close in both), ``a + b`` (in one), ``a - b`` (only in a)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import Estimator, Result, over_blocks, require_fitted
from vicinal.estimators.parameters import Parameter, parameters_of
from vicinal.estimators.umap import UMAP
from vicinal.neighbors.metrics import Finite
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


class ComposedUMAP(UMAP):
    """The map of two fitted models, as ``*``, ``+`` and ``-`` make it.

    The graph is umap-learn's. The layout's parameters are those of the leftmost model, which ``n_neighbors``,
    ``min_dist`` and the other attributes of UMAP's parameters return. New rows are given as a pair: as the left model
    expects them and as the right one does.

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

    map_: ComposedMap  # type: ignore[assignment]
    _parameters: ClassVar[dict[str, Parameter]] = {}
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}

    def __init__(self, left: Any, right: Any, operation: str = "intersection") -> None:
        self.left = left
        self.right = right
        self.operation = operation

    def __getattr__(self, name: str) -> Any:
        if name in parameters_of(UMAP):
            return getattr(self.left, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def _refused(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("a composed model follows from its parts: fit or update them, and compose them again")

    fit = fit_transform = partial_fit = update = to_progressive = inverse_transform = _refused

    @over_blocks
    def transform(
        self, X: Any, ensure_all_finite: Finite = True, *, force_all_finite: Finite | None = None
    ) -> NDArray[np.float32]:
        """Return the places of rows, given as a pair: for the left model and for the right one."""
        finite = ensure_all_finite if force_all_finite is None else force_all_finite
        return place_composed(self.map_, self.check_new_rows(X, finite))

    def check_new_rows(self, X: Any, ensure_all_finite: Finite = True) -> Any:
        """Check rows for ``transform``: a pair, each part by its own model."""
        require_fitted(self)
        if not isinstance(X, tuple | list) or len(X) != 2:
            raise TypeError("X must be a pair: the rows of the left model and those of the right one")
        rows = tuple(m.check_new_rows(x, ensure_all_finite) for m, x in zip((self.left, self.right), X, strict=True))
        left, right = _count(rows[0]), _count(rows[1])
        if left != right:
            raise ValueError(f"X must hold the same rows twice, got {left} and {right}")
        return rows

    embedding_ = Result(lambda composed: composed.places)
    graph_ = Result(lambda composed: composed.graph.to_scipy())
    init_used_ = Result(lambda composed: composed.init_used)
    _n_features_out = Result(lambda composed: int(composed.embedding.shape[1]))

    def _state(self, include_data: bool) -> dict[str, Any]:
        """The parts are in the file as the models that they came from."""
        state = Estimator._state(self, include_data)
        if "map_" in state:
            own = state.pop("map_")
            names = ("missing", "graph", "embedding", "init_used")
            state["composed"] = {name: getattr(own, name) for name in names}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        parts = state.pop("composed", None)
        Estimator._restore(self, state)
        if parts is not None:
            self.map_ = ComposedMap(self.left.map_, self.right.map_, self.operation, **parts)
            self.map_.check()


def _count(rows: Any) -> int:
    """Return the number of rows of a matrix, or of each part of a pair."""
    return _count(rows[0]) if isinstance(rows, tuple) else int(rows.shape[0])
