"""Preprocessing on the command line: prepared before the fit, and in the same way before `transform`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run, csv_of, write
from sklearn.decomposition import PCA

import vicinal
from vicinal.files.preparation import Impute, Preparation, Preprocessing, Scale
from vicinal.viewer.session import Session

COUNTS = np.random.default_rng(0).poisson(np.random.default_rng(1).gamma(1, 2, size=3000), size=(80, 3000)).astype("f4")


def test_scales() -> None:
    X = np.column_stack([ROWS, np.full(60, 7, dtype=np.float32)])
    standard, _ = Preprocessing(scale=Scale.STANDARD).fit(X)
    assert standard[:, :4].mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-6)
    assert standard[:, :4].std(axis=0) == pytest.approx(np.ones(4), abs=1e-5)
    assert not standard[:, 4].any(), "a constant column becomes 0"
    minmax, _ = Preprocessing(scale=Scale.MINMAX).fit(X)
    assert (minmax.min(), minmax.max()) == (0.0, pytest.approx(1.0))
    robust, _ = Preprocessing(scale=Scale.ROBUST).fit(X)
    assert np.median(robust, axis=0) == pytest.approx(np.zeros(5), abs=1e-6)
    assert np.subtract(*np.quantile(robust[:, 0], [0.75, 0.25])) == pytest.approx(1.0, abs=1e-5)


def test_steps_are_applied_in_order_and_repeated_on_new_rows() -> None:
    X = np.abs(ROWS).copy()
    X[3, 1] = np.nan
    prepared, steps = Preprocessing(Scale.STANDARD, True, 2, Impute.MEDIAN).fit(X)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    logs = np.log1p(filled)
    scaled = (logs - logs.mean(axis=0)) / logs.std(axis=0)
    wanted = PCA(2).fit_transform(scaled)
    assert np.abs(prepared) == pytest.approx(np.abs(wanted), abs=1e-4)
    assert Preparation(None, steps).apply(X) == pytest.approx(prepared, abs=1e-6)
    assert np.isnan(X[3, 1]), "the input does not change"


def test_counts_follow_the_recipe() -> None:
    prepared, steps = Preprocessing(counts=True).fit(COUNTS)
    assert prepared.shape == (80, 50)
    assert len(steps["columns"]) == 2000
    assert steps["total"][0] == 1e4
    assert Preparation(None, steps).apply(COUNTS[:5]) == pytest.approx(prepared[:5], abs=1e-3)
    normalized = np.log1p(COUNTS * (1e4 / COUNTS.sum(axis=1, keepdims=True)))
    chosen = normalized[:, steps["columns"]]
    scaled = np.minimum((chosen - chosen.mean(axis=0)) / chosen.std(axis=0), 10)
    assert np.abs(PCA(50, random_state=0).fit_transform(scaled)[:, 0]) == pytest.approx(
        np.abs(prepared[:, 0]), abs=1e-2
    )


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"log1p": True}, np.array([[1.0, 2.0], [3.0, -1.5]]), "row 1 has -1.5"),
        ({"counts": True}, np.array([[1.0, 2.0], [3.0, -1.0]]), "not negative; row 1"),
        ({"pca": 9}, ROWS, "--pca 9 needs at least 9 columns"),
        ({"impute": Impute.MEAN}, np.array([[1.0, np.nan], [3.0, np.nan]]), "column 1 has none"),
    ],
)
def test_unfit_rows_are_refused(options: dict[str, Any], rows: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Preprocessing(**options).fit(rows.astype(np.float32))


def test_counts_exclude_other_scales() -> None:
    with pytest.raises(ValueError, match="--counts includes"):
        Preprocessing(counts=True, log1p=True)


def test_saved_model_prepares_new_rows_in_the_same_way(run: Run) -> None:
    rows = np.abs(ROWS) * [1, 100, 1000, 0.1]
    write("data.csv", csv_of(rows))
    options = "--scale standard --log1p --pca 3 --model m.vicinal --n-neighbors 8 --n-epochs 50 --quiet"
    assert run("embed", "data.csv", "-o", "map.npy", *options.split())[0] == 0
    assert run("transform", "m.vicinal", "data.csv", "-o", "again.npy")[0] == 0
    assert np.array_equal(np.load("again.npy"), np.load("map.npy"))
    assert set(Preparation.of_model(vicinal.load("m.vicinal")).steps) == {
        "log1p",
        "center",
        "factor",
        "mean",
        "components",
    }


def test_live_page_of_a_saved_model_prepares_uploads(run: Run) -> None:
    write("data.csv", csv_of(ROWS * [1, 100, 1000, 0.1]))
    assert run("embed", "data.csv", "-o", "map.npy", "--scale", "standard", "--model", "m.vicinal", "--quiet")[0] == 0
    session = Session.of(vicinal.load("m.vicinal"))
    placed = session.project("data.csv", session.source.read_rows(Path("data.csv")))
    assert placed == 60
    assert np.array_equal(session.snapshot.positions[60:], np.load("map.npy"))


def test_missing_values_are_filled_in_or_compared(run: Run) -> None:
    text = csv_of(ROWS).replace(str(ROWS[2].tolist()[1]), "", 1)
    write("data.csv", text)
    assert "row 2 has no value in column 'b'" in run("embed", "data.csv", "-o", "m.npy")[2]
    assert run("embed", "data.csv", "-o", "a.npy", "--impute", "median", "--quiet") == (0, "", "")
    assert run("embed", "data.csv", "-o", "b.npy", "--metric", "nan_euclidean", "--quiet") == (0, "", "")
    assert np.isfinite(np.load("b.npy")).all()


def test_counts_of_an_h5ad_file_with_its_cell_names(run: Run) -> None:
    with h5py.File("cells.h5ad", "w") as file:
        file["X"] = COUNTS
        file["obsm/X_pca"] = COUNTS[:, :3]
        file["obs/_index"] = np.array([f"cell-{a}" for a in range(80)], dtype=h5py.string_dtype())
        file["obs"].attrs["_index"] = "_index"
    code, _, err = run("embed", "cells.h5ad", "-o", "map.csv", "--counts", "--n-epochs", "20", "--html", "map.html")
    assert (code, err) == (0, "")
    written = pl.read_csv("map.csv")
    assert written.columns == ["cell", "x", "y"]
    assert written["cell"].to_list()[:2] == ["cell-0", "cell-1"]
    assert 'id="vicinal-ids"' in Path("map.html").read_text()
