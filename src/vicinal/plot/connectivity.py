"""The neighbor graph drawn over its map: which rows the layout pulled together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from vicinal.plot.annotations import coordinates
from vicinal.plot.axes import bare_axes, fit_window
from vicinal.plot.palette import check_theme, rgb
from vicinal.plot.points import points
from vicinal.plot.raster import Raster
from vicinal.runtime.sparse_structure import check_structure

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
    """Draw the edges of a fitted model's graph; areas with more or heavier edges are darker.

    Long edges across the map connect rows that are neighbors in the data but far apart in the map.

    Parameters
    ----------
    model : fitted model or array [rows, 2]
        The map. An array requires ``graph``.
    labels : array-like, optional
        Classes that colour the points.
    graph : sparse matrix or Graph, optional
        The edges; by default ``model.graph_``.
    show_points : bool, default=True
        Whether to draw the points over the edges.
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    theme : {"light", "dark"}
        Colours of the figure.
    title : str, optional
        Title of the axes.
    """
    xy = coordinates(model)
    matrix = getattr(model, "graph_", None) if graph is None else graph
    if matrix is None:
        raise ValueError("model must be a fitted model with graph_, or graph must be given")
    check_structure(matrix, "graph")
    edges = (matrix.to_scipy() if hasattr(matrix, "to_scipy") else matrix).tocoo()
    if edges.shape != (len(xy), len(xy)):
        raise ValueError(f"graph must have shape {(len(xy), len(xy))}, got {edges.shape}")
    look = check_theme(theme)
    ax = bare_axes(ax, look)
    fit_window(ax, xy)
    # a symmetric graph has each edge twice
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
