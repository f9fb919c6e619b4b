"""`vicinal choose`, and the reliability in the outputs of `vicinal embed --report`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run

import vicinal


def test_choose_lists_scores_and_writes_the_best_map(run: Run) -> None:
    np.save("data.npy", ROWS)
    outputs = ["-o", "best.csv", "--report", "scores.json", "--model", "best.vicinal", "--png", "best.png"]
    code, out, err = run(
        "choose", "data.npy", "--grid", "n_neighbors=4,20", "--grid", "min-dist=0.1", "--param", "n_epochs=20", *outputs
    )
    assert (code, err) == (0, "")
    table = json.loads(Path("scores.json").read_text())["table"]
    assert [row["n_neighbors"] for row in table] in ([4, 20], [20, 4])
    assert table[0]["score"] >= table[1]["score"]
    assert "n_neighbors" in out
    best = vicinal.load("best.vicinal")
    assert best.n_neighbors == table[0]["n_neighbors"]
    assert np.allclose(pl.read_csv("best.csv").select("x", "y").to_numpy(), best.embedding_)
    assert Path("best.png").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--grid", "n_neighbors"], "--grid n_neighbors must have the form NAME=A,B,C"),
        (["--grid", "perplexity=5,10"], "grid has the parameter 'perplexity', which UMAP does not have"),
        (["-o", "best.txt"], "the file name must end in"),
    ],
)
def test_wrong_arguments_are_one_line(run: Run, arguments: list[str], message: str) -> None:
    np.save("data.npy", ROWS)
    code, _, err = run("choose", "data.npy", *arguments)
    assert code != 0
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_report_adds_the_reliability_to_report_map_and_page(run: Run) -> None:
    np.save("data.npy", ROWS)
    outputs = ["-o", "map.csv", "--report", "report.json", "--html", "map.html"]
    code, out, err = run("embed", "data.npy", "--n-epochs", "20", *outputs)
    assert (code, err) == (0, "")
    report = json.loads(Path("report.json").read_text())
    frame = pl.read_csv("map.csv")
    assert set(frame.columns) == {"x", "y", "reliability", "trust"}
    assert report["reliability"]["mean"]["reliability"] == pytest.approx(frame["reliability"].mean())
    assert sum(report["reliability"]["labels"].values()) == len(ROWS)
    assert "trustworthy" in out
    assert '"reliability"' in Path("map.html").read_text()
    assert "reliability" in report["seconds"]
