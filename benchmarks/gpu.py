"""The CUDA backend on one GPU: bits against the CPU, whole fits, as JSON.

    python benchmarks/gpu.py --out FILE [--parts bits,fashion,mixture-1M-50,...] [--seconds 100] [--profile] \
        [--images FILE] [--commit NAME]

Every part is guarded: a failure is recorded with its traceback and the next part runs. Results are written as they
come. ``--profile`` prints where the last fit or transform of each part spends its time; ``--images`` names a file .npz
with the images of Fashion-MNIST as bytes, under the name "x".
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import gc
import io
import json
import os
import platform
import pstats
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy as cp
import numpy as np
from gpu_bits import bits, same_bits
from gpu_table import bars
from release import measured_code

import vicinal
from vicinal import Neighbors
from vicinal.backends import resolve_place
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fit import ArrayExecutor, fit

RESULTS: dict[str, Any] = {}
OPTIONS = argparse.Namespace(images=None, profile=False)


def machine() -> dict[str, Any]:
    """Describe the card and the versions."""
    properties = cp.cuda.runtime.getDeviceProperties(0)
    return {
        "card": properties["name"].decode(),
        "driver version": driver_version(),
        "driver": cp.cuda.runtime.driverGetVersion(),
        "runtime": cp.cuda.runtime.runtimeGetVersion(),
        "cupy": cp.__version__,
        "numpy": np.__version__,
        "vicinal": vicinal.__version__,
        "python": platform.python_version(),
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }


def driver_version() -> str:
    """Return the version of the driver, if nvidia-smi can say it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


@contextlib.contextmanager
def profiled(wanted: bool) -> Iterator[None]:
    """Print the functions that take most of the time."""
    if not (OPTIONS.profile and wanted):
        yield
        return
    profile = cProfile.Profile()
    with profile:
        yield
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(16)
    lines = [line for line in text.getvalue().splitlines() if line.strip()]
    print("\n".join(line[:110] for line in lines[2:]), flush=True)


def fashion_like(n: int = 70_000, d: int = 784) -> np.ndarray:
    """Return Fashion-MNIST if its images are given, otherwise rows of the same size in ten curved clusters."""
    if OPTIONS.images is not None:
        return np.load(OPTIONS.images)["x"].astype(np.float32)[:n]
    rng = np.random.default_rng(0)
    basis, centers = rng.normal(size=(10, 12, d)), rng.normal(size=(10, d)) * 2
    label, hidden = rng.integers(0, 10, n), rng.normal(size=(n, 12))
    rows = np.empty((n, d), np.float32)
    for j in range(10):
        at = label == j
        rows[at] = centers[j] + np.sin(hidden[at]) @ basis[j] + 0.1 * rng.normal(size=(int(at.sum()), d))
    return rows


def mixture(n: int, d: int, clusters: int = 200, rank: int = 8, seed: int = 0) -> Any:
    """Return a mixture of clusters of a low rank with noise, on the device."""
    cp.random.seed(seed)
    normal = cp.random.standard_normal
    centers = normal((clusters, d), dtype=np.float32)
    bases = normal((clusters, rank, d), dtype=np.float32) * np.float32(0.5)
    label = cp.random.randint(0, clusters, n)
    rows = cp.empty((n, d), np.float32)
    for j in range(clusters):
        at = cp.flatnonzero(label == j)
        hidden, noise = normal((len(at), rank), dtype=np.float32), normal((len(at), d), dtype=np.float32)
        rows[at] = centers[j] + hidden @ bases[j] + np.float32(0.1) * noise
    return rows


def timed_fits(X: Any, runs: int = 2, **parameters: Any) -> list[dict[str, Any]]:
    """Fit several times; return seconds in all and per stage."""
    out = []
    for run in range(runs):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        with profiled(run == runs - 1):
            model = vicinal.UMAP(random_state=0, device="cuda", **parameters).fit(X)
        seconds = time.perf_counter() - start
        out.append({"seconds": round(seconds, 3), **{k: round(v, 3) for k, v in model.stage_times_.items()}})
        print(out[-1], flush=True)
    out[-1]["recall"] = sampled_recall(X, model.map_.neighbors.index)
    print("recall", out[-1]["recall"], flush=True)
    return out


def sampled_recall(X: Any, table: np.ndarray, m: int = 100) -> float:
    """Return the share of true neighbors in a table, for some rows."""
    rows = cp.asarray(X, dtype=np.float32)
    n, k = table.shape
    sample = np.linspace(0, n - 1, m).astype(np.int64)
    index, hits = table[sample], 0
    for i, row in zip(index, sample, strict=True):
        d2 = ((rows - rows[row]) ** 2).sum(axis=1)
        true = cp.asnumpy(cp.argsort(d2)[:k])
        hits += len(np.intersect1d(i, true))
    return hits / (m * k)


