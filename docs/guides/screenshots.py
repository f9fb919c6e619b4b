"""Write the screenshots of the page to docs/images: python docs/guides/screenshots.py [name ...].

Needs Chromium and Playwright, and Fashion-MNIST from Debian's package dataset-fashion-mnist for the dark page.
"""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright
from sklearn.datasets import load_digits

import vicinal
from vicinal import viewer

IMAGES = Path(__file__).parents[1] / "images"
FASHION = Path("/usr/share/datasets/fashion-mnist")
CLOTHES = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
DESKTOP = {"viewport": {"width": 1280, "height": 800}}
PHONE = {"viewport": {"width": 390, "height": 780}, "device_scale_factor": 2}
ARGUMENTS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

Page = Callable[[Path], Path]


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


SELECT = "vicinalPage.state.select(vicinalPage.view.within([[480, 60], [980, 60], [980, 420], [480, 420]]))"
# name: the page, the browser's settings, and what is done on the page
SHOTS: dict[str, tuple[Page, dict[str, Any], str]] = {
    "page-light": (digits, {**DESKTOP, "color_scheme": "light"}, SELECT),
    "page-phone": (digits, {**PHONE, "color_scheme": "light"}, ""),
    "page-compare": (two_maps, {**DESKTOP, "color_scheme": "light"}, SELECT),
    "page-dark": (clothes, {**DESKTOP, "color_scheme": "dark"}, ""),
}


def main(names: list[str]) -> None:
    made: dict[Page, Path] = {}
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        for name in names or SHOTS:
            build, settings, script = SHOTS[name]
            made.setdefault(build, build(Path(folder)) if build not in made else made[build])
            page = browser.new_page(**settings)
            page.goto(made[build].as_uri())
            page.wait_for_selector("html[data-ready]", timeout=60_000)
            if script:
                page.evaluate(script)
            page.wait_for_timeout(1500)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
            print(f"wrote {IMAGES / name}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
