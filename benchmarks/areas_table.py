"""The tables of the guide to clusters, from the raw JSON of clusters.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from release import NOT_MEASURED, read_result

Record = dict[str, Any]
CASES = {
    "digits": "digits",
    "fashion-10k": "Fashion-MNIST",
    "fashion": "Fashion-MNIST",
    "debian": "Debian's packages",
}
HEAD = ("rows", "main layer", "best layer", "HDBSCAN", "EVoC")
USE_HEAD = ("rows", "time", "`predict`, updated map", "`predict`, new fit")
NAMES_HEAD = ("division", "clusters", "with a name", "first word", "second word", "third word")
MISSING = "not measured"


def scores(found: Record) -> str:
    return f"{found['clusters']} clusters, {found['noise']:.0%} noise: {found['ari']:.2f}, {found['ami']:.2f}"


def best(runs: list[Record]) -> str:
    """Describe the run or layer with the highest AMI: the best that a user could choose."""
    return scores(max(runs, key=lambda run: run["ami"])) if runs else MISSING


def name_of(record: Record) -> str:
    return f"{CASES[record['case']]}, {record['rows']:,}"


def main_layer(layers: list[Record]) -> Record:
    return next(layer for layer in layers if layer["main"])


def case_line(record: Record) -> list[str]:
    return [
        name_of(record),
        scores(main_layer(record["layers"])),
        best(record["layers"]),
        best(record["hdbscan_on_map"]),
        best([run for run in record.get("evoc", []) if run["layer"] == "labels"]),
    ]


def use_line(record: Record) -> list[str]:
    agreed, times = main_layer(record["predict"]), record.get("times")
    kinds = [f"{agreed[kind]['held_out']:.0%}" if kind in agreed else MISSING for kind in ("updated", "new fit")]
    return [name_of(record), f"{times['share_of_fit']:.2f}" if times else MISSING, *kinds]


def names_line(division: Record) -> list[str]:
    shares = ["" if share is None else f"{share:.0%}" for share in division["median_share"]]
    return [division["division"], str(division["clusters"]), str(division["named"]), *shares]


def table(head: tuple[str, ...], lines: list[list[str]]) -> list[str]:
    return ["| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *lines]] + [""]


def areas_table(results: Path) -> list[str]:
    """Return the tables in Markdown: agreement with classes, time and predictions, words of the names of texts."""
    found = read_result(results / "clusters.json")
    if found is None:
        return [NOT_MEASURED]
    records = {one["case"]: one for one in found["records"]}
    measured = [records[case] for case in CASES if "layers" in records.get(case, {})]
    lines = table(HEAD, [case_line(record) for record in measured])
    lines += table(USE_HEAD, [use_line(record) for record in measured])
    names = records.get("debian", {}).get("names")
    if names:
        lines += ["Median share of a cluster's rows that have a word of its name, for Debian's packages:", ""]
        lines += table(NAMES_HEAD, [names_line(division) for division in names])
    return lines
