"""Fits of Dask arrays: bits, processor time, memory and traffic, beside the local fit of the same rows.

    python benchmarks/cluster.py --out FILE [--cases CASE...] [--rows N] [--epochs N] [--seconds S]

Cases are run one after the other; "a,b+c" runs c beside a and then b. FILE is written after every case, so that a run
that is cut off still tells something. `run.py cluster` runs all cases.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("cluster_case.py")
ROWS, COLUMNS, CLUSTERS = 1_000_000, 64, 200
LARGE_ROWS, LARGE_EPOCHS = 5_000_000, 20
SEED_ROWS, SEEDS = 200_000, (1, 2, 3)
LIMIT = "1.5GB"
# Arguments of each case. Chunks differ, so that equal bits show that they do not matter.
FITS = {
    "local": ["--local", "--threads", "4"],
    "threads": ["--threads", "4"],
    "workers-1": ["--workers", "1", "--threads", "4", "--chunk", "77777"],
    "workers-2": ["--workers", "2", "--threads", "2", "--chunk", "10000"],
    "workers-4": ["--workers", "4", "--chunk", "50000"],
}
LARGE_FITS = {
    "large-limit": ["--threads", "8", "--limit", LIMIT, "--chunk", "25000"],
    "large-workers-16": ["--workers", "16", "--chunk", "50000"],
}
LARGE_COLUMNS = {"large-limit": 128, "large-workers-16": 64}
TRANSFORM = ["--workers", "4", "--threads", "1"]
CASES = (*FITS, "score", "seeds", "transform", *LARGE_FITS)


@dataclass
class Run:
    """The cases of a run, and where their files lie. ``rows`` are those of the cases that are not large."""

    directory: Path
    rows: int = ROWS
    epochs: int | None = None
    deadline: float = float("inf")
    records: list[dict[str, Any]] = field(default_factory=list)

    def case(self, name: str) -> dict[str, Any]:
        """Run one case."""
        begin = time.perf_counter()
        data, out = str(self.prepared(name)), str(self.map_file(name))
        found: Any
        if name == "score":
            maps = [str(one) for one in map(self.map_file, FITS) if one.exists()]
            found = {"maps": self.call("score", data, *maps)}
        elif name == "seeds":
            rows = self.rows * SEED_ROWS // ROWS
            found = {"rows": rows, "columns": COLUMNS, "seeds": [self.seed(data, seed) for seed in SEEDS]}
        elif name == "transform":
            found = self.call("transform", data, out, *TRANSFORM, *self.options())
        elif name in LARGE_FITS:
            found = self.call("fit", data, out, *LARGE_FITS[name], *self.options(LARGE_EPOCHS))
        else:
            found = self.call("fit", data, out, *FITS[name], *self.options())
        return {"case": name, "wall": round(time.perf_counter() - begin, 1), **found}

    def seed(self, data: str, seed: int) -> dict[str, Any]:
        """Return how the local map and the map of a Dask array of the same rows compare with this seed."""
        outs = [str(self.map_file(f"{kind}-{seed}")) for kind in ("local", "threads")]
        for out, kind in zip(outs, (FITS["local"], FITS["threads"]), strict=True):
            self.call("fit", data, out, *kind, "--seed", str(seed), *self.options())
        return {"seed": seed, "maps": self.call("score", data, *outs)}

    def options(self, epochs: int | None = None) -> list[str]:
        epochs = epochs if self.epochs is None else self.epochs
        return [] if epochs is None else ["--epochs", str(epochs)]

    def map_file(self, name: str) -> Path:
        return self.directory / f"{name}.npy"

    def prepared(self, name: str) -> Path:
        """Return the file of the rows of a case, which is made if there is none."""
        whole = {"seeds": SEED_ROWS}.get(name, LARGE_ROWS if name in LARGE_FITS else ROWS)
        rows, columns = self.rows * whole // ROWS, LARGE_COLUMNS.get(name, COLUMNS)
        file = self.directory / f"mixture-{rows}-{columns}.npy"
        if not file.exists():
            self.call("prepare", str(file), str(rows), str(columns), str(CLUSTERS))
        return file

    def call(self, *arguments: str) -> Any:
        left = self.deadline - time.perf_counter()
        done = subprocess.run(
            [sys.executable, PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=None if left == float("inf") else max(left, 1),
        )
        return json.loads(done.stdout.splitlines()[-1])

    def run(self, cases: list[str], seen: Any = None) -> None:
        """Run cases; a case that fails or takes too long is recorded as such."""
        for together in cases:
            lanes = [lane.split(",") for lane in together.split("+")]
            for name in (name for lane in lanes for name in lane):
                self.prepared(name)
            with ThreadPoolExecutor(len(lanes)) as pool:
                list(pool.map(lambda lane: [self.attempt(name, seen) for name in lane], lanes))

    def attempt(self, name: str, seen: Any) -> None:
        try:
            record = self.case(name)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            record = {"case": name, "failed": str(error)[-300:]}
        self.records.append(record)
        print(json.dumps(record), file=sys.stderr, flush=True)
        if seen is not None:
            seen(self.records)


def cluster(driver: Any) -> list[dict[str, Any]]:
    """A mixture of 200 clusters fitted locally, on Dask's threads and on 1, 2 and 4 processes, with several chunks.

    Then 200,000 rows with three seeds, 1M rows transformed on 4 workers, 5M x 128 within a memory limit, and 5M x 64 on
    16 workers.
    """
    run = Run(driver.scratch, driver.size or ROWS, None if driver.size is None else 40)
    run.run(list(CASES))
    return run.records


SUITES = {"cluster": (cluster, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cases", nargs="+", default=list(CASES), help=f"of {', '.join(CASES)}")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="after which no case goes on")
    parser.add_argument("--directory", type=Path, help="of rows and maps, kept for further calls")
    given = parser.parse_args()
    from machine import describe_machine
    from release import measured_code

    with tempfile.TemporaryDirectory() as scratch:
        run = Run(given.directory or Path(scratch), given.rows, given.epochs, time.perf_counter() + given.seconds)
        document = {"suite": "cluster", "description": cluster.__doc__}
        document |= {"code": measured_code(), "machine": describe_machine()}

        def write(records: list[dict[str, Any]]) -> None:
            given.out.write_text(json.dumps(document | {"records": records}, indent=1) + "\n")

        run.run(given.cases, write)


if __name__ == "__main__":
    main()
