"""vicinal.viewer.explore: the page in a notebook, whose selection is available in Python."""

from __future__ import annotations

import json
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

LONG_S = 60.0


@pytest.fixture(scope="module")
def model(digits: Any) -> vicinal.UMAP:
    return vicinal.UMAP(n_neighbors=7, n_epochs=30, random_state=1).fit(digits[:300])


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
        assert f'<iframe src="{view.address}"' in view._repr_html_()
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
    assert text.startswith("<iframe srcdoc=")
    assert "vicinal-xy" in text
    assert model.explore(live=False)._repr_html_() == text


def test_only_the_embedding_of_a_model_is_needed() -> None:
    other = SimpleNamespace(embedding_=np.random.default_rng(0).normal(size=(9, 2)))
    assert "vicinal-xy" in explore(other, live=False)._repr_html_()


def test_unfitted_model_is_refused() -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        explore(vicinal.UMAP())
