"""Time the page of a million points: `python benchmarks/page.py [--points N]`; seconds to export and to interact.

The page is opened from disk in Chromium without a GPU. It is interactive when it has drawn all points and reacted to a
key. The processor seconds of all browser processes are also reported, because they depend less on other load. Results
go to `results/page.json`, except for a trial with --points.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import describe_machine
from playwright.sync_api import Page, sync_playwright
from release import measured_code

from vicinal import viewer

HERE = Path(__file__).resolve().parent
MILLION = 1_000_000
CLASSES = 20
# Software GL, as in tests/viewer/browser.
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader"]
ARGUMENTS += ["--enable-unsafe-swiftshader", "--disable-background-networking"]
PATIENCE_MS = 120_000
ZOOMED = "before => vicinalPage.view.eye.distance < before"


def processor_seconds(root: int) -> float:
    """Return the processor seconds of all child processes, direct and indirect, so far."""
    used, parents = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended
        process = int(folder.name)
        parents[process], used[process] = int(fields[1]), int(fields[11]) + int(fields[12])

    def belongs(process: int) -> bool:
        while process > 1 and process != root:
            process = parents.get(process, 0)
        return process == root

    own = used.get(root, 0)
    return (sum(ticks for process, ticks in used.items() if belongs(process)) - own) / os.sysconf("SC_CLK_TCK")


def open_page(page: Page, path: Path) -> dict[str, float]:
    """Open the file, wait until it is drawn, and zoom with a key."""
    start, before = time.perf_counter(), processor_seconds(os.getpid())
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=PATIENCE_MS)
    drawn, drawn_cpu = time.perf_counter() - start, processor_seconds(os.getpid()) - before
    distance = page.evaluate("vicinalPage.view.eye.distance")
    page.keyboard.press("+")
    page.wait_for_function(ZOOMED, arg=distance, timeout=PATIENCE_MS)
    return {
        "drawn_s": round(drawn, 2),
        "drawn_cpu_s": round(drawn_cpu, 2),
        "interactive_s": round(time.perf_counter() - start, 2),
        "interactive_cpu_s": round(processor_seconds(os.getpid()) - before, 2),
    }


def measure(points: int, repeats: int) -> list[dict[str, float]]:
    rng = np.random.default_rng(0)
    classes = rng.integers(CLASSES, size=points)
    places = (rng.normal(size=(CLASSES, 2), scale=5)[classes] + rng.normal(size=(points, 2))).astype(np.float32)
    records = []
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for _ in range(repeats):
            start, cpu = time.perf_counter(), time.process_time()
            path = viewer.export(Path(folder) / "page.html", places, classes)
            exported = {
                "export_s": round(time.perf_counter() - start, 2),
                "export_cpu_s": round(time.process_time() - cpu, 2),
                "megabytes": round(path.stat().st_size / 1e6, 2),
            }
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
            records.append(exported | open_page(browser.new_page(viewport={"width": 1100, "height": 720}), path))
            browser.close()
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=MILLION, help="points; only results of the default are saved")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    document = {
        "suite": "page",
        "points": arguments.points,
        "code": measured_code(),
        "machine": describe_machine(),
        "records": measure(arguments.points, arguments.repeats),
    }
    text = json.dumps(document, indent=1) + "\n"
    print(text)
    if arguments.points == MILLION:
        (HERE / "results" / "page.json").write_text(text)


if __name__ == "__main__":
    main()
