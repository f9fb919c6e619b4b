"""Print what a fit of a Dask array costs by stage, by a model that is calibrated with `results/cluster.json`.

    python benchmarks/cluster_model.py

Rows of 64 columns, 15 neighbors, 800 sweeps, one core per worker.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from vicinal.cluster.neighbors import MOST_PARTS, PART_BYTES, PART_WORK
from vicinal.neighbors.cells import cell_count

RESULTS = Path(__file__).parent / "results" / "cluster.json"
COLUMNS, NEIGHBORS, EDGES, SWEEPS = 64, 15, 21, 800
VISITS = 2.3  # cells that a row belongs to or visits, in a mixture of clusters that are about as large as cells
# Processor time of comparing a row with a center, and of the approximate search of a row, which is taken for cells that
# are too large for comparing all pairs (both measured with 64 columns).
CENTER_SECONDS, APPROXIMATE_SECONDS = 32e-9, 93e-6
SERIAL_START_SECONDS = 1.5e-6  # per row, in one task: components and groups
FILE_BYTES_PER_SECOND, SWEEP_SECONDS = 4e9, 3e-3  # exchange of places through files of one machine
PROCESS_BYTES, GROUPING_BYTES = 1.4e8, 20
CALIBRATION = {"case": "workers-4"}


def calibrate(records: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds of a core per row of each stage, of the layout per row and sweep, from a measured fit."""
    [record] = [one for one in records if CALIBRATION.items() <= one.items()]
    n, workers, stages = record["rows"], record["workers"], record["stages"]
    core = {name: seconds * workers / n for name, seconds in stages.items()}
    exchange = SWEEPS * exchange_seconds(n, workers)
    return {
        "search": core["neighbors"] - CENTER_SECONDS * cell_count(n, COLUMNS),
        "cell_rows": n / cell_count(n, COLUMNS),
        "graph": core["graph"],
        "start": max(0.0, stages["initialize"] - SERIAL_START_SECONDS * n) * workers / n,
        "sweep": (stages["layout"] - exchange) * workers / n / SWEEPS,
    }


def exchange_seconds(n: int, workers: int) -> float:
    """Return how long a sweep takes to exchange places."""
    return 0.0 if workers == 1 else SWEEP_SECONDS + 8 * n / FILE_BYTES_PER_SECOND


def stage_seconds(n: int, workers: int, cost: dict[str, float]) -> dict[str, float]:
    cells = cell_count(n, COLUMNS)
    search = min(cost["search"] * n / cells / cost["cell_rows"], cost["search"] + VISITS * APPROXIMATE_SECONDS)
    return {
        "neighbors": n * (CENTER_SECONDS * cells + search) / workers,
        "graph": n * cost["graph"] / workers,
        "start": n * (SERIAL_START_SECONDS + cost["start"] / workers),
        "layout": SWEEPS * (n * cost["sweep"] / workers + exchange_seconds(n, workers)),
    }


def stage_bytes(n: int, workers: int) -> dict[str, float]:
    """Return the bytes that pass from one task to another: through files, or from worker to worker."""
    lists = VISITS * (8 * NEIGHBORS + 16)
    return {
        "neighbors": n * (VISITS * (4 * COLUMNS + 9) + lists + 8 * NEIGHBORS + 8),
        "graph": n * (20 * NEIGHBORS + 8 * EDGES + 16),
        "start": n * (4 + 8.0 * workers),
        "layout": n * (12 * EDGES + 8 + 8.0 * (workers - 1) * SWEEPS),
    }


def worker_bytes(n: int, workers: int) -> float:
    """Return the peak of a worker: parts of the graph, edges and two snapshots, or the grouping of all rows."""
    layout = n * ((12 * EDGES + 8) / workers + 16)
    part = max(PART_WORK, n * NEIGHBORS * PART_BYTES / MOST_PARTS)
    return PROCESS_BYTES + max(part, layout, GROUPING_BYTES * n)


def shown(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def sized(count: float) -> str:
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"


def main() -> None:
    records = json.loads(RESULTS.read_text())["records"]
    cost = calibrate(records)
    print(f"calibrated with {CALIBRATION}:", {name: float(f"{value:.3g}") for name, value in cost.items()})
    print("\nmeasured / modeled seconds by stage, and memory of a worker (cores = workers x threads):")
    for record in records:
        if record.get("workers") and "stages" in record and record["columns"] == COLUMNS:
            n, workers = record["rows"], record["workers"]
            model = stage_seconds(n, workers * record["threads"], cost)
            pairs = zip(model, record["stages"].values(), model.values(), strict=True)
            times = ", ".join(f"{name} {seen:.1f} / {one:.1f}" for name, seen, one in pairs)
            peak, modeled = sized(record["largest_worker_bytes"]), sized(worker_bytes(n, workers))
            print(f"{record['case']}: {times}; {peak} / {modeled}")
    print("\n| rows | workers | neighbors | graph | start | layout | together | memory of a worker |")
    print("|---|---|---|---|---|---|---|---|")
    for n in (10**6, 10**7, 10**8):
        for workers in (1, 4, 16):
            times = stage_seconds(n, workers, cost)
            cells = [shown(one) for one in (*times.values(), sum(times.values()))]
            print(f"| {n:,} | {workers} | {' | '.join(cells)} | {sized(worker_bytes(n, workers))} |")
    print("\n| rows | workers | neighbors | graph | start | layout |")
    print("|---|---|---|---|---|---|")
    for n in (10**6, 10**7, 10**8):
        for workers in (1, 4, 16):
            print(f"| {n:,} | {workers} | {' | '.join(map(sized, stage_bytes(n, workers).values()))} |")


if __name__ == "__main__":
    main()
