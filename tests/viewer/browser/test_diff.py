"""The page of two versions of a map: side by side, on the way from one to the other, arrows and areas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.browser.pages import WAIT_MS, Open, near, pixels

from vicinal.atlas.diff import MapVersion, write_diff
from vicinal.plot.look import palette, rgb

EACH = 150
CENTERS = np.array([[-6.0, 0.0], [6.0, 0.0], [0.0, 6.0], [0.0, -6.0]])
NAMES = ("ant", "bee", "cat", "dog")
# Scripts: the rows of a page, and whether something is drawn on a canvas.
ROWS = "[...Array(vicinalPage.state.data.n).keys()]"
INKED = "one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some(value => value > 0)"


def version(title: str, centers: list[list[float]], areas: list[int]) -> MapVersion:
    """Return a map with one heap of rows for each of the areas."""
    codes = np.repeat(areas, EACH)
    noise = np.random.default_rng(0).normal(scale=0.7, size=(4 * EACH, 2))
    rows = np.concatenate([np.arange(area * EACH, (area + 1) * EACH) for area in areas])
    names = [NAMES[area] for area in sorted(set(areas))]
    return MapVersion(
        title,
        np.array(centers)[codes] + noise[rows],
        [f"row-{a}" for a in rows],
        np.unique(codes, return_inverse=True)[1],
        names,
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page: cats have moved down, bees are gone, dogs are born."""
    now = CENTERS.copy()
    now[2, 1] = 2.0
    before, after = version("old", CENTERS.tolist(), [0, 1, 2]), version("now", now.tolist(), [0, 2, 3])
    return write_diff(tmp_path_factory.mktemp("diff") / "diff.html", before, after, theme="light")


def colored(page: Any, name: str, pane: int) -> int:
    """Count the pixels of an area on a pane."""
    page.evaluate("for (const one of document.querySelectorAll('.ways')) one.style.opacity = 0")
    return near(pixels(page, f".pane:nth-child({pane + 1}) .map"), rgb(palette(4)[NAMES.index(name)]))


def show(page: Any, which: str) -> None:
    page.click(f"#maps button[data-map='{which}']")
    page.wait_for_function(
        "which => vicinalPage.app.shownMaps === which && "
        "(which === 'together' || vicinalPage.view.places === vicinalPage.state.data.maps[which])",
        arg=which,
        timeout=WAIT_MS,
    )


def test_versions_are_side_by_side_with_their_own_rows_and_areas(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    assert page.locator(".pane").count() == 2
    seen = [[colored(page, name, pane) > 100 for name in NAMES] for pane in (0, 1)]
    assert seen == [[True, True, True, False], [True, False, True, True]]
    rows = page.locator("#diff li button").all_inner_texts()
    assert [row.split() for row in rows[:2]] == [["born", "dog", "+150"], ["gone", "bee", "150", "→", "0"]]
    # arrows are those of the cats, which have moved
    arrows = page.evaluate("vicinalDiff.rowsWithArrows()")
    assert len(arrows) == EACH
    ids = page.evaluate("rows => rows.map(row => vicinalPage.state.data.ids.at(row))", arrows)
    assert {int(one[4:]) // EACH for one in ids} == {2}
    # an area that is gone can be selected, and is found on the old map
    page.click("#diff li:nth-child(2) button")
    assert page.inner_text("#selected-count") == "150"
    assert page.evaluate("vicinalDiff.rowsWithArrows()") == []


@pytest.mark.nightly
def test_points_move_from_the_old_version_to_the_new_one(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    row = page.evaluate(f"{ROWS}.find(row => vicinalPage.state.data.ids.at(row) === 'row-{2 * EACH}')")
    heights = [page.evaluate(f"vicinalPage.state.data.maps[{a}].y[{row}]") for a in (0, 1)]
    page.evaluate("vicinalDiff.slider.value = 25; vicinalDiff.slider.dispatchEvent(new Event('input'))")
    page.wait_for_function("vicinalPage.app.panes.length === 1 && vicinalDiff.share === 0.25", timeout=WAIT_MS)
    height = page.evaluate(f"vicinalPage.view.places.y[{row}]")
    assert height == pytest.approx(heights[0] + 0.25 * (heights[1] - heights[0]), abs=1e-4)
    # on the way, only rows of both versions are drawn
    shown = page.evaluate(
        "[...Array(vicinalPage.state.data.n).keys()].filter(row => vicinalPage.view.shows(row)).length"
    )
    assert shown == 2 * EACH
    # the buttons of the maps lead from the way to both of them
    show(page, "1")
    assert page.input_value("#way") == "100"
    page.click("#play")
    page.wait_for_function("vicinalDiff.share === 1", timeout=WAIT_MS)
    page.wait_for_function("vicinalPage.app.shownMaps === '1'", timeout=WAIT_MS)
    assert colored(page, "dog", 0) > 100
    show(page, "0")
    assert page.input_value("#way") == "0"
    assert colored(page, "bee", 0) > 100
    assert colored(page, "dog", 0) < 20


@pytest.mark.nightly
def test_arrows_are_drawn_and_can_be_hidden(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    drawn = f"[...document.querySelectorAll('.ways')].map(one => {INKED})"
    assert page.evaluate(drawn) == [True, True]
    page.uncheck("#arrows")
    assert page.evaluate(drawn) == [False, False]
    page.check("#arrows")
    show(page, "1")
    assert page.evaluate(drawn) == [True]
    # of one map, the old one has nothing to compare with
    show(page, "0")
    assert page.evaluate(drawn) == [False]
    show(page, "together")
    # only the rows of shown classes have arrows
    page.evaluate("vicinalPage.state.colorBy('change')")
    page.evaluate("vicinalPage.state.show(code => vicinalPage.state.names[code] !== 'moved')")
    assert page.evaluate(drawn) == [False, False]


@pytest.mark.nightly
def test_cameras_move_together_and_names_are_those_of_each_version(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.keyboard.press("+")
    page.wait_for_timeout(500)
    eyes = page.evaluate("vicinalPage.app.panes.map(({ view }) => [...view.eye.center, view.eye.distance])")
    assert eyes[0] == eyes[1]
    page.keyboard.press("0")
    page.wait_for_timeout(500)
    names = [page.locator(f".pane:nth-child({a}) .names span").all_inner_texts() for a in (1, 2)]
    assert sorted(names[0]) == ["ant", "bee · gone", "cat"]
    assert sorted(names[1]) == ["ant", "cat", "dog · born"]
    # other colors have their own names
    page.evaluate("vicinalPage.state.colorBy('change')")
    assert "dog · born" not in page.locator(".pane:nth-child(2) .names span").all_inner_texts()
