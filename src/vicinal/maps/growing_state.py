"""Checks of the saved state of a growing map, before any of its numbers reaches the compiled core.

A state may come from a file, so it may hold anything. The core checks the arrays of the neighbor search against each
other; everything that decides how much memory it allocates, or how long it runs, is checked here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral, Real
from typing import Any

import numpy as np

from vicinal.initialize.start import INITIALIZERS
from vicinal.maps.growth import Growth
from vicinal.maps.online_targets import TARGET_METRICS
from vicinal.neighbors.online import OnlineOptions
from vicinal.runtime.parameters import LEARNING_RATE, NEGATIVES, Interval, StrOptions

# Row numbers and epochs are 32-bit integers in the core.
_INT32 = float(np.iinfo(np.int32).max)
# Epochs and comparisons are counted in 64 bits. Far below the limit, so that sums and products do not overflow.
_COUNTER = 2.0**52
# Trees and spare entries are allocated per row; the defaults are 12 and 6.
_PER_ROW = 1024


def _integer(low: float, high: float) -> Interval:
    return Interval(Integral, low, high, closed="both")


_POSITIVE = Interval(Real, 0, None, closed="neither")
_NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_SHARE = Interval(Real, 0, 1, closed="both")
_SEED = _integer(0, 2.0**63)

_GROWTH = {
    "a": _POSITIVE,
    "b": _POSITIVE,
    "n_components": _integer(1, _INT32),
    "init": StrOptions(INITIALIZERS),
    "learning_rate": LEARNING_RATE,
    "negative_sample_rate": NEGATIVES,
    "repulsion_strength": _NOT_NEGATIVE,
    "local_connectivity": _NOT_NEGATIVE,
    "set_op_mix_ratio": _SHARE,
    "target_weight": _SHARE,
    "new_epochs": _integer(0, _INT32),
    "updated_epochs": _integer(0, _INT32),
    "seed": _SEED,
    "n_jobs": _integer(-_INT32, _INT32),
    "target_metric": StrOptions(set(TARGET_METRICS)),
}
ADDED = {"target_metric"}
_SEARCH = {"k": _integer(2, _INT32), "seed": _SEED}
_OPTIONS = {
    "spare": _integer(0, _PER_ROW),
    "trees": _integer(1, _PER_ROW),
    "refresh_after": _integer(1, _INT32),
    "exact_rows": _integer(0, _INT32),
    # The names of the last two in files of version 0.1.
    "ripe": _integer(1, _INT32),
    "few": _integer(0, _INT32),
}
_CORE = {
    "queue_head": _integer(0, _INT32),
    "chunk_kind": _integer(0, 2),
    "searched": _integer(0, _INT32),
    "merged": _integer(0, _INT32),
    "sketched": _integer(0, _INT32),
    "reported": _integer(0, _INT32),
    "fitted_rows": _integer(0, _INT32),
    "share_rows": _integer(0, _INT32),
    "compared": _integer(0, _COUNTER),
    "share": Interval(Real, 0, None, closed="left"),
}


def check_numbers(state: Mapping[str, Any]) -> None:
    """Raise ValueError if a number of a growing map's state is outside of the range that the core accepts."""
    growth, search = state["growth"], state["search"]
    known = {field.name for field in fields(Growth)}
    # Files of version 0.1 do not have the parameters that have been added since.
    if not known - ADDED <= set(growth) <= known or not isinstance(growth["move_all"], bool):
        raise ValueError("the state of a growing map has other parameters")
    _check("growth", {**{name: Growth.__dataclass_fields__[name].default for name in ADDED}, **growth}, _GROWTH)
    if growth["disconnection_distance"] is not None:
        _check("growth", growth, {"disconnection_distance": _POSITIVE})
    _check("search", search, _SEARCH)
    options = search["options"]
    if not set(options) <= set(_OPTIONS) or len(options) != len(fields(OnlineOptions)):
        raise ValueError("the state of a growing map has other search options")
    _check("search.options", options, {name: _OPTIONS[name] for name in options})
    if "core" in search:
        _check("search", search, {"scale": _POSITIVE})
        _check("search.core", search["core"], _CORE)
    _check_clock(state["clock"], len(state["places"]))
    _check_lists(state["index"], state["membership"], search["k"])


def _check_clock(clock: Any, n_placed: int) -> None:
    names = ("founders", "round", "cursor")
    if not isinstance(clock, list | tuple) or len(clock) != len(names):
        raise ValueError(f"clock must hold {', '.join(names)}, got {clock!r}")
    allowed = {"founders": _integer(0, n_placed), "round": _integer(0, _COUNTER), "cursor": _integer(0, n_placed)}
    _check("clock", dict(zip(names, clock, strict=True)), allowed)


def _check_lists(index: Any, membership: Any, k: int) -> None:
    for name, lists, dtype in (("index", index, np.int32), ("membership", membership, np.float32)):
        if not isinstance(lists, np.ndarray) or lists.dtype != dtype or lists.ndim != 2 or lists.shape[1] != k:
            raise ValueError(f"{name} must be a table of {k} {np.dtype(dtype)} numbers per row")
    if len(index) != len(membership):
        raise ValueError(f"index and membership must have the same rows, got {len(index)} and {len(membership)}")


def _check(where: str, values: Mapping[str, Any], allowed: Mapping[str, Any]) -> None:
    for name, constraint in allowed.items():
        if not constraint.allows(values[name]):
            raise ValueError(f"{where}.{name} must be {constraint}, got {values[name]!r}")
