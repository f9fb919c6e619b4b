"""Write RESULTS.md, and the figures of README.md, from the raw results: `python benchmarks/table.py`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

from atlas_table import atlas_bars, atlas_lines
from bars import (
    NO_LIMIT,
    OTHER_QUALITY_NAMES,
    QUALITY_NAMES,
    Bar,
    Documents,
    Record,
    all_bars,
    mean,
    mean_quality,
    mebibytes,
    middle,
    seconds,
    select,
    show,
)
from cluster_table import cluster_section
from gpu_table import gpu_section
from published_table import published_section
from quality_table import quality_section, suite_bars
from readme import write_readme
from release import RELEASE, read_result
from wasm_table import wasm_section

QUALITY_COLUMNS = QUALITY_NAMES | OTHER_QUALITY_NAMES
CURVE = {"trustworthiness": "trustworthiness", "accuracy_10nn": "10-NN accuracy", "error": "error"}
STAGES = ("neighbors", "graph", "initialize", "layout", "fit")
# How many times faster 16 threads must be than one.
SCALING = {"neighbors": 9, "layout": 10, "fit": 8}


def read_documents(results: Path) -> Documents:
    """Read the results of the suites that are shown; other files in the folder belong to other scripts."""
    found = {name: read_result(results / f"{name}.json") for name in SECTIONS}
    return {name: document for name, document in found.items() if document is not None}


def rows(head: Iterable[str], lines: Iterable[Iterable[str]]) -> list[str]:
    head = list(head)
    table = [head, ["---"] * len(head), *(list(line) for line in lines)]
    return ["| " + " | ".join(line) + " |" for line in table] + [""]


def shown_seconds(value: float | None) -> str:
    return show(value, seconds)


def show_times(ours: float | None, other: float | None) -> str:
    """Return the time of the other system as a multiple of ours."""
    return "" if not ours or other is None else f"{other / ours:.2f}"


def show_bound(bar: Bar, bound: float | None) -> str:
    if bound is None or bound == NO_LIMIT:
        return ""
    sign = "≥" if bar.at_least else "≤"
    if bar.kind == "ratio" and bound < 1:
        return f"{sign} 1/{1 / bound:g}"
    shown = f"{bound:,.0f}" if bar.kind == "cost" else f"{bound:g}"
    return f"{sign} {shown}{' s' if bar.kind == 'seconds' else ''}"


def show_value(bar: Bar) -> str:
    if bar.kind == "seconds":
        return seconds(bar.value)
    if bar.kind == "ratio":
        return f"1/{1 / bar.value:.2f}" if bar.value < 1 else f"{bar.value:.2f}"
    if bar.kind in ("count", "cost"):
        return f"{bar.value:,.0f}"
    return f"{bar.value:+.4f}" if bar.kind == "difference" else f"{bar.value:.4f}"


def bars_section(documents: Documents) -> list[str]:
    lines = [
        (
            bar.work,
            bar.ours,
            bar.peer,
            show_value(bar),
            show_bound(bar, bar.limit),
            show_bound(bar, bar.aim),
            bar.met,
        )
        for bar in [*all_bars(documents), *suite_bars(documents), *atlas_bars(documents)]
    ]
    return ["## Bars", "", *rows(("work", "ours", "peer", "ratio or value", "bar", "aim", "met"), lines)]


def label(record: Record) -> str:
    return record["system"] + {True: ", seeded", False: ", no seed", None: ""}[record.get("seeded")]


def groups(documents: Documents, suite: str, *keys: str) -> list[list[Record]]:
    """Return the records of a suite, grouped by these keys, in order of first appearance."""
    found: dict[tuple[object, ...], list[Record]] = {}
    for record in select(documents, suite):
        found.setdefault(tuple(record.get(key) for key in keys), []).append(record)

    def place(group: list[Record]) -> tuple[int, str, bool]:
        return group[0].get("rows", 0), group[0].get("case", ""), group[0]["system"] != "vicinal"

    return sorted(found.values(), key=place)


def process_section(suite: str, title: str) -> Callable[[Documents], list[str]]:
    """Return a function that lists whole processes by data and system, with the quality of their maps."""

    def section(documents: Documents) -> list[str]:
        lines = []
        for group in groups(documents, suite, "case", "system", "seeded"):
            first = group[0]
            ours = middle(select(documents, suite, case=first["case"], system="vicinal"), "wall")
            wall = middle(group, "wall")
            quality = [f"{mean_quality(group, name):.4f}" for name in QUALITY_COLUMNS]
            where = f"{first['case']} {first['rows']:,}"
            times = (shown_seconds(wall), shown_seconds(middle(group, "fit")), show_times(ours, wall))
            lines.append((where, label(first), *times, *quality))
        head = ("data", "system", "process", "of it fit", "times ours", *QUALITY_COLUMNS.values())
        return [f"## {title}", "", documents[suite]["description"], "", *rows(head, lines)]

    return section


def stages_section(suite: str, title: str) -> Callable[[Documents], list[str]]:
    """Return a function that lists the warm stages by system."""

    def section(documents: Documents) -> list[str]:
        lines = []
        for group in groups(documents, suite, "system"):
            times = [shown_seconds(middle(group, "stages", stage)) for stage in STAGES]
            if group[0]["system"] == "vicinal":
                times[STAGES.index("initialize")] = shown_seconds(middle(group, "stages", "fit_initialize"))
            recall = middle(group, "neighbor_recall")
            layout = middle(group, "layout_quality", "recall_15")
            lines.append((group[0]["system"], *times, f"{recall:.4f}", "" if layout is None else f"{layout:.4f}"))
        head = ("system", *STAGES, "neighbor recall", "recall@15 of the layout from random positions")
        return [f"## {title}", "", documents[suite]["description"], "", *rows(head, lines)]

    return section


def transform_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "transform", "system"):
        first = group[0]
        figures = [shown_seconds(middle(group, key)) for key in ("many", "one_row_median", "first_call")]
        accuracy = middle(group, "accuracy_10nn")
        lines.append(
            (
                first["system"],
                f"{first['train_rows']:,} + {first['many_rows']:,}",
                *figures,
                f"{accuracy:.4f}",
            )
        )
    head = (
        "system",
        "rows",
        "all unseen rows",
        "one row",
        "first call (100 rows)",
        "10-NN accuracy of the unseen rows",
    )
    return ["## Transform", "", documents["transform"]["description"], "", *rows(head, lines)]


def memory_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "memory", "system", "seeded"):
        figures = [middle(group, key) for key in ("input_bytes", "peak_bytes", "beyond_input_bytes")]
        lines.append((label(group[0]), *(show(figure, mebibytes) for figure in figures)))
    head = ("system", "input", "peak", "peak beyond the input")
    return ["## Memory", "", documents["memory"]["description"], "", *rows(head, lines)]


def sparse_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "sparse", "system", "seeded"):
        scores = [middle(group, "scores", name) for name in ("neighbor_recall", "accuracy_10nn")]
        times = [shown_seconds(middle(group, key)) for key in ("wall", "fit")]
        shown = [show(score, "{:.4f}".format) for score in scores]
        lines.append((label(group[0]), *times, show(middle(group, "peak_bytes"), mebibytes), *shown))
    head = ("system", "process", "of it fit", "peak memory", "neighbors found", "10-NN accuracy")
    return ["## Sparse rows", "", documents["sparse"]["description"], "", *rows(head, lines)]


def growth_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "growth", "case"):
        stages = sorted({stage for record in group for stage in record["stages"]})
        parts = ", ".join(f"{stage} {shown_seconds(middle(group, 'stages', stage))}" for stage in stages)
        peak = show(middle(group, "peak_bytes"), mebibytes)
        lines.append((f"{group[0]['rows']:,}", shown_seconds(middle(group, "fit")), parts, peak))
    head = ("rows", "fit", "stages", "peak memory")
    return ["## Growth", "", documents["growth"]["description"], "", *rows(head, lines)]


def large_section(documents: Documents) -> list[str]:
    lines = [
        (f"{group[0]['rows']:,}", group[0]["system"], shown_seconds(middle(group, "fit")))
        for group in groups(documents, "large", "system")
    ]
    return ["## Large data", "", documents["large"]["description"], "", *rows(("rows", "system", "fit"), lines)]


def tsne_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "tsne", "system"):
        times = (shown_seconds(middle(group, "wall")), shown_seconds(middle(group, "fit")))
        quality = [f"{mean_quality(group, name):.4f}" for name in QUALITY_COLUMNS]
        divergence = show(middle(group, "kl_divergence"), "{:.4f}".format)
        lines.append((f"{group[0]['rows']:,}", group[0]["system"], *times, divergence, *quality))
    head = ("rows", "system", "process", "of it fit", "KL divergence", *QUALITY_COLUMNS.values())
    return ["## t-SNE", "", documents["tsne"]["description"], "", *rows(head, lines)]


def progressive_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "progressive", "system"):
        times = [shown_seconds(middle(group, key)) for key in ("first_map", "arrived", "total", "cpu")]
        quality = [f"{mean_quality(group, name):.4f}" for name in QUALITY_COLUMNS]
        found = show(middle(group, "neighbor_recall"), "{:.4f}".format)
        lines.append((group[0]["system"], *times, found, *quality))
    head = ("system", "first map", "all rows in it", "complete", "processor", "neighbors found")
    curves = [
        (r["system"], shown_seconds(p["seconds"]), f"{p['rows']:,}", *(f"{p[key]:.3f}" for key in CURVE))
        for r in select(documents, "progressive", repeat=0)
        for p in r["curve"]
    ]
    return [
        "## Progressive",
        "",
        documents["progressive"]["description"],
        "",
        *rows((*head, *QUALITY_COLUMNS.values()), lines),
        "![quality and error over time](results/progressive.png)",
        "",
        "Quality is measured on the rows placed so far; the error is the distance to the final map.",
        "",
        *rows(("system", "after", "rows", *CURVE.values()), curves),
    ]


def startup_section(documents: Documents) -> list[str]:
    lines = [(g[0]["system"], shown_seconds(middle(g, "wall"))) for g in groups(documents, "startup", "system")]
    return ["## Start-up", "", documents["startup"]["description"], "", *rows(("what", "median"), lines)]


FIDELITY_COLUMNS = {
    "trustworthiness_15": "trustworthiness",
    "continuity_15": "continuity",
    "spearman": "Spearman",
    "recall_15": "recall@15",
    "true_15_in_100": "true 15 in 100",
}


def optimum_section(suite: str, title: str) -> Callable[[Documents], list[str]]:
    """Return a function that lists losses and neighborhoods by data and system, means over the seeds."""

    def section(documents: Documents) -> list[str]:
        lines = []
        for group in groups(documents, suite, "case", "system"):
            first = group[0]
            losses = [f"{mean(group, 'loss', name):,.0f}" for name in ("resting", "attraction", "repulsion")]
            whole = show(mean(group, "whole_rows"), "{:.1f}".format)
            long = show(mean(group, "loss", "long_edges"), "{:.4f}".format)
            quality = [f"{mean_quality(group, name):.4f}" for name in FIDELITY_COLUMNS]
            data = f"{first['case']} {first['rows']:,}"
            fit = shown_seconds(middle(group, "fit"))
            lines.append((data, first["system"], str(len(group)), *losses, long, whole, *quality, fit))
        head = (
            "data",
            "system",
            "seeds",
            "J",
            "A",
            "R",
            "long edges",
            "class 1 whole",
            *FIDELITY_COLUMNS.values(),
            "fit",
        )
        return [f"## {title}", "", documents[suite]["description"], "", *rows(head, lines)]

    return section


def order_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "optimum_order", "case", "system"):
        where = {"case": group[0]["case"], "system": group[0]["system"]}
        ordered, shuffled = (
            mean(select(documents, "optimum_order", order=order, **where), "trustworthiness") or 0.0
            for order in ("in order", "shuffled")
        )
        data = f"{where['case']} {group[0]['rows']:,}"
        lines.append((data, where["system"], f"{ordered:.4f}", f"{shuffled:.4f}", f"{ordered - shuffled:+.4f}"))
    head = ("data", "system", "in order", "shuffled", "difference")
    return ["## Order of the rows", "", documents["optimum_order"]["description"], "", *rows(head, lines)]


def start_section(documents: Documents) -> list[str]:
    lines = []
    for group in groups(documents, "optimum_start", "clusters"):
        start, fit = middle(group, "stages", "initialize"), middle(group, "fit")
        share = "" if start is None or not fit else f"{start / fit:.3f}"
        lines.append((f"{group[0]['clusters']:,}", shown_seconds(fit), shown_seconds(start), share))
    head = ("clusters", "fit", "of it start", "share")
    return ["## Start of many pieces", "", documents["optimum_start"]["description"], "", *rows(head, lines)]


def noise_section(documents: Documents) -> list[str]:
    lines = [
        (group[0]["system"], shown_seconds(middle(group, "neighbors")), f"{middle(group, 'neighbor_recall'):.4f}")
        for group in groups(documents, "optimum_noise", "system")
    ]
    head = ("system", "neighbors", "neighbor recall")
    return ["## Neighbors of noise", "", documents["optimum_noise"]["description"], "", *rows(head, lines)]


def reliability_section(documents: Documents) -> list[str]:
    lines: list[tuple[str, str, str]] = []
    for r in documents["reliability"]["records"]:
        where = f"{r['case']} {r['rows']:,}" if r["task"] in ("stability", "cost") else r["case"]
        if "auc" in r:
            lines.append((where, "AUC of 1 - reliability, planted rows", ", ".join(f"{auc:.3f}" for auc in r["auc"])))
        if "labels" in r:
            lines.append((where, "rows called trustworthy", f"{r['labels']['trustworthy']:.1%}"))
        if "ghosts_reseeded" in r:
            lines.append((where, "spread of ghosts and of 10 reseeded fits, Spearman", f"{r['ghosts_reseeded']:.3f}"))
            lines.append((where, "the same between 5 and 5 other reseeded fits", f"{r['reseeded_reseeded']:.3f}"))
        if "everything" in r:
            lines.append((where, "ghosts / layout, processor time", f"{r['ghosts'] / r['layout']:.2f}"))
            lines.append((where, "everything / fit, processor time", f"{r['everything'] / r['fit']:.2f}"))
            lines.append((where, "peak memory / that of the fit", f"{r['peak_bytes'] / r['fit_peak_bytes']:.2f}"))
    head = ("data", "measure", "value")
    return ["## Reliability", "", documents["reliability"]["description"], "", *rows(head, lines)]


def atlas_section(documents: Documents) -> list[str]:
    (record,) = select(documents, "atlas", repeat=0)
    refits, absent = atlas_lines(record)
    head = (
        *("day", "rows", "J / J of a fit", "cost of loyalty", "median move"),
        *("10-NN", "10-NN of a fit", "names kept", "strain before"),
    )
    first = ("first on day 15", "found", "others marked")
    text = "J is that of the layout; the published map has a frame of its own, in which it is scaled."
    return ["## Atlas", "", documents["atlas"]["description"], "", text, "", *rows(head, refits), *rows(first, absent)]


SECTIONS = {
    "iris": process_section("iris", "Starting"),
    "fresh": process_section("fresh", "Fresh process"),
    "stages": stages_section("stages", "Warm stages"),
    "stages_avx2": stages_section("stages_avx2", "Warm stages without AVX-512"),
    "transform": transform_section,
    "memory": memory_section,
    "growth": growth_section,
    "large": large_section,
    "sparse": sparse_section,
    "tsne": tsne_section,
    "family": process_section("family", "densMAP and LargeVis"),
    "progressive": progressive_section,
    "startup": startup_section,
    "quality": quality_section,
    "published": published_section,
    "optimum_small": optimum_section("optimum_small", "Loss, small data"),
    "optimum_images": optimum_section("optimum_images", "Loss, 70,000 images"),
    "optimum_shapes": optimum_section("optimum_shapes", "Loss, known shapes"),
    "optimum_order": order_section,
    "optimum_start": start_section,
    "optimum_noise": noise_section,
    "reliability": reliability_section,
    "atlas": atlas_section,
}


def cores_section(results: Path) -> list[str]:
    """Return the section about one and 16 threads, from the raw results of cores.py, if there are any."""
    found = read_result(results / "cores.json")
    if found is None:
        return []
    lines, scaling = [], []
    for name, one in found["data"].items():
        for threads, times in one["threads"].items():
            lines.append([name, threads, *(seconds(times[stage]) for stage in STAGES)])
        if {"1", "16"} <= one["threads"].keys():
            times = [one["threads"]["1"][stage] / one["threads"]["16"][stage] for stage in SCALING]
            met = all(value >= limit for value, limit in zip(times, SCALING.values(), strict=True))
            scaling.append([name, *(f"{value:.1f}" for value in times), "yes" if met else "no"])
    return [
        "## Cores",
        "",
        f"{found['machine']}. The smallest time of each stage; every map has the same bits for all numbers of threads: "
        f"{'yes' if all(one['same_bits'] for one in found['data'].values()) else 'NO'}. Raw figures: "
        "`results/cores.json`.",
        "",
        *rows(["rows", "threads", *STAGES], lines),
        *rows(["16 threads, times faster", *(f"{stage} (≥ {n})" for stage, n in SCALING.items()), "met"], scaling),
    ]


def versions_of(documents: Iterable[Record]) -> list[str]:
    """Return one line per environment, with all versions of each package that the documents were measured with."""
    found: dict[str, dict[str, list[str]]] = {}
    for document in documents:
        for environment, versions in document["versions"].items():
            for name, version in versions.items():
                known = found.setdefault(environment, {}).setdefault(name, [])
                if name != "vicinal" and version not in known:
                    known.append(version)
    return [
        f"Versions ({environment}): "
        + ", ".join(f"{name} {' and '.join(known)}" for name, known in sorted(packages.items()) if known)
        + "."
        for environment, packages in sorted(found.items())
    ]


def code_of(documents: Documents) -> list[str]:
    """Return which version and commits were measured, and which suites were not."""
    commits: dict[str, list[str]] = {}
    for name, document in documents.items():
        commits.setdefault(document["code"]["commit"], []).append(name)
    measured = "; ".join(f"{commit}: {', '.join(names)}" for commit, names in commits.items())
    missing = ", ".join(name for name in SECTIONS if name not in documents)
    lines = [f"All figures are of vicinal {RELEASE}. Commits and what was measured at them: {measured}."]
    return lines + ([f"Not measured with this version: {missing}."] if missing else [])


def heading(documents: Documents) -> list[str]:
    machines: dict[str, list[Record]] = {}
    for document in documents.values():
        machines.setdefault(json.dumps(document["machine"], sort_keys=True), []).append(document)
    lines = [
        "# Results",
        "",
        "Written by `benchmarks/table.py` from the raw results in `benchmarks/results/`.",
        *code_of(documents),
        "Numbers are medians over the repeats (quality: means).",
        "Systems took turns: ratios are comparable between runs, times are not.",
        "The compiler caches of the other libraries were filled by an earlier run.",
        "",
    ]
    for measured in machines.values():
        machine = measured[0]["machine"]
        lines.append(
            f"Machine: {machine['cpu']}, {machine['cores']} cores ({machine['vector_extensions']}), "
            f"{machine['memory_gib']} GiB, {machine['system']}, Python {machine['python']}."
        )
        lines += versions_of(measured)
    repeats = ", ".join(f"{name} {document['repeats']}" for name, document in documents.items())
    return [*lines, f"Repeats: {repeats}.", ""]


def write_table(results: Path, file: Path) -> None:
    documents = read_documents(results)
    lines = [*heading(documents), *bars_section(documents)]
    for name, section in SECTIONS.items():
        if name in documents:
            lines += section(documents)
    lines += cores_section(results)
    lines += wasm_section(results)
    lines += gpu_section(results)
    lines += cluster_section(results)
    file.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    here = Path(__file__).resolve().parent
    write_table(here / "results", here / "RESULTS.md")
    write_readme(read_documents(here / "results"))
