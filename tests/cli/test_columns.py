"""Columns on the command line: names kept with a model, labels and values, vectors, standard input and output."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run, csv_of, write

from vicinal import cli

NAMES = ["a", "b", "c", "d"]
FAST = ["--n-epochs", "30", "--n-neighbors", "8", "--quiet"]


def frame() -> pl.DataFrame:
    return pl.DataFrame(ROWS, schema=NAMES).with_columns(
        pl.Series("kind", ["x", "y"] * 30), pl.Series("name", [f"r{a}" for a in range(60)]), pl.Series("age", range(60))
    )


def meta_of(page: str) -> Any:
    return json.loads(re.search(r'id="vicinal-meta">(.*?)</script>', Path(page).read_text())[1])  # type: ignore[index]


def test_transform_finds_columns_by_name(run: Run) -> None:
    frame().write_csv("data.csv")
    options = ["--features", "a,b,c,d", "--label", "kind", "--id", "name", "--value", "age", "--model", "m.vicinal"]
    assert run("embed", "data.csv", "-o", "map.csv", *options, *FAST)[0] == 0
    frame().select(*reversed(frame().columns)).with_columns(more=pl.lit(1)).write_csv("turned.csv")
    code, out, err = run("transform", "m.vicinal", "turned.csv", "-o", "again.csv")
    assert (code, err) == (0, "")
    assert out.startswith("4 features: a, b, c, d; label: kind; id: name; values: age; shown: more (not chosen)\n")
    before, after = pl.read_csv("map.csv"), pl.read_csv("again.csv")
    assert after.select("x", "y").to_numpy() == pytest.approx(before.select("x", "y").to_numpy())
    # ids, values and labels are those of the fit
    assert after["name"].to_list() == before["name"].to_list()
    assert after["kind"].to_list() == before["kind"].to_list()
    assert after["age"].to_list() == list(range(60))
    frame().drop("c").write_csv("short.csv")
    code, _, err = run("transform", "m.vicinal", "short.csv", "-o", "none.csv")
    assert (code, err) == (2, "error: short.csv has no column 'c'; the model was fitted to 'a', 'b', 'c', 'd'\n")
    assert not Path("none.csv").exists()


def test_model_of_vectors_reads_vectors(run: Run) -> None:
    pl.DataFrame({"id": range(60), "embedding": ROWS.tolist()}).write_ndjson("data.jsonl")
    assert run("embed", "data.jsonl", "-o", "map.npy", "--id", "id", "--model", "m.vicinal", *FAST)[0] == 0
    assert run("transform", "m.vicinal", "data.jsonl", "-o", "again.csv")[0] == 0
    again = pl.read_csv("again.csv")
    assert again.columns == ["id", "x", "y"]
    assert again.select("x", "y").to_numpy() == pytest.approx(np.load("map.npy"))
    np.save("rows.npy", ROWS)
    assert run("transform", "m.vicinal", "rows.npy", "-o", "third.npy")[0] == 0
    assert np.load("third.npy") == pytest.approx(np.load("map.npy"))


def test_labels_and_values_travel_with_the_page(run: Run) -> None:
    frame().write_csv("data.csv")
    options = ["--features", "a,b", "--label", "kind", "--value", "age", "--hover", "name,c", "--html", "m.html"]
    assert run("embed", "data.csv", "-o", "m.csv", *options, *FAST)[0] == 0
    meta = meta_of("m.html")
    kinds = {one["name"]: one["kind"] for one in meta["columns"]}
    assert kinds == {"kind": "classes", "name": "texts"} | dict.fromkeys(["age", "a", "b", "c", "d"], "values")
    assert meta["color"] == "kind"
    assert pl.read_csv("m.csv").columns == ["age", "name", "c", "d", "x", "y", "kind"]


def test_columns_that_are_shown_or_color_the_map_stay_features(run: Run) -> None:
    frame().drop("age").write_csv("data.csv")
    few = ["--n-epochs", "20"]
    assert run("embed", "data.csv", "-o", "plain.npy", *few)[0] == 0
    shown = ["--hover", "a,name", "--value", "b,c"]
    code, out, _ = run("embed", "data.csv", "-o", "shown.npy", *shown, *few)
    assert (code, out.startswith("4 features: a, b, c, d; 2 values: b, c; 3 shown: ")) == (0, True), out
    assert np.array_equal(np.load("plain.npy"), np.load("shown.npy"))


def test_page_of_an_existing_map(run: Run) -> None:
    frame().rename({"a": "x", "b": "y"}).write_csv("map.csv")
    code, out, _ = run("page", "map.csv", "-o", "page.html", "--label", "kind", "--id", "name")
    line = "2 coordinates: x, y; label: kind; id: name; 3 shown: c, d, age (not chosen)\n"
    assert (code, out) == (0, line + "wrote page.html: 60 points; open it in a browser\n")
    meta = meta_of("page.html")
    assert [one["name"] for one in meta["columns"]] == ["kind", "c", "d", "age"]
    assert meta["title"] == "map"
    np.save("space.npy", ROWS[:, :3])
    assert run("page", "space.npy", "-o", "space.html", "--title", "In space")[0] == 0
    assert (meta_of("space.html")["title"], len(meta_of("space.html")["maps"][0]["box"])) == ("In space", 6)
    frame().write_csv("other.csv")
    code, _, err = run("page", "other.csv", "-o", "none.html")
    assert code == 2
    assert "has no columns x and y; name them with --coordinates" in err
    assert run("page", "other.csv", "-o", "chosen.html", "--coordinates", "c,d")[0] == 0
    assert meta_of("chosen.html")["maps"][0]["box"] == pytest.approx([*ROWS[:, 2:].min(0), *ROWS[:, 2:].max(0)])


def test_page_of_maps_side_by_side(run: Run) -> None:
    one = frame().rename({"a": "x", "b": "y"}).drop("c", "d")
    one.write_parquet("one.parquet")
    one.with_columns(x=pl.col("y"), y=pl.col("x")).write_csv("two.csv")
    code, out, _ = run("compare", "one.parquet", "two.csv", "-o", "both.html", "--label", "kind", "--id", "name")
    assert code == 0
    assert [f"{name}: 2 coordinates: x, y;" in out for name in ("one.parquet", "two.csv")] == [True, True]
    meta = meta_of("both.html")
    assert [map["name"] for map in meta["maps"]] == ["one", "two"]
    assert meta["maps"][0]["box"] == pytest.approx(meta["maps"][1]["box"], abs=1e-4)
    one.reverse().write_csv("turned.csv")
    code, _, err = run("compare", "one.parquet", "turned.csv", "-o", "none.html", "--id", "name")
    assert code == 2
    assert "the ids must be those of one.parquet in the same order" in err
    assert "at least two" in run("compare", "one.parquet", "-o", "none.html")[2]


def test_standard_input_and_output(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(csv_of(ROWS).encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    code, out, err = run("embed", "-", "-o", "-", "--n-epochs", "20")
    assert (code, err) == (0, "4 features: a, b, c, d\n")
    assert pl.read_csv(io.StringIO(out)).shape == (60, 2)
    write("data.csv", csv_of(ROWS))
    run("embed", "data.csv", "-o", "map.npy", "--n-epochs", "20")
    assert pl.read_csv(io.StringIO(out)).to_numpy() == pytest.approx(np.load("map.npy"), rel=1e-5)


def test_compressed_files_are_read(run: Run) -> None:
    Path("data.csv.gz").write_bytes(gzip.compress(csv_of(ROWS).encode()))
    for command in (
        ["embed", "data.csv.gz", "-o", "a.npy", *FAST],
        ["stream", "data.csv.gz", "-o", "b.npy", "--quiet"],
    ):
        assert run(*command) == (0, "", "")


def test_more_neighbors_than_rows_is_said(run: Run) -> None:
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy", "--n-neighbors", "100")
    assert code == 0
    assert err == "warning: n_neighbors is 100, but there are 60 rows: each row has all others as neighbors\n"


def test_unwritable_output_is_named(run: Run) -> None:
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "/proc/map.npy", *FAST)
    assert (code, err) == (2, "error: /proc/map.npy: No such file or directory\n")


def test_progress_bars_fit_80_columns(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy")
    assert code == 0
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", err).replace("\r", "\n").splitlines()
    shown = [line for line in lines if "optimizing the layout" in line]
    assert shown
    assert max(len(line.rstrip()) for line in lines) <= 80
    assert all("…" not in line and "left" in line for line in shown)


def test_every_parameter_is_explained(run: Run) -> None:
    from vicinal.cli.methods import RESERVED, Method, explanations, signature

    assert "Size of the neighborhoods" in run("methods", "umap")[1]
    silent = {"low_memory", "angular_rp_forest", "transform_queue_size"}
    for method in (Method.UMAP, Method.DENSMAP, Method.TSNE, Method.LARGEVIS, Method.PROGRESSIVE):
        explained = explanations(method)
        assert not [name for name in signature(method) if name not in {*RESERVED, *silent} and not explained.get(name)]


def test_ctrl_c_of_serve_exits_with_0(tmp_path: Path) -> None:
    np.save(tmp_path / "data.npy", ROWS)
    source = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "vicinal", "serve", str(tmp_path / "data.npy"), "--no-browser"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert served.stdout is not None
    address = served.stdout.readline().removeprefix("open ").strip()
    with urllib.request.urlopen(address) as answer:  # a server that answers requests handles signals, too
        assert answer.status == 200
    served.send_signal(signal.SIGINT)
    _, err = served.communicate()
    assert (served.returncode, err) == (0, "")


def test_uses_of_columns_are_said_everywhere(run: Run) -> None:
    table = frame().with_columns(pl.Series("d", ROWS[:, 3] * 1000.0), pl.lit("x").alias("same"))
    table.write_csv("data.csv")
    code, out, err = run("describe", "data.csv", "--exclude", "a")
    assert (code, err) == (0, "")
    rows = [re.split(r"\s{2,}", line.strip("│ ").replace("│", "  ")) for line in out.splitlines() if "│" in line]
    assert [row[:2] for row in rows] == [
        ["b", "feature"], ["c", "feature"], ["d", "feature"], ["a", "shown"], ["kind", "shown"], ["name", "shown"],
        ["age", "shown"], ["same", "ignored"],
    ]  # fmt: skip
    line = (
        "4 features: a, b, c, d; label: kind; values: age; shown: name (text, 60 different); ignored: same (constant)"
    )
    outputs = ["-o", "m.csv", "--html", "m.html", "--report", "m.json"]
    code, out, err = run("embed", "data.csv", "--label", "kind", "--value", "age", "--n-epochs", "20", *outputs)
    assert (code, out.splitlines()[0]) == (0, line)
    assert "'d' has 100% of the variance" in err
    assert "--scale standard" in err
    report = json.loads(Path("m.json").read_text())
    assert report["roles"] == {
        "feature": list("abcd"), "label": ["kind"], "value": ["age"], "display": ["name"], "ignored": ["same"],
    }  # fmt: skip
    assert report["reasons"]["same"] == "constant"
    assert meta_of("m.html")["about"] == line
    assert line in Path("m.html").read_text()
    write("open.csv", 'a,b\n1,"1,234"\n2,"2,345"\n')
    code, out, err = run("describe", "open.csv")
    assert (code, err.count("\n")) == (2, 1)
    assert "feature" in out
    assert "say --decimal" in err


def test_classes_of_a_model_are_those_of_its_fit(run: Run) -> None:
    frame().write_csv("data.csv")
    prepared = ["--features", "a,b,kind", "--categories", "one-hot", "--scale", "standard", "--model", "m.vicinal"]
    assert run("embed", "data.csv", "-o", "map.npy", *prepared, *FAST)[0] == 0
    frame().head(4).with_columns(pl.Series("kind", ["y", "z", "x", "z"])).write_csv("new.csv")
    code, out, _ = run("transform", "m.vicinal", "new.csv", "-o", "new.npy")
    assert code == 0
    assert "kind (3 classes as one-hot, unknown to the model: 'z' (2))" in out
    assert np.array_equal(np.load("map.npy")[2], np.load("new.npy")[2])
    frame().with_columns(a=pl.lit("high")).write_csv("text.csv")
    code, _, err = run("transform", "m.vicinal", "text.csv", "-o", "none.npy")
    assert (code, "'a' is not numeric (text: 'high' (60)); the model was fitted to numbers\n" in err) == (2, True)
    frame().with_columns(a=pl.lit("2021-02-03")).write_csv("dates.csv")
    code, _, err = run("transform", "m.vicinal", "dates.csv", "-o", "none.npy")
    assert (code, "'a' is not numeric (dates); the model was fitted to numbers\n" in err) == (2, True)
    frame().with_columns(a=pl.when(pl.int_range(60) > 2).then(pl.col("a"))).write_csv("gaps.csv")
    code, _, err = run("transform", "m.vicinal", "gaps.csv", "-o", "none.npy")
    assert (code, "(3 rows miss values); only a model fitted with --impute" in err) == (2, True)
    frame().with_columns(kind=pl.col("a")).write_csv("numbers.csv")
    code, _, err = run("transform", "m.vicinal", "numbers.csv", "-o", "none.npy")
    assert (code, "column 'kind' has numbers, but the model was fitted to classes" in err) == (2, True)
