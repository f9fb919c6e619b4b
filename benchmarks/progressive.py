"""Growing maps: the measured process and the evaluation of its maps.

The measured process streams Fashion-MNIST in batches of 1,000 rows: first without limits (maps are saved on the way
while the clock is stopped), then in steps of 100 ms, then 100 rows at a time into maps of 10,000 and 100,000 rows.
Another process fits all rows at once and saves its maps too.
"""

from __future__ import annotations

from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from datasets import SHIFTS, Dataset, shift_images
from score import majority, map_neighbors, sample_rows, score_embedding, trustworthiness

BATCH = 1000
STEP_MS = 100.0
# Maps of the stream are saved after these numbers of batches, then at regular intervals.
FIRST_SNAPSHOTS, SNAPSHOT_EVERY = (1, 2, 3, 5, 7), 10
ONE_SHOT_SNAPSHOTS = 8
INSERT_ROWS, INSERTS, INSERT_SIZES = 100, 20, (10_000, 100_000)
DRIFT_SHARE = 0.01

Report = dict[str, Any]


class Clock:
    """Wall time and processor time, without the time while the clock is stopped."""

    def __init__(self) -> None:
        self.begin = perf_counter(), process_time()

    def read(self) -> tuple[float, float]:
        return perf_counter() - self.begin[0], process_time() - self.begin[1]

    def stopped(self, work: Any) -> None:
        wall, cpu = self.read()
        work()
        self.begin = perf_counter() - wall, process_time() - cpu


class Snapshots:
    """Maps saved in one folder, with the time of each."""

    def __init__(self, folder: str, clock: Clock) -> None:
        self.folder, self.clock, self.seconds = Path(folder), clock, list[float]()
        self.folder.mkdir(parents=True, exist_ok=True)

    def take(self, embedding: np.ndarray) -> None:
        self.seconds.append(self.clock.read()[0])
        self.clock.stopped(lambda: np.save(self.folder / f"{len(self.seconds) - 1}.npy", embedding))


def stream(data: np.ndarray, seed: int, folder: str) -> tuple[Any, Report]:
    """Read all batches, then call `run` and `polish`."""
    from vicinal import ProgressiveUMAP

    model, clock = ProgressiveUMAP(random_state=seed, n_jobs=-1), Clock()
    snapshots = Snapshots(folder, clock)
    for number, begin in enumerate(range(0, len(data), BATCH), 1):
        model.partial_fit(data[begin : begin + BATCH])
        if number in FIRST_SNAPSHOTS or number % SNAPSHOT_EVERY == 0:
            snapshots.take(model.embedding_)
    arrived = clock.read()[0]
    model.run()
    snapshots.take(model.embedding_)
    model.polish()
    snapshots.take(model.embedding_)
    wall, cpu = clock.read()
    return model, {"total": wall, "cpu": cpu, "arrived": arrived, "snapshots": snapshots.seconds}


def first_map(data: np.ndarray, seed: int) -> float:
    """Return the seconds to the finished map of the first batch."""
    from vicinal import ProgressiveUMAP

    start = perf_counter()
    ProgressiveUMAP(random_state=seed, n_jobs=-1).partial_fit(data[:BATCH]).run()
    return perf_counter() - start


def steps(data: np.ndarray, seed: int) -> list[float]:
    """Return the seconds of every step of a stream in time-limited steps; a batch arrives when the last is placed."""
    from vicinal import ProgressiveUMAP

    model, begin, seconds = ProgressiveUMAP(random_state=seed, n_jobs=-1), 0, []
    while begin < len(data) or model.pending_:
        if begin < len(data) and (not begin or model.coverage_ == 1.0):
            model.insert(data[begin : begin + BATCH])
            begin += BATCH
        start = perf_counter()
        model.step(budget_ms=STEP_MS)
        seconds.append(perf_counter() - start)
    return seconds


def inserts(data: np.ndarray, seed: int) -> Report:
    """Return the median seconds to add 100 rows to maps of two sizes, and how far old rows move if 1 % is added."""
    from vicinal import ProgressiveUMAP

    report = {}
    for size in INSERT_SIZES:
        rows = data[: size + INSERTS * INSERT_ROWS]
        model = ProgressiveUMAP(random_state=seed, n_jobs=-1)
        for begin in range(0, size, 10 * BATCH):
            model.partial_fit(rows[begin : min(begin + 10 * BATCH, size)])
        before = model.run().embedding_
        seconds = []
        for begin in range(size, len(rows), INSERT_ROWS):
            start = perf_counter()
            model.partial_fit(rows[begin : begin + INSERT_ROWS])
            seconds.append(perf_counter() - start)
            if begin + INSERT_ROWS - size == round(DRIFT_SHARE * size):
                moved = np.linalg.norm(model.run().embedding_[:size] - before, axis=1)
                report["drift"] = float(np.median(moved) / np.ptp(before, axis=0).max())
        report[str(size)] = float(np.median(seconds))
    return report


