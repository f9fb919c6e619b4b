"""Rows without any edge: no other row is near enough to be a neighbor.

A fit leaves them out of the layout and puts them around the map (``layout/surroundings.py``); they neither move nor
push other rows. New rows are put between the map and these rows.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.layout.surroundings import Surroundings
from vicinal.maps.fitted import FittedMap
from vicinal.maps.plans import FullPlan, SampledPlan


def surroundable(graph: Graph, plan: SampledPlan | FullPlan) -> NDArray[np.bool_] | None:
    """Return which rows are placed around the map; None if none is.

    There is no outside if the distance of the map is not the euclidean one; such rows then stay where they start.
    """
    isolated = graph.isolated()
    return isolated if isolated.any() and _has_outside(plan) else None


def _has_outside(plan: SampledPlan | FullPlan) -> bool:
    return isinstance(plan, FullPlan) or plan.forces.space.is_euclidean


def warn_of_isolated(graph: Graph, limit: float, kind: str = "rows") -> None:
    """Warn, once, of the rows that have no edge; rows are neighbors if they are nearer than ``limit``."""
    count = int(np.count_nonzero(graph.isolated()))
    if count:
        why = "" if limit == np.inf else f" (no row is nearer than the disconnection distance {limit:.4g})"
        what = f"{count} of {graph.n} {kind} are disconnected: no edge joins them{why}, so their places mean nothing"
        warnings.warn(what, UserWarning, stacklevel=2)


def place_isolated(
    places: NDArray[np.float32], graph: Graph, fitted: FittedMap, keys: NDArray[np.uint64]
) -> NDArray[np.float32]:
    """Return the places of new rows, with those that have no neighbor around the fitted map.

    ``graph`` leads from the new rows to the fitted ones; ``keys`` are the content hashes of the new rows.
    """
    isolated = graph.isolated()
    if not isolated.any() or not _has_outside(fitted.recipe.plan):
        return places
    warn_of_isolated(graph, fitted.recipe.affinity.limit(fitted.searched), "new rows")
    known = fitted.reference.places[~fitted.graph.isolated()]
    out = places.copy()
    out[isolated] = Surroundings.of(known).new_rows(keys[isolated])
    return out
