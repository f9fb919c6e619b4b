"""Colours of maps: themes, and palettes for categories.

The palette for categories is distinguishable for colour-blind readers: the eight colours of Okabe and Ito (2008), then
repeatedly the colour that is furthest from all colours chosen so far, measured in OKLab as the minimum over normal,
protanopic and deuteranopic vision. It depends on the theme only: a category keeps its colour when others are appended.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Theme:
    """Colours of a figure, and the range of OKLab lightness in which points are visible on its background."""

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


# Colour map of values: perceptually uniform, readable in greyscale and for colour-blind readers.
VALUES_MAP = "viridis"
# The same colour map at equal steps, for pages.
VALUE_STOPS = [
    f"#{stop}"
    for stop in re.findall(
        ".{6}",
        "440154470d6048186a482374472d7b4537814240863e49893b528b375b8d33638d2f6b8e2c728e297a8e26828e23898e21918c1f988b"
        "1fa08822a78528ae8032b67a3fbc734ec36b5ec96270cf5784d44b98d83eaddc30c2df23d8e219ece51bfde725",
    )
]
UNLABELLED = "unlabelled"
MISSING = "missing"


def check_theme(theme: str) -> Theme:
    """Return the theme with this name."""
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, got {theme!r}")
    return THEMES[theme]


def palette(n: int, theme: str = "light") -> list[str]:
    """Return the first ``n`` colours for categories, as "#rrggbb"."""
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    look = THEMES[theme]
    base = [*OKABE_ITO, look.neutral]
    return base[:n] if n <= len(base) else list(_extended(n, theme))


def rgb(colour: str) -> tuple[float, float, float]:
    """Return the components of "#rrggbb" as numbers from 0 to 1."""
    red, green, blue = (int(colour[a : a + 2], 16) / 255 for a in (1, 3, 5))
    return red, green, blue


def _hex(colour: Floats) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)


@lru_cache(maxsize=8)
def _extended(n: int, theme: str) -> tuple[str, ...]:
    """Extend the base palette, one colour at a time, by the most distant of a grid of candidates."""
    look = THEMES[theme]
    taken = np.array([rgb(colour) for colour in (*OKABE_ITO, look.neutral)])
    candidates = _candidates(look.lightness)
    # the background counts as chosen, so that no colour blends into it
    seen = np.vstack([taken, rgb(look.background)])
    nearest = np.min([separation(candidates, colour) for colour in seen], axis=0)
    chosen = list(taken)
    while len(chosen) < n:
        best = int(nearest.argmax())
        chosen.append(candidates[best])
        nearest = np.minimum(nearest, separation(candidates, candidates[best]))
    return tuple(_hex(colour) for colour in chosen)


def _candidates(lightness: tuple[float, float]) -> Floats:
    """Return the colours on a grid of lightness, chroma and hue in OKLCH that sRGB can represent."""
    grid = np.meshgrid(
        np.linspace(*lightness, 9), np.array([0.09, 0.13, 0.17, 0.22]), np.deg2rad(np.arange(0, 360, 10))
    )
    L, C, h = (axis.ravel() for axis in grid)
    lms = np.stack([L, C * np.cos(h), C * np.sin(h)], axis=1) @ np.linalg.inv(_LMS_TO_OKLAB).T
    linear = lms**3 @ np.linalg.inv(_LINEAR_TO_LMS).T
    linear = linear[((linear >= 0) & (linear <= 1)).all(axis=1)]
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def separation(colours: Floats, other: Floats) -> Floats:
    """Return the minimum OKLab distance to another colour over all types of colour vision."""
    distances = [np.linalg.norm(_oklab(colours, vision) - _oklab(other, vision), axis=-1) for vision in _VISION]
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
