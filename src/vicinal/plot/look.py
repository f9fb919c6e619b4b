"""Colours and size of a figure: a theme, changed by what the caller gives, with umap-learn's names for both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.annotations import label_names, unlabelled_rows
from vicinal.plot.palette import THEMES, VALUES_MAP, Theme, check_theme, palette

# umap-learn's themes: the theme that is nearest, the colour map of values, that of categories.
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
    """How a figure looks.

    Parameters
    ----------
    name : {"light", "dark"}
        The theme that the figure has, or is nearest to.
    background : str
        Colour behind the points.
    cmap : str or None
        Colour map of values, and of points without values; None means the default.
    color_key : mapping, sequence, str or None
        Colours of categories: by label, in the order of the labels, or the name of a colour map.
    inches : (float, float) or None
        Size of a figure that the caller has asked for.
    """

    name: str
    background: str
    cmap: Any = None
    color_key: Any = None
    inches: tuple[float, float] | None = None

    @property
    def theme(self) -> Theme:
        """The colours of text and of unlabelled points."""
        return THEMES[self.name]

    @property
    def values_map(self) -> Any:
        """The colour map of values."""
        return VALUES_MAP if self.cmap is None else self.cmap

    def category_colours(self, labels: NDArray[Any], names: Sequence[str]) -> list[str]:
        """Return a colour for each category, given the labels of all points."""
        from matplotlib.colors import to_hex

        key = self.color_key
        if key is None:
            return palette(len(names), self.name)
        if isinstance(key, str) or hasattr(key, "N"):  # the name of a colour map, or a colour map
            return [to_hex(colour) for colour in _colour_map(key, "color_key_cmap")(np.linspace(0, 1, len(names)))]
        if isinstance(key, Mapping):
            given = dict(zip(label_names(np.array(list(key))), key.values(), strict=True))
            missing = [name for name in names if name not in given]
            if missing:
                raise ValueError(f"color_key has no colour for the label {missing[0]!r}")
            return [to_hex(given[name]) for name in names]
        if len(key) < len(names):
            raise ValueError(f"color_key must have a colour for each of the {len(names)} labels, got {len(key)}")
        ordered = label_names(np.unique(labels[~unlabelled_rows(labels)])).tolist()
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
    """Check the arguments that all figures share; a theme of umap-learn replaces colours that are given, as there."""
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
        _colour_map(cmap, "cmap")
    key = color_key if color_key is not None else color_key_cmap
    return Look(name, background or check_theme(name).background, cmap, key, inches)


def _nearest_theme(background: str) -> str:
    from matplotlib.colors import to_rgb

    try:
        red, green, blue = to_rgb(background)
    except ValueError as error:
        raise ValueError(f"background must be a colour, got {background!r}") from error
    return "dark" if 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.5 else "light"


def _colour_map(name: Any, argument: str) -> Any:
    import matplotlib

    if not isinstance(name, str):
        return name
    if name not in matplotlib.colormaps:
        raise ValueError(f"{argument} must be the name of a colour map of matplotlib, got {name!r}")
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
