"""The own tests of scikit-learn (t-SNE), scanpy and BERTopic, with vicinal in place of TSNE and umap-learn.

    python examples/clients/own_tests.py [--sources FOLDER]

Counts are written into the guide (docs/start/coming_from/umap_learn.md). The exit status is not 0 if a test fails that
the library passes without vicinal, unless it is in ``EXPECTED``. scikit-learn's tests are in its package; ``sources``
has the source archives of the others, from which nothing but the tests is used.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs/start/coming_from/umap_learn.md"
BEGIN, END = "<!-- written by examples/clients/own_tests.py -->", "<!-- end -->"
AS_UMAP = "import sys, vicinal\nsys.modules['umap'] = vicinal\nsys.modules['umap.umap_'] = vicinal.umap_\n"
AS_TSNE = "import sklearn.manifold, vicinal\nsklearn.manifold.TSNE = vicinal.TSNE\n"
SAME_BITS = "asks for the bits of a map of distances in float64; vicinal compares rows in float32"
# Why a test fails with vicinal only.
EXPECTED = {
    "test_tsne_with_different_distance_metrics[barnes_hut-cosine-cosine_distances]": SAME_BITS,
    "test_tsne_with_different_distance_metrics[exact-cosine-cosine_distances]": SAME_BITS,
    "test_tsne_with_different_distance_metrics[exact-manhattan-manhattan_distances]": SAME_BITS,
    "test_tsne_with_mahalanobis_distance": SAME_BITS,
    "test_connectivities_euclidean[umap]": "asks for the rounding of umap-learn's edge weights (five digits are exact)",
    "test_ingest_map_embedding_umap": 'asks for the same map from init="spectral" and from the default of UMAP',
}


@dataclass(frozen=True)
class Suite:
    """Tests of a library: its name, the files, and the code that puts vicinal in place.

    ``archive`` is the start of the name of the source archive, ``folders`` what is taken from it.
    """

    name: str
    files: tuple[str, ...]
    replace: str
    archive: str = ""
    folders: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


SUITES = (
    Suite("scikit-learn: t-SNE", ("test_t_sne.py",), AS_TSNE),
    Suite(
        "scanpy: neighbors, umap, ingest",
        tuple(
            f"tests/test_{name}.py"
            for name in ("neighbors", "neighbors_common", "neighbors_key_added", "ingest", "embedding")
        ),
        AS_UMAP,
        "scanpy-",
        ("tests/", "src/testing/", "pyproject.toml"),
        ("-W", "ignore"),
    ),
    # The tests of whole topic models download documents and a language model.
    Suite(
        "BERTopic: what needs no network",
        ("tests/test_other.py", "tests/test_utils.py"),
        AS_UMAP,
        "bertopic-",
        ("tests/",),
    ),
)


def unpacked(suite: Suite, sources: Path, folder: Path) -> Path:
    """Return the folder of a suite's tests."""
    if not suite.archive:
        spec = importlib.util.find_spec("sklearn.manifold.tests")
        assert spec is not None
        assert spec.submodule_search_locations is not None
        return Path(next(iter(spec.submodule_search_locations)))
    found = sorted(sources.glob(f"{suite.archive}*.tar.gz"))
    if not found:
        sys.exit(f"{sources} has no archive {suite.archive}*.tar.gz: `make clients` downloads it")
    with tarfile.open(found[-1]) as archive:
        wanted = [
            one for one in archive.getmembers() if one.name.partition("/")[2].startswith(suite.folders) and one.isfile()
        ]
        archive.extractall(folder, wanted, filter="data")
    return next(folder.iterdir())


def run(suite: Suite, tests: Path, *, replaced: bool) -> dict[str, str]:
    """Run the tests and return the outcome of each: "passed", "failed" or "skipped"."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        (scratch / "replaced.py").write_text(suite.replace if replaced else "")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "replaced", *suite.options]
        command += ["-o", f"cache_dir={scratch}/cache", f"--junitxml={scratch}/report.xml"]
        if not suite.archive:
            command += ["-c", os.devnull, "--rootdir", folder]
        paths = [str(scratch), str(tests / "src"), os.environ.get("PYTHONPATH", "")]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in paths if path)}
        done = subprocess.run(
            [*command, *(str(tests / name) for name in suite.files)],
            cwd=scratch if not suite.archive else tests,
            env=environment,
            capture_output=True,
            text=True,
        )
        if not (scratch / "report.xml").exists():
            sys.exit(f"{suite.name}: pytest did not run\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return outcomes(scratch / "report.xml")


def outcomes(report: Path) -> dict[str, str]:
    """Return the outcome of each test of a report."""
    found = {}
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case}
        failed = bool(kinds & {"failure", "error"})
        found[case.attrib["name"]] = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
    return found


def counted(found: dict[str, str]) -> str:
    """Return "a of b": the tests that passed, and those that were not skipped."""
    count = Counter(found.values())
    return f"{count['passed']} of {count['passed'] + count['failed']}"


def write_counts(lines: list[str]) -> None:
    """Replace the table in the guide."""
    text = GUIDE.read_text()
    before, rest = text.split(BEGIN)
    table = ["| tests of | with vicinal | as they are |", "|---|---|---|", *lines]
    GUIDE.write_text(before + BEGIN + "\n" + "\n".join(table) + "\n" + END + rest.split(END)[1])


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--sources", type=Path, default=Path(sys.prefix) / "sources")
    options = asked.parse_args()
    lines, worse = [], []
    for suite in SUITES:
        with tempfile.TemporaryDirectory() as folder:
            tests = unpacked(suite, options.sources, Path(folder))
            ours, theirs = (run(suite, tests, replaced=replaced) for replaced in (True, False))
        lines.append(f"| {suite.name} | {counted(ours)} | {counted(theirs)} |")
        print(f"{suite.name}: {counted(ours)} tests pass with vicinal, {counted(theirs)} without", flush=True)
        lost = [name for name, outcome in ours.items() if outcome == "failed" and theirs.get(name) == "passed"]
        worse += [f"{suite.name}: {name}" for name in lost if name not in EXPECTED]
    write_counts(lines)
    if worse:
        sys.exit("tests that fail with vicinal only:\n" + "\n".join(worse))


if __name__ == "__main__":
    main()
