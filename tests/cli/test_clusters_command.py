"""`vicinal clusters` of saved models and of map files."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import Run
from sklearn.datasets import load_digits

import vicinal

N = 300


@pytest.fixture
def files(run: Run) -> Run:
    """The files of a fitted map of digits: data.npy, map.csv, m.vicinal and names.csv."""
    found = load_digits()
    np.save("data.npy", found.data[:N])
    kinds = [f"digit {one}" for one in found.target[:N]]
    pl.DataFrame({"kind": kinds, "height": np.arange(N)}).write_csv("names.csv")
    code, _, err = run("embed", "data.npy", "-o", "map.csv", "--model", "m.vicinal", "--quiet")
    assert (code, err) == (0, "")
    return run


def test_clusters_of_a_model_are_those_of_the_library(files: Run) -> None:
    outputs = ["-o", "c.csv", "--report", "c.json", "--save", "c.vicinal"]
    code, out, err = files("clusters", "m.vicinal", "--data", "names.csv", *outputs)
    assert (code, err) == (0, "")
    assert "layer 0" in out
    found = vicinal.clusters(vicinal.load("m.vicinal"), columns=pl.read_csv("names.csv"))
    table = pl.read_csv("c.csv")
    assert table["cluster"].to_list() == found.labels.tolist()
    assert [name or "" for name in table["name"].to_list()] == [found.names[a] if a >= 0 else "" for a in found.labels]
    assert [name for name in table.columns if name.startswith("layer")] == [f"layer {a}" for a in range(len(found))]
    document = json.loads(Path("c.json").read_text())
    assert document["rows"] == N
    assert [one["name"] for one in document["layers"][found.main]["clusters"]] == list(found.names)
    assert {one["verdict"] for one in document["layers"][0]["gaps"]} <= {"in the data", "unclear", "made by the map"}
    assert vicinal.load("c.vicinal").predict(np.load("data.npy")).tolist() == found.labels.tolist()


def test_clusters_of_a_map_file_use_its_columns(files: Run) -> None:
    table = pl.read_csv("map.csv").with_columns(pl.read_csv("names.csv")["kind"])
    table.write_csv("with.csv")
    code, _, err = files("clusters", "with.csv", "-o", "c.parquet", "--layer", "0")
    assert (code, err) == (0, "")
    names = set(pl.read_parquet("c.parquet")["name"].to_list())
    assert all("digit" in name for name in names if name)
    assert any(names)


def test_columns_of_numbers_are_numbers_also_with_decimal_commas(files: Run) -> None:
    # few different numbers, which as texts would be categories
    sizes = {"size": [f"{one % 40},5" for one in range(N)], "weight": [f"{one % 30},25" for one in range(N)]}
    pl.DataFrame(sizes).write_csv("sizes.csv", separator=";")
    code, _, err = files("clusters", "m.vicinal", "--data", "sizes.csv", "--report", "c.json")
    assert (code, err) == (0, "")
    layers = json.loads(Path("c.json").read_text())["layers"]
    assert {one["kind"] for layer in layers for cluster in layer["clusters"] for one in cluster["traits"]} == {"number"}


def test_a_cluster_without_a_name_is_shown_with_the_area_around_it(files: Run) -> None:
    areas = vicinal.clusters(vicinal.load("m.vicinal")).layers[0].labels
    pl.DataFrame({"area": [f"area {'abcdefgh'[one] * 2}" for one in areas]}).write_csv("areas.csv")
    code, out, err = files("clusters", "m.vicinal", "--data", "areas.csv", "--layer", "2")
    assert (code, err) == (0, "")
    shown = re.findall(r"│ (.*?) +│ +[\d,]+ │", out)
    nameless = [one for one in shown if one.startswith("cluster")]
    assert nameless
    assert all(re.fullmatch(r"cluster \d+ in area (\w)\1", one) for one in nameless)


def test_coordinates_of_the_map_name_nothing(files: Run) -> None:
    for file in ("m.vicinal", "map.csv"):
        code, out, err = files("clusters", file, "--data", "map.csv", "--layer", "0")
        assert (code, err) == (0, "")
        assert "cluster 0" in out
        assert "high" not in out


def test_bad_input_is_named_and_writes_nothing(files: Run) -> None:
    pl.DataFrame({"kind": ["a", "b"]}).write_csv("short.csv")
    for arguments, message in (
        (
            ["m.vicinal", "--data", "short.csv", "-o", "c.csv"],
            "--data short.csv has 2 rows, but the map of m.vicinal has 300",
        ),
        (["m.vicinal", "-o", "c.csv", "--layer", "30"], "layer must be a whole number below"),
        (["m.vicinal", "-o", "c.npy"], "must end in .csv or .parquet"),
        (["m.vicinal", "--data", "data.npy", "-o", "c.csv"], "names need a table"),
    ):
        code, out, err = files("clusters", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert not Path("c.csv").exists()
