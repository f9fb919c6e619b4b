"""Static pictures of maps, meant to be published as they come out.

Colours of categories stay apart for colour-blind readers too: the eight of Okabe and Ito (2008), then one
after the other the colour furthest from all taken so far, in OKLab, as normal, protanopic and deuteranopic
eyes see it. The list depends on the theme alone: a category keeps its colour when others are added behind it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

FIGURE_INCHES = (7.2, 6.0)
DPI = 200
LEGEND_ROWS = 24
# Past this many categories neither a legend nor a colour can be told from the next.
LEGEND_MOST = 96
# The share of the axes the points would cover if none overlapped: enough to show shape, not a blot.
INK = 0.13
# Areas in square typographic points (1/72 inch).
SMALLEST, LARGEST = 0.6, 34.0
# Points are drawn in this order on every run, so that a picture can be compared with yesterday's.
SHUFFLE_SEED = 0


@dataclass(frozen=True)
class Theme:
    """The colours around the points, and the lightness (OKLab) that points keep to so as to show on them."""

    background: str
    ink: str
    faint: str
    lightness: tuple[float, float]
    # Okabe and Ito's black does not show on a dark ground; its place is taken by a light grey
    neutral: str


THEMES = {
    "light": Theme("#ffffff", "#22262b", "#c9ced4", (0.38, 0.78), "#4d4d4d"),
    "dark": Theme("#14171c", "#e6e9ed", "#4a515b", (0.55, 0.90), "#d9d9d9"),
}

OKABE_ITO = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#f0e442")


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
    """Draw a map as points, coloured by categories (`labels`) or by numbers (`values`).

    `embedding` is an array of shape (n, 2) or a fitted model. Rows whose label is None or NaN, or whose value
    is not finite, are drawn in grey below the others. `point_size` is an area in square typographic points,
    as in matplotlib; it and `alpha` follow from n unless given.
    """
    xy = _coordinates(embedding)
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, got {theme!r}")
    if labels is not None and values is not None:
        raise ValueError("labels and values cannot both colour the points; give one")
    look = THEMES[theme]
    ax = _bare_axes(ax, look)
    paint = _paint(labels, values, len(xy), theme)
    order = np.random.default_rng(SHUFFLE_SEED).permutation(len(xy))
    # grey goes underneath: a stable sort by "has a colour" keeps the shuffle within both groups
    order = order[np.argsort(paint.coloured[order], kind="stable")]
    ax.scatter(
        xy[order, 0],
        xy[order, 1],
        s=_size(ax, len(xy)) if point_size is None else point_size,
        c=paint.rgb[order],
        alpha=_opacity(len(xy)) if alpha is None else alpha,
        linewidths=0,
        rasterized=True,
    )
    _frame(ax, xy)
    if title:
        ax.set_title(title, color=look.ink, fontsize=13, loc="left", pad=10)
    if legend:
        _legend(ax, paint, look)
    return ax


def save(path: str | Path, ax: Axes, *, dpi: int = DPI) -> None:
    """Write the figure of `ax` on its own background, trimmed; the suffix of `path` chooses the format."""
    # the canvas belongs to the whole figure even where ax is in a part of one
    figure = ax.figure.canvas.figure
    figure.savefig(path, dpi=dpi, facecolor=ax.get_facecolor(), bbox_inches="tight", pad_inches=0.15)


def palette(n: int, theme: str = "light") -> list[str]:
    """The first n colours for categories, as "#rrggbb"."""
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    look = THEMES[theme]
    base = [*OKABE_ITO, look.neutral]
    return base[:n] if n <= len(base) else list(_extended(n, theme))


@dataclass(frozen=True)
class _Paint:
    """The colour of every point, and what the key beside the map has to explain."""

    rgb: Floats
    coloured: NDArray[np.bool_]
    categories: tuple[tuple[str, str], ...] = ()
    limits: tuple[float, float] | None = None


def _paint(labels: ArrayLike | None, values: ArrayLike | None, n: int, theme: str) -> _Paint:
    from matplotlib.colors import to_rgb

    look = THEMES[theme]
    if labels is None and values is None:
        return _Paint(np.tile(to_rgb(OKABE_ITO[0]), (n, 1)), np.ones(n, dtype=bool))
    if values is not None:
        return _paint_values(np.asarray(values), n, to_rgb(look.faint))
    return _paint_labels(np.asarray(labels), n, theme)


def _paint_values(values: NDArray[Any], n: int, faint: tuple[float, float, float]) -> _Paint:
    import matplotlib

    if values.shape != (n,) or values.dtype.kind not in "fiub":
        raise ValueError(f"values must be {n} numbers, got shape {values.shape} and dtype {values.dtype}")
    numbers = values.astype(np.float64)
    known = np.isfinite(numbers)
    low, high = (float(numbers[known].min()), float(numbers[known].max())) if known.any() else (0.0, 0.0)
    rgb = np.tile(faint, (n, 1))
    shade = (numbers[known] - low) / (high - low) if high > low else np.full(int(known.sum()), 0.5)
    rgb[known] = matplotlib.colormaps["viridis"](shade)[:, :3]
    return _Paint(rgb, known, limits=(low, high) if known.any() else None)


def _paint_labels(labels: NDArray[Any], n: int, theme: str) -> _Paint:
    from matplotlib.colors import to_rgb

    from vicinal.quality import missing_labels

    if labels.shape != (n,):
        raise ValueError(f"labels must be one-dimensional with {n} entries, got shape {labels.shape}")
    known = ~missing_labels(labels)
    named = labels[known]
    names, codes = np.unique(named.astype(str) if named.dtype.kind == "O" else named, return_inverse=True)
    colours = palette(len(names), theme)
    faint = THEMES[theme].faint
    rgb = np.tile(to_rgb(faint), (n, 1))
    if len(names):
        rgb[known] = np.array([to_rgb(colour) for colour in colours])[codes]
    categories = [(str(name), colour) for name, colour in zip(names.tolist(), colours, strict=True)]
    if not known.all():
        categories.append(("unlabelled", faint))
    return _Paint(rgb, known, categories=tuple(categories))


def _coordinates(embedding: Any) -> Floats:
    array = np.asarray(getattr(embedding, "embedding_", embedding))
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0 or array.dtype.kind not in "fiub":
        raise ValueError(
            f"embedding must be numbers of shape (n, 2), got {array.dtype} of shape {array.shape}"
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise ValueError(f"embedding must be finite; row {bad[0]} holds NaN or infinity")
    return array.astype(np.float64)


def _bare_axes(ax: Axes | None, look: Theme) -> Axes:
    if ax is None:
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=FIGURE_INCHES, layout="constrained")
        figure.set_facecolor(look.background)
    ax.set_facecolor(look.background)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax


def _frame(ax: Axes, xy: Floats) -> None:
    """Equal scales on both axes, the same margin all around, and a window no narrower than one to two."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    longest = float((high - low).max()) or 1.0
    half = np.maximum(high - low, 0.5 * longest) / 2 + 0.03 * longest
    centre = (low + high) / 2
    ax.set_xlim(centre[0] - half[0], centre[0] + half[0])
    ax.set_ylim(centre[1] - half[1], centre[1] + half[1])
    ax.set_aspect("equal", adjustable="box")


