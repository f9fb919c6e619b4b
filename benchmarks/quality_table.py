"""Compare systems on the records of the suite `quality`: values, better / equal / worse, bars, and pictures of maps."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from bars import Bar, Documents, Record, select
from scipy.stats import t as student

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


def show_number(measure: Measure, value: float) -> str:
    return f"{value:,.0f}" if measure.relative else f"{value:.3f}"


def show_mean(measure: Measure, records: list[Record]) -> str:
    values = measure.values(records)
    return show_number(measure, statistics.fmean(values)) if values else ""


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


def count_verdicts(ours: list[Record], theirs: list[Record], name: str) -> dict[str, int]:
    """Return how many data sets are better, equal and worse by one measure."""
    known = by_data(theirs)
    found = [verdict(MEASURES[name], group, known.get(data, [])) for data, group in by_data(ours).items()]
    return {kind: found.count(kind) for kind in ("better", "equal", "worse")}


HALVES = {"tuning": "data for tuning", "judging": "data for judging"}
# Measures that look at far rows.
GLOBAL = ("spearman", "random_triplets", "centroid_triplets")
FEWEST_WORSE = {("umap-learn", "recall_15"): 0, ("umap-learn", "resting"): 0}
FEWEST_WORSE |= {("umap-learn", name): 0 for name in GLOBAL} | {("PaCMAP", name): 6 for name in GLOBAL}
AIMED_WORSE = {("PaCMAP", name): 3 for name in GLOBAL}
# Mean values of our UMAP: (data, rows, measure): bar and aim. Losses are those of a map on its own neighbors.
LEVELS = {
    ("mnist", 70_000, "spearman"): (0.29, 0.33),
    ("mnist", 70_000, "resting"): (172_000, 171_500),
    ("fashion", 70_000, "spearman"): (0.56, 0.60),
    ("fashion", 70_000, "resting"): (164_500, 163_800),
    ("lineage", 5000, "spearman"): (0.75, 0.80),
    ("mammoth", 5000, "spearman"): (0.87, 0.89),
}


def suite_bars(documents: Documents) -> list[Bar]:
    """Return the bars of our UMAP: on how many data sets it is worse than a peer, and values on single data sets."""
    bars = []
    judged = select(documents, "quality", half="judging")
    ours = [r for r in judged if r["system"] == "vicinal"]
    for (peer, name), limit in FEWEST_WORSE.items():
        counts = count_verdicts(ours, [r for r in judged if r["system"] == peer], name)
        if sum(counts.values()):
            work = (
                f"{MEASURES[name].title}, {sum(counts.values())} data sets for judging: on how many worse than {peer}"
            )
            shown = f"better {counts['better']}, equal {counts['equal']}"
            bars.append(Bar(work, shown, "", counts["worse"], limit, AIMED_WORSE.get((peer, name)), "count"))
    for (case, rows, name), (limit, aim) in LEVELS.items():
        measure, suite = MEASURES[name], "optimum_images" if name == "resting" else "quality"
        found = {
            system: measure.values(select(documents, suite, case=case, rows=rows, system=system))
            for system in ("vicinal", "PaCMAP" if name == "spearman" else "umap-learn")
        }
        value, peer_value = (statistics.fmean(values) if values else None for values in found.values())
        if value is not None:
            other = "" if peer_value is None else f"{list(found)[1]} {show_number(measure, peer_value)}"
            kind = "cost" if measure.smaller_is_better else "score"
            work = f"{case} {rows:,}, {measure.title} of UMAP"
            bars.append(Bar(work, show_number(measure, value), other, value, limit, aim, kind))
    return bars


def markdown(lines: list[list[str]]) -> list[str]:
    head, *rest = lines
    return ["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rest]] + [""]


def order_of(records: Iterable[Record], systems: str) -> list[str]:
    """Return the names of "own" systems or of "peers" in order of appearance."""
    names = dict.fromkeys(r["system"] for r in records)
    return [name for name in names if name.startswith("vicinal") == (systems == "own")]


def quality_section(documents: Documents) -> list[str]:
    """Return the section of RESULTS.md: counts for every pair of systems and measure, then all means."""
    records = documents["quality"]["records"]
    lines = [
        "## Quality on data for tuning and on data for judging",
        "",
        documents["quality"]["description"],
        "",
        "better / equal / worse: on how many data sets our system is better, equal or worse than the peer. Two systems",
        "differ if their means differ by more than the 95 % interval over the seeds (Student's t, pooled variance) and",
        "by more than a floor: 0.002, for Spearman 0.005, for the agreement of seeds 0.01, for J 0.1 %.",
        "Sets of 70,000 rows have two seeds or one.",
        "",
    ]
    titles = [measure.title for measure in MEASURES.values()]
    for half, title in HALVES.items():
        chosen = [r for r in records if r["half"] == half]
        table = [["system", "against", *titles]]
        for ours in order_of(records, "own"):
            for peer in order_of(records, "peers"):
                pair = [[r for r in chosen if r["system"] == system] for system in (ours, peer)]
                counts = [count_verdicts(*pair, name) for name in MEASURES]
                shown = [" / ".join(map(str, count.values())) if sum(count.values()) else "" for count in counts]
                table.append([ours, peer, *shown])
        lines += [f"### {title[0].upper()}{title[1:]}: better / equal / worse", "", *markdown(table)]
    for half, title in HALVES.items():
        table = [["data", "system", "seeds", *titles]]
        chosen = [r for r in records if r["half"] == half]
        for data, group in by_data(chosen).items():
            for system in [*order_of(group, "own"), *order_of(group, "peers")]:
                one = [r for r in group if r["system"] == system]
                shown = [show_spread(measure, one) for measure in MEASURES.values()]
                table.append([name_data(data), system, str(len(one)), *shown])
        lines += [f"### {title[0].upper()}{title[1:]}: mean ± standard deviation over the seeds", "", *markdown(table)]
    return lines


def show_spread(measure: Measure, records: list[Record]) -> str:
    values = measure.values(records)
    if len(set(values)) < 2:
        return show_mean(measure, records)
    return f"{show_mean(measure, records)} ± {show_number(measure, statistics.stdev(values))}"


# What a reader wants to know of a map, and the measure that answers it.
QUESTIONS = {
    "recall_15": "of a row's 15 nearest rows, how many are among the 15 nearest points",
    "true_15_in_100": "of a row's 15 nearest rows, how many are among the 100 nearest points",
    "random_triplets": "of two other rows drawn at random, is the nearer one nearer in the map (0.5 is chance)",
    "centroid_triplets": "the same for the centers of classes",
    "spearman": "rank correlation of all distances",
    "seed_agreement": "share of the places that two seeds agree on, after rotation",
}


def reading_table(documents: Documents) -> list[str]:
    """Return the table of docs/start/reading.md: the median and the range over all data sets, per method."""
    records = documents["quality"]["records"]
    systems = order_of(records, "own")
    names = {"vicinal": "UMAP", "vicinal Progressive": "ProgressiveUMAP", "vicinal Parametric": "ParametricUMAP"}
    table = [["question", *(names.get(system, system.removeprefix("vicinal ")) for system in systems)]]
    for name, question in QUESTIONS.items():
        measure = MEASURES[name]
        line = [question]
        for system in systems:
            groups = by_data(r for r in records if r["system"] == system)
            means = [statistics.fmean(values) for group in groups.values() if (values := measure.values(group))]
            line.append(f"{statistics.median(means):.2f} ({min(means):.2f} to {max(means):.2f})" if means else "")
        table.append(line)
    return markdown(table)


def turn_onto(places: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the places rotated and reflected, so that they fit the reference as well as they can."""
    centered, target = (one.astype(np.float64) - one.mean(axis=0, dtype=np.float64) for one in (places, reference))
    left, _, right = np.linalg.svd(centered.T @ target)
    return centered @ (left @ right)


