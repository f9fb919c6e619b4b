"""The measured process: `python measure.py JOB REPORT`, run in the environment of the measured system.

JOB is a JSON file with the task, the system, the data files and the output files; the results are written to REPORT.
Only the standard library, NumPy and the system itself are imported.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import atlas
import datasets
import numpy as np
import progressive
from systems import SYSTEMS, System

ONE_ROW_CALLS = 50
FIRST_TRANSFORM_ROWS = 100

Job = dict[str, Any]
Report = dict[str, Any]


def read_rows(job: Job, start: int, stop: int) -> Any:
    return datasets.read_rows(Path(job["data"]), start, stop)


def memory(field: str) -> int:
    """Return the bytes of `VmHWM` (peak) or `VmRSS` (resident) of this process.

    `ru_maxrss` is not used, because on Linux a process inherits the peak of its parent.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    line = next(line for line in status.read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def input_bytes(data: Any) -> int:
    if isinstance(data, np.ndarray):
        return data.nbytes
    return data.data.nbytes + data.indices.nbytes + data.indptr.nbytes


def metric_option(job: Job) -> dict[str, str]:
    return {"metric": job["metric"]} if "metric" in job else {}


def fit(job: Job, system: System) -> Report:
    """Import, read, fit, save, as a user's script does. The driver times the whole process."""
    start = perf_counter()
    system.load()
    loaded = perf_counter()
    data = read_rows(job, 0, job["rows"])
    read, resident = perf_counter(), memory("VmRSS")
    model = system.fit(data, job["seed"], **metric_option(job))
    done, peak = perf_counter(), memory("VmHWM")
    np.save(job["embedding"], model.embedding_)
    if "index" in job:
        np.save(job["index"], model._knn_indices)
    return {
        "import": loaded - start,
        "read": read - loaded,
        "fit": done - read,
        "stages": system.stage_times(model),
        "input_bytes": input_bytes(data),
        "resident_before_fit_bytes": resident,
        "peak_bytes": peak,
    }


def warm_up(job: Job, system: System, seed: int | None) -> Any:
    """Run one small fit, after which nothing is left to compile or load."""
    return system.fit(read_rows(job, 0, min(job["rows"], job["warm_rows"])), seed)


def stages(job: Job, system: System) -> Report:
    """Run every stage alone and the whole fit, in a warm process."""
    system.load()
    warm_up(job, system, job["warm_seed"])
    data = read_rows(job, 0, job["rows"])
    seconds, products = system.stages(data, job["seed"])
    for product, array in products.items():
        np.save(job[product], array)
    return {"stages": seconds, "products": sorted(products)}


def transform(job: Job, system: System) -> Report:
    """In a warm process, place unseen rows with a model of the others, then single rows with a model of all rows."""
    system.load()
    seed = job["seed"]
    warm_up(job, system, seed).transform(read_rows(job, job["rows"] - 10, job["rows"]))
    train, unseen = read_rows(job, 0, job["train_rows"]), read_rows(job, job["train_rows"], job["rows"])
    model = system.fit(train, seed)
    np.save(job["train_embedding"], model.embedding_)
    start = perf_counter()
    model.transform(unseen[:FIRST_TRANSFORM_ROWS])
    first = perf_counter()
    moved = model.transform(unseen)
    done = perf_counter()
    np.save(job["embedding"], moved)
    model = system.fit(read_rows(job, 0, job["rows"]), seed)
    return {
        "first_call": first - start,
        "many_rows": len(unseen),
        "many": done - first,
        "one_row": time_single_rows(model, np.load(job["single_rows"])),
    }


def time_single_rows(model: Any, rows: np.ndarray) -> list[float]:
    model.transform(rows[:1])
    seconds = []
    for i in range(1, 1 + ONE_ROW_CALLS):
        start = perf_counter()
        model.transform(rows[i : i + 1])
        seconds.append(perf_counter() - start)
    return seconds


def seeds(job: Job, system: System) -> Report:
    """Make one map per seed, on the table `neighbors` if given, and time each fit; `warm_rows`: fit these first."""
    system.load()
    data = read_rows(job, 0, job["rows"])
    options: dict[str, Any] = metric_option(job)
    if "warm_rows" in job:
        system.fit(data[: job["warm_rows"]], job["seeds"][0], **options)
    if "neighbors" in job:
        with np.load(job["neighbors"]) as table:
            options["precomputed_knn"] = (table["index"], table["distance"])
    maps, seconds = [], []
    for seed in job["seeds"]:
        start = perf_counter()
        maps.append(system.fit(data, seed, **options).embedding_)
        seconds.append(perf_counter() - start)
    np.save(job["embedding"], np.stack(maps))
    return {"seeds": job["seeds"], "seconds": seconds}


def collection(job: Job, system: System) -> Report:
    """Make the maps of several data sets in one process, so that libraries compile once; each has its own report."""
    for part in job["parts"]:
        report = seeds(part, system)
        # Written last: where it exists, the maps are complete.
        Path(part["report"]).write_text(json.dumps(report))
    return {"data_sets": len(job["parts"])}


def held_out(job: Job, system: System) -> Report:
    """Fit training rows, place the test rows, and bring these back if `inverse` is set."""
    system.load()
    train, test = read_rows(job, 0, job["train_rows"]), read_rows(job, job["test_start"], job["rows"])
    start = perf_counter()
    model = system.fit(train, job["seed"], **job.get("options", {}))
    seconds = perf_counter() - start
    np.save(job["embedding"], model.embedding_)
    moved = model.transform(test)
    np.save(job["moved"], moved)
    report: Report = {"fit": seconds}
    if job.get("inverse"):
        report["squared_error"] = float(np.square(model.inverse_transform(moved) - test, dtype=np.float64).mean())
    return report


def neighbors(job: Job, system: System) -> Report:
    """Find the neighbors of all rows in a warm process."""
    system.load()
    system.find_neighbors(read_rows(job, 0, min(job["rows"], job["warm_rows"])), job["seed"])
    data = read_rows(job, 0, job["rows"])
    start = perf_counter()
    index = system.find_neighbors(data, job["seed"])
    seconds = perf_counter() - start
    np.save(job["index"], index)
    return {"neighbors": seconds}


TASKS = {
    "fit": fit,
    "stages": stages,
    "transform": transform,
    "seeds": seeds,
    "collection": collection,
    "held_out": held_out,
    "neighbors": neighbors,
    "progressive": progressive.progressive,
    "one_shot": progressive.one_shot,
    "atlas": atlas.atlas,
}


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text())
    report = TASKS[job["task"]](job, SYSTEMS[job["system"]])
    Path(sys.argv[2]).write_text(json.dumps(report))


if __name__ == "__main__":
    main()
