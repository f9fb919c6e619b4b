"""Look of a figure: theme, colors, size, axes and legend, also by umap-learn's names."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.atomic import StagedFiles
from vicinal.plot.annotations import label_names, unlabeled_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Theme:
    """Colors of a figure, and the range of OKLab lightness in which points are visible on its background."""

    background: str
    ink: str
    faint: str
    lightness: tuple[float, float]
    # replaces Okabe and Ito's black, which is invisible on a dark background
    neutral: str


THEMES = {
    "light": Theme("#ffffff", "#22262b", "#c9ced4", (0.38, 0.78), "#4d4d4d"),
    "dark": Theme("#14171c", "#e6e9ed", "#4a515b", (0.55, 0.90), "#d9d9d9"),
}

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442")


# Color map of values: perceptually uniform, readable in grayscale and for color-blind readers.
VALUES_MAP = "viridis"
# The same color map at equal steps, for pages.
VALUE_STOPS = [
    f"#{stop}"
    for stop in re.findall(
        ".{6}",
        "440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e23898e21918c1f988b"
        "1fa08822a78528ae8032b67a3fbc734ec36b5ec96270cf5784d44b98d83eaddc30c2df23d8e219ece51bfde725",
    )
]
UNLABELED = "unlabeled"


def palette(n: int, theme: str = "light") -> list[str]:
    """Return the first ``n`` colors for categories, as "#rrggbb"."""
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    look = THEMES[theme]
    base = [*OKABE_ITO, look.neutral]
    return base[:n] if n <= len(base) else list(_extended(n, theme))


def rgb(color: str) -> tuple[float, float, float]:
    """Return the components of "#rrggbb" as numbers from 0 to 1."""
    red, green, blue = (int(color[a : a + 2], 16) / 255 for a in (1, 3, 5))
    return red, green, blue


def _hex(color: Floats) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in color)


@lru_cache(maxsize=8)
def _extended(n: int, theme: str) -> tuple[str, ...]:
    """Extend the base palette, one color at a time, by the most distant of a grid of candidates."""
    look = THEMES[theme]
    taken = np.array([rgb(color) for color in (*OKABE_ITO, look.neutral)])
    candidates = _candidates(look.lightness)
    # the background counts as chosen, so that no color blends into it
    seen = np.vstack([taken, rgb(look.background)])
    nearest = np.min([separation(candidates, color) for color in seen], axis=0)
    chosen = list(taken)
    while len(chosen) < n:
        best = int(nearest.argmax())
        chosen.append(candidates[best])
        nearest = np.minimum(nearest, separation(candidates, candidates[best]))
    return tuple(_hex(color) for color in chosen)


def _candidates(lightness: tuple[float, float]) -> Floats:
    """Return the colors on a grid of lightness, chroma and hue in OKLCH that sRGB can represent."""
    grid = np.meshgrid(
        np.linspace(*lightness, 9), np.array([0.09, 0.13, 0.17, 0.22]), np.deg2rad(np.arange(0, 360, 10))
    )
    L, C, h = (axis.ravel() for axis in grid)
    lms = np.stack([L, C * np.cos(h), C * np.sin(h)], axis=1) @ np.linalg.inv(_LMS_TO_OKLAB).T
    linear = lms**3 @ np.linalg.inv(_LINEAR_TO_LMS).T
    linear = linear[((linear >= 0) & (linear <= 1)).all(axis=1)]
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def separation(colors: Floats, other: Floats) -> Floats:
    """Return the minimum OKLab distance to another color over all types of color vision."""
    distances = [np.linalg.norm(_oklab(colors, vision) - _oklab(other, vision), axis=-1) for vision in _VISION]
    return np.asarray(np.min(distances, axis=0))


def _oklab(srgb: Floats, vision: Floats) -> Floats:
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ vision.T, 0.0, 1.0)
    return np.asarray(np.cbrt(seen @ _LINEAR_TO_LMS.T) @ _LMS_TO_OKLAB.T)


# OKLab: Ottosson 2020, https://bottosson.github.io/posts/oklab/
_LINEAR_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LMS_TO_OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)
# Normal vision, protanopia and deuteranopia as matrices on linear RGB: Machado, Oliveira and Fernandes 2009, table 1.
_VISION = (
    np.eye(3),
    np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
)


# umap-learn's themes: the theme that is nearest, the color map of values, that of categories.
UMAP_THEMES = {
    "fire": ("dark", "hot", "rainbow"),
    "viridis": ("dark", "viridis", "Spectral"),
    "inferno": ("dark", "inferno", "Spectral"),
    "blue": ("light", "Blues", "tab20"),
    "red": ("light", "Reds", "tab20b"),
    "green": ("light", "Greens", "tab20c"),
    "darkblue": ("dark", "Blues_r", "rainbow"),
    "darkred": ("dark", "Reds_r", "rainbow"),
    "darkgreen": ("dark", "Greens_r", "rainbow"),
}
# umap-learn's size of a side that is not given, in pixels.
SIDE_PIXELS = 800


@dataclass(frozen=True)
class Look:
    """How a figure looks; ``name`` is that of the theme that it has, or is nearest to."""

    name: str
    background: str
    cmap: Any = None  # of values, and of points without values
    color_key: Any = None  # of categories: by label, in the order of the labels, or a color map
    inches: tuple[float, float] | None = None  # if the caller has asked for a size

    @property
    def theme(self) -> Theme:
        """The colors of text and of unlabeled points."""
        return THEMES[self.name]

    @property
    def values_map(self) -> Any:
        """The color map of values."""
        return VALUES_MAP if self.cmap is None else self.cmap

    def category_colors(self, labels: NDArray[Any], names: Sequence[str]) -> list[str]:
        """Return a color for each category, given the labels of all points."""
        from matplotlib.colors import to_hex

        key = self.color_key
        if key is None:
            return palette(len(names), self.name)
        if isinstance(key, str) or hasattr(key, "N"):  # the name of a color map, or a color map
            return [to_hex(color) for color in color_map(key, "color_key_cmap")(np.linspace(0, 1, len(names)))]
        if isinstance(key, Mapping):
            given = dict(zip(label_names(np.array(list(key))), key.values(), strict=True))
            missing = [name for name in names if name not in given]
            if missing:
                raise ValueError(f"color_key has no color for the label {missing[0]!r}")
            return [to_hex(given[name]) for name in names]
        if len(key) < len(names):
            raise ValueError(f"color_key must have a color for each of the {len(names)} labels, got {len(key)}")
        ordered = label_names(np.unique(labels[~unlabeled_rows(labels)])).tolist()
        return [to_hex(key[ordered.index(name)]) for name in names]


def look_of(
    theme: str | None = "light",
    *,
    cmap: Any = None,
    color_key: Any = None,
    color_key_cmap: Any = None,
    background: str | None = None,
    width: float | None = None,
    height: float | None = None,
) -> Look:
    """Check the arguments that all figures share; a theme of umap-learn replaces colors that are given, as there."""
    inches = _inches(width, height)
    if theme in UMAP_THEMES:
        name, values_map, categories = UMAP_THEMES[str(theme)]
        black = "#000000" if name == "dark" else "#ffffff"
        return Look(name, black, values_map, categories, inches)
    name = "light" if theme is None else theme
    if name not in THEMES:
        raise ValueError(f"theme must be one of {', '.join((*THEMES, *UMAP_THEMES))}, got {theme!r}")
    if background is not None:
        name = _nearest_theme(background)
    if cmap is not None:
        color_map(cmap, "cmap")
    key = color_key if color_key is not None else color_key_cmap
    return Look(name, background or THEMES[name].background, cmap, key, inches)


def _nearest_theme(background: str) -> str:
    from matplotlib.colors import to_rgb

    try:
        red, green, blue = to_rgb(background)
    except ValueError as error:
        raise ValueError(f"background must be a color, got {background!r}") from error
    return "dark" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5 else "light"


def color_map(name: Any, argument: str) -> Any:
    """Return a color map of matplotlib by its name."""
    import matplotlib

    if not isinstance(name, str):
        return name
    if name not in matplotlib.colormaps:
        raise ValueError(f"{argument} must be the name of a color map of matplotlib, got {name!r}")
    return matplotlib.colormaps[name]


def _inches(width: float | None, height: float | None) -> tuple[float, float] | None:
    if width is None and height is None:
        return None
    import matplotlib

    sides = [SIDE_PIXELS if side is None else side for side in (width, height)]
    for argument, side in zip(("width", "height"), sides, strict=True):
        if isinstance(side, bool) or not isinstance(side, int | float | np.integer | np.floating) or not side > 0:
            raise ValueError(f"{argument} must be a number of pixels above 0, got {side!r}")
    dpi = float(matplotlib.rcParams["figure.dpi"])
    return float(sides[0]) / dpi, float(sides[1]) / dpi


FIGURE_INCHES, PANEL_INCHES = (7.2, 6.0), 3.6
DPI = 200
# Margin around a saved figure.
PAD_INCHES = 0.15
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


def save(path: str | Path, ax: Axes | Iterable[Axes], *, dpi: int = DPI) -> None:
    """Save the figure of ``ax``, completely or not at all.

    Parameters
    ----------
    path : path
        File to write; its suffix determines the format. A file of this name is replaced.
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
    final = Path(path)
    if not final.suffix:
        final = final.with_name(f"{final.name}.{figure.canvas.get_default_filetype()}")
    with StagedFiles() as staged:
        look: dict[str, Any] = {"dpi": dpi, "facecolor": first.get_facecolor(), "pad_inches": PAD_INCHES}
        figure.savefig(staged.path_for(final), bbox_inches="tight", **look)


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


