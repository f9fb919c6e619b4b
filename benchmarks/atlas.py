"""A map that grows for 30 days: the measured process.

Fashion-MNIST comes in days of 2,300 rows. They are appended daily, and after every seventh day all rows are laid out
again. Each refit is compared with a fit of the same rows that knows no earlier map. Beside it each class in turn is
absent until day 15, when it should be found as new territory. The package's environment needs the extra `app`.
"""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

DAYS, WEEK, ABSENT_UNTIL = 30, 7, 15
ROWS_PER_DAY = 2_300
SEED = 0
SAMPLES = 64  # partners per row of an estimated loss
ACCURACY_ROWS, NEIGHBORS = 5_000, 10

Report = dict[str, Any]


def resident(field: str) -> int:
    """Return the bytes of `VmHWM` (peak) or `VmRSS` of this process."""
    line = next(one for one in Path("/proc/self/status").read_text().splitlines() if one.startswith(field))
    return int(line.split()[1]) * 1024


def forget_peak() -> None:
    """Let the peak of this process start anew."""
    Path("/proc/self/clear_refs").write_text("5")


def accuracy(places: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of a sample of rows that have the class of most of their neighbors in the map."""
    from scipy.spatial import cKDTree

    sample = np.random.default_rng(SEED).permutation(len(places))[:ACCURACY_ROWS]
    near = cKDTree(places).query(places[sample], NEIGHBORS + 1)[1][:, 1:]
    votes = [np.bincount(labels[one], minlength=10).argmax() for one in near]
    return float(np.mean(np.array(votes) == labels[sample]))


def loss(fitted: Any, places: np.ndarray) -> float:
    """Return J of a map, on the graph of a fit of the same rows."""
    from vicinal.quality.losses import effective_loss

    return float(effective_loss(fitted.graph, places, fitted.recipe.plan.forces.kernel, samples=SAMPLES))


def refit_and_compare(atlas: Any, data: np.ndarray, labels: np.ndarray, day: int) -> Report:
    """Refit, and compare with a fit of the same rows."""
    from vicinal import UMAP

    strain = atlas.strain
    start = perf_counter()
    record = atlas.refit()
    seconds = perf_counter() - start
    order = atlas.ids
    start = perf_counter()
    fresh = UMAP(random_state=SEED).fit(data[order])
    fit = perf_counter() - start
    # The published map has a frame of its own: the loss is that of the layout, in the scale of the kernel.
    ours, theirs = loss(fresh.map_, atlas.model.embedding_), loss(fresh.map_, fresh.embedding_)
    scores = accuracy(atlas.embedding, labels[order]), accuracy(fresh.embedding_, labels[order])
    return {
        "day": day,
        "rows": len(order),
        "refit_seconds": seconds,
        "fit_seconds": fit,
        "loss": ours,
        "fresh_loss": theirs,
        "loyalty_costs": record["loss"] / record["loss_without_loyalty"] - 1.0,
        "median_move": record["median_move"],
        "names_kept": record["names_kept"],
        "accuracy": scores[0],
        "fresh_accuracy": scores[1],
        "strain": strain.total,
        "advisable": strain.refit_advisable,
    }


def month(data: np.ndarray, labels: np.ndarray, folder: Path) -> Report:
    """Append 30 days and refit weekly."""
    from vicinal import UMAP, Atlas

    size = len(data) // DAYS
    atlas = Atlas.create(folder, data[:size], estimator=UMAP(random_state=SEED))
    appends, refits, moved = [], [], 0
    for day in range(2, DAYS + 1):
        rows = np.arange((day - 1) * size, day * size)
        before, ids = atlas.embedding.copy(), atlas.ids.copy()
        start = perf_counter()
        record = atlas.append(data[rows], rows)
        appends.append({"day": day, "seconds": perf_counter() - start, "new_territory": record["new_territory"]})
        same = np.array_equal(atlas.ids[: len(ids)], ids) and np.array_equal(atlas.embedding[: len(ids)], before)
        moved += not same
        if day % WEEK == 0:
            refits.append(refit_and_compare(atlas, data, labels, day))
    order = atlas.ids
    start = perf_counter()
    fresh = UMAP(random_state=SEED).fit(data[order])
    fit = perf_counter() - start
    return {
        "appends": appends,
        "refits": refits,
        "days_with_moved_rows": moved,
        "fit_seconds": fit,
        "accuracy": accuracy(atlas.embedding, labels[order]),
        "fresh_accuracy": accuracy(fresh.embedding_, labels[order]),
        **sizes(folder, data[order]),
    }


def sizes(folder: Path, rows: np.ndarray) -> Report:
    """Return the bytes of an atlas, and those of the rows and of the rest of an atlas of one version of these rows."""
    from vicinal import UMAP, Atlas

    def total(path: Path) -> int:
        return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())

    with tempfile.TemporaryDirectory(dir=folder.parent) as other:
        Atlas.create(Path(other) / "one", rows, estimator=UMAP(random_state=SEED))
        one = total(Path(other) / "one")
        stored = max(file.stat().st_size for file in (Path(other) / "one" / "objects").iterdir())
    return {"bytes": total(folder), "version_bytes": one - stored, "row_bytes": stored}


def day_in_new_process(data: np.ndarray, folder: Path) -> Report:
    """Append a day to an atlas that was just opened: seconds, and the memory that it takes beyond the model."""
    from vicinal import Atlas

    atlas, size = Atlas.open(folder), len(data) // DAYS
    fresh = data[-size:] + np.float32(0.25)
    start = perf_counter()
    model = atlas.model
    opened = perf_counter() - start
    model.transform(fresh[:1])
    gc.collect()
    before = resident("VmRSS")
    forget_peak()
    start = perf_counter()
    atlas.append(fresh)
    cold = perf_counter() - start
    extra = resident("VmHWM") - before
    fitted = model.map_
    arrays = [
        fitted.data.rows,
        fitted.embedding,
        fitted.neighbors.index,
        fitted.neighbors.distance,
        *fitted.graph.edges,
    ]
    return {
        "open_seconds": opened,
        "append_seconds": cold,
        "append_bytes": extra,
        "new_row_bytes": fresh.nbytes,
        "model_bytes": sum(one.nbytes for one in arrays),
    }


def absent(data: np.ndarray, labels: np.ndarray, folder: Path) -> list[Report]:
    """Let each class come on day 15 for the first time, and a day on which none comes for the first time."""
    from vicinal import UMAP, Atlas

    size, found = len(data) // DAYS, []
    past, today = np.arange((ABSENT_UNTIL - 1) * size), np.arange((ABSENT_UNTIL - 1) * size, ABSENT_UNTIL * size)
    for missing in (None, *range(10)):
        known = past if missing is None else past[labels[past] != missing]
        atlas = Atlas.create(folder / str(missing), data[known], known, estimator=UMAP(random_state=SEED))
        atlas.append(data[today], today)
        marked = atlas.new_territory[len(known) :]
        new = labels[today] == missing
        report = {"class": missing, "others_marked": float(marked[~new].mean())}
        if missing is not None:
            report |= {"rows": int(new.sum()), "found": float(marked[new].mean())}
        found.append(report)
    return found


def atlas(job: Report, system: Any) -> Report:
    """Run the measured process."""
    import datasets

    data = datasets.read_rows(Path(job["data"]), 0, job["rows"])
    labels = datasets.read_rows(Path(job["labels"]), 0, job["rows"])
    # A trial run has fewer rows per day.
    whole = DAYS * min(ROWS_PER_DAY, len(data) // DAYS)
    data, labels = data[:whole], labels[:whole]
    with tempfile.TemporaryDirectory() as folder:
        report = month(data, labels, Path(folder) / "month")
        report["reopened"] = day_in_new_process(data, Path(folder) / "month")
        report["absent"] = absent(data, labels, Path(folder))
    return report
