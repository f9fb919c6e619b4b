"""The suites named optimum: how low the loss is, what is torn, whether the order of the rows matters.

Both systems' maps are scored by the same code, the losses on one graph. `run.py optimum` runs all of them; each takes a
few minutes on two cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from datasets import Dataset, open_dataset, open_shuffled
from driver import Driver
from score import SampledLoss, largest_piece, load_truth, map_neighbors, score_embedding, score_neighbors
from score import trustworthiness as measure_trust
from shapes import MIXTURES
from suites import FIRST_SEED, WARM_ROWS, Contender, Record, Suite, fit_once, turns

RIVALS: list[Contender] = [("vicinal", True), ("umap-learn", True)]
SMALL = ("digits", "iris", "breast cancer", "wine")
MANIFOLDS = ("uniform", "grid", "swiss roll", "spheres", "lognormal", "sets")
ORDERED = ("grid", "swiss roll", "signal")
FAMILY = ("vicinal", "vicinal DensMAP", "vicinal Progressive", "vicinal LargeVis", "vicinal Aligned")
# Seeds per process; the processes of a system take turns with those of the others.
SMALL_SEEDS, FEW_SEEDS = 5, 2
TORN_CLASS, TORN_RADIUS = 1, 1.0


def fit_seeds(
    driver: Driver, dataset: Dataset, system: str, repeat: int, n_seeds: int, neighbors: Path | None = None
) -> list[Record]:
    """Fit one map per seed in a warm process, on the given table of neighbors if any; return one record per map."""
    maps = driver.scratch_file("maps.npy")
    seeds = [FIRST_SEED + repeat * n_seeds + i for i in range(n_seeds)]
    job = {"task": "seeds", "system": system, "seeds": seeds, "embedding": str(maps), "warm_rows": WARM_ROWS}
    if dataset.metric != "euclidean":
        job["metric"] = dataset.metric
    if neighbors is not None:
        job["neighbors"] = str(neighbors)
    report = driver.measure(job, dataset)
    records = []
    for seed, seconds, embedding in zip(seeds, report["seconds"], np.load(maps), strict=True):
        one = driver.scratch_file("map.npy")
        np.save(one, embedding)
        record = {"case": dataset.name, "rows": dataset.rows, "system": system, "seed": seed, "repeat": repeat}
        records.append(record | {"fit": seconds, "map": one})
    maps.unlink()
    return records


def compare(driver: Driver, names: Sequence[str], n_seeds: int, same_neighbors: bool = False) -> list[Record]:
    """Fit every data set with both systems in turns, then score losses and neighborhoods.

    ``same_neighbors`` gives both systems the table of neighbors whose graph scores the losses. Without it, a map of
    other approximate neighbors is scored on a graph that it was not made for.
    """
    records = []
    for name in names:
        dataset = open_dataset(name, driver.size)
        loss = SampledLoss(dataset)
        table = driver.scratch_file("neighbors.npz")
        np.savez(table, index=loss.neighbors.index, distance=loss.neighbors.distance)
        fitted = [
            r
            for repeat, system, _ in turns(driver, RIVALS)
            for r in fit_seeds(driver, dataset, system, repeat, n_seeds, table if same_neighbors else None)
        ]
        table.unlink()
        for record in fitted:
            file = record.pop("map")
            record["loss"], record["quality"] = loss.score(file), score_embedding(dataset, file)
            if name == "digits":
                one = dataset.labels() == TORN_CLASS
                record["class_rows"], record["whole_rows"] = (
                    int(one.sum()),
                    largest_piece(np.load(file)[one], TORN_RADIUS),
                )
            file.unlink()
        records += fitted
    return records


def optimum_small(driver: Driver) -> list[Record]:
    """Small data, umap-learn seeded, warm: J = A + R/2 of the maps on one graph, neighborhoods, seconds of a fit."""
    return compare(driver, SMALL, SMALL_SEEDS)


def optimum_images(driver: Driver) -> list[Record]:
    """70,000 images, umap-learn seeded, warm, both on one neighbor table: J = A + R/2 of the maps, neighborhoods."""
    return compare(driver, ("fashion", "mnist"), 1, same_neighbors=True)


def optimum_shapes(driver: Driver) -> list[Record]:
    """Synthetic rows of known shape, umap-learn seeded: J = A + R/2 of the maps on one graph, neighborhoods."""
    return compare(driver, MANIFOLDS, FEW_SEEDS)


def optimum_order(driver: Driver) -> list[Record]:
    """Trustworthiness of maps of rows in recorded order and of the same rows shuffled, our methods alone."""
    records = []
    for name in ORDERED:
        base = open_dataset(name, driver.size)
        cases = {"in order": base, "shuffled": open_shuffled(base)}
        for repeat, system, _ in turns(driver, [(system, True) for system in FAMILY]):
            for order, dataset in cases.items():
                for record in fit_seeds(driver, dataset, system, repeat, FEW_SEEDS):
                    file = record.pop("map")
                    trust = score_trust(dataset, file)
                    records.append(record | {"case": name, "order": order, "trustworthiness": trust})
                    file.unlink()
    return records


def score_trust(dataset: Dataset, embedding_file: Path) -> float:
    """Return the trustworthiness of a map alone, on the sample of the other scores."""
    rows = load_truth(dataset).rows
    near = map_neighbors(np.load(embedding_file).astype(np.float64), rows, 15)
    return measure_trust(dataset.data(), rows, near, dataset.metric)


def optimum_start(driver: Driver) -> list[Record]:
    """The start's share of a fit, 250,000 x 50 in a mixture of clusters, most of which are pieces of their own."""
    records = []
    for repeat in range(driver.repeats):
        for name, clusters in MIXTURES.items():
            record = fit_once(driver, open_dataset(name, driver.size), "vicinal", FIRST_SEED + repeat, repeat)
            record.pop("map").unlink()
            records.append(record | {"clusters": clusters})
    return records


def optimum_noise(driver: Driver) -> list[Record]:
    """The neighbor graph of Gaussian noise, 50,000 x 500, warm: no structure helps the search."""
    dataset = open_dataset("noise", driver.size)
    records = []
    for repeat, system, seed in turns(driver, [("vicinal", True), ("pynndescent", True)]):
        index = driver.scratch_file("index.npy")
        job = {"task": "neighbors", "system": system, "seed": seed, "warm_rows": WARM_ROWS, "index": str(index)}
        report = driver.measure(job, dataset)
        record = {"case": dataset.name, "rows": dataset.rows, "system": system, "repeat": repeat, **report}
        records.append(record | {"neighbor_recall": score_neighbors(dataset, index)})
        index.unlink()
    return records


OPTIMUM: dict[str, tuple[Suite, int]] = {
    "optimum_small": (optimum_small, 2),
    "optimum_images": (optimum_images, 2),
    "optimum_shapes": (optimum_shapes, 2),
    "optimum_order": (optimum_order, 1),
    "optimum_start": (optimum_start, 1),
    "optimum_noise": (optimum_noise, 3),
}
