"""What a page answers: names beside their points, neighbors in the data, filters, far outliers, links, the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.browser.pages import CODES, IDS, NAMES, POSITIONS, WAIT_MS, N, Open, project, select

from vicinal import viewer

# Far away from all others, in two directions.
FAR = {0: (400.0, 0.0), 1: (410.0, 10.0), 2: (0.0, -300.0)}
PLACES = POSITIONS.copy()
for one, where in FAR.items():
    PLACES[one] = where
# As neighbors in the data, the next rows of the table.
NEXT = (np.arange(N)[:, None] + np.arange(1, 6)) % N
LONG = 123_456_700 + np.arange(N)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    images = np.zeros((N, 4, 4), dtype=np.uint8)
    images[:, 0, 0] = np.arange(N) % 256
    hover = {"long": LONG, "side": PLACES[:, 0], "half": np.arange(N) / 10, "note": [f"note of {a}" for a in range(N)]}
    path = tmp_path_factory.mktemp("asking") / "map.html"
    return viewer.export(
        path, PLACES, NAMES[CODES], hover=hover, images=images, ids=IDS, label="animal", neighbors=NEXT, title="Animals"
    )


def next_frame(page: Any) -> None:
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def placed(page: Any) -> list[dict[str, Any]]:
    next_frame(page)
    return list(page.evaluate("vicinalPage.names.placed"))


def covered(page: Any, names: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return names with the rows of their own class that they cover."""
    seen = np.array(page.evaluate("[...vicinalPage.view.eye.projectAll(vicinalPage.view.places)]")).reshape(-1, 2)
    return [
        (one["text"], int(row))
        for one in names
        for row in np.flatnonzero(NAMES[CODES] == one["text"])
        if one["left"] <= seen[row, 0] <= one["right"] and one["top"] <= seen[row, 1] <= one["bottom"]
    ]


def test_names_stand_beside_their_points_also_for_numbers_and_rows_have_their_own(
    open_page: Open, exported: Path
) -> None:
    page = open_page(exported)
    names = placed(page)
    assert sorted(one["text"] for one in names) == sorted(NAMES)
    assert covered(page, names) == []
    page.evaluate("vicinalPage.state.colorBy('side')")
    assert sorted(one["text"] for one in placed(page)) == sorted(NAMES)
    page.evaluate("vicinalPage.view.zoomTo([9, 12])")
    page.wait_for_function("vicinalPage.names.placed.some(one => one.text.startsWith('note of'))", timeout=WAIT_MS)
    assert all(one["level"] == 3 for one in placed(page) if one["text"].startswith("note of"))
    assert "note of 9" in page.inner_text(".names")


