"""Several maps of the same rows side by side, turned so that they can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import coordinates
from vicinal.plot.palette import check_theme
from vicinal.plot.points import points
from vicinal.runtime.interruption import imported

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

PANEL_INCHES = 3.6
MOST_COLUMNS = 4


def compare(
    maps: Mapping[str, Any] | Sequence[Any],
    labels: ArrayLike | None = None,
    values: ArrayLike | None = None,
    *,
    align: bool = True,
    theme: str = "light",
) -> list[Axes]:
    """Draw maps (fitted models or arrays [rows, 2]) in one figure, with one key.

    Rows must be the same in all of them. Each map is moved, turned, mirrored and scaled as one piece so that its
    rows come as near as they can to those of the first (Procrustes): what is left is what really differs.
    """
    plt = imported("matplotlib.pyplot")
    named = dict(maps) if isinstance(maps, Mapping) else {_name(one, a): one for a, one in enumerate(maps)}
    if not named:
        raise ValueError("maps must hold at least one map")
    placed = {name: coordinates(one) for name, one in named.items()}
    first = next(iter(placed.values()))
    for name, xy in placed.items():
        if len(xy) != len(first):
            raise ValueError(f"maps must have the same rows; {name!r} has {len(xy)}, the first {len(first)}")
    look = check_theme(theme)
    columns = min(MOST_COLUMNS, len(placed))
    rows = math.ceil(len(placed) / columns)
    size = (PANEL_INCHES * columns, PANEL_INCHES * rows * 1.06)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    figure.set_facecolor(look.background)
    axes = list(grid.flat)
    for ax, (name, xy) in zip(axes, placed.items(), strict=False):
        drawn = aligned(xy, first) if align else xy
        last_of_row = ax is axes[min(columns, len(placed)) - 1]
        points(drawn, labels, values, ax=ax, theme=theme, title=name, legend=last_of_row)
    for spare in axes[len(placed) :]:
        spare.remove()
    return axes[: len(placed)]


def aligned(xy: Floats, reference: Floats) -> Floats:
    """`xy` moved, turned, mirrored and scaled to the least squared distance from `reference`."""
    from scipy.linalg import orthogonal_procrustes

    centre, goal = xy.mean(axis=0), reference.mean(axis=0)
    spread = float(np.linalg.norm(xy - centre))
    if spread == 0.0:
        return np.asarray(xy - centre + goal)
    turn, stretch = orthogonal_procrustes((xy - centre) / spread, reference - goal)
    return np.asarray((xy - centre) / spread @ turn * stretch + goal)


def _name(one: Any, a: int) -> str:
    return type(one).__name__ if hasattr(one, "embedding_") else f"map {a + 1}"
