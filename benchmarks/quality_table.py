"""Compare systems on the records of the suite `quality`: values, better / equal / worse, and pictures of the maps."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

Record = dict[str, Any]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Measure:
    """A number of a record. Differences below `floor`, a share of the value if `relative`, count as equal."""

    title: str
    path: tuple[str, str]
    floor: float = 0.002
    relative: bool = False
    smaller_is_better: bool = False

    def values(self, records: Iterable[Record]) -> list[float]:
        group, name = self.path
        return [r[group][name] for r in records if name in r.get(group, {})]


MEASURES = {
    "recall_15": Measure("recall@15", ("quality", "recall_15")),
    "true_15_in_100": Measure("true 15 in 100", ("quality", "true_15_in_100")),
    "trustworthiness_15": Measure("trustworthiness", ("quality", "trustworthiness_15")),
    "continuity_15": Measure("continuity", ("quality", "continuity_15")),
    "accuracy_10nn": Measure("10-NN accuracy", ("quality", "accuracy_10nn")),
    "spearman": Measure("Spearman", ("quality", "spearman"), 0.005),
    "spearman_sheet": Measure("Spearman, sheet", ("quality", "spearman_sheet"), 0.005),
    "random_triplets": Measure("random triplets", ("quality", "random_triplets")),
    "centroid_triplets": Measure("centroid triplets", ("quality", "centroid_triplets")),
    "resting": Measure("J", ("loss", "resting"), 0.001, relative=True, smaller_is_better=True),
    "seed_agreement": Measure("agreement of seeds", ("quality", "seed_agreement"), 0.01),
}


def verdict(measure: Measure, ours: list[Record], theirs: list[Record]) -> str | None:
    """Return "better", "equal" or "worse", or None if a system has no value.

    Means over the seeds differ if the difference exceeds the floor and its 95 % interval, Student's with pooled
    variance. The agreement of seeds has one value per system, so it has no spread.
    """
    first, second = measure.values(ours), measure.values(theirs)
    if not first or not second:
        return None
    difference = statistics.fmean(first) - statistics.fmean(second)
    slack = max(measure.floor * (abs(statistics.fmean(second)) if measure.relative else 1.0), spread(first, second))
    if abs(difference) <= slack:
        return "equal"
    return "better" if (difference < 0.0) == measure.smaller_is_better else "worse"


def spread(first: list[float], second: list[float]) -> float:
    """Return half the width of the 95 % interval of the difference of two means."""
    freedom = len(first) + len(second) - 2
    if freedom < 1:
        return 0.0
    squares = sum(sum((value - statistics.fmean(one)) ** 2 for value in one) for one in (first, second))
    error = (squares / freedom * (1.0 / len(first) + 1.0 / len(second))) ** 0.5
    return float(student.ppf((1.0 + CONFIDENCE) / 2.0, freedom)) * error


def by_data(records: Iterable[Record]) -> dict[tuple[str, int], list[Record]]:
    """Return the records grouped by data set, in order of first appearance."""
    found: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        found.setdefault((record["case"], record["rows"]), []).append(record)
    return found


def name_data(data: tuple[str, int]) -> str:
    return f"{data[0]} {data[1]:,}"


def show_mean(measure: Measure, records: list[Record]) -> str:
    values = measure.values(records)
    if not values:
        return ""
    if measure.relative:
        return f"{statistics.fmean(values):,.0f}"
    return f"{statistics.fmean(values):.3f}"


def aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return [" | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]


def rows_of_means(records: list[Record]) -> list[str]:
    """Return a text table of the means over the seeds, one line per data set."""
    lines = [["data", *(measure.title for measure in MEASURES.values())]]
    for data, group in by_data(records).items():
        lines.append([name_data(data), *(show_mean(measure, group) for measure in MEASURES.values())])
    return aligned(lines)


def compare_systems(ours: list[Record], theirs: list[Record]) -> list[str]:
    """Return a text table of verdicts with the mean of theirs, one line per data set, and the counts."""
    signs = {"better": "+", "equal": "=", "worse": "-"}
    lines = [["data", *(measure.title for measure in MEASURES.values())]]
    counts = {name: {"better": 0, "equal": 0, "worse": 0} for name in MEASURES}
    known = by_data(theirs)
    for data, group in by_data(ours).items():
        if data not in known:
            continue
        line = [name_data(data)]
        for name, measure in MEASURES.items():
            found = verdict(measure, group, known[data])
            if found:
                counts[name][found] += 1
            line.append(f"{signs[found]} {show_mean(measure, known[data])}" if found else "")
        lines.append(line)
    lines.append(["better / equal / worse", *(" / ".join(map(str, count.values())) for count in counts.values())])
    return aligned(lines)


COLUMNS, PANEL_INCHES, DOTS = 3, 2.6, 90


def draw_maps(maps: dict[str, np.ndarray], labels: np.ndarray | None, title: str, file: Path) -> None:
    """Draw one panel per system, the points colored by class."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    n_rows = -(-len(maps) // COLUMNS)
    size = (COLUMNS * PANEL_INCHES, n_rows * PANEL_INCHES + 0.4)
    figure, axes = plt.subplots(n_rows, COLUMNS, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat:
        ax.axis("off")
    for ax, (system, places) in zip(axes.flat, maps.items(), strict=False):
        colors = "0.3" if labels is None else labels
        points = max(0.1, min(6.0, 6000.0 / len(places)))
        # rows are drawn in random order, so that no class hides the others
        order = np.random.default_rng(0).permutation(len(places))
        shown = colors if isinstance(colors, str) else colors[order]
        map_name = "tab10" if labels is not None and labels.max() < 10 else "turbo"
        ax.scatter(*places[order].T, s=points, c=shown, cmap=map_name, lw=0, rasterized=True)
        ax.set_title(system, fontsize=9)
        ax.set_aspect("equal", adjustable="datalim")
    figure.suptitle(title, fontsize=10)
    figure.savefig(file, dpi=DOTS, pil_kwargs={"optimize": True})
    plt.close(figure)
