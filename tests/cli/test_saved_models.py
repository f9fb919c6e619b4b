"""`vicinal info` and `vicinal transform`, and `vicinal quality` of a written map."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from cli.command_inputs import ROWS, Run

import vicinal


def test_saved_model_is_described_and_places_new_rows(run: Run) -> None:
    np.save("data.npy", ROWS)
    np.save("new.npy", np.vstack([ROWS[:5], ROWS[:5] + 0.05]))
    assert run("embed", "data.npy", "-o", "map.npy", "--model", "m.vicinal", "--n-neighbors", "8", "--quiet")[0] == 0
    code, out, err = run("info", "m.vicinal")
    assert (code, err) == (0, "")
    assert "60 x 2" in out
    assert "n_neighbors" in out
    code, out, err = run("transform", "m.vicinal", "new.npy", "-o", "new_map.npy")
    assert (code, err) == (0, "")
    placed = np.load("new_map.npy")
    assert np.array_equal(placed[:5], np.load("map.npy")[:5])
    assert np.isfinite(placed).all()


def test_info_describes_a_model_without_a_map(run: Run) -> None:
    vicinal.UMAP(n_neighbors=7).save("unfitted.vicinal")
    code, out, err = run("info", "unfitted.vicinal")
    assert (code, err) == (0, "")
    assert "n_neighbors" in out


def test_quality_of_a_map_that_embed_wrote(run: Run) -> None:
    np.save("data.npy", ROWS)
    assert run("embed", "data.npy", "-o", "map.csv", "--label", "3", "--report", "a.json", "--quiet")[0] == 0
    code, out, err = run("quality", "data.npy", "map.csv", "--features", "0,1,2", "--report", "b.json")
    assert (code, err) == (0, "")
    assert "trustworthiness" in out
    first, second = (json.loads(Path(name).read_text()) for name in ("a.json", "b.json"))
    assert first["quality"]["trustworthiness"] == second["trustworthiness"]
