"""Time reading of wide tables: `python benchmarks/wide_tables.py [--columns N]`; processor seconds.

Each format is read by vicinal and by the library alone. The bar: at most 3 times the time of the library plus 0.5 s.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from vicinal.files.readers import read_table

ROWS, REPEATS = 100, 5
TIMES, PLUS = 3.0, 0.5


def least_seconds(read: Callable[[], Any]) -> float:
    """Return the least processor seconds of several calls, after a first one."""
    read()
    spent = []
    for _ in range(REPEATS):
        start = time.process_time()
        read()
        spent.append(time.process_time() - start)
    return min(spent)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--columns", type=int, default=20_000)
    columns = asked.parse_args().columns
    rows = np.random.default_rng(0).normal(size=(ROWS, columns)).round(4)
    frame = pl.DataFrame(rows, schema=[f"gene{a}" for a in range(columns)])
    with tempfile.TemporaryDirectory() as folder:
        paths = {suffix: Path(folder) / f"wide.{suffix}" for suffix in ("csv", "parquet", "npy")}
        frame.write_csv(paths["csv"])
        frame.write_parquet(paths["parquet"])
        np.save(paths["npy"], rows)
        alone = {
            "csv": lambda: pl.read_csv(paths["csv"], infer_schema_length=None),
            "parquet": lambda: pl.read_parquet(paths["parquet"]),
            "npy": lambda: np.load(paths["npy"]),
        }
        print(f"{ROWS} rows of {columns:,} columns; processor seconds\nformat   library   vicinal   bar")
        for suffix, path in paths.items():
            library, own = least_seconds(alone[suffix]), least_seconds(lambda path=path: read_table(path))
            print(f"{suffix:8} {library:7.3f} {own:9.3f} {TIMES * library + PLUS:8.3f}")


if __name__ == "__main__":
    main()
