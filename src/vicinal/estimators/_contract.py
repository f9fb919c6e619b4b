"""scikit-learn's estimator contract, kept without importing scikit-learn.

Importing it takes ten times as long as a small fit (it loads scipy.stats), and a plain array needs nothing from it.
So an estimator here answers the protocol itself (parameters, clone, tags, ``set_output``, feature names; pipelines and
searches work, ``check_estimator`` passes) and turns to scikit-learn only for what that alone can say: converting
unusual input, wrapping output into frames, describing tags, raising its ``NotFittedError``. The price is that
``isinstance(model, sklearn.base.BaseEstimator)`` is false.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from vicinal.runtime.interruption import imported
from vicinal.runtime.parameters import check_parameters

Self = TypeVar("Self", bound="Estimator")


class Estimator:
    """Parameters are the arguments of ``__init__``, which stores them untouched; results end in ``_``."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _sklearn_auto_wrap_output_keys: ClassVar[set[str]] = {"transform"}
    n_features_in_: int

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("transform", "fit_transform"):
            if name in cls.__dict__:
                setattr(cls, name, _in_asked_container(cls.__dict__[name]))
        for name in ("fit", "update", "partial_fit"):
            if name in cls.__dict__:
                setattr(cls, name, _whole_or_not_at_all(cls.__dict__[name]))

    @classmethod
    def _get_param_names(cls) -> list[str]:
        names = inspect.signature(cls).parameters
        return sorted(name for name, parameter in names.items() if parameter.kind is not parameter.VAR_KEYWORD)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep`` also those of parameters that are estimators, as ``outer__inner``."""
        found = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            found[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                found.update({f"{name}__{inner}": item for inner, item in value.get_params().items()})
        return found

    def set_params(self: Self, **params: Any) -> Self:
        """Changes parameters by name; an unknown name changes nothing."""
        known = self._get_param_names()
        for name in params:
            if name.partition("__")[0] not in known:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self}. Valid parameters are: {known!r}.")
        for name, value in params.items():
            outer, nested, inner = name.partition("__")
            if nested:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """The constructor's call, with the parameters that differ from their defaults."""
        parameters = inspect.signature(type(self)).parameters
        given = [
            f"{name}={_brief(getattr(self, name))}"
            for name, parameter in parameters.items()
            if hasattr(self, name) and not _same(getattr(self, name), parameter.default)
        ]
        text = f"{type(self).__name__}({', '.join(given)})"
        return text if len(text) <= N_CHAR_MAX else f"{text[: N_CHAR_MAX - 4]}...)"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=["float32"]),
            input_tags=InputTags(),
        )

    def set_output(self: Self, *, transform: str | None = None) -> Self:
        """Asks ``transform`` and ``fit_transform`` for "pandas" or "polars" frames, or for arrays ("default")."""
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def save(self, path: str | os.PathLike[str], *, include_data: bool = True) -> None:
        """Writes the model to a file of plain arrays and JSON; ``vicinal.load`` reads it and runs nothing.

        Functions among the parameters are not in the file and have to be given again to ``load``; callbacks are left
        out. ``include_data=False`` leaves the training data out where new rows can be placed without it.
        """
        from vicinal.files.models import save

        save(self, path, include_data=include_data)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles and copies hold the bytes of the file, and beside them what a file leaves out."""
        from vicinal.files.models import pickled

        return pickled(self)

    def _state(self, include_data: bool) -> dict[str, Any]:
        """What a model has beyond its parameters, in values that a file can hold."""
        parameters = self._get_param_names()
        state = {name: value for name, value in vars(self).items() if name not in parameters}
        if state and not include_data:
            from vicinal.files.container import ModelFileError

            raise ModelFileError(
                f"include_data=False is not possible for {type(self).__name__}: new rows are placed by comparing them "
                "with the training data, so a model without it could not transform"
            )
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        """Takes back what ``_state`` gave; raises if that cannot be, since a file may say anything."""
        vars(self).update(state)

    def _validate_params(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), self._parameter_constraints)

    def _check_is_fitted(self, attribute: str) -> None:
        if not hasattr(self, attribute):
            message = f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first."
            raise imported("sklearn.exceptions").NotFittedError(message)

    def _check_array(self, X: Any, *, reset: bool, **conversion: Any) -> Any:
        """``X`` as scikit-learn's ``validate_data`` gives it, which a plain numeric array does not need."""
        if self._is_plain(X, reset) and not conversion.get("ensure_min_samples", 1) > len(X):
            if reset:
                self.n_features_in_ = int(X.shape[1])
            with np.errstate(over="ignore"):  # what float32 cannot hold becomes infinite, and is named as such
                return np.asarray(X, dtype=conversion.get("dtype"), order=conversion.get("order"))
        return imported("sklearn.utils.validation").validate_data(self, X, reset=reset, **conversion)

    def _is_plain(self, X: Any, reset: bool) -> bool:
        """A matrix of numbers with as many columns as there should be, from a model that knows no column names."""
        if type(X) not in (np.ndarray, np.memmap) or X.ndim != 2 or X.dtype.kind not in "fiub" or 0 in X.shape:
            return False
        return not hasattr(self, "feature_names_in_") and (reset or X.shape[1] == self.n_features_in_)


def _whole_or_not_at_all(method: Callable[..., Any]) -> Callable[..., Any]:
    """``method``, which leaves the model as it was when it is refused, interrupted or fails.

    What a model has learnt is replaced, never changed in place: so the attributes are the whole of it.
    """

    @functools.wraps(method)
    def wrapped(self: Estimator, *args: Any, **kwargs: Any) -> Any:
        before = dict(self.__dict__)
        imported("scipy.sparse")  # which every graph is made with
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            self.__dict__.update(before)
            for name in self.__dict__.keys() - before.keys():
                del self.__dict__[name]
            raise

    return wrapped


def _in_asked_container(method: Callable[..., Any]) -> Callable[..., Any]:
    """``method``, its array wrapped into the frame that ``set_output`` or scikit-learn's configuration asks for."""

    @functools.wraps(method)
    def wrapped(self: Estimator, X: Any, *args: Any, **kwargs: Any) -> Any:
        result = method(self, X, *args, **kwargs)
        if not hasattr(self, "_sklearn_output_config") and "sklearn" not in sys.modules:
            return result  # without scikit-learn there is no global configuration either
        from sklearn.utils._set_output import _wrap_data_with_container

        return _wrap_data_with_container("transform", result, X, self)

    return wrapped


def random_seed(random_state: Any) -> int:
    """A 31-bit seed from anything scikit-learn takes for a random state."""
    if random_state is None:
        generator = np.random.mtrand._rand
    elif isinstance(random_state, np.random.RandomState):
        generator = random_state
    else:
        generator = np.random.RandomState(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


def _same(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return type(value) is type(default) and not isinstance(value, np.ndarray) and bool(value == default)


def _brief(value: Any) -> str:
    return f"array of shape {value.shape}" if hasattr(value, "shape") and value.ndim > 0 else repr(value)
