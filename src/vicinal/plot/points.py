"""Scatter plot of a map, coloured by categories or by values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import Classes, classes_of, coordinates, scaled_values
from vicinal.plot.axes import Key, bare_axes, draw_key, fit_window, opacity, point_area
from vicinal.plot.palette import OKABE_ITO, THEMES, UNLABELLED, VALUES_MAP, Theme, check_theme, palette, rgb
from vicinal.plot.raster import Raster

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Fixed, so that the same map gives the same picture.
SHUFFLE_SEED = 0
# Above this number points hide each other and are shaded by density instead.
SHADED = 50_000


def points(
    embedding: Any,
    labels: ArrayLike | None = None,
    values: ArrayLike | None = None,
    *,
    ax: Axes | None = None,
    theme: str = "light",
    title: str | None = None,
    point_size: float | None = None,
    alpha: float | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a map as points, coloured by categories or by values.

    Rows without a label (None or NaN) or with a value that is not finite are drawn in grey below the others. More than
    50,000 points are shaded by density unless ``point_size`` or ``alpha`` is given.

    Parameters
    ----------
    embedding : fitted model or array [rows, 2]
        The map.
    labels : array-like, optional
        Categories, one per row.
    values : array-like, optional
        Numbers, one per row; not together with ``labels``.
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    theme : {"light", "dark"}
        Colours of the figure.
    title : str, optional
        Title of the axes.
    point_size : float, optional
        Area of a point in square typographic points, as in matplotlib; by default chosen from the number of points.
    alpha : float, optional
        Opacity of a point; by default chosen from the number of points.
    legend : bool, default=True
        Whether to draw a legend or a colour bar.
    """
    xy = coordinates(embedding)
    if labels is not None and values is not None:
        raise ValueError("labels and values cannot be used together: give only one to colour the points")
    look = check_theme(theme)
    ax = bare_axes(ax, look)
    paint = _paint(labels, values, len(xy), theme)
    fit_window(ax, xy)
    if len(xy) > SHADED and point_size is None and alpha is None:
        raster = Raster(ax)
        raster.add_points(xy, paint.rgb)
        raster.draw(ax)
    else:
        _scatter(ax, xy, paint, point_size, alpha)
    if title:
        ax.set_title(title, color=look.ink, fontsize=13, loc="left", pad=10)
    if legend:
        draw_key(ax, paint.key, look)
    return ax


def _scatter(ax: Axes, xy: Floats, paint: _Paint, point_size: float | None, alpha: float | None) -> None:
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(xy))
    # grey points first, below the others; a stable sort keeps the shuffled order within both groups
    order = order[np.argsort(paint.coloured[order], kind="stable")]
    ax.scatter(
        xy[order, 0],
        xy[order, 1],
        s=point_area(ax, len(xy)) if point_size is None else point_size,
        c=paint.rgb[order],
        alpha=opacity(len(xy)) if alpha is None else alpha,
        linewidths=0,
        rasterized=True,
    )


@dataclass(frozen=True)
class _Paint:
    """The colour of each point, and the content of the legend."""

    rgb: Floats
    coloured: NDArray[np.bool_]
    key: Key = field(default_factory=Key)


def _paint(labels: ArrayLike | None, values: ArrayLike | None, n: int, theme: str) -> _Paint:
    if labels is not None:
        return _paint_labels(classes_of(labels, n), theme)
    if values is not None:
        return _paint_values(*scaled_values(values, n), THEMES[theme])
    return _Paint(np.tile(rgb(OKABE_ITO[0]), (n, 1)), np.ones(n, dtype=bool))


def _paint_values(scale: Floats, limits: tuple[float, float] | None, look: Theme) -> _Paint:
    import matplotlib

    known = np.isfinite(scale)
    colours = np.tile(rgb(look.faint), (len(scale), 1))
    colours[known] = matplotlib.colormaps[VALUES_MAP](scale[known])[:, :3]
    return _Paint(colours, known, Key(limits=limits))


def _paint_labels(classes: Classes, theme: str) -> _Paint:
    faint = THEMES[theme].faint
    colours = [*palette(len(classes.names), theme), faint]
    categories = list(zip(classes.names, colours, strict=False))
    if not classes.known.all():
        categories.append((UNLABELLED, faint))
    painted = np.array([rgb(colour) for colour in colours])[classes.codes]
    return _Paint(painted, classes.known, Key(categories=tuple(categories)))
