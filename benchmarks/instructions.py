"""Count the instructions of the stages with valgrind: the same on a busy machine, unlike seconds.

    python benchmarks/instructions.py                              # compare with the recorded counts
    python benchmarks/instructions.py --record                     # record the counts of a release
    python benchmarks/instructions.py --record --reason "TEXT"     # needed if a count has grown by more than 5 %

Each stage runs once on small fixed data, in one thread, at level v3 (valgrind has no AVX-512), after a first call that
is not counted. The counts include Python's own instructions, so they are recorded per compiler and version of Python.
Exit code 1: a count has grown by more than 5 %. Without valgrind, or without counts for this compiler and Python, the
comparison is skipped and says why.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from release import measured_code

RESULTS = Path(__file__).resolve().parent / "results" / "instructions.json"
GROWTH = 0.05
LEVEL = "v3"
ROWS, COLUMNS, CLUSTERS, EPOCHS, NEW_ROWS = 3_000, 32, 20, 10, 200
# Valgrind's client requests are C macros, so a library of three functions is compiled beside the counts.
MARKS = """
#include <valgrind/callgrind.h>
void start(void) { CALLGRIND_START_INSTRUMENTATION; }
void stop(void) { CALLGRIND_STOP_INSTRUMENTATION; }
void dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""


def stages() -> dict[str, Callable[[], object]]:
    """Return the stages as functions without arguments."""
    import numpy as np

    import vicinal

    rng = np.random.default_rng(0)
    centers = 6 * rng.normal(size=(CLUSTERS, COLUMNS))
    rows = (centers[rng.integers(CLUSTERS, size=ROWS)] + rng.normal(size=(ROWS, COLUMNS))).astype(np.float32)
    unseen = rows[:NEW_ROWS] + np.float32(0.25)
    neighbors = vicinal.find_neighbors(rows, method="approximate", n_jobs=1)
    graph, start = vicinal.fuzzy_graph(neighbors, n_jobs=1), vicinal.random_start(ROWS)
    model = vicinal.UMAP(n_epochs=EPOCHS, random_state=0, n_jobs=1).fit(rows)

    def layout() -> None:
        vicinal.Layout(graph, start, vicinal.fit_ab(min_dist=0.1), vicinal.Schedule(EPOCHS), n_jobs=1).step(EPOCHS)

    return {
        "neighbors": lambda: vicinal.find_neighbors(rows, method="approximate", n_jobs=1),
        "exact neighbors": lambda: vicinal.find_neighbors(rows[: ROWS // 2], method="exact", n_jobs=1),
        "graph": lambda: vicinal.fuzzy_graph(neighbors, n_jobs=1),
        "layout": layout,
        "transform": lambda: model.transform(unseen),
        "transform of one row": lambda: model.transform(unseen[:1]),
    }


def run_stages(library: str) -> None:
    """Run in valgrind: dump the instructions of each stage under its name."""
    marks = ctypes.CDLL(library)
    for name, stage in stages().items():
        stage()
        marks.start()
        stage()
        marks.stop()
        marks.dump(name.encode())


def count_instructions() -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "marks.c", Path(folder) / "marks.so"
        source.write_text(MARKS)
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", source, "-o", library], check=True)
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--quiet"]
        done = subprocess.run(
            [*valgrind, f"--callgrind-out-file={folder}/counts", sys.executable, __file__, "--stages", library],
            env=os.environ | {"VICINAL_LEVEL": LEVEL, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"the stages failed in valgrind:\n{done.stderr[-4000:]}")
        counts = {}
        for file in Path(folder).glob("counts.*"):
            text = file.read_text()
            name, total = (
                re.search(r"^desc: Trigger: Client Request: (.+)$", text, re.M),
                re.search(r"^totals: (\d+)", text, re.M),
            )
            if name and total:
                counts[name.group(1)] = int(total.group(1))
        return counts


def describe_platform() -> str:
    compiler = subprocess.run(["c++", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    return f"{platform.machine()} {LEVEL}, GCC {compiler}, Python {'.'.join(platform.python_version_tuple()[:2])}"


def missing_tool() -> str | None:
    return next((tool for tool in ("valgrind", "cc", "c++") if shutil.which(tool) is None), None)


def grown_stages(counts: dict[str, int], before: dict[str, int]) -> list[str]:
    """Return the stages whose count has grown by more than `GROWTH`."""
    return [name for name, count in counts.items() if count > (1 + GROWTH) * before.get(name, count)]


def record(document: dict[str, Any], where: str, counts: dict[str, int], reason: str | None) -> dict[str, Any]:
    """Return the document with new counts; refuse growth without a reason."""
    before = document["counts"].get(where, {})
    grown = grown_stages(counts, before)
    if grown and not reason:
        raise SystemExit(f"{', '.join(grown)}: more than {GROWTH:.0%} above the recorded count; give a --reason")
    today = date.today().isoformat()
    reasons = [
        {"date": today, "stage": name, "from": before[name], "to": counts[name], "reason": reason} for name in grown
    ]
    return {
        "suite": "instructions",
        "code": measured_code(),
        "counts": document["counts"] | {where: counts},
        "reasons": document["reasons"] + reasons,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--reason")
    parser.add_argument("--stages", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.stages:
        run_stages(given.stages)
        return 0
    missing = missing_tool()
    if missing:
        print(f"skipped: {missing} is not installed")
        return 0
    document = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"counts": {}, "reasons": []}
    where = describe_platform()
    before = document["counts"].get(where)
    if before is None and not given.record:
        print(f"skipped: no counts are recorded for {where}")
        return 0
    counts = count_instructions()
    for name, count in counts.items():
        known = (before or {}).get(name)
        print(f"{name}: {count:,}" + (f", {count / known - 1:+.2%}" if known else ""))
    if given.record:
        RESULTS.write_text(json.dumps(record(document, where, counts, given.reason), indent=1) + "\n")
        return 0
    grown = grown_stages(counts, before or {})
    if grown:
        print(
            f"more than {GROWTH:.0%} above the recorded count: {', '.join(grown)}; mend it, or --record with a --reason"
        )
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
