"""`vicinal stream`: the map of a file read in batches, interruption, and resuming."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import vicinal
from vicinal import cli
from vicinal.files.batches import concatenate_column
from vicinal.files.readers import row_count

Run = Callable[..., tuple[int, str, str]]
WRITERS: dict[str, Callable[[pl.DataFrame, str], Any]] = {
    ".csv": lambda frame, path: frame.write_csv(path),
    ".tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    ".jsonl": lambda frame, path: frame.write_ndjson(path),
    ".parquet": lambda frame, path: frame.write_parquet(path),
    ".feather": lambda frame, path: frame.write_ipc(path),
    ".npy": lambda frame, path: np.save(path, frame.select(pl.col("^p.*$")).to_numpy()),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line in an empty directory and returns (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(" ".join(arguments).split())
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


@pytest.fixture
def frame(digits: Any, digit_labels: Any) -> pl.DataFrame:
    rows = pl.DataFrame(digits[:500], schema=[f"p{a}" for a in range(64)])
    return rows.with_columns(pl.Series("digit", digit_labels[:500]), pl.Series("name", [f"r{a}" for a in range(500)]))


@pytest.mark.parametrize("suffix", list(WRITERS))
def test_every_format_gives_the_same_map_as_fit(run: Run, frame: pl.DataFrame, digits: Any, suffix: str) -> None:
    WRITERS[suffix](frame, f"data{suffix}")
    assert row_count(Path(f"data{suffix}")) == 500
    beside = "" if suffix == ".npy" else "--label digit --id name"
    code, out, err = run(f"stream data{suffix} -o map.parquet --batch-rows 130 --seed 7 --n-neighbors 10", beside)
    assert (code, err) == (0, "")
    assert "500 rows of 64 columns" in out
    written = pl.read_parquet("map.parquet")
    plain = vicinal.ProgressiveUMAP(n_neighbors=10, random_state=7, batch_size=130).fit(digits[:500])
    assert np.array_equal(written.select("x", "y").to_numpy(), plain.embedding_)
    if beside:
        assert written["name"].to_list() == frame["name"].to_list()
        assert written["digit"].to_list() == frame["digit"].to_list()


def test_all_outputs_are_written_and_the_model_places_rows(run: Run, frame: pl.DataFrame) -> None:
    frame.write_csv("data.csv")
    outputs = "-o map.npy --png map.png --html map.html --model map.vicinal --report report.json"
    assert run(f"stream data.csv --label digit --id name --hover p1 --quiet {outputs}") == (0, "", "")
    report = json.loads(Path("report.json").read_text())
    assert (report["rows"], report["columns"], report["method"]) == (500, 64, "progressive")
    assert report["quality"]["trustworthiness"] > 0.95
    assert set(report["seconds"]) >= {"read", "polish", "quality"}
    assert '"name": "p1", "kind": "values"' in Path("map.html").read_text()
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    frame.head(9).write_csv("some.csv")
    assert run("transform map.vicinal some.csv -o some.npy --label digit --id name")[0] == 0
    assert np.array_equal(np.load("some.npy"), np.load("map.npy")[:9])


def test_invalid_value_in_a_later_batch_writes_nothing(run: Run, frame: pl.DataFrame) -> None:
    text = frame.write_csv().splitlines()
    text[401] = "," + text[401].split(",", 1)[1]
    Path("data.csv").write_text("\n".join(text))
    Path("map.csv").write_text("old")
    code, out, err = run("stream data.csv -o map.csv --batch-rows 100 --force --features p0,p1,p2")
    assert (code, out.count("\n")) == (2, 1)
    assert err.startswith("error: data.csv: row 400 has no value in column 'p0'; --exclude leaves columns out, ")
    assert Path("map.csv").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["data.csv", "map.csv"]


def interrupt_after(monkeypatch: pytest.MonkeyPatch, pieces: int, stage: str = "read") -> None:
    """Send Ctrl-C after this number of progress reports of a stage."""
    from vicinal.cli.fitting import ProgressBars

    report, seen = ProgressBars.__call__, []

    def interrupted(self: ProgressBars, name: str, *told: Any) -> bool:
        seen.append(name)
        if name == stage and seen.count(stage) == pieces:
            os.kill(os.getpid(), signal.SIGINT)
        return report(self, name, *told)

    monkeypatch.setattr(ProgressBars, "__call__", interrupted)


@pytest.mark.parametrize(("stage", "pieces", "rows"), [("read", 2, (200, 400)), ("polish", 2, (500, 501))])
def test_interrupted_run_resumes_to_the_same_map(
    run: Run, frame: pl.DataFrame, monkeypatch: pytest.MonkeyPatch, stage: str, pieces: int, rows: tuple[int, int]
) -> None:
    frame.write_parquet("data.parquet")
    monkeypatch.setattr("vicinal.pipeline.grow.SLICE", 200)  # several pieces per pass
    told = "stream data.parquet --batch-rows 100 --label digit --param new_epochs=200"
    with monkeypatch.context() as patched:
        interrupt_after(patched, pieces, stage)
        code, _, err = run(told, "-o part.parquet --save-state state.vicinal")
    assert (code, err) == (130, "interrupted\n")
    part = pl.read_parquet("part.parquet")
    assert rows[0] <= len(part) < rows[1]
    assert part["digit"].to_list() == frame["digit"].to_list()[: len(part)]
    assert np.isfinite(part.select("x", "y").to_numpy()).all()
    assert run("stream data.parquet -o rest.npy --label digit --batch-rows 100 --resume state.vicinal")[0] == 0
    assert run(told, "-o whole.npy")[0] == 0
    assert np.array_equal(np.load("rest.npy"), np.load("whole.npy"))


def test_resume_refuses_other_files_and_parameters(run: Run, frame: pl.DataFrame) -> None:
    frame.write_parquet("data.parquet")
    frame.head(50).write_parquet("short.parquet")
    frame.select("p1", "p2").write_parquet("narrow.parquet")
    np.save("data.npy", frame.select("p1", "p2").to_numpy())
    assert run("stream data.parquet -o map.npy --model m.vicinal --label digit")[0] == 0
    assert run("embed data.npy -o other.npy --model other.vicinal --method tsne --param n_iter=50")[0] == 0
    assert run("embed data.npy -o dens.npy --model dens.vicinal --method densmap --n-epochs 5")[0] == 0
    before = sorted(Path().iterdir())
    for arguments, word in (
        ("data.parquet --label digit --resume m.vicinal --n-neighbors 5", "n_neighbors cannot be changed"),
        ("short.parquet --label digit --resume m.vicinal", "has 50 rows, but the resumed run read 500"),
        ("narrow.parquet --resume m.vicinal", "narrow.parquet has no column 'p0'"),
        ("data.npy --resume m.vicinal", "has 2 features, but the resumed run read 64"),
        ("data.npy --resume other.vicinal", "contains a TSNE; only UMAP and ProgressiveUMAP go on"),
        ("data.npy --resume dens.vicinal", "this DensMAP has densMAP's radii, which a stream cannot have"),
    ):
        code, out, err = run("stream", arguments, "-o new.npy")
        assert code == 2
        assert "wrote" not in out
        assert word in err
        assert err.count("\n") == 1
        assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize("steps", ["", "--scale standard --pca 5"])
def test_a_umap_model_goes_on_as_a_stream(run: Run, frame: pl.DataFrame, steps: str) -> None:
    frame.head(300).write_csv("first.csv")
    frame.write_csv("all.csv")
    assert run(f"embed first.csv -o first.npy --label digit --id name --model m.vicinal {steps}")[0] == 0
    assert run("stream all.csv -o map.parquet --resume m.vicinal --batch-rows 100 --model grown.vicinal")[0] == 0
    written = pl.read_parquet("map.parquet")
    assert written["name"].to_list() == frame["name"].to_list()
    assert written["digit"].to_list() == frame["digit"].to_list()
    grown, fitted = vicinal.load("grown.vicinal"), vicinal.load("m.vicinal")
    assert (grown.n_rows_, grown.n_neighbors, grown.n_features_in_) == (500, 15, fitted.n_features_in_)
    np.testing.assert_array_equal(grown.rows_[:300], fitted.map_.data.rows)
    assert run("transform grown.vicinal all.csv -o again.npy")[0] == 0
    assert np.array_equal(np.load("again.npy"), written.select("x", "y").to_numpy())


def test_a_window_keeps_the_last_rows_and_their_columns(run: Run, frame: pl.DataFrame) -> None:
    frame.write_parquet("data.parquet")
    told = "stream data.parquet --label digit --id name --batch-rows 100 --window 250"
    assert run(told, "-o map.parquet --model m.vicinal")[0] == 0
    written = pl.read_parquet("map.parquet")
    assert written["name"].to_list() == frame["name"].to_list()[250:]
    assert written["digit"].to_list() == frame["digit"].to_list()[250:]
    model = vicinal.load("m.vicinal")
    assert (model.n_rows_, model.n_seen_, model.window) == (250, 500, 250)
    assert run(told, "-o again.npy --resume m.vicinal")[0] == 0
    assert len(np.load("again.npy")) == 250
    for arguments, word in (
        ("stream data.parquet --window 250", "--window require an output"),
        ("stream data.parquet --window 0 -o no.npy", "window"),
        ("embed data.parquet -o no.npy --method progressive --param window=9", "use `vicinal stream --window` instead"),
    ):
        code, _, err = run(arguments)
        assert code == 2
        assert word in err


def test_column_parts_are_concatenated() -> None:
    whole, gaps = np.array([1, 2]), np.array(["3", None], dtype=object)
    assert concatenate_column([whole, np.array([0.5])]).tolist() == [1.0, 2.0, 0.5]
    assert concatenate_column([whole, gaps]).tolist() == ["1", "2", "3", None]
