"""Scatter plot of a map, coloured by categories or by values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import Classes, classes_of, coordinates, scaled_values
from vicinal.plot.axes import Key, bare_axes, draw_key, fit_window, opacity, point_area
from vicinal.plot.look import Look, look_of
from vicinal.plot.palette import OKABE_ITO, UNLABELLED, rgb
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
    points: ArrayLike | None = None,
    subset_points: ArrayLike | None = None,
    ax: Axes | None = None,
    theme: str | None = "light",
    title: str | None = None,
    point_size: float | None = None,
    alpha: float | None = None,
    legend: bool = True,
    show_legend: bool | None = None,
    cmap: Any = None,
    color_key: Any = None,
    color_key_cmap: Any = None,
    background: str | None = None,
    width: float | None = None,
    height: float | None = None,
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
    points : array [rows, 2], optional
        Places to draw instead of those of the model.
    subset_points : array of bool, optional
        Which rows to draw, one value per row.
    ax : matplotlib axes, optional
        Axes to draw on; by default those of a new figure.
    theme : {"light", "dark"} or a theme of umap-learn, default "light"
        Colours of the figure. umap-learn's are blue, red, green, fire, viridis, inferno, darkblue, darkred, darkgreen.
    title : str, optional
        Title of the axes.
    point_size : float, optional
        Area of a point in square typographic points, as in matplotlib; by default chosen from the number of points.
    alpha : float, optional
        Opacity of a point; by default chosen from the number of points.
    legend, show_legend : bool, default=True
        Whether to draw a legend or a colour bar; the second is umap-learn's name.
    cmap : str or colour map, optional
        Colour map of values.
    color_key : mapping or sequence of colours, optional
        Colours of categories: by label, or in the order of the labels.
    color_key_cmap : str or colour map, optional
        Colour map from which the colours of categories are taken.
    background : str, optional
        Colour of the background; text is light on dark ones.
    width, height : int, optional
        Size of a new figure in pixels.
    """
    xy = coordinates(embedding if points is None else points)
    if labels is not None and values is not None:
        raise ValueError("labels and values cannot be used together: give only one to colour the points")
    look = look_of(
        theme,
        cmap=cmap,
        color_key=color_key,
        color_key_cmap=color_key_cmap,
        background=background,
        width=width,
        height=height,
    )
    paint = paint_points(labels, values, len(xy), look)
    if subset_points is not None:
        chosen = row_subset(subset_points, len(xy))
        xy, paint = xy[chosen], paint.take(chosen)
    ax = bare_axes(ax, look)
    draw_points(ax, xy, paint, look, title=title, point_size=point_size, alpha=alpha)
    if legend if show_legend is None else show_legend:
        draw_key(ax, paint.key, look)
    return ax


def row_subset(subset_points: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Check which rows to draw."""
    chosen = np.asarray(subset_points)
    if chosen.dtype != np.bool_ or chosen.shape != (n,) or not chosen.any():
        raise ValueError(
            f"subset_points must hold {n} booleans, at least one of them true, got shape {chosen.shape} of "
            f"{chosen.dtype}"
        )
    return chosen


def draw_points(
    ax: Axes,
    xy: Floats,
    paint: Paint,
    look: Look,
    *,
    title: str | None = None,
    point_size: float | None = None,
    alpha: float | None = None,
) -> None:
    """Draw painted points and the title."""
    fit_window(ax, xy)
    if len(xy) > SHADED and point_size is None and alpha is None:
        raster = Raster(ax)
        raster.add_points(xy, paint.rgb)
        raster.draw(ax)
    else:
        _scatter(ax, xy, paint, point_size, alpha)
    if title:
        ax.set_title(title, color=look.theme.ink, fontsize=13, loc="left", pad=10)


def _scatter(ax: Axes, xy: Floats, paint: Paint, point_size: float | None, alpha: float | None) -> None:
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
class Paint:
    """The colour of each point, and the content of the legend."""

    rgb: Floats
    coloured: NDArray[np.bool_]
    key: Key = field(default_factory=Key)

    def take(self, chosen: NDArray[np.bool_]) -> Paint:
        """Return the colours of some points."""
        return Paint(self.rgb[chosen], self.coloured[chosen], self.key)


def paint_points(labels: ArrayLike | None, values: ArrayLike | None, n: int, look: Look) -> Paint:
    """Return the colours of ``n`` points: by category, by value, or one for all."""
    if labels is not None:
        return _paint_labels(np.asarray(labels), classes_of(labels, n), look)
    if values is not None:
        return _paint_values(*scaled_values(values, n), look)
    import matplotlib

    colour = rgb(OKABE_ITO[0]) if look.cmap is None else matplotlib.colormaps.get_cmap(look.cmap)(0.5)[:3]
    return Paint(np.tile(colour, (n, 1)), np.ones(n, dtype=bool))


def _paint_values(scale: Floats, limits: tuple[float, float] | None, look: Look) -> Paint:
    import matplotlib

    known = np.isfinite(scale)
    colours = np.tile(rgb(look.theme.faint), (len(scale), 1))
    colours[known] = matplotlib.colormaps.get_cmap(look.values_map)(scale[known])[:, :3]
    return Paint(colours, known, Key(limits=limits))


def _paint_labels(labels: NDArray[Any], classes: Classes, look: Look) -> Paint:
    faint = look.theme.faint
    colours = [*look.category_colours(labels, classes.names), faint]
    categories = list(zip(classes.names, colours, strict=False))
    if not classes.known.all():
        categories.append((UNLABELLED, faint))
    painted = np.array([rgb(colour) for colour in colours])[classes.codes]
    return Paint(painted, classes.known, Key(categories=tuple(categories)))