COLUMNS, PANEL_INCHES, DOTS = 3, 2.6, 90


def draw_maps(maps: dict[str, np.ndarray], labels: np.ndarray | None, title: str, file: Path) -> None:
    """Draw one panel per system, turned onto the first, the points colored by class."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    n_rows = -(-len(maps) // COLUMNS)
    size = (COLUMNS * PANEL_INCHES, n_rows * PANEL_INCHES + 0.4)
    figure, axes = plt.subplots(n_rows, COLUMNS, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat[len(maps) :]:
        ax.axis("off")
    first = next(iter(maps.values()))
    for ax, (system, given) in zip(axes.flat, maps.items(), strict=False):
        places = turn_onto(given, first)
        points = max(0.1, min(6.0, 6000.0 / len(places)))
        # rows are drawn in random order, so that no class hides the others
        order = np.random.default_rng(0).permutation(len(places))
        colors: dict[str, Any] = {"color": "0.3"}
        if labels is not None:
            colors = {"c": labels[order], "cmap": "tab10" if labels.max() < 10 else "turbo"}
        ax.scatter(*places[order].T, s=points, lw=0, rasterized=True, **colors)
        ax.set_title(system, fontsize=9)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_color("0.85")
        ax.set_aspect("equal", adjustable="datalim")
    figure.suptitle(title, fontsize=10)
    figure.savefig(file, dpi=DOTS, pil_kwargs={"optimize": True})
    plt.close(figure)
