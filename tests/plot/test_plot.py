"""vicinal.plot: points, colors, legends, other figures, and errors for invalid input."""

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

import vicinal
from vicinal import plot
from vicinal.plot.diagnostic import Neighborhood
from vicinal.plot.look import separation

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


def test_points_have_the_color_of_their_class() -> None:
    places, colors = drawn(plot.points(MAP, CLASSES))
    assert len(places) == 300
    wanted = {tuple(place): to_rgb(plot.palette(3)[c]) for place, c in zip(MAP.astype(float), CLASSES, strict=True)}
    for place, color in zip(places, colors, strict=True):
        assert color == pytest.approx(wanted[tuple(place)])


def test_drawing_order_is_shuffled_but_fixed() -> None:
    first, second = (drawn(plot.points(MAP, CLASSES))[0] for _ in range(2))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, MAP)


def test_model_is_drawn_as_its_embedding() -> None:
    model = SimpleNamespace(embedding_=MAP)
    assert np.array_equal(drawn(plot.points(model))[0], drawn(plot.points(MAP))[0])


def test_axes_are_bare_with_equal_scales() -> None:
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


def test_legend_lists_classes_outside_the_map() -> None:
    ax = plot.points(MAP, np.array(["cat", "dog", "cow"])[CLASSES])
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["cat", "cow", "dog"]
    ax.figure.canvas.draw()
    assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
    assert plot.points(MAP, CLASSES, legend=False).get_legend() is None


def test_numeric_classes_are_in_numeric_order() -> None:
    legend = plot.points(MAP, np.arange(300) % 12).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [str(a) for a in range(12)]


def test_many_classes_have_no_legend() -> None:
    assert plot.points(MAP, np.arange(300)).get_legend() is None


@pytest.mark.parametrize("labels", [[None, "a", "b"] * 100, [math.nan, 1.0, 2.0] * 100])
def test_unlabeled_points_are_gray_and_below(labels: list[Any]) -> None:
    ax = plot.points(MAP, labels)
    gray = to_rgb(plot.THEMES["light"].faint)
    is_gray = np.asarray((np.abs(drawn(ax)[1] - gray) < 1e-6).all(axis=1))
    assert is_gray[:100].all()
    assert not is_gray[100:].any()
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_texts()[-1].get_text() == "unlabeled"


def test_values_use_viridis_with_a_color_bar() -> None:
    values = np.linspace(5.0, 9.0, 300)
    values[7] = math.nan
    ax = plot.points(MAP, values=values)
    places, colors = drawn(ax)
    assert np.array_equal(places[0], MAP[7])
    lowest = colors[(places == MAP[0]).all(axis=1)][0]
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


def test_given_axes_are_used_without_pyplot() -> None:
    ax = Figure().add_subplot()
    assert plot.points(MAP, CLASSES, ax=ax, theme="dark") is ax
    assert matplotlib.pyplot.get_fignums() == []
    assert ax.get_facecolor()[:3] == pytest.approx(to_rgb(plot.THEMES["dark"].background))


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_save_uses_the_background_of_the_theme(tmp_path: Path, suffix: str) -> None:
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
    rgb = np.array([to_rgb(color) for color in long])

    def closest(n: int) -> float:
        return min(float(separation(rgb[:a], rgb[a]).min()) for a in range(1, n))

    # OKLab distances, minimum over three types of color vision; 0.02 is about one just noticeable difference
    assert closest(20) > 0.06
    assert closest(60) > 0.025
    ground = np.array(to_rgb(plot.THEMES[theme].background))
    assert float(separation(rgb, ground).min()) > 0.1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"umap_object": MAP[:, 0]}, "umap_object must be numbers of shape"),
        ({"umap_object": np.zeros((4, 3))}, "umap_object must be numbers of shape"),
        ({"umap_object": np.zeros((0, 2))}, "umap_object must be numbers of shape"),
        ({"umap_object": np.array([["a", "b"]])}, "umap_object must be numbers of shape"),
        ({"umap_object": np.array([[0.0, 1.0], [math.nan, 0.0]])}, "umap_object must be finite; row 1"),
        ({"umap_object": MAP, "labels": [1, 2]}, "labels must be one-dimensional with 300"),
        ({"umap_object": MAP, "values": [1, 2]}, "values must be 300 numbers"),
        ({"umap_object": MAP, "values": ["a"] * 300}, "values must be 300 numbers"),
        ({"umap_object": np.ma.masked_greater(MAP, 1)}, "umap_object has masked values"),
        ({"umap_object": MAP, "values": np.ma.masked_greater(MAP[:, 0], 1)}, "values has masked values"),
        ({"umap_object": MAP, "subset_points": np.ma.masked_all(300, bool)}, "subset_points has masked values"),
        ({"umap_object": MAP, "labels": CLASSES, "values": CLASSES}, "labels and values"),
        ({"umap_object": MAP, "theme": "pink"}, "theme must be one of"),
    ],
)
def test_invalid_argument_of_points_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot.points(**arguments)


