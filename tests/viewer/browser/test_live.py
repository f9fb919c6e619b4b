"""The live page in a browser: frames of a running fit, pause, reconnection, a second run, projected rows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from viewer.waiting import until

import vicinal
from vicinal.viewer.packing import row_columns
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import Session

Open = Callable[..., Any]
WAIT_MS = 60_000


# Without a delay, the fit would end before a slow browser has drawn five frames. Until this is set, the epochs of a fit
# take longer than the browser is waited for.
FAST = threading.Event()


def build(parameters: dict[str, Any], callback: Any) -> Any:
    def watched(*told: Any) -> Any:
        FAST.wait(0.05)
        return callback(*told)

    return vicinal.UMAP(**parameters, callback=watched)


@pytest.fixture
def live(digits: Any, digit_labels: Any, serve: Any) -> Iterator[LiveServer]:
    FAST.clear()
    session = Session(
        digits[:600],
        build,
        {"n_neighbors": 15, "n_epochs": 2000, "random_state": 1},
        columns=row_columns(labels=digit_labels[:600]),
        title="digits",
    )
    yield serve(session)
    FAST.set()


def test_fit_is_shown_paused_and_ends_with_the_positions_of_the_model(open_page: Open, live: LiveServer) -> None:
    page = open_page(live.address)
    live.session.start()
    page.wait_for_function("vicinalPage.feed.frames >= 5", timeout=WAIT_MS)
    page.get_by_role("button", name="Pause").click()
    page.wait_for_function("vicinalPage.feed.status.state === 'paused'", timeout=WAIT_MS)
    epoch = live.session.snapshot.epoch
    # a connection lost during a pause is restored, and the fit continues
    page.evaluate("vicinalPage.feed.drop()")
    frames = page.evaluate("vicinalPage.feed.frames")
    page.wait_for_function("before => vicinalPage.feed.frames > before", arg=frames, timeout=WAIT_MS)
    FAST.set()
    page.get_by_role("button", name="Resume").click()
    page.wait_for_function("vicinalPage.feed.exact !== null", timeout=WAIT_MS)
    assert live.session.snapshot.epoch >= epoch
    found = np.array(page.evaluate("[[...vicinalPage.feed.exact.x], [...vicinalPage.feed.exact.y]]"), dtype=np.float32)
    assert np.array_equal(found.T, live.session.model.embedding_)
    assert page.inner_text(".stage strong") == "Done"
    assert page.is_hidden("#busy")


@pytest.mark.nightly
def test_second_run_and_projected_rows(open_page: Open, live: LiveServer, tmp_path: Path, digits: Any) -> None:
    FAST.set()
    live.session.start({"n_epochs": 50})
    page = open_page(live.address)
    page.wait_for_function("vicinalPage.feed.exact !== null", timeout=WAIT_MS)
    page.fill("input[name=n_neighbors]", "5")
    page.get_by_role("button", name="Run again").click()
    page.wait_for_function("vicinalPage.feed.exact?.run === 2", timeout=WAIT_MS)
    assert live.session.parameters["n_neighbors"] == 5
    page.evaluate("vicinalPage.state.select([1, 2, 3])")
    until(lambda: live.session.selection == [1, 2, 3])
    np.save(tmp_path / "new rows.npy", digits[600:640])
    page.set_input_files("#upload", tmp_path / "new rows.npy")
    page.wait_for_function("document.getElementById('count')?.textContent.startsWith('640')", timeout=WAIT_MS)
    page.wait_for_function("document.documentElement.dataset.ready", timeout=WAIT_MS)
    assert "new: new rows.npy" in page.inner_text("#legend")


def test_wrong_token_is_refused(browser: Any, live: LiveServer) -> None:
    page = browser.new_page()
    answer = page.goto(live.address.replace(live.token, "wrong"))
    assert answer.status == 403
    assert "vicinal-xy" not in page.content()
    page.close()


def test_page_of_another_origin_cannot_open_the_feed(browser: Any, live: LiveServer) -> None:
    page = browser.new_page()
    page.goto("data:text/html,<p>elsewhere")
    refused = page.evaluate(
        """address => new Promise(done => {
            const socket = new WebSocket(address);
            socket.onmessage = () => done('heard something');
            socket.onclose = () => done('refused');
        })""",
        live.address.replace("http", "ws") + "feed",
    )
    assert refused == "refused"
    page.close()


class Turned:
    """A fit whose second map is the first one mirrored, turned, shrunk and shifted."""

    PLACES = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32) * [3, 1]

    def __init__(self, runs: list[int]) -> None:
        self.runs = runs

    def fit(self, X: Any) -> None:
        self.runs.append(1)
        angle = 2.0 if len(self.runs) > 1 else 0.0
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        mirror = [1, -1] if len(self.runs) > 1 else [1, 1]
        shrink = 0.3 if len(self.runs) > 1 else 1.0
        self.embedding_ = ((self.PLACES * mirror) @ turn * shrink + len(self.runs)).astype(np.float32)


@pytest.mark.nightly
def test_second_run_is_turned_onto_the_first(open_page: Open, serve: Any) -> None:
    runs: list[int] = []
    rows = np.zeros((200, 3), dtype=np.float32)
    session = Session(rows, lambda parameters, callback: Turned(runs), {"n_neighbors": 5}, title="turned")
    page = open_page(serve(session).address)
    session.start()
    page.wait_for_function("vicinalPage.feed.exact?.run === 1", timeout=WAIT_MS)
    places = "[[...vicinalPage.state.data.x], [...vicinalPage.state.data.y]]"
    first = np.array(page.evaluate(places))
    page.evaluate("vicinalPage.view.onView(() => (window.moves = (window.moves ?? 0) + 1))")
    page.get_by_role("button", name="Run again").click()
    page.wait_for_function("vicinalPage.feed.exact?.run === 2", timeout=WAIT_MS)
    assert np.array(page.evaluate(places)) == pytest.approx(first, abs=1e-4)
    assert page.evaluate("window.moves") > 2, "the points move there"
    # the numbers of the model stay as they are
    found = np.array(page.evaluate("[[...vicinalPage.feed.exact.x], [...vicinalPage.feed.exact.y]]"), dtype=np.float32)
    assert np.array_equal(found.T, session.model.embedding_)
