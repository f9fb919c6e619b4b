"""The suite `atlas`, its bars, and its section of RESULTS.md."""

from __future__ import annotations

import statistics
from typing import Any

from bars import Bar, Documents, Record, ratio, select
from datasets import open_dataset
from driver import Driver

CLASSES = ("T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot")
# The class of the bar.
ABSENT = 9


def atlas(driver: Driver) -> list[Record]:
    """Fashion-MNIST in 30 days of 2,300 rows: appended daily, laid out again weekly; a class absent until day 15."""
    dataset = open_dataset("fashion", driver.size)
    records = []
    for repeat in range(driver.repeats):
        job = {"task": "atlas", "system": "vicinal", "labels": str(dataset.label_file)}
        report = driver.measure(job, dataset)
        records.append({"case": "fashion", "rows": dataset.rows, "system": "vicinal", "repeat": repeat, **report})
    return records


def atlas_bars(documents: Documents) -> list[Bar]:
    """Compare every refit with a fit of the same rows, and the folder with one version."""
    bars: list[Bar] = []
    for one in select(documents, "atlas", repeat=0):
        moved = one["days_with_moved_rows"]
        bars.append(Bar("atlas, days on which old rows moved between refits", f"{moved}", "", moved, 0, kind="count"))
        for refit in one["refits"]:
            work, losses = f"atlas, day {refit['day']}: J after the refit", (refit["loss"], refit["fresh_loss"])
            bars.append(Bar(work, *(f"{value:,.0f}" for value in losses), losses[0] / losses[1], 1.01, kind="loss"))
            work = f"atlas, day {refit['day']}: median move, of the width of the map"
            bars.append(Bar(work, f"{refit['median_move']:.4f}", "", refit["median_move"], 0.02, kind="share"))
        scores = one["accuracy"], one["fresh_accuracy"]
        work = "atlas, 10-NN accuracy of the last day: difference from a fit of its rows"
        bars.append(Bar(work, *(f"{value:.4f}" for value in scores), scores[0] - scores[1], -0.005, kind="difference"))
        absent = next(found for found in one["absent"] if found["class"] == ABSENT)
        work = f"atlas, {CLASSES[ABSENT]}s absent until day 15"
        bars.append(Bar(f"{work}: found", f"{absent['found']:.3f}", "", absent["found"], 0.9, kind="score"))
        others = absent["others_marked"]
        bars.append(Bar(f"{work}: others marked", f"{others:.3f}", "", others, 0.05, kind="share"))
        kept = min(refit["names_kept"] for refit in one["refits"])
        bars.append(Bar("atlas, names kept over a refit", f"{kept:.3f}", "", kept, 0.95, kind="score"))
        append = statistics.fmean(day["seconds"] for day in one["appends"][-2:])
        bars += ratio("atlas, append of a day of the last two, against a fit", append, one["fit_seconds"], 0.1, None)
        day = one["reopened"]
        limit = day["new_row_bytes"] + day["model_bytes"]
        work = "atlas, memory of an append, against new rows and model"
        bars.append(Bar(work, megabytes(day["append_bytes"]), megabytes(limit), day["append_bytes"] / limit, 1.0))
        limit = 3 * one["version_bytes"] + one["row_bytes"]
        work = "atlas, 30 days, against three versions and the rows"
        bars.append(Bar(work, megabytes(one["bytes"]), megabytes(limit), one["bytes"] / limit, 1.0))
    return bars


def megabytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


def atlas_lines(record: dict[str, Any]) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Return one line per refit and one per absent class."""
    refits = [
        (
            str(one["day"]),
            f"{one['rows']:,}",
            f"{one['loss'] / one['fresh_loss']:.4f}",
            f"{one['loyalty_costs']:+.4f}",
            f"{one['median_move']:.4f}",
            f"{one['accuracy']:.4f}",
            f"{one['fresh_accuracy']:.4f}",
            f"{one['names_kept']:.2f}",
            f"{one['strain']:.3f}",
        )
        for one in record["refits"]
    ]
    absent = [
        (
            "none" if one["class"] is None else CLASSES[one["class"]],
            "" if one["class"] is None else f"{one['found']:.3f}",
            f"{one['others_marked']:.4f}",
        )
        for one in record["absent"]
    ]
    return refits, absent
