"""The site in a headless Chromium: no errors on the console, search, light and dark, phone width, sliders, algorithms.

With VICINAL_SCREENSHOTS=FOLDER the tests write pictures of the pages, to be looked at.
"""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import running_chromium
from sklearn.datasets import load_digits

import vicinal

pytestmark = pytest.mark.nightly

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
PAGES = (
    *("index.html", "start/index.html", "start/reading.html", "start/faq.html", "examples/index.html"),
    *("reference/index.html", "reference/api/UMAP.html", "survey/umap.html", "survey/densmap.html", "equations.html"),
    "survey/steps.html",
    *("internals/index.html", "internals/architecture.html", "benchmarks.html", "guides/forces.html"),
)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Serve the site on a free port."""
    handler = functools.partial(QuietHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with running_chromium() as started:
        yield started


class Visit:
    """A page of the site, with everything it complained about: errors on the console, failed and foreign requests."""

    def __init__(self, browser: Any, address: str, **context: Any) -> None:
        self.complaints: list[str] = []
        self.address = address
        self.page = browser.new_page(**{"viewport": DESKTOP, **context})
        self.page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self.note_foreign)
        self.page.on("requestfailed", self.note_failed)
        self.page.on("response", lambda got: self.complaints.append(got.url) if got.status >= 400 else None)

    def note_foreign(self, asked: Any) -> None:
        if not asked.url.startswith((self.address, "data:", "blob:")):
            self.complaints.append(f"asked for {asked.url}")

    def note_failed(self, asked: Any) -> None:
        # the browser itself ends requests of a page that it leaves
        if asked.failure != "net::ERR_ABORTED":
            self.complaints.append(f"failed: {asked.url}: {asked.failure}")

    def open(self, path: str) -> None:
        self.page.goto(f"{self.address}/{path}", wait_until="load")
        if self.page.evaluate("Boolean(window.MathJax)"):
            self.page.evaluate("MathJax.startup && MathJax.startup.promise")

    def picture(self, name: str) -> None:
        if "VICINAL_SCREENSHOTS" in os.environ:
            folder = Path(os.environ["VICINAL_SCREENSHOTS"])
            folder.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=folder / f"{name}.png")


@pytest.fixture
def visit(browser: Any, address: str) -> Iterator[Any]:
    """Return a function that makes a Visit; a complaint of any of them fails the test."""
    visits: list[Visit] = []

    def make(**context: Any) -> Visit:
        visits.append(Visit(browser, address, **context))
        return visits[-1]

    yield make
    for one in visits:
        one.page.close()
    assert [complaint for one in visits for complaint in one.complaints] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_errors(visit: Any, scheme: str) -> None:
    one = visit(color_scheme=scheme)
    for path in PAGES:
        one.open(path)
        assert one.page.title()
        assert one.page.locator("h1").count() >= 1
        assert one.page.evaluate("document.documentElement.dataset.theme") == scheme
        one.picture(f"{scheme}-{path.replace('/', '-').removesuffix('.html')}")
    background = one.page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in background.strip("rgba()").split(",")[:3])
    assert (brightness > 384) == (scheme == "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_figures_of_guides_fit_the_page(visit: Any, scheme: str) -> None:
    one = visit(color_scheme=scheme)
    # the median brightness of the upper edge of each visible picture, 0 to 255
    edge = """pictures => pictures.filter(one => one.offsetWidth > 0).map(one => {
        const canvas = new OffscreenCanvas(one.naturalWidth, 1), drawing = canvas.getContext("2d");
        drawing.drawImage(one, 0, 0);
        const {data} = drawing.getImageData(0, 0, one.naturalWidth, 1);
        const mean = a => (data[4 * a] + data[4 * a + 1] + data[4 * a + 2]) / 3;
        return [...Array(one.naturalWidth).keys()].map(mean).sort((a, b) => a - b)[one.naturalWidth >> 1]; })"""
    for path, least in (("guides/reliability.html", 4), ("guides/forces.html", 6), ("index.html", 1)):
        one.open(path)
        found = one.page.eval_on_selector_all("article img", edge)
        assert len(found) >= least
        assert all((brightness > 128) == (scheme == "light") for brightness in found), (path, found)


def test_theme_switch_changes_the_page(visit: Any) -> None:
    one = visit(color_scheme="light")
    one.open("index.html")
    for mode in ("dark", "light"):
        one.page.locator("button.theme-switch-button:visible").first.click()
        one.page.locator(f"button.theme-change-button[data-mode={mode}]:visible").first.click()
        assert one.page.evaluate("document.documentElement.dataset.theme") == mode


def test_formulas_are_drawn(visit: Any) -> None:
    one = visit()
    one.open("survey/umap.html")
    one.page.wait_for_selector("mjx-container svg", timeout=30_000)
    assert one.page.locator("mjx-container").count() > 20
    assert one.page.locator("mjx-merror").count() == 0
    one.page.locator("#equation-1-directed-membership").scroll_into_view_if_needed()
    one.picture("formula")


@pytest.mark.parametrize(
    "page", ["theory", "relatives", "repulsion", "densmap", "parametric", "progressive", "index"], ids=str
)
def test_formulas_of_the_survey_have_no_errors(visit: Any, page: str) -> None:
    one = visit()
    one.open(f"survey/{page}.html")
    one.page.wait_for_selector("mjx-container svg", timeout=30_000)
    assert one.page.locator("mjx-merror").count() == 0


@pytest.mark.parametrize(("query", "wanted"), [("ProgressiveUMAP", "ProgressiveUMAP"), ("perplexity", "TSNE")])
def test_search_finds_pages(visit: Any, query: str, wanted: str) -> None:
    one = visit()
    one.open(f"search.html?q={query}")
    one.page.wait_for_selector("#search-results li a", timeout=30_000)
    results = one.page.locator("#search-results li a").all_inner_texts()
    assert any(wanted in text for text in results)
    one.picture(f"search-{query}")


@pytest.mark.parametrize(
    ("query", "wanted"),
    [("ProgressiveUMAP", "ProgressiveUMAP"), ("min_dist", "parameters"), ("transform new rows", "New rows")],
)
def test_search_of_a_site_in_files_ranks_and_shows_excerpts(browser: Any, site: Path, query: str, wanted: str) -> None:
    page = browser.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(f"{(site / 'search.html').as_uri()}?q={query}")
    page.wait_for_selector("#search-results li a", timeout=30_000)
    best = page.locator("#search-results li").all()[:5]
    assert any(wanted in one.inner_text() for one in best)
    words = {word.lower() for word in page.locator("#search-results mark").all_inner_texts()}
    assert any(query.lower().split("_")[0].split()[0] in word for word in words)
    page.locator("#search-results a").first.click()
    page.wait_for_load_state()
    assert page.url.startswith("file://")
    assert "search.html" not in page.url
    assert complaints == []
    page.close()


def test_best_result_of_a_name_is_its_description(browser: Any, site: Path) -> None:
    page = browser.new_page()
    for name in ("reliability", "clusters", "choose", "DensMAP"):
        page.goto(f"{(site / 'search.html').as_uri()}?q={name}")
        page.wait_for_selector("#search-results li a", timeout=30_000)
        titles = page.locator("#search-results li a").all_inner_texts()
        assert f"vicinal.{name}" in titles[:2]
        assert name not in titles[:3], "a heading without a text of its own"
        assert all(len(text) > 20 for text in page.locator("#search-results li p").all_inner_texts()[:3])
    page.close()


def test_wide_equations_scroll_on_a_phone(visit: Any) -> None:
    one = visit(viewport=PHONE)
    one.open("survey/theory.html")
    one.page.wait_for_selector("mjx-container svg", timeout=30_000)
    wide = one.page.evaluate(
        """() => [...document.querySelectorAll("div.math")]
            .filter(one => one.querySelector("svg").getBoundingClientRect().width > one.clientWidth)
            .map(one => [one, ...one.querySelectorAll("*")].some(part =>
                part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX === "auto"))"""
    )
    assert wide, "the page has an equation wider than a phone"
    assert all(wide)


def test_sliders_of_parameters_move_the_points(visit: Any) -> None:
    one = visit()
    one.open("start/parameters.html")
    maps = "document.querySelector('.parameter-maps').maps"
    spread = f"{maps}.places.reduce((sum, at) => sum + at * at, 0)"
    still = f"() => {maps}.places.every((at, a) => at === {maps}.target()[a])"
    found = set()
    for value in ("0", "4"):
        one.page.locator("input[name=dist]").fill(value)
        one.page.wait_for_function(still, timeout=30_000)
        found.add(one.page.evaluate(spread))
    assert len(found) == 2
    assert one.page.locator("output[for=slider-dist]").inner_text() == "0.9"
    one.picture("parameters")


@pytest.mark.parametrize("path", PAGES)
def test_pages_fit_a_phone(visit: Any, path: str) -> None:
    one = visit(viewport=PHONE)
    one.open(path)
    too_wide = one.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    one.picture(f"phone-{path.replace('/', '-').removesuffix('.html')}")
    assert too_wide <= 1


def test_tables_of_the_reference_need_no_scrolling(visit: Any) -> None:
    one = visit()
    one.open("reference/index.html")
    wider = "table => table.parentElement.scrollWidth - table.parentElement.clientWidth"
    tables = one.page.locator("table.autosummary")
    assert tables.count() >= 4
    for table in tables.all():
        assert table.evaluate(wider) <= 1


def test_sliders_run_the_core(visit: Any) -> None:
    """The map keeps the neighbors of the data; without repulsion neighbors fall onto each other."""
    one = visit()
    one.open("survey/sliders.html")
    page = one.page
    found = "document.querySelector('.slider-map').map"

    def settled(runs: int) -> np.ndarray[Any, Any]:
        page.wait_for_function(f"{found}?.done && {found}.runs >= {runs}", timeout=120_000)
        return np.array(page.evaluate(f"[...{found}.places]")).reshape(-1, 2)

    digits = load_digits().data
    usual = settled(1)
    one.picture("sliders")
    assert vicinal.quality.trustworthiness(digits, usual) > 0.97
    page.locator("input[name=repulsion_strength]").fill("0")
    packed = settled(2)
    near = [np.median(vicinal.find_neighbors(map, 2).distance[:, 1]) / np.ptp(map) for map in (usual, packed)]
    assert near[1] < 0.3 * near[0]
    page.locator("select[name=data]").select_option("roll")
    page.locator("input[name=repulsion_strength]").fill("1")
    roll = settled(3)
    assert len(roll) == 1500
    assert "epoch 500 of 500" in page.inner_text(".slider-map .status")
    one.picture("sliders-roll")


@pytest.mark.parametrize("where", ["served", "file"])
def test_algorithms_go_step_by_step(visit: Any, site: Path, where: str) -> None:
    """The keyboard steps through the lines; the page's own maps keep the neighbors of the rows."""
    one = visit(viewport=PHONE, color_scheme="dark") if where == "file" else visit()
    if where == "file":
        one.address = site.as_uri()
    one.open("survey/steps.html")
    page, rows = one.page, load_digits().data[:120]

    def places(number: int) -> np.ndarray[Any, Any]:
        found = f"document.querySelector('[data-algorithm=\"{number}\"]').steps.state.places"
        return np.array(page.evaluate(f"[...{found}]")).reshape(-1, 2)

    def lines(number: int) -> list[int]:
        every = f"[...document.querySelectorAll('[data-algorithm=\"{number}\"] li')]"
        return list(page.evaluate(f"{every}.flatMap((line, a) => line.ariaCurrent === 'step' ? [a + 1] : [])"))

    def step(number: int, count: int) -> None:
        page.locator(f"[data-algorithm='{number}'] button[name=step]").press("Enter")
        steps = f"document.querySelector('[data-algorithm=\"{number}\"]').steps"
        page.wait_for_function(f"{steps}.count === {count}", timeout=30_000)

    def first_epoch(start: np.ndarray[Any, Any], **given: Any) -> np.ndarray[Any, Any]:
        """Return what the package makes of the same start in one epoch."""
        seen: list[np.ndarray[Any, Any]] = []

        def record(stage: str, epoch: int, n_epochs: int, map: Any) -> bool:
            if stage == "layout" and epoch == 1:
                seen.append(map.copy())
            return bool(seen)

        vicinal.UMAP(n_neighbors=10, random_state=0, init=start, callback=record, **given).fit(rows)
        return seen[0]

    shown: list[list[int]] = []
    for count in range(1, 7):
        step(1, count)
        shown.append(lines(1))
        if count == 5:
            start = places(1)
    assert shown == [[1], [2], [3], [4], [5], list(range(7, 14))]
    pulled = places(1)
    step(1, 7)
    assert lines(1) == list(range(7, 17))
    pushed = places(1)
    pulls = first_epoch(start, n_epochs=1, negative_sample_rate=0)
    # the package fits the start into its box once more, which rounds
    np.testing.assert_allclose(pulled, pulls, atol=1e-3)
    np.testing.assert_allclose(pushed, first_epoch(start, n_epochs=100), atol=1e-3)
    one.picture(f"steps-{where}")
    for number, last in ((1, 19), (2, 25), (3, 21)):
        part = page.locator(f"[data-algorithm='{number}']")
        part.locator("button[name=run]").click()
        page.wait_for_function(f"document.querySelector('[data-algorithm=\"{number}\"]').steps.done", timeout=60_000)
        assert lines(number) == [last]
        assert vicinal.quality.trustworthiness(rows, places(number), n_neighbors=10) > 0.9
        part.scroll_into_view_if_needed()
        one.picture(f"steps-{where}-{number}")
    part.locator("button[name=again]").click()
    assert lines(3) == []
    step(3, 1)
    assert lines(3) == [1, 2]
    width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(width) <= 1


def test_interactive_page_is_embedded(visit: Any) -> None:
    one = visit()
    one.open("start/first_map.html")
    frame = one.page.frame_locator("iframe.map-page")
    frame.locator("canvas").first.wait_for(timeout=60_000)
    one.picture("first-map")
