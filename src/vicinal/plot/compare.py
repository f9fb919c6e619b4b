"""Several maps of the same rows side by side, rotated and scaled to match the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import coordinates
from vicinal.plot.look import OWN, check_theme
from vicinal.plot.points import points

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
    """Draw several maps of the same rows in one figure with one legend.

    Each map is translated, rotated, reflected and scaled as a whole to minimize the squared distances to the first map
    (Procrustes analysis), so that the remaining differences are real.

    Parameters
    ----------
    maps : mapping or sequence
        Fitted models or arrays [rows, 2]; the keys of a mapping are the titles.
    labels, values : array-like, optional
        Classes or numbers that color the points, as in :func:`points`.
    align : bool, default=True
        Whether to align the maps with the first.
    theme : {"light", "dark"}
        Colors of the figure.
    """
    from matplotlib import pyplot as plt

    named = map_names(maps)
    if not named:
        raise ValueError("maps must contain at least one map")
    placed = {name: coordinates(one) for name, one in named.items()}
    first = next(iter(placed.values()))
    for name, xy in placed.items():
        if len(xy) != len(first):
            raise ValueError(f"maps must have the same rows; {name!r} has {len(xy)} rows, the first has {len(first)}")
    look = check_theme(theme)
    columns = min(MOST_COLUMNS, len(placed))
    rows = math.ceil(len(placed) / columns)
    size = (PANEL_INCHES * columns, PANEL_INCHES * rows * 1.06)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    figure.set_facecolor(look.background)
    figure.set_gid(OWN)
    axes = list(grid.flat)
    for ax, (name, xy) in zip(axes, placed.items(), strict=False):
        drawn = aligned(xy, first) if align else xy
        last_of_row = ax is axes[min(columns, len(placed)) - 1]
        points(drawn, labels, values, ax=ax, theme=theme, title=name, legend=last_of_row)
    for spare in axes[len(placed) :]:
        spare.remove()
    return axes[: len(placed)]


def aligned(xy: Floats, reference: Floats) -> Floats:
    """Translate, rotate, reflect and scale ``xy`` to the least squared distance from ``reference``."""
    from scipy.linalg import orthogonal_procrustes

    center, goal = xy.mean(axis=0), reference.mean(axis=0)
    spread = float(np.linalg.norm(xy - center))
    if spread == 0.0:
        return np.asarray(xy - center + goal)
    turn, stretch = orthogonal_procrustes((xy - center) / spread, reference - goal)
    return np.asarray((xy - center) / spread @ turn * stretch + goal)


def map_names(maps: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    """Return maps by title: keys of a mapping, or names of classes, numbered if they repeat."""
    if isinstance(maps, Mapping):
        return {str(name): one for name, one in maps.items()}
    named: dict[str, Any] = {}
    for a, one in enumerate(maps):
        name = type(one).__name__ if hasattr(one, "embedding_") else f"map {a + 1}"
        named[name if name not in named else f"{name} ({a + 1})"] = one
    return named
