"""Texts in CSV outputs are no formulas of a spreadsheet; other outputs keep them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import vicinal
from vicinal import cli
from vicinal.cli.writing import STDOUT, write_map
from vicinal.files.data_table import Column, Role
from vicinal.files.readers import ReadError, read_table
from vicinal.files.spreadsheets import inert, inert_frame
from vicinal.viewer.packing import row_columns
from vicinal.viewer.server import LiveServer
from vicinal.viewer.session import Session

FORMULAS = ["=1+1", "+A1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1"]
PLAIN = ["a=b", "-1.5", "+3", "-1e3", " =1", "", "O'Neill", "-inf"]
PLACES = np.zeros((len(FORMULAS), 2), np.float32)


def test_formulas_start_with_an_apostrophe_and_nothing_else_changes() -> None:
    assert [inert(text) for text in FORMULAS] == ["'" + text for text in FORMULAS]
    assert [inert(text) for text in PLAIN] == PLAIN
    assert [inert(value) for value in (-1.5, None, True)] == [-1.5, None, True]
    frame = inert_frame(pl.DataFrame({"*": ["=1", "2"], "^.*$": ["a", "b"], "=n": [1, 2]}))
    assert frame.to_dict(as_series=False) == {"*": ["'=1", "2"], "^.*$": ["a", "b"], "'=n": [1, 2]}


def test_tables_of_maps_have_no_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = [
        Column("=name", Role.DISPLAY, np.array(FORMULAS)),
        Column("number", Role.VALUE, -np.arange(len(FORMULAS), dtype=float)),
        Column("label", Role.LABEL, np.array(FORMULAS, dtype=object)),
    ]
    write_map(tmp_path / "map.csv", PLACES, columns)
    write_map(STDOUT, PLACES, columns)
    assert capsys.readouterr().out == (tmp_path / "map.csv").read_bytes().decode()
    with (tmp_path / "map.csv").open(newline="") as file:
        names, *rows = csv.reader(file)
    assert names == ["'=name", "number", "x", "y", "label"]
    assert [row[0] for row in rows] == [row[4] for row in rows] == ["'" + text for text in FORMULAS]
    assert rows[1][1] == "-1.0"
    write_map(tmp_path / "map.parquet", PLACES, columns)
    assert pl.read_parquet(tmp_path / "map.parquet")["=name"].to_list() == FORMULAS


def test_tables_of_clusters_have_no_formulas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    places = np.concatenate([rng.normal(x, 0.3, (60, 2)) for x in (0, 9, 18)])
    kinds = np.repeat(["=SUM(A1)", "@SUM(A1)", "plain"], 60)
    pl.DataFrame({"x": places[:, 0], "y": places[:, 1], "kind": kinds}).write_csv("map.csv")
    assert cli.main(["clusters", "map.csv", "-o", "c.csv", "--quiet"]) == 0
    names = set(pl.read_csv("c.csv")["name"])
    assert {"'=SUM(A1)", "'@SUM(A1)", "plain"} <= names


def test_the_map_of_a_live_page_has_no_formulas(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = vicinal.UMAP(n_neighbors=3, n_epochs=1, random_state=0).fit(np.eye(len(FORMULAS), dtype=np.float32))
    server = LiveServer(Session.of(model, columns=row_columns(ids=FORMULAS)))
    text = server._map_text().decode()
    assert text.startswith("id,x,y\n'=1+1,")
    assert "\n'@SUM(A1)," in text


@pytest.mark.parametrize("start", ["x" * 140_000, '"' + "x" * 140_000], ids=["long name", "open quote"])
def test_a_field_that_no_table_has_is_named_in_one_short_sentence(tmp_path: Path, start: str) -> None:
    (tmp_path / "data.csv").write_text(f"{start},b\n" + "1,2\n" * 40_000)
    with pytest.raises(ReadError, match=r"data\.csv: ") as raised:
        read_table(tmp_path / "data.csv")
    assert len(str(raised.value)) < 1000
    assert "\n" not in str(raised.value)


def test_a_cell_of_any_length_makes_a_short_message(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3," + "y" * 200_000 + "\n")
    with pytest.raises(ReadError, match="row 1 has 'yyy") as raised:
        read_table(tmp_path / "data.csv")
    assert len(str(raised.value)) < 1000
