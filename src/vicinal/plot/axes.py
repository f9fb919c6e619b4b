"""Axes for maps: a bare window with equal scales, sizes that depend on the number of points, legend and colour bar."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.look import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

FIGURE_INCHES = (7.2, 6.0)
DPI = 200
LEGEND_ROWS = 24
# Height of an entry, in inches.
LEGEND_LINE = 0.225
# Marks a figure that this package has made.
OWN = "vicinal"
# Between map and legend, in inches.
LEGEND_GAP = 0.15
# Longer names are cut in a legend, and an entry takes at most this share of the width of given axes.
LONGEST_NAME = 28
# Above this number of categories, neighboring colors can no longer be distinguished.
LEGEND_MOST = 96
# Fraction of the axes that the points would cover if none overlapped: shows shapes without filling the axes.
INK = 0.13
# Point areas in square typographic points (1/72 inch).
SMALLEST, LARGEST = 0.6, 34.0


@dataclass(frozen=True)
class Key:
    """Content of the legend: categories as (name, colour), or the limits of a colour scale."""

    categories: tuple[tuple[str, str], ...] = ()
    limits: tuple[float, float] | None = None


def save(path: str | Path, ax: Axes | Iterable[Axes], *, dpi: int = DPI) -> None:
    """Save the figure of ``ax``.

    Parameters
    ----------
    path : path
        File to write; its suffix determines the format.
    ax : matplotlib axes
        Axes returned by one of the functions of this package, or the list of axes that ``compare`` returns.
    dpi : int
        Resolution of raster formats.
    """
    # ax may be in a subfigure; the canvas belongs to the whole figure
    first = next(iter(ax), None) if isinstance(ax, Iterable) else ax
    if first is None:
        raise ValueError("ax must be axes, or a list with at least one")
    figure = first.figure.canvas.figure
    figure.savefig(path, dpi=dpi, facecolor=first.get_facecolor(), bbox_inches="tight", pad_inches=0.15)


def bare_axes(ax: Axes | None, look: Look) -> Axes:
    """Remove ticks and spines from ``ax``, or from the axes of a new figure."""
    if ax is None:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots(figsize=look.inches or FIGURE_INCHES, layout="constrained")
        if look.inches is None:  # a size that the caller has asked for stays
            figure.set_gid(OWN)
        figure.set_facecolor(look.background)
    ax.set_facecolor(look.background)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def fit_window(ax: Axes, xy: Floats) -> None:
    """Set equal scales, the same margin on all sides, and an aspect ratio of at most two to one."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    longest = float((high - low).max()) or 1.0
    half = np.maximum(high - low, 0.5 * longest) / 2 + 0.03 * longest
    centre = (low + high) / 2
    ax.set_xlim(centre[0] - half[0], centre[0] + half[0])
    ax.set_ylim(centre[1] - half[1], centre[1] + half[1])
    ax.set_aspect("equal", adjustable="box")


def point_area(ax: Axes, n: int) -> float:
    """Return the area of each of ``n`` points."""
    figure = ax.get_figure()
    assert figure is not None
    window = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    side = 72.0 * min(window.width, window.height)
    return float(np.clip(INK * side * side / n, SMALLEST, LARGEST))


def opacity(n: int) -> float:
    """Return 0.9 for up to 1,000 points and 0.12 less for each factor of ten above."""
    return float(np.clip(0.9 - 0.12 * math.log10(max(n, 1) / 1000.0), 0.35, 0.9))


def draw_key(ax: Axes, key: Key, look: Look) -> None:
    """Draw the legend or the colour bar beside the axes."""
    from matplotlib.lines import Line2D

    if key.limits is not None:
        _colour_bar(ax, key.limits, look)
    if not 1 <= len(key.categories) <= LEGEND_MOST:
        return
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=7, markeredgewidth=0, color=colour, label=_cut(name))
        for name, colour in key.categories
    ]
    legend = ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        ncols=math.ceil(len(handles) / _legend_rows(ax)),
        frameon=False,
        labelcolor=look.theme.ink,
        handletextpad=0.2,
        columnspacing=1.0,
        borderaxespad=0.0,
    )
    _make_room(ax, legend)


def _legend_rows(ax: Axes) -> int:
    """Return how many entries fit beside the axes, so that the legend is not higher than they are."""
    figure = ax.get_figure()
    assert figure is not None
    height = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted()).height
    return int(np.clip(height / LEGEND_LINE, 6, LEGEND_ROWS))


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _make_room(ax: Axes, legend: Any) -> None:
    """Widen a figure of this package by its legend, so that the maps keep their size; leave a user's figure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    if figure.get_gid() != OWN or not hasattr(figure.canvas, "get_renderer"):
        return
    width = legend.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi
    figure.set_size_inches(figure.get_figwidth() + width + LEGEND_GAP, figure.get_figheight())


def _colour_bar(ax: Axes, limits: tuple[float, float], look: Look) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = ax.get_figure()
    assert figure is not None
    # inset axes do not shrink the map, whose size determined the point area
    inset = ax.inset_axes((1.03, 0.2, 0.025, 0.6))
    bar = figure.colorbar(ScalarMappable(Normalize(*limits), look.values_map), cax=inset)
    bar.outline.set_visible(False)
    inset.tick_params(colors=look.theme.ink, length=0, pad=5)
