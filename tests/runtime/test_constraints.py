"""Parameter constraints: accepted values, and the errors of others."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import pytest

from vicinal.runtime.constraints import Interval, InvalidParameterError, StrOptions, WholeFloat, check_parameters

ACCEPTED = [
    (Interval(Integral, 2, None, closed="left"), 2),
    (Interval(Integral, 2, None, closed="left"), np.int32(7)),
    (Interval(Real, 0, 1, closed="both"), 1),
    (Interval(Real, 0, 1, closed="neither"), np.float32(0.5)),
    (StrOptions({"a", "b"}), "a"),
    (Integral, 3),
    (dict, {}),
    (None, None),
    (callable, print),
    ("boolean", np.bool_(True)),
    ("boolean", 1),
    (WholeFloat(1), 2.0),
    ("verbose", 2),
    ("random_state", None),
    ("random_state", np.random.RandomState(0)),
    ("array-like", [[1.0, 2.0]]),
]
REJECTED = [
    (Interval(Integral, 2, None, closed="left"), 1, r"an int in the range \[2, inf\)"),
    (Interval(Integral, 2, None, closed="left"), 2.0, "an int"),
    (Interval(Integral, 0, None, closed="left"), True, "an int"),
    (Interval(Integral, 0, None, closed="left"), 10**400, "an int"),
    (Interval(Real, 0, None, closed="left"), 10**400, "a float"),
    (Interval(Real, 0, None, closed="neither"), 0.0, r"a float in the range \(0, inf\)"),
    (Interval(Real, 0, None, closed="neither"), float("nan"), "a float"),
    (Interval(Real, 0, None, closed="neither"), float("inf"), "a float"),
    (Interval(Real, 0, 1, closed="both"), 1.01, r"\[0, 1\]"),
    (Interval(Real, 0, 1, closed="both"), "0.5", "a float"),
    (StrOptions({"a", "b"}), "c", r"\['a', 'b'\]"),
    (Integral, True, "an int"),
    (dict, [], "'dict'"),
    (None, 0, "None"),
    (callable, "print", "a callable"),
    ("boolean", 2, "a bool"),
    ("verbose", -1, "an int >= 0"),
    ("random_state", -1, "RandomState"),
    ("array-like", "text", "an array-like"),
]


@pytest.mark.parametrize(("constraint", "value"), ACCEPTED)
def test_valid_values_are_accepted(constraint: Any, value: Any) -> None:
    check_parameters("Model", {"p": value}, {"p": [constraint]})


@pytest.mark.parametrize(("constraint", "value", "described"), REJECTED)
def test_error_names_the_parameter_the_value_and_what_is_allowed(constraint: Any, value: Any, described: str) -> None:
    with pytest.raises(InvalidParameterError, match=described) as caught:
        check_parameters("Model", {"p": value}, {"p": [constraint]})
    assert "'p' parameter of Model" in str(caught.value)
    assert repr(value) in str(caught.value)


def test_value_must_satisfy_one_of_the_constraints() -> None:
    constraints: dict[str, list[Any]] = {"p": [StrOptions({"auto"}), Interval(Real, 0, None), None]}
    for value in ("auto", 2.5, None):
        check_parameters("Model", {"p": value}, constraints)
    with pytest.raises(InvalidParameterError, match="or None"):
        check_parameters("Model", {"p": "other"}, constraints)
