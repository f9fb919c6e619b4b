"""The suite `reliability`: planted rows, noise, ghosts against fits with other seeds, and what it costs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from datasets import open_dataset
from driver import Driver
from suites import Record, Suite

CASES_FILE = Path(__file__).with_name("reliability_cases.py")
# (case, data set, most rows); the data of the first two are drawn.
CASES = (
    ("planted", "digits", 1),
    ("noise", "digits", 1),
    ("stability", "digits", None),
    ("stability", "fashion", 10_000),
    ("cost", "fashion", None),
)


def reliability(driver: Driver) -> list[Record]:
    """Rows planted between clusters, noise, ghosts against 10 fits with other seeds, cost in processor seconds."""
    records = []
    for case, name, most in CASES:
        dataset = open_dataset(name, min(most or driver.size or sys.maxsize, driver.size or most or sys.maxsize))
        for repeat in range(driver.repeats):
            report = driver.scratch_file("report.json")
            command = [driver.interpreters["own"], CASES_FILE, case, dataset.data_file, str(dataset.rows), report]
            subprocess.run(command, check=True)
            shown = name if case in ("stability", "cost") else case
            records.append(
                {"case": shown, "rows": dataset.rows, "task": case, "repeat": repeat, **json.loads(report.read_text())}
            )
            report.unlink()
            print(f"  {case} {shown}", file=sys.stderr, flush=True)
    return records


RELIABILITY: dict[str, tuple[Suite, int]] = {"reliability": (reliability, 1)}
