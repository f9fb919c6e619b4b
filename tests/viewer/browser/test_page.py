"""The offline page in a browser: it opens from file://, draws, and reacts to pointer and keys."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from viewer.browser.pages import CENTERS, CODES, IDS, NAMES, POSITIONS, WAIT_MS, N, Open, near, picture, pixels, project

from vicinal import viewer
from vicinal.plot.look import palette, rgb


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images = np.zeros((N, 6, 6), dtype=np.uint8)
    images[CODES == 1] = 255
    hover = {"note": [f"the {name} of row {a} <b>" for a, name in enumerate(NAMES[CODES])], "size": POSITIONS[:, 0]}
    path = tmp_path_factory.mktemp("page") / "map with spaces.html"
    return viewer.export(
        path, POSITIONS, NAMES[CODES], hover=hover, images=images, ids=IDS, title="Three <animals>", label="animal"
    )


def covered(page: Any, color: str) -> int:
    """Count the pixels of approximately this color."""
    return near(pixels(page), rgb(color))


def alone(code: int) -> int:
    """Return the row of a class that is furthest from its center, where the pointer hits no other point."""
    rows = np.flatnonzero(code == CODES)
    return int(rows[np.argmax(np.linalg.norm(POSITIONS[rows] - CENTERS[code], axis=1))])


def test_page_opens_from_a_file_and_draws_every_class(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    assert page.url.startswith("file://")
    assert page.title() == "Three <animals>"
    assert page.inner_text("#title") == "Three <animals>"
    assert page.inner_text("#count") == "300 points"
    for color in palette(3):
        assert covered(page, color) > 300
    # the class around (-6, 0) is left of the one around (6, 0)
    seen = pixels(page)
    left, right = (np.argwhere(np.abs(seen - rgb(color)).max(axis=-1) < 0.12).mean(axis=0) for color in palette(2))
    assert left[1] < right[1] - 100


def test_positions_are_exact_to_a_16_bit_grid(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    found = np.array(page.evaluate("[[...vicinalPage.state.data.x], [...vicinalPage.state.data.y]]")).T
    extent = np.ptp(POSITIONS, axis=0)
    wanted = (POSITIONS - POSITIONS.min(axis=0) - extent / 2) * 2 / extent.max()
    assert np.abs(found - wanted).max() <= 1.01 / 65535


def test_hover_shows_texts_and_picture(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    row = alone(1)
    x, y = project(page, row)
    page.mouse.move(x - 40, y - 40)
    page.mouse.move(x, y)
    page.wait_for_selector("#card:not([hidden])", timeout=WAIT_MS)
    text = page.inner_text("#card")
    assert f"row-{row}" in text
    assert f"the bee of row {row} <b>" in text
    page.wait_for_function(
        "document.querySelector('#card canvas').getContext('2d').getImageData(3, 3, 1, 1).data[0] === 255",
        timeout=WAIT_MS,
    )
    page.mouse.move(5, 5)
    page.wait_for_selector("#card", state="hidden", timeout=WAIT_MS)


@pytest.mark.nightly
def test_legend_hides_and_isolates_classes(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    ant, bee, cat = palette(3)
    page.get_by_role("button", name="bee", exact=False).first.click()
    page.wait_for_function("document.getElementById('count').textContent.includes('200 of 300')", timeout=WAIT_MS)
    page.wait_for_timeout(300)
    assert covered(page, bee) < 20
    assert covered(page, ant) > 300
    page.locator(".only").nth(2).focus()
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert page.inner_text("#count") == "100 of 300 points shown"
    assert covered(page, cat) > 300
    assert covered(page, ant) < 20
    page.keyboard.press("a")
    assert page.inner_text("#count") == "300 points"


@pytest.mark.nightly
def test_search_finds_ids_texts_and_classes(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    for query, matches in {"row-12": 11 + 0, "ROW-299": 1, "the bee": 100, "cat": 100, "nothing": 0}.items():
        page.keyboard.press("/")
        page.fill("#query", query)
        wanted = f"{matches} match{'es' * (matches != 1)}" if matches else "No match"
        page.wait_for_function(
            "wanted => document.querySelector('#found .summary')?.textContent.startsWith(wanted)",
            arg=wanted,
            timeout=WAIT_MS,
        )
        page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("row-29")
    page.wait_for_function("document.querySelectorAll('#found li').length === 11", timeout=WAIT_MS)
    page.keyboard.press("ArrowDown")
    assert page.inner_text("#card .id") == "row-29"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("#selected-count", timeout=WAIT_MS)
    assert page.inner_text("#selected-count") == "11"


def lasso(page: Any, rows: NDArray[np.int64]) -> None:
    """Drag the pointer around the given rows."""
    script = "rows => rows.map(r => vicinalPage.view.project(vicinalPage.state.data.x[r], vicinalPage.state.data.y[r]))"
    where = np.array(page.evaluate(script, rows.tolist()))
    (left, top), (right, bottom) = where.min(axis=0) - 14, where.max(axis=0) + 14
    page.mouse.move(left, top)
    page.mouse.down()
    for corner in ((right, top), (right, bottom), (left, bottom), (left, top + 2)):
        page.mouse.move(*corner, steps=4)
    page.mouse.up()


def test_lasso_selects_counts_and_downloads_ids(open_page: Open, exported: Path) -> None:
    page = open_page(exported, accept_downloads=True)
    page.keyboard.press("l")
    assert page.get_attribute("#lasso", "aria-pressed") == "true"
    wanted = np.flatnonzero(CODES == 2)
    lasso(page, wanted)
    page.wait_for_selector("#selected-count", timeout=WAIT_MS)
    assert page.inner_text("#selected-count") == "100"
    assert page.inner_text("#breakdown").split() == ["cat", "100"]
    assert page.get_attribute("#lasso", "aria-pressed") == "false"
    with page.expect_download() as waiting:
        page.click("#download")
    assert Path(waiting.value.path()).read_text().split("\n") == [*(f"row-{row}" for row in wanted), ""]
    page.keyboard.press("Escape")
    page.wait_for_selector("#selected-count", state="detached", timeout=WAIT_MS)


@pytest.mark.nightly
def test_shift_drag_is_a_lasso(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.keyboard.down("Shift")
    lasso(page, np.flatnonzero(CODES == 0))
    page.keyboard.up("Shift")
    page.wait_for_selector("#selected-count", timeout=WAIT_MS)
    assert sorted(page.evaluate("vicinalPage.selectedIds()")) == sorted(f"row-{a}" for a in range(0, N, 3))


@pytest.mark.nightly
def test_keys_zoom_pan_and_reset(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    before = project(page, 0)
    page.focus("#map")
    page.keyboard.press("+")
    page.wait_for_timeout(600)
    page.keyboard.press("ArrowLeft")
    page.wait_for_timeout(300)
    moved = project(page, 0)
    assert np.hypot(moved[0] - before[0], moved[1] - before[1]) > 50
    page.keyboard.press("0")
    page.wait_for_timeout(600)
    assert project(page, 0) == pytest.approx(before, abs=1.0)
    page.keyboard.press("Enter")
    assert page.is_visible("#card")


@pytest.mark.nightly
def test_wheel_zooms_and_drag_pans(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    before = project(page, 0)
    page.mouse.move(400, 300)
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(300)
    zoomed = project(page, 0)
    assert zoomed != pytest.approx(before, abs=5.0)
    page.mouse.down()
    page.mouse.move(460, 300, steps=5)
    page.mouse.up()
    page.wait_for_timeout(300)
    assert project(page, 0)[0] - zoomed[0] == pytest.approx(60, abs=3)


@pytest.mark.nightly
def test_theme_follows_the_browser_and_can_be_toggled(open_page: Open, exported: Path) -> None:
    page = open_page(exported, color_scheme="dark")
    assert pixels(page)[2, 2].max() < 0.2
    page.keyboard.press("d")
    page.wait_for_timeout(300)
    assert pixels(page)[2, 2].min() > 0.9


@pytest.mark.nightly
def test_every_control_is_reachable_by_tab(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert reached >= {"map", "zoom-in", "fit", "lasso", "theme", "query", "class", "only", "select-shown"}


@pytest.mark.nightly
@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_points_are_drawn(open_page: Open, tmp_path: Path, n: int) -> None:
    page = open_page(viewer.export(tmp_path / "few.html", np.zeros((n, 2)) if n == 2 else POSITIONS[:n]))
    assert covered(page, palette(1)[0]) > 10
    assert page.is_hidden("#legend")


@pytest.mark.nightly
def test_values_are_drawn_on_a_color_scale(open_page: Open, tmp_path: Path) -> None:
    page = open_page(viewer.export(tmp_path / "values.html", POSITIONS, values=POSITIONS[:, 0], label="width"))
    seen = pixels(page)
    middle = seen.shape[1] // 2
    # viridis goes from purple on the left to yellow on the right: green increases
    dark = seen.max(axis=-1) < 0.95
    assert seen[:, :middle][dark[:, :middle]][:, 1].mean() < seen[:, middle:][dark[:, middle:]][:, 1].mean() - 0.2
    assert "width" in page.inner_text("#legend")
    assert page.inner_text(".ticks").split() == ["-5", "0", "5"]


@pytest.mark.nightly
def test_hundred_thousand_points_are_interactive(open_page: Open, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    positions = rng.normal(size=(100_000, 2)).astype(np.float32)
    page = open_page(viewer.export(tmp_path / "many.html", positions, rng.integers(40, size=100_000)))
    page.locator(".only").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_function("document.getElementById('count').textContent.includes('of 100,000')", timeout=WAIT_MS)
    page.click("#select-shown")
    page.wait_for_selector("#selected-count", timeout=WAIT_MS)
    assert len(page.evaluate("vicinalPage.selectedIds()")) == page.evaluate("vicinalPage.state.counts[0]")


@pytest.mark.nightly
def test_saved_notebook_shows_the_map_without_its_server(
    browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "anywidget" else real(name))
    view = viewer.explore(SimpleNamespace(embedding_=POSITIONS), NAMES[CODES])
    shown = view._repr_html_()
    (tmp_path / "served.html").write_text(shown)
    page = browser.new_page()
    page.goto((tmp_path / "served.html").as_uri())
    page.wait_for_function("document.querySelector('iframe').src.startsWith('http://127.0.0.1')", timeout=WAIT_MS)
    view.close()
    page.goto("about:blank")
    page.goto((tmp_path / "served.html").as_uri())
    frame = page.locator("iframe").element_handle().content_frame()
    frame.wait_for_selector("html[data-ready]", timeout=WAIT_MS)
    assert frame.inner_text("#count") == "300 points"
    page.close()


def test_saved_notebook_shows_a_picture_where_scripts_are_blocked(browser: Any, tmp_path: Path) -> None:
    view = viewer.explore(SimpleNamespace(embedding_=POSITIONS), NAMES[CODES], live=False)
    # as notebooks and nbconvert style pictures
    style = "<style>img { height: auto; max-width: 100% }</style>"
    (tmp_path / "saved.html").write_text(style + view._repr_html_())
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto((tmp_path / "saved.html").as_uri())
    assert "trust the notebook" in page.inner_text("p")
    seen = picture(page.screenshot())
    colors = [rgb(one) for one in palette(3)]
    assert min(near(seen, color) for color in colors) > 50, "the picture is seen through the page"
    whole = page.locator("img").bounding_box()
    note = page.frame_locator("iframe").locator(".unable").bounding_box()
    assert whole["y"] + whole["height"] <= note["y"], "the page's note is below the picture"
    context.close()
