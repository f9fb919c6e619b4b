"""Time the core in JavaScript: `python benchmarks/wasm.py [--repeats N] [--rows N]`; needs Node and npm.

Systems take turns, each in a process of its own with one thread: the package at its best level, the WebAssembly module
in Node, and npm's umap-js with its own defaults, which is installed into a temporary folder. Then layouts alone of
2,000 and of 70,000 rows. Ratios are those of processor seconds, which depend less on other load. Results go to
`results/wasm.json`, except for a trial with --rows.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine
from release import measured_code
from wasm_table import COLUMNS, LARGE, ROWS, SELECTED

HERE = Path(__file__).resolve().parent
STATIC = HERE.parent / "src" / "vicinal" / "viewer" / "static"
UMAP_JS = "1.4.0"
NEIGHBORS = 15


def mixture(n: int) -> np.ndarray:
    """Return rows around 20 centers."""
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.normal(size=(20, COLUMNS))
    return (centers[rng.integers(20, size=n)] + rng.normal(size=(n, COLUMNS))).astype(np.float32)


def run(command: list[str | Path]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command} failed:\n{done.stderr[-4000:]}")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    shown = f"{report['wall']:.2f} s, {report['processor']:.2f} s of processor"
    print(f"  {command[-2]} {shown}", file=sys.stderr, flush=True)
    return report


def node(task: str, folder: Path) -> dict[str, Any]:
    return {"system": task, **run(["node", HERE / "wasm_case.mjs", task, folder])}


def write_shape(folder: Path, n: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shape.json").write_text(json.dumps({"n": n, "columns": COLUMNS, "k": NEIGHBORS}))


def fits(n: int, repeats: int, folder: Path) -> list[dict[str, Any]]:
    write_shape(folder, n)
    mixture(n).tofile(folder / "rows.f32")
    (folder / "package.json").write_text('{"private": true}')
    subprocess.run(["npm", "install", "--silent", f"umap-js@{UMAP_JS}"], cwd=folder, check=True)
    records = []
    for _ in range(repeats):
        records.append({"system": "native", **run([sys.executable, HERE / "wasm_case.py", folder])})
        records.append(node("fit", folder))
        records.append(node("umapjs", folder))
        records.append(node("fit200", folder))
    return [record | {"rows": n} for record in records]


def layout(n: int, folder: Path) -> dict[str, Any]:
    from vicinal import find_neighbors, fuzzy_graph, random_start

    write_shape(folder, n)
    graph = fuzzy_graph(find_neighbors(mixture(n), NEIGHBORS))
    graph.indptr.astype(np.int32).tofile(folder / "indptr.i32")
    graph.indices.tofile(folder / "indices.i32")
    graph.weights.tofile(folder / "weights.f32")
    random_start(n).tofile(folder / "start.f32")
    return node("layout", folder) | {"rows": n, "edges": graph.n_edges}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=ROWS, help="of the fits; a trial is not saved")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        records = fits(arguments.rows, arguments.repeats, Path(folder))
        records += [layout(n, Path(folder) / str(n)) for n in (SELECTED, LARGE)]
    document = {
        "suite": "wasm",
        "code": measured_code(),
        "machine": describe_machine(),
        "umap_js": UMAP_JS,
        "repeats": arguments.repeats,
        "module_bytes_gzipped": len(gzip.compress((STATIC / "core.wasm").read_bytes())),
        "records": records,
    }
    text = json.dumps(document, indent=1) + "\n"
    print(text)
    if arguments.rows == ROWS:
        (HERE / "results" / "wasm.json").write_text(text)


if __name__ == "__main__":
    main()
