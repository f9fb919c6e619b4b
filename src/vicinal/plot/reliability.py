"""How far to believe a map: points coloured by reliability, and the edges that the map tears."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vicinal.plot.annotations import coordinates
from vicinal.plot.axes import bare_axes, fit_window
from vicinal.plot.look import look_of
from vicinal.plot.points import points
from vicinal.quality.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Parts that can colour the points, with the titles of their figures.
PARTS = {
    "reliability": "Reliability",
    "near": "Near neighbors kept",
    "wide": "Wide neighbors kept",
    "stability": "Stability",
    "spread": "Spread",
    "stretch": "Stretch",
    "torn": "Torn edge weight",
    "q_value": "q-value",
    "label": "Labels",
}
# The most torn edges that are drawn one by one; the worst come first.
MOST_EDGES = 2000


def reliability(
    model: Any,
    found: Reliability | None = None,
    part: str = "reliability",
    *,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
    **drawn: Any,
) -> Axes:
    """Colour each point of a map by its reliability or by a part of it.

    Parameters
    ----------
    model : fitted model or array [rows, 2]
        The map. An array requires ``found``.
    found : Reliability, optional
        The measurement; by default ``model.reliability_``.
    part : str, default "reliability"
        What to show: "reliability", "near", "wide", "stability", "spread", "stretch", "torn", "q_value" or "label".
    ax, theme, title
        As in :func:`points`.
    **drawn
        Further arguments of :func:`points`.
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {', '.join(PARTS)}, got {part!r}")
    xy, found = coordinates(model), _measured(model, found)
    column = found.columns()[part]
    labels, values = (column, None) if part == "label" else (None, column)
    return points(xy, labels, values, ax=ax, theme=theme, title=PARTS[part] if title is None else title, **drawn)


def torn_edges(
    model: Any,
    found: Reliability | None = None,
    *,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
    most: int = MOST_EDGES,
) -> Axes:
    """Draw the heavy edges of the graph that a map tears over its points; heavier edges are more opaque.

    Parameters
    ----------
    model : fitted model or array [rows, 2]
        The map. An array requires ``found``.
    found : Reliability, optional
        The measurement; by default ``model.reliability_``.
    ax, theme, title
        As in :func:`points`.
    most : int, default 2000
        The most edges to draw, the worst first.
    """
    from matplotlib.collections import LineCollection

    if isinstance(most, bool) or not isinstance(most, int | np.integer) or most < 0:
        raise ValueError(f"most must be a whole number of at least 0, got {most!r}")
    xy, edges = coordinates(model), _measured(model, found).torn_edges
    look = look_of(theme)
    ax = bare_axes(ax, look)
    fit_window(ax, xy)
    name = f"{len(edges):,} torn edges" if title is None else title
    points(xy, ax=ax, theme=theme, title=name)
    head, tail, weight = edges.head[:most], edges.tail[:most], edges.weight[:most]
    if len(head):
        opacity = 0.15 + 0.65 * weight / weight.max()
        lines = list(np.stack([xy[head], xy[tail]], axis=1))
        colors = [(0.84, 0.37, 0.0, alpha) for alpha in opacity]
        ax.add_collection(LineCollection(lines, colors=colors, linewidths=0.8, zorder=3, rasterized=True))
    return ax


def _measured(model: Any, found: Reliability | None) -> Reliability:
    found = getattr(model, "reliability_", None) if found is None else found
    if not isinstance(found, Reliability):
        raise ValueError("found must be given: what vicinal.reliability returned for this map")
    n = len(coordinates(model))
    if len(found) != n:
        raise ValueError(f"found must have one entry for each of the {n} points, got {len(found)}")
    return found
