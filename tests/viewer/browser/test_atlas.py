"""The live page of an atlas in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.browser.pages import CENTERS, WAIT_MS, Open

from vicinal import UMAP, Atlas
from vicinal.atlas.serving import AtlasSession

pytestmark = pytest.mark.nightly

N = 300


def rows(n: int, seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=(n, 4))
    return (np.column_stack([CENTERS, CENTERS])[np.arange(n) % 3] + noise).astype(np.float32)


def test_page_shows_the_rows_that_are_appended_and_forgotten(open_page: Open, serve: Any, tmp_path: Path) -> None:
    atlas = Atlas.create(tmp_path / "letters", rows(N, 0), estimator=UMAP(n_neighbors=8, n_epochs=50, random_state=0))
    session = AtlasSession(tmp_path / "letters")
    page = open_page(serve(session).address)
    page.wait_for_function("vicinalPage.feed.frames === 1", timeout=WAIT_MS)
    assert page.inner_text("#live strong") == "Version 1"
    assert page.inner_text("#title") == "letters"
    # what would change the map is not offered
    assert [page.locator(f"#live {one}").count() for one in ("#project", "#save-map", "#save-model")] == [0, 0, 0]
    atlas.append(rows(30, 1))
    assert session.look()
    page.wait_for_function("vicinalPage.feed.frames === 2", timeout=WAIT_MS)
    assert page.inner_text("#count") == f"{N + 30} points"
    assert "30 added" in page.inner_text("#live")
    found = np.array(page.evaluate("[...vicinalPage.state.data.exact.x, ...vicinalPage.state.data.exact.y]"))
    assert np.array_equal(found.reshape(2, -1).T.astype(np.float32), atlas.embedding)
    atlas.forget(keep_last=200)
    assert session.look()
    page.wait_for_function("vicinalPage.feed.frames === 3", timeout=WAIT_MS)
    assert page.inner_text("#count") == "200 points"
    assert page.inner_text("#live strong") == "Version 3"
