"""Estimators whose result is one FittedMap: its parts as attributes, new rows placed in it, model files."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.base import Estimator, over_blocks, random_seed
from vicinal.estimators.settings import given_knn
from vicinal.estimators.umap_names import SET_PARAMETERS, SMALL_DATA, FromMap, SearchIndex
from vicinal.layout.density import finite_radii
from vicinal.maps.fitted import FittedMap
from vicinal.maps.memory import add_map
from vicinal.maps.placement import place
from vicinal.maps.plans import SampledPlan
from vicinal.maps.recipe import Recipe
from vicinal.neighbors.metrics import Finite, Rows, is_sparse
from vicinal.neighbors.rows import check_room, like_input, place_of, usable_place
from vicinal.neighbors.training_data import TrainingRows
from vicinal.quality.losses import density_correlation
from vicinal.runtime.memory import InputShape, Ledger

Self = TypeVar("Self", bound="MapEstimator")


class MapEstimator(Estimator):
    """Base of the estimators that make a map of all rows at once.

    ``map_`` holds everything that a fit learned; the other results are parts of it.
    """

    map_: FittedMap  # of a Dask array a ClusterMap, which has Dask arrays under the same names
    _given_embedding: NDArray[np.float32]

    def _recipe(self, n: int, seed: int) -> Recipe:
        """Return what a fit of ``n`` rows with these parameters does."""
        raise NotImplementedError

    def adopt_map(self: Self, fitted: FittedMap) -> Self:
        """Replace everything that an earlier fit learned by a map that was made with the present parameters."""
        computed = (name for name, value in vars(MapEstimator).items() if isinstance(value, FromMap))
        for name in ("_given_embedding", *SET_PARAMETERS, *computed):
            self.__dict__.pop(name, None)
        self._fit_params = self._settings()
        self.map_ = fitted
        self.n_features_in_ = fitted.data.shape[1]
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the model and return ``embedding_``."""
        return like_input(X, self.fit(X, y, **fit_params).embedding_)

    @over_blocks
    def transform(self, X: Any) -> Any:
        """Return the places of rows in the fitted map, which stays as it is.

        A row of the training data has its place there; any other is placed among its neighbors. The result for a row
        depends on that row alone.
        """
        self._require_map()
        return like_input(X, place(self._map_for(X), self.check_new_rows(X)))

    def _map_for(self, X: Any) -> FittedMap:
        """Return the map where new rows are placed: as ``device`` says, on the device of the rows, or where it is.

        A model that was fitted on a GPU works on a machine without one.
        """
        fitted = self.local_map
        device = self.device if self._chooses_device else None
        if device is None and place_of(X) is None:
            return fitted
        moved = fitted.on(usable_place(device, "the placement of new rows", X))
        if moved is not fitted and isinstance(moved.data, TrainingRows):
            check_room(moved.data)
        return moved

    def check_new_rows(self, X: Any, ensure_all_finite: Finite = True) -> Rows:
        """Check rows for ``transform`` and return them as float32, dense or sparse.

        They are checked against the data and the metric of the fit.
        """
        self._require_map()
        return self._check_new_rows(X, self.local_map.data, ensure_all_finite)

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, part by part."""
        searched = given_knn(getattr(self, "precomputed_knn", None)) is None
        add_map(ledger, shape, self._recipe(shape.n, 0), self.metric, init=self.init, searched=searched)

    # Dask arrays

    @property
    def local_map(self) -> FittedMap:
        """What a fit learned, in the memory of this process; a map of a Dask array is gathered on first use."""
        fitted: Any = self.map_
        local: FittedMap = fitted if isinstance(fitted, FittedMap) else fitted.gathered
        return local

    def _fit_array(self: Self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Map the rows of a Dask array (:mod:`vicinal.cluster`)."""
        from vicinal.cluster.fitting import array_inputs, fit_array

        self._check_parameters()
        seed = random_seed(self.random_state)
        inputs = array_inputs(
            X, lambda n: self._recipe(n, seed), self._settings(), y, sample_weight, seed, self._jobs()
        )
        fitted: Any = fit_array(inputs, self._progress())
        return self.adopt_map(fitted)

    def _check_parameters(self) -> None:
        self._validate_params()

    def _validate_parameters(self) -> None:
        """Check the parameters, by umap-learn's name, for programs that put models together."""
        self._check_parameters()

    # Results

    @property
    def embedding_(self) -> NDArray[np.float32]:
        if "_given_embedding" in vars(self):
            return self._given_embedding
        places = self._fitted("embedding_").embedding
        if places is None:
            raise AttributeError("embedding_: there is no map, only a graph (transform_mode='graph')")
        return places

    @embedding_.setter
    def embedding_(self, places: Any) -> None:
        """Move the points of a fitted map, or give a model that is put together the places of its ``_raw_data``."""
        given = np.require(places, np.float32, ["C", "A"])
        fitted = self.local_map if "map_" in vars(self) else None
        if given.ndim != 2 or (fitted is not None and given.shape != (fitted.data.n, fitted.recipe.n_components)):
            raise ValueError(f"embedding_ must have a place for every row, got shape {given.shape}")
        bad = ~np.isfinite(given).all(axis=1)
        if bad.any():
            raise ValueError(f"embedding_ contains NaN or infinity, first in row {int(np.argmax(bad))}")
        if fitted is None:
            self._given_embedding = given
        else:
            self.map_ = replace(fitted, embedding=given)

    @property
    def graph_(self) -> Any:
        return self._fitted("graph_").graph.to_scipy()

    @property
    def init_used_(self) -> str:
        return self._with_embedding("init_used_").report.init_used

    @property
    def n_epochs_(self) -> int:
        return self._with_embedding("n_epochs_").report.n_epochs

    @property
    def stage_times_(self) -> dict[str, float]:
        return self._fitted("stage_times_").report.stage_times

    @property
    def rad_orig_(self) -> NDArray[np.float32]:
        return self._radii("rad_orig_", embedded=False)

    @property
    def rad_emb_(self) -> NDArray[np.float32]:
        return self._radii("rad_emb_", embedded=True)

    @property
    def radius_correlation_(self) -> float:
        density = self._fitted("radius_correlation_").density
        if density is None:
            raise AttributeError("radius_correlation_: radii are computed with densmap or output_dens only")
        return density.correlation

    @property
    def density_correlation_(self) -> float:
        fitted = self._with_embedding("density_correlation_")
        if fitted.density is None or not isinstance(fitted.recipe.plan, SampledPlan):
            raise AttributeError("density_correlation_: radii are computed with densmap or output_dens only")
        kernel, places = fitted.recipe.plan.forces.kernel, fitted.reference.places
        return density_correlation(fitted.graph, places, kernel, fitted.density.radii.log_radius)

    @property
    def embedding_list_(self) -> list[NDArray[np.float32]]:
        fitted = self._with_embedding("embedding_list_")
        if not isinstance(self._fit_params.get("n_epochs"), list | tuple):
            raise AttributeError("embedding_list_: n_epochs was no list of epochs")
        return list(fitted.report.snapshots) or [self.embedding_]

    @property
    def loss_history_(self) -> dict[str, list[Any]]:
        losses = self._fitted("loss_history_").report.losses
        if losses is None:
            raise AttributeError("loss_history_: losses are recorded with compute_loss=True only")
        return losses

    @property
    def _n_features_out(self) -> int:
        fitted = self._fitted("_n_features_out")
        return fitted.graph.n_tails if fitted.embedding is None else fitted.recipe.n_components

    def _fitted(self, name: str) -> FittedMap:
        """Return the map, or raise AttributeError for the result ``name`` that there is not yet."""
        if "map_" not in vars(self):
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet")
        return self.map_

    def _with_embedding(self, name: str) -> FittedMap:
        fitted = self._fitted(name)
        if fitted.embedding is None:
            raise AttributeError(f"{name}: there is no map, only a graph (transform_mode='graph')")
        return fitted

    def _radii(self, name: str, *, embedded: bool) -> NDArray[np.float32]:
        """Return logarithms of local radii of all rows, in the data or in the map."""
        density, position = self._fitted(name).density, self._fitted(name).selection.position
        if density is None:
            raise AttributeError(f"{name}: radii are computed with densmap or output_dens only")
        radii = finite_radii(density.embedded if embedded else density.radii.log_radius)
        return np.where(position < 0, radii.max(initial=0), radii[position])

    # umap-learn's names, which its users' programs read, and set on models that they put together.

    def _set_by_program(self) -> bool:
        """Whether a program has set the rows and their places instead of fitting the model."""
        return "map_" not in vars(self) and {"_raw_data", "_given_embedding"} <= vars(self).keys()

    def _set_settings(self) -> dict[str, Any]:
        """Return the parameters of a map that was set: the model's, changed by values that were set beside it."""
        own = vars(self)
        changes = {name: own[key] for key, name in SET_PARAMETERS.items() if own.get(key) is not None}
        return self._settings() | changes | {"n_components": self._given_embedding.shape[1]}

    @FromMap
    def _raw_data(self) -> Rows:
        return self._fitted("_raw_data").data.rows

    @FromMap
    def _knn_indices(self) -> NDArray[np.int32]:
        return self._fitted("_knn_indices").neighbors.index

    @FromMap
    def _knn_dists(self) -> NDArray[np.float32]:
        return self._fitted("_knn_dists").neighbors.distance

    @FromMap
    def _knn_search_index(self) -> SearchIndex:
        return SearchIndex(self._fitted("_knn_search_index"))

    @FromMap
    def _small_data(self) -> bool:
        return self._fitted("_small_data").data.n < SMALL_DATA

    @FromMap
    def _sparse_data(self) -> bool:
        return is_sparse(self._fitted("_sparse_data").data.rows)

    @FromMap
    def _n_neighbors(self) -> int:
        fitted = self._fitted("_n_neighbors")
        return min(int(fitted.recipe.affinity.columns(fitted.graph.n)), fitted.graph.n - 1)

    @FromMap
    def _rhos(self) -> NDArray[np.float32]:
        return self._fitted("_rhos").graph.rho

    @FromMap
    def _sigmas(self) -> NDArray[np.float32]:
        return self._fitted("_sigmas").graph.sigma

    @FromMap
    def _a(self) -> float:
        return self._sampled_plan().forces.kernel.a

    @FromMap
    def _b(self) -> float:
        return self._sampled_plan().forces.kernel.b

    def _sampled_plan(self) -> SampledPlan:
        plan = self._fitted("_a").recipe.plan
        if not isinstance(plan, SampledPlan):
            raise AttributeError("_a: this map has no such kernel")
        return plan

    # Files: the recipe is not written but made again from the parameters of the fit, which are checked when it is.

    def _state(self, include_data: bool) -> dict[str, Any]:
        state = super()._state(include_data)
        if "map_" in state:
            fitted = self.local_map
            state["map_"] = {one.name: getattr(fitted, one.name) for one in fields(fitted) if one.name != "recipe"}
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        super()._restore(state)
        if "map_" in state:
            parts = state["map_"]
            made_by = self._with_settings(self._fit_params)
            self.map_ = FittedMap(recipe=made_by._recipe(parts["data"].n, int(parts["seed"])), **parts)
            self.map_.check()
