"""What all estimators share: checked input and parameters, model files, scikit-learn's conventions."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from vicinal.files.container import ModelFileError
from vicinal.files.models import TRANSIENT, pickled, save
from vicinal.neighbors.metrics import PRECOMPUTED, Finite, Rows, allows_nan, is_sparse, required_finite
from vicinal.neighbors.rows import (
    HasRows,
    PlacedRows,
    as_placed_rows,
    as_rows,
    check_placed_rows,
    check_room,
    check_rows,
    place_of,
)
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows
from vicinal.runtime.inputs import check_input, is_dask
from vicinal.runtime.jobs import resolve_n_jobs
from vicinal.runtime.memory import InputShape, Ledger, check_limit
from vicinal.runtime.parameters import check_parameters
from vicinal.runtime.progress import Progress

if TYPE_CHECKING:
    Method = TypeVar("Method", bound=Callable[..., Any])
    Self = TypeVar("Self", bound="Estimator")

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


def over_blocks(method: Method) -> Method:
    """Make a method of a fitted model that takes rows map over the blocks of a Dask array."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        self._require_map()
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        from vicinal.cluster.placement import transform_blocks

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
        own = next(cls for cls in type(self).__mro__ if cls.__module__.startswith("vicinal."))
        return {name: getattr(self, name) for name in inspect.signature(own).parameters}

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

    def _check_rows(self, X: Any, *, reset: bool, sparse: bool = False, finite: Finite = True) -> Rows:
        """Return ``X`` as C-contiguous float32 or CSR, without a copy if it is that already; name the first bad row."""
        if place_of(X) is not None:
            X = as_placed_rows(X, "cpu").rows
        rows = self._convert_rows(X, reset=reset, sparse=sparse)
        if finite:
            check_rows(rows, self._jobs(), finite=finite)
        return rows

    def _convert_rows(self, X: Any, *, reset: bool, sparse: bool) -> Rows:
        """Convert ``X`` to what the core takes, and check its shape, its columns and the memory limit."""
        check_input(X)
        if is_dask(X):
            raise ValueError(f"X must be an array in memory for {type(self).__name__}: UMAP can fit a Dask array")
        shape = InputShape.of(X) if reset else None
        self._within_limit(shape)
        with np.errstate(over="ignore"):  # a value that float32 cannot hold becomes infinite, and is reported as such
            rows = validate_data(
                self,
                X,
                reset=reset,
                dtype=np.float32,
                order="C",
                ensure_all_finite=False,
                accept_sparse=["csr", "csc", "coo"] if sparse else False,
            )
        rows = as_rows(rows)
        if reset and shape is None:
            self._within_limit(InputShape.of(rows))
        if rows.shape[0] > MOST_ROWS:
            raise ValueError(f"X has {rows.shape[0]} rows; at most {MOST_ROWS} are possible")
        return rows

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
        if place_of(X) is None:
            return PlacedRows(self._convert_rows(X, reset=reset, sparse=True)).on(place)
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
        """Check rows against the data and the metric of a fit, whatever the parameters are by now."""
        finite = accepted_finite(ensure_all_finite, data.metric) if isinstance(data, TrainingRows) else False
        rows = self._check_rows(X, reset=False, sparse=True, finite=finite)
        if isinstance(data, TrainingDistances) or is_sparse(rows) == is_sparse(vars(data).get("rows")):
            return rows
        return as_rows(rows.toarray() if is_sparse(rows) else csr_matrix(rows))

    def _with(self: Self, **attributes: Any) -> Self:
        """Return a model that shares everything with this one but the given attributes."""
        model = type(self).__new__(type(self))
        model.__dict__.update(vars(self) | attributes)
        return model

    # Memory

    def _within_limit(self, shape: InputShape | None) -> None:
        """Raise MemoryError if a fit of this input would take more than ``memory_limit``."""
        limit = getattr(self, "memory_limit", None)
        if shape is not None and limit is not None:
            ledger = Ledger()
            self.add_input_and_fit(ledger, shape)
            check_limit(ledger, limit, f"{type(self).__name__} to {shape.n} rows of {shape.d} columns")

    def add_input_and_fit(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, with the copy of an input that has to be converted."""
        if shape.copied:
            ledger.keep(4 * shape.values)
        self.add_memory(ledger, shape)

    def add_memory(self, ledger: Ledger, shape: InputShape) -> None:
        """Add what a fit takes, part by part (:mod:`vicinal.maps.memory`)."""
        raise NotImplementedError(f"the memory of {type(self).__name__} is not known in advance")

    # Results

    @property
    def reliability_(self) -> Any:
        """How far each row of the map can be believed (:func:`vicinal.reliability`), measured on first use."""
        from vicinal.estimators.reliability import reliability_of

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
