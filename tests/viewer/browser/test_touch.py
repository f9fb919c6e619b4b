"""The page on a phone: drag, pinch, tap and lasso with fingers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.browser.pages import CODES, IDS, NAMES, PHONE, POSITIONS, WAIT_MS, Open, project

from vicinal import viewer

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("touch") / "map.html"
    return viewer.export(path, POSITIONS, NAMES[CODES], ids=IDS, hover={"note": ["words"] * len(POSITIONS)})


@pytest.fixture
def phone(open_page: Open, exported: Path) -> Any:
    return open_page(exported, **PHONE)


def touch(page: Any, steps: list[list[tuple[float, float]]]) -> None:
    """Put fingers on the screen, move them through the steps, and lift them."""
    client = page.context.new_cdp_session(page)
    for number, fingers in enumerate(steps):
        points = [{"x": x, "y": y, "id": a} for a, (x, y) in enumerate(fingers)]
        kind = "touchStart" if number == 0 else "touchMove"
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_timeout(400)


def test_panel_is_below_the_map(phone: Any) -> None:
    stage, panel = (phone.locator(one).bounding_box() for one in ("#stage", "#panel"))
    assert panel["y"] >= stage["y"] + stage["height"] - 1
    assert stage["width"] == panel["width"] == 390
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    tools = phone.locator("#tools").bounding_box()
    assert tools["x"] >= 0
    assert tools["x"] + tools["width"] <= 390


def test_one_finger_moves_the_map(phone: Any) -> None:
    before = project(phone, 0)
    touch(phone, [[(200, 200)], [(220, 210)], [(260, 230)]])
    after = project(phone, 0)
    assert (after[0] - before[0], after[1] - before[1]) == pytest.approx((60, 30), abs=8)


def test_two_fingers_zoom(phone: Any) -> None:
    before = phone.evaluate("vicinalPage.view.eye.distance")
    touch(phone, [[(150, 200), (250, 200)], [(120, 200), (280, 200)], [(100, 200), (300, 200)]])
    assert before / phone.evaluate("vicinalPage.view.eye.distance") == pytest.approx(2, rel=0.15)


def test_tap_shows_and_selects_a_point(phone: Any) -> None:
    x, y = project(phone, 5)
    phone.touchscreen.tap(x, y)
    phone.wait_for_selector("#card:not([hidden])", timeout=WAIT_MS)
    assert len(phone.evaluate("vicinalPage.selectedIds()")) == 1
    phone.wait_for_timeout(400)
    phone.touchscreen.tap(5, 5)
    phone.wait_for_selector("#card", state="hidden", timeout=WAIT_MS)


def test_finger_draws_a_lasso(phone: Any) -> None:
    phone.tap("#lasso")
    rows = np.flatnonzero(CODES == 2)
    where = np.array([project(phone, int(row)) for row in rows])
    (left, top), (right, bottom) = where.min(axis=0) - 8, where.max(axis=0) + 8
    corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top + 4)]
    touch(phone, [[(float(x), float(y))] for x, y in corners])
    assert phone.inner_text("#selected-count") == "100"
    assert phone.get_attribute("#lasso", "aria-pressed") == "false"
