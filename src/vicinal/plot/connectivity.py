"""The neighbour graph drawn over its map: which rows the layout was holding together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from vicinal.plot.annotations import coordinates
from vicinal.plot.frame import bare_axes, fit_window
from vicinal.plot.palette import check_theme, rgb
from vicinal.plot.points import points
from vicinal.plot.raster import Raster

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def connectivity(
    model: Any,
    labels: ArrayLike | None = None,
    *,
    graph: Any = None,
    show_points: bool = True,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
) -> Axes:
    """Draw the edges of a fitted model's graph, darker where they are many or heavy.

    With `graph`, a sparse matrix or a `Graph`, `model` may be an array of places. Long edges across the map show
    rows that belong together and were torn apart.
    """
    xy = coordinates(model)
    matrix = getattr(model, "graph_", None) if graph is None else graph
    if matrix is None:
        raise ValueError("model must be fitted and have graph_, or graph must be given")
    edges = (matrix.to_scipy() if hasattr(matrix, "to_scipy") else matrix).tocoo()
    if edges.shape != (len(xy), len(xy)):
        raise ValueError(f"graph must have shape {(len(xy), len(xy))}, got {edges.shape}")
    look = check_theme(theme)
    ax = bare_axes(ax, look)
    fit_window(ax, xy)
    # a symmetric graph has every edge twice
    once = edges.row < edges.col
    head, tail, weight = edges.row[once], edges.col[once], np.asarray(edges.data[once], dtype=np.float64)
    raster = Raster(ax)
    raster.add_lines(xy[head], xy[tail], weight, rgb(look.ink))
    if len(head):
        raster.draw(ax, opaque=0.6, faintest=0.04, blur=0.3)
    if show_points:
        points(model, labels, ax=ax, theme=theme, title=title, alpha=0.9)
    elif title:
        ax.set_title(title, color=look.ink, fontsize=13, loc="left", pad=10)
    return ax
