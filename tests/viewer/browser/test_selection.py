"""The selection panel: what sets selected rows apart, the table, downloads, and highlights while searching."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from viewer.browser.pages import CODES, IDS, NAMES, POSITIONS, WAIT_MS, Open, select

from vicinal import viewer

pytestmark = pytest.mark.nightly

N = len(POSITIONS)
RNG = np.random.default_rng(3)
SIZE = np.where(CODES == 1, 5.0, 1.0) + RNG.normal(scale=0.3, size=N)
NOISE = RNG.normal(size=N)
PLACE = np.where(CODES == 2, "tree", "ground")
NOISE[5] = np.nan


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    hover = {"size": SIZE, "noise": NOISE, "place": PLACE, "note": [f'says "{a}", or so' for a in range(N)]}
    path = tmp_path_factory.mktemp("selection") / "map.html"
    return viewer.export(path, POSITIONS, NAMES[CODES], hover=hover, ids=IDS, label="animal")


def test_columns_that_differ_most_come_first(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    select(page, np.flatnonzero(CODES == 1))
    names = page.locator("#apart .name").all_inner_texts()
    assert names[0] == "size"
    assert "noise" not in names
    note = page.locator("#apart .n").first.inner_text().split(" vs ")
    assert [float(one) for one in note] == pytest.approx([SIZE[CODES == 1].mean(), SIZE[CODES != 1].mean()], rel=0.01)
    assert page.locator("#apart .histogram rect").count() == 24
    select(page, np.flatnonzero(CODES == 2))
    assert page.locator("#apart .name").first.inner_text() == "place: tree"
    assert page.locator("#apart .n").first.inner_text() == "100 % vs 0.0 %"
    page.locator("#apart .name").first.click()
    assert page.input_value("#color-by") == "place"


def test_table_is_sorted_and_downloaded(open_page: Open, exported: Path) -> None:
    page = open_page(exported, accept_downloads=True)
    rows = [4, 5, 1, 30]
    select(page, rows)
    page.keyboard.press("t")
    page.wait_for_selector("#table-dialog[open]", timeout=WAIT_MS)
    ids = page.locator("#table-dialog tbody th")
    assert ids.all_inner_texts() == ["row-1", "row-4", "row-5", "row-30"]
    page.locator("#table-dialog thead button", has_text="noise").click()
    order = sorted((row for row in rows if row != 5), key=lambda row: NOISE[row])
    assert ids.all_inner_texts() == [*(f"row-{row}" for row in order), "row-5"], "missing numbers come last"
    with page.expect_download() as waiting:
        page.click("#download-table")
    written = pl.read_csv(Path(waiting.value.path()))
    assert written.columns == ["id", "animal", "size", "noise", "place", "note", "x", "y"]
    assert written["id"].to_list() == ["row-1", "row-4", "row-5", "row-30"]
    assert written["note"][0] == 'says "1", or so'
    assert written["noise"][2] is None
    assert written.select("x", "y").to_numpy() == pytest.approx(POSITIONS[sorted(rows)], abs=1e-3)


def test_matches_are_highlighted_while_typing(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.keyboard.press("/")
    page.keyboard.type("tree")
    page.wait_for_function("vicinalPage.state.found.length === 100", timeout=WAIT_MS)
    assert page.evaluate("vicinalPage.view.renderer.count('found')") == 100
    assert page.evaluate("vicinalPage.state.selected.length") == 0
    page.keyboard.press("Enter")
    assert page.evaluate("vicinalPage.state.selected.length") == 100
    page.keyboard.press("Escape")
    assert page.evaluate("vicinalPage.state.found.length") == 0


def test_click_selects_a_point_and_empty_ground_clears(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    x, y = page.evaluate("vicinalPage.view.projectRow(0)")
    page.mouse.click(x, y)
    assert page.evaluate("vicinalPage.selectedIds()") == ["row-0"]
    page.mouse.click(30, 30)
    assert page.evaluate("vicinalPage.selectedIds()") == []


def test_all_keys_are_listed(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.keyboard.press("?")
    page.wait_for_selector("#help-dialog[open]", timeout=WAIT_MS)
    text = page.inner_text("#help-dialog")
    assert "Draw a lasso" in text
    assert "Color by the next column" in text
    page.keyboard.press("?")
    page.wait_for_selector("#help-dialog", state="hidden", timeout=WAIT_MS)
