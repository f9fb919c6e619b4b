"""vicinal.viewer.explore: the map in a notebook, whose selection is available in Python."""

from __future__ import annotations

import base64
import importlib.util
import json
import re
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from websockets.sync.client import connect

import vicinal
from vicinal.viewer import explore
from vicinal.viewer.session import Session

LONG_S = 240.0
PNG = b"\x89PNG\r\n"


@pytest.fixture(scope="module")
def model(digits: Any) -> vicinal.UMAP:
    return vicinal.UMAP(n_neighbors=7, n_epochs=30, random_state=1).fit(digits[:300])


@pytest.fixture
def without_widgets(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "anywidget" else real(name))


@pytest.mark.usefixtures("without_widgets")
def test_selection_is_returned_as_ids(model: vicinal.UMAP, monkeypatch: pytest.MonkeyPatch) -> None:
    selected = threading.Event()

    class WatchedSession(Session):
        def __setattr__(self, name: str, value: Any) -> None:
            super().__setattr__(name, value)
            if name == "selection" and value:
                selected.set()

    monkeypatch.setattr("vicinal.viewer.session.Session", WatchedSession)
    view = explore(model, np.arange(300) % 2, ids=[f"r{a}" for a in range(300)])
    try:
        shown = view._repr_html_()
        assert f'data-address="{view.address}"' in shown
        # a saved notebook shows the stored page when the server is gone
        assert "<iframe srcdoc=" in shown
        assert "vicinal-xy0" in shown
        assert view.selection == []
        _, _, own, token, _ = view.address.split("/")
        with connect(f"ws://{own}/{token}/feed", origin=f"http://{own}") as feed:  # type: ignore[arg-type]
            feed.send(json.dumps({"type": "select", "rows": [9, 4]}))
            assert selected.wait(LONG_S)
        assert view.selection == ["r4", "r9"]
    finally:
        view.close()


def test_offline_page_is_stored_in_the_notebook(model: vicinal.UMAP) -> None:
    text = explore(model, live=False)._repr_html_()
    assert text.count("<iframe srcdoc=") == 1
    assert text.count("vicinal-xy0") == 1
    assert model.explore(live=False)._repr_html_() == text


def test_only_the_embedding_of_a_model_is_needed() -> None:
    for width in (2, 3):
        other = SimpleNamespace(embedding_=np.random.default_rng(0).normal(size=(9, width)))
        assert "vicinal-xy0" in explore(other, live=False)._repr_html_()
    with pytest.raises(ValueError, match=r"shape \(n, 2\) or \(n, 3\), got float64 of shape \(9, 5\)"):
        explore(SimpleNamespace(embedding_=np.zeros((9, 5))))


def test_unfitted_model_is_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        explore(vicinal.UMAP())


def test_widget_shares_selection_colors_and_view(model: vicinal.UMAP) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed: pip install 'vicinal[notebook]'")
    ids = [f"r{a}" for a in range(300)]
    widget = explore(model, np.arange(300) % 2, values=np.arange(300) / 7, label="kind", ids=ids)
    widget._selected = [4, 9]  # as the page sets it
    assert widget.selection == ["r4", "r9"]
    widget.selection = ["r7", "r2"]
    assert widget._selected == [2, 7]
    with pytest.raises(ValueError, match="no row with the id 'r300'"):
        widget.selection = ["r300"]
    assert widget.color_by == "kind"
    widget.color_by = "value"
    with pytest.raises(ValueError, match="color_by must be one of kind, value, got 'size'"):
        widget.color_by = "size"
    widget.zoom_to(["r1"])
    first = widget._zoom
    widget.zoom_to(["r1"])
    assert widget._zoom != first, "the same rows can be asked for twice"
    assert widget._zoom["rows"] == [1]
    other = explore(model)
    link = widget.link(other)
    other.selection = [3]
    assert widget.selection == ["r3"]
    link.unlink()
    with pytest.raises(ValueError, match="same rows, got 300 and 9"):
        widget.link(explore(SimpleNamespace(embedding_=np.random.default_rng(0).normal(size=(9, 2)))))


def test_widget_is_stored_as_a_page_too(model: vicinal.UMAP) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed: pip install 'vicinal[notebook]'")
    data, _ = explore(model)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert data["text/html"].count("<iframe srcdoc=") == 1


def test_data_are_in_a_saved_notebook_once(model: vicinal.UMAP) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed: pip install 'vicinal[notebook]'")
    widget = explore(model, ids=[f"r{a}" for a in range(300)])
    data, _ = widget._repr_mimebundle_()
    assert data["text/html"].count("vicinal-xy0") == 1
    assert base64.b64decode(data["image/png"]).startswith(PNG)
    # the state, which a notebook may store too, has the program and the description, but no section
    parts = {name: value.values() if isinstance(value, dict) else [value] for name, value in widget.get_state().items()}
    assert not [name for name, values in parts.items() if any(isinstance(value, bytes) for value in values)]
    sent: list[Any] = []
    widget.send = lambda content, buffers=None: sent.append((content, buffers))
    widget._handle_custom_msg({"type": "data"}, [])
    (told, buffers) = sent[0]
    assert dict(zip(told["names"], buffers, strict=True)) == widget._packed.sections


@pytest.mark.nightly
@pytest.mark.usefixtures("without_widgets")
def test_viewers_without_scripts_show_a_picture_and_say_what_to_do(model: vicinal.UMAP) -> None:
    exporting = pytest.importorskip("nbconvert", reason="nbconvert is not installed")
    nbformat = pytest.importorskip("nbformat", reason="nbformat is not installed")
    shown = explore(model, np.arange(300) % 2, live=False)
    data = {"text/html": shown._repr_html_(), "image/png": base64.b64encode(shown._repr_png_()).decode()}
    output = nbformat.v4.new_output("execute_result", data, execution_count=1)
    cell = nbformat.v4.new_code_cell("view", outputs=[output], execution_count=1)
    book = nbformat.v4.new_notebook(cells=[cell])
    trusted, _ = exporting.HTMLExporter().from_notebook_node(book)
    assert "<iframe" in trusted
    assert "vicinal-xy0" in trusted
    # a viewer that removes frames, as JupyterLab and GitHub do, leaves note and picture
    without_frames = re.sub(r"<iframe.*?</iframe>", "", trusted, flags=re.DOTALL)
    picture = re.search(r'<img[^>]*src="data:image/png;base64,([^"]*)"', without_frames)
    assert picture is not None
    assert base64.b64decode(picture[1]).startswith(PNG)
    assert "trust the notebook" in without_frames
    assert "vicinal-xy0" not in without_frames
    # nbconvert's own cleaning removes pictures that are stored in HTML, too
    cleaned, _ = exporting.HTMLExporter(sanitize_html=True).from_notebook_node(book)
    assert "<iframe" not in cleaned
    assert "trust the notebook" in cleaned


def test_program_that_executes_a_notebook_gets_the_page_instead_of_a_widget(
    model: vicinal.UMAP, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed: pip install 'vicinal[notebook]'")
    monkeypatch.setattr("vicinal.viewer.widget._nobody_watches", lambda: True)
    data, _ = explore(model)._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" not in data
    assert "<iframe srcdoc=" in data["text/html"]
