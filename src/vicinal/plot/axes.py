"""Axes for maps: a bare window with equal scales, sizes that depend on the number of points, legend and colour bar."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.palette import VALUES_MAP, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

FIGURE_INCHES = (7.2, 6.0)
DPI = 200
LEGEND_ROWS = 24
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


def save(path: str | Path, ax: Axes, *, dpi: int = DPI) -> None:
    """Save the figure of ``ax``.

    Parameters
    ----------
    path : path
        File to write; its suffix determines the format.
    ax : matplotlib axes
        Axes returned by one of the functions of this package.
    dpi : int
        Resolution of raster formats.
    """
    # ax may be in a subfigure; the canvas belongs to the whole figure
    figure = ax.figure.canvas.figure
    figure.savefig(path, dpi=dpi, facecolor=ax.get_facecolor(), bbox_inches="tight", pad_inches=0.15)


def bare_axes(ax: Axes | None, look: Theme) -> Axes:
    """Remove ticks and spines from ``ax``, or from the axes of a new figure."""
    if ax is None:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots(figsize=FIGURE_INCHES, layout="constrained")
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


def draw_key(ax: Axes, key: Key, look: Theme) -> None:
    """Draw the legend or the colour bar beside the axes."""
    from matplotlib.lines import Line2D

    if key.limits is not None:
        _colour_bar(ax, key.limits, look)
    if not 1 <= len(key.categories) <= LEGEND_MOST:
        return
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=7, markeredgewidth=0, color=colour, label=name)
        for name, colour in key.categories
    ]
    ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        ncols=math.ceil(len(handles) / LEGEND_ROWS),
        frameon=False,
        labelcolor=look.ink,
        handletextpad=0.2,
        columnspacing=1.0,
        borderaxespad=0.0,
    )


def _colour_bar(ax: Axes, limits: tuple[float, float], look: Theme) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = ax.get_figure()
    assert figure is not None
    # inset axes do not shrink the map, whose size determined the point area
    inset = ax.inset_axes((1.03, 0.2, 0.025, 0.6))
    bar = figure.colorbar(ScalarMappable(Normalize(*limits), VALUES_MAP), cax=inset)
    bar.outline.set_visible(False)
    inset.tick_params(colors=look.ink, length=0, pad=5)
