"""`vicinal atlas`: the commands, and the shell script of the guide."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from cli.command_inputs import Run

from vicinal import Atlas

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "atlas.md"
ROWS, LATE = 260, 60


@pytest.fixture
def frame(digits: np.ndarray, digit_labels: np.ndarray) -> pl.DataFrame:
    chosen = np.flatnonzero(digit_labels < 4)[: ROWS + 2 * LATE]
    own = {"name": [f"scan-{row:04}" for row in range(len(chosen))]}
    own["digit"] = [f"digit {one}" for one in digit_labels[chosen]]
    return pl.DataFrame(own | {f"p{a}": digits[chosen, a] for a in range(64)})


@pytest.fixture
def files(frame: pl.DataFrame, tmp_path: Path) -> Path:
    frame[:ROWS].write_csv(tmp_path / "week1.csv")
    frame[ROWS : ROWS + LATE].write_csv(tmp_path / "monday.csv")
    frame[ROWS + LATE - 10 :].write_csv(tmp_path / "tuesday.csv")
    return tmp_path


def test_the_script_of_the_guide_runs(run: Run, files: Path) -> None:
    script = re.findall(r"^```sh\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    lines = [line for block in script for line in block.splitlines()]
    assert len(lines) == 10
    for line in lines:
        program, *arguments = shlex.split(line.replace("1200", "300"))
        assert program == "vicinal"
        code, _, error = run(*arguments)
        assert code == 0, (line, error)
    atlas = Atlas.open(files / "atlas")
    assert [one["made"] for one in atlas.versions] == ["create", "append", "append", "refit", "forget", "forget"]
    assert len(atlas.ids) == 300
    assert {"week.html", "drift.png", "map.parquet"} <= {path.name for path in files.iterdir()}
    exported = pl.read_parquet(files / "map.parquet")
    assert exported.columns[:5] == ["id", "x", "y", "area", "territory"]
    assert exported.height == ROWS + 2 * LATE - 2


def test_rows_are_found_by_their_ids(run: Run, files: Path) -> None:
    assert run("atlas", "init", "map", "week1.csv", "--id", "name", "--label", "digit")[0] == 0
    code, said, _ = run("atlas", "append", "map", "tuesday.csv", "--report", "done.json", "--at", "2026-03-02T08:00")
    assert code == 0
    assert json.loads((files / "done.json").read_text())["added"] == LATE + 10
    assert f"version 2, {ROWS + LATE + 10} rows: {LATE + 10} added" in said
    assert "nothing new" not in said
    code, said, _ = run("atlas", "append", "map", "tuesday.csv")
    assert f"{LATE + 10} skipped" in said
    atlas = Atlas.open(files / "map")
    assert atlas.version == 2
    assert atlas.columns().columns == ["digit"]
    assert atlas.versions[-1]["at"] == "2026-03-02T08:00:00.000000+00:00" or len(atlas.versions) == 2


def test_migration_and_rollback(run: Run, files: Path, frame: pl.DataFrame) -> None:
    run("atlas", "init", "map", "week1.csv", "--id", "name", "--label", "digit", "--scale", "standard")
    frame[:ROWS].with_columns(pl.col("^p.*$") ** 0.5).write_parquet("other.parquet")
    code, said, error = run("atlas", "migrate", "map", "other.parquet", "--id", "name", "--output", "moved.csv")
    assert code == 0, error
    assert "of their neighbors" in said
    assert pl.read_csv("moved.csv").columns == ["id", "kept_neighbors", "moved"]
    late = frame[ROWS : ROWS + 20].with_columns(pl.col("^p.*$") ** 0.5)
    late.write_parquet("late.parquet")
    assert run("atlas", "append", "map", "late.parquet")[0] == 0
    code, said, _ = run("atlas", "rollback", "map", "1")
    assert "version 4 has the content of version 1" in said
    assert run("atlas", "append", "map", "monday.csv")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("append nowhere monday.csv", "is not an atlas"),
        ("append map monday.csv --at soon", "--at must be a time such as"),
        ("append map monday.csv --deleted nobody", "deleted has 'nobody', which no row of the atlas has as its id"),
        ("init map week1.csv", "exists and is not empty"),
        ("diff map 7", "version must be one of those of the atlas"),
        ("forget map", "forget takes one of ids, older_than and keep_last"),
        ("forget map --older-than yesterday", "--older-than must be a time"),
        ("export map --output map.doc", "the file name must end in"),
        ("drift map", "drift needs rows of the earlier version and rows that came later"),
    ],
)
def test_mistakes_are_named(run: Run, files: Path, arguments: str, message: str) -> None:
    run("atlas", "init", "map", "week1.csv", "--id", "name", "--label", "digit", "--n-epochs", "5")
    code, _, error = run("atlas", *arguments.split())
    assert code == 2
    assert message in error
