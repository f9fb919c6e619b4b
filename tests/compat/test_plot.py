"""``umap.plot`` under ``import vicinal as umap``: umap-learn's names and arguments."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from numpy.typing import NDArray

import vicinal as umap

Rows = NDArray[np.float32]
COLORS = {0: "#ff0000", 1: "#00ff00", 2: "#0000ff"}


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    mpl.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def mapper(iris: Rows) -> umap.UMAP:
    return umap.UMAP(n_epochs=30, random_state=0).fit(iris)


@pytest.fixture(scope="module")
def species() -> NDArray[np.int64]:
    return np.repeat([0, 1, 2], 50)


def drawn_colors(ax: Any) -> set[tuple[float, ...]]:
    return {tuple(color[:3]) for color in ax.collections[0].get_facecolor()}


@pytest.mark.parametrize(
    "key", [COLORS, {str(k): v for k, v in COLORS.items()}, list(COLORS.values())], ids=["labels", "names", "list"]
)
def test_color_key_gives_each_label_its_color(mapper: umap.UMAP, species: Any, key: Any) -> None:
    ax = umap.plot.points(mapper, labels=species, color_key=key, width=400, height=300, background="black")
    assert drawn_colors(ax) == {to_rgb(color) for color in COLORS.values()}
    figure = ax.get_figure()
    assert (figure.get_size_inches() * figure.dpi).round().tolist() == [400, 300]
    assert ax.get_facecolor()[:3] == to_rgb("black")
    assert {to_rgb(text.get_color()) for text in _legend(ax)[0]} == {to_rgb(umap.plot.THEMES["dark"].ink)}


def test_a_color_key_in_the_order_of_text_labels_is_that_of_numpy(mapper: umap.UMAP, species: Any) -> None:
    names = np.array(["10", "2", "1"])[species]  # sorted as texts: 1, 10, 2
    ax = umap.plot.points(mapper, labels=names, color_key=["#ff0000", "#00ff00", "#0000ff"])
    entries = {t.get_text(): h.get_color() for t, h in zip(*_legend(ax), strict=True)}
    assert entries == {"1": "#ff0000", "10": "#00ff00", "2": "#0000ff"}


def _legend(ax: Any) -> tuple[Any, Any]:
    return ax.get_legend().get_texts(), ax.get_legend().legend_handles


def test_subset_points_and_show_legend(mapper: umap.UMAP, species: Any) -> None:
    ax = umap.plot.points(mapper, labels=species, subset_points=species > 0, show_legend=False, color_key=COLORS)
    assert len(ax.collections[0].get_offsets()) == 100
    assert ax.get_legend() is None
    assert drawn_colors(ax) == {to_rgb(COLORS[1]), to_rgb(COLORS[2])}


def test_points_replace_the_places_of_the_model(mapper: umap.UMAP) -> None:
    ax = umap.plot.points(mapper, points=mapper.embedding_[:10] * 2)
    assert len(ax.collections[0].get_offsets()) == 10


@pytest.mark.parametrize(
    "theme", ["fire", "viridis", "inferno", "blue", "red", "green", "darkblue", "darkred", "darkgreen", None]
)
def test_themes_of_umap_learn(mapper: umap.UMAP, species: Any, iris: Rows, theme: str | None) -> None:
    dark = theme not in ("blue", "red", "green", None)
    for colored in ({"labels": species}, {"values": iris[:, 0]}, {}):
        ax = umap.plot.points(mapper, theme=theme, **colored)
        assert (sum(ax.get_facecolor()[:3]) < 1) == dark


def test_values_take_the_color_map(mapper: umap.UMAP, iris: Rows) -> None:
    ax = umap.plot.points(mapper, values=iris[:, 0], cmap="Reds")
    lowest = mpl.colormaps["Reds"](0.0)[:3]
    assert any(np.allclose(lowest, color, atol=1e-6) for color in drawn_colors(ax))
    assert len(drawn_colors(umap.plot.points(mapper, labels=iris[:, 3] > 1, color_key_cmap="tab10"))) == 2


def test_connectivity_takes_umap_learns_arguments(mapper: umap.UMAP, species: Any, iris: Rows) -> None:
    ax = umap.plot.connectivity(
        mapper, show_points=True, labels=species, edge_cmap="Blues", theme="fire", width=300, height=300
    )
    assert ax.images
    assert umap.plot.connectivity(mapper, values=iris[:, 0], cmap="Reds", background="white").collections
    straight, bundled = (umap.plot.connectivity(mapper, edge_bundling=kind).images[0] for kind in (None, "hammer"))
    assert np.any(straight.get_array() != bundled.get_array())
    with pytest.raises(ValueError, match="edge_bundling must be None or 'hammer', got 'curved'"):
        umap.plot.connectivity(mapper, edge_bundling="curved")


@pytest.mark.parametrize("kind", ["pca", "ica", "vq", "local_dim", "neighborhood"])
def test_diagnostic_types_of_umap_learn(mapper: umap.UMAP, kind: str) -> None:
    ax, numbers = umap.plot.diagnostic(mapper, diagnostic_type=kind, return_diagnostics=True, width=300, height=300)
    assert numbers.shape == ((150, 3) if kind in ("pca", "ica", "vq") else (150,))
    assert np.isfinite(numbers).all()
    assert len(ax.collections[0].get_offsets()) == 150
    again = umap.plot.diagnostic(mapper, kind, return_diagnostics=True, plot_result=False)
    np.testing.assert_array_equal(again, numbers)
    assert umap.plot.diagnostic(mapper, kind, plot_result=False) is None


def test_neighborhoods_and_dimensions_have_known_values() -> None:
    plane = np.random.default_rng(0).normal(size=(200, 2))
    rows = np.hstack([plane, 1e-6 * plane[:, ::-1], np.zeros((200, 3))]).astype(np.float32)
    model = SimpleNamespace(embedding_=plane)
    given = {"return_diagnostics": True, "plot_result": False, "nhood_size": 10}
    np.testing.assert_allclose(umap.plot.diagnostic(model, rows, "neighborhood", **given), 1.0)
    dimension = umap.plot.diagnostic(model, rows, "local_dim", local_variance_threshold=0.999, **given)
    assert np.median(dimension) == 2


def test_all_diagnostics_are_drawn_in_one_figure(mapper: umap.UMAP) -> None:
    axes, numbers = umap.plot.diagnostic(mapper, diagnostic_type="all", return_diagnostics=True)
    assert len(axes) == len(numbers) == 5
    assert len({ax.get_figure() for ax in axes}) == 1


def test_interactive_returns_a_page(mapper: umap.UMAP, species: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    umap.plot.output_notebook()
    page = umap.plot.interactive(
        mapper,
        labels=species,
        hover_data={"row": np.arange(150)},
        subset_points=species < 2,
        theme="fire",
        width=600,
        point_size=3,
        interactive_text_search=True,
    )
    assert "iframe" in page._repr_html_()
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    umap.plot.show(page)
    assert opened[0].startswith("file://")
    umap.plot.show(umap.plot.points(mapper))


def test_plots_take_the_model_by_umap_learns_name(mapper: umap.UMAP) -> None:
    for draw in (umap.plot.points, umap.plot.connectivity, umap.plot.nearest_neighbour_distribution):
        assert draw(umap_object=mapper).get_figure()
    assert umap.plot.diagnostic(umap_object=mapper, diagnostic_type="pca").get_figure()


def test_a_page_is_shown_in_the_chosen_file(mapper: umap.UMAP, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    umap.plot.output_file(tmp_path / "map.html", title="Iris")
    try:
        umap.plot.show(umap.plot.interactive(umap_object=mapper))
    finally:
        umap.plot.output_file(None)
    assert opened == [(tmp_path / "map.html").as_uri()]
    assert "iframe" in (tmp_path / "map.html").read_text()


def test_rows_without_neighbors_are_drawn_around_the_map(iris: Rows) -> None:
    far = np.concatenate([iris, [[90, 0, 0, 0]]]).astype(np.float32)
    with pytest.warns(UserWarning, match="1 of 151 rows"):
        model = umap.UMAP(disconnected="nan", disconnection_distance=20.0, n_epochs=5, random_state=0).fit(far)
    assert np.isnan(model.embedding_[150]).all()
    assert len(umap.plot.points(model).collections[0].get_offsets()) == 151


def test_histogram_of_neighbors(mapper: umap.UMAP) -> None:
    ax = umap.plot.nearest_neighbour_distribution(mapper, bins=10)
    assert sum(bar.get_height() for bar in ax.patches) == 150


def test_wrong_arguments_are_named(mapper: umap.UMAP, species: Any) -> None:
    points: Any = umap.plot.points
    for wrong, message in (
        ({"theme": "sea"}, r"theme must be one of light, dark, fire.*got 'sea'"),
        ({"cmap": "sea"}, "cmap must be the name of a color map"),
        ({"background": "sea"}, "background must be a color, got 'sea'"),
        ({"width": -3}, "width must be a number of pixels above 0, got -3"),
        ({"labels": species, "color_key": {0: "red"}}, "color_key has no color for the label '1'"),
        ({"labels": species, "color_key": ["red"]}, "color_key must have a color for each of the 3 labels, got 1"),
        ({"labels": species, "color_key_cmap": "sea"}, "color_key_cmap must be the name of a color map"),
        ({"subset_points": [1, 2]}, "subset_points must hold 150 booleans"),
        ({"labels": species, "values": species}, "labels and values cannot be used together"),
    ):
        with pytest.raises(ValueError, match=message):
            points(mapper, **wrong)
    with pytest.raises(ValueError, match=r"kind must be one of .*got 'tree'"):
        umap.plot.diagnostic(mapper, diagnostic_type="tree")
    with pytest.raises(ValueError, match="tools must be None"):
        umap.plot.interactive(mapper, tools=[])
    with pytest.raises(TypeError, match="interactive has no argument 'color'"):
        umap.plot.interactive(mapper, color="red")
    with pytest.raises(ValueError, match="plot_to_show must be axes or a page, got int"):
        umap.plot.show(3)
