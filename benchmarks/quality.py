"""Quality of maps on data for tuning and on other data for judging.

    python benchmarks/run.py quality                                     # all systems; peers that were measured stay
    python benchmarks/quality.py --half tuning --systems vicinal         # one system of the package, compared
    python benchmarks/quality.py --data "swiss hole" mnist --systems own --save
    python benchmarks/quality.py --pictures                              # from the maps of earlier runs

Whoever changes a default looks at the data for tuning alone, and measures the data for judging once, at the end. Fits
take default parameters and three seeds; of 70,000 rows (`--large`) fewer seeds and systems. `--own-python` names the
interpreter whose `vicinal` is measured. Without `--save` the results are compared with the saved ones and dropped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import CACHE, Dataset, open_dataset
from driver import Driver
from machine import describe_run, installed_versions
from quality_table import compare_systems, draw_maps, rows_of_means
from release import read_result
from score import SampledLoss, score_embedding, seed_agreement
from suites import FIRST_SEED, Record
from systems import SYSTEMS

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "quality.json"
MAPS, PICTURES = CACHE / "maps", CACHE / "pictures"
SEEDS = 3
OWN = tuple(f"vicinal{kind}" for kind in ("", " DensMAP", " t-SNE", " LargeVis", " Progressive", " Parametric"))
PEERS = ("umap-learn", "PaCMAP", "openTSNE")
GROUPS = {"own": OWN, "peers": PEERS, "all": (*OWN, *PEERS)}
# Systems with two seeds on 70,000 rows; the others have one there, parametric UMAP none.
LARGE_SEEDS = {**dict.fromkeys(GROUPS["all"], 1), "vicinal": 2, "umap-learn": 2, "PaCMAP": 2, "vicinal Parametric": 0}
LARGE_ROWS = 70_000


@dataclass(frozen=True)
class Case:
    """A data set, or its first rows, in one half of the suite."""

    half: str
    name: str
    size: int | None = None

    @property
    def large(self) -> bool:
        return self.size == LARGE_ROWS

    def seeds(self, system: str) -> int:
        return LARGE_SEEDS[system] if self.large else SEEDS

    def open(self, limit: int | None = None) -> Dataset:
        return open_dataset(self.name, min(self.size or LARGE_ROWS, limit or LARGE_ROWS))


tuning, judging = partial(Case, "tuning"), partial(Case, "judging")
CASES = (
    tuning("digits"),
    tuning("penguins"),
    tuning("breast cancer"),
    tuning("cells"),
    tuning("weather", 3000),
    tuning("fashion", 3000),
    tuning("tree"),
    tuning("hierarchy"),
    tuning("imbalanced"),
    tuning("swiss roll"),
    tuning("torus"),
    tuning("fashion", LARGE_ROWS),
    judging("wine"),
    judging("differentiation"),
    judging("patches"),
    judging("mnist", 3000),
    judging("lineage"),
    judging("mammoth"),
    judging("lineages"),
    judging("densities"),
    judging("shells"),
    judging("swiss hole"),
    judging("s-curve"),
    judging("signal"),
    judging("mnist", LARGE_ROWS),
)


@dataclass(frozen=True)
class Maps:
    """The maps of one system on one data set, one per seed, in a file that stays for pictures and further scores."""

    folder: Path
    case: Case
    dataset: Dataset
    system: str

    @property
    def file(self) -> Path:
        return self.folder / f"{self.dataset.key}-{self.system}.npy"

    @property
    def report(self) -> Path:
        return self.file.with_suffix(".json")

    def job(self) -> dict[str, Any]:
        seeds = [FIRST_SEED + i for i in range(self.case.seeds(self.system))]
        files = {"data": str(self.dataset.data_file), "embedding": str(self.file), "report": str(self.report)}
        return {"rows": self.dataset.rows, "seeds": seeds, **files}

    def records(self) -> list[Record]:
        """Return one scored record per seed."""
        report, maps = json.loads(self.report.read_text()), np.load(self.file)
        agreement = {"seed_agreement": seed_agreement(maps)} if len(maps) > 1 else {}
        records = []
        for seed, seconds, places in zip(report["seeds"], report["seconds"], maps, strict=True):
            with tempfile.NamedTemporaryFile(suffix=".npy") as file:
                np.save(file, places)
                file.flush()
                one = Path(file.name)
                records.append(
                    {
                        "half": self.case.half,
                        "case": self.dataset.name,
                        "rows": self.dataset.rows,
                        "system": self.system,
                        "seed": seed,
                        "fit": seconds,
                        "loss": find_loss(self.dataset).score(one),
                        "quality": score_embedding(self.dataset, one) | agreement,
                    }
                )
        return records


@lru_cache(maxsize=1)
def find_loss(dataset: Dataset) -> SampledLoss:
    """Return the loss of a data set; all systems are measured on one graph."""
    return SampledLoss(dataset)


def open_maps(cases: Iterable[Case], systems: Iterable[str], folder: Path, limit: int | None = None) -> list[Maps]:
    """Return the maps of the data sets that can be opened, made or not."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for case in cases:
        try:
            dataset = case.open(limit)
        except FileNotFoundError as error:
            print(f"  {case.name} is left out: {error}", file=sys.stderr, flush=True)
            continue
        found += [Maps(folder, case, dataset, system) for system in systems if case.seeds(system)]
    return found


