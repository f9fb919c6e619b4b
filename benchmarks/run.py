"""Run benchmark suites: `python benchmarks/run.py SUITE... [--repeats N] [--size N]`.

SUITE may be `all`, or `optimum`, which stands for all suites whose names begin with it. `cluster` and `atlas` are not
among `all`: they need the extras `cluster`, in the environment that runs this program, and `app`, in that of the
package. A trial run of `cluster` has few epochs.

The package is measured in `.venv-package`, which holds it and what it requires, the other libraries in `.venv-bench`,
made from `requirements.txt` (`make bench` makes both; or see --own-python and --peer-python). Neither has further
packages, because scikit-learn imports some of them, such as pandas, wherever it finds them. Raw results go to
`results/SUITE.json`, the table to `RESULTS.md`, some of its figures to the README. A trial run with --size writes to
`.cache/trial/` instead; sizes above 4,096 take the same code paths as the full data in every system.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from atlas_table import atlas
from cluster import SUITES as CLUSTER
from datasets import CACHE
from driver import Driver
from machine import describe_run
from optimum import OPTIMUM
from published import published
from quality import quality
from readme import write_readme
from reliability import RELIABILITY
from suites import SUITES as OTHERS
from table import read_documents, write_table

HERE = Path(__file__).resolve().parent
QUALITY = {"quality": (quality, 1), "published": (published, 1)}
ATLAS = {"atlas": (atlas, 1)}
SUITES = OTHERS | QUALITY | OPTIMUM | RELIABILITY | CLUSTER | ATLAS
GROUPS = {"all": list(OTHERS | QUALITY | OPTIMUM | RELIABILITY), "optimum": list(OPTIMUM)}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "suites", nargs="+", choices=[*SUITES, *GROUPS], metavar="SUITE", help=", ".join([*SUITES, *GROUPS])
    )
    parser.add_argument("--repeats", type=int, help="measurements per system (default: depends on the suite)")
    parser.add_argument("--size", type=int, help="trial run with only the first rows of every data set")
    parser.add_argument("--own-python", type=Path, default=HERE.parent / ".venv-package" / "bin" / "python")
    parser.add_argument("--peer-python", type=Path, default=HERE.parent / ".venv-bench" / "bin" / "python")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    interpreters = {"own": arguments.own_python, "peers": arguments.peer_python}
    output = HERE if arguments.size is None else CACHE / "trial"
    results = output / "results"
    results.mkdir(parents=True, exist_ok=True)
    for name in [one for given in arguments.suites for one in GROUPS.get(given, [given])]:
        suite, repeats = SUITES[name]
        driver = Driver(interpreters, CACHE / "scratch", arguments.repeats or repeats, arguments.size, results)
        print(f"{name}: {driver.repeats} repeats", file=sys.stderr, flush=True)
        document = describe_run(name, suite, driver, suite(driver))
        (results / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
        write_table(results, output / "RESULTS.md")
    if output == HERE:
        try:
            write_readme(read_documents(results))
        except LookupError as missing:
            print(f"README.md stays as it is: {missing}", file=sys.stderr)


if __name__ == "__main__":
    main()
