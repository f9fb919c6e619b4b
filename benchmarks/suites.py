"""The suites: which systems run which task on which data, in which order, and how the maps are scored.

A suite is a function of a `Driver` that returns one record per measured process. Systems take turns within every
repeat, and the order rotates, so that changes of the machine's speed affect all of them. Maps are scored after the last
measurement of a suite.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any

import numpy as np
from datasets import UNSEEN_SHIFT, Dataset, open_dataset, open_grown, open_reduced, open_topics, shift_images
from driver import Driver
from measure import ONE_ROW_CALLS
from progressive import draw_curves, score_curve, score_final
from score import Divergence, RadiusCorrelation, score_embedding, score_neighbors, score_sparse, score_transform

FIRST_SEED = 42
WARM_ROWS = 5000
TRAIN_SHARE = 6 / 7

Record = dict[str, Any]
# (system, seeded)
Contender = tuple[str, bool]


def turns(driver: Driver, contenders: Sequence[Contender]) -> Iterator[tuple[int, str, int | None]]:
    """Yield (repeat, system, seed): each system once per repeat, starting with the next system each time."""
    for repeat in range(driver.repeats):
        start = repeat % len(contenders)
        for system, seeded in (*contenders[start:], *contenders[:start]):
            yield repeat, system, FIRST_SEED + repeat if seeded else None


def fit_once(driver: Driver, dataset: Dataset, system: str, seed: int | None, repeat: int, **options: Any) -> Record:
    embedding = driver.scratch_file("map.npy")
    job = {"task": "fit", "system": system, "seed": seed, "embedding": str(embedding), **options}
    report = driver.measure(job, dataset)
    return {
        "case": dataset.name,
        "rows": dataset.rows,
        "system": system,
        "seeded": seed is not None,
        "repeat": repeat,
        **report,
        "map": embedding,
    }


def add_quality(records: list[Record], datasets: dict[str, Dataset]) -> list[Record]:
    for record in records:
        embedding = record.pop("map")
        record["quality"] = score_embedding(datasets[record["case"]], embedding)
        embedding.unlink()
    return records


UMAPS: list[Contender] = [("vicinal", True), ("umap-learn", True), ("umap-learn", False)]


def iris(driver: Driver) -> list[Record]:
    """A process from start to exit that fits 150 rows: the cost of starting."""
    dataset = open_dataset("iris", driver.size)
    records = [fit_once(driver, dataset, system, seed, repeat) for repeat, system, seed in turns(driver, UMAPS)]
    return add_quality(records, {dataset.name: dataset})


def fresh(driver: Driver) -> list[Record]:
    """A process from start to exit: import, read the rows, fit with default parameters."""
    cases = {"digits": UMAPS, "fashion": [*UMAPS, ("scranpy", True)]}
    datasets = {name: open_dataset(name, driver.size) for name in cases}
    fill_compiler_caches(driver)
    records = []
    for name, contenders in cases.items():
        for repeat, system, seed in turns(driver, contenders):
            records.append(fit_once(driver, datasets[name], system, seed, repeat))
    return add_quality(records, datasets)


def fill_compiler_caches(driver: Driver) -> None:
    """Run one discarded fit per variant, so that numba's on-disk caches are filled."""
    dataset = open_dataset("fashion", min(WARM_ROWS, driver.size or WARM_ROWS))
    for seed in (None, FIRST_SEED):
        fit_once(driver, dataset, "umap-learn", seed, -1)["map"].unlink()


def stages(driver: Driver) -> list[Record]:
    """Each stage alone and the whole fit, in a process that has already run a small fit."""
    dataset = open_dataset("fashion", driver.size)
    contenders = [("vicinal", True), ("umap-learn", False), ("pynndescent", True)]
    records = []
    for repeat, system, _ in turns(driver, contenders):
        index, embedding = driver.scratch_file("index.npy"), driver.scratch_file("map.npy")
        job = {
            "task": "stages",
            "system": system,
            "seed": FIRST_SEED + repeat,
            # umap-learn compiles its parallel layout only in a fit without a seed
            "warm_seed": None if system == "umap-learn" else FIRST_SEED,
            "warm_rows": WARM_ROWS,
            "index": str(index),
            "embedding": str(embedding),
        }
        report = driver.measure(job, dataset)
        records.append({"case": "fashion", "rows": dataset.rows, "system": system, "repeat": repeat, **report})
        records[-1]["files"] = (index, embedding)
    for record in records:
        index, embedding = record.pop("files")
        record["neighbor_recall"] = score_neighbors(dataset, index)
        if "embedding" in record.pop("products"):
            record["layout_quality"] = score_embedding(dataset, embedding)
            embedding.unlink()
        index.unlink()
    return records