@pytest.mark.nightly
def test_far_outliers_are_left_out_and_marked(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    next_frame(page)
    marks = page.locator(".beyond button")
    assert sorted(text.replace("\n", "") for text in marks.all_inner_texts()) == ["→1", "→2"]
    assert page.evaluate("vicinalPage.view.outliers") == sorted(FAR)
    box = page.locator("#map").bounding_box()
    near = np.array([project(page, row) for row in range(3, N)])
    assert (near >= 0).all()
    assert (near <= [box["width"], box["height"]]).all()
    # the map fills the canvas: without the outliers its longer side would be a few pixels
    assert (np.ptp(near, axis=0) > 0.6 * np.array([box["width"], box["height"]])).any()
    page.get_by_role("button", name="Show 2 points far outside").click()
    page.wait_for_function(
        """() => [0, 1].every(row => { const [x, y] = vicinalPage.view.projectRow(row);
            return x > 0 && y > 0 && x < vicinalPage.view.eye.width && y < vicinalPage.view.eye.height; })""",
        timeout=WAIT_MS,
    )


def test_neighbors_in_the_data_are_drawn_on_demand(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    assert page.locator(".near line").count() == 0
    page.keyboard.press("k")
    assert page.get_attribute("#near", "aria-pressed") == "true"
    select(page, [30])
    page.wait_for_function("document.querySelectorAll('.near line').length === 5", timeout=WAIT_MS)
    ends = page.evaluate(
        "[...document.querySelectorAll('.near line')].map(one => [+one.getAttribute('x2'), +one.getAttribute('y2')])"
    )
    assert np.array(ends) == pytest.approx(np.array([project(page, int(row)) for row in NEXT[30]]), abs=0.5)
    page.wait_for_selector("#nearest li", timeout=WAIT_MS)
    assert [text.split()[0] for text in page.locator("#nearest li").all_inner_texts()] == [IDS[row] for row in NEXT[30]]
    page.click("#select-nearest")
    assert sorted(page.evaluate("vicinalPage.state.selected")) == [30, *NEXT[30].tolist()]


def test_filters_of_several_columns_act_together_and_travel_in_the_link(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    page.evaluate("vicinalPage.state.colorBy('animal')")
    page.get_by_role("button", name="bee", exact=False).first.click()
    page.select_option("#color-by", "half")
    page.fill("#range-low", "5")
    page.press("#range-low", "Enter")
    page.fill("#range-high", "19.95")
    page.press("#range-high", "Enter")
    shown = np.flatnonzero((CODES != 1) & (np.arange(N) >= 50) & (np.arange(N) < 200))
    page.wait_for_function("wanted => vicinalPage.state.visibleCount() === wanted", arg=len(shown), timeout=WAIT_MS)
    assert page.evaluate("vicinalPage.state.visibleRows()") == shown.tolist()
    chips = [text.rpartition(" ")[0] for text in page.locator(".chip").all_inner_texts()]
    assert chips == ["animal 1 class hidden", "half 5 to 19.95"]
    rows = [50, 51, 53, 60, 198]
    select(page, rows)
    page.wait_for_function("location.hash.includes('rows=') && location.hash.includes('at=')", timeout=WAIT_MS)
    other = open_page(page.url)
    other.wait_for_function("vicinalPage.state.selected.length === 5", timeout=WAIT_MS)
    assert other.evaluate("vicinalPage.state.selected") == rows
    assert other.evaluate("vicinalPage.state.visibleRows()") == shown.tolist()
    page.locator(".chip", has_text="half").click()
    assert page.evaluate("vicinalPage.state.visibleCount()") == int((CODES != 1).sum())
    page.locator(".chip").click()
    assert page.is_hidden("#filters")


def test_table_has_pages_pictures_and_whole_numbers(open_page: Open, exported: Path) -> None:
    page = open_page(exported)
    select(page, range(250))
    page.keyboard.press("t")
    page.wait_for_selector("#table-dialog[open]", timeout=WAIT_MS)
    assert page.inner_text("#table-page") == "1 to 100 of 250"
    cells = page.locator("#table-dialog tbody tr").nth(3).locator("th, td").all_inner_texts()
    assert cells[1:] == [IDS[3], NAMES[CODES[3]], "123,456,703", cells[4], "0.3", "note of 3"]
    pixel = "document.querySelectorAll('#table-dialog tbody canvas')[3].getContext('2d').getImageData(0, 0, 1, 1)"
    page.wait_for_function(f"{pixel}.data[0] === 3", timeout=WAIT_MS)
    aligned = "name => getComputedStyle([...document.querySelectorAll('#table-dialog thead th')]"
    aligned += ".find(one => one.textContent === name)).textAlign"
    assert [page.evaluate(aligned, name) for name in ("long", "note")] == ["right", "left"]
    page.click("#table-next")
    page.click("#table-next")
    assert page.inner_text("#table-page") == "201 to 250 of 250"
    assert page.locator("#table-dialog tbody tr").count() == 50
    assert page.locator("#table-next").is_disabled()
    page.locator("#table-dialog thead button", has_text="long").click()
    page.locator("#table-dialog thead button", has_text="long").click()
    assert page.inner_text("#table-page") == "1 to 100 of 250"
    assert page.locator("#table-dialog tbody th").first.inner_text() == IDS[249]


@pytest.mark.nightly
def test_legend_is_ordered_by_name_size_or_data(open_page: Open, tmp_path: Path) -> None:
    labels = np.repeat(["c", "a", "b"], [120, 100, 80])
    page = open_page(viewer.export(tmp_path / "m.html", POSITIONS, labels, label="kind"))
    names = page.locator(".classes .name")
    assert names.all_inner_texts() == ["a", "b", "c"]
    page.select_option("#legend-order", "size")
    assert names.all_inner_texts() == ["c", "a", "b"]
    assert page.locator(".classes .n").all_inner_texts() == ["120", "100", "80"]
    page.select_option("#legend-order", "data")
    assert names.all_inner_texts() == ["c", "a", "b"]
    page.locator(".class").first.click()
    assert page.evaluate("vicinalPage.state.visibleCount()") == 180
