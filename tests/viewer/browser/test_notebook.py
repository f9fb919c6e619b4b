"""The widget in JupyterLab with a real kernel: shown, selected in both directions, colored and zoomed from Python."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from viewer.waiting import until

import vicinal

pytestmark = pytest.mark.nightly

START_S = 90
WAIT_MS = 60_000
CELLS = [
    """import numpy as np
from types import SimpleNamespace
from vicinal.viewer import explore
rng = np.random.default_rng(0)
codes = np.arange(300) % 3
places = np.array([[-6, 0], [6, 0], [0, 6]])[codes] + rng.normal(scale=0.7, size=(300, 2))
model = SimpleNamespace(embedding_=places)
view = explore(model, np.array(["ant", "bee", "cat"])[codes], values=places[:, 0],
               ids=[f"row-{a}" for a in range(300)], height=480)
other = explore(model, codes, height=300)
link = view.link(other)
view""",
    "view.selection = ['row-3', 'row-5']\nview.color_by = 'value'\nview.zoom_to(['row-3'])",
    "print('SELECTED', view.selection, 'END')",
]


def notebook(path: Path) -> None:
    cells = [
        {"cell_type": "code", "id": f"c{a}", "source": text, "metadata": {}, "outputs": [], "execution_count": None}
        for a, text in enumerate(CELLS)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[str]:
    """Start JupyterLab in an empty directory and return its address."""
    for name in ("anywidget", "jupyterlab", "ipykernel"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    notebook(tmp_path / "map.ipynb")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = [
        f"--port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        "--no-browser",
        "--allow-root",
    ]
    source = str(Path(vicinal.__file__).parents[1])
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")]),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(tmp_path / "settings"),
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
    }
    command = [sys.executable, "-m", "jupyterlab", *options]
    with (tmp_path / "lab.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address, server, tmp_path / "lab.log")
        yield address
    finally:
        server.terminate()
        try:
            server.wait(30)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(address: str, server: Any, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            urllib.request.urlopen(f"{address}/api", timeout=2)
            return
        except OSError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-2000:]}")


def run_cell(page: Any, number: int) -> None:
    """Run a cell; a key that comes before the kernel is connected is lost, so it is pressed until the cell runs."""
    started = "number => document.querySelectorAll('.jp-InputPrompt')[number].textContent.trim() !== '[ ]:'"
    from playwright.sync_api import TimeoutError as NotYet

    for _ in range(40):
        page.locator(".jp-CodeCell .cm-content").nth(number).click()
        page.keyboard.press("Control+Enter")
        with suppress(NotYet):
            page.wait_for_function(started, arg=number, timeout=3_000)
            return
    pytest.fail(f"cell {number} did not run")


@pytest.mark.timeout(300)
def test_widget_is_shown_and_shares_its_selection(browser: Any, lab: str, tmp_path: Path) -> None:
    page = browser.new_page(viewport={"width": 1200, "height": 900})
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    # JupyterLab's own dialogs, for example about a slow kernel, cover the notebook
    page.add_locator_handler(
        page.locator("dialog.jp-Dialog"), lambda dialog: dialog.locator("button.jp-mod-accept").click()
    )
    page.goto(f"{lab}/lab/tree/map.ipynb?reset")
    page.wait_for_selector(".jp-CodeCell .cm-content", timeout=WAIT_MS)
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status=idle]", timeout=WAIT_MS)
    run_cell(page, 0)
    page.wait_for_selector("[data-ready]", timeout=WAIT_MS)
    app = "document.querySelector('[data-ready]').vicinalApp"
    assert page.evaluate(f"{app}.state.data.n") == 300
    assert page.inner_text("#legend .classes >> nth=0").split()[0] == "ant"
    if shot := os.environ.get("VICINAL_SCREENSHOTS"):
        page.get_by_role("button", name="No", exact=True).click()
        page.wait_for_timeout(500)
        page.screenshot(path=Path(shot) / "notebook.png")
    # from Python to the page
    run_cell(page, 1)
    page.wait_for_function(f"{app}.state.selected.join() === '3,5'", timeout=WAIT_MS)
    page.wait_for_function(f"{app}.state.paint.column?.name === 'value'", timeout=WAIT_MS)
    page.wait_for_function(f"{app}.view.eye.distance < 0.5", timeout=WAIT_MS)
    # from the page to Python
    page.evaluate(f"{app}.state.select([11, 7])")
    run_cell(page, 2)
    page.wait_for_selector("text=SELECTED", timeout=WAIT_MS)
    page.wait_for_function("document.body.innerText.includes(\"SELECTED ['row-7', 'row-11'] END\")", timeout=WAIT_MS)
    # keys on the map are the map's, not the notebook's, where B adds a cell
    page.locator(".map").first.click(position={"x": 5, "y": 5})
    page.keyboard.press("b")
    page.wait_for_function(f"{app}.state.paint.column?.name === 'class'", timeout=WAIT_MS)
    assert page.locator(".jp-CodeCell").count() == len(CELLS)
    # the saved notebook contains the whole page, once
    page.keyboard.press("Control+s")
    until(lambda: "text/html" in (tmp_path / "map.ipynb").read_text())
    saved = json.loads((tmp_path / "map.ipynb").read_text())
    data = saved["cells"][0]["outputs"][0]["data"]
    assert "".join(data["text/html"]).count("<iframe srcdoc=") == 1
    assert json.dumps(saved).count("vicinal-xy0") == 1
    # a copy that somebody else opens is not trusted: it shows a picture and says so
    saved["cells"][0]["source"] = "# from an email"
    (tmp_path / "copy.ipynb").write_text(json.dumps(saved))
    page.goto(f"{lab}/lab/tree/copy.ipynb?reset")
    picture = page.locator('.jp-OutputArea-output img[src^="data:image/png"]')
    picture.wait_for(timeout=WAIT_MS)
    assert picture.evaluate("one => one.naturalWidth") > 300
    assert page.locator(".jp-OutputArea-output iframe").count() == 0
    assert "trust the notebook" in page.locator(".jp-OutputArea-output").first.inner_text()
    assert errors == []
    page.close()
