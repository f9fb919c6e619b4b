"""What all estimators share: checked input and parameters, model files, scikit-learn's conventions."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import validate_data

from vicinal.backends import say_fallback
from vicinal.estimators.parameters import given_knn, parameters_of
from vicinal.files.container import ModelFileError
from vicinal.files.models import TRANSIENT, pickled, save
from vicinal.initialize.start import given_start
from vicinal.layout.density import finite_radii
from vicinal.neighbors.metrics import PRECOMPUTED, Finite, Rows, allows_nan, is_packed, is_sparse, required_finite
from vicinal.neighbors.rows import (
    HasRows,
    PlacedRows,
    as_placed_rows,
    as_rows,
    check_placed_rows,
    check_room,
    check_rows,
    like_input,
    place_of,
    stack_rows,
    usable_place,
)
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows
from vicinal.pipeline.fit import ArrayExecutor, Listeners, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.memory import add_map
from vicinal.pipeline.place import place
from vicinal.pipeline.recipe import Recipe
from vicinal.runtime.constraints import check_parameters
from vicinal.runtime.inputs import ROW_TYPES, is_dask, named_batches, read_rows, reads_arrow, resolve_n_jobs
from vicinal.runtime.progress import Progress
from vicinal.runtime.sizes import InputShape, Ledger, check_limit

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])
    Self = TypeVar("Self", bound="Estimator")
    MapSelf = TypeVar("MapSelf", bound="MapEstimator")

MOST_ROWS = 2**31 - 1  # row numbers are 32-bit


def whole_or_nothing(method: Method) -> Method:
    """Make a method leave the estimator as it was if it is refused, interrupted or fails.

    What an estimator has learned is replaced, never changed in place, so its attributes are all there is to restore.
    """

    @functools.wraps(method)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return wrapped  # type: ignore[return-value]


# Batches of Arrow data are joined to at least this number of rows.
BATCH_ROWS = 1 << 16


def over_blocks(method: Method) -> Method:
    """Make a method of a fitted model that takes rows map over the blocks of a Dask array, or batches of Arrow data."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        self._require_map()
        if reads_arrow(X):
            return stack_rows(*(method(self, rows, *args, **kwargs) for rows in named_batches(X, BATCH_ROWS)))
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        from vicinal.cluster.fitted import transform_blocks

        def transform(model: Any, rows: Any) -> Any:
            return method(model, rows, *args, **kwargs)

        return transform_blocks(self, transform, X, self._n_features_out)

    return wrapped  # type: ignore[return-value]


class Estimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Parameters are the arguments of ``__init__``, which stores them unchanged; results end in ``_``.

    Subclasses that compare rows have the parameters ``metric`` and, unless they override `_metric_keywords`,
    ``metric_kwds``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    # Whether the parameter "device" says where a fit is done.
    _chooses_device: ClassVar[bool] = False
    # Whether rows of float16, int8 and uint8 are searched as they are, not as float32.
    keeps_types: ClassVar[bool] = True
    # The attribute that a fit sets last.
    _result: ClassVar[str] = "map_"

    n_features_in_: int
    # The parameters at the time of the fit.
    _fit_params: dict[str, Any]

    def __sklearn_is_fitted__(self) -> bool:
        return self._result in vars(self)

    def _require_map(self) -> None:
        """Raise NotFittedError if there is no map."""
        require_fitted(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        metric = getattr(self, "metric", None)
        tags.input_tags.sparse = metric is not None
        tags.input_tags.pairwise = isinstance(metric, str) and metric == PRECOMPUTED
        tags.input_tags.allow_nan = allows_nan(metric)
        return tags

    def _settings(self) -> dict[str, Any]:
        """Return the values of all parameters, also those that the ``__init__`` of a user's subclass does not take."""
        names = parameters_of(type(self)) or inspect.signature(type(self)).parameters
        return {name: getattr(self, name) for name in names}

    def _with_settings(self: Self, settings: dict[str, Any]) -> Self:
        """Return an unfitted model of the same class with these values of all parameters."""
        unknown = sorted(settings.keys() - self._settings().keys())
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {unknown[0]!r}")
        model = object.__new__(type(self))
        model.__dict__.update(settings)
        return model

    def _validate_params(self) -> None:
        """Raise for the first parameter whose value is not allowed, before any work."""
        check_parameters(type(self).__name__, self._settings(), self._parameter_constraints)
        self._jobs()

    def _jobs(self) -> int:
        return resolve_n_jobs(getattr(self, "n_jobs", -1))

    def _progress(self) -> Progress:
        return Progress(
            callback=getattr(self, "callback", None),
            verbose=bool(getattr(self, "verbose", False)),
            tqdm_kwds=getattr(self, "tqdm_kwds", None),
        )

    # Input

    def _check_rows(
        self, X: Any, *, reset: bool, sparse: bool = False, finite: Finite = True, typed: bool = False
    ) -> Rows:
        """Return ``X`` as ``_convert_rows`` does, without a copy if it is that already; name the first bad row."""
        if place_of(X) is not None:
            X = as_placed_rows(X, "cpu").rows
        rows = self._convert_rows(X, reset=reset, sparse=sparse, typed=typed)
        if finite:
            check_rows(rows, self._jobs(), finite=finite)
        return rows

    def _convert_rows(self, X: Any, *, reset: bool, sparse: bool, typed: bool = False) -> Rows:
        """Convert ``X`` to what the core takes, and check its shape, its columns and the memory limit.

        Dense rows become float32; with ``typed`` they keep their type if it is one of the ``ROW_TYPES``.
        """
        if is_dask(X):
            raise ValueError(f"X must be an array in memory for {type(self).__name__}: UMAP can fit a Dask array")
        X, names = read_rows(X, within=self._arrow_limit if reset else None)
        if names is not None and not reset:
            self._check_names(names)
        shape = InputShape.of(X, typed=typed) if reset else None
        self._within_limit(shape)
        with np.errstate(over="ignore"):  # a value that float32 cannot hold becomes infinite, and is reported as such
            validate = partial(validate_data, self, reset=reset)
            if names is not None and not reset:  # their names are checked
                validate = partial(check_array, estimator=self, input_name="X")
            rows = validate(
                X,
                dtype=ROW_TYPES if typed else np.float32,
                order="C",
                ensure_all_finite=False,
                accept_sparse=["csr", "csc", "coo"] if sparse else False,
            )
        rows = as_rows(rows, typed=typed)
        if names is not None and reset:
            self.feature_names_in_ = np.array(names, dtype=object)
        if reset and shape is None:
            self._within_limit(InputShape.of(rows, typed=typed))
        if rows.shape[0] > MOST_ROWS:
            raise ValueError(f"X has {rows.shape[0]} rows; at most {MOST_ROWS} are possible")
        return rows

    def _check_names(self, names: list[str]) -> None:
        """Raise ValueError unless the columns of Arrow data have the number, names and order of those of the fit."""
        known = list(getattr(self, "feature_names_in_", names))
        if len(names) != self.n_features_in_:
            expects = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise ValueError(f"X has {len(names)} features, but {expects}")
        if names != known:
            at = next(i for i, (name, other) in enumerate(zip(names, known, strict=True)) if name != other)
            raise ValueError(f"column {at} of X is {names[at]!r}, but that of the fit was {known[at]!r}")

    def _metric_keywords(self) -> dict[str, Any] | None:
        keywords: dict[str, Any] | None = self.metric_kwds
        return keywords

    def _check_training_data(self, X: Any, seed: int, ensure_all_finite: Finite = True) -> TrainingData:
        """Check rows or, with ``metric="precomputed"``, distances, and return them with what compares them."""
        finite = accepted_finite(ensure_all_finite, self.metric)
        placed = self._place_rows(X, reset=True)
        check_room(placed)
        if isinstance(self.metric, str) and self.metric == PRECOMPUTED:
            return TrainingDistances(placed.rows, self._jobs()).on(placed.place)
        # One scan finds values that are not finite, and the scale at which rows are compared.
        largest = check_placed_rows(placed, self._jobs(), finite=finite)
        return self._training_rows(placed, seed, largest)

    def _place_rows(self, X: Any, *, reset: bool) -> PlacedRows:
        """Return rows where the parameter ``device`` says, or where they live if it is None."""
        device = self.device if self._chooses_device else "cpu"
        place = place_of(X, device)
        if place is not None and is_packed(self.metric):
            say_fallback("the fit", f"a GPU has no metric={self.metric!r}")
            place = None
        if place_of(X) is None:
            typed = place is None and not (isinstance(self.metric, str) and self.metric == PRECOMPUTED)
            return PlacedRows(self._convert_rows(X, reset=reset, sparse=True, typed=typed)).on(place)
        placed = as_placed_rows(X, device)
        n, d = placed.shape
        if reset:
            self.n_features_in_ = d
        elif d != self.n_features_in_:
            raise ValueError(
                f"X has {d} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            )
        if not 1 <= n <= MOST_ROWS or d < 1:
            raise ValueError(f"X must have 1 to {MOST_ROWS} rows and at least 1 column, got shape {(n, d)}")
        return placed

    def _training_rows(self, rows: Rows | HasRows, seed: int, largest: float | None = None) -> TrainingRows:
        """Return checked rows with what compares them; rows that cannot be compared are refused here."""
        source = rows if isinstance(rows, HasRows) else PlacedRows(rows)
        given = self._given_neighbors(source)
        data = TrainingRows.of(
            source, self.metric, self._metric_keywords(), seed, self._jobs(), given=given, largest=largest
        )
        _ = data.index  # making the index, which builds nothing yet, checks the metric and the rows
        return data

    def _given_neighbors(self, rows: HasRows) -> Neighbors | None:
        """Return neighbors that replace a search, if the estimator accepts such."""
        return None

    def _check_new_rows(self, X: Any, data: TrainingData, ensure_all_finite: Finite = True) -> Rows:
        """Check rows against the data and the metric of the fit, not against the present parameters."""
        finite = accepted_finite(ensure_all_finite, data.metric) if isinstance(data, TrainingRows) else False
        typed = isinstance(data, TrainingRows)
        rows = self._check_rows(X, reset=False, sparse=True, finite=finite, typed=typed)
        if isinstance(data, TrainingDistances) or is_sparse(rows) == data.sparse:
            return rows
        return as_rows(rows.toarray() if is_sparse(rows) else csr_matrix(rows))

    def _with(self: Self, **attributes: Any) -> Self:
        """Return a model that shares everything with this one but the given attributes."""
        model = type(self).__new__(type(self))
        model.__dict__.update(vars(self) | attributes)
        return model

    def without_result(self: Self) -> Self:
        """Return a model with the same parameters and input checks, but without what the fit learned."""
        model = self._with()
        del model.__dict__[self._result]
        return model

    # Memory

    def _within_limit(self, shape: InputShape | None) -> None:
        """Raise MemoryError if a fit of this input would take more than ``memory_limit``."""
        limit = getattr(self, "memory_limit", None)
        if shape is not None and limit is not None:
            ledger = Ledger()
            self.add_input_and_fit(ledger, shape)
            check_limit(ledger, limit, f"{type(self).__name__} to {shape.n} rows of {shape.d} columns")

    def _arrow_limit(self, n: int, d: int, kind: np.dtype[Any]) -> None:
        """Raise MemoryError as soon as a fit of the rows that were read so far would take too much."""
        self._within_limit(InputShape(n, d, None, True, kind))

    def add_input_and_fit(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, with the copy of an input that has to be converted."""
        if shape.copied:
            ledger.keep(shape.kind.itemsize * shape.values)
        self.add_memory(ledger, shape)

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, part by part (:mod:`vicinal.pipeline.memory`)."""
        raise NotImplementedError(f"the memory of {type(self).__name__} is not known in advance")

    # Results

    def learned(self, name: str) -> Any:
        """Return what a fit learned, or raise AttributeError for the attribute ``name`` that there is not yet."""
        if self._result not in vars(self):
            raise AttributeError(f"{name}: this {type(self).__name__} is not fitted yet")
        return vars(self)[self._result]

    @property
    def reliability_(self) -> Any:
        """How far each row of the map can be believed (:func:`vicinal.reliability`), measured on first use."""
        from vicinal.estimators.evaluation import reliability_of

        return reliability_of(self)

    def __dir__(self) -> list[str]:
        # scikit-learn lists the attributes that exist, which it finds by reading them, and its HTML view shows their
        # values. Neither may start a measurement.
        names = object.__dir__(self)
        return [name for name in names if name != "reliability_" and hasattr(self, name)]

    def explore(self, labels: Any = None, **described: Any) -> Any:
        """Show the map as an interactive page in a notebook (see :func:`vicinal.viewer.explore`)."""
        import vicinal

        require_fitted(self)
        return vicinal.viewer.explore(self, labels, **described)

    # Files

    def save(self, path: str | os.PathLike[str], *, include_data: bool = True) -> None:
        """Write the model to a file of plain arrays and JSON, which :func:`vicinal.load` reads without running code.

        Parameters
        ----------
        path : path
        include_data : bool, default True
            False leaves the training data out, if new rows can be placed without it.

        Notes
        -----
        Functions among the parameters are not in the file and have to be given again to ``load``; callbacks are left
        out.
        """
        save(self, path, include_data=include_data)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the bytes of the model file, and beside them what a file leaves out."""
        return pickled(self)

    def _state(self, include_data: bool) -> dict[str, Any]:
        """Return the attributes beyond the parameters, in values that a model file can hold."""
        params, settings = self.get_params(deep=False), self._settings()
        state = {name: value for name, value in vars(self).items() if name not in params}
        if "_fit_params" in state:
            made_by = state.pop("_fit_params")
            changed = (name for name in made_by if made_by[name] is not settings[name] and name not in TRANSIENT)
            state["changed_params"] = {name: made_by[name] for name in changed}
        if self._result in state and not include_data:
            raise ModelFileError(
                f"include_data=False is not possible for {type(self).__name__}: new rows are placed by comparing them "
                "with the training data, so a model without it could not transform"
            )
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        """Set the attributes that `_state` returned; raise if they are inconsistent, since a file may hold anything."""
        changed = state.pop("changed_params", None)
        self.__dict__.update(state)
        if changed is not None:
            settings = {**self._settings(), **changed}
            made_by = self._with_settings(settings)
            made_by._validate_params()
            self._fit_params = settings


def require_fitted(model: Estimator) -> None:
    """Raise scikit-learn's NotFittedError if the model is not fitted yet."""
    if not model.__sklearn_is_fitted__():
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet. Call 'fit' first.")


def accepted_finite(ensure_all_finite: Any, metric: Any) -> Finite:
    """Return which values rows may hold: those a named metric is defined for, or those the caller allows a function."""
    if not (isinstance(ensure_all_finite, bool) or ensure_all_finite == "allow-nan"):
        raise ValueError(f"ensure_all_finite must be True, False or 'allow-nan', got {ensure_all_finite!r}")
    defined: Finite = required_finite(metric)
    return defined if defined else ensure_all_finite


def random_seed(random_state: Any) -> int:
    """Draw a 31-bit seed from anything that scikit-learn accepts as a random state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


# umap-learn compares all pairs of dense rows below this number, and its programs do the same.
SMALL_DATA = 4096


class FromMap:
    """An attribute that is computed from what a fit learned, unless a program has set it.

    With ``missing``, an attribute that would be None does not exist, and this is the reason.
    """

    def __init__(self, compute: Callable[[Any], Any], missing: str = "") -> None:
        self._compute, self._missing = compute, missing

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        if model is None:
            return self
        value = self._compute(model.learned(self._name))
        if value is None and self._missing:
            raise AttributeError(f"{self._name}: {self._missing}")
        return value


class Result(FromMap):
    """An attribute that is computed from what a fit learned, and cannot be set."""

    def __set__(self, model: Any, value: Any) -> None:
        raise AttributeError(f"{self._name} of {type(model).__name__} cannot be set")


@dataclass(frozen=True)
class SearchIndex:
    """The search of a fitted map with the method of pynndescent's index."""

    fitted: FittedMap

    def query(
        self, query_data: Any, k: int = 10, epsilon: float = 0.1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return indices and distances of the k nearest fitted rows; ``epsilon`` has no effect."""
        fitted = self.fitted
        found = fitted.searched.query(as_rows(query_data), k, fitted.search_graph, fitted.neighbors.share)
        return found.index, found.distance


# Why an attribute of a fitted model does not exist.
NO_MAP = "there is no map, only a graph (transform_mode='graph')"
NO_RADII = "radii are computed with densmap or output_dens only"
NO_KERNEL = "this map has no such kernel"

# Parameters by the names under which programs set their values.
SET_PARAMETERS = {"_a": "a", "_b": "b", "_n_neighbors": "n_neighbors", "_metric_kwds": "metric_kwds"}


class MapEstimator(Estimator):
    """Base of the estimators that make a map of all rows at once.

    ``map_`` holds everything that a fit learned; the other results are parts of it.
    """

    map_: FittedMap  # of a Dask array a ClusterMap, which has Dask arrays under the same names
    _given_embedding: NDArray[np.float32]
    # Whether a start that is given as an array is scaled to the size of other starts.
    _scales_start: ClassVar[bool] = True

    def _recipe(self, n: int, seed: int) -> Recipe:
        """Return what a fit of ``n`` rows with these parameters does."""
        raise NotImplementedError

    def adopt_map(self: MapSelf, fitted: FittedMap) -> MapSelf:
        """Replace everything that an earlier fit learned by a map that was made with the present parameters."""
        computed = (name for name, value in vars(MapEstimator).items() if isinstance(value, FromMap))
        for name in ("_given_embedding", *SET_PARAMETERS, *computed):
            self.__dict__.pop(name, None)
        self._fit_params = self._settings()
        self.map_ = fitted
        self.n_features_in_ = fitted.data.shape[1]
        return self

    @whole_or_nothing
    def fit(self: MapSelf, X: Any, y: Any = None) -> MapSelf:
        """Map the rows of ``X``, which may be a Dask array; ``y`` is ignored."""
        return self._fit_array(X) if is_dask(X) else self.adopt_map(fit(self.executor(X), self._progress()))

    def executor(self, X: Any) -> ArrayExecutor:
        """Check parameters and arguments as ``fit`` does; return the argument of :func:`vicinal.pipeline.fit`."""
        self._check_parameters()
        seed = random_seed(self.random_state)
        data = self._check_training_data(X, seed)
        start = given_start(self._init(), data.n, int(self.n_components), stretched=self._scales_start)
        recipe, listeners = self._recipe(data.n, seed), self._listeners()
        return ArrayExecutor(data, recipe, first_places=start, seed=seed, listeners=listeners)

    def _init(self) -> Any:
        """Return the name of the initializer, or an array of first places."""
        return self.init

    def _listeners(self) -> Listeners | None:
        """Return what is called during the layout beside the callback."""
        return None

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit the model and return ``embedding_``."""
        return like_input(X, self.fit(X, y, **fit_params).embedding_)

    @over_blocks
    def transform(self, X: Any) -> Any:
        """Return the places of rows in the fitted map, which stays as it is.

        A row of the training data has its place there; any other is placed among its neighbors. The result for a row
        depends on that row alone.
        """
        return like_input(X, place(self._map_for(X), self.check_new_rows(X)))

    def _map_for(self, X: Any) -> FittedMap:
        """Return the map where new rows are placed: as ``device`` says, on the device of the rows, or where it is.

        A model that was fitted on a GPU works on a machine without one.
        """
        fitted = self.local_map
        device = self.device if self._chooses_device else None
        if (device is None and place_of(X) is None) or is_packed(self.metric):
            return fitted
        moved = fitted.on(usable_place(device, "the placement of new rows", X))
        if moved is not fitted and isinstance(moved.data, TrainingRows):
            check_room(moved.data)
        return moved

    def check_new_rows(self, X: Any, ensure_all_finite: Finite = True) -> Rows:
        """Check rows for ``transform`` against the data and the metric of the fit; return them as float32."""
        self._require_map()
        return self._check_new_rows(X, self.local_map.data, ensure_all_finite)

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, part by part."""
        searched = given_knn(getattr(self, "precomputed_knn", None)) is None
        add_map(ledger, shape, self._recipe(shape.n, 0), self.metric, init=self._init(), searched=searched)

    # Dask arrays

    @property
    def local_map(self) -> FittedMap:
        """What a fit learned, in the memory of this process; a map of a Dask array is gathered on first use."""
        fitted: Any = self.map_
        local: FittedMap = fitted if isinstance(fitted, FittedMap) else fitted.gathered
        return local

    def _fit_array(self: MapSelf, X: Any, y: Any = None, sample_weight: Any = None) -> MapSelf:
        """Map the rows of a Dask array (:mod:`vicinal.cluster`)."""
        from vicinal.cluster.fit import PartExecutor

        self._check_parameters()
        seed = random_seed(self.random_state)
        executor = PartExecutor(
            X, lambda n: self._recipe(n, seed), self._settings(), y, sample_weight, seed=seed, n_jobs=self._jobs()
        )
        return self.adopt_map(fit(executor, self._progress()))

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
        fitted = self.learned("embedding_")
        places: NDArray[np.float32] | None = getattr(fitted, "shown_places", fitted.embedding)
        if places is None:
            raise AttributeError(f"embedding_: {NO_MAP}")
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

    graph_ = Result(lambda fitted: fitted.graph.to_scipy())
    init_used_ = Result(lambda fitted: None if fitted.embedding is None else fitted.report.init_used, NO_MAP)
    n_epochs_ = Result(lambda fitted: None if fitted.embedding is None else fitted.report.n_epochs, NO_MAP)
    stage_times_ = Result(lambda fitted: fitted.report.stage_times)
    loss_history_ = Result(lambda fitted: fitted.report.losses, "losses are recorded with compute_loss=True only")
    rad_orig_ = Result(lambda fitted: _radii(fitted, embedded=False), NO_RADII)
    rad_emb_ = Result(lambda fitted: _radii(fitted, embedded=True), NO_RADII)
    radius_correlation_ = Result(lambda fitted: fitted.density and fitted.density.correlation, NO_RADII)
    density_correlation_ = Result(lambda fitted: _density_correlation(fitted), NO_RADII)
    _n_features_out = Result(
        lambda fitted: fitted.graph.n_tails if fitted.embedding is None else fitted.recipe.n_components
    )

    @property
    def embedding_list_(self) -> list[NDArray[np.float32]]:
        snapshots, places = self.learned("embedding_list_").report.snapshots, self.embedding_
        if not isinstance(self._fit_params.get("n_epochs"), list | tuple):
            raise AttributeError("embedding_list_: n_epochs was no list of epochs")
        return list(snapshots) or [places]

    # umap-learn's names, which its users' programs read, and set on models that they put together.

    def _set_by_program(self) -> bool:
        """Whether a program has set the rows and their places instead of fitting the model."""
        return "map_" not in vars(self) and {"_raw_data", "_given_embedding"} <= vars(self).keys()

    def _set_settings(self) -> dict[str, Any]:
        """Return the parameters of a map that was set: the model's, changed by values that were set beside it."""
        own = vars(self)
        changes = {name: own[key] for key, name in SET_PARAMETERS.items() if own.get(key) is not None}
        return self._settings() | changes | {"n_components": self._given_embedding.shape[1]}

    _raw_data = FromMap(lambda fitted: fitted.data.rows)
    _knn_indices = FromMap(lambda fitted: fitted.neighbors.index)
    _knn_dists = FromMap(lambda fitted: fitted.neighbors.distance)
    _knn_search_index = FromMap(lambda fitted: SearchIndex(fitted))
    _small_data = FromMap(lambda fitted: fitted.data.n < SMALL_DATA)
    _sparse_data = FromMap(lambda fitted: is_sparse(fitted.data.rows))
    _n_neighbors = FromMap(lambda fitted: min(int(fitted.recipe.affinity.columns(fitted.graph.n)), fitted.graph.n - 1))
    _rhos = FromMap(lambda fitted: fitted.graph.rho)
    _sigmas = FromMap(lambda fitted: fitted.graph.sigma)
    _a = FromMap(lambda fitted: fitted.recipe.plan.kernel and fitted.recipe.plan.kernel.a, NO_KERNEL)
    _b = FromMap(lambda fitted: fitted.recipe.plan.kernel and fitted.recipe.plan.kernel.b, NO_KERNEL)

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


def _radii(fitted: FittedMap, *, embedded: bool) -> NDArray[np.float32] | None:
    """Return logarithms of local radii of all rows, in the data or in the map."""
    if fitted.density is None:
        return None
    position = fitted.selection.position
    radii = finite_radii(fitted.density.embedded if embedded else fitted.density.radii.log_radius)
    return np.where(position < 0, radii.max(initial=0), radii[position])


def _density_correlation(fitted: FittedMap) -> float | None:
    """Return the correlation of the radii that densMAP's cost compares."""
    if fitted.density is None or fitted.embedding is None:
        return None
    from vicinal.quality.losses import density_correlation

    kernel, places = fitted.recipe.plan.forces.kernel, fitted.reference_places
    return density_correlation(fitted.graph, places, kernel, fitted.density.radii.log_radius)