def fashion() -> dict[str, Any]:
    """Fit rows of the size of Fashion-MNIST, from the host and from the device."""
    X = fashion_like()
    data = "ten clusters" if OPTIONS.images is None else "Fashion-MNIST"
    out: dict[str, Any] = {"data": data, "host": timed_fits(X, 3)}
    out["device"] = timed_fits(cp.asarray(X), 3)
    return out


def mixture_fit(n: int, d: int) -> dict[str, Any]:
    """Fit a mixture, from the device and from the host."""
    X = mixture(n, d)
    out: dict[str, Any] = {"device": timed_fits(X, 3)}
    X = cp.asnumpy(X)
    cp.get_default_memory_pool().free_all_blocks()
    out["host"] = timed_fits(X, 2)
    return out


FIRST_FIT = """
import sys, time
import numpy as np
from vicinal import UMAP
X = np.load(sys.argv[1])
for _ in range(2):
    start = time.perf_counter()
    UMAP(random_state=0, device="cuda").fit(X)
    print(round(time.perf_counter() - start, 3))
"""


def first_call() -> dict[str, Any]:
    """Time the first and second fit of fresh processes, without and with kernels in the cache."""
    out: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.npy"
        np.save(rows, fashion_like())
        environment = os.environ | {"CUPY_CACHE_DIR": f"{folder}/kernels"}
        for name in ("not cached", "cached"):
            command = [sys.executable, "-c", FIRST_FIT, str(rows)]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
            out[name] = [float(line) for line in done.stdout.split()] or done.stderr[-2000:]
            print("first and second fit of a process, kernels", name, out[name], flush=True)
    return out


def transform() -> dict[str, Any]:
    """Place a million new rows in a map of a million."""
    both = mixture(2_000_000, 50)
    model = vicinal.UMAP(random_state=0, device="cuda").fit(both[::2])
    new, out = both[1::2], {"seconds": []}
    for run in range(3):
        cp.cuda.Device().synchronize()
        start = time.perf_counter()
        with profiled(run == 1):
            places = model.transform(new)
        cp.cuda.Device().synchronize()
        out["seconds"].append(round(time.perf_counter() - start, 3))
        print("transform", out["seconds"][-1], flush=True)
    few = cp.asarray(model.transform(new[:1000]))
    out["same alone"] = bool((few == cp.asarray(places)[:1000]).all())
    return out


def far_points(places: np.ndarray, table: Neighbors) -> int:
    """Return the number of points that are farther than 3 map radii from all their neighbors."""
    radius = np.median(np.linalg.norm(places - np.median(places, axis=0), axis=1))
    apart = np.linalg.norm(places[table.index[:, 1:]] - places[:, None], axis=2).min(axis=1)
    return int((apart > 3 * radius).sum())


def quality(seeds: int = 3) -> dict[str, Any]:
    """Compare maps of both processors, of the same neighbors and graph, for several seeds.

    A fit of the CPU finds its own neighbors, not quite all of them, and its loss is that of another graph. Here the CPU
    is given the neighbors that the GPU found. Losses are sums over all pairs.
    """
    X, place = fashion_like(), resolve_place("cuda")
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        models = {"cuda": vicinal.UMAP(random_state=seed, device="cuda").fit(X)}
        table = models["cuda"].map_.neighbors
        given = table.index, table.distance
        models["cpu"] = vicinal.UMAP(random_state=seed, device="cpu", precomputed_knn=given).fit(X)
        graph = models["cuda"].map_.graph
        same = (models["cpu"].map_.graph.to_scipy() != graph.to_scipy()).nnz == 0
        for device, model in models.items():
            plan, places = model.map_.recipe.plan, model.embedding_
            schedule = plan.schedule(model.map_.report.n_epochs, graph.n)
            loss = vicinal.losses.effective_loss(graph.on(place), places, plan.forces.kernel, schedule, samples=None)
            rows.append(
                {
                    "device": device,
                    "seed": seed,
                    "same graph": same,
                    **vicinal.quality.report(X, places, device="cuda").as_dict(),
                    "attraction": float(loss.attraction),
                    "repulsion": float(loss.repulsion),
                    "J": float(loss),
                    "far points": far_points(places, table),
                }
            )
            print(rows[-1], flush=True)
    return {"maps": rows}


def reports() -> dict[str, Any]:
    """Time the quality report on both processors, and compare its measures."""
    X = fashion_like()
    places = vicinal.UMAP(random_state=0, device="cuda").fit(X).embedding_
    labels = (places[:, 0] > np.median(places[:, 0])).astype(int)
    out: dict[str, Any] = {}
    for device, runs in (("cuda", 2), ("cpu", 1)):
        seconds = []
        for _ in range(runs):
            start = time.perf_counter()
            report = vicinal.quality.report(X, places, labels, device=device)
            seconds.append(round(time.perf_counter() - start, 3))
        out[device] = {"seconds": seconds, **report.as_dict()}
        print(device, out[device], flush=True)
    return out


