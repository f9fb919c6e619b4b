"""Figures on dark pages: every figure has a second version, with light ink on a dark ground.

Figures of the gallery are drawn twice. Points keep their colors, which are readable on both grounds, except those of
the class that is gray (vicinal.plot.palette). Other pages show pictures from files and from cells; their pixels without
a color are inverted. Screenshots have a dark version beside them, or none.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from docutils import nodes
from numpy.typing import NDArray

from vicinal.plot.look import THEMES

LIGHT, DARK = THEMES["light"], THEMES["dark"]
# Ink and ground of a figure are recognized by their brightness, if they have hardly any color.
BRIGHT, DIM, COLORLESS = 0.85, 0.45, 0.12
# A pixel has a color if its channels differ by this much; with a smaller difference it is partly ink or ground.
COLORED = 0.3
SCREENSHOTS = ("page-", "notebook")


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the open figures in light and dark, and return the reStructuredText of both."""
    from matplotlib import pyplot as plt
    from sphinx_gallery.scrapers import matplotlib_scraper

    figures = [plt.figure(number) for number in plt.get_fignums()]
    paths = _Recorded(block_vars["image_path_iterator"])
    light = str(matplotlib_scraper(block, {**block_vars, "image_path_iterator": paths}, gallery_conf))
    dark = light
    for figure, path in zip(figures, paths.taken, strict=True):
        darken(figure)
        stem, suffix = path.rsplit(".", 1)
        figure.savefig(f"{stem}_dark.{suffix}", dpi=figure.dpi, facecolor=figure.get_facecolor())
        name = stem.rsplit("/", 1)[-1]
        dark = dark.replace(f"{name}.{suffix}", f"{name}_dark.{suffix}")
    if not figures:
        return light
    return _with_class(light, "only-light") + _with_class(dark, "only-dark")


class _Recorded:
    """An iterator that remembers what it gave."""

    def __init__(self, paths: Iterator[Any]) -> None:
        self.paths, self.taken = iter(paths), list[str]()

    def __iter__(self) -> _Recorded:
        return self

    def __next__(self) -> Any:
        path = next(self.paths)
        self.taken.append(str(path))
        return path


def _with_class(text: str, name: str) -> str:
    return text.replace(":class: sphx-glr-", f":class: {name} sphx-glr-")


def darken(figure: Any) -> None:
    """Give a figure a dark ground and light ink; everything that has a color keeps it."""
    from matplotlib.collections import PathCollection
    from matplotlib.colors import to_rgb
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Text

    figure.set_facecolor(DARK.background)
    for part in figure.findobj():
        if isinstance(part, Text):
            if _is_ink(part.get_color()):
                part.set_color(DARK.ink)
            for effect in part.get_path_effects():
                given = getattr(effect, "_gc", {})
                if _is_ground(given.get("foreground", DARK.background)):
                    given["foreground"] = DARK.background
        elif isinstance(part, Line2D) and _is_ink(part.get_color()):
            # a line without a line is the mark of a class in a legend
            part.set_color(DARK.neutral if part.get_linestyle() == "None" else DARK.ink)
        elif isinstance(part, PathCollection):
            colors = part.get_facecolor()
            colors[np.abs(colors[:, :3] - to_rgb(LIGHT.neutral)).max(axis=1) < 0.01, :3] = to_rgb(DARK.neutral)
            part.set_facecolor(colors)
        elif isinstance(part, Patch) and part is not figure.patch:
            if part.get_fill() and _is_ground(part.get_facecolor()):
                part.set_facecolor(DARK.background)
            if _is_ink(part.get_edgecolor()):
                part.set_edgecolor(DARK.ink)
    for ax in figure.axes:
        for tick in (*ax.xaxis.get_major_ticks(), *ax.yaxis.get_major_ticks()):
            for mark in (tick.tick1line, tick.tick2line):
                mark.set_color(DARK.ink)
            tick.gridline.set_color(DARK.faint)


def _gray(color: Any) -> float | None:
    """Return the brightness of a visible color without hue, or None."""
    from matplotlib.colors import to_rgba

    try:
        *parts, alpha = to_rgba(color)
    except ValueError:
        return None
    return sum(parts) / 3 if alpha > 0 and max(parts) - min(parts) < COLORLESS else None


def _is_ink(color: Any) -> bool:
    gray = _gray(color)
    return gray is not None and gray < DIM


def _is_ground(color: Any) -> bool:
    gray = _gray(color)
    return gray is not None and gray > BRIGHT


def inverted(pixels: NDArray[Any]) -> NDArray[Any]:
    """Return a picture, [height, width, 3 or 4] from 0 to 1, with light ink on a dark ground and the same colors."""
    from matplotlib.colors import to_rgb

    covered = pixels[..., 3:] if pixels.shape[-1] == 4 else 1.0
    shown = pixels[..., :3] * covered + (1.0 - covered)
    brightness = shown.mean(axis=-1, keepdims=True)
    without_color = brightness * to_rgb(DARK.background) + (1.0 - brightness) * to_rgb(DARK.ink)
    colored = np.clip(np.ptp(shown, axis=-1, keepdims=True) / COLORED, 0.0, 1.0)
    return np.clip(without_color * (1.0 - colored) + shown * colored, 0.0, 1.0)


def add_dark_figures(app: Any, doctree: nodes.document, name: str) -> None:
    """Give each light picture of a page a dark version, which the theme shows on dark pages."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir, image["uri"])
        if {"only-light", "only-dark"} & set(image["classes"]) or path.suffix != ".png" or not path.is_file():
            continue
        dark = _dark_version(path, Path(app.doctreedir, "dark_figures"))
        if dark is None:
            continue
        twin = image.deepcopy()
        twin["uri"], twin["candidates"] = str(dark), {"*": str(dark)}
        app.env.images.add_file(name, str(dark))
        image["classes"].append("only-light")
        twin["classes"].append("only-dark")
        image.parent.insert(image.parent.index(image) + 1, twin)


def _dark_version(path: Path, folder: Path) -> Path | None:
    """Return the dark version beside a picture, or write it; a dark picture and a screenshot have no other version."""
    from matplotlib import image

    beside = path.with_name(f"{path.stem}_dark.png")
    if beside.is_file():
        return beside
    if path.name.startswith(SCREENSHOTS):
        return None
    pixels = image.imread(path)
    if pixels.ndim != 3 or np.median(pixels[[0, -1], :, :3]) < BRIGHT:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    image.imsave(folder / f"{path.stem}_dark.png", inverted(pixels))
    return folder / f"{path.stem}_dark.png"


def setup(app: Any) -> dict[str, bool]:
    app.connect("doctree-resolved", add_dark_figures)
    # pictures are added while pages are written
    return {"parallel_read_safe": True, "parallel_write_safe": False}
