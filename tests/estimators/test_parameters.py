"""Parameters of estimators: constructor, constraints and documentation follow from one table."""

from __future__ import annotations

import ctypes
import dataclasses
import inspect
import re
from dataclasses import KW_ONLY
from typing import Any

import numpy as np
import pytest
from scipy import LowLevelCallable
from sklearn.base import BaseEstimator, clone

import vicinal
from vicinal import TSNE, UMAP, DensMAP, KNeighborsTransformer, LargeVis, ProgressiveUMAP
from vicinal.estimators.base import Estimator
from vicinal.estimators.parameters import like, parameter, parameters_of, with_parameters
from vicinal.runtime.constraints import StrOptions, check_parameters, whole

CLASSES = [getattr(vicinal, name) for name in vicinal.__all__]
ESTIMATORS = [cls for cls in CLASSES if inspect.isclass(cls) and issubclass(cls, BaseEstimator)]


@with_parameters
class Turning(Estimator):
    """Turn rows.

    Attributes
    ----------
    n_turns_ : int
    """

    n_components: int = like(UMAP, "They turn too.", default=7)
    speed: str = parameter("slow", [StrOptions({"slow", "fast"})], """
        How fast
        rows turn.""")  # fmt: skip
    _: KW_ONLY
    n_turns: int | None = parameter(None, [whole(0), None], "Number of turns.")

    n_jobs = -1


def test_table_states_the_constructor() -> None:
    assert str(inspect.signature(Turning)).replace("'", "") == (
        "(n_components: int = 7, speed: str = slow, *, n_turns: int | None = None) -> None"
    )
    assert Turning(3, n_turns=2).get_params() == {"n_components": 3, "speed": "slow", "n_turns": 2}
    with pytest.raises(TypeError, match=r"Turning.__init__\(\) got an unexpected keyword argument 'turns'"):
        Turning(turns=2)  # type: ignore[call-arg]


def test_table_states_the_constraints() -> None:
    Turning(speed="fast")._validate_params()
    with pytest.raises(ValueError, match=r"'n_components' .* of Turning must be an int in the range \[1, 2147483647\]"):
        Turning(0)._validate_params()


def test_table_states_the_documentation() -> None:
    assert Turning.__doc__ == (
        "Turn rows.\n\nParameters\n----------\n"
        "n_components : int, default 7\n    Dimensions of the map. They turn too.\n"
        'speed : {"fast", "slow"}, default "slow"\n    How fast rows turn.\n'
        "n_turns : int, optional\n    Number of turns.\n\n"
        "Attributes\n----------\nn_turns_ : int"
    )


def test_a_class_without_a_table_has_that_of_its_base() -> None:
    assert parameters_of(DensMAP) == parameters_of(UMAP)
    assert inspect.signature(DensMAP) == inspect.signature(UMAP)


def test_models_are_no_dataclasses() -> None:
    """Dask takes dataclasses with equal fields for the same object, whatever they have learned."""
    assert not dataclasses.is_dataclass(UMAP)
    assert "n_neighbors" not in vars(UMAP)


def test_subclasses_may_have_constructors_of_their_own() -> None:
    class Fixed(KNeighborsTransformer):
        def __init__(self, size: int = 3) -> None:
            super().__init__(n_neighbors=size)
            self.size = size

    model = clone(Fixed(4))
    assert model.get_params() == {"size": 4}
    assert model.fit_transform(np.eye(8, dtype=np.float32)).nnz == 8 * 5


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_every_parameter_is_documented_and_its_default_is_allowed(cls: Any) -> None:
    table = parameters_of(cls)
    assert list(table) == list(inspect.signature(cls).parameters)
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n", inspect.getdoc(cls) or "", re.S | re.M)
    assert section
    assert re.findall(r"^(\w+) : .*(?:optional|default .+)$", section[1], re.M) == list(table)
    for name, one in table.items():
        assert one.default is inspect.signature(cls).parameters[name].default
        assert "Any" not in one.kind
        assert one.doc.endswith(".")
        check_parameters(cls.__name__, {name: one.default}, {name: one.allowed})


@pytest.mark.parametrize("cls", [UMAP, TSNE, LargeVis, ProgressiveUMAP, KNeighborsTransformer])
def test_every_estimator_takes_a_compiled_metric_and_no_other_tuple(cls: Any) -> None:
    numbers = ctypes.POINTER(ctypes.c_float)

    @ctypes.CFUNCTYPE(ctypes.c_double, numbers, numbers, ctypes.c_int)
    def manhattan(x: Any, y: Any, n: int) -> float:
        return float(sum(abs(x[k] - y[k]) for k in range(n)))

    X = np.eye(20, dtype=np.float32)
    assert cls(metric=LowLevelCallable(manhattan)).fit(X).transform(X).shape[0] == 20
    with pytest.raises(TypeError, match="metric must be a name, a function of two rows or a"):
        cls(metric=("manhattan", 2)).fit(X)


def test_the_parameters_of_a_growing_map_become_those_of_its_copy() -> None:
    model = ProgressiveUMAP(n_neighbors=5, min_dist=0.3, random_state=0).fit(np.eye(30, dtype=np.float32))
    copied = model.to_umap()
    assert {name: getattr(copied, name) for name in ("n_neighbors", "min_dist")} == {"n_neighbors": 5, "min_dist": 0.3}
