"""`vicinal embed`: input and output formats, options, progress bars and Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run, Stub, csv_of, hidden_files, write
from numpy.typing import NDArray

import vicinal


@pytest.mark.parametrize("source", ["data.npy", "data.csv", "data.tsv", "data.parquet"])
@pytest.mark.parametrize("output", ["map.npy", "map.csv", "map.parquet"])
def test_embed_reads_and_writes_every_format(run: Run, source: str, output: str) -> None:
    names = ["a", "b", "c", "d"]
    if source.endswith(".npy"):
        np.save(source, ROWS)
    elif source.endswith(".parquet"):
        pl.DataFrame(ROWS, schema=names).write_parquet(source)
    else:
        pl.DataFrame(ROWS, schema=names).write_csv(source, separator="\t" if source.endswith("tsv") else ",")
    code, out, err = run("embed", source, "-o", output, "--n-epochs", "20")
    assert (code, err) == (0, "")
    assert "60 rows of 4 columns" in out
    if output.endswith(".npy"):
        found = np.load(output)
    else:
        frame = pl.read_csv(output) if output.endswith(".csv") else pl.read_parquet(output)
        assert frame.columns == ["x", "y"]
        found = frame.to_numpy()
    assert found.shape == (60, 2)
    assert np.isfinite(found).all()
    assert hidden_files() == []


def test_page_shows_pictures_and_neighbors(run: Run) -> None:
    np.save("data.npy", ROWS)
    outputs = ["-o", "map.csv", "--html", "map.html", "--images", "2x2", "--neighbors", "3", "--n-epochs", "20"]
    code, _, err = run("embed", "data.npy", *outputs)
    assert (code, err) == (0, "")
    meta = json.loads(re.search(r'id="vicinal-meta">(.*?)</script>', Path("map.html").read_text())[1])  # type: ignore[index]
    assert (meta["images"]["height"], meta["images"]["width"]) == (2, 2)
    assert meta["neighbors"] == {"k": 3, "bytes": 1}
    for size in ("2x3", "4", "axb", "2x2x"):
        code, _, err = run("embed", "data.npy", "-o", "other.csv", "--html", "other.html", "--images", size)
        assert code == 2
        assert f"--images {size}: must be HEIGHTxWIDTH, with a product of 4" in err
        assert not Path("other.html").exists()
    code, _, err = run("embed", "data.npy", "-o", "other.csv", "--neighbors", "3")
    assert (code, "add --html" in err) == (2, True)


def test_page_can_lay_out_again(run: Run) -> None:
    np.save("data.npy", ROWS)
    outputs = ["-o", "map.csv", "--html", "map.html", "--interactive", "--n-neighbors", "6", "--n-epochs", "20"]
    code, _, err = run("embed", "data.npy", *outputs)
    assert code == 0
    assert re.fullmatch(r"the page can lay out again: 5 neighbors of 60 rows .* the map \d\.\d MB\n", err)
    meta = json.loads(re.search(r'id="vicinal-meta">(.*?)</script>', Path("map.html").read_text())[1])  # type: ignore[index]
    assert meta["layout"]["k"] == 6
    code, _, err = run("embed", "data.npy", "-o", "other.csv", "--interactive")
    assert (code, "add --html" in err) == (2, True)


def test_pixels_that_are_always_empty_belong_to_the_pictures(run: Run) -> None:
    columns = {"corner": np.zeros(len(ROWS)), **{f"p{a}": ROWS[:, a] for a in range(3)}, "last": np.ones(len(ROWS))}
    pl.DataFrame(columns | {"more": ROWS[:, 3]}).write_csv("data.csv")
    code, out, err = run(
        "embed", "data.csv", "-o", "map.csv", "--html", "map.html", "--images", "2x3", "--n-epochs", "20"
    )
    assert (code, err) == (0, "")
    assert "60 rows of 6 columns" in out
    code, out, _ = run("embed", "data.csv", "-o", "other.csv", "--n-epochs", "20")
    assert "60 rows of 4 columns" in out


def test_embed_writes_map_picture_and_report(run: Run) -> None:
    labels = np.array(["cat", "dog"])[np.arange(60) % 2]
    pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(
        pl.Series("kind", labels), pl.Series("note", ["x"] * 60)
    ).write_csv("data.csv")
    options = "--features a,b,d --label kind --png map.png --report map.json --n-epochs 20 --seed 7 --jobs 1"
    code, out, err = run("embed", "data.csv", "-o", "map.csv", *options.split())
    assert (code, err) == (0, "")
    assert "trustworthiness" in out
    assert out.startswith("3 features: a, b, d; label: kind; 2 shown: c, note (not chosen)\n")
    frame = pl.read_csv("map.csv")
    assert frame.columns == ["c", "note", "x", "y", "kind", "reliability", "trust"]
    assert frame["kind"].to_list() == labels.tolist()
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads(Path("map.json").read_text())
    assert (report["rows"], report["columns"]) == (60, 3)
    assert report["parameters"]["random_state"] == 7
    assert report["quality"]["trustworthiness"] > 0.5
    assert 0.0 <= report["quality"]["knn_accuracy"] <= 1.0
    assert report["seconds"].keys() >= {"layout", "quality"}


def test_continuous_labels_are_not_classes(run: Run) -> None:
    write("data.csv", csv_of(ROWS))
    code, _, err = run("embed", "data.csv", "-o", "m.csv", "--label", "d", "--png", "m.png", "--report", "m.json")
    assert (code, err) == (0, "")
    assert json.loads(Path("m.json").read_text())["quality"]["knn_accuracy"] is None


def test_quiet_prints_nothing_and_force_replaces_files(run: Run) -> None:
    np.save("data.npy", ROWS)
    write("real.npy", "old")
    Path("map.npy").symlink_to("real.npy")
    assert run("embed", "data.npy", "-o", "map.npy", "--quiet", "--force", "--n-epochs", "20") == (0, "", "")
    assert Path("map.npy").is_symlink()
    assert np.load("real.npy").shape == (60, 2)


@pytest.mark.parametrize(("width", "names"), [(1, ["x"]), (3, ["x", "y", "z"]), (4, ["d1", "d2", "d3", "d4"])])
def test_coordinate_columns_are_named_by_dimension(run: Run, width: int, names: list[str]) -> None:
    np.save("data.npy", ROWS)
    run("embed", "data.npy", "-o", "map.csv", "--n-components", str(width), "--n-epochs", "20")
    assert pl.read_csv("map.csv").columns == names


def test_map_depends_on_seed_but_not_on_jobs(run: Run) -> None:
    np.save("data.npy", ROWS)
    for name, options in {"a": "--jobs 1", "b": "--jobs 2", "c": "--seed 1"}.items():
        assert run("embed", "data.npy", "-o", f"{name}.npy", "--quiet", *options.split())[0] == 0
    a, b, c = (np.load(f"{name}.npy") for name in "abc")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


def test_embed_accepts_any_parameter_and_writes_a_page(run: Run) -> None:
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(
        pl.Series("name", [f"row {a}" for a in range(60)]), pl.Series("note", ["x", None] * 30)
    )
    frame.write_ndjson("data.jsonl")
    options = "--id name --hover note,d --param spread=2 --param init=random --param update_negatives=true"
    code, _, err = run(
        "embed", "data.jsonl", "-o", "map.csv", "--html", "map.html", "--report", "r.json", *options.split()
    )
    assert (code, err) == (0, "")
    parameters = json.loads(Path("r.json").read_text())["parameters"]
    assert parameters.items() >= {"spread": 2, "init": "random", "update_negatives": True}.items()
    written = pl.read_csv("map.csv")
    assert written.columns == ["name", "note", "d", "x", "y", "reliability", "trust"]
    page = Path("map.html").read_text()
    meta = json.loads(re.search(r'id="vicinal-meta">(.*?)</script>', page)[1])  # type: ignore[index]
    # the features travel too
    assert [one["name"] for one in meta["columns"]] == ["reliability", "note", "d", "trust", "a", "b", "c"]
    assert 'id="vicinal-ids"' in page


@pytest.mark.parametrize("method", ["densmap", "tsne", "largevis", "progressive"])
def test_every_method_makes_a_map(run: Run, method: str) -> None:
    np.save("data.npy", ROWS)
    parameter = "perplexity=5" if method in ("tsne", "largevis") else "n_neighbors=5"
    options = ["--method", method, "--param", parameter, "--report", "r.json"]
    code, _, err = run("embed", "data.npy", "-o", "map.npy", *options)
    assert (code, err) == (0, "")
    assert np.isfinite(np.load("map.npy")).all()
    report = json.loads(Path("r.json").read_text())
    assert report["method"] == method
    assert parameter.split("=")[0] in report["parameters"]


@pytest.mark.filterwarnings("default")
def test_warnings_are_printed_without_source_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(self: Stub, X: NDArray[np.float32]) -> None:
        import warnings

        warnings.warn("n_neighbors is\nreduced", UserWarning, stacklevel=1)
        self.embedding_ = X[:, :2]

    monkeypatch.setattr(vicinal, "UMAP", Stub)
    monkeypatch.setattr(Stub, "fit", fit)
    np.save("data.npy", ROWS)
    assert run("embed", "data.npy", "-o", "map.npy")[2] == "warning: n_neighbors is reduced\n"
    assert run("embed", "data.npy", "-o", "map.npy", "--force", "--quiet")[2] == ""


def test_progress_bars_show_every_stage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy")
    assert code == 0
    assert "finding neighbors" in err
    assert "optimizing the layout" in err
    assert "100%" in err


def test_ctrl_c_during_the_layout_writes_the_current_map(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from vicinal.cli.fitting import ProgressBars

    report = ProgressBars.__call__

    def interrupted(self: ProgressBars, stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        if stage == "layout" and epoch == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return report(self, stage, epoch, n_epochs, embedding)

    monkeypatch.setattr(ProgressBars, "__call__", interrupted)
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy", "--n-epochs", "10000000")
    assert (code, err) == (130, "interrupted\n")
    assert np.isfinite(np.load("map.npy")).all()
