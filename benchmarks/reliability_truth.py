"""Planted truth for reliability: `python benchmarks/reliability_truth.py` writes results/reliability_truth.json.

Six kinds of rows that a map shows wrongly are planted in clusters of 200 rows or in a loop, with several seeds. The
table has the AUC of 1 - reliability for these rows, of the outlier score for outliers, and the share of them that has a
reason. Beside them: clusters of 300 and 1,000 rows without inner order, noise, and small data.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import save_result
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

import vicinal

Rows = NDArray[np.float32]
# Rows, their map (None: fitted), and the planted rows.
Case = tuple[Rows, "Rows | None", NDArray[np.bool_]]

SEEDS = 3
WIDTH, SEPARATION = 50, 12.0
CLUSTERS, CLUSTER_ROWS, PLANTED_SHARE = 10, 200, 0.05
LOOP_ROWS, LOOP_WIDTH, LOOP_NOISE, TORN_SHARE = 1500, 20, 0.05, 0.02
OUTLIER_SCALE = 4.0
RESULTS = Path(__file__).with_name("results") / "reliability_truth.json"


def drawn(rng: np.random.Generator, clusters: int = CLUSTERS, each: int = CLUSTER_ROWS) -> tuple[Rows, Rows, Any]:
    """Return rows of Gaussian clusters, the centers, and the cluster of each row."""
    centers = rng.normal(size=(clusters, WIDTH)) * (SEPARATION / np.sqrt(2 * WIDTH))
    cluster = np.repeat(np.arange(clusters), each)
    return (centers[cluster] + rng.normal(size=(len(cluster), WIDTH))).astype(np.float32), centers, cluster


def chosen(rng: np.random.Generator, cluster: Any) -> tuple[Any, Any, NDArray[np.bool_]]:
    """Return planted rows, another cluster for each of them, and the mask of the planted rows."""
    rows = rng.choice(len(cluster), round(PLANTED_SHARE * len(cluster)), replace=False)
    count = int(cluster.max()) + 1
    mask = np.zeros(len(cluster), dtype=bool)
    mask[rows] = True
    return rows, (cluster[rows] + 1 + rng.integers(count - 1, size=len(rows))) % count, mask


def fitted(rows: Rows, seed: int) -> Rows:
    places: Rows = vicinal.UMAP(random_state=seed).fit(rows).embedding_
    return places


def mixtures(rng: np.random.Generator, seed: int) -> Case:
    """Rows halfway between two clusters, which a map can show in one of them only."""
    rows, centers, cluster = drawn(rng)
    planted, other, mask = chosen(rng, cluster)
    middle = 0.5 * (centers[cluster[planted]] + centers[other])
    rows[planted] = middle + rng.normal(size=middle.shape)
    return rows, None, mask


def wrong_neighbors(rng: np.random.Generator, seed: int) -> Case:
    """Rows whose map was made from wrong data: each was taken for a row of another cluster."""
    rows, centers, cluster = drawn(rng)
    planted, other, mask = chosen(rng, cluster)
    wrong = rows.copy()
    wrong[planted] = centers[other] + rng.normal(size=(len(planted), WIDTH))
    return rows, fitted(wrong, seed), mask


def torn_loop(rng: np.random.Generator, seed: int) -> Case:
    """A loop that is drawn as a strip; the rows at its ends are planted."""
    angle = rng.random(LOOP_ROWS)
    circle = np.stack([np.cos(2 * np.pi * angle), np.sin(2 * np.pi * angle)], axis=1)
    rows = circle @ rng.normal(size=(2, LOOP_WIDTH)) + LOOP_NOISE * rng.normal(size=(LOOP_ROWS, LOOP_WIDTH))
    strip = np.stack([40 * angle, rng.normal(scale=0.3, size=LOOP_ROWS)], axis=1)
    ends = np.minimum(angle, 1 - angle) < TORN_SHARE / 2
    return rows.astype(np.float32), strip.astype(np.float32), ends


def split_cluster(rng: np.random.Generator, seed: int) -> Case:
    """Half of the rows of one cluster, drawn at random, are moved to the other end of the map."""
    rows, _, cluster = drawn(rng)
    places = fitted(rows, seed)
    moved = np.flatnonzero((cluster == 0) & (rng.random(len(cluster)) < 0.5))
    places = places.copy()
    places[moved] += 3 * (places.max(axis=0) - places.min(axis=0))
    return rows, places, cluster == 0


def swapped_rows(rng: np.random.Generator, seed: int) -> Case:
    """Pairs of rows of different clusters that have exchanged their places."""
    rows, _, cluster = drawn(rng)
    places = fitted(rows, seed).copy()
    planted, other, _ = chosen(rng, cluster)
    partner = np.array([rng.choice(np.flatnonzero(cluster == one)) for one in other])
    mask = np.zeros(len(rows), dtype=bool)
    for a, b in zip(planted, partner, strict=True):
        if not mask[a] and not mask[b]:
            places[[a, b]] = places[[b, a]]
            mask[[a, b]] = True
    return rows, places, mask


def outliers(rng: np.random.Generator, seed: int) -> Case:
    """Rows far from all others."""
    rows, _, cluster = drawn(rng)
    planted, _, mask = chosen(rng, cluster)
    rows[planted] = OUTLIER_SCALE * rng.normal(size=(len(planted), WIDTH))
    return rows, None, mask


KINDS: dict[str, Callable[[np.random.Generator, int], Case]] = {
    "mixtures": mixtures,
    "wrong neighbors": wrong_neighbors,
    "torn loop": torn_loop,
    "split cluster": split_cluster,
    "swapped rows": swapped_rows,
    "outliers": outliers,
}


def judged(rows: Rows, places: Rows | None, seed: int) -> Any:
    if places is not None:
        return vicinal.reliability(rows, places)
    return vicinal.reliability(vicinal.UMAP(random_state=seed).fit(rows))


def planted_kind(kind: str, seed: int) -> dict[str, Any]:
    """Measure one kind with one seed."""
    rows, places, mask = KINDS[kind](np.random.default_rng(seed), seed)
    found = judged(rows, places, seed)
    score = found.outlier if kind == "outliers" else -found.reliability
    reasons = {one: float((found.reason[mask] == one).mean()) for one in set(found.reason[mask].tolist())}
    return {
        "kind": kind,
        "seed": seed,
        "rows": len(rows),
        "planted": int(mask.sum()),
        "auc": float(roc_auc_score(mask, score)),
        "mean_planted": float(found.reliability[mask].mean()),
        "mean_others": float(found.reliability[~mask].mean()),
        "reasons_planted": reasons,
        "false_reasons": float(np.isin(found.reason[~mask], ["neighbors lost", "torn", "unstable"]).mean()),
    }


def plain_kind(name: str, rows: Rows, seed: int) -> dict[str, Any]:
    """Measure data without planted rows."""
    found = judged(rows, None, seed)
    keeping = found.wide >= 0.85
    return {
        "kind": name,
        "seed": seed,
        "rows": len(rows),
        "mean": float(found.reliability.mean()),
        "lowest_tenth": float(np.quantile(found.reliability, 0.1)),
        "keeping_85": int(keeping.sum()),
        "lowest_keeping_85": float(found.reliability[keeping].min()) if keeping.any() else None,
        "zero": int((found.reliability == 0).sum()),
        "null_wide": found.null_wide,
        "labels": found.counts(),
        "reasons": found.summary()["reasons"],
        "notes": list(found.notes),
    }


def single_cells() -> Rows | None:
    """Return the components of pbmc68k_reduced, which comes with scanpy, if that is installed."""
    import importlib.util

    spec = importlib.util.find_spec("scanpy")
    if spec is None or spec.origin is None:
        return None
    import h5py

    with h5py.File(Path(spec.origin).parent / "datasets" / "10x_pbmc68k_reduced.h5ad") as file:
        return np.asarray(file["obsm"]["X_pca"], dtype=np.float32)


def main() -> None:
    records = [planted_kind(kind, seed) for kind in KINDS for seed in range(SEEDS)]
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        records.append(plain_kind("clusters of 300", drawn(rng, 10, 300)[0], seed))
        records.append(plain_kind("clusters of 1000", drawn(rng, 4, 1000)[0], seed))
        records.append(plain_kind("noise", rng.normal(size=(2000, WIDTH)).astype(np.float32), seed))
    cells = single_cells()
    if cells is not None:
        records.append(plain_kind("pbmc68k_reduced", cells, 42))
    save_result(RESULTS, records)
    for one in records:
        print(json.dumps(one))


if __name__ == "__main__":
    main()
