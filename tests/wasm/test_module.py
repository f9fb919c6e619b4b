"""The committed WebAssembly module belongs to the sources, is small, and computes the golden maps."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromium import running_chromium
from portable import golden
from wasm import node, stamp

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
    for path in (npm / "index.js", *(stamp.MODULE.with_name(name) for name in ("core.js", "core-worker.js", "core.wasm"))):
        shutil.copy(path, tmp_path)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    program = f"""
        import {{ load, startWorker }} from "./index.js";
        const vicinal = await load();
        const rows = Array.from({{ length: {ROWS} }}, (_, i) => [i % 7, i % 5, (i * i) % 11]);
        const map = vicinal.fit(rows, {{ nNeighbors: 5, nEpochs: 10 }});
        let refused = "";
        try {{ await startWorker(); }} catch (error) {{ refused = error.message; }}
        console.log(JSON.stringify([map.embedding.length, [...map.transform(rows.slice(3, 4))], [...map.embedding.slice(6, 8)], refused]));
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
    assert described["files"] == ["dist/*.js", "dist/*.wasm", "dist/*.d.ts", "dist/types/*.d.ts"]
    targets = {path for entry in described["exports"].values() for path in (entry.values() if isinstance(entry, dict) else [entry])}
    assert targets == {"./dist/index.d.ts", "./dist/index.js", "./dist/core.wasm", "./dist/core-worker.js"}


# A page without a server: the worker comes from a text, the module from base64.
PAGE = """
<script type="module">
const bytes = Uint8Array.from(atob("MODULE"), (one) => one.charCodeAt(0));
const waiting = new Map();
let calls = 0;
const worker = new Worker(URL.createObjectURL(new Blob([SCRIPT], { type: "text/javascript" })));
worker.onmessage = ({ data }) => {
  const { done, heard } = waiting.get(data.call);
  if ("progress" in data) heard(data.progress);
  else done(data.result ?? { error: data.error });
};
const ask = (request, heard = () => {}) => new Promise((done) => {
  waiting.set(++calls, { done, heard });
  worker.postMessage({ ...request, call: calls });
});
window.run = async (graph, start) => {
  await ask({ does: "load", source: bytes });
  const golden = await ask({ does: "golden" });
  const { layout, nEpochs } = await ask({ does: "layout", graph, start, options: { randomState: 3 } });
  const whole = await ask({ does: "run", layout, epochs: nEpochs, every: 0, lookAt: false });
  const long = await ask({ does: "layout", graph, start, options: { nEpochs: 1000000 } });
  let told = 0;
  const stopped = await ask({ does: "run", layout: long.layout, epochs: 1000000, every: 0, lookAt: true }, ({ epoch, embedding }) => {
    if (++told === 3) worker.postMessage({ does: "cancel", call: calls });
  });
  const wrong = await ask({ does: "fit", rows: [[1], [NaN]], options: {}, every: 50, lookAt: false });
  return {
    golden, nEpochs, epoch: whole.epoch, finished: whole.finished, embedding: [...whole.embedding],
    told, stoppedFinished: stopped.finished, stoppedEpoch: stopped.epoch, error: wrong.error.message,
  };
};
</script>
"""


def test_worker_in_chromium_computes_the_same_bits_reports_and_stops(tmp_path: Path) -> None:
    import base64

    from vicinal import Layout, find_neighbors, fit_ab, fuzzy_graph
    from vicinal.layout.forces import Forces
    from vicinal.pipeline.recipe import SampledPlan

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5)).astype(np.float32)
    start = rng.uniform(0, 10, size=(200, 2)).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(rows, 10))
    script = stamp.MODULE.with_name("core-worker.js").read_text()
    module = base64.b64encode(stamp.MODULE.read_bytes()).decode()
    page_file = tmp_path / "page.html"
    page_file.write_text(PAGE.replace("MODULE", module).replace("SCRIPT", json.dumps(script).replace("</", "<\\/")))
    given = {name: getattr(graph, name).tolist() for name in ("indptr", "indices", "weights")}
    call = """async ([graph, start]) => window.run({ n: graph.indptr.length - 1, indptr: Int32Array.from(graph.indptr),
        indices: Int32Array.from(graph.indices), weights: Float32Array.from(graph.weights) }, Float32Array.from(start))"""
    with running_chromium() as browser:
        page = browser.new_page()
        requests: list[Any] = []
        page.on("request", lambda request: requests.append(request.url))
        page.goto(page_file.as_uri())
        page.wait_for_function("window.run !== undefined")
        found = page.evaluate(call, [given, start.ravel().tolist()])
    assert [url for url in requests if not url.startswith(("file:", "blob:", "data:"))] == []
    assert found["golden"] == golden.expected("core"), golden.CHANGED
    plan = SampledPlan(Forces(fit_ab()))
    schedule = plan.schedule(found["nEpochs"], len(rows))
    seed = int(np.random.RandomState(3).randint(np.iinfo(np.int32).max))
    layout = Layout(graph, start, plan.forces, schedule, seed=seed, n_jobs=1)
    layout.step(found["nEpochs"])
    assert np.asarray(found["embedding"], dtype=np.float32).tobytes() == layout.embedding.tobytes()
    assert found["finished"]
    assert found["told"] >= 3
    assert not found["stoppedFinished"]
    assert 0 < found["stoppedEpoch"] < 1_000_000
    assert found["error"] == "rows contains NaN, first in row 1, column 0"
