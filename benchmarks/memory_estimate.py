"""Compare ``vicinal.estimate_memory`` with the measured peak of resident memory, each fit in a fresh process.

    python benchmarks/memory_estimate.py                                       # Fashion-MNIST, a table
    python benchmarks/memory_estimate.py --odd                                 # unusual shapes and parameters, a table
    python benchmarks/memory_estimate.py --estimator UMAP --rows 8000 --columns 200     # one fit of random rows, JSON
    python benchmarks/memory_estimate.py --estimator UMAP --rows 1000000 --columns 768 --unusual '{"dtype": "int8"}'

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

# Unusual fits: estimator, rows, columns, and what is unusual about the input or the parameters.
ODD: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("UMAP", 200_000, 2, {}),
    ("UMAP", 400, 50_000, {}),
    ("UMAP", 1_000, 20_000, {}),
    ("UMAP", 20_000, 10, {"n_neighbors": 100}),
    ("UMAP", 10_000, 50, {"n_components": 50}),
    ("UMAP", 20_000, 2_000, {"density": 0.01}),
    ("UMAP", 5_000, 1 << 24, {"density": 1e-6}),
    ("UMAP", 4_000, 4_000, {"metric": "precomputed"}),
    ("UMAP", 20_000, 300, {"metric": "seuclidean", "dtype": "float64"}),
    ("UMAP", 3_000, 3_000, {"init": "pca"}),
    ("DensMAP", 40_000, 5, {}),
    ("TSNE", 8_000, 1_000, {"perplexity": 100.0}),
    ("LargeVis", 5_000, 600, {}),
    ("KNeighborsTransformer", 50_000, 129, {"metric": "cosine"}),
    ("UMAP", 100_000, 768, {"dtype": "int8"}),
    ("UMAP", 100_000, 768, {"dtype": "float16", "metric": "cosine"}),
)


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


def embeddings(n: int, d: int, dtype: str) -> np.ndarray:
    """Return rows of a small type near sheets of 12 dimensions, as embeddings of texts are, made block by block."""
    rng = np.random.default_rng(0)
    whole = np.iinfo(dtype) if np.dtype(dtype).kind in "iu" else None
    middles, sheet = rng.normal(size=(200, 12)).astype(np.float32) * 2, rng.normal(size=(12, d)).astype(np.float32)
    rows = np.empty((n, d), dtype=dtype)
    for block in (rows[begin : begin + 10_000] for begin in range(0, n, 10_000)):
        inner = middles[rng.integers(200, size=len(block))] + rng.standard_normal((len(block), 12), dtype=np.float32)
        values = inner @ sheet + rng.standard_normal(block.shape, dtype=np.float32) / 4
        block[:] = values if whole is None else np.clip(6 * values + (whole.max + whole.min) // 2, whole.min, whole.max)
    return rows


def odd_rows(n: int, d: int, density: float | None, dtype: str, metric: str) -> Any:
    """Return random rows: sparse, of another type than float32, or distances."""
    if density is not None:
        from scipy.sparse import csr_matrix

        rng, stored = np.random.default_rng(0), max(4, round(density * d))
        where = np.repeat(np.arange(n), stored), rng.integers(d, size=n * stored)
        rows = csr_matrix((rng.random(n * stored, dtype=np.float32), where), shape=(n, d))
        rows.sum_duplicates()
        return rows
    if metric == "precomputed":
        places = rows_of(n, 3).astype(np.float64)
        lengths = (places**2).sum(axis=1)
        return np.sqrt(np.maximum(lengths[:, None] + lengths - 2 * places @ places.T, 0)).astype(dtype)
    return embeddings(n, d, dtype) if dtype in ("float16", "int8", "uint8") else rows_of(n, d).astype(dtype)


def measured(estimator: str, n: int, d: int | None, unusual: dict[str, Any] | None = None) -> dict[str, Any]:
    import vicinal

    params = dict(unusual or {})
    density, dtype = params.pop("density", None), params.pop("dtype", "float32")
    few = {} if estimator == "KNeighborsTransformer" else SHORT.get(estimator, {"n_epochs": 5})
    few = {**few, **params}
    cls = getattr(vicinal, estimator)
    rows = rows_of(n, d) if unusual is None else odd_rows(n, d or 1, density, dtype, params.get("metric", ""))
    small = rows[:300, :300] if params.get("metric") == "precomputed" else rows[:300, :50]
    cls(**few, n_jobs=2).fit(small.copy())
    ctypes.CDLL(None).malloc_trim(0)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    model = cls(**few, n_jobs=2, random_state=0).fit(rows)
    peak = resident("VmHWM") - before
    ctypes.CDLL(None).malloc_trim(0)
    held = resident("VmRSS") - before
    more = params | ({} if density is None else {"nnz": rows.nnz})
    estimate = vicinal.estimate_memory(*rows.shape, estimator=estimator, dtype=dtype, **more)
    return {
        "estimator": estimator,
        "rows": n,
        "columns": rows.shape[1],
        "peak": peak,
        "estimate": estimate,
        "held": held,
        "input": getattr(rows, "nbytes", 0),
        "seconds": getattr(model, "stage_times_", {}),
    }


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--estimator")
    asked.add_argument("--rows", type=int)
    asked.add_argument("--columns", type=int, help="columns of random rows; default: Fashion-MNIST")
    asked.add_argument("--unusual", type=json.loads, help="parameters of the fit and kind of its input, as JSON")
    asked.add_argument("--odd", action="store_true", help="unusual shapes and parameters")
    options = asked.parse_args()
    if options.estimator:
        print(json.dumps(measured(options.estimator, options.rows, options.columns, options.unusual)))
        return
    if options.odd:
        for estimator, n, d, unusual in ODD:
            command = [sys.executable, __file__, "--estimator", estimator, "--rows", str(n), "--columns", str(d)]
            command += ["--unusual", json.dumps(unusual)]
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode:
                print(estimator, n, d, unusual, done.stderr[-300:])
                continue
            found = json.loads(done.stdout)
            peak, estimate = found["peak"] / 1e6, found["estimate"] / 1e6
            print(f"{estimator} {n} x {d} {unusual}: {peak:.1f} MB, estimated {estimate:.1f} MB, {estimate / peak:.2f}")
        return
    for estimator in ESTIMATORS:
        for n in SIZES:
            command = [sys.executable, __file__, "--estimator", estimator, "--rows", str(n)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            peak, estimate = found["peak"] / 1e6, found["estimate"] / 1e6
            print(f"{estimator:10} {n:6} rows: {peak:6.1f} MB, estimated {estimate:6.1f} MB, {estimate / peak:.2f}")


if __name__ == "__main__":
    main()
