"""Constraints on the parameters of estimators, checked before any work.

A constraint is a type, ``None``, ``callable``, one of the words ``"boolean"``, ``"verbose"``, ``"random_state"`` and
``"array-like"``, or an object with ``allows(value)`` and a readable ``str``. The declarations and messages follow
scikit-learn's own, which are private to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np


class InvalidParameterError(ValueError, TypeError):
    """A parameter has an invalid value or type."""


@dataclass(frozen=True)
class Interval:
    """Accept finite numbers of a kind (``Integral`` or ``Real``) between two bounds; ``None`` means no bound."""

    kind: type
    low: float | None
    high: float | None
    closed: Literal["left", "right", "both", "neither"] = "both"

    def allows(self, value: Any) -> bool:
        if not _is_a(self.kind, value) or not _is_finite(value):
            return False
        above = self.low is None or value > self.low or (value == self.low and self.closed in ("left", "both"))
        below = self.high is None or value < self.high or (value == self.high and self.closed in ("right", "both"))
        return bool(above and below)

    def __str__(self) -> str:
        opening = "[" if self.closed in ("left", "both") and self.low is not None else "("
        closing = "]" if self.closed in ("right", "both") and self.high is not None else ")"
        low = "-inf" if self.low is None else self.low
        high = "inf" if self.high is None else self.high
        return f"{'an int' if self.kind is Integral else 'a float'} in the range {opening}{low}, {high}{closing}"


def whole(low: int) -> Interval:
    """Accept counts (of rows, axes, epochs) of at least ``low``, which are 32-bit in the core."""
    return Interval(Integral, low, 2**31 - 1)


class WholeFloat:
    """Accept floats without a fraction, which umap-learn takes for some counts."""

    def __init__(self, low: int, high: int = 2**31 - 1) -> None:
        self.low, self.high = low, high

    def allows(self, value: Any) -> bool:
        return isinstance(value, float | np.floating) and bool(self.low <= value <= self.high and value % 1 == 0)

    def __str__(self) -> str:
        return "a float without a fraction"


POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="both")
# The seeds that the core takes. Larger steps than this move points out of the range of float32.
SEED = Interval(Integral, 0, 2**64 - 1, closed="both")
LEARNING_RATE = Interval(Real, 0, 1e6, closed="right")
# A call answers Ctrl-C between blocks of rows; with more negatives per edge, a block would take seconds.
NEGATIVES = Interval(Integral, 0, 10_000, closed="both")


class StrOptions:
    """Accept one of several words."""

    def __init__(self, options: Iterable[str]) -> None:
        self.options = frozenset(options)

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.options

    def __str__(self) -> str:
        return f"a str among {sorted(self.options)}"


class DeviceName:
    """Accept the name of a device: "cpu", "cuda" or "cuda:N"."""

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and re.fullmatch(r"cpu|cuda(:\d+)?", value) is not None

    def __str__(self) -> str:
        return "'cpu', 'cuda' or 'cuda:N'"


DEVICE = DeviceName()


def _is_a(kind: type, value: Any) -> bool:
    """Tell whether the value is of a kind; True and False do not count as numbers."""
    return isinstance(value, kind) and not (kind in (Integral, Real) and _is_boolean(value))


def _is_finite(value: Any) -> bool:
    """Tell whether a number is finite and below the largest float."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_array_like(value: Any) -> bool:
    return not isinstance(value, str | bytes | type) and (
        hasattr(value, "__len__") or hasattr(value, "__array__") or hasattr(value, "shape")
    )


def _is_random_state(value: Any) -> bool:
    # check_random_state takes the module numpy.random as its global generator
    if value is None or value is np.random or isinstance(value, np.random.RandomState):
        return True
    return Interval(Integral, 0, 2**32 - 1, closed="both").allows(value)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_switch(value: Any) -> bool:
    """Tell whether a value is True or False, or 1 or 0, which programs write for them."""
    return _is_boolean(value) or (isinstance(value, Integral) and value in (0, 1))


# Constraints without an object of their own: the check, and the description in errors
PLAIN: dict[Any, tuple[Callable[[Any], bool], str]] = {
    None: (lambda value: value is None, "None"),
    callable: (callable, "a callable"),
    Integral: (partial(_is_a, Integral), "an int"),
    Real: (partial(_is_a, Real), "a float"),
    "boolean": (_is_switch, "a bool"),
    "verbose": (lambda value: _is_boolean(value) or whole(0).allows(value), "a bool or an int >= 0"),
    "random_state": (_is_random_state, "an int in the range [0, 4294967295], a RandomState or None"),
    "array-like": (_is_array_like, "an array-like"),
}


def _rule(constraint: Any) -> tuple[Callable[[Any], bool], Any]:
    """Return the check of a constraint, and what describes it in errors."""
    if constraint in PLAIN:
        return PLAIN[constraint]
    if isinstance(constraint, type):
        return partial(_is_a, constraint), f"an instance of {constraint.__qualname__!r}"
    return constraint.allows, constraint


def check_parameters(owner: str, values: Mapping[str, Any], constraints: Mapping[str, list[Any]]) -> None:
    """Raise InvalidParameterError for the first parameter that satisfies none of its constraints."""
    for name, allowed in constraints.items():
        value, rules = values[name], [_rule(constraint) for constraint in allowed]
        if not any(allows(value) for allows, _ in rules):
            *others, last = [str(described) for _, described in rules]
            choices = f"{', '.join(others)} or {last}" if others else last
            raise InvalidParameterError(f"The {name!r} parameter of {owner} must be {choices}. Got {value!r} instead.")
