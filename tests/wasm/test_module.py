"""The committed WebAssembly module belongs to the sources, is small, and computes the golden maps."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from portable import golden
from wasm import node, stamp

from vicinal import Layout, find_neighbors, fit_ab, fuzzy_graph
from vicinal.estimators.base import random_seed
from vicinal.layout.forces import Forces
from vicinal.pipeline.recipe import SampledPlan

PAGE = Path(__file__).with_name("page.html")
MOST_BYTES = 250_000  # gzipped
ROWS = 40

requires_node = pytest.mark.skipif(bool(node.missing()), reason=node.missing())


def test_module_was_built_from_the_sources() -> None:
    assert stamp.STAMP.read_text() == stamp.stamp(), "run `make wasm` and commit src/vicinal/viewer/static"


def test_module_is_small() -> None:
    assert len(gzip.compress(stamp.MODULE.read_bytes())) <= MOST_BYTES


@requires_node
def test_node_computes_all_golden_maps(tmp_path: Path) -> None:
    calls = node.Calls(tmp_path)
    calls.add("golden")
    (found,) = calls.run()
    assert found == golden.expected("core"), golden.CHANGED


@requires_node
def test_package_finds_its_files_and_fits(tmp_path: Path) -> None:
    npm = Path(__file__).parents[2] / "web" / "npm"
    for path in (
        npm / "index.js",
        *(stamp.MODULE.with_name(name) for name in ("core.js", "core-worker.js", "core.wasm")),
    ):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    program = f"""
        import {{ load, startWorker }} from "./index.js";
        const vicinal = await load();
        const rows = Array.from({{ length: {ROWS} }}, (_, i) => [i % 7, i % 5, (i * i) % 11]);
        const map = vicinal.fit(rows, {{ nNeighbors: 5, nEpochs: 10 }});
        let refused = "";
        try {{ await startWorker(); }} catch (error) {{ refused = error.message; }}
        const placed = [...map.transform(rows.slice(3, 4))], own = [...map.embedding.slice(6, 8)];
        console.log(JSON.stringify([map.embedding.length, placed, own, refused]));
    """
    (tmp_path / "program.mjs").write_text(program)
    done = subprocess.run(["node", "program.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    length, placed, own, refused = json.loads(done.stdout)
    assert length == 2 * ROWS
    assert placed == own
    assert refused == "there are no Web Workers here: use load()"


def test_package_lists_its_files() -> None:
    described = json.loads((Path(__file__).parents[2] / "web" / "package.json").read_text())
    assert described["name"] == "vicinal"
    assert described["private"] is True  # nothing is published by accident
    assert described["files"] == [
        *("dist/*.js", "dist/*.wasm", "dist/*.d.ts"),
        *("dist/licenses/*.txt", "dist/types/*.d.ts"),
    ]
    exported = described["exports"].values()
    targets = {path for entry in exported for path in (entry.values() if isinstance(entry, dict) else [entry])}
    assert targets == {"./dist/index.d.ts", "./dist/index.js", "./dist/core.wasm", "./dist/core-worker.js"}


def text_of(name: str) -> str:
    """Return a script of the bundle as a literal within a script of a page."""
    return json.dumps(stamp.MODULE.with_name(name).read_text()).replace("</", "<\\/")


def test_worker_in_chromium_computes_the_same_bits_reports_and_stops(browser: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5)).astype(np.float32)
    start = rng.uniform(0, 10, size=(200, 2)).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(rows, 10))
    module = base64.b64encode(stamp.MODULE.read_bytes()).decode()
    page_text = PAGE.read_text().replace("MODULE_BASE64", module)
    page_text = page_text.replace("CORE_TEXT", text_of("core.js")).replace("WORKER_TEXT", text_of("core-worker.js"))
    (tmp_path / "page.html").write_text(page_text)
    edges = {name: getattr(graph, name).tolist() for name in ("indptr", "indices", "weights")}
    page = browser.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("window.run !== undefined")
    found = page.evaluate("([edges, places]) => window.run(edges, places)", [edges, start.ravel().tolist()])
    page.close()
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []
    assert found["golden"] == golden.expected("core"), golden.CHANGED
    plan = SampledPlan(Forces(fit_ab()))
    layout = Layout(graph, start, plan.forces, plan.schedule(found["nEpochs"], 200), seed=random_seed(3), n_jobs=1)
    layout.step(found["nEpochs"])
    assert np.asarray(found["embedding"], dtype=np.float32).tobytes() == layout.embedding.ravel().tobytes()
    assert found["epochs"] == sorted(found["epochs"])
    assert found["epochs"][-1] == found["nEpochs"]
    assert found["finished"] == [True, False]
    assert found["told"] >= 3
    assert 0 < found["stoppedEpoch"] < 1_000_000
    assert found["refused"] == "rows contains NaN, first in row 1, column 0"
    assert found["stages"] == ["neighbors", "graph", "start", "layout"]
    assert found["ownPlace"]
    assert found["aborted"] == "AbortError"
    assert found["freed"] == "the layout has been freed"
