"""vicinal.plot: what is drawn, in which colours, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vicinal import plot
from vicinal.plot.palette import separation

Array = NDArray[Any]
MAP = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
CLASSES = np.arange(300) % 3


@pytest.fixture(autouse=True)
def _no_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


def scatter(ax: Axes) -> PathCollection:
    (found,) = [child for child in ax.collections if isinstance(child, PathCollection)]
    return found


def drawn(ax: Axes) -> tuple[Array, Array]:
    found = scatter(ax)
    return np.asarray(found.get_offsets()), np.asarray(found.get_facecolors())[:, :3]  # type: ignore[attr-defined]


def test_every_point_is_drawn_in_the_colour_of_its_class() -> None:
    places, colours = drawn(plot.points(MAP, CLASSES))
    assert len(places) == 300
    wanted = {
        tuple(place): to_rgb(plot.palette(3)[c]) for place, c in zip(MAP.astype(float), CLASSES, strict=True)
    }
    for place, colour in zip(places, colours, strict=True):
        assert colour == pytest.approx(wanted[tuple(place)])


def test_order_is_shuffled_and_fixed() -> None:
    first, second = (drawn(plot.points(MAP, CLASSES))[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, MAP)


def test_a_model_is_drawn_by_its_embedding() -> None:
    model = SimpleNamespace(embedding_=MAP)
    assert np.array_equal(drawn(plot.points(model))[0], drawn(plot.points(MAP))[0])


def test_frame_is_bare_and_scales_are_equal() -> None:
    ax = plot.points(MAP * [1, 0.1], title="a map")
    assert ax.get_aspect() == 1.0
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
    assert not any(spine.get_visible() for spine in ax.spines.values())
    assert ax.get_title(loc="left") == "a map"
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert (MAP[:, 0] > left).all()
    assert (MAP[:, 0] < right).all()
    assert (right - left) / (top - bottom) < 2.1
    assert scatter(ax).get_rasterized()


def test_legend_names_the_classes_outside_the_map() -> None:
    ax = plot.points(MAP, np.array(["cat", "dog", "cow"])[CLASSES])
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["cat", "cow", "dog"]
    ax.figure.canvas.draw()
    assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
    assert plot.points(MAP, CLASSES, legend=False).get_legend() is None


def test_numbers_keep_their_order_in_the_legend() -> None:
    legend = plot.points(MAP, np.arange(300) % 12).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [str(a) for a in range(12)]


def test_a_crowd_of_classes_has_no_legend() -> None:
    assert plot.points(MAP, np.arange(300)).get_legend() is None


@pytest.mark.parametrize("labels", [[None, "a", "b"] * 100, [math.nan, 1.0, 2.0] * 100])
def test_missing_labels_are_grey_and_underneath(labels: list[Any]) -> None:
    ax = plot.points(MAP, labels)
    grey = to_rgb(plot.THEMES["light"].faint)
    is_grey = np.asarray((np.abs(drawn(ax)[1] - grey) < 1e-6).all(axis=1))
    assert is_grey[:100].all()
    assert not is_grey[100:].any()
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_texts()[-1].get_text() == "unlabelled"


def test_values_follow_viridis_with_a_bar() -> None:
    values = np.linspace(5.0, 9.0, 300)
    values[7] = math.nan
    ax = plot.points(MAP, values=values)
    places, colours = drawn(ax)
    assert np.array_equal(places[0], MAP[7])
    lowest = colours[(places == MAP[0]).all(axis=1)][0]
    assert lowest == pytest.approx(matplotlib.colormaps["viridis"](0.0)[:3])
    (bar,) = ax.child_axes
    assert bar.get_ylim() == pytest.approx((5.0, 9.0))
    plot.points(MAP, values=np.ones(300))


def test_more_points_are_smaller_and_fainter() -> None:
    few, many = plot.points(MAP[:50]), plot.points(np.tile(MAP, (100, 1)))
    assert scatter(few).get_sizes()[0] > scatter(many).get_sizes()[0]
    few_alpha, many_alpha = scatter(few).get_alpha(), scatter(many).get_alpha()
    assert isinstance(few_alpha, float)
    assert isinstance(many_alpha, float)
    assert few_alpha > many_alpha
    chosen = scatter(plot.points(MAP, point_size=3.0, alpha=0.25))
    assert (chosen.get_sizes()[0], chosen.get_alpha()) == (3.0, 0.25)


def test_given_axes_are_used_and_pyplot_is_left_alone() -> None:
    ax = Figure().add_subplot()
    assert plot.points(MAP, CLASSES, ax=ax, theme="dark") is ax
    assert matplotlib.pyplot.get_fignums() == []
    assert ax.get_facecolor()[:3] == pytest.approx(to_rgb(plot.THEMES["dark"].background))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_save_writes_on_the_background_of_the_theme(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"map.{suffix}"
    plot.save(path, plot.points(MAP, CLASSES, theme="dark"), dpi=60)
    assert path.stat().st_size > 1000
    if suffix == "png":
        corner = matplotlib.image.imread(path)[0, 0, :3]
        assert corner == pytest.approx(to_rgb(plot.THEMES["dark"].background), abs=0.01)


@pytest.mark.parametrize("points", [MAP[:1], np.zeros((5, 2)), np.tile(MAP[:1], (9, 1)), MAP.astype(int)])
def test_degenerate_maps_are_drawn(tmp_path: Path, points: Array) -> None:
    plot.save(tmp_path / "map.png", plot.points(points), dpi=40)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_palette_is_stable_distinct_and_visible(theme: str) -> None:
    long = plot.palette(60, theme)
    assert len(set(long)) == 60
    assert all(plot.palette(n, theme) == long[:n] for n in (0, 1, 8, 9, 30))
    rgb = np.array([to_rgb(colour) for colour in long])

    def closest(n: int) -> float:
        return min(float(separation(rgb[:a], rgb[a]).min()) for a in range(1, n))

    # OKLab distances, for the least favourable of three kinds of eyes; 0.02 is about one just noticeable step
    assert closest(20) > 0.06
    assert closest(60) > 0.025
    ground = np.array(to_rgb(plot.THEMES[theme].background))
    assert float(separation(rgb, ground).min()) > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"embedding": MAP[:, 0]}, "embedding must be numbers of shape"),
        ({"embedding": np.zeros((4, 3))}, "embedding must be numbers of shape"),
        ({"embedding": np.zeros((0, 2))}, "embedding must be numbers of shape"),
        ({"embedding": np.array([["a", "b"]])}, "embedding must be numbers of shape"),
        ({"embedding": np.array([[0.0, 1.0], [math.nan, 0.0]])}, "embedding must be finite; row 1"),
        ({"embedding": MAP, "labels": [1, 2]}, "labels must be one-dimensional with 300"),
        ({"embedding": MAP, "values": [1, 2]}, "values must be 300 numbers"),
        ({"embedding": MAP, "values": ["a"] * 300}, "values must be 300 numbers"),
        ({"embedding": MAP, "labels": CLASSES, "values": CLASSES}, "labels and values"),
        ({"embedding": MAP, "theme": "pink"}, "theme must be one of"),
    ],
)
def test_bad_input_names_the_argument(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot.points(**arguments)
