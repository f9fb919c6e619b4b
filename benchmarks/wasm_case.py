"""The fit of ``wasm_case.mjs`` by the package, with one thread: `python wasm_case.py FOLDER` prints a line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

from vicinal import UMAP
from vicinal.backends import cpu


def main() -> None:
    folder = Path(sys.argv[1])
    shape = json.loads((folder / "shape.json").read_text())
    rows = np.fromfile(folder / "rows.f32", np.float32).reshape(shape["n"], shape["columns"])
    model = UMAP(random_state=42, init="spectral", n_jobs=1)
    start, before = perf_counter(), process_time()
    model.fit(rows)
    wall, processor = perf_counter() - start, process_time() - before
    print(json.dumps({"wall": wall, "processor": processor, "level": cpu.active_level(), "stages": model.stage_times_}))


if __name__ == "__main__":
    main()