def progressive(job: Report, system: Any) -> Report:
    """Run the measured process of the stream."""
    import datasets

    data = datasets.read_rows(Path(job["data"]), 0, job["rows"])
    first_map(data, job["seed"])
    report: Report = {"first_map": first_map(data, job["seed"])}
    model, times = stream(data, job["seed"], job["folder"])
    np.save(job["index"], model._map.search.table().index)
    report |= times | {"bytes_per_row": model.bytes_per_row_}
    del model
    report["steps"] = steps(data, job["seed"])
    if job["inserts"]:
        shifted = np.concatenate([data, *(shift_images(data[:16_000], shift) for shift in SHIFTS[1:3])])
        report["inserts"] = inserts(shifted, job["seed"])
    return report


def one_shot(job: Report, system: Any) -> Report:
    """Run the measured process of one fit of all rows, whose maps are saved during the layout."""
    import datasets

    from vicinal import UMAP

    data = datasets.read_rows(Path(job["data"]), 0, job["rows"])
    UMAP(random_state=job["seed"], n_jobs=-1).fit(data[: job["warm_rows"]])
    start, cpu = perf_counter(), process_time()
    UMAP(random_state=job["seed"], n_jobs=-1).fit(data)
    total, cpu = perf_counter() - start, process_time() - cpu
    snapshots = Snapshots(job["folder"], Clock())

    def look(stage: str, epoch: int, n_epochs: int, embedding: np.ndarray | None) -> None:
        if embedding is not None and epoch % max(1, n_epochs // ONE_SHOT_SNAPSHOTS) == 0:
            snapshots.take(embedding)

    UMAP(random_state=job["seed"], n_jobs=-1, callback=look).fit(data)
    return {"total": total, "cpu": cpu, "snapshots": snapshots.seconds}


def score_curve(dataset: Dataset, folder: Path, seconds: list[float]) -> list[Report]:
    """Return the quality of every saved map on its own rows, and its error compared with the last map."""
    data, labels = dataset.data(), dataset.labels()
    last = np.load(folder / f"{len(seconds) - 1}.npy").astype(np.float64)
    curve = []
    for number, after in enumerate(seconds):
        places = np.load(folder / f"{number}.npy").astype(np.float64)
        n = len(places)
        rows = sample_rows(n)
        near = map_neighbors(places, rows, 15)
        curve.append(
            {
                "seconds": after,
                "rows": n,
                "trustworthiness": trustworthiness(data[:n], rows, near),
                "accuracy_10nn": float((majority(labels[near[:, :10]]) == labels[rows]).mean()),
                "error": map_error(places, last[:n]),
            }
        )
    return curve


def map_error(places: np.ndarray, last: np.ndarray) -> float:
    """Return the RMS distance of an aligned map to the last one, as a fraction of the last map's spread."""
    left, right = places - places.mean(axis=0), last - last.mean(axis=0)
    u, s, vt = np.linalg.svd(left.T @ right)
    fitted = left @ (u @ vt) * (s.sum() / np.square(left).sum())
    return float(np.sqrt(np.square(fitted - right).sum() / np.square(right).sum()))


def score_final(dataset: Dataset, folder: Path, seconds: list[float]) -> dict[str, float]:
    """Return the scores of the last map; the accuracy uses all rows, because a sample is too inaccurate."""
    file = folder / f"{len(seconds) - 1}.npy"
    labels = dataset.labels()
    near = map_neighbors(np.load(file).astype(np.float64), np.arange(dataset.rows), 10)
    return score_embedding(dataset, file) | {"accuracy_10nn": float((majority(labels[near]) == labels).mean())}


def draw_curves(curves: dict[str, list[Report]], file: Path) -> None:
    """Draw quality and error over time, one line per system."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    titles = {"trustworthiness": "trustworthiness", "accuracy_10nn": "10-NN accuracy", "error": "error against the end"}
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained")
    for axis, (key, title) in zip(axes, titles.items(), strict=True):
        for system, curve in curves.items():
            axis.plot([p["seconds"] for p in curve], [p[key] for p in curve], marker="o", markersize=3, label=system)
        axis.set(title=title, xlabel="seconds", xscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend(frameon=False)
    figure.savefig(file, dpi=120)
    plt.close(figure)
