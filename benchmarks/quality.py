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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from pathlib import Path

import numpy as np
from datasets import CACHE, Dataset, open_dataset
from driver import Driver
from machine import describe_run
from optimum import fit_seeds
from quality_table import compare_systems, draw_maps, rows_of_means
from score import SampledLoss, score_embedding, seed_agreement
from suites import Record

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "quality.json"
PICTURES = HERE / "results" / "maps"
MAPS = CACHE / "maps"
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


def measure(
    driver: Driver, cases: Iterable[Case], systems: Iterable[str], known: list[Record], maps: Path = MAPS
) -> Iterator[Record]:
    """Yield the records of all systems on every data set, and write the maps; what is known is not measured again."""
    for case in cases:
        try:
            dataset = case.open(driver.size)
        except FileNotFoundError as error:
            print(f"  {case.name} is left out: {error}", file=sys.stderr, flush=True)
            continue
        for system in systems:
            found = [r for r in known if (r["case"], r["rows"], r["system"]) == (case.name, dataset.rows, system)]
            if found or not case.seeds(system):
                yield from found
                continue
            found = fit_seeds(driver, dataset, system, 0, case.seeds(system), warm=False)
            yield from score_maps(found, case, dataset, map_file(maps, dataset, system))


@lru_cache(maxsize=1)
def find_loss(dataset: Dataset) -> SampledLoss:
    """Return the loss of a data set; all systems are measured on one graph, one after the other."""
    return SampledLoss(dataset)


def score_maps(records: list[Record], case: Case, dataset: Dataset, file: Path) -> list[Record]:
    """Score the maps of one system, and write them to one file, from which pictures are drawn."""
    maps = np.stack([np.load(record["map"]) for record in records]).astype(np.float32)
    file.parent.mkdir(parents=True, exist_ok=True)
    np.save(file, maps)
    agreement = {"seed_agreement": seed_agreement(maps)} if len(maps) > 1 else {}
    for record in records:
        one = record.pop("map")
        record |= {
            "half": case.half,
            "loss": find_loss(dataset).score(one),
            "quality": score_embedding(dataset, one) | agreement,
        }
        one.unlink()
    return records


def map_file(maps: Path, dataset: Dataset, system: str) -> Path:
    return maps / f"{dataset.key}-{system}.npy"


def quality(driver: Driver) -> list[Record]:
    """Maps of data for tuning and of data for judging, default parameters, means over the seeds."""
    file = driver.pictures / RESULTS.name
    known = [r for r in read_records(file) if r["system"] in PEERS]
    return list(measure(driver, CASES, GROUPS["all"], known))


def read_records(file: Path) -> list[Record]:
    return json.loads(file.read_text())["records"] if file.exists() else []


def save_records(driver: Driver, new: list[Record]) -> None:
    """Replace the saved records of the same data and systems."""
    document = describe_run("quality", quality, driver, [])
    replaced = {(r["case"], r["rows"], r["system"]) for r in new}
    kept = [r for r in read_records(RESULTS) if (r["case"], r["rows"], r["system"]) not in replaced]
    document["records"] = kept + new
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
    PICTURES.mkdir(exist_ok=True)
    for case in cases:
        dataset = case.open()
        files = {system: map_file(MAPS, dataset, system) for system in GROUPS["all"]}
        maps = {system: np.load(file)[0] for system, file in files.items() if file.exists()}
        if maps:
            labels = dataset.labels() if dataset.label_file else None
            draw_maps(maps, labels, f"{case.name}, {dataset.rows:,} rows", PICTURES / f"{dataset.key}.png")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=("tuning", "judging"), help="default: both")
    parser.add_argument("--data", nargs="+", choices=list(dict.fromkeys(c.name for c in CASES)), metavar="NAME")
    parser.add_argument("--systems", nargs="+", default=["own"], choices=[*GROUPS["all"], *GROUPS], metavar="SYSTEM")
    parser.add_argument("--large", action="store_true", help="the data sets of 70,000 rows instead of the others")
    parser.add_argument("--missing", action="store_true", help="measure only what is not saved")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.relative_to(HERE)}")
    parser.add_argument("--pictures", action="store_true", help="draw the maps of earlier runs, and measure nothing")
    parser.add_argument("--own-python", type=Path, default=HERE.parent / ".venv-package" / "bin" / "python")
    parser.add_argument("--peer-python", type=Path, default=HERE.parent / ".venv-bench" / "bin" / "python")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    cases = chosen_cases(arguments)
    if arguments.pictures:
        draw_pictures(cases)
        return
    systems = [one for given in arguments.systems for one in GROUPS.get(given, [given])]
    interpreters = {"own": arguments.own_python, "peers": arguments.peer_python}
    saved = read_records(RESULTS)
    new: list[Record] = []
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        scratch = Path(folder)
        driver = Driver(interpreters, scratch, 1, None, RESULTS.parent)
        maps = MAPS if arguments.save else scratch / "maps"
        for case, system in product(cases, systems):
            found = list(measure(driver, [case], [system], saved if arguments.missing else [], maps))
            new += found
            if arguments.save and found:
                save_records(driver, found)
    for system in dict.fromkeys(r["system"] for r in new):
        ours = [r for r in new if r["system"] == system]
        print(f"\n{system}, now", *rows_of_means(ours), sep="\n")
        for peer in (*PEERS, system):
            kept = [r for r in saved if r["system"] == peer]
            name = f"{system} as saved" if peer == system else peer
            if kept:
                print(f"\n{system} against {name} (its mean): + better, = equal, - worse")
                print(*compare_systems(ours, kept), sep="\n")


if __name__ == "__main__":
    main()
