"""Views of the page: its address, contours, pictures, several maps, and maps in space."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.browser.pages import CODES, IDS, NAMES, POSITIONS, WAIT_MS, Open, near, picture, pixels, project, select

from vicinal import viewer
from vicinal.plot.look import palette, rgb

pytestmark = pytest.mark.nightly

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("views") / "map.html"
    hover = {"width": POSITIONS[:, 0], "note": [f"note {a}" for a in range(len(POSITIONS))]}
    return viewer.export(
        path, POSITIONS, NAMES[CODES], hover=hover, ids=IDS, title="Animals", label="animal", theme="light"
    )


def camera(page: Any) -> list[float]:
    return list(page.evaluate("[...vicinalPage.view.eye.center, vicinalPage.view.eye.distance]"))


def test_address_holds_the_view_and_back_returns(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.select_option("#color-by", "width")
    page.click("#as-quantile")
    page.keyboard.press("/")
    page.keyboard.type("row-12")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    page.focus("#map")
    page.keyboard.press("+")
    page.wait_for_timeout(900)
    address, looked = page.url, camera(page)
    other = open_page(address)
    other.wait_for_function("vicinalPage.state.selected.length === 11", timeout=WAIT_MS)
    assert other.input_value("#color-by") == "width"
    assert other.get_attribute("#as-quantile", "aria-pressed") == "true"
    assert camera(other) == pytest.approx(looked, rel=1e-3, abs=1e-4)
    page.go_back()
    page.wait_for_function("vicinalPage.state.selected.length === 0", timeout=WAIT_MS)
    page.go_back()
    page.wait_for_function("vicinalPage.state.scaleKind === 'linear'", timeout=WAIT_MS)
    page.go_back()
    page.wait_for_function("vicinalPage.state.paint.column.name === 'animal'", timeout=WAIT_MS)


def test_contours_enclose_the_points(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    assert page.locator(".contours").is_hidden()
    before = pixels(page)
    page.keyboard.press("c")
    page.wait_for_timeout(400)
    assert page.locator(".contours").is_visible()
    assert (np.abs(picture(page.locator(".pane").screenshot()) - before).max(axis=-1) > 0.3).sum() > 300
    levels = page.evaluate("vicinalPage.app.panes[0].density.contours.map(one => one.length)")
    assert len(levels) == 5
    assert all(level > 0 for level in levels)
    # three separate groups: the outer contour surrounds each of them
    left = page.evaluate("Math.min(...vicinalPage.app.panes[0].density.contours[0].map(one => one[0]))")
    places = page.evaluate("[Math.min(...vicinalPage.state.data.x)]")
    assert left == pytest.approx(places[0], abs=0.2)
    page.keyboard.press("c")
    assert page.locator(".contours").is_hidden()


@pytest.mark.parametrize("times", [1, 2, 4])
def test_png_at_several_resolutions(open_page: Open, exported: Path, times: int) -> None:
    page = open_page(exported, accept_downloads=True)
    page.keyboard.press("s")
    with page.expect_download() as waiting:
        page.click(f"#save-png-{times}")
    assert waiting.value.suggested_filename == "Animals.png"
    drawn = picture(Path(waiting.value.path()).read_bytes())
    stage = page.locator("#panes").bounding_box()
    assert drawn.shape[1] == pytest.approx(times * (stage["width"] + 210), abs=2)
    for color in palette(3):
        assert near(drawn, rgb(color)) > 300 * times
    legend = drawn[:, -200 * times :]
    assert all(near(legend, rgb(color)) > 20 * times for color in palette(3))
    assert near(drawn, (0.09, 0.09, 0.11)) > 100 * times, "title and names are written"
    # the map on the screen is as before
    assert near(pixels(page), rgb(palette(3)[0])) > 300


def test_svg_has_texts_and_points(open_page: Open, exported: Path) -> None:
    page = open_page(exported, accept_downloads=True)
    page.click("#save")
    with page.expect_download() as waiting:
        page.click("#save-svg")
    root = ElementTree.fromstring(Path(waiting.value.path()).read_text())
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert texts[0] == "ant" or "ant" in texts
    assert {"Animals", "animal", "ant", "bee", "cat", "100"} <= set(texts)
    assert len(list(root.iter(f"{SVG}circle"))) == 300 + 3
    fills = {one.get("fill") for one in root.iter(f"{SVG}circle")}
    assert fills == set(palette(3))


def test_picture_is_dark_if_the_page_is(open_page: Open, exported: Path) -> None:
    page = open_page(exported, accept_downloads=True)
    page.keyboard.press("d")
    page.keyboard.press("s")
    with page.expect_download() as waiting:
        page.click("#save-png-1")
    drawn = picture(Path(waiting.value.path()).read_bytes())
    assert near(drawn, rgb("#14171c"), 0.02) > 0.7 * drawn.shape[0] * drawn.shape[1]
    assert near(drawn, (1.0, 1.0, 1.0)) > 100, "title and names are light"
    page.keyboard.press("s")
    with page.expect_download() as waiting:
        page.click("#save-svg")
    root = ElementTree.fromstring(Path(waiting.value.path()).read_text())
    assert next(root.iter(f"{SVG}rect")).get("fill") == "#14171c"


def test_svg_of_twenty_thousand_points_has_a_shape_for_each(open_page: Open, tmp_path: Path) -> None:
    positions = np.random.default_rng(0).uniform(size=(20_000, 2))
    page = open_page(viewer.export(tmp_path / "m.html", positions), accept_downloads=True)
    page.keyboard.press("s")
    with page.expect_download() as waiting:
        page.click("#save-svg")
    root = ElementTree.fromstring(Path(waiting.value.path()).read_text())
    assert len(list(root.iter(f"{SVG}circle"))) == 20_000
    assert not list(root.iter(f"{SVG}image"))


def test_svg_of_many_points_contains_one_picture(open_page: Open, tmp_path: Path) -> None:
    positions = np.random.default_rng(0).normal(size=(50_000, 2))
    page = open_page(viewer.export(tmp_path / "m.html", positions), accept_downloads=True)
    page.keyboard.press("s")
    with page.expect_download() as waiting:
        page.click("#save-svg")
    root = ElementTree.fromstring(Path(waiting.value.path()).read_text())
    assert len(list(root.iter(f"{SVG}image"))) == 1
    assert Path(waiting.value.path()).stat().st_size < 4_000_000


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mirrored = POSITIONS * [1, -1] + np.random.default_rng(1).normal(scale=0.2, size=POSITIONS.shape)
    maps = {"first": POSITIONS, "second": mirrored}
    return viewer.compare(tmp_path_factory.mktemp("two") / "two.html", maps, NAMES[CODES], ids=IDS, align=False)


def test_maps_side_by_side_share_hover_and_selection(open_page: Open, compared: Path) -> None:
    page = open_page(compared)
    assert page.locator(".pane").count() == 2
    assert page.locator(".map-name").all_inner_texts() == ["first", "second"]
    boxes = [page.locator(".pane").nth(a).bounding_box() for a in (0, 1)]
    assert boxes[0]["width"] == pytest.approx(boxes[1]["width"], abs=1)
    x, y = page.evaluate("vicinalPage.app.panes[1].view.projectRow(1)")
    page.mouse.move(boxes[1]["x"] + x - 30, boxes[1]["y"] + y)
    page.mouse.move(boxes[1]["x"] + x, boxes[1]["y"] + y)
    page.wait_for_selector("#card:not([hidden])", timeout=WAIT_MS)
    hovered = page.evaluate("vicinalPage.state.hovered")
    assert hovered >= 0
    assert page.evaluate("vicinalPage.app.panes.map(one => one.view.renderer.count('hovered'))") == [1, 1]
    select(page, [1, 2, 3])
    assert page.evaluate("vicinalPage.app.panes.map(one => one.view.renderer.count('selected'))") == [3, 3]


def test_points_move_from_one_map_to_the_other(open_page: Open, compared: Path) -> None:
    page = open_page(compared)
    page.get_by_role("button", name="first").click()
    page.wait_for_function("vicinalPage.app.panes.length === 1", timeout=WAIT_MS)
    page.wait_for_timeout(300)
    row = int(np.flatnonzero(CODES == 2)[0])
    start = project(page, row)
    page.evaluate(
        """row => { window.seen = []; const view = vicinalPage.app.panes[0].view;
            view.onView(() => window.seen.push(view.projectRow(row)[1])) }""",
        row,
    )
    page.get_by_role("button", name="second").click()
    page.wait_for_timeout(1500)
    end = page.evaluate("row => vicinalPage.app.panes[0].view.projectRow(row)", row)
    assert end[1] > start[1] + 100, "the map is upside down"
    seen = page.evaluate("window.seen")
    between = [y for y in seen if start[1] + 20 < y < end[1] - 20]
    assert between, "the points move there, they do not jump"
    page.keyboard.press("m")
    page.wait_for_function("vicinalPage.app.panes.length === 2", timeout=WAIT_MS)


def test_maps_can_be_switched_many_times(open_page: Open, compared: Path) -> None:
    page = open_page(compared)
    for _ in range(24):
        page.evaluate("vicinalPage.app.showMaps('0').then(() => vicinalPage.app.showMaps('together'))")
    assert page.locator(".pane").count() == 2
    assert page.locator(".map-name").all_inner_texts() == ["first", "second"]
    for pane in (0, 1):
        assert near(pixels(page, f".pane:nth-child({pane + 1}) .map"), rgb(palette(3)[0])) > 50


def test_lost_graphics_are_restored(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.evaluate("window.lost = vicinalPage.view.renderer.gl.getExtension('WEBGL_lose_context'); lost.loseContext()")
    page.wait_for_timeout(300)
    page.evaluate("lost.restoreContext()")
    page.wait_for_timeout(600)
    assert page.evaluate("vicinalPage.view.renderer.gl.isContextLost()") is False
    for color in palette(3):
        assert near(pixels(page), rgb(color)) > 300


@pytest.fixture(scope="module")
def in_space(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corners = np.array([[-5, 0, 0], [5, 0, 0], [0, 5, 5]])
    places = corners[CODES] + np.random.default_rng(0).normal(scale=0.6, size=(len(CODES), 3))
    return viewer.export(tmp_path_factory.mktemp("space") / "m.html", places, NAMES[CODES], theme="light")


def test_map_in_space_turns_and_can_be_selected(open_page: Open, in_space: Path) -> None:
    page = open_page(in_space)
    for color in palette(3):
        assert near(pixels(page), rgb(color)) > 150
    before = project(page, 0), project(page, 2)
    page.mouse.move(400, 300)
    page.mouse.down()
    page.mouse.move(520, 340, steps=6)
    page.mouse.up()
    page.wait_for_timeout(300)
    after = project(page, 0), project(page, 2)
    shifts = np.array(after) - np.array(before)
    assert np.abs(shifts[0] - shifts[1]).max() > 20, "it turns, it does not only move"
    x, y = project(page, 1)
    page.mouse.click(x, y)
    assert page.evaluate("vicinalPage.state.selected.length") == 1
    assert CODES[page.evaluate("vicinalPage.state.selected[0]")] == 1
    assert page.is_hidden("#density")


def test_names_of_a_map_in_space_follow_its_turns(open_page: Open, in_space: Path) -> None:
    page = open_page(in_space)
    page.wait_for_function("vicinalPage.names.placed.length === 3", timeout=WAIT_MS)
    ends = "vicinalPage.names.placed.map(one => [one.text, ...(one.line ?? [one.left, one.top])].slice(0, 3))"
    before = {name: (x, y) for name, x, y in page.evaluate(ends)}
    assert set(before) == {"ant", "bee", "cat"}
    page.evaluate("vicinalPage.view.eye.orbit(0.9, 0); vicinalPage.view.changed()")
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    after = {name: (x, y) for name, x, y in page.evaluate(ends)}
    assert any(np.hypot(x - before[name][0], y - before[name][1]) > 40 for name, (x, y) in after.items())
    seen = np.array(page.evaluate("[...vicinalPage.view.eye.projectAll(vicinalPage.view.places)]")).reshape(-1, 2)
    for one in page.evaluate("vicinalPage.names.placed"):
        own = seen[NAMES[CODES] == one["text"]]
        inside = (own > [one["left"], one["top"]]) & (own < [one["right"], one["bottom"]])
        assert not inside.all(axis=1).any()


def test_selected_points_keep_their_size(open_page: Open, tmp_path: Path) -> None:
    positions = np.random.default_rng(0).normal(size=(60_000, 2))
    positions[0] = [5.5, 5.5]
    page = open_page(viewer.export(tmp_path / "m.html", positions, theme="light"))
    select(page, [0])
    page.wait_for_timeout(400)
    x, y = project(page, 0)
    around = pixels(page)[int(y) - 8 : int(y) + 8, int(x) - 8 : int(x) + 8]
    assert near(around, rgb(palette(1)[0]), 0.25) >= 8
    size = page.evaluate("vicinalPage.view.pointSize()")
    page.evaluate("vicinalPage.view.look([0, 0], 0.05, false)")
    assert page.evaluate("vicinalPage.view.pointSize()") > 2 * size