def installed_systems(driver: Driver, systems: Iterable[str]) -> list[str]:
    """Return the systems whose packages are installed; PyTorch, for one, is an extra."""
    versions = installed_versions(driver.interpreters)
    found = []
    for system in systems:
        missing = sorted(set(SYSTEMS[system].packages) - versions[SYSTEMS[system].environment].keys())
        if missing:
            print(f"  {system} is left out: {', '.join(missing)} not installed", file=sys.stderr, flush=True)
        else:
            found.append(system)
    return found


def fit_maps(driver: Driver, maps: Iterable[Maps]) -> None:
    """Fit all maps, those of one system in one process."""
    by_system: dict[str, list[Maps]] = {}
    for one in maps:
        by_system.setdefault(one.system, []).append(one)
        one.report.unlink(missing_ok=True)
    for system, parts in by_system.items():
        driver.measure({"task": "collection", "system": system, "parts": [one.job() for one in parts]}, None)


def quality(driver: Driver) -> list[Record]:
    """Maps of data for tuning and of data for judging, default parameters, means over the seeds."""
    known = {identity(r): r for r in read_records(driver.pictures / RESULTS.name) if r["system"] in PEERS}
    folder = MAPS if driver.size is None else driver.scratch / "maps"
    maps = open_maps(CASES, installed_systems(driver, GROUPS["all"]), folder, driver.size)
    new = [one for one in maps if (one.dataset.name, one.dataset.rows, one.system) not in {key[:3] for key in known}]
    fit_maps(driver, new)
    return sort_records([*known.values(), *(record for one in new for record in one.records())])


def identity(record: Record) -> tuple[str, int, str, int]:
    return record["case"], record["rows"], record["system"], record["seed"]


def sort_records(records: Iterable[Record]) -> list[Record]:
    """Return records in the order of CASES, systems and seeds."""
    cases, systems = [case.name for case in CASES], GROUPS["all"]
    return sorted(records, key=lambda r: (r["rows"], cases.index(r["case"]), systems.index(r["system"]), r["seed"]))


def read_records(file: Path) -> list[Record]:
    return json.loads(file.read_text())["records"] if file.exists() else []


def save_records(driver: Driver, new: list[Record]) -> None:
    """Replace the saved records of the same data and systems."""
    document = describe_run("quality", quality, driver, [])
    replaced = {identity(r)[:3] for r in new}
    current = read_result(RESULTS) is not None  # otherwise our own records are of an earlier version
    kept = [r for r in read_records(RESULTS) if current or r["system"] in PEERS]
    kept = [r for r in kept if identity(r)[:3] not in replaced]
    document["records"] = sort_records(kept + new)
    unfinished = RESULTS.with_suffix(".partial")
    unfinished.write_text(json.dumps(document, indent=1) + "\n")
    unfinished.rename(RESULTS)