def panels(n: int, columns: int, look: Look) -> list[Axes]:
    """Return the axes of ``n`` panels of a new figure."""
    from matplotlib import pyplot as plt

    rows = math.ceil(n / columns)
    size = (PANEL_INCHES * columns, PANEL_INCHES * rows * 1.06)
    figure, grid = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    figure.set_facecolor(look.background)
    figure.set_gid(OWN)
    for spare in grid.flat[n:]:
        spare.remove()
    return list(grid.flat[:n])


def fit_window(ax: Axes, xy: Floats) -> None:
    """Set equal scales, the same margin on all sides, and an aspect ratio of at most two to one."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    longest = float((high - low).max()) or 1.0
    half = np.maximum(high - low, 0.5 * longest) / 2 + 0.03 * longest
    center = (low + high) / 2
    ax.set_xlim(center[0] - half[0], center[0] + half[0])
    ax.set_ylim(center[1] - half[1], center[1] + half[1])
    ax.set_aspect("equal", adjustable="box")


def _inside_inches(ax: Axes) -> tuple[float, float]:
    """Return width and height of the axes."""
    figure = ax.get_figure()
    assert figure is not None
    window = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    return window.width, window.height


def point_area(ax: Axes, n: int) -> float:
    """Return the area of each of ``n`` points."""
    side = 72.0 * min(_inside_inches(ax))
    return float(np.clip(INK * side * side / n, SMALLEST, LARGEST))


def opacity(n: int) -> float:
    """Return 0.9 for up to 1,000 points and 0.12 less for each factor of ten above."""
    return float(np.clip(0.9 - 0.12 * math.log10(max(n, 1) / 1000.0), 0.35, 0.9))


def draw_key(ax: Axes, categories: Sequence[tuple[str, str]], limits: tuple[float, float] | None, look: Look) -> None:
    """Draw the legend or the color bar beside the axes."""
    from matplotlib.lines import Line2D

    if limits is not None:
        _color_bar(ax, limits, look)
    if not 1 <= len(categories) <= LEGEND_MOST:
        return
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=7, markeredgewidth=0, color=color, label=short_name(name))
        for name, color in categories
    ]
    # as many entries per column as fit without making the legend higher than the axes
    rows = int(np.clip(_inside_inches(ax)[1] / LEGEND_LINE, 6, LEGEND_ROWS))
    legend = ax.legend(
        handles=handles,
        loc="center left",
        bbox_to_anchor=(1.02, 0.5),
        ncols=math.ceil(len(handles) / rows),
        frameon=False,
        labelcolor=look.theme.ink,
        handletextpad=0.2,
        columnspacing=1.0,
        borderaxespad=0.0,
    )
    _make_room(ax, legend)


def short_name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _make_room(ax: Axes, legend: Any) -> None:
    """Widen a figure of this package by its legend, so that the maps keep their size; leave a user's figure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    if figure.get_gid() != OWN or not hasattr(figure.canvas, "get_renderer"):
        return
    width = legend.get_window_extent(figure.canvas.get_renderer()).width / figure.dpi
    figure.set_size_inches(figure.get_figwidth() + width + LEGEND_GAP, figure.get_figheight())


def _color_bar(ax: Axes, limits: tuple[float, float], look: Look) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure = ax.get_figure()
    assert figure is not None
    # inset axes do not shrink the map, whose size determined the point area
    inset = ax.inset_axes((1.03, 0.2, 0.025, 0.6))
    bar = figure.colorbar(ScalarMappable(Normalize(*limits), look.values_map), cax=inset)
    bar.outline.set_visible(False)
    inset.tick_params(colors=look.theme.ink, length=0, pad=5)