def _size(ax: Axes, n: int) -> float:
    figure = ax.get_figure()
    assert figure is not None
    window = ax.get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    side = 72.0 * min(window.width, window.height)
    return float(np.clip(INK * side * side / n, SMALLEST, LARGEST))


def _opacity(n: int) -> float:
    """0.9 up to a thousand points, then 0.12 less for each tenfold."""
    return float(np.clip(0.9 - 0.12 * math.log10(max(n, 1) / 1000.0), 0.35, 0.9))


def _legend(ax: Axes, paint: _Paint, look: Theme) -> None:
    from matplotlib.lines import Line2D

    if paint.limits is not None:
        _colour_bar(ax, paint.limits, look)
    if not 1 <= len(paint.categories) <= LEGEND_MOST:
        return
    handles = [
        Line2D([], [], linestyle="", marker="o", markersize=7, markeredgewidth=0, color=colour, label=name)
        for name, colour in paint.categories
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
    # inset axes, so that the map keeps the size its points were chosen for
    inset = ax.inset_axes((1.03, 0.2, 0.025, 0.6))
    bar = figure.colorbar(ScalarMappable(Normalize(*limits), "viridis"), cax=inset)
    bar.outline.set_visible(False)
    inset.tick_params(colors=look.ink, length=0, pad=5)


@lru_cache(maxsize=8)
def _extended(n: int, theme: str) -> tuple[str, ...]:
    """The base palette continued by the furthest of a grid of candidate colours, one at a time."""
    from matplotlib.colors import to_hex, to_rgb

    look = THEMES[theme]
    taken = np.array([to_rgb(colour) for colour in (*OKABE_ITO, look.neutral)])
    candidates = _candidates(look.lightness)
    # the ground counts as taken: no colour may fade into it
    seen = np.vstack([taken, to_rgb(look.background)])
    nearest = np.min([_separation(candidates, colour) for colour in seen], axis=0)
    chosen = list(taken)
    while len(chosen) < n:
        best = int(nearest.argmax())
        chosen.append(candidates[best])
        nearest = np.minimum(nearest, _separation(candidates, candidates[best]))
    return tuple(to_hex(colour) for colour in chosen)


def _candidates(lightness: tuple[float, float]) -> Floats:
    """Colours on a grid of lightness, chroma and hue in OKLCH that sRGB can show."""
    grid = np.meshgrid(
        np.linspace(*lightness, 9), np.array([0.09, 0.13, 0.17, 0.22]), np.deg2rad(np.arange(0, 360, 10))
    )
    L, C, h = (axis.ravel() for axis in grid)
    lms = np.stack([L, C * np.cos(h), C * np.sin(h)], axis=1) @ np.linalg.inv(_LMS_TO_OKLAB).T
    linear = lms**3 @ np.linalg.inv(_LINEAR_TO_LMS).T
    linear = linear[((linear >= 0) & (linear <= 1)).all(axis=1)]
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _separation(colours: Floats, other: Floats) -> Floats:
    """The least OKLab distance between colours and another, over the kinds of eyes."""
    distances = [np.linalg.norm(_oklab(colours, eye) - _oklab(other, eye), axis=-1) for eye in _EYES]
    return np.asarray(np.min(distances, axis=0))


def _oklab(srgb: Floats, eye: Floats) -> Floats:
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    seen = np.clip(linear @ eye.T, 0.0, 1.0)
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
# Normal sight, protanopia and deuteranopia on linear RGB: Machado, Oliveira and Fernandes 2009, table 1.
_EYES = (
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