def chosen_cases(arguments: argparse.Namespace) -> list[Case]:
    cases = [case for case in CASES if arguments.half in (None, case.half)]
    if arguments.data:
        cases = [case for case in cases if case.name in arguments.data]
    return [case for case in cases if case.large == arguments.large]


def draw_pictures(cases: Iterable[Case]) -> None:
    """Draw the first map of every system on each data set."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for case in cases:
        made = [one for one in open_maps([case], GROUPS["all"], MAPS) if one.report.exists()]
        if made:
            dataset = made[0].dataset
            maps = {one.system: np.load(one.file)[0] for one in made}
            labels = dataset.labels() if dataset.label_file else None
            draw_maps(maps, labels, f"{case.name}, {dataset.rows:,} rows", PICTURES / f"{dataset.key}.png")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tuning", "judging"), help="default: both")
    parser.add_argument("--data", nargs="+", choices=list(dict.fromkeys(c.name for c in CASES)), metavar="NAME")
    parser.add_argument("--systems", nargs="+", default=["own"], choices=[*GROUPS["all"], *GROUPS], metavar="SYSTEM")
    parser.add_argument("--large", action="store_true", help="the data sets of 70,000 rows instead of the others")
    parser.add_argument("--save", action="store_true", help=f"keep the maps, and write {RESULTS.relative_to(HERE)}")
    parser.add_argument("--missing", action="store_true", help="with --save: fit only maps that are not kept")
    parser.add_argument("--score", action="store_true", help="with --save: fit nothing, score the maps that are kept")
    parser.add_argument("--pictures", action="store_true", help="draw the maps that are kept, and measure nothing")
    parser.add_argument("--own-python", type=Path, default=HERE.parent / ".venv-package" / "bin" / "python")
    parser.add_argument("--peer-python", type=Path, default=HERE.parent / ".venv-bench" / "bin" / "python")
    arguments = parser.parse_args()
    if (arguments.missing or arguments.score) and not arguments.save:
        parser.error("--missing and --score need --save: without it no maps are kept")
    return arguments


def measure_chosen(arguments: argparse.Namespace, scratch: Path) -> list[Record]:
    """Measure what was asked for, one system after the other; save the records of each system."""
    interpreters = {"own": arguments.own_python, "peers": arguments.peer_python}
    driver = Driver(interpreters, scratch, 1, None, RESULTS.parent)
    systems = [one for given in arguments.systems for one in GROUPS.get(given, [given])]
    if not arguments.score:
        systems = installed_systems(driver, systems)
    new: list[Record] = []
    for system in systems:
        maps = open_maps(chosen_cases(arguments), [system], MAPS if arguments.save else scratch / "maps")
        if not arguments.score:
            fit_maps(driver, [one for one in maps if not (arguments.missing and one.report.exists())])
        scored = [record for one in maps if one.report.exists() for record in one.records()]
        if arguments.save:
            save_records(driver, scored)
        new += scored
    return new


def main() -> None:
    arguments = parse_arguments()
    if arguments.pictures:
        draw_pictures(chosen_cases(arguments))
        return
    saved = read_records(RESULTS)
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        new = measure_chosen(arguments, Path(folder))
    for system in dict.fromkeys(r["system"] for r in new):
        ours = [r for r in new if r["system"] == system]
        print(f"\n{system}, now", *rows_of_means(ours), sep="\n")
        for peer in (*PEERS, system):
            kept = [r for r in saved if r["system"] == peer]
            if kept:
                name = f"{system} as saved" if peer == system else peer
                print(f"\n{system} against {name} (its mean): + better, = equal, - worse")
                print(*compare_systems(ours, kept), sep="\n")


if __name__ == "__main__":
    main()