def shade(ax: Axes) -> Array:
    (image,) = ax.images
    return np.asarray(image.get_array())


def test_many_points_are_shaded_by_density() -> None:
    rng = np.random.default_rng(0)
    crowd = np.concatenate([rng.normal(0, 0.2, (50_000, 2)), rng.normal(4, 0.8, (10_000, 2))])
    ax = plot.points(crowd, np.repeat(["dense", "thin"], [50_000, 10_000]))
    image = shade(ax)
    assert not ax.collections
    colors = [np.abs(image[..., :3] - to_rgb(color)).max(axis=-1) < 0.02 for color in plot.palette(2)]
    dense, thin = (image[..., 3][where & (image[..., 3] > 0)] for where in colors)
    assert dense.mean() > thin.mean()
    assert dense.max() == pytest.approx(1.0)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["dense", "thin"]
    # with an explicit size, points are drawn individually
    assert scatter(plot.points(crowd, point_size=1.0))


def test_connectivity_draws_edges_between_their_points() -> None:
    from scipy.sparse import csr_matrix

    places = np.array([[0.0, 0.0], [10.0, 0.0], [5.0, 8.0]])
    graph = csr_matrix((np.ones(2), ([0, 1], [1, 0])), shape=(3, 3))
    ax = plot.connectivity(places, graph=graph, show_points=False, title="edges")
    drawn_pixels = shade(ax)[..., 3] > 0.02
    rows = np.flatnonzero(drawn_pixels.any(axis=1))
    columns = np.flatnonzero(drawn_pixels.any(axis=0))
    assert np.ptp(rows) <= 6
    assert np.ptp(columns) / drawn_pixels.shape[1] > 0.85
    assert plot.connectivity(SimpleNamespace(embedding_=MAP, graph_=csr_matrix((300, 300)))).collections


def test_diagnostics_separate_preserved_from_scrambled_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2)).astype(np.float32)
    X[:200] *= 0.1
    X[200:] += 50
    torn = X.copy()
    torn[:200] = rng.permutation(torn[:200])
    for measure in (Neighborhood.recall, Neighborhood.quality):
        assert measure(Neighborhood(X, X.astype(np.float64), 10, "euclidean")) == pytest.approx(1.0)
    assert plot.diagnostic(torn, X, "quality").get_title(loc="left") == "Local quality"
    values = Neighborhood(X, torn.astype(np.float64), 10, "euclidean").recall()
    assert values[200:].mean() > 0.9 > 0.2 > values[:200].mean()
    quality = Neighborhood(X, torn.astype(np.float64), 10, "euclidean").quality()
    assert quality[200:].mean() > quality[:200].mean() + 0.05
    density = Neighborhood(X, X.astype(np.float64), 10, "euclidean").density()
    assert density[:200].min() > np.median(density[200:])


def test_diagnostic_uses_the_rows_of_a_fitted_model() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    model = vicinal.UMAP(n_epochs=5, random_state=0).fit(rows)
    positions = model.embedding_
    growing = SimpleNamespace(embedding_=positions, rows_=np.concatenate([rows, rows[:9]]), metric="euclidean")
    wanted = drawn(plot.diagnostic(positions, rows))[1]
    for fitted in (model, growing):
        assert np.array_equal(drawn(plot.diagnostic(fitted))[1], wanted)


