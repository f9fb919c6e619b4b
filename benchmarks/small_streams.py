"""Maps of small streams (ProgressiveUMAP) beside a fit to all rows (UMAP).

    PYTHONPATH=../src python small_streams.py [--out results/small_streams.json]

For each data set: recall@15, loss J on the graph of the fit, trustworthiness, processor seconds. Streams come in
batches of 1,000 in the order of the data, and in batches of 50 sorted by class.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from datasets import open_dataset
from score import sample_rows, trustworthiness

SEEDS = range(2)
TREE_SEED, BRANCHES, BRANCH_ROWS, TREE_COLUMNS, TREE_NOISE = 0, 10, 300, 100, 3.0
CELLS = Path(__file__).parents[1] / "docs" / "data" / "pbmc_counts.npz"


def tree() -> tuple[np.ndarray, np.ndarray]:
    """Make random walks that each begin at the end of an earlier one."""
    rng = np.random.default_rng(TREE_SEED)
    ends, rows = [np.zeros(TREE_COLUMNS)], []
    for _ in range(BRANCHES):
        walk = ends[rng.integers(len(ends))] + np.cumsum(rng.normal(size=(BRANCH_ROWS, TREE_COLUMNS)), axis=0)
        rows.append(walk + TREE_NOISE * rng.normal(size=walk.shape))
        ends.append(walk[-1])
    return np.concatenate(rows).astype(np.float32), np.repeat(np.arange(BRANCHES), BRANCH_ROWS)


def cells() -> tuple[np.ndarray, np.ndarray]:
    """Return 30 principal components of the logarithms of normalized transcript counts, and the types of cells."""
    from scipy.sparse import csr_matrix
    from sklearn.decomposition import PCA

    with np.load(CELLS, allow_pickle=False) as file:
        counts = csr_matrix((file["counts"], file["indices"], file["indptr"]), shape=tuple(file["shape"])).toarray()
        kinds = np.unique(file["cell_types"], return_inverse=True)[1]
    depth = counts.sum(axis=1, keepdims=True)
    rows = PCA(30, random_state=0).fit_transform(np.log1p(counts * (np.median(depth) / depth)))
    return np.ascontiguousarray(rows, dtype=np.float32), kinds


def images(name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    dataset = open_dataset(name, n)
    return dataset.data(), dataset.labels()


def results(name: str, rows: np.ndarray, labels: np.ndarray) -> Iterator[dict[str, Any]]:
    import vicinal
    from vicinal.quality.losses import effective_loss
    from vicinal.quality.measures import neighbor_recall

    graph, kernel = vicinal.fuzzy_graph(vicinal.find_neighbors(rows, 15)), vicinal.fit_ab(min_dist=0.1)
    sample, in_order, by_class = sample_rows(len(rows)), np.arange(len(rows)), np.argsort(labels, kind="stable")
    systems = {
        "fit": (vicinal.UMAP, {}, in_order),
        "stream": (vicinal.ProgressiveUMAP, {}, in_order),
        "stream of 50, sorted": (vicinal.ProgressiveUMAP, {"batch_size": 50}, by_class),
    }
    for seed in SEEDS:
        for system, (kind, options, order) in systems.items():
            start = process_time()
            places = np.empty((len(rows), 2), dtype=np.float32)
            places[order] = kind(random_state=seed, **options).fit_transform(rows[order])
            seconds = process_time() - start
            near = vicinal.find_neighbors(places, 16).index[sample, 1:]
            yield {
                "case": name,
                "system": system,
                "seed": seed,
                "seconds": seconds,
                "recall_15": float(neighbor_recall(rows, places)),
                "loss": effective_loss(graph, places, kernel, negatives="resting", samples=None).value,
                "trustworthiness_15": trustworthiness(rows, sample, near),
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "small_streams.json")
    options = parser.parse_args()
    cases = {
        "cells": cells(),
        "digits": images("digits", 1797),
        "tree": tree(),
        "fashion-6000": images("fashion", 6000),
    }
    records = []
    for name, (rows, labels) in cases.items():
        for record in results(name, rows, labels):
            print(
                {key: round(value, 4) if isinstance(value, float) else value for key, value in record.items()},
                flush=True,
            )
            records.append(record)
        options.out.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
