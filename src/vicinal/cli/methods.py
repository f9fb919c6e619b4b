"""The methods by name, and their parameters as declared by the estimators' constructors."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


def explanations(method: Method) -> dict[str, str]:
    """Return the meaning of each parameter, without the marks of reStructuredText; a reference keeps its name."""
    from vicinal.estimators.parameters import parameters_of

    return {
        name: re.sub(r":\w+:`(?:vicinal\.)?([^`]*)`", r"\1", one.doc).replace("``", "")
        for name, one in parameters_of(estimator(method)).items()
    }


# Parameters that the command line sets itself, and the options that do so.
RESERVED = {
    "random_state": "--seed",
    "n_jobs": "--jobs",
    "window": "`vicinal stream --window`",
    "callback": None,
    "verbose": None,
    "tqdm_kwds": None,
}


class Method(StrEnum):
    """Values of `--method`."""

    UMAP = "umap"
    DENSMAP = "densmap"
    TSNE = "tsne"
    LARGEVIS = "largevis"
    PARAMETRIC = "parametric"
    PROGRESSIVE = "progressive"


# The class of each method.
ESTIMATORS = {
    Method.UMAP: "UMAP",
    Method.DENSMAP: "DensMAP",
    Method.TSNE: "TSNE",
    Method.LARGEVIS: "LargeVis",
    Method.PARAMETRIC: "ParametricUMAP",
    Method.PROGRESSIVE: "ProgressiveUMAP",
}


@dataclass(frozen=True)
class EstimatorSpec:
    """A method and the parameters of its estimator."""

    method: Method
    parameters: dict[str, Any]

    def build(self, parameters: Mapping[str, Any] | None = None, callback: Any = None) -> Any:
        """Create the estimator, if need be with other parameters; ``callback`` is passed if the estimator has one."""
        watched = {"callback": callback} if callback is not None and "callback" in signature(self.method) else {}
        return estimator(self.method)(**(self.parameters if parameters is None else parameters), **watched)


def estimator(method: Method) -> Any:
    """Return the class of a method."""
    import vicinal

    return getattr(vicinal, ESTIMATORS[method])


def signature(method: Method) -> Mapping[str, inspect.Parameter]:
    """Return the constructor's parameters in order."""
    return inspect.signature(estimator(method)).parameters


def make_spec(
    method: Method, options: Mapping[str, Any], *, param: Sequence[str] | None, seed: int, jobs: int
) -> EstimatorSpec:
    """Check the given options and `--param name=value` assignments and combine them into an EstimatorSpec."""
    known = signature(method)
    parameters: dict[str, Any] = {}
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{option} must be finite, got {value}")
        if name not in known:
            raise ValueError(f"{option} is not a parameter of {method}; its parameters are {_listed(known)}")
        parameters[name] = value
    if jobs < -1 or jobs == 0:
        raise ValueError(f"--jobs must be positive, or -1 for all cores, got {jobs}")
    for assignment in param or ():
        name, separator, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not separator:
            raise ValueError(f"--param {assignment} must have the form NAME=VALUE")
        if name in RESERVED:
            instead = f"; use {RESERVED[name]} instead" if RESERVED[name] else " on the command line"
            raise ValueError(f"--param {name} cannot be set{instead}")
        if name not in known:
            raise ValueError(f"--param {name} is not a parameter of {method}; its parameters are {_listed(known)}")
        parameters[name] = value_of(text.strip())
    if "random_state" in known:
        parameters["random_state"] = seed
    if "n_jobs" in known:
        parameters["n_jobs"] = jobs
    return EstimatorSpec(method, parameters)


def value_of(text: str) -> Any:
    """Parse numbers, true, false, none and Python literals; anything else is text. No code is run."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _listed(known: Mapping[str, inspect.Parameter]) -> str:
    return ", ".join(name for name in known if name not in RESERVED)
