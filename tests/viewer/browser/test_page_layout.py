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
from viewer.browser.test_accessibility import faults

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
    page.wait_for_function(
        "!vicinalPage.relayout.running && vicinalPage.relayout.levels.at(-1).made", timeout=LAYOUT_MS
    )
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


def alike(made: dict[str, NDArray[Any]], wanted: NDArray[np.float32]) -> bool:
    """Tell whether places agree as far as logarithms and means do that browsers and NumPy compute differently."""
    away = np.linalg.norm(np.column_stack([made["x"], made["y"]]) - wanted, axis=1)
    return bool(np.median(away) < 0.01 * np.ptp(wanted))


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
    assert page.inner_text(".crumbs").split("\n")[::2] == ["All points", f"{len(rows)} points"]
    page.locator(".crumbs button").click()
    page.wait_for_function("document.getElementById('count').textContent === '700 points'", timeout=WAIT_MS)
    assert page.evaluate("vicinalPage.state.selected") == rows.tolist()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("settings", "parameters"),
    [
        ({"n_neighbors": 8, "min_dist": 0.4, "spread": 1.5}, {"n_neighbors": 8, "min_dist": 0.4, "spread": 1.5}),
        ({"repulsion_strength": 2.5}, {"repulsion_strength": 2.5}),
        ({"supervised": "digit"}, {}),
        ({"method": "DensMAP"}, {"densmap": True}),
    ],
    ids=["shape", "repulsion", "supervised", "densmap"],
)
def test_whole_map_is_laid_out_with_other_parameters(
    open_page: Open, exported: Path, model: Any, settings: dict[str, Any], parameters: dict[str, Any]
) -> None:
    page = opened(open_page, exported)
    choose(page, **settings, n_epochs=60, random_state=3)
    page.locator("#lay-out").click()
    ended(page)
    made = table_of(page)
    labels = LABELS if "supervised" in settings else None
    agree = alike if "method" in settings else same_bits
    assert agree(made, in_python(model, made, labels, **parameters, n_epochs=60, random_state=3))
    assert not page.is_visible(".crumbs")


@pytest.mark.nightly
def test_largevis_has_the_perplexity_of_its_neighbors(open_page: Open, exported: Path) -> None:
    page = opened(open_page, exported)
    choose(page, method="LargeVis", n_neighbors=19, n_epochs=100, random_state=3)
    page.locator("#lay-out").click()
    ended(page)
    made = table_of(page)
    start = np.column_stack([made["start_x"], made["start_y"]])
    wanted = vicinal.LargeVis(perplexity=6.0, n_epochs=100, init=start, random_state=3).fit(X)
    assert same_bits(made, np.asarray(wanted.embedding_))


@pytest.mark.nightly
def test_tsne_lays_out_small_maps(open_page: Open, exported: Path) -> None:
    page = opened(open_page, exported)
    choose(page, method="TSNE", n_neighbors=19, n_epochs=300)
    page.locator("#lay-out").click()
    ended(page)
    made = table_of(page)
    start = np.column_stack([made["start_x"], made["start_y"]])
    wanted = vicinal.TSNE(perplexity=6.0, max_iter=300, init=start, method="exact").fit(X)
    assert alike(made, np.asarray(wanted.embedding_))


@pytest.mark.nightly
def test_part_of_a_part_leads_back(open_page: Open, exported: Path) -> None:
    page = opened(open_page, exported)
    first = np.flatnonzero(np.isin(LABELS, [1, 4, 7]))
    second = np.flatnonzero(LABELS == 4)
    choose(page, n_epochs=30)
    before = page.evaluate("[...vicinalPage.state.data.x]")
    select(page, first)
    page.locator("#lay-out-selection").click()
    ended(page)
    middle = page.evaluate("[...vicinalPage.state.data.x]")
    select(page, np.flatnonzero(np.isin(first, second)))
    page.locator("#lay-out-selection").click()
    ended(page)
    assert np.array_equal(table_of(page)["row"], second)
    # images, ids and neighbors are those of the rows that are shown
    assert page.evaluate("vicinalPage.state.data.ids.at(0)") == str(second[0])
    shade = "vicinalPage.state.data.image(2).then(image => [...image.data].filter((_, at) => at % 4 === 0))"
    wanted = DIGITS.images[second[2]]
    assert np.corrcoef(page.evaluate(shade), wanted.ravel())[0, 1] > 0.999
    near = page.evaluate("vicinalPage.state.data.neighbors(1)")
    assert all(0 <= row < len(second) for row in near)
    assert page.locator(".classes li").count() == 1
    page.locator(".crumbs button").nth(1).click()
    page.wait_for_function("n => vicinalPage.state.data.n === n", arg=len(first), timeout=WAIT_MS)
    assert page.evaluate("[...vicinalPage.state.data.x]") == middle
    page.locator(".crumbs button").first.click()
    page.wait_for_function("vicinalPage.state.data.n === 700", timeout=WAIT_MS)
    assert page.evaluate("[...vicinalPage.state.data.x]") == before
    assert page.evaluate("vicinalPage.state.selected.length") == len(first)
    assert page.locator(".classes li").count() == 10


