"""Colours of maps: themes, and lists of colours for categories.

Colours of categories stay apart for colour-blind readers too: the eight of Okabe and Ito (2008), then one
after the other the colour furthest from all taken so far, in OKLab, as normal, protanopic and deuteranopic
eyes see it. The list depends on the theme alone: a category keeps its colour when others are added behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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


# The map of values: perceptually even, and readable in grey and by colour-blind eyes.
VALUES_MAP = "viridis"
UNLABELLED = "unlabelled"


def check_theme(theme: str) -> Theme:
    """The theme of that name, or an error that lists the names."""
    if theme not in THEMES:
        raise ValueError(f"theme must be one of {', '.join(THEMES)}, got {theme!r}")
    return THEMES[theme]


def palette(n: int, theme: str = "light") -> list[str]:
    """The first n colours for categories, as "#rrggbb"."""
    if n < 0:
        raise ValueError(f"n must not be negative, got {n}")
    look = THEMES[theme]
    base = [*OKABE_ITO, look.neutral]
    return base[:n] if n <= len(base) else list(_extended(n, theme))


def rgb(colour: str) -> tuple[float, float, float]:
    """The parts of "#rrggbb", from 0 to 1."""
    red, green, blue = (int(colour[a : a + 2], 16) / 255 for a in (1, 3, 5))
    return red, green, blue


def _hex(colour: Floats) -> str:
    return "#" + "".join(f"{round(255 * float(part)):02x}" for part in colour)


@lru_cache(maxsize=8)
def _extended(n: int, theme: str) -> tuple[str, ...]:
    """The base palette continued by the furthest of a grid of candidate colours, one at a time."""
    look = THEMES[theme]
    taken = np.array([rgb(colour) for colour in (*OKABE_ITO, look.neutral)])
    candidates = _candidates(look.lightness)
    # the ground counts as taken: no colour may fade into it
    seen = np.vstack([taken, rgb(look.background)])
    nearest = np.min([separation(candidates, colour) for colour in seen], axis=0)
    chosen = list(taken)
    while len(chosen) < n:
        best = int(nearest.argmax())
        chosen.append(candidates[best])
        nearest = np.minimum(nearest, separation(candidates, candidates[best]))
    return tuple(_hex(colour) for colour in chosen)


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


def separation(colours: Floats, other: Floats) -> Floats:
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
