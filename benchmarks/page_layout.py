"""Time layouts on a page: `python benchmarks/page_layout.py [CASE...]` writes results/page_layout.json.

The page of 10,000 images of clothes is opened from disk in Chromium without a GPU. 2,000 of its rows are selected and
laid out by one thread for 500 epochs, and then all rows by UMAP's own number of epochs. While a layout runs, the page
counts time in steps of 5 ms: the longest gap between two steps is how late it would have answered. The same is counted
for 5 s in which nothing happens, which shows what other programs on the machine take. The seconds are those that a
reader waits, from the click to the last position, with the drawing of the map while it moves. All are medians.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from datasets import open_dataset
from machine import save_cases
from playwright.sync_api import Page, sync_playwright

import vicinal
from vicinal import viewer

SEED, ROWS = 42, 10_000
RESULTS = Path(__file__).with_name("results") / "page_layout.json"
# Software GL, as in tests/viewer/browser.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader"]
ARGUMENTS += ["--enable-unsafe-swiftshader", "--disable-background-networking"]
PATIENCE_MS = 600_000
# Rows that are selected, epochs (None: those of UMAP), method, repetitions.
CASES: dict[str, tuple[int, int | None, str, int]] = {
    "selection": (2_000, 500, "UMAP", 5),
    "selection_largevis": (2_000, None, "LargeVis", 1),
    "selection_densmap": (2_000, 500, "DensMAP", 1),
    "selection_tsne": (2_000, None, "TSNE", 1),
    "whole": (ROWS, None, "UMAP", 1),
}
WATCH = """() => {
    const gaps = window.gaps = [];
    let last = performance.now();
    const step = () => {
        const now = performance.now();
        gaps.push(now - last);
        last = now;
        window.ticks = setTimeout(step, 5);
    };
    step();
}"""


def longest_gap(page: Page) -> float:
    return float(max(page.evaluate("clearTimeout(ticks), gaps.slice(2)")))


def idle(page: Page, milliseconds: int = 5000) -> float:
    """Return the longest gap while the page does nothing."""
    page.evaluate(WATCH)
    page.wait_for_timeout(milliseconds)
    return longest_gap(page)


def lay_out(page: Page, rows: list[int], epochs: int | None, method: str) -> dict[str, Any]:
    """Lay out the given rows, and return to the whole map."""
    page.evaluate("vicinalPage.relayout.back(0)")
    page.evaluate("document.querySelector('.settings').open = true")
    page.locator("#layout-method").select_option(method)
    page.locator("#layout-n_epochs").fill("" if epochs is None else str(epochs))
    every = len(rows) == ROWS
    page.evaluate("rows => vicinalPage.state.select(rows)", [] if every else rows)
    page.wait_for_timeout(500)
    page.evaluate(WATCH)
    run = "layOut" if every else "laySelectionOut"
    made = page.evaluate(f"vicinalPage.relayout.{run}().then(({{seconds, epoch}}) => ({{seconds, epoch}}))")
    return {**made, "longest_gap_ms": longest_gap(page), "frames": page.evaluate("vicinalPage.relayout.frames")}


def measure(names: list[str]) -> list[dict[str, Any]]:
    dataset = open_dataset("fashion", ROWS)
    rows, labels = dataset.data(), dataset.labels()
    model = vicinal.UMAP(random_state=SEED).fit(rows)
    # neighbors of each other, as a reader would select them: those nearest to the middle of the map
    places = model.embedding_
    near = np.argsort(np.linalg.norm(places - np.median(places, axis=0), axis=1))
    records = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = viewer.export(Path(folder) / "page.html", model, labels, interactive=True)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-layout=ready]", timeout=PATIENCE_MS)
        page.set_default_timeout(PATIENCE_MS)
        for name in names:
            n, epochs, method, repetitions = CASES[name]
            runs = [lay_out(page, np.sort(near[:n]).tolist(), epochs, method) for _ in range(repetitions)]
            seconds = [one["seconds"] for one in runs]
            records.append(
                {
                    "case": name,
                    "rows": n,
                    "method": method,
                    "epochs": runs[0]["epoch"],
                    "seconds": round(float(np.median(seconds)), 2),
                    "seconds_least": round(min(seconds), 2),
                    "longest_gap_ms": round(float(np.median([one["longest_gap_ms"] for one in runs])), 1),
                    "longest_gap_idle_ms": round(idle(page), 1),
                    "frames": runs[0]["frames"],
                    "page_bytes": path.stat().st_size,
                }
            )
            print(records[-1], flush=True)
        browser.close()
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default="all", choices=("all", *CASES))
    cases = parser.parse_args().cases
    records = measure(list(CASES if "all" in cases else cases))
    save_cases(RESULTS, records)


if __name__ == "__main__":
    main()
