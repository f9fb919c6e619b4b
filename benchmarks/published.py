"""Figures of papers beside ours, measured in the same way: `python benchmarks/run.py published`.

    python benchmarks/published.py ring density          # some parts; the others stay as they were

* projections, networks: Sainburg, McInnes and Gentner (2021), tables of two dimensions. A map of the first 50,000 rows:
  trustworthiness (15 neighbors), silhouette of the classes, and how often the classes of the 5 nearest training rows
  give that of a test row, for 10,000 test rows.
* reconstruction: the same paper, mean squared error of the test rows, pixels from 0 to 1.
* ring: Damrich and Hamprecht (2021), the graph of 1,000 rows in a ring of radius 4, 0.5 wide.
* density: Narayan, Berger and Cho (2021), correlation of local radii in the data and in a map of densMAP.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from datasets import CACHE, open_dataset
from driver import Driver
from machine import describe_run
from optimum import score_trust
from release import read_result
from score import RadiusCorrelation, score_transform
from suites import FIRST_SEED, Record, fit_once

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "published.json"
TRAIN_ROWS, TEST_START, ALL_ROWS = 50_000, 60_000, 70_000
VOTERS, SILHOUETTE_ROWS, WHITE = 5, 10_000, 255.0
RING_ROWS, RING_RADIUS, RING_WIDTH, RING_SEED = 1000, 4.0, 0.5, 3
IMAGES = ("fashion", "mnist")
PROJECTIONS, NETWORKS = ("vicinal t-SNE", "vicinal"), ("vicinal Parametric",)
# The system, and the options that give it a decoder.
DECODERS: dict[str, tuple[str, dict[str, Any]]] = {
    "inverse_transform": ("vicinal", {}),
    "decoder": ("vicinal Parametric", {"parametric_reconstruction": True, "autoencoder_loss": False}),
    "joint autoencoder": ("vicinal Parametric", {"parametric_reconstruction": True, "autoencoder_loss": True}),
}


def project(driver: Driver, name: str, system: str, **options: Any) -> tuple[Record, Path, Path]:
    """Fit the training rows, place the test rows, and return the report and the files of the two maps."""
    dataset = open_dataset(name)
    rows = min(TRAIN_ROWS, driver.size or TRAIN_ROWS)
    train, moved = driver.scratch_file("train.npy"), driver.scratch_file("moved.npy")
    job = {"task": "held_out", "system": system, "seed": FIRST_SEED, "train_rows": rows, "test_start": TEST_START}
    report = driver.measure(job | {"embedding": str(train), "moved": str(moved), **options}, dataset)
    return {"case": name, "rows": rows, "system": system, "seed": FIRST_SEED, **report}, train, moved


def projections(driver: Driver) -> list[Record]:
    """Measure maps of 50,000 rows and the places of 10,000 test rows."""
    return score_projections(driver, PROJECTIONS)


def networks(driver: Driver) -> list[Record]:
    """Measure the same of parametric UMAP, which takes minutes."""
    return score_projections(driver, NETWORKS)


def score_projections(driver: Driver, systems: Sequence[str]) -> list[Record]:
    from sklearn.metrics import silhouette_score

    records = []
    for name in IMAGES:
        labels = open_dataset(name).labels()
        for system in systems:
            record, train, moved = project(driver, name, system)
            known = labels[: record["rows"]]
            sample = {"sample_size": min(SILHOUETTE_ROWS, len(known)), "random_state": 0}
            record |= {
                "trustworthiness": score_trust(open_dataset(name, record["rows"]), train),
                "accuracy_5nn": score_transform(train, known, moved, labels[TEST_START:], VOTERS),
                "silhouette": float(silhouette_score(np.load(train), known, **sample)),
            }
            records.append(record)
            train.unlink()
            moved.unlink()
    return records


def reconstruction(driver: Driver) -> list[Record]:
    """Measure what is left of test rows of Fashion-MNIST after two dimensions."""
    records = []
    for decoder, (system, options) in DECODERS.items():
        record, train, moved = project(driver, "fashion", system, inverse=True, options=options)
        error = record.pop("squared_error") / WHITE**2
        records.append(record | {"system": decoder, "squared_error": error})
        train.unlink()
        moved.unlink()
    return records


def make_ring() -> np.ndarray:
    """Make equally spaced points on a circle, each moved to a random place in a disk around it."""
    angle = 2.0 * np.pi * np.arange(RING_ROWS) / RING_ROWS
    # the generator and the order of the draws are those of the paper, because the figures are of its very points
    random = np.random.RandomState(RING_SEED)
    away = RING_WIDTH * np.sqrt(random.uniform(0.0, 1.0, RING_ROWS))
    turn = np.pi * random.uniform(0.0, 2.0, RING_ROWS)
    rows = RING_RADIUS * np.stack([np.sin(angle), np.cos(angle)]) + away * np.stack([np.sin(turn), np.cos(turn)])
    return np.ascontiguousarray(rows.T, dtype=np.float32)


def ring(driver: Driver) -> list[Record]:
    """Measure the graph of the ring."""
    from vicinal import find_neighbors, fuzzy_graph

    graph = fuzzy_graph(find_neighbors(make_ring(), 15))
    degree = float(graph.weights.sum(dtype=np.float64)) / RING_ROWS
    neighbors = float((graph.weights > 0).sum()) / RING_ROWS
    return [{"case": "ring", "rows": RING_ROWS, "system": "vicinal", "degree": degree, "neighbors": neighbors}]


def density(driver: Driver) -> list[Record]:
    """Measure how well densMAP keeps local radii, all 70,000 rows."""
    records = []
    for name in IMAGES:
        dataset = open_dataset(name, driver.size)
        record = fit_once(driver, dataset, "vicinal DensMAP", FIRST_SEED, 0)
        file = record.pop("map")
        records.append(record | {"radius_correlation": RadiusCorrelation(dataset).score(file)})
        file.unlink()
    return records


PARTS: dict[str, Callable[[Driver], list[Record]]] = {
    "projections": projections,
    "networks": networks,
    "reconstruction": reconstruction,
    "ring": ring,
    "density": density,
}


def published(driver: Driver) -> list[Record]:
    """Figures of papers, and ours measured in the same way."""
    return [record | {"part": name} for name, part in PARTS.items() for record in part(driver)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--own-python", type=Path, default=HERE.parent / ".venv-package" / "bin" / "python")
    parser.add_argument("--peer-python", type=Path, default=HERE.parent / ".venv-bench" / "bin" / "python")
    arguments = parser.parse_args()
    interpreters = {"own": arguments.own_python, "peers": arguments.peer_python}
    driver = Driver(interpreters, CACHE / f"scratch-{'-'.join(arguments.parts)}", 1, None, RESULTS.parent)
    for name in arguments.parts:
        new = [record | {"part": name} for record in PARTS[name](driver)]
        known = (read_result(RESULTS) or {"records": []})["records"]
        records = [record for record in known if record["part"] != name] + new
        document = describe_run("published", published, driver, records)
        RESULTS.write_text(json.dumps(document, indent=1) + "\n")
        print(name, json.dumps(new, indent=1), flush=True)


if __name__ == "__main__":
    main()
