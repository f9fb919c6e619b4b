"""The parameters of estimators, and the parts of a recipe that follow from them.

The body of a class is the table of its parameters. Each entry is the only statement of a parameter: its name, type,
default, allowed values and documentation::

    @with_parameters
    class MyMap(MapEstimator):
        '''Map rows.'''

        n_neighbors: int = like(UMAP)
        learning_rate: float = like(UMAP, default=0.5)
        _: KW_ONLY
        n_turns: int = parameter(3, [whole(0)], "Number of turns.")

`with_parameters` derives the rest: ``__init__``, which stores its arguments, the constraints that are checked before a
fit, and the section "Parameters" of the docstring.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from dataclasses import dataclass, replace
from typing import Any, TypeVar, dataclass_transform

import numpy as np

from vicinal.graph.supervision import Supervision
from vicinal.initialize.start import INITIALIZER_ALIASES
from vicinal.layout.forces import Forces, Kernel, OutputSpace, fit_ab, output_space
from vicinal.neighbors.metrics import PRECOMPUTED
from vicinal.neighbors.rows import HasRows
from vicinal.neighbors.table import Neighbors, neighbors_from_knn
from vicinal.pipeline.online_graph import Pace
from vicinal.pipeline.recipe import DensityPlan, FuzzyAffinity, Recipe, SampledPlan
from vicinal.runtime.constraints import StrOptions, whole

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Parameter:
    """A parameter of an estimator: default, allowed values, type in words, and what it does."""

    default: Any
    allowed: list[Any]
    doc: str
    kind: str = ""


def parameter(default: Any, allowed: list[Any], doc: str, kind: str = "") -> Any:
    """Declare a parameter in the body of a class; type checkers take the result for the default.

    A value must satisfy one of the constraints in ``allowed`` (:mod:`vicinal.runtime.constraints`). ``kind`` is the
    type in words, for the docstring; by default the options, or the annotation.
    """
    return Parameter(default, allowed, doc, kind)


def like(other: type, note: str = "", **changes: Any) -> Any:
    """Declare the parameter that ``other`` has under the same name, with changes and a sentence added to its doc."""

    def named(name: str) -> Parameter:
        changed = replace(parameters_of(other)[name], **({"kind": ""} if "allowed" in changes else {}) | changes)
        return replace(changed, doc=f"{changed.doc} {note}")

    return named


def parameters_of(cls: type) -> dict[str, Parameter]:
    """Return the parameters of an estimator by name, in the order of its constructor."""
    table: dict[str, Parameter] = getattr(cls, "_parameters", {})
    return table


@dataclass_transform(eq_default=False)
def with_parameters(cls: Class) -> Class:
    """Give a class the constructor, the constraints and the documentation of the parameters in its body.

    A class without parameters in its body keeps the constructor of its base, and gets the documentation.
    """
    made: Any = cls
    types = inspect.get_annotations(cls)
    own = {name: entry for name, entry in vars(cls).items() if name in types}
    if own:
        made._parameters = {}
        for name, entry in own.items():
            stated = entry(name) if callable(entry) else entry
            kind = stated.kind or _options(stated.allowed) or _words(types[name], stated.default)
            made._parameters[name] = replace(stated, kind=kind, doc=" ".join(stated.doc.split()))
            setattr(cls, name, stated.default)
        dataclass(repr=False, eq=False, match_args=False)(cls)
        # Only the constructor is wanted: Dask would take two models with equal parameters for the same object.
        for name in {*own, "__dataclass_fields__", "__dataclass_params__", "__replace__"} & vars(cls).keys():
            delattr(cls, name)
    made._parameter_constraints = {name: entry.allowed for name, entry in parameters_of(cls).items()}
    if cls.__doc__:  # python -OO removes docstrings
        summary, *sections = re.split(r"^(?=\w[\w ]*\n-+$)", inspect.cleandoc(cls.__doc__), flags=re.MULTILINE)
        cls.__doc__ = "".join([f"{summary.rstrip()}\n\n", _section(parameters_of(cls)), *sections])
    return cls


def _options(allowed: list[Any]) -> str:
    """Return the options of a parameter that has nothing but options, in words."""
    options = [*allowed[0].options] if len(allowed) == 1 and isinstance(allowed[0], StrOptions) else []
    return "{" + ", ".join(f'"{option}"' for option in sorted(options)) + "}" if options else ""


def _words(annotation: str, default: Any) -> str:
    """Return a type in words: "dict[str, Any] | None" is "dict" if the default says that None is possible."""
    annotation = annotation.removesuffix(" | None") if default is None else annotation
    return re.sub(r"\[.*?\]", "", annotation).replace(" | ", " or ")


def _section(table: dict[str, Parameter]) -> str:
    """Return the section "Parameters" of a docstring."""
    lines = ["Parameters", "----------"]
    for name, entry in table.items():
        default = f'"{entry.default}"' if isinstance(entry.default, str) else repr(entry.default)
        lines.append(f"{name} : {entry.kind}, {'optional' if entry.default is None else f'default {default}'}")
        wrapped = textwrap.wrap(entry.doc, 112, break_long_words=False, break_on_hyphens=False)
        lines += [f"    {line}" for line in wrapped]
    return "\n".join(lines) + "\n\n"


def check_curve(model: Any) -> None:
    """Check the parameters of the low-dimensional kernel against each other."""
    if model.min_dist > model.spread:
        raise ValueError(f"min_dist must not exceed spread, got min_dist={model.min_dist}, spread={model.spread}")
    if (model.a is None) != (model.b is None):
        raise ValueError(f"a and b must be given together, got a={model.a}, b={model.b}")
    kernel_of(model)  # checks the values


def check_precomputed(model: Any) -> None:
    """Check precomputed distances and neighbors against the other parameters."""
    pairwise = isinstance(model.metric, str) and model.metric == PRECOMPUTED
    knn = given_knn(model.precomputed_knn)
    if model.unique and (pairwise or knn is not None):
        raise ValueError("unique=True compares rows: it cannot be used with precomputed distances or neighbors")
    if pairwise and knn is not None:
        raise ValueError("precomputed_knn cannot be used with metric='precomputed': give one of them")


def kernel_of(model: Any) -> Kernel:
    """Return the kernel of ``a`` and ``b``, or the one fitted to ``spread`` and ``min_dist``."""
    if model.a is not None and model.b is not None:
        return Kernel(float(model.a), float(model.b))
    return fit_ab(model.spread, model.min_dist)


def affinity_of(model: Any) -> FuzzyAffinity:
    """Return how the neighbor table becomes a fuzzy graph."""
    return FuzzyAffinity(
        int(model.n_neighbors), model.local_connectivity, model.set_op_mix_ratio, model.disconnection_distance
    )


AUTO = "auto"


def initializer_of(init: Any) -> str:
    """Return the name of the initializer; "spectral" stands in for an array, and where none can be chosen."""
    return str(INITIALIZER_ALIASES.get(init, init)) if isinstance(init, str) and init != AUTO else "spectral"


def _arranges(model: Any) -> bool:
    """Tell whether the start is chosen by the data; a trial needs a euclidean map."""
    return isinstance(model.init, str) and model.init == AUTO and output_space_of(model).is_euclidean


def output_space_of(model: Any) -> OutputSpace:
    """Return the distance of the map."""
    return output_space(model.output_metric, model.output_metric_kwds, int(model.n_components))


def recipe_of(model: Any, seed: int, n_jobs: int, *, matches_density: bool) -> Recipe:
    """Return what a fit of UMAP does; ``matches_density`` makes the map's local radii follow the data's."""
    plan = SampledPlan(
        Forces(kernel_of(model), space=output_space_of(model)),
        epoch_stops(model.n_epochs),
        model.learning_rate,
        int(model.negative_sample_rate),
        model.repulsion_strength,
        bool(model.update_negatives),
        int(model.transform_seed),
        arranges=_arranges(model) and not matches_density,
    )
    k = model.n_neighbors if model.target_n_neighbors == -1 else model.target_n_neighbors
    keywords = dict(model.target_metric_kwds or {})
    labels = Supervision(model.target_metric, keywords, model.target_weight, int(k), seed, n_jobs)
    density = None
    if matches_density or model.output_dens:
        density = DensityPlan(matches_density, model.dens_lambda, model.dens_frac, model.dens_var_shift)
    return Recipe(
        affinity_of(model),
        plan,
        int(model.n_components),
        initializer_of(model.init),
        search="approximate" if model.force_approximation_algorithm else "auto",
        supervision=labels,
        density=density,
        unique=bool(model.unique),
        record_loss=bool(model.compute_loss),
        output="graph" if model.transform_mode == "graph" else "embedding",
        isolated=model.disconnected,
    )


def growing_recipe_of(model: Any, seed: int, n_jobs: int) -> Recipe:
    """Return the recipe of a growing map."""
    plan = SampledPlan(
        Forces(kernel_of(model)),
        learning_rate=model.learning_rate,
        negative_sample_rate=int(model.negative_sample_rate),
        repulsion_strength=model.repulsion_strength,
        placement_seed=int(model.transform_seed),
    )
    labels = Supervision(
        model.target_metric, weight=model.target_weight, n_neighbors=int(model.n_neighbors), seed=seed, n_jobs=n_jobs
    )
    init, n_components = initializer_of(model.init), int(model.n_components)
    return Recipe(affinity_of(model), plan, n_components, init, supervision=labels)


def pace_of(model: Any) -> Pace:
    """Return for how many epochs the rows of a growing map move."""
    window = None if model.window is None else int(model.window)
    return Pace(int(model.new_epochs), int(model.updated_epochs), model.move == "all", window)


def given_knn(precomputed_knn: Any) -> Any:
    """Return the precomputed neighbors, or None; umap-learn's default is a tuple of three None."""
    sequence = isinstance(precomputed_knn, tuple | list)
    missing = precomputed_knn is None or (sequence and all(part is None for part in precomputed_knn))
    return None if missing else precomputed_knn


def given_neighbors(precomputed_knn: Any, rows: HasRows, n_neighbors: int) -> Neighbors | None:
    """Return the precomputed neighbors as a table of ``n_neighbors`` columns, or None."""
    given, n = given_knn(precomputed_knn), int(rows.shape[0])
    return None if given is None else neighbors_from_knn(given, n, min(int(n_neighbors), n))


def epoch_stops(n_epochs: Any) -> tuple[int, ...] | None:
    """Return the epochs whose maps are wanted, in ascending order; None if the default is asked for."""
    if n_epochs is None:
        return None
    if isinstance(n_epochs, list | tuple) and not (n_epochs and all(whole(0).allows(epoch) for epoch in n_epochs)):
        raise ValueError(f"n_epochs must list whole numbers of at least 0, got {n_epochs!r}")
    return tuple(sorted({int(epoch) for epoch in np.atleast_1d(np.asarray(n_epochs))}))
