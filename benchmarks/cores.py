"""How the stages of a fit scale with the number of threads, and whether the map has the same bits for all of them.

    python benchmarks/cores.py --out cores.json --threads 1 2 4 8 16 [--rows FILE.npz] [--mixture ROWS COLUMNS CLUSTERS]

Every number of threads is measured twice in turns, and the smaller time of each stage counts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from release import measured_code
from shapes import mixture

from vicinal import UMAP, fit_ab
from vicinal.graph.graph import Graph
from vicinal.quality import losses


def measure(rows: NDArray[np.float32], threads: list[int], repeats: int) -> dict[str, Any]:
    """Fit with every number of threads in turns; return the stage times, hashes of the map and its loss."""
    times: dict[int, dict[str, float]] = {count: {} for count in threads}
    hashes = set()
    UMAP(n_epochs=5, random_state=0).fit(rows[:500])
    for _ in range(repeats):
        for count in threads:
            began = time.perf_counter()
            model = UMAP(random_state=0, n_jobs=count).fit(rows)
            stages = {**model.stage_times_, "fit": time.perf_counter() - began}
            for stage, seconds in stages.items():
                times[count][stage] = min(seconds, times[count].get(stage, np.inf))
            hashes.add(hashlib.sha256(model.embedding_.tobytes()).hexdigest())
    loss = losses.effective_loss(Graph.from_scipy(model.graph_), model.embedding_, fit_ab(min_dist=0.1), n_jobs=-1)
    return {
        "rows": list(rows.shape),
        "threads": {str(count): {k: round(v, 4) for k, v in found.items()} for count, found in times.items()},
        "same_bits": len(hashes) == 1,
        "J": loss.value,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16])
    parser.add_argument("--rows", type=Path, help="an .npz file with an array X")
    parser.add_argument("--mixture", type=int, nargs=3, action="append", default=[])
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    machine = platform.processor() or platform.machine()
    found: dict[str, Any] = {"code": measured_code(), "machine": machine, "data": {}}
    data = {} if arguments.rows is None else {arguments.rows.stem: arguments.rows}
    for name, path in data.items():
        with np.load(path) as file:
            found["data"][name] = measure(file["X"].astype(np.float32), arguments.threads, arguments.repeats)
    for n, columns, clusters in arguments.mixture:
        name = f"mixture-{n}x{columns}-{clusters}"
        found["data"][name] = measure(mixture(clusters, n, columns)[0], arguments.threads, arguments.repeats)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