def test_compare_aligns_maps_with_the_first() -> None:
    turn = np.array([[0.0, -2.0], [2.0, 0.0]])
    axes = plot.compare({"one": MAP, "turned": MAP @ turn + 7}, CLASSES)
    first, second = (drawn(ax)[0] for ax in axes)
    assert second == pytest.approx(first, abs=1e-5)
    assert [ax.get_title(loc="left") for ax in axes] == ["one", "turned"]
    assert [ax.get_legend() is not None for ax in axes] == [False, True]
    assert len(plot.compare([MAP] * 5)) == 5
    with pytest.raises(ValueError, match="same rows; 'map 2' has 10"):
        plot.compare([MAP, MAP[:10]])


def test_loss_draws_one_named_line_per_loss() -> None:
    ax = plot.loss(SimpleNamespace(loss_history_={"total": [3.0, 2.0, 1.0], "repulsion": [1.0, 0.5]}))
    assert [list(line.get_ydata()) for line in ax.lines] == [[3, 2, 1], [1, 0.5]]
    assert [text.get_text() for text in ax.texts] == ["total", "repulsion"]
    assert plot.loss([3.0, 2.0], log=True).get_yscale() == "log"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot.connectivity(MAP), "graph must be given"),
        (lambda: plot.connectivity(MAP, graph=unit_graph(5)), "graph must have shape"),
        (lambda: plot.diagnostic(MAP), "X must be given"),
        (lambda: plot.diagnostic(MAP, MAP[:5]), "X must have one row"),
        (lambda: plot.diagnostic(MAP, MAP, "beauty"), "kind must be one of recall, quality, density"),
        (lambda: plot.diagnostic(MAP, MAP, n_neighbors=200), "n_neighbors must be"),
        (lambda: plot.compare([]), "at least one"),
        (lambda: plot.loss([]), "history must contain"),
        (lambda: plot.loss([[1.0, 2.0]]), "history must contain"),
    ],
)
def test_invalid_argument_of_other_figures_is_named(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def unit_graph(n: int) -> Any:
    from scipy.sparse import identity

    return identity(n, format="csr")


def test_long_names_of_many_classes_do_not_shrink_the_map() -> None:
    def size(ax: Axes) -> Array:
        ax.figure.canvas.draw()
        return ax.get_window_extent().size / ax.figure.dpi

    names = np.array([f"a class with a very long name indeed, number {a}" for a in range(60)])
    plain = size(plot.points(MAP))
    assert size(plot.points(MAP, names[np.arange(300) % 60])) == pytest.approx(plain, rel=0.06)
    two = plot.compare([MAP, MAP], names[np.arange(300) % 60])
    assert size(two[0]) == pytest.approx(size(plot.compare([MAP, MAP])[0]), rel=0.06)
    texts = [text.get_text() for text in two[-1].get_legend().get_texts()]
    assert max(map(len, texts)) <= 28


def test_compared_maps_can_be_saved(tmp_path: Path) -> None:
    plot.save(tmp_path / "two.png", plot.compare([MAP, MAP]))
    assert (tmp_path / "two.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ValueError, match="at least one"):
        plot.save(tmp_path / "none.png", [])


def test_loss_without_a_history_is_refused(digits: Array) -> None:
    model = vicinal.UMAP(n_epochs=5).fit(digits[:60])
    with pytest.raises(ValueError, match="this UMAP has no loss history: fit it with compute_loss=True"):
        plot.loss(model)


def test_minus_one_is_drawn_as_unlabeled_and_classes_are_in_natural_order() -> None:
    ax = plot.points(MAP, np.arange(300) % 12 - 1)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [*map(str, range(11)), "unlabeled"]
    gray = to_rgb(plot.THEMES["light"].faint)
    assert int((np.abs(scatter(ax).get_facecolors()[:, :3] - gray).max(axis=1) < 1e-6).sum()) == 25
