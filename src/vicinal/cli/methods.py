"""Methods by name, and their parameters as the estimators' constructors declare them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

# What the command line gives to an estimator itself.
RESERVED = {"random_state": "--seed", "n_jobs": "--jobs", "callback": None, "verbose": None, "tqdm_kwds": None}


class Method(StrEnum):
    """What `--method` takes."""

    UMAP = "umap"
    DENSMAP = "densmap"
    TSNE = "tsne"
    LARGEVIS = "largevis"
    PARAMETRIC = "parametric"
    PROGRESSIVE = "progressive"


# The estimator of a method, and what makes it that method.
ESTIMATORS: dict[Method, tuple[str, dict[str, Any]]] = {
    Method.UMAP: ("UMAP", {}),
    Method.DENSMAP: ("DensMAP", {}),
    Method.TSNE: ("TSNE", {}),
    Method.LARGEVIS: ("LargeVis", {}),
    Method.PARAMETRIC: ("ParametricUMAP", {}),
    Method.PROGRESSIVE: ("ProgressiveUMAP", {}),
}


@dataclass(frozen=True)
class Recipe:
    """An estimator and the parameters it is made with."""

    method: Method
    parameters: dict[str, Any]

    def build(self, callback: Any = None) -> Any:
        made = estimator(self.method)
        watched = {"callback": callback} if callback is not None and "callback" in signature(self.method) else {}
        return made(**self.parameters, **watched)


def rebuild(method: Method, parameters: dict[str, Any], callback: Any) -> Any:
    """The estimator of a method with other parameters."""
    return Recipe(method, parameters).build(callback)


def estimator(method: Method) -> Any:
    import vicinal

    name = ESTIMATORS[method][0]
    try:
        return getattr(vicinal, name)
    except AttributeError as error:
        raise ValueError(f"--method {method} is not in this version: vicinal has no {name}") from error


def signature(method: Method) -> Mapping[str, inspect.Parameter]:
    """The constructor's parameters, in its order."""
    return inspect.signature(estimator(method)).parameters


def recipe(method: Method, options: Mapping[str, Any], assignments: Sequence[str], *, seed: int, jobs: int) -> Recipe:
    """The estimator's parameters from options that were given and from `--param name=value`."""
    known = signature(method)
    parameters = dict(ESTIMATORS[method][1])
    for name, value in options.items():
        if value is None:
            continue
        if name not in known:
            raise ValueError(f"--{name.replace('_', '-')} is not a parameter of {method}; it has {_listed(known)}")
        parameters[name] = value
    for assignment in assignments:
        name, separator, text = assignment.partition("=")
        name = name.strip().replace("-", "_")
        if not separator:
            raise ValueError(f"--param {assignment} must be name=value")
        if name in RESERVED:
            raise ValueError(f"--param {name} cannot be set this way; use {RESERVED[name] or 'the options'}")
        if name not in known:
            raise ValueError(f"--param {name} is not a parameter of {method}; it has {_listed(known)}")
        parameters[name] = _value(text.strip())
    if "random_state" in known:
        parameters["random_state"] = seed
    if "n_jobs" in known:
        parameters["n_jobs"] = jobs
    return Recipe(method, parameters)


def _value(text: str) -> Any:
    """Numbers, true, false, none and lists as such; anything else as text. Nothing is evaluated."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _listed(known: Mapping[str, inspect.Parameter]) -> str:
    return ", ".join(name for name in known if name not in RESERVED)