class PeakMemory:
    """The most memory that CuPy's pool holds, asked for every millisecond: its hooks see one thread only."""

    def __enter__(self) -> PeakMemory:
        self.peak, self._ended = 0, threading.Event()
        self._watch = threading.Thread(target=self._ask)
        self._watch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watch.join()

    def _ask(self) -> None:
        pool = cp.get_default_memory_pool()
        while not self._ended.wait(0.001):
            self.peak = max(self.peak, pool.total_bytes())


def streamed(n: int = 2_000_000, d: int = 512, limit: int = 3 * 2**30) -> dict[str, Any]:
    """Fit rows of the host with less memory of the device than they take, and with all of it."""
    X, pool = cp.asnumpy(mixture(n, d)), cp.get_default_memory_pool()
    out: dict[str, Any] = {"rows": [n, d], "bytes of rows": X.nbytes, "limit": limit}
    for name, size in (("limited", limit), ("unlimited", 0)):
        pool.free_all_blocks()
        pool.set_limit(size=size)
        try:
            with PeakMemory() as memory:
                fits = [fit_once(X) for _ in range(2)]
        finally:
            pool.set_limit(size=0)
        out[name] = {
            "fits": [seconds for seconds, _, _ in fits],
            "peak bytes": memory.peak,
            "same twice": same_bits(fits[0][1], fits[1][1]) and same_bits(fits[0][2], fits[1][2]),
            "recall": sampled_recall(X, fits[-1][1]),
        }
        print(name, out[name], flush=True)
    return out


def fit_once(X: Any) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """Fit; return seconds in all and per stage, and neighbors and map on the host."""
    start = time.perf_counter()
    model = vicinal.UMAP(random_state=0, device="cuda").fit(X)
    seconds = {"seconds": round(time.perf_counter() - start, 3)}
    return (
        seconds | {k: round(v, 3) for k, v in model.stage_times_.items()},
        model.map_.neighbors.index,
        model.embedding_,
    )


def tsne() -> dict[str, Any]:
    """Time t-SNE on both processors, and compare the divergences of maps of the same graph.

    The maps do not depend on the seed, because they start from principal components.
    """
    X, seconds = fashion_like(), []
    for run in range(3):
        start = time.perf_counter()
        with profiled(run == 1):
            model = vicinal.TSNE(random_state=0, max_iter=750, device="cuda").fit(X)
        seconds.append(round(time.perf_counter() - start, 3))
        print("t-SNE", seconds[-1], model.stage_times_, model.kl_divergence_, flush=True)
    fitted, start = model.map_, time.perf_counter()
    here = fit(ArrayExecutor(TrainingRows(X, given=fitted.neighbors.on(None)), fitted.recipe, seed=fitted.seed))
    on_cpu = round(time.perf_counter() - start, 3)
    out = {
        "cuda": {"seconds": seconds, "divergence": float(model.kl_divergence_)},
        "cpu": {"seconds without neighbors": on_cpu, "divergence": float(here.report.divergence)},
    }
    print(out, flush=True)
    return out


PARTS: dict[str, Callable[[], dict[str, Any]]] = {
    "bits": bits,
    "fashion": fashion,
    "mixture-1M-50": lambda: mixture_fit(1_000_000, 50),
    "transform-1M-50": transform,
    "first call": first_call,
    "mixture-1M-768": lambda: mixture_fit(1_000_000, 768),
    "mixture-5M-96": lambda: mixture_fit(5_000_000, 96),
    "t-SNE": tsne,
    "quality": quality,
    "quality report": reports,
    "streamed-2M-512": streamed,
}


def main() -> int:
    """Run the parts that fit into the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--images", type=Path)
    parser.add_argument("--commit", help="the commit that is measured, for the record")
    options = parser.parse_args(namespace=OPTIONS)
    begin = time.perf_counter()
    code = measured_code()
    RESULTS["code"], RESULTS["machine"] = code | {"commit": options.commit or code["commit"]}, machine()
    failed = 0
    for name in options.parts.split(","):
        spent = time.perf_counter() - begin
        if spent > options.seconds:
            print(f"{name}: left out, {spent:.0f} s are spent", flush=True)
            continue
        print(f"== {name} (after {spent:.1f} s)", flush=True)
        try:
            RESULTS[name] = PARTS[name]()
        except Exception:
            failed += 1
            RESULTS[name] = {"error": traceback.format_exc()}
            print(RESULTS[name]["error"], flush=True)
        gc.collect()
        cp.get_default_memory_pool().free_all_blocks()
        RESULTS["bars"] = bars(json.loads(json.dumps(RESULTS)))
        options.out.write_text(json.dumps(RESULTS, indent=1))
    for bar in RESULTS["bars"]:
        print("met" if bar["met"] else "NOT MET", bar["what"], bar["value"], bar["bar"], flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
