"""The section of the results about fits of Dask arrays, from the raw JSON of cluster.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from release import read_result

Record = dict[str, Any]
Line = tuple[str, str, str, bool]

PROCESSOR_LIMIT, RECALL_LIMIT, SLACK, SCHEDULER_LIMIT, OUT_OF_CORE_LIMIT = 1.6, 0.95, 0.02, 0.01, 1.5e9


def megabytes(size: float) -> str:
    return f"{size / 1e6:,.0f} MB"


def work_of(record: Record) -> str:
    threads = f" of {record['threads']} threads" if record["threads"] > 1 else ""
    workers = "1 worker" if record["workers"] == 1 else f"{record['workers']} workers"
    return f"{record['rows']:,} x {record['columns']}, {workers}{threads}"


def worker_lines(fits: list[Record], local: Record) -> Iterator[Line]:
    """Yield what fits on workers took: what, value, limit, whether it is met."""
    for record in fits:
        peak, allowed, share = (
            record["largest_worker_bytes"],
            record["allowed_worker_bytes"],
            record["scheduler_share"],
        )
        if record["rows"] == local["rows"]:
            ratio = record["processor_seconds"] / local["processor_seconds"]
            what = f"{work_of(record)}: processor time relative to the local fit"
            yield what, f"{ratio:.2f}", f"≤ {PROCESSOR_LIMIT:g}", ratio <= PROCESSOR_LIMIT
        what = f"{work_of(record)}: bytes through the scheduler, of the data"
        yield what, f"{100 * share:.2f} %", f"< {SCHEDULER_LIMIT:.0%}", share < SCHEDULER_LIMIT
        yield f"{work_of(record)}: peak of a worker", megabytes(peak), f"< {megabytes(allowed)}", peak < allowed


def map_lines(what: str, maps: list[Record]) -> Iterator[Line]:
    """Yield how the map of a Dask array compares with the local one, which is the first of ``maps``."""
    local, spread = maps[0], maps[-1]
    recall = spread["neighbor_recall"]
    yield f"{what}: neighbor recall", f"{recall:.4f}", f"≥ {RECALL_LIMIT:g}", recall >= RECALL_LIMIT
    # Better than the local map by more is no fault.
    change = spread["map_recall_15"] / local["map_recall_15"] - 1
    name = f"{what}: recall of 15 neighbors in the map relative to the local map, {local['map_recall_15']:.4f}"
    yield name, f"{100 * change:+.2f} %", f"≥ -{SLACK:.0%}", change >= -SLACK
    change = spread["J"] / local["J"] - 1
    yield f"{what}: J relative to the local map", f"{100 * change:+.2f} %", f"≤ {SLACK:.0%}", change <= SLACK


def cluster_lines(records: list[Record]) -> list[Line]:
    """Return all lines of the table."""
    lines: list[Line] = []
    [local] = [record for record in records if record["case"] == "local"]
    fits = [record for record in records if record.get("workers") and "stages" in record]
    lines += worker_lines(fits, local)
    for record in records:
        if record["case"] == "score":
            lines += map_lines(f"{local['rows']:,} x {local['columns']}", record["maps"])
            same = all(one["same_bits"] for one in record["maps"][1:])
            names = ", ".join(one["map"] for one in record["maps"][1:])
            lines.append((f"the same bits: {names}", "yes" if same else "no", "yes", same))
        if record["case"] == "seeds":
            scores = ("neighbor_recall", "map_recall_15", "J")
            both = [[one["maps"][at] for one in record["seeds"]] for at in (0, 1)]
            means = [{score: fmean(one[score] for one in maps) for score in scores} for maps in both]
            lines += map_lines(f"{record['rows']:,} x {record['columns']}, mean of {len(both[0])} seeds", means)
        if record["case"] == "transform":
            same = record["same_bits"]
            what = (
                f"{record['rows']:,} rows transformed on {record['workers']} workers: the bits of the local transform"
            )
            lines.append((what, "yes" if same else "no", "yes", same))
        if record.get("memory_limit") and "peak_bytes" in record:
            peak, data = record["peak_bytes"], 4e-9 * record["rows"] * record["columns"]
            what = f"{record['rows']:,} x {record['columns']} ({data:.1f} GB) within {record['memory_limit']}"
            for name, allowed in (
                ("peak of all processes", OUT_OF_CORE_LIMIT),
                ("peak of a worker, the only one", record["allowed_worker_bytes"]),
            ):
                lines.append((f"{what}: {name}", megabytes(peak), f"< {megabytes(allowed)}", peak < allowed))
    return lines


def cluster_section(results: Path) -> list[str]:
    """Return the section, or nothing if there are no results."""
    found = read_result(results / "cluster.json")
    if found is None:
        return []
    machine = found["machine"]
    lines = [
        f"| {what} | {value} | {limit} | {'yes' if met else 'no'} |"
        for what, value, limit, met in cluster_lines(found["records"])
    ]
    return [
        "## On Dask arrays",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, Python {machine['python']}, if a line says nothing else. "
        f"{found['description']} Raw figures: `results/cluster.json`.",
        "",
        "| what | measured | allowed | met |",
        "|---|---|---|---|",
        *lines,
        "",
    ]
