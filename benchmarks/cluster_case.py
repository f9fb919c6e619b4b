"""One measured process of the suite `cluster`: prints one line of JSON.

    python benchmarks/cluster_case.py prepare FILE ROWS COLUMNS CLUSTERS        rows of a mixture as a .npy file
    python benchmarks/cluster_case.py fit FILE OUT [--workers W --threads T | --local] [--chunk N] [--limit BYTES]
    python benchmarks/cluster_case.py transform FILE OUT --workers W            rows placed in a map of the first ones
    python benchmarks/cluster_case.py score FILE OUT...                         quality of maps, the local one first

`fit` without workers runs on Dask's threads.
"""

from __future__ import annotations

import hidden_packages  # noqa: F401  isort: skip
import argparse
import json
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from cluster_watch import MemoryWatch, SchedulerTraffic
from shapes import MIXTURE_NOISE, MIXTURE_RANK, MIXTURE_SPREAD

SEED = 42
BLOCK_ROWS = 100_000  # that are made at a time
TRAFFIC = SchedulerTraffic()
K = 15  # neighbors, the row itself included, which is left out when they are compared
SAMPLE_ROWS = 1000  # whose exact neighbors are computed
FITTED_ROWS = 100_000  # of the map that rows are transformed into


def prepare(file: Path, rows: int, columns: int, clusters: int) -> dict[str, Any]:
    """Write flat Gaussian clusters as `shapes.mixture` makes them, in blocks, so that they never lie in memory."""
    rng = np.random.default_rng(SEED)
    centers = rng.normal(size=(clusters, columns)).astype(np.float32)
    directions = (MIXTURE_SPREAD * rng.normal(size=(clusters, MIXTURE_RANK, columns))).astype(np.float32)
    labels = rng.integers(clusters, size=rows)
    X = np.lib.format.open_memmap(file, "w+", np.float32, (rows, columns))

    def fill(first: int) -> None:
        block, here = np.random.default_rng([SEED, first]), labels[first : first + BLOCK_ROWS]
        values = block.standard_normal((len(here), columns), dtype=np.float32) * np.float32(MIXTURE_NOISE)
        inside = block.standard_normal((len(here), MIXTURE_RANK), dtype=np.float32)
        for cluster in range(clusters):
            at = np.flatnonzero(here == cluster)
            values[at] += centers[cluster] + inside[at] @ directions[cluster]
        X[first : first + len(here)] = values

    with ThreadPoolExecutor() as pool:
        list(pool.map(fill, range(0, rows, BLOCK_ROWS)))
    np.save(file.with_suffix(".labels.npy"), labels)
    return {"rows": rows, "columns": columns, "clusters": clusters, "bytes": X.nbytes}


def open_rows(file: Path, chunk: int) -> Any:
    """Return a .npy file as a Dask array of chunks that are read when they are needed."""
    import dask.array as da

    rows = np.load(file, mmap_mode="r")
    n, d = rows.shape
    sizes = tuple(min(chunk, n - first) for first in range(0, n, chunk))
    meta = np.empty((0, 0), np.float32)
    return da.map_blocks(read_rows, str(file), rows.offset, chunk, chunks=(sizes, (d,)), dtype=np.float32, meta=meta)


def read_rows(file: str, offset: int, chunk: int, block_info: Any = None) -> np.ndarray:
    shape, first = block_info[None]["chunk-shape"], block_info[None]["chunk-location"][0] * chunk
    count = shape[0] * shape[1]
    return np.fromfile(file, np.float32, count, offset=offset + 4 * first * shape[1]).reshape(shape)


def own_bytes() -> int:
    """Memory of this process after its imports, before any rows."""
    import psutil

    import vicinal.cluster.fit  # noqa: F401

    return int(psutil.Process().memory_info().rss)


