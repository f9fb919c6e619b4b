"""`vicinal transform` with pictures and pages, and `vicinal update`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run, csv_of, hidden_files, write

import vicinal


@pytest.fixture
def model(run: Run) -> Path:
    """Return a saved model of 60 rows with the features a to d, beside which `new.csv` has 6 rows and other columns."""
    write("data.csv", csv_of(ROWS))
    assert run("embed", "data.csv", "-o", "map.npy", "--model", "m.vicinal", "--n-neighbors", "8", "--quiet")[0] == 0
    new = pl.DataFrame((ROWS[:6] + 0.05).astype(float), schema=list("abcd"))
    kinds = pl.Series("kind", list("uvuvuv"))
    dates = pl.Series("note", [f"note {row}" for row in range(6)])
    new.select("d", "b", "a", "c").with_columns(kinds, dates).write_csv("new.csv")
    return Path("m.vicinal")


def columns_of_page(path: str) -> dict[str, Any]:
    """Return the columns that a page names, by their names."""
    text = Path(path).read_text()
    found = re.findall(r'\{"name": "([^"]+)", "kind": "([^"]+)"', text)
    return dict(found)


def test_transform_shows_old_and_new_rows_apart(run: Run, model: Path) -> None:
    told = ["-o", "placed.csv", "--html", "page.html", "--png", "map.png", "--label", "kind"]
    code, out, err = run("transform", str(model), "new.csv", *told)
    assert (code, err) == (0, "")
    assert out.endswith("wrote placed.csv, map.png, page.html: placed 6 rows on a map of 60\n")
    placed = pl.read_csv("placed.csv")
    assert {"x", "y", "kind"} <= set(placed.columns)
    assert len(placed) == 6
    shown = columns_of_page("page.html")
    assert shown["rows"] == "classes"
    assert "kind" in shown
    classes = re.search(r'\{"name": "rows", "kind": "classes"[^}]*"new"', Path("page.html").read_text())
    assert classes is not None
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("method", ["umap", "densmap", "progressive"])
def test_update_adds_the_rows_to_the_model(run: Run, model: Path, method: str) -> None:
    fit = f"embed data.csv -o old.npy --model old.vicinal --n-neighbors 8 --quiet --method {method}"
    assert run(*fit.split())[0] == 0
    told = "update old.vicinal new.csv -o placed.csv --model new.vicinal --html page.html --png map.png --label kind"
    code, out, err = run(*told.split())
    assert (code, err) == (0, "")
    assert out.endswith("wrote placed.csv, map.png, page.html, new.vicinal: added 6 rows to a map of 60\n")
    updated = vicinal.load("new.vicinal")
    assert updated.embedding_.shape == (66, 2)
    placed = pl.read_csv("placed.csv")
    np.testing.assert_allclose(placed.select("x", "y").to_numpy(), updated.embedding_[60:], rtol=1e-6)
    assert placed["kind"].to_list() == list("uvuvuv")
    # What the library does, with the columns by name.
    plain = vicinal.load("old.vicinal")
    rows = pl.read_csv("new.csv").select("a", "b", "c", "d").to_numpy().astype(np.float32)
    plain = plain.update(rows) if method != "progressive" else plain.partial_fit(rows).run()
    np.testing.assert_array_equal(updated.embedding_, plain.embedding_)
    assert columns_of_page("page.html")["rows"] == "classes"
    # The updated model reads files in the same way, and can be updated again, in place.
    assert run("transform", "new.vicinal", "data.csv", "-o", "again.npy", "--quiet") == (0, "", "")
    np.testing.assert_array_equal(np.load("again.npy"), updated.embedding_[:60])
    again = ("update", "new.vicinal", "new.csv", "--model", "new.vicinal", "--force")
    code, out, err = run(*again)
    assert code == 0
    assert len(vicinal.load("new.vicinal").embedding_) == 72
    if method != "progressive":
        assert err == "warning: 6 of 6 rows are in the map already, and are added again\n"


def test_update_prepares_rows_as_the_fit_did(run: Run, model: Path) -> None:
    told = "embed data.csv -o s.npy --model s.vicinal --scale standard --pca 3 --n-neighbors 8 --quiet"
    assert run(*told.split())[0] == 0
    assert run("update", "s.vicinal", "new.csv", "--model", "t.vicinal", "-o", "-", "--quiet")[0] == 0
    assert vicinal.load("t.vicinal").n_features_in_ == 3
    assert run("transform", "t.vicinal", "new.csv", "-o", "t.npy", "--quiet") == (0, "", "")
    np.testing.assert_array_equal(np.load("t.npy"), vicinal.load("t.vicinal").embedding_[60:])


def test_bad_input_is_one_line_and_writes_nothing(run: Run, model: Path) -> None:
    write("short.csv", "a,b,c\n1,2,3\n")
    write("text.csv", "a,b,c,d\n1,2,x,4\n")
    write("gaps.csv", "a,b,c,d\n1,2,,4\n")
    write("empty.csv", "a,b,c,d\n")
    np.save("wide.npy", np.zeros((3, 9), np.float32))
    vicinal.UMAP().save("unfitted.vicinal")
    vicinal.UMAP(n_components=5, n_epochs=5, init="random").fit(ROWS).save("five.vicinal")
    vicinal.UMAP(transform_mode="graph").fit(ROWS).save("graph.vicinal")
    vicinal.TSNE(n_iter=50, perplexity=5).fit(ROWS).save("tsne.vicinal")
    before = sorted(Path().iterdir()), model.read_bytes()
    for told, words in (
        ("update m.vicinal new.csv", "nothing would be written"),
        ("update m.vicinal new.csv --model m.vicinal", "same file as the input"),
        ("update m.vicinal new.csv --model data.csv", "must end in .vicinal"),
        ("update m.vicinal none.csv -o no.csv", "none.csv"),
        ("update none.vicinal new.csv -o no.csv", "does not exist"),
        ("update m.vicinal short.csv -o no.csv", "no column 'd'"),
        ("update m.vicinal text.csv -o no.csv", "'c'"),
        ("update m.vicinal gaps.csv -o no.csv", "'c'"),
        ("update m.vicinal empty.csv -o no.csv", "empty.csv"),
        ("update m.vicinal wide.npy -o no.csv", ""),
        ("update tsne.vicinal new.csv -o no.csv", "a TSNE cannot take more rows"),
        ("update unfitted.vicinal new.csv -o no.csv", "unfitted.vicinal has no map"),
        ("update graph.vicinal new.csv -o no.csv", "graph.vicinal has no map"),
        ("update five.vicinal new.csv --html no.html", "--html requires a map of 2 or 3 dimensions, but five.vicinal"),
        ("transform five.vicinal new.csv -o no.csv --png no.png", "--png requires a map of 2 dimensions"),
        ("transform m.vicinal new.csv -o no.csv --html no.pdf", "must end in .html"),
        ("transform m.vicinal new.csv -o data.csv --html no.html", "already exists"),
    ):
        code, out, err = run(*told.split())
        assert (code, out) == (2, ""), told
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert words in err, (told, err)
        assert (sorted(Path().iterdir()), model.read_bytes()) == before
    assert hidden_files() == []


def test_a_column_of_the_name_of_the_new_one_stays(run: Run, model: Path) -> None:
    frame = pl.read_csv("new.csv").rename({"kind": "rows"})
    frame.write_csv("other.csv")
    assert run("transform", str(model), "other.csv", "-o", "p.csv", "--html", "p.html", "--label", "rows")[0] == 0
    shown = columns_of_page("p.html")
    assert {"rows", "rows (map)"} <= set(shown)
