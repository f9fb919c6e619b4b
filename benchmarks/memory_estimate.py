"""Compare ``vicinal.estimate_memory`` with the measured peak of resident memory, each fit in a fresh process.

    python benchmarks/memory_estimate.py                                       # Fashion-MNIST, a table
    python benchmarks/memory_estimate.py --estimator UMAP --rows 8000 --columns 200     # one fit of random rows, JSON

The measurement is the growth of resident memory during ``fit``, without the input, which is already in memory. A small
fit has loaded the libraries before.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

SIZES = (10_000, 35_000, 70_000)
ESTIMATORS = ("UMAP", "DensMAP", "TSNE", "LargeVis", "ProgressiveUMAP")
# Parameters that make a fit shorter but not smaller.
SHORT: dict[str, dict[str, Any]] = {"TSNE": {"max_iter": 20}, "ProgressiveUMAP": {"new_epochs": 6, "polish_epochs": 6}}


def resident(kind: str) -> int:
    """Return the bytes of VmRSS (current) or VmHWM (peak since the last reset)."""
    found = re.search(rf"{kind}:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def rows_of(n: int, d: int | None) -> np.ndarray:
    if d is None:
        from datasets import read_fashion

        return np.array(read_fashion()[0][:n], dtype=np.float32).reshape(n, -1)
    rng = np.random.default_rng(0)
    return (rng.normal(size=(20, d))[rng.integers(20, size=n)] * 3 + rng.normal(size=(n, d))).astype(np.float32)


def measured(estimator: str, n: int, d: int | None) -> dict[str, Any]:
    import vicinal

    few = SHORT.get(estimator, {"n_epochs": 5})
    cls = getattr(vicinal, estimator)
    rows = rows_of(n, d)
    cls(**few, n_jobs=2).fit(rows[:300, :50].copy())
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    cls(**few, n_jobs=2, random_state=0).fit(rows)
    peak = resident("VmHWM") - before
    estimate = vicinal.estimate_memory(*rows.shape, estimator=estimator)
    return {"estimator": estimator, "rows": n, "columns": rows.shape[1], "peak": peak, "estimate": estimate}


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--estimator")
    asked.add_argument("--rows", type=int)
    asked.add_argument("--columns", type=int, help="columns of random rows; default: Fashion-MNIST")
    options = asked.parse_args()
    if options.estimator:
        print(json.dumps(measured(options.estimator, options.rows, options.columns)))
        return
    for estimator in ESTIMATORS:
        for n in SIZES:
            command = [sys.executable, __file__, "--estimator", estimator, "--rows", str(n)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            peak, estimate = found["peak"] / 1e6, found["estimate"] / 1e6
            print(f"{estimator:10} {n:6} rows: {peak:6.1f} MB, estimated {estimate:6.1f} MB, {estimate / peak:.2f}")


if __name__ == "__main__":
    main()
