"""`vicinal demo`, `vicinal methods`, help and version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from cli.command_inputs import Run

import vicinal
from vicinal import cli


def test_help_and_version(run: Run) -> None:
    code, out, err = run("--version")
    assert (code, out, err) == (0, f"vicinal {vicinal.__version__}\n", "")
    for arguments in ([], ["--help"], ["embed", "--help"], ["demo", "--help"]):
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        assert "Usage: vicinal" in out
    assert "--n-neighbors" in run("embed", "--help")[1]


def test_methods_lists_methods_and_parameters(run: Run) -> None:
    code, out, err = run("methods")
    assert (code, err) == (0, "")
    assert "umap" in out
    code, out, err = run("methods", "umap")
    assert (code, err) == (0, "")
    assert "n_neighbors" in out
    assert "random_state" not in out


@pytest.mark.parametrize("dataset", ["iris", "wine"])
def test_demo_writes_map_picture_and_report(run: Run, dataset: str) -> None:
    code, out, err = run("demo", "--out", "deep/er", "--dataset", dataset)
    assert (code, err) == (0, "")
    assert "trustworthiness" in out
    assert sorted(path.name for path in Path("deep/er").iterdir()) == [
        "embedding.csv",
        "map.html",
        "map.png",
        "report.json",
    ]
    assert pl.read_csv("deep/er/embedding.csv").columns == ["x", "y", "class"]


# Packages that only some files and commands need, or that polars and others import if they are there.
SPARED = ("anywidget", "h5py", "fastexcel", "pandas", "pyarrow", "starlette", "uvicorn", "websockets")
EMBED = """
import sys

sys.modules.update(dict.fromkeys({spared}))
from vicinal import cli

outputs = "-o map.csv --html map.html --png map.png --report map.json --model map.vicinal"
print(cli.main(["embed", "data.csv", "--label", "kind", "--quiet", *outputs.split()]))
"""


def test_embed_needs_only_the_packages_that_are_asked_for(tmp_path: Path) -> None:
    """The command line starts if APP_PACKAGES are there; then they must be enough for a table and all outputs."""
    rows = "".join(f"{i % 7},{i % 11},{i},{'ab'[i % 2]}\n" for i in range(80))
    (tmp_path / "data.csv").write_text(f"a,b,c,kind\n{rows}")
    source = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", EMBED.format(spared=SPARED)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert (done.stdout, done.stderr) == ("0\n", "")
    assert {"map.csv", "map.html", "map.png", "map.json", "map.vicinal"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.nightly
def test_demo_in_a_separate_process(tmp_path: Path) -> None:
    source = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "vicinal", "demo", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["rows"] == 1797
    assert report["quality"]["trustworthiness"] > 0.98
    assert report["quality"]["knn_accuracy"] > 0.96
    frame = pl.read_csv(tmp_path / "out" / "embedding.csv")
    assert frame.shape == (1797, 3)
    assert sorted(frame["class"].unique().to_list()) == list(range(10))