def transform(driver: Driver) -> list[Record]:
    """Unseen rows placed by a warm model of six sevenths of the data; single rows placed by a model of all rows."""
    dataset = open_dataset("fashion", driver.size)
    train_rows = round(dataset.rows * TRAIN_SHARE)
    labels = dataset.labels()
    single_rows = driver.scratch_file("single.npy")
    np.save(single_rows, shift_images(dataset.data()[: ONE_ROW_CALLS + 1], UNSEEN_SHIFT))
    records = []
    for repeat, system, seed in turns(driver, [("vicinal", True), ("umap-learn", False)]):
        train_map, moved_map = driver.scratch_file("train.npy"), driver.scratch_file("moved.npy")
        job = {
            "task": "transform",
            "system": system,
            "seed": seed,
            "train_rows": train_rows,
            "warm_rows": WARM_ROWS,
            "train_embedding": str(train_map),
            "embedding": str(moved_map),
            "single_rows": str(single_rows),
        }
        report = driver.measure(job, dataset)
        records.append(
            {
                "case": "fashion",
                "rows": dataset.rows,
                "train_rows": train_rows,
                "system": system,
                "repeat": repeat,
                **report,
                "one_row_median": statistics.median(report["one_row"]),
                "accuracy_10nn": score_transform(train_map, labels[:train_rows], moved_map, labels[train_rows:]),
            }
        )
        train_map.unlink()
        moved_map.unlink()
    single_rows.unlink()
    return records


def growth(driver: Driver) -> list[Record]:
    """vicinal alone on a data set and on ten pixel-shifted copies of it."""
    base = open_dataset("fashion", driver.size)
    records = []
    for repeat in range(driver.repeats):
        for dataset in (base, open_grown(base)):
            record = fit_once(driver, dataset, "vicinal", FIRST_SEED + repeat, repeat)
            record.pop("map").unlink()
            record["case"] = "base" if dataset is base else "grown"
            records.append(record)
    return records


def large(driver: Driver) -> list[Record]:
    """Six pixel-shifted copies of Fashion-MNIST, 50 principal components: the whole fit, warm."""
    dataset = open_reduced(open_dataset("fashion", driver.size))
    records = []
    for repeat, system, seed in turns(driver, [("vicinal", True), ("umap-learn", False)]):
        embedding = driver.scratch_file("map.npy")
        job = {"task": "seeds", "system": system, "seeds": [seed], "embedding": str(embedding), "warm_rows": WARM_ROWS}
        report = driver.measure(job, dataset)
        embedding.unlink()
        records.append({"system": system, "rows": dataset.rows, "repeat": repeat, "fit": report["seconds"][0]})
    return records


def memory(driver: Driver) -> list[Record]:
    """Peak resident memory of a fresh process during a fit, without its input."""
    dataset = open_dataset("fashion", driver.size)
    records = []
    for repeat, system, seed in turns(driver, [("vicinal", True), ("umap-learn", False), ("umap-learn", True)]):
        record = fit_once(driver, dataset, system, seed, repeat)
        record.pop("map").unlink()
        record["beyond_input_bytes"] = record["peak_bytes"] - record["input_bytes"]
        records.append(record)
    return records


def sparse(driver: Driver) -> list[Record]:
    """Sparse rows, 20,000 x 50,000 with 100 words each, cosine: time, peak memory and recall of a fresh process."""
    dataset = open_topics(driver.size)
    records = []
    contenders = [("vicinal", True), ("umap-learn", True), ("umap-learn", False)]
    for repeat, system, seed in turns(driver, contenders):
        index = driver.scratch_file("index.npy")
        options = {"metric": "cosine", "index": str(index)}
        record = fit_once(driver, dataset, system, seed, repeat, **options)
        records.append(record | {"index": index})
    for record in records:
        index, embedding = record.pop("index"), record.pop("map")
        record["scores"] = score_sparse(dataset, index, embedding)
        index.unlink()
        embedding.unlink()
    return records


