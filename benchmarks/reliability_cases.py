"""The measured process of the suite `reliability`: `python reliability_cases.py CASE DATA ROWS REPORT`.

Only NumPy, SciPy, scikit-learn and the package itself are imported. Times are processor seconds of all threads.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from measure import memory
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import vicinal

Rows = NDArray[np.float32]
Report = dict[str, Any]

SEED = 42
RESEEDED = 10
# Planted truth: clusters of 100 rows, whose size is below the wide scale of 150 points.
CLUSTERS, PLANTED_ROWS, WIDTH, SEPARATION, PLANTED_SHARE = 20, 2000, 50, 12.0, 0.05
PLANTED_SEEDS = 3
NOISE_SHAPE = (2000, 50)


def planted(seed: int) -> tuple[Rows, NDArray[np.bool_]]:
    """Draw Gaussian clusters, and replace some rows by rows halfway between two clusters, with the same noise."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(CLUSTERS, WIDTH)) * (SEPARATION / np.sqrt(2 * WIDTH))
    cluster = rng.integers(CLUSTERS, size=PLANTED_ROWS)
    chosen = rng.choice(PLANTED_ROWS, round(PLANTED_SHARE * PLANTED_ROWS), replace=False)
    other = (cluster[chosen] + 1 + rng.integers(CLUSTERS - 1, size=len(chosen))) % CLUSTERS
    middle = centers[cluster]
    middle[chosen] = 0.5 * (centers[cluster[chosen]] + centers[other])
    mixed = np.zeros(PLANTED_ROWS, dtype=bool)
    mixed[chosen] = True
    return (middle + rng.normal(size=middle.shape)).astype(np.float32), mixed


def measure_planted(_: Rows) -> Report:
    """AUC of 1 - reliability for the planted rows, for several draws."""
    aucs = []
    for seed in range(PLANTED_SEEDS):
        rows, mixed = planted(seed)
        found = vicinal.UMAP(random_state=SEED).fit(rows).reliability_
        aucs.append(float(roc_auc_score(mixed, -found.reliability)))
    return {"auc": aucs}


def measure_noise(_: Rows) -> Report:
    """Labels of a map of normal noise."""
    rows = np.random.default_rng(0).normal(size=NOISE_SHAPE).astype(np.float32)
    return labels(vicinal.UMAP(random_state=SEED).fit(rows).reliability_)


def labels(found: Any) -> Report:
    n = len(found)
    return {"labels": {name: count / n for name, count in found.counts().items()}, "mean": found.summary()["mean"]}


def measure_stability(rows: Rows) -> Report:
    """Labels of a map, and the spread of its ghosts against that of fits with other seeds."""
    model = vicinal.UMAP(random_state=SEED).fit(rows)
    ghosts = model.reliability_
    reference = vicinal.reliability(model, seeds=RESEEDED, null=False)
    half = vicinal.reliability(model, seeds=RESEEDED // 2, null=False)
    again = vicinal.reliability(model, others=reseeded_others(model, rows), null=False)
    return labels(ghosts) | {
        "ghosts_reseeded": float(spearmanr(ghosts.spread, reference.spread).statistic),
        "reseeded_reseeded": float(spearmanr(half.spread, again.spread).statistic),
        "n_reseeded": RESEEDED,
    }


def reseeded_others(model: Any, rows: Rows) -> list[Rows]:
    """Make half as many maps with seeds of their own, to see how well the reference agrees with itself."""
    return [vicinal.UMAP(random_state=SEED + 1 + i).fit(rows).embedding_ for i in range(RESEEDED // 2)]


def measure_cost(rows: Rows) -> Report:
    """Processor seconds and peak memory of a fit, of its layout, of the ghosts and of everything."""
    start = process_time()
    model = vicinal.UMAP(random_state=SEED).fit(rows)
    fit, fit_peak = process_time() - start, memory("VmHWM")
    report: Report = {"fit": fit, "fit_peak_bytes": fit_peak, "input_bytes": rows.nbytes}
    report["layout"] = layout_seconds(model)
    start = process_time()
    vicinal.reliability(model)
    report["everything"] = process_time() - start
    report["peak_bytes"] = memory("VmHWM")
    start = process_time()
    vicinal.reliability(model, null=False, ghosts=0)
    without = process_time() - start
    start = process_time()
    vicinal.reliability(model, null=False)
    report["ghosts"] = process_time() - start - without
    return report


def layout_seconds(model: Any) -> float:
    """Run the layout of a fitted model once more."""
    fitted = model.map_
    plan = fitted.recipe.plan
    schedule = plan.schedule(fitted.report.n_epochs, fitted.graph.n)
    start = process_time()
    layout = plan.layout(fitted.graph, fitted.embedding, fitted.options, schedule, seed=1, n_jobs=fitted.data.n_jobs)
    layout.step(schedule.n_epochs)
    return process_time() - start


CASES: dict[str, Callable[[Rows], Report]] = {
    "planted": measure_planted,
    "noise": measure_noise,
    "stability": measure_stability,
    "cost": measure_cost,
}


if __name__ == "__main__":
    case, data, n, out = sys.argv[1:]
    rows = np.ascontiguousarray(np.load(data, mmap_mode="r")[: int(n)], dtype=np.float32)
    Path(out).write_text(json.dumps(CASES[case](rows)))
