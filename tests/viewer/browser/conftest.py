"""Headless Chromium with software GL; without Chromium the tests are skipped with a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

READY_MS = 60_000
WINDOW = {"width": 1100, "height": 720}


@pytest.fixture
def complaints() -> list[str]:
    """Errors on the console, exceptions and network requests of the pages."""
    return []


@pytest.fixture
def serve() -> Iterator[Callable[[Any], Any]]:
    """Return a function that serves a session until all pages are closed: a page without its server complains."""
    servers = []

    def started(session: Any) -> Any:
        from vicinal.viewer.server import LiveServer

        servers.append(LiveServer(session).start())
        return servers[-1]

    yield started
    for server in servers:
        server.close()


@pytest.fixture
def open_page(browser: Any, complaints: list[str], serve: Any) -> Iterator[Callable[..., Any]]:
    """Return a function that opens a path or address and waits until the page is ready; fails on complaints."""
    pages = []

    def opened(where: Path | str, **context: Any) -> Any:
        page = browser.new_page(**{"viewport": WINDOW, **context})
        pages.append(page)
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on(
            "request",
            lambda asked: _note_network(asked.url, complaints) if str(where).startswith(("/", "file:")) else None,
        )
        page.goto(where.as_uri() if isinstance(where, Path) else where)
        page.wait_for_selector("html[data-ready]", timeout=READY_MS)
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []


def _note_network(address: str, complaints: list[str]) -> None:
    if not address.startswith(("file:", "data:", "blob:")):
        complaints.append(f"asked for {address}")
