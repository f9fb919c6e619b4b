"""Fits of Dask arrays: bits, processor time, memory and traffic, beside the local fit of the same rows.

    python benchmarks/cluster.py prepare DIR ROWS COLUMNS CLUSTERS   rows of a mixture as a stack of .npy files
    python benchmarks/cluster.py local DIR OUT.npy                   the local fit
    python benchmarks/cluster.py threads DIR OUT.npy [LIMIT]         on Dask's threads, with a memory limit
    python benchmarks/cluster.py processes DIR OUT.npy WORKERS       on a cluster of processes
    python benchmarks/cluster.py score DIR OUT.npy...                quality of the maps

Each command but the first prints one line of JSON. Options: --epochs N. `run.py cluster` runs them one after the other.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from shapes import mixture

STACK_ROWS = 50_000
SEED = 42
TRIAL_EPOCHS = 40


def prepare(directory: Path, rows: int, columns: int, clusters: int) -> None:
    """Write a mixture as files that Dask reads one by one."""
    import dask.array as da

    X, labels = mixture(clusters, rows, columns)
    da.to_npy_stack(str(directory), da.from_array(X.astype(np.float32), chunks=(STACK_ROWS, -1)))
    np.save(directory / "labels.npy", labels)


def open_rows(directory: Path) -> Any:
    import dask.array as da

    return da.from_npy_stack(str(directory), mmap_mode=None)


class MemoryWatch:
    """The most memory that this process and its children had together, and each of them."""

    def __enter__(self) -> MemoryWatch:
        import psutil

        self._process, self.total, self.worker, self._done = psutil.Process(), 0, 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        import psutil

        while not self._done.wait(0.1):
            sizes = [self._process.memory_info().rss]
            for child in self._process.children(recursive=True):
                try:
                    sizes.append(child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            self.total = max(self.total, sum(sizes))
            self.worker = max(self.worker, max(sizes[1:], default=sizes[0]))


def processor_seconds(client: Any = None) -> float:
    """Processor time of this process and of the workers."""
    spent = resource.getrusage(resource.RUSAGE_SELF)
    own = spent.ru_utime + spent.ru_stime
    if client is None:
        return own
    return own + sum(client.run(processor_seconds).values())


class SchedulerTraffic:
    """Bytes that connections of this process, which holds the scheduler and its client, have written."""

    written = 0

    def watch(self) -> None:
        from distributed.comm.tcp import TCP

        original_write = TCP.write

        async def write(comm: Any, *args: Any, **kwargs: Any) -> Any:
            count = await original_write(comm, *args, **kwargs)
            self.written += count or 0
            return count

        TCP.write = write


TRAFFIC = SchedulerTraffic()


def fit(rows: Any, out: str, epochs: int | None, client: Any = None, limit: str | None = None) -> dict[str, Any]:
    from vicinal import UMAP

    begin, spent = time.perf_counter(), processor_seconds(client)
    before = TRAFFIC.written
    with MemoryWatch() as memory:
        model = UMAP(random_state=SEED, n_epochs=epochs, memory_limit=limit).fit(rows)
        through_scheduler = TRAFFIC.written - before
        places = np.asarray(model.embedding_)
    spent = processor_seconds(client) - spent
    np.save(out, places)
    index = np.asarray(model.map_.neighbors.index)
    np.save(f"{out}.index.npy", index)
    return {
        "rows": len(places),
        "epochs": model.n_epochs_,
        "init": model.init_used_,
        "seconds": time.perf_counter() - begin,
        "processor_seconds": spent,
        "scheduler_bytes": through_scheduler,
        "scheduler_share": through_scheduler / (4 * rows.shape[0] * rows.shape[1]),
        "stages": model.stage_times_,
        "peak_bytes": memory.total,
        "largest_worker_bytes": memory.worker,
    }


def on_processes(directory: Path, out: str, workers: int, epochs: int | None) -> dict[str, Any]:
    from distributed import Client, LocalCluster

    TRAFFIC.watch()
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster,
        Client(cluster) as client,
    ):
        return fit(open_rows(directory), out, epochs, client) | {"workers": workers}


def score(directory: Path, outs: list[str]) -> list[dict[str, Any]]:
    """Recall of the neighbors and of the map, and accuracy of labels, on a sample of the rows."""
    from vicinal.neighbors.points import nearest_points

    X, labels = np.asarray(open_rows(directory)), np.load(directory / "labels.npy")
    sample = np.random.default_rng(0).choice(len(X), size=min(1000, len(X)), replace=False)
    exact = np.concatenate([_exact(X, X[part], 16) for part in np.array_split(sample, 20)])
    found = []
    for out in outs:
        places, index = np.load(out), np.load(f"{out}.index.npy")
        near = nearest_points(places, places[sample], 16, -1).index
        found.append(
            {
                "map": out,
                "neighbor_recall": _shared(index[sample, 1:15], exact[:, 1:15]),
                "map_recall_15": _shared(near[:, 1:16], exact[:, 1:16]),
                "accuracy": float(np.mean(labels[near[:, 1:2].ravel()] == labels[sample])),
            }
        )
    return found


def _exact(X: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    squares = np.einsum("ij,ij->i", X, X)
    distance = squares[None] - 2 * queries @ X.T
    best = np.argpartition(distance, k, axis=1)[:, :k]
    order = np.argsort(np.take_along_axis(distance, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def _shared(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(ours.tolist(), theirs.tolist(), strict=True)]))


def cluster(driver: Any) -> list[dict[str, Any]]:
    """The same rows fitted locally, on Dask's threads within a memory limit, and on 1, 2 and 4 processes."""
    rows = driver.size or 1_000_000
    directory = driver.scratch / f"mixture-{rows}"
    if not (directory / "labels.npy").exists():
        prepare(directory, rows, 64, 200)
    records, outs = [], []
    trial = [] if driver.size is None else ["--epochs", str(TRIAL_EPOCHS)]
    for command in (["local"], ["threads", "700MB"], ["processes", "1"], ["processes", "2"], ["processes", "4"]):
        out = str(driver.scratch_file("cluster.npy"))
        call = [sys.executable, __file__, command[0], str(directory), out, *command[1:], *trial]
        done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
        records.append({"case": " ".join(command), **json.loads(done.stdout)})
        outs.append(out)
    call = [sys.executable, __file__, "score", str(directory), *outs]
    done = subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True)
    first = np.load(outs[1])
    for record, quality, out in zip(records, json.loads(done.stdout), outs, strict=True):
        record["quality"] = quality
        record["same_bits_as_threads"] = bool((np.load(out) == first).all())
    return records


SUITES = {"cluster": (cluster, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["prepare", "local", "threads", "processes", "score"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--epochs", type=int)
    given = parser.parse_args()
    directory, rest = Path(given.arguments[0]), given.arguments[1:]
    if given.command == "prepare":
        prepare(directory, *(int(number) for number in rest))
        return
    found: Any
    if given.command == "local":
        found = fit(np.asarray(open_rows(directory)), rest[0], given.epochs)
    elif given.command == "threads":
        found = fit(open_rows(directory), rest[0], given.epochs, limit=rest[1] if len(rest) > 1 else None)
    elif given.command == "processes":
        found = on_processes(directory, rest[0], int(rest[1]), given.epochs)
    else:
        found = score(directory, rest)
    print(json.dumps(found if isinstance(found, list) else {"command": given.command, "pid": os.getpid(), **found}))


if __name__ == "__main__":
    main()