def processor_seconds(client: Any = None) -> float:
    """Processor time of this process, in which the scheduler runs, and of the workers."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    own = spent.ru_utime + spent.ru_stime
    return own if client is None else own + sum(client.run(processor_seconds).values())


@contextmanager
def cluster_of(workers: int, threads: int) -> Any:
    """Start a cluster of processes; None for no workers."""
    if not workers:
        yield None
        return
    from cluster_peaks import TaskPeaks
    from distributed import Client, LocalCluster

    TRAFFIC.watch()
    with (
        LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        TRAFFIC.scheduler, TRAFFIC.workers = cluster.scheduler.address, tuple(client.nthreads())
        client.register_plugin(TaskPeaks())
        yield client


def peaks_of(client: Any) -> list[dict[str, int]]:
    """Return the most memory of each worker by the name of its tasks."""
    from cluster_peaks import task_peaks

    return list(client.run(task_peaks).values())


def fit(given: argparse.Namespace) -> dict[str, Any]:
    """Fit the rows, keep the map and the neighbors (and the graph of the local fit), and report what it took."""
    from vicinal import UMAP

    file, out = Path(given.arguments[0]), given.arguments[1]
    with cluster_of(given.workers, given.threads) as client:
        rows = np.load(file) if given.local else open_rows(file, given.chunk)
        data = 4 * rows.shape[0] * rows.shape[1]
        before_rows = max(client.run(own_bytes).values()) if client else own_bytes()
        begin, spent, before = time.perf_counter(), processor_seconds(client), TRAFFIC.bytes
        with MemoryWatch() as memory:
            model = UMAP(
                random_state=given.seed, n_epochs=given.epochs, memory_limit=given.limit, n_jobs=given.threads
            ).fit(rows)
            exchanged, spent = TRAFFIC.bytes - before, processor_seconds(client) - spent
            seconds = time.perf_counter() - begin
            places = np.asarray(model.embedding_)
            peaks = peaks_of(client) if client else []
        np.save(out, places)
        np.save(f"{out}.index.npy", np.asarray(model.map_.neighbors.index))
    if given.local:
        for name in ("indptr", "indices", "weights"):
            np.save(f"{out}.{name}.npy", getattr(model.map_.graph, name))
    allowed = data / max(given.workers, 1) + 16 * len(places) + 300e6
    return {
        "rows": len(places),
        "columns": rows.shape[1],
        "workers": given.workers,
        "threads": given.threads,
        "chunk": None if given.local else given.chunk,
        "memory_limit": given.limit,
        "epochs": model.n_epochs_,
        "seed": given.seed,
        "init": model.init_used_,
        "seconds": round(seconds, 2),
        "processor_seconds": round(spent, 2),
        "stages": {name: round(one, 2) for name, one in model.stage_times_.items()},
        "scheduler_bytes": exchanged,
        "scheduler_share": exchanged / data,
        "peak_bytes": memory.total,
        "largest_worker_bytes": max(
            [memory.worker if client else memory.total, *chain(*(one.values() for one in peaks))]
        ),
        "largest_worker_by_stage": memory.by_stage(model.stage_times_),
        "largest_worker_by_task": {
            name: max(one.get(name, 0) for one in peaks) for name in dict.fromkeys(chain(*peaks))
        },
        "worker_bytes_before": before_rows,
        "allowed_worker_bytes": allowed,
    }


def transform(given: argparse.Namespace) -> dict[str, Any]:
    """Place all rows in a map of the first ones, in this process and on workers."""
    from vicinal import UMAP

    file = Path(given.arguments[0])
    X = np.load(file)
    model = UMAP(random_state=SEED, n_epochs=given.epochs, n_jobs=given.workers).fit(X[:FITTED_ROWS])
    begin, spent = time.perf_counter(), processor_seconds()
    expected = model.transform(X)
    local = {"seconds": time.perf_counter() - begin, "processor_seconds": processor_seconds() - spent}
    model.set_params(n_jobs=given.threads)
    with cluster_of(given.workers, given.threads) as client:
        begin, spent = time.perf_counter(), processor_seconds(client)
        placed = np.asarray(model.transform(open_rows(file, given.chunk)))
        spread = {"seconds": time.perf_counter() - begin, "processor_seconds": processor_seconds(client) - spent}
    same = bool((placed == expected).all())
    return {"rows": len(X), "fitted": FITTED_ROWS, "workers": given.workers, "local": local, "spread": spread} | {
        "same_bits": same
    }


def score(file: Path, outs: list[str]) -> list[dict[str, Any]]:
    """Recall of the neighbors and of the map, and J on the graph of the local fit, which is the first of ``outs``.

    Neighbors are compared with the exact ones of a sample, points of the map with the local table of all rows.
    """
    from vicinal import Graph, fit_ab, losses
    from vicinal.neighbors.search import nearest_points

    X, labels = np.load(file, mmap_mode="r"), np.load(file.with_suffix(".labels.npy"))
    sample = np.sort(np.random.default_rng(0).choice(len(X), size=min(SAMPLE_ROWS, len(X)), replace=False))
    exact = np.concatenate([nearest_rows(X, X[part], K) for part in np.array_split(sample, 10)])
    edges = [np.load(f"{outs[0]}.{name}.npy") for name in ("indptr", "indices", "weights")]
    unknown = np.zeros(len(X), np.float32)  # J does not depend on rho and sigma
    graph, kernel, local = (
        Graph(*edges, len(X), unknown, unknown),
        fit_ab(min_dist=0.1),
        np.load(f"{outs[0]}.index.npy"),
    )
    first, found = np.load(outs[1]) if len(outs) > 1 else None, []
    for out in outs:
        places, index = np.load(out), np.load(f"{out}.index.npy")
        near = nearest_points(places, places, K, -1).index
        recalls = recall_of_rows(near[:, 1:], local[:, 1:])
        loss = losses.effective_loss(graph, places, kernel)
        found.append(
            {
                "map": Path(out).stem,
                "neighbor_recall": float(recall_of_rows(index[sample, 1:], exact[:, 1:]).mean()),
                "map_recall_15": float(recalls.mean()),
                "map_recall_15_error": float(recalls.std() / np.sqrt(len(recalls))),
                "accuracy": float(np.mean(labels[near[:, 1]] == labels)),
                "J": loss.value,
                "J_error": loss.standard_error,
                "same_bits": first is not None and bool((places == first).all()),
            }
        )
    return found


def nearest_rows(X: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    distance = np.einsum("ij,ij->i", X, X)[None] - 2 * queries @ X.T
    best = np.argpartition(distance, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(distance, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def recall_of_rows(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return for each row the share of their neighbors that ours has."""
    return np.concatenate(
        [
            (a[:, :, None] == b[:, None, :]).any(axis=1).mean(axis=1)
            for a, b in zip(*(np.array_split(one, -(-len(ours) // BLOCK_ROWS)) for one in (ours, theirs)), strict=True)
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["prepare", "fit", "transform", "score"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--local", action="store_true")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--chunk", type=int, default=50_000)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit")
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    file, rest = Path(given.arguments[0]), given.arguments[1:]
    found: Any
    if given.command == "prepare":
        found = prepare(file, *(int(number) for number in rest))
    elif given.command == "fit":
        found = fit(given)
    elif given.command == "transform":
        found = transform(given)
    else:
        found = score(file, rest)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
