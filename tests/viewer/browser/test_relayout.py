"""Pages that lay out again, opened from a file: bits of the library, breadcrumbs, parameters, a page that answers."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from viewer.browser.pages import PHONE, WAIT_MS, Open, select

import vicinal
from vicinal import viewer

DIGITS = load_digits()
X, LABELS = DIGITS.data[:700], DIGITS.target[:700]
K = 20
LAYOUT_MS = 60_000


@pytest.fixture(scope="module")
def model() -> Any:
    return vicinal.UMAP(n_neighbors=K, n_epochs=100, random_state=0).fit(X)


@pytest.fixture(scope="module")
def exported(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("layout") / "digits.html"
    return viewer.export(path, model, LABELS, label="digit", images=DIGITS.images[:700], interactive=True, neighbors=5)


def opened(open_page: Open, path: Path, **context: Any) -> Any:
    page = open_page(path, **context)
    page.wait_for_selector("html[data-layout=ready]", timeout=WAIT_MS)
    return page


def choose(page: Any, **settings: Any) -> None:
    """Set fields of the layout's parameters."""
    page.evaluate("document.querySelector('.settings').open = true")
    for name, value in settings.items():
        field = page.locator(f"#layout-{name}")
        if name in ("method", "supervised"):
            field.select_option(value)
        else:
            field.fill(str(value))


def ended(page: Any) -> None:
    page.wait_for_function("!vicinalPage.relayout.running && vicinalPage.relayout.levels.at(-1).made", timeout=LAYOUT_MS)
    page.wait_for_timeout(300)


def table_of(page: Any) -> dict[str, NDArray[Any]]:
    """Return the columns of the table that the page offers."""
    lines = list(csv.DictReader(io.StringIO(page.evaluate("vicinalPage.relayout.asText()"))))
    found = {name: np.array([float(line[name]) for line in lines], dtype=np.float32) for name in lines[0]}
    return found | {"row": found["row"].astype(np.int64)}


def in_python(model: Any, made: dict[str, NDArray[Any]], labels: Any = None, **parameters: Any) -> NDArray[np.float32]:
    """Lay out the same rows by the library, from the same start."""
    rows, start = made["row"], np.column_stack([made["start_x"], made["start_y"]])
    known = model.map_.neighbors.among(rows)
    given = {"n_neighbors": K, **parameters, "precomputed_knn": (known.index, known.distance), "init": start}
    return np.asarray(vicinal.UMAP(**given).fit(X[rows], labels).embedding_)


def same_bits(made: dict[str, NDArray[Any]], wanted: NDArray[np.float32]) -> bool:
    found = np.column_stack([made["x"], made["y"]])
    return found.tobytes() == wanted.astype(np.float32).tobytes()


@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_selection_is_laid_out_with_the_bits_of_the_library(
    open_page: Open, exported: Path, model: Any, device: dict[str, Any]
) -> None:
    page = opened(open_page, exported, **device)
    rows = np.flatnonzero(np.isin(LABELS, [3, 8, 9]))
    select(page, rows)
    choose(page, n_epochs=100, random_state=5)
    page.locator("#lay-out-selection").click()
    ended(page)
    made = table_of(page)
    assert np.array_equal(made["row"], rows)
    assert same_bits(made, in_python(model, made, n_epochs=100, random_state=5))
    assert page.inner_text("#count") == f"{len(rows)} points"
    assert page.inner_text(".crumbs").split("\n") == ["All points", "›", f"{len(rows)} points"]
    page.locator(".crumbs button").click()
    page.wait_for_function("document.getElementById('count').textContent === '700 points'", timeout=WAIT_MS)
    assert page.evaluate("vicinalPage.state.selected") == rows.tolist()
