"""Figures on dark pages: light ink on a dark ground, and points that keep their colors."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from vicinal import plot
from vicinal.plot.look import THEMES

EXTENSION = Path(__file__).parents[2] / "docs" / "extensions" / "dark_figures.py"


@pytest.fixture(scope="module")
def dark_figures() -> Any:
    return SimpleNamespace(**runpy.run_path(str(EXTENSION)))


def test_ink_is_light_and_points_keep_their_colors(dark_figures: Any) -> None:
    labels = np.arange(200) % 8
    places = np.random.default_rng(0).normal(size=(200, 2))
    figure = Figure()
    ax = plot.points(places, labels, ax=figure.add_subplot(), title="a map")
    dark_figures.darken(figure)
    assert to_hex(figure.get_facecolor()) == to_hex(ax.get_facecolor()) == THEMES["dark"].background
    (title,) = [text for text in figure.findobj(Text) if text.get_text() == "a map"]
    assert to_hex(title.get_color()) == THEMES["dark"].ink
    legend = ax.get_legend()
    assert {to_hex(text.get_color()) for text in legend.get_texts()} == {THEMES["dark"].ink}
    wanted = set(plot.palette(8, "dark"))
    assert {to_hex(color) for color in ax.collections[0].get_facecolor()} == wanted
    assert {to_hex(line.get_color()) for line in legend.get_lines()} == wanted


def test_pictures_without_a_figure_are_inverted_except_their_colors(dark_figures: Any) -> None:
    ground, ink, points = (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), to_rgb(plot.palette(8)[0])
    found = dark_figures.inverted(np.array([[ground, ink, points]]))[0]
    assert found[0] == pytest.approx(to_rgb(THEMES["dark"].background), abs=1 / 255)
    assert found[1] == pytest.approx(to_rgb(THEMES["dark"].ink), abs=1 / 255)
    assert found[2] == pytest.approx(points)
    clear = np.array([[(0.0, 0.0, 0.0, 0.0)]])
    assert dark_figures.inverted(clear)[0, 0] == pytest.approx(to_rgb(THEMES["dark"].background), abs=1 / 255)
