"""Names on a figure: where a class may name an area, and places that cover neither points nor other names."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from vicinal import plot
from vicinal.plot.names import class_areas, cluster_areas

matplotlib.use("Agg")
NAMES = ["ant", "bee", "cat", "rare"]


def islands(seed: int, n: int = 1200) -> tuple[Any, Any]:
    """Return three separate groups, two islands of the first class, and rare rows scattered over everything."""
    rng = np.random.default_rng(seed)
    centers = np.array([[-8.0, 0.0], [8.0, 0.0], [0.0, 8.0], [0.0, -8.0]])
    island = np.arange(n) % 4
    codes = np.array([0, 0, 1, 2])[island]
    codes[rng.choice(n, n // 100, replace=False)] = 3
    return centers[island] + rng.normal(size=(n, 2)), codes


def test_class_names_each_area_that_it_dominates_and_no_other(global_random_seed: int) -> None:
    xy, codes = islands(global_random_seed)
    areas = class_areas(xy, codes, NAMES)
    found = sorted(area.name for area in areas if area.name != "rare")
    assert found == ["ant", "ant", "bee", "cat"]
    assert sorted(area.level for area in areas if area.name == "ant") == [0, 1]
    for area in areas:
        near = np.argsort(np.linalg.norm(xy - area.place, axis=1))[:100]
        share, overall = (codes[near] == area.code).mean(), (codes == area.code).mean()
        others = np.bincount(codes[near], minlength=4)
        if area.name != "rare":
            assert share >= 0.5 or (share >= 3 * overall and (others > others[area.code]).sum() < 2)
    # rows of a rare class in the areas of others name none of them, unless the class is large enough for one name
    assert sum(area.name == "rare" for area in areas) <= 1


def test_unlabeled_rows_and_few_points_name_nothing(global_random_seed: int) -> None:
    xy, codes = islands(global_random_seed)
    assert {area.name for area in class_areas(xy, np.where(codes == 0, 3, codes), NAMES[:3])} == {"bee", "cat"}
    assert class_areas(xy[:50], codes[:50], NAMES) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_cover_no_points_and_do_not_overlap(theme: str, global_random_seed: int) -> None:
    xy, codes = islands(global_random_seed)
    labels = np.array(NAMES)[codes]
    area = 40.0  # large points, no part of which is covered
    ax = Figure(layout="constrained").add_subplot()
    plot.points(xy, labels, names=True, theme=theme, point_size=area, ax=ax)
    texts = [text for text in ax.texts if text.get_text()]
    assert {"ant", "bee", "cat"} <= {text.get_text() for text in texts}
    figure = ax.figure
    figure.draw_without_rendering()
    boxes = {text: text.get_window_extent() for text in texts}
    seen = ax.transData.transform(xy)
    for text, box in boxes.items():
        own = seen[labels == text.get_text()]
        radius = area**0.5 / 2 * figure.dpi / 72
        inside = (own > [box.x0 - radius, box.y0 - radius]) & (own < [box.x1 + radius, box.y1 + radius])
        assert not inside.all(axis=1).any()
    assert not [
        (a.get_text(), b.get_text())
        for (a, one), (b, other) in itertools.combinations(boxes.items(), 2)
        if one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1
    ]


def test_named_clusters_are_written(global_random_seed: int) -> None:
    xy, _ = islands(global_random_seed)
    clusters = [
        {"name": "left", "place": [-8.0, 0.0], "size": 300, "level": 0},
        {"name": "finer", "place": [8.0, 0.5], "size": 30, "level": 1},
    ]
    assert [area.name for area in cluster_areas(clusters[::-1])] == ["left", "finer"]
    ax = plot.points(xy, names=clusters, ax=Figure(layout="constrained").add_subplot())
    assert {text.get_text() for text in ax.texts} == {"left", "finer"}
    assert not plot.points(xy, names=False, ax=Figure().add_subplot()).texts
    with pytest.raises(ValueError, match=r"names=True needs labels.*clusters\(model, columns=table\).spots"):
        plot.points(xy, names=True)


def test_lines_of_a_crowded_figure_do_not_cross(global_random_seed: int) -> None:
    rng = np.random.default_rng(global_random_seed)
    codes = rng.integers(60, size=6000)
    xy = (6 * rng.normal(size=(60, 2)))[codes] + 0.5 * rng.normal(size=(6000, 2))
    ax = plot.points(xy, np.array([f"kind {a}" for a in codes]), names=True, ax=Figure().add_subplot())
    ends = [np.array(line.get_xydata()) for line in ax.lines if len(line.get_xydata()) == 2]
    assert len(ends) > 10

    def apart(line: Any, other: Any) -> bool:
        one, two = (np.linalg.det([line[1] - line[0], end - line[0]]) for end in other)
        return bool(one * two >= 0)

    assert all(apart(a, b) or apart(b, a) for a, b in itertools.combinations(ends, 2))


def test_long_names_are_cut(global_random_seed: int) -> None:
    xy, codes = islands(global_random_seed)
    names = np.array(["a class with a name that nobody can read to its end", "bee", "cat", "rare"])
    ax = plot.points(xy, names[codes], names=True, ax=Figure(layout="constrained").add_subplot())
    assert {"a class with a name that nobody can…", "bee", "cat"} <= {text.get_text() for text in ax.texts}
