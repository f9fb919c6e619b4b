"""The section of RESULTS.md about the core in JavaScript, from the raw results of wasm.py."""

from __future__ import annotations

import statistics
from pathlib import Path

from bars import seconds
from release import read_result

ROWS, COLUMNS = 10_000, 50
SELECTED, LARGE = 2_000, 70_000
# What is allowed: times of the package, share of umap-js, seconds, megabytes, kilobytes.
NATIVE_TIMES, UMAP_JS_SHARE, SELECTED_SECONDS, MOST_MEMORY, MOST_MODULE = 4.0, 0.2, 3.0, 600.0, 250.0


def wasm_section(results: Path) -> list[str]:
    """Return the section of RESULTS.md, or nothing if there are no results."""
    found = read_result(results / "wasm.json")
    if found is None:
        return []
    machine, records = found["machine"], found["records"]

    def middle(system: str, what: str, rows: int = ROWS) -> float:
        return statistics.median(one[what] for one in records if one["system"] == system and one["rows"] == rows)

    systems = "fit", "native", "umapjs", "fit200"
    ours, native, peer, equal = (middle(system, "processor") for system in systems)
    selected, large = middle("layout", "processor", SELECTED), middle("layout", "processor", LARGE)
    peak, module = middle("layout", "peak", LARGE) / 1e6, found["module_bytes_gzipped"] / 1e3
    size = f"{ROWS:,} x {COLUMNS}"
    lines = [
        (f"{size}, rows to map, against the package", f"{ours / native:.2f} times", ours / native, NATIVE_TIMES),
        (f"{size}, against umap-js", f"1/{peer / ours:.1f} of {seconds(peer)}", ours / peer, UMAP_JS_SHARE),
        (f"{size} in 200 epochs, against umap-js", f"1/{peer / equal:.1f}", equal / peer, UMAP_JS_SHARE),
        (f"layout of {SELECTED:,} rows, 500 epochs, seconds", f"{selected:.2f}", selected, SELECTED_SECONDS),
        (f"layout of {LARGE:,} rows ({seconds(large)}), megabytes of the process", f"{peak:,.0f}", peak, MOST_MEMORY),
        ("module, gzipped, kilobytes", f"{module:,.0f}", module, MOST_MODULE),
    ]
    return [
        "## In JavaScript",
        "",
        f"WebAssembly in Node {next(one['node'] for one in records if 'node' in one)}, {machine['cpu']}; one thread. "
        f"Processor seconds, median of {found['repeats']}; the systems take turns. {size}: a mixture of 20 normal "
        f"distributions. The package takes {seconds(native)}, the module {seconds(ours)}. umap-js {found['umap_js']} "
        "has its own defaults, 200 epochs for these rows; ours are 500. Raw figures: `results/wasm.json`.",
        "",
        "| work | value | at most | met |",
        "| --- | --- | --- | --- |",
        *(
            f"| {work} | {shown} | {f'1/{1 / bar:g}' if bar < 1 else f'{bar:g}'} | {'yes' if value <= bar else 'no'} |"
            for work, shown, value, bar in lines
        ),
        "",
    ]
