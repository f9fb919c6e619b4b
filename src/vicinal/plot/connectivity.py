"""The neighbor graph drawn over its map: which rows the layout pulled together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import coordinates
from vicinal.plot.look import bare_axes, color_map, fit_window, look_of, rgb
from vicinal.plot.points import Raster, points
from vicinal.runtime.inputs import check_structure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]

PIECES = 16  # straight pieces per edge
GRID = 256  # cells along the longer side of the map
ROUNDS = 8
WIDEST, NARROWING = 12.0, 0.75  # the deviation of the kernel, in cells, and its factor per round
REACH = 0.5  # the longest step, in deviations of the kernel
SMOOTHINGS = 2  # per round
BLOCK = 1 << 16  # edges that are moved at a time, which bounds the memory and the time to an interrupt


def bundled(start: Floats, end: Floats, weights: Floats) -> Floats:
    """Return the paths of edges as an array [edges, PIECES + 1, 2]; the first and last points are the given ones."""
    along = np.linspace(0.0, 1.0, PIECES + 1)[None, :, None]
    paths: Floats = start[:, None] * (1.0 - along) + end[:, None] * along
    if not len(paths):
        return paths
    low = np.minimum(start.min(axis=0), end.min(axis=0))
    cell = float((np.maximum(start.max(axis=0), end.max(axis=0)) - low).max()) / (GRID - 1) or 1.0
    paths = (paths - low) / cell
    for number in range(ROUNDS):
        deviation = WIDEST * NARROWING**number
        slopes = _slopes(paths, weights, deviation)
        for begin in range(0, len(paths), BLOCK):
            _climb(paths[begin : begin + BLOCK], slopes, REACH * deviation)
    paths = paths * cell + low
    paths[:, 0], paths[:, -1] = start, end
    return paths


def _slopes(paths: Floats, weights: Floats, deviation: float) -> Floats:
    """Return the gradient of the logarithm of the density at every cell, [2, GRID, GRID], in units of the steepest one.

    The logarithm makes paths join single neighbors as well as thick bundles.
    """
    from scipy.ndimage import gaussian_filter

    counts = np.zeros(GRID * GRID)
    for begin in range(0, len(paths), BLOCK):
        place = np.rint(paths[begin : begin + BLOCK, 1:-1]).astype(np.int64)
        mass = np.repeat(weights[begin : begin + BLOCK], PIECES - 1)
        counts += np.bincount((place[..., 0] * GRID + place[..., 1]).ravel(), weights=mass, minlength=GRID * GRID)
    density = gaussian_filter(counts.reshape(GRID, GRID), deviation, mode="constant")
    slopes = np.stack(np.gradient(np.log(density + 1e-3 * density.max() + np.finfo(float).tiny)))
    steepest = float(np.sqrt((slopes**2).sum(axis=0)).max())
    return slopes / steepest if steepest > 0 else slopes


def _climb(paths: Floats, slopes: Floats, reach: float) -> None:
    """Move the inner points of some paths uphill and smooth the paths, in place."""
    from scipy.ndimage import map_coordinates

    inner = paths[:, 1:-1].reshape(-1, 2).T
    step = np.stack([map_coordinates(slope, inner, order=1, mode="nearest") for slope in slopes])
    # Points between two edges have a small slope, but must not stay behind.
    length = np.sqrt((step**2).sum(axis=0))
    moved = inner + reach * step / np.sqrt(np.maximum(length, 1e-12))
    paths[:, 1:-1] = np.clip(moved, 0, GRID - 1).T.reshape(len(paths), -1, 2)
    for _ in range(SMOOTHINGS):
        paths[:, 1:-1] = (paths[:, :-2] + 2.0 * paths[:, 1:-1] + paths[:, 2:]) / 4.0


def connectivity(
    umap_object: Any,
    labels: ArrayLike | None = None,
    *,
    values: ArrayLike | None = None,
    graph: Any = None,
    show_points: bool = True,
    ax: Axes | None = None,
    theme: str | None = "light",
    title: str | None = None,
    edge_bundling: str | None = None,
    edge_cmap: Any = None,
    cmap: Any = None,
    color_key: Any = None,
    color_key_cmap: Any = None,
    background: str | None = None,
    width: float | None = None,
    height: float | None = None,
) -> Axes:
    """Draw the edges of a fitted model's graph; areas with more or heavier edges are darker.

    Long edges across the map connect rows that are neighbors in the data but far apart in the map.

    Parameters
    ----------
    umap_object : fitted model or array [rows, 2]
        The map. An array requires ``graph``.
    labels : array-like, optional
        Classes that color the points.
    values : array-like, optional
        Numbers that color the points; not together with ``labels``.
    graph : sparse matrix or Graph, optional
        The edges; by default ``umap_object.graph_``.
    show_points : bool, default=True
        Whether to draw the points over the edges.
    edge_bundling : {"hammer"}, optional
        Draw edges that lead the same way along one path. It takes about a second per 30,000 edges.
    edge_cmap : str or color map, optional
        Color map whose dark end is the color of the edges; by default they have the color of text.
    ax, theme, title, cmap, color_key, color_key_cmap, background, width, height
        As in :func:`points`.
    """
    xy = coordinates(umap_object, name="umap_object")
    if edge_bundling not in (None, "hammer"):
        raise ValueError(f"edge_bundling must be None or 'hammer', got {edge_bundling!r}")
    matrix = getattr(umap_object, "graph_", None) if graph is None else graph
    if matrix is None:
        raise ValueError("umap_object must be a fitted model with graph_, or graph must be given")
    check_structure(matrix, "graph")
    edges = (matrix.to_scipy() if hasattr(matrix, "to_scipy") else matrix).tocoo()
    if edges.shape != (len(xy), len(xy)):
        raise ValueError(f"graph must have shape {(len(xy), len(xy))}, got {edges.shape}")
    colors: dict[str, Any] = {
        "theme": theme,
        "cmap": cmap,
        "color_key": color_key,
        "color_key_cmap": color_key_cmap,
        "background": background,
    }
    look = look_of(**colors, width=width, height=height)
    ax = bare_axes(ax, look)
    fit_window(ax, xy)
    # a symmetric graph has each edge twice
    once = edges.row < edges.col
    head, tail, weight = edges.row[once], edges.col[once], np.asarray(edges.data[once], dtype=np.float64)
    raster = Raster(ax)
    start, end = np.asarray(xy[head], dtype=np.float64), np.asarray(xy[tail], dtype=np.float64)
    if edge_bundling is not None:
        paths = bundled(start, end, weight)
        start, end = paths[:, :-1].reshape(-1, 2), paths[:, 1:].reshape(-1, 2)
        weight = np.repeat(weight, paths.shape[1] - 1)
    color = rgb(look.theme.ink) if edge_cmap is None else color_map(edge_cmap, "edge_cmap")(0.85)[:3]
    raster.add_lines(start, end, weight, color)
    if len(head):
        raster.draw(ax, opaque=0.6, faintest=0.04, blur=0.3)
    if show_points:
        points(umap_object, labels, values, ax=ax, title=title, alpha=0.9, **colors)
    elif title:
        ax.set_title(title, color=look.theme.ink, fontsize=13, loc="left", pad=10)
    return ax
