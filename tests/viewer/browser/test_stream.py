"""The live page of a growing map in a browser: new points, pause, reconnection, a second run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import vicinal
from vicinal.files.data_table import Column, DataTable, Role
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import StreamSession

pytestmark = pytest.mark.nightly

Open = Callable[..., Any]
WAIT_MS = 60_000
ROWS, BATCH = 900, 100
# Batches would be placed faster than a slow browser can draw: each batch needs a permit.
PERMITS = threading.Semaphore(0)


@pytest.fixture
def live(digits: Any, digit_labels: Any, serve: Any) -> Iterator[LiveServer]:
    while PERMITS.acquire(blocking=False):
        pass
    # rows are sorted by class, so that the legend grows too
    order = np.argsort(digit_labels[:ROWS], kind="stable")
    rows, labels = digits[:ROWS][order], digit_labels[:ROWS][order]

    def tables() -> Iterator[DataTable]:
        for begin in range(0, ROWS, BATCH):
            PERMITS.acquire()
            part = slice(begin, begin + BATCH)
            names = np.array([f"row {a}" for a in order[part]])
            columns = (Column("digit", Role.LABEL, labels[part]), Column("name", Role.ID, names))
            yield DataTable(rows[part], columns)

    def build(parameters: dict[str, Any], callback: Any) -> Any:
        return vicinal.ProgressiveUMAP(**parameters, callback=callback)

    session = StreamSession(
        tables,
        build,
        {"n_neighbors": 10, "random_state": 1, "batch_size": BATCH},
        total=ROWS,
        title="digits",
    )
    yield serve(session)
    PERMITS.release(4 * ROWS // BATCH)


def points(page: Any) -> int:
    return int(page.evaluate("vicinalPage.state.data.n"))


def wait_for_points(page: Any, least: int) -> None:
    page.wait_for_function("least => vicinalPage.state.data.n >= least", arg=least, timeout=WAIT_MS)


def test_growing_map_is_shown_paused_and_ends_with_the_positions_of_the_model(
    open_page: Open, live: LiveServer
) -> None:
    page = open_page(live.address)
    assert points(page) == 0
    page.evaluate(
        """() => { const { feed, state } = vicinalPage; window.seen = []; window.fresh = 0;
            const draw = feed.draw.bind(feed);
            feed.draw = async (...message) => { await draw(...message); window.seen.push(state.data.n);
                window.fresh = Math.max(window.fresh, ...vicinalPage.view.fresh); }; }"""
    )
    live.session.start()
    for n in range(BATCH, 501, BATCH):
        PERMITS.release()
        wait_for_points(page, n)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function("vicinalPage.feed.status.state === 'paused'", timeout=WAIT_MS)
    # the current batch may still be placed, but no other
    PERMITS.release(ROWS // BATCH)
    page.wait_for_timeout(700)
    stood = points(page)
    assert 500 <= stood <= 600
    assert "Paused" in page.inner_text("#live")
    page.wait_for_timeout(1200)
    assert points(page) == stood
    # a connection lost during a pause is restored with all rows so far
    frames = page.evaluate("vicinalPage.feed.frames")
    page.evaluate("vicinalPage.feed.drop()")
    page.wait_for_function("before => vicinalPage.feed.frames > before", arg=frames, timeout=WAIT_MS)
    assert points(page) == stood
    page.get_by_role("button", name="Resume").click()
    page.wait_for_function("vicinalPage.feed.exact !== null", timeout=WAIT_MS)
    sizes = page.evaluate("window.seen")
    assert sizes == sorted(sizes)
    assert len(set(sizes)) >= 5
    assert sizes[-1] == ROWS
    # the rows of the last batch were highlighted as new
    assert page.evaluate("window.fresh") == 2
    found = np.array(page.evaluate("[[...vicinalPage.feed.exact.x], [...vicinalPage.feed.exact.y]]"), dtype=np.float32)
    assert np.array_equal(found.T, live.session.model.embedding_)
    assert page.inner_text("#count") == f"{ROWS} points"
    assert page.locator("#legend .class").count() == 10
    assert page.evaluate("[...vicinalPage.state.counts].reduce((a, b) => a + b)") == ROWS
    text = page.inner_text("#live")
    assert all(word in text for word in ("Done", "900 of 900", "100.0 %", "trustworthiness"))
    page.evaluate("vicinalPage.state.select([0, 899])")
    assert sorted(page.evaluate("vicinalPage.selectedIds()")) == sorted(
        [page.evaluate("vicinalPage.state.data.ids.at(0)"), page.evaluate("vicinalPage.state.data.ids.at(899)")]
    )
    assert page.evaluate("vicinalPage.state.data.ids.at(899)").startswith("row ")


def test_hidden_classes_stay_hidden_and_a_second_run_starts_over(open_page: Open, live: LiveServer) -> None:
    page = open_page(live.address)
    live.session.start()
    PERMITS.release(2)
    wait_for_points(page, 200)
    page.locator("#legend .class").first.click()
    PERMITS.release(2)
    wait_for_points(page, 400)
    assert page.locator("#legend .class").first.get_attribute("aria-pressed") == "false"
    assert "shown" in page.inner_text("#count")
    PERMITS.release(2 * ROWS // BATCH)
    page.wait_for_function("vicinalPage.feed.exact !== null", timeout=WAIT_MS)
    hidden = page.evaluate("vicinalPage.state.counts[0]")
    assert page.evaluate("vicinalPage.state.visibleRows().length") == ROWS - hidden
    page.fill("input[name=n_neighbors]", "5")
    page.get_by_role("button", name="Run again").click()
    page.wait_for_function("vicinalPage.feed.exact?.run === 2", timeout=WAIT_MS)
    assert points(page) == ROWS
    # a page opened after the end shows all rows
    other = open_page(live.address)
    other.wait_for_function("vicinalPage.feed.exact !== null", timeout=WAIT_MS)
    assert points(other) == ROWS
    assert other.locator("#legend .class").count() == 10
