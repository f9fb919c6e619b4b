"""Colors of the page: any column, classes or scales, missing values, and what is written about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.browser.pages import CODES, NAMES, POSITIONS, WAIT_MS, Open, near, pixels

from vicinal import viewer
from vicinal.plot.look import THEMES, VALUE_STOPS, palette, rgb

pytestmark = pytest.mark.nightly

N = len(POSITIONS)
WIDTH = POSITIONS[:, 0].copy()
WIDTH[CODES == 2] = np.nan


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hover = {
        "width": WIDTH,
        "year": 1900 + np.arange(N),
        "rank": np.arange(N) % 4,
        "day": 20_240_101 + np.arange(N) % 3,
        "cost": 1e6 * (1 + np.arange(N) % 100),
        "income": 10.0 ** np.linspace(0, 4, N),
        "note": [f"note {a}" for a in range(N)],
    }
    path = tmp_path_factory.mktemp("colors") / "map.html"
    return viewer.export(path, POSITIONS, NAMES[CODES], hover=hover, label="animal", theme="light")


def choose(page: Any, name: str) -> None:
    page.select_option("#color-by", name)
    page.wait_for_timeout(300)


def test_any_column_but_texts_colors_the_points(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    options = page.locator("#color-by option").all_inner_texts()
    assert options == ["nothing", "animal", "width", "year", "rank", "day", "cost", "income"]
    assert near(pixels(page), rgb(palette(3)[1])) > 300
    choose(page, "")
    assert near(pixels(page), rgb(palette(1)[0])) > 900
    assert near(pixels(page), rgb(palette(3)[2])) < 20


def test_missing_values_have_a_color_and_an_entry_of_their_own(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    choose(page, "width")
    assert page.inner_text("#missing").split() == ["missing", "100"]
    seen = pixels(page)
    # the class in the upper middle has no values
    upper = seen[: seen.shape[0] // 3]
    assert near(upper, rgb(THEMES["light"].faint), 0.08) > 300
    assert near(upper, rgb(VALUE_STOPS[0])) < 20, "nothing missing is drawn as the lowest value"
    row = int(np.flatnonzero(CODES == 2)[0])
    page.evaluate("row => vicinalPage.app.point(row)", row)
    assert "width missing" in page.inner_text("#card")


def test_whole_numbers_are_a_scale_that_can_be_classes(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    choose(page, "year")
    assert page.inner_text(".ticks").split() == ["1900", "2000", "2100"]
    assert page.locator("#as-classes").count() == 0, "300 years are too many classes"
    choose(page, "rank")
    assert page.inner_text(".ticks").split() == ["0", "1", "2", "3"]
    page.click("#as-classes")
    assert page.locator("#legend .class .name").all_inner_texts() == ["0", "1", "2", "3"]
    page.click("#as-linear")
    assert page.locator("#legend .class").count() == 0
    choose(page, "day")
    page.click("#as-classes")
    days = ["20,240,101", "20,240,102", "20,240,103"]
    assert page.locator("#legend .class .name").all_inner_texts() == days


def test_large_numbers_are_written_as_numbers(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    choose(page, "cost")
    assert page.inner_text(".ticks").split() == ["20M", "40M", "60M", "80M", "100M"]
    for field, number in (("#range-low", "1,000,000"), ("#range-high", "100,000,000")):
        assert page.get_attribute(field, "placeholder") == page.get_attribute(field, "title") == number
    choose(page, "width")
    low = np.float32(np.nanmin(WIDTH))
    assert float(page.get_attribute("#range-low", "placeholder")) == float(f"{low:.4g}")
    assert np.float32(page.get_attribute("#range-low", "title")) == low


def test_scales_are_linear_quantile_or_log(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    choose(page, "income")
    middle = "vicinalPage.state.paint.codes[150]"
    linear = page.evaluate(middle)
    page.click("#as-quantile")
    quantile = page.evaluate(middle)
    page.click("#as-log")
    log = page.evaluate(middle)
    assert page.inner_text(".ticks").split() == ["1", "10", "100", "1000", "10,000"]
    assert linear < 15
    assert abs(quantile - 128) < 5
    assert abs(log - 128) < 5
    choose(page, "width")
    assert page.locator("#as-log").count() == 0, "there are negative widths"


def test_outliers_do_not_take_the_whole_scale(open_page: Open, tmp_path: Path) -> None:
    values = np.random.default_rng(0).uniform(size=N)
    values[7] = 1e6
    page = open_page(viewer.export(tmp_path / "m.html", POSITIONS, values=values))
    assert "2 points beyond the ends" in page.inner_text("#clipped")
    assert np.ptp(page.evaluate("[...vicinalPage.state.paint.codes]")) > 200
    assert page.evaluate("vicinalPage.state.data.columns[0].values[7]") == 1e6


def test_hidden_classes_stay_hidden_under_another_color(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.get_by_role("button", name="bee", exact=False).first.click()
    choose(page, "year")
    assert page.inner_text("#count") == "200 of 300 points shown"
    page.keyboard.press("Escape")
    page.locator("#map").focus()
    page.keyboard.press("a")
    page.wait_for_function("document.getElementById('count').textContent === '300 points'", timeout=WAIT_MS)
    page.keyboard.press("b")
    assert page.input_value("#color-by") == "rank"


def test_unlabeled_rows_are_no_class(open_page: Open, tmp_path: Path) -> None:
    page = open_page(viewer.export(tmp_path / "m.html", POSITIONS, CODES - 1, theme="light"))
    assert page.locator("#legend .class .name").all_inner_texts() == ["0", "1", "unlabeled"]
    assert near(pixels(page), rgb(THEMES["light"].faint), 0.08) > 300
    assert "unlabeled" not in page.evaluate("vicinalPage.names.placed.map(one => one.text)")


def test_without_webgl_the_page_says_so(browser: Any, exported: Path) -> None:
    page = browser.new_page()
    page.add_init_script("HTMLCanvasElement.prototype.getContext = () => null")
    page.goto(exported.as_uri())
    page.wait_for_selector("#busy.failed", timeout=WAIT_MS)
    assert "This map cannot be shown here: this browser has no WebGL 2" in page.inner_text("#busy")
    page.close()