def startup(driver: Driver) -> list[Record]:
    """Import only: time reported by -X importtime, and wall time."""
    statements = {
        ("own", "nothing"): "pass",
        ("own", "vicinal"): "import vicinal",
        ("own", "vicinal.UMAP"): "import vicinal; vicinal.UMAP",
        ("peers", "umap-learn"): "import umap",
    }
    records = []
    for repeat in range(driver.repeats):
        for (environment, system), statement in statements.items():
            interpreter = driver.interpreters[environment]
            start = perf_counter()
            subprocess.run([interpreter, "-c", statement], check=True, capture_output=True)
            records.append({"system": system, "repeat": repeat, "wall": perf_counter() - start})
        records.append({"system": "vicinal -X importtime", "repeat": repeat, "wall": import_time(driver)})
    return records


def import_time(driver: Driver) -> float:
    """Return the seconds that `-X importtime` reports for `import vicinal`, including nested imports."""
    listing = subprocess.run(
        [driver.interpreters["own"], "-X", "importtime", "-c", "import vicinal"],
        check=True,
        capture_output=True,
        text=True,
    ).stderr
    microseconds = re.findall(r"^import time:\s*\d+ \|\s*(\d+) \| vicinal$", listing, re.MULTILINE)
    return int(microseconds[-1]) / 1e6


def tsne(driver: Driver) -> list[Record]:
    """A fresh process that fits t-SNE with default parameters; our exact code computes all divergences on one graph."""
    dataset = open_dataset("fashion", driver.size)
    records = [
        fit_once(driver, dataset, system, seed, repeat)
        for repeat, system, seed in turns(driver, [("vicinal t-SNE", True), ("openTSNE", True)])
    ]
    divergence = Divergence(dataset)
    for record in records:
        record["kl_divergence"] = divergence.score(record["map"])
    return add_quality(records, {dataset.name: dataset})


def family(driver: Driver) -> list[Record]:
    """Fresh processes: densMAP compared with umap-learn's and with our UMAP, and LargeVis."""
    dataset = open_dataset("fashion", driver.size)
    contenders = [
        ("vicinal", True),
        ("vicinal DensMAP", True),
        ("umap-learn densMAP", False),
        ("vicinal LargeVis", True),
    ]
    records = [fit_once(driver, dataset, system, seed, repeat) for repeat, system, seed in turns(driver, contenders)]
    correlation = RadiusCorrelation(dataset)
    for record in records:
        record["radius_correlation"] = correlation.score(record["map"])
    return add_quality(records, {dataset.name: dataset})


def progressive(driver: Driver) -> list[Record]:
    """Fashion-MNIST in batches of 1,000 compared with one fit of all rows, warm: first map, steps, total, quality."""
    dataset = open_dataset("fashion", driver.size)
    records = []
    for repeat, task, seed in turns(driver, [("progressive", True), ("one_shot", True)]):
        folder, index = driver.scratch_file("maps"), driver.scratch_file("index.npy")
        job = {"task": task, "system": "vicinal", "seed": seed, "folder": str(folder), "index": str(index)}
        report = driver.measure(job | {"warm_rows": WARM_ROWS, "inserts": repeat == 0 and not driver.size}, dataset)
        record = {"case": "fashion", "rows": dataset.rows, "system": task, "repeat": repeat, **report}
        records.append(record | {"files": (folder, index)})
    for record in records:
        folder, index = record.pop("files")
        record["quality"] = score_final(dataset, folder, record["snapshots"])
        if record["repeat"] == 0:
            record["curve"] = score_curve(dataset, folder, record["snapshots"])
        if index.exists():
            record["neighbor_recall"] = score_neighbors(dataset, index)
            index.unlink()
        shutil.rmtree(folder)
    draw_curves({r["system"]: r["curve"] for r in records if "curve" in r}, driver.pictures / "progressive.png")
    return records


Suite = Callable[[Driver], list[Record]]
# The suites and the number of repeats that gives a stable median in reasonable time.
SUITES: dict[str, tuple[Suite, int]] = {
    "startup": (startup, 5),
    "iris": (iris, 3),
    "fresh": (fresh, 3),
    "stages": (stages, 3),
    "transform": (transform, 3),
    "memory": (memory, 1),
    "growth": (growth, 1),
    "large": (large, 2),
    "sparse": (sparse, 2),
    "tsne": (tsne, 2),
    "family": (family, 1),
    "progressive": (progressive, 3),
}
