"""Scatter plots of one map or of several side by side, colored by categories or by values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import classes_of, coordinates, scaled_values
from vicinal.plot.look import (
    OKABE_ITO,
    UNLABELED,
    Look,
    bare_axes,
    draw_key,
    fit_window,
    look_of,
    opacity,
    panels,
    point_area,
    rgb,
)
from vicinal.plot.names import class_areas, cluster_areas, draw_names
from vicinal.runtime.inputs import as_array

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]

# Pixels along the longer side of the window, about those of a printed column.
SIDE = 900
DENSEST = 0.99
# Points along edges are counted in blocks of this size, which bounds the memory.
BLOCK = 4_000_000


class Raster:
    """Sums of weights and colors per pixel of a grid over the window of the axes."""

    def __init__(self, ax: Axes) -> None:
        (self.left, self.right), (self.bottom, self.top) = ax.get_xlim(), ax.get_ylim()
        self.step = max(self.right - self.left, self.top - self.bottom) / SIDE
        self.width = max(1, round((self.right - self.left) / self.step))
        self.height = max(1, round((self.top - self.bottom) / self.step))
        self.sums = np.zeros((4, self.height * self.width))

    def add_lines(self, start: Floats, end: Floats, weights: Floats, color: tuple[float, float, float]) -> None:
        """Add straight lines as points that are one pixel apart."""
        lengths = np.ceil(np.abs(end - start).max(axis=1) / self.step).astype(np.int64) + 1
        cuts = np.searchsorted(np.cumsum(lengths), np.arange(BLOCK, lengths.sum() + BLOCK, BLOCK))
        for some in np.split(np.arange(len(start)), cuts):
            line = np.repeat(some, lengths[some])
            first = np.repeat(np.cumsum(lengths[some]) - lengths[some], lengths[some])
            along = ((np.arange(len(line)) - first) / np.maximum(lengths[line] - 1, 1))[:, None]
            weight = weights[line][:, None]
            self.add_points(start[line] * (1 - along) + end[line] * along, weight * np.array([1.0, *color]))

    def add_points(self, xy: Floats, weighted: Floats) -> None:
        """Add points, each with its weight and its weighted color [n, 4]."""
        column = np.clip(((xy[:, 0] - self.left) / self.step).astype(np.int64), 0, self.width - 1)
        row = np.clip(((xy[:, 1] - self.bottom) / self.step).astype(np.int64), 0, self.height - 1)
        pixel = row * self.width + column
        for sums, values in zip(self.sums, weighted.T, strict=True):
            sums += np.bincount(pixel, weights=values, minlength=len(sums))

    def draw(self, ax: Axes, *, opaque: float = 1.0, faintest: float = 0.35, blur: float = 0.6) -> Any:
        """Draw the image; a pixel with a single mark has ``faintest`` times the opacity of a dense one."""
        from scipy.ndimage import gaussian_filter

        # single-pixel marks look like noise: spread the weight of a mark over its neighboring pixels
        total, *colors = (gaussian_filter(part.reshape(self.height, self.width), blur) for part in self.sums)
        marked = total > total.max() * 1e-6
        shade = np.zeros((self.height, self.width, 4))
        shade[marked, :3] = np.clip(np.stack(colors, axis=-1)[marked] / total[marked][:, None], 0.0, 1.0)
        least, most = np.quantile(total[marked], [0.05, DENSEST])
        depth = np.log1p(total[marked] / least) / np.log1p(max(most / least, 1.0))
        shade[marked, 3] = opaque * np.clip(faintest + (1.0 - faintest) * depth, 0.0, 1.0)
        # fade out the rim that only the blur has added around a mark
        shade[marked, 3] *= np.clip(total[marked] / least, 0.0, 1.0)
        extent = (self.left, self.left + self.width * self.step, self.bottom, self.bottom + self.height * self.step)
        return ax.imshow(shade, extent=extent, origin="lower", interpolation="antialiased", aspect="equal", zorder=1)


# Fixed, so that the same map gives the same picture.
SHUFFLE_SEED = 0
# Above this number points hide each other and are shaded by density instead.
SHADED = 50_000
# Maps of a comparison.
MOST_IN_A_ROW = 4


def points(
    umap_object: Any,
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
    names: bool | Sequence[Mapping[str, Any]] = False,
    cmap: Any = None,
    color_key: Any = None,
    color_key_cmap: Any = None,
    background: str | None = None,
    width: float | None = None,
    height: float | None = None,
) -> Axes:
    """Draw a map as points, colored by categories or by values.

    Rows without a label (None or NaN) or with a value that is not finite are drawn in gray below the others. More than
    50,000 points are shaded by density unless ``point_size`` or ``alpha`` is given.

    Parameters
    ----------
    umap_object : fitted model or array [rows, 2]
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
        Colors of the figure. umap-learn's are blue, red, green, fire, viridis, inferno, darkblue, darkred, darkgreen.
    title : str, optional
        Title of the axes.
    point_size : float, optional
        Area of a point in square typographic points, as in matplotlib; by default chosen from the number of points.
    alpha : float, optional
        Opacity of a point; by default chosen from the number of points.
    legend, show_legend : bool, default=True
        Whether to draw a legend or a color bar; the second is umap-learn's name.
    names : bool or sequence of mapping, default=False
        Names to write beside areas of the map: True for those of the labels, or named clusters, each with ``name``,
        ``place``, ``size`` and ``level``. They cover neither points nor each other; one without room is left out.
    cmap : str or color map, optional
        Color map of values.
    color_key : mapping or sequence of colors, optional
        Colors of categories: by label, or in the order of the labels.
    color_key_cmap : str or color map, optional
        Color map from which the colors of categories are taken.
    background : str, optional
        Color of the background; text is light on dark ones.
    width, height : int, optional
        Size of a new figure in pixels.
    """
    xy = coordinates(umap_object if points is None else points, name="umap_object" if points is None else "points")
    if labels is not None and values is not None:
        raise ValueError("labels and values cannot be used together: give only one to color the points")
    if names is True and labels is None:
        raise ValueError(
            "names=True needs labels, whose names it writes; names of clusters are "
            "names=vicinal.clusters(model, columns=table).spots()"
        )
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
        codes = None if paint.codes is None else paint.codes[chosen]
        xy, paint = xy[chosen], replace(paint, rgb=paint.rgb[chosen], colored=paint.colored[chosen], codes=codes)
    ax = bare_axes(ax, look)
    draw_points(ax, xy, paint, look, title=title, point_size=point_size, alpha=alpha)
    if legend if show_legend is None else show_legend:
        draw_key(ax, paint.categories, paint.limits, look)
    if names is True and paint.codes is not None:
        known = [name for name, _ in paint.categories if name != UNLABELED or paint.colored.all()]
        draw_names(ax, xy, class_areas(xy, paint.codes, known), look, paint.codes)
    elif not isinstance(names, bool):
        draw_names(ax, xy, cluster_areas(names), look)
    return ax


def row_subset(subset_points: ArrayLike, n: int) -> NDArray[np.bool_]:
    """Check which rows to draw."""
    chosen = as_array(subset_points, "subset_points")
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
        raster.add_points(xy, np.insert(paint.rgb, 0, 1.0, axis=1))
        raster.draw(ax)
    else:
        order = np.random.default_rng(SHUFFLE_SEED).permutation(len(xy))
        # gray points first, below the others; a stable sort keeps the shuffled order within both groups
        order = order[np.argsort(paint.colored[order], kind="stable")]
        area = point_area(ax, len(xy)) if point_size is None else point_size
        clear = opacity(len(xy)) if alpha is None else alpha
        x, y = xy[order].T
        ax.scatter(x, y, s=area, c=paint.rgb[order], alpha=clear, linewidths=0, rasterized=True)
    if title:
        ax.set_title(title, color=look.theme.ink, fontsize=13, loc="left", pad=10)


@dataclass(frozen=True)
class Paint:
    """The color of each point, and the legend: categories as (name, color), or the limits of a color scale."""

    rgb: Floats
    colored: NDArray[np.bool_]
    categories: Sequence[tuple[str, str]] = ()
    limits: tuple[float, float] | None = None
    codes: NDArray[np.int64] | None = None  # the number of the category of each point


def paint_points(labels: ArrayLike | None, values: ArrayLike | None, n: int, look: Look) -> Paint:
    """Return the colors of ``n`` points: by category, by value, or one for all."""
    import matplotlib

    faint = look.theme.faint
    if labels is not None:
        names, codes = classes_of(labels, n)
        known = codes < len(names)
        colors = [*look.category_colors(np.asarray(labels), names), faint]
        categories = list(zip(names if known.all() else [*names, UNLABELED], colors, strict=False))
        return Paint(np.array([rgb(color) for color in colors])[codes], known, categories, codes=codes)
    if values is not None:
        scale, limits = scaled_values(values, n)
        known = np.isfinite(scale)
        painted = np.tile(rgb(faint), (n, 1))
        painted[known] = matplotlib.colormaps.get_cmap(look.values_map)(scale[known])[:, :3]
        return Paint(painted, known, limits=limits)
    color = rgb(OKABE_ITO[0]) if look.cmap is None else matplotlib.colormaps.get_cmap(look.cmap)(0.5)[:3]
    return Paint(np.tile(color, (n, 1)), np.ones(n, dtype=bool))


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
    named = map_names(maps)
    if not named:
        raise ValueError("maps must contain at least one map")
    placed = {name: coordinates(one, name=name) for name, one in named.items()}
    first = next(iter(placed.values()))
    for name, xy in placed.items():
        if len(xy) != len(first):
            raise ValueError(f"maps must have the same rows; {name!r} has {len(xy)} rows, the first has {len(first)}")
    columns = min(MOST_IN_A_ROW, len(placed))
    axes = panels(len(placed), columns, look_of(theme))
    for ax, (name, xy) in zip(axes, placed.items(), strict=True):
        drawn = aligned(xy, first) if align else xy
        points(drawn, labels, values, ax=ax, theme=theme, title=name, legend=ax is axes[columns - 1])
    return axes


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
