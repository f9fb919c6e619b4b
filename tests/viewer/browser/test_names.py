"""Names on the map: every area of a class, clusters of a map without classes, no overlap, more as one zooms."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from viewer.browser.pages import WAIT_MS, Open

from vicinal import viewer

pytestmark = pytest.mark.nightly

RNG = np.random.default_rng(0)
SVG = "{http://www.w3.org/2000/svg}"


def placed(page: Any) -> list[dict[str, Any]]:
    page.wait_for_timeout(400)
    return list(page.evaluate("vicinalPage.names.placed"))


def overlaps(names: list[dict[str, Any]]) -> int:
    def apart(a: dict[str, Any], b: dict[str, Any]) -> bool:
        return bool(
            a["left"] >= b["right"] or a["right"] <= b["left"] or a["top"] >= b["bottom"] or a["bottom"] <= b["top"]
        )

    return sum(not apart(a, b) for i, a in enumerate(names) for b in names[:i])


def cross(a: Any, b: Any) -> bool:
    """Return whether the ends of each line are on different sides of the other."""
    sides = [[np.linalg.det([line[1] - line[0], end - line[0]]) for end in other] for line, other in ((a, b), (b, a))]
    return all(one * two < 0 for one, two in sides)


def test_every_island_of_a_class_has_its_name(open_page: Open, tmp_path: Path) -> None:
    centers = np.array([[-8, 0], [8, 0], [0, 8], [0, -8]])
    island = np.arange(800) % 4
    places = centers[island] + RNG.normal(scale=0.8, size=(800, 2))
    labels = np.array(["one", "one", "two", "one"])[island]
    names = placed(open_page(viewer.export(tmp_path / "m.html", places, labels)))
    assert sorted(name["text"] for name in names) == ["one", "one", "one", "two"]


def test_names_of_a_dense_heap_stand_among_rows_of_their_class(open_page: Open, tmp_path: Path) -> None:
    # thin stripes of six classes in a heap, with more rows in a cell of the page's grid than a stripe is wide
    wide, heap = RNG.normal(scale=10, size=(10_000, 2)), RNG.normal(scale=0.5, size=(20_000, 2))
    stripe = np.floor(heap[:, 0] / 0.08).astype(np.int64) % 6
    mixed = RNG.random(len(heap)) < 0.5
    codes = np.where(mixed, RNG.integers(6, size=len(heap)), stripe)
    labels = np.concatenate([np.full(len(wide), "wide"), np.array(list("abcdef"))[codes]])
    page = open_page(viewer.export(tmp_path / "m.html", np.concatenate([wide, heap]), labels))
    spots = page.evaluate("vicinalPage.names.spots.map(one => [one.text, one.x, one.y])")
    assert {text for text, *_ in spots} == {"wide", *"abcdef"}
    places = np.array(page.evaluate("[...vicinalPage.view.places.x, ...vicinalPage.view.places.y]")).reshape(2, -1).T
    for text, *at in spots:
        around = labels[np.linalg.norm(places - at, axis=1).argsort(kind="stable")[:100]]
        share = (around == text).mean()
        larger = [one for one in set(labels) if (around == one).mean() > share]
        assert share >= 0.5 or (share >= 3 * (labels == text).mean() and len(larger) < 2), (text, share)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    centers = RNG.normal(size=(120, 2)) * 6
    codes = RNG.integers(120, size=12_000)
    labels = np.array([f"category with number {a}" for a in range(120)])[codes]
    places = centers[codes] + RNG.normal(scale=0.5, size=(12_000, 2))
    return viewer.export(tmp_path_factory.mktemp("names") / "m.html", places, labels)


def test_names_do_not_overlap_and_point_to_their_area(open_page: Open, crowded: Path) -> None:
    page = open_page(crowded)
    names = placed(page)
    assert 10 < len(names) < 120
    assert overlaps(names) == 0
    lines = [name for name in names if name["line"]]
    assert lines, "a crowded map has displaced names"
    assert page.locator(".lines line").count() == len(lines)
    ends = np.array([name["line"] for name in lines]).reshape(-1, 2, 2)
    assert not [(a, b) for a, b in itertools.combinations(range(len(ends)), 2) if cross(ends[a], ends[b])]


def test_more_names_appear_as_one_zooms(open_page: Open, crowded: Path) -> None:
    page = open_page(crowded)
    whole = {name["text"] for name in placed(page)}
    seen = set(whole)
    for x, y in ((-0.3, 0.0), (0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (0.0, -0.3)):
        page.evaluate("([x, y]) => vicinalPage.view.look([x, y], 0.12, false)", [x, y])
        names = placed(page)
        assert overlaps(names) == 0
        seen |= {name["text"] for name in names}
    assert len(seen) > len(whole) + 5


def test_clusters_of_a_map_without_classes_are_named(open_page: Open, tmp_path: Path) -> None:
    topics = [["cat", "dog", "bird", "fish"], ["road", "wheel", "engine", "seat"], ["sun", "moon", "star", "sky"]]
    codes = np.arange(1500) % 3
    places = np.array([[-6, 0], [6, 0], [0, 8]])[codes] + RNG.normal(size=(1500, 2))
    notes = [f"row {a} is about {' '.join(RNG.choice(topics[code], 2))}" for a, code in enumerate(codes)]
    page = open_page(viewer.export(tmp_path / "m.html", places, hover={"note": notes}))
    found = [set(name["text"].split(", ")) for name in placed(page) if name["level"] == 0]
    assert len(found) == 3
    assert all(any(words <= set(topic) for topic in topics) for words in found)
    page.keyboard.press("n")
    assert not page.is_visible(".names")
    page.wait_for_selector("#show-names[aria-pressed=false]", timeout=WAIT_MS)


def test_long_names_are_cut_alike_on_the_page_and_in_a_picture(open_page: Open, tmp_path: Path) -> None:
    codes = np.arange(400) % 2
    places = np.array([[-6, 0], [6, 0]])[codes] + RNG.normal(size=(400, 2))
    long = "a class with a name that nobody can read to its end"
    page = open_page(
        viewer.export(tmp_path / "m.html", places, np.array([long, "short"])[codes]), accept_downloads=True
    )
    names = {name["text"] for name in placed(page)}
    assert names == {"a class with a name that nobody can…", "short"}
    page.click("#save")
    with page.expect_download() as waiting:
        page.click("#save-svg")
    texts = [one.text for one in ElementTree.fromstring(Path(waiting.value.path()).read_text()).iter(f"{SVG}text")]
    assert names <= set(texts)
    assert texts.count(long) <= 1, "only the legend has the whole name"
