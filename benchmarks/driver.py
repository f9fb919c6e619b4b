"""Start measured processes, one at a time, each in the environment of its system."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import perf_counter
from typing import Any

from datasets import Dataset
from systems import SYSTEMS

MEASURE = Path(__file__).with_name("measure.py")


@dataclass
class Driver:
    """Runs jobs in separate processes.

    `interpreters` has one interpreter per environment; `size` limits every data set to its first rows; `scratch` is the
    directory of temporary files, `pictures` that of figures drawn by suites.
    """

    interpreters: dict[str, Path]
    scratch: Path
    repeats: int
    size: int | None = None
    pictures: Path = Path()

    def __post_init__(self) -> None:
        self.scratch.mkdir(parents=True, exist_ok=True)
        self.numbers = count()

    def scratch_file(self, name: str) -> Path:
        """Return a file name that no other measurement uses."""
        return self.scratch / f"{next(self.numbers)}-{name}"

    def measure(self, job: dict[str, Any], dataset: Dataset | None) -> dict[str, Any]:
        """Run one job in a separate process and return its report with the wall time of the whole process.

        A job that names its own files has no data set.
        """
        job_file, report_file = self.scratch_file("job.json"), self.scratch_file("report.json")
        name = "several data sets" if dataset is None else dataset.key
        if dataset is not None:
            job = job | {"data": str(dataset.data_file), "rows": dataset.rows}
        job_file.write_text(json.dumps(job))
        interpreter = self.interpreters[SYSTEMS[job["system"]].environment]
        start = perf_counter()
        process = subprocess.run(
            [interpreter, MEASURE, job_file, report_file],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        wall = perf_counter() - start
        if process.returncode != 0:
            raise SystemExit(f"{job['system']} failed at {job['task']} on {name}:\n{process.stderr[-4000:]}")
        report = json.loads(report_file.read_text())
        job_file.unlink()
        report_file.unlink()
        print(f"  {job['task']} {name} {job['system']} {wall:.1f} s", file=sys.stderr, flush=True)
        return {"wall": wall, **report}