@pytest.mark.nightly
def test_layout_stops_and_is_restored(open_page: Open, exported: Path) -> None:
    page = opened(open_page, exported)
    before = page.evaluate("[...vicinalPage.state.data.x]")
    choose(page, n_epochs=5000)
    page.locator("#lay-out").click()
    page.wait_for_function("vicinalPage.relayout.frames > 2", timeout=LAYOUT_MS)
    # the page answers while the layout runs
    page.keyboard.press("d")
    assert page.evaluate("vicinalPage.state.themeName") == "dark"
    page.locator("#stop").click()
    ended(page)
    assert page.evaluate("vicinalPage.relayout.levels[0].made.epoch") < 5000
    assert "stopped" in page.inner_text("#layout-note")
    assert page.evaluate("[...vicinalPage.state.data.x]") != before
    page.locator("#undo").click()
    page.wait_for_function("vicinalPage.relayout.levels[0].made === null", timeout=WAIT_MS)
    assert page.evaluate("[...vicinalPage.state.data.x]") == before


@pytest.mark.nightly
def test_numbers_outside_of_their_range_are_corrected(open_page: Open, exported: Path) -> None:
    page = opened(open_page, exported)
    choose(page, n_neighbors=500, min_dist=3, spread=2, n_epochs=20, random_state=-4, repulsion_strength="")
    page.locator("#lay-out").click()
    ended(page)
    fields = {"n_neighbors": "20", "min_dist": "2", "random_state": "0", "repulsion_strength": "1"}
    assert {name: page.input_value(f"#layout-{name}") for name in fields} == fields


@pytest.mark.nightly
def test_equal_rows_share_a_place(open_page: Open, tmp_path: Path) -> None:
    rows = np.vstack([X[:200], X[50:90], X[60:70]])
    model = vicinal.UMAP(n_neighbors=10, n_epochs=30, random_state=0).fit(rows)
    page = opened(open_page, viewer.export(tmp_path / "equal.html", model, interactive=True))
    # without the first ones of some groups of equal rows
    chosen = np.setdiff1d(np.arange(250), [55, 60, 61, 70])
    select(page, chosen)
    choose(page, n_epochs=30)
    page.locator("#lay-out-selection").click()
    ended(page)
    made = table_of(page)
    known, start = model.map_.neighbors.among(chosen), np.column_stack([made["start_x"], made["start_y"]])
    given = {"n_neighbors": 10, "precomputed_knn": (known.index, known.distance), "init": start}
    wanted = vicinal.UMAP(**given, n_epochs=30, random_state=0).fit(rows[chosen]).embedding_
    assert len(np.unique(wanted, axis=0)) == 200
    assert same_bits(made, wanted)


@pytest.mark.nightly
def test_map_in_space_is_laid_out(open_page: Open, tmp_path: Path) -> None:
    model = vicinal.UMAP(n_neighbors=K, n_components=3, n_epochs=50, random_state=0).fit(X)
    page = opened(open_page, viewer.export(tmp_path / "space.html", model, LABELS, interactive=True))
    choose(page, n_epochs=40)
    page.locator("#lay-out").click()
    ended(page)
    made = table_of(page)
    start = np.column_stack([made[f"start_{axis}"] for axis in "xyz"])
    table = model.map_.neighbors
    wanted = vicinal.UMAP(
        n_neighbors=K,
        n_components=3,
        precomputed_knn=(table.index, table.distance),
        init=start,
        n_epochs=40,
        random_state=0,
    ).fit(X)
    assert np.column_stack([made[axis] for axis in "xyz"]).tobytes() == wanted.embedding_.tobytes()


@pytest.mark.nightly
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("device", [{}, PHONE], ids=["desktop", "phone"])
def test_no_serious_fault_of_access(open_page: Open, exported: Path, scheme: str, device: dict[str, Any]) -> None:
    page = opened(open_page, exported, color_scheme=scheme, **device)
    choose(page, n_epochs=20)
    assert faults(page) == []
    select(page, range(0, 700, 2))
    page.locator("#lay-out-selection").click()
    ended(page)
    assert faults(page) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kept", ["float16", 12])
def test_new_rows_are_placed(open_page: Open, model: Any, tmp_path: Path, kept: Any) -> None:
    path = viewer.export(tmp_path / "rows.html", model, LABELS, interactive=True, rows=kept)
    page = opened(open_page, path)
    fresh = DIGITS.data[700:730]
    text = "\n".join([",".join(f"{value:g}" for value in row) for row in [*fresh, X[5]]])
    page.evaluate("document.querySelector('.placing').open = true")
    page.locator("#new-rows").fill(text)
    page.locator("#place").click()
    page.wait_for_function("vicinalPage.state.data.n === 731 && !vicinalPage.relayout.running", timeout=LAYOUT_MS)
    assert page.inner_text("#layout-note") == "31 new rows placed"
    found = np.array(page.evaluate("[[...vicinalPage.state.data.x], [...vicinalPage.state.data.y]]")).T
    # a row of the fit has its own place
    assert np.allclose(found[730], found[5], atol=1e-5)
    wanted = model.transform(fresh)
    low, extent = model.embedding_.min(axis=0), np.ptp(model.embedding_, axis=0)
    away = np.linalg.norm(found[700:730] - (wanted - low - extent / 2) * 2 / extent.max(), axis=1)
    assert np.median(away) < 0.01 if kept == "float16" else np.median(away) < 0.1
    assert page.evaluate("vicinalPage.state.selected.length") == 31
    assert page.locator(".classes li").count() == 11
    page.locator(".crumbs button").first.click()
    page.wait_for_function("vicinalPage.state.data.n === 700", timeout=WAIT_MS)
    page.locator("#new-rows").fill("1,2,3")
    page.locator("#place").click()
    page.wait_for_function(
        "document.getElementById('layout-note').textContent === 'row 1 has 3 columns, the map 64'", timeout=WAIT_MS
    )
