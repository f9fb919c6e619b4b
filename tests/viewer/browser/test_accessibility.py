"""axe-core finds no serious fault on the page, in light and dark, on desktop and phone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from viewer.browser.pages import CODES, NAMES, PHONE, POSITIONS, Open, select

from vicinal import viewer
from vicinal.atlas.diff import MapVersion, write_diff

pytestmark = pytest.mark.nightly

SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("axe") / "map.html"
    hover = {"width": POSITIONS[:, 0], "note": [f"note {a}" for a in range(len(POSITIONS))]}
    return viewer.export(path, POSITIONS, NAMES[CODES], hover=hover, label="animal")


def faults(page: Any) -> list[str]:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in found if one["impact"] in SERIOUS]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_no_serious_fault_on_a_page_of_two_versions(
    open_page: Open, tmp_path: Path, scheme: str, device: dict[str, Any]
) -> None:
    before = MapVersion("old", POSITIONS[:200], range(200), CODES[:200], NAMES)
    after = MapVersion("new", POSITIONS[100:] + 1.0, range(100, 300), (CODES[100:] + 1) % 2, NAMES[:2])
    page = open_page(write_diff(tmp_path / "diff.html", before, after), color_scheme=scheme, **device)
    assert page.locator("#diff .kind.come, #diff .kind.go").count() > 0
    assert faults(page) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_no_serious_fault(open_page: Open, exported: Path, scheme: str, device: dict[str, Any]) -> None:
    page = open_page(exported, color_scheme=scheme, **device)
    assert faults(page) == []
    select(page, range(0, 100, 3))
    page.evaluate("vicinalPage.app.point(3)")
    assert faults(page) == []
    page.evaluate("vicinalPage.state.colorBy('width')")
    assert faults(page) == []
    for opened in ("help", "table", "savePicture"):
        page.evaluate(f"vicinalPage.app.{opened}()")
        assert faults(page) == []
        page.keyboard.press("Escape")
