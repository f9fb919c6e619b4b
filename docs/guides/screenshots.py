"""Write the screenshots of the page to docs/images: python docs/guides/screenshots.py [name ...].

Light ones have a dark version, NAME_dark.png, for dark pages.

Needs Chromium and Playwright, and Fashion-MNIST from Debian's package dataset-fashion-mnist for the dark page.
"""

from __future__ import annotations

import contextlib
import gzip
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from pictures import shrink
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

import vicinal
from vicinal import viewer
from vicinal.files.data_table import Column, DataTable, Role
from vicinal.viewer.packing import row_columns
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import Session, StreamSession

IMAGES = Path(__file__).parents[1] / "images"
FASHION = Path("/usr/share/datasets/fashion-mnist")
CLOTHES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

# Writes a page, or serves one for a while.
Page = Callable[[Path], Path | contextlib.AbstractContextManager[str]]


def digits(folder: Path) -> Path:
    data = load_digits()
    hover = {"ink": data.data.mean(axis=1), "right half": data.images[:, :, 4:].mean(axis=(1, 2))}
    model = vicinal.UMAP(random_state=42).fit(data.data)
    return viewer.export(
        folder / "digits.html",
        model,
        data.target,
        hover=hover,
        images=data.images,
        label="digit",
        title="Handwritten digits",
    )


def part(folder: Path) -> Path:
    data = load_digits()
    model = vicinal.UMAP(random_state=42).fit(data.data)
    shown = {"images": data.images, "label": "digit", "title": "Handwritten digits"}
    return viewer.export(folder / "part.html", model, data.target, interactive=True, **shown)


def two_maps(folder: Path) -> Path:
    data = load_digits()
    maps = {
        "UMAP": vicinal.UMAP(random_state=42).fit(data.data),
        "t-SNE": vicinal.TSNE(random_state=42).fit(data.data),
    }
    return viewer.compare(folder / "two.html", maps, data.target, label="digit", title="Two maps of the digits")


def clothes(folder: Path) -> Path:
    with gzip.open(FASHION / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 28, 28)
    with gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    rows = images.reshape(len(images), -1).astype(np.float32)
    model = vicinal.UMAP(random_state=42).fit(rows)
    hover = {"brightness": rows.mean(axis=1)}
    return viewer.export(
        folder / "clothes.html", model, np.array(CLOTHES)[labels], hover=hover, images=images, title="60,000 clothes"
    )


@contextlib.contextmanager
def opened_digits(folder: Path) -> Iterator[str]:
    """Serve a fit of the digits that waits at each epoch, so that it can be photographed half-way."""
    data = load_digits()

    def build(parameters: dict[str, Any], callback: Any) -> Any:
        return vicinal.UMAP(**parameters, callback=lambda *told: (time.sleep(0.02), callback(*told))[1])

    parameters = {"n_neighbors": 15, "min_dist": 0.1, "metric": "euclidean", "n_epochs": 500, "random_state": 42}
    described = {"columns": row_columns(data.target, label="digit"), "images": data.images, "title": "digits"}
    server = LiveServer(Session(data.data, build, parameters, **described)).start()
    server.session.start()
    try:
        yield server.address
    finally:
        server.close()


@contextlib.contextmanager
def opened_stream(folder: Path) -> Iterator[str]:
    """Serve a map that grows, and stop it when most rows are placed."""
    with gzip.open(FASHION / "train-images-idx3-ubyte.gz") as file:
        rows = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)[:20_000].astype(np.float32)
    with gzip.open(FASHION / "train-labels-idx1-ubyte.gz") as file:
        labels = np.array(CLOTHES)[np.frombuffer(file.read(), np.uint8, offset=8)[:20_000]]

    def tables() -> Iterator[DataTable]:
        for a in range(0, 20_000, 1000):
            yield DataTable(rows[a : a + 1000], (Column("kind", Role.LABEL, labels[a : a + 1000]),))

    def build(parameters: dict[str, Any], callback: Any) -> Any:
        return vicinal.ProgressiveUMAP(**parameters, callback=callback)

    parameters = {"n_neighbors": 15, "random_state": 42, "batch_size": 1000}
    session = StreamSession(tables, build, parameters, total=20_000, title="clothes")
    server = LiveServer(session).start()
    session.start()
    while len(session.snapshot.positions) < 12_000:
        if session.status.state == "failed":
            raise RuntimeError(session.status.message)
        time.sleep(0.1)
    session.pause()
    try:
        yield server.address
    finally:
        server.close()


SELECT = "vicinalPage.state.select(vicinalPage.view.within([[540, 230], [800, 230], [800, 480], [540, 480]]))"
SELECT_LEFT = "vicinalPage.state.select(vicinalPage.view.within([[60, 140], [260, 140], [260, 320], [60, 320]]))"
SELECT_PART = """(async () => {
    while (!vicinalPage.relayout) await new Promise(done => setTimeout(done, 50));
    const {state, relayout} = vicinalPage;
    state.select([...state.paint.codes.keys()].filter(row => [1, 7, 8].includes(state.paint.codes[row])));
    document.querySelector(".settings").open = true;
    await relayout.laySelectionOut();
})()"""
# name: the page, the browser's settings, and what is done on the page
SHOTS: dict[str, tuple[Page, dict[str, Any], str]] = {
    "page-light": (digits, {**DESKTOP, "color_scheme": "light"}, SELECT),
    "page-part": (part, {**DESKTOP, "color_scheme": "light"}, SELECT_PART),
    "page-compare": (two_maps, {**DESKTOP, "color_scheme": "light"}, SELECT_LEFT),
    "page-dark": (clothes, {**DESKTOP, "color_scheme": "dark"}, ""),
    "page-live": (opened_digits, {**DESKTOP, "color_scheme": "light"}, ""),
    "page-stream": (opened_stream, {**DESKTOP, "color_scheme": "light"}, ""),
}
TWO_VERSIONS = ("page-light", "page-part", "page-compare", "page-live", "page-stream")


def main(names: list[str]) -> None:
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name in names or SHOTS:
            build, settings, script = SHOTS[name]
            made = build(Path(folder))
            with contextlib.nullcontext(made.as_uri()) if isinstance(made, Path) else made as address:
                schemes = {"": settings["color_scheme"]} | ({"_dark": "dark"} if name in TWO_VERSIONS else {})
                for suffix, scheme in schemes.items():
                    page = browser.new_page(**{**settings, "color_scheme": scheme})
                    page.goto(address)
                    page.wait_for_selector("html[data-ready]", timeout=60_000)
                    if script:
                        page.evaluate(script)
                    page.wait_for_timeout(3000)
                    page.screenshot(path=IMAGES / f"{name}{suffix}.png")
                    shrink(IMAGES / f"{name}{suffix}.png")
                    page.close()
            print(f"wrote {IMAGES / name}.png", flush=True)
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
