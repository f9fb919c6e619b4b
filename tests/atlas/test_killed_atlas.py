"""An atlas whose writer is killed at any moment holds a whole version; the next writer removes what is left over."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from small_atlases import CHANGES, append, refit, small_atlas

from vicinal import Atlas

PROGRAM = Path(__file__).parents[1] / "small_atlases.py"
# Moments of all changes one after the other at which the normal tests kill them; the nightly ones take every moment.
SOME = (9, 37, 78)


def contents(path: Path) -> dict[int, tuple[object, ...]]:
    """Return ids, places and values of all versions."""
    atlas = Atlas.open(path)
    found = {}
    for number in (one["version"] for one in atlas.versions):
        snapshot = atlas.snapshot(number)
        values = atlas.rows(number).tobytes(), snapshot.embedding.tobytes(), snapshot.labels.tobytes()
        found[number] = (tuple(snapshot.ids.tolist()), *values)
    return found


def run(folder: Path, moment: int, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(PROGRAM), str(folder), str(moment)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def states(original: Path, folder: Path) -> list[dict[int, tuple[object, ...]]]:
    """Return what an atlas holds before the changes and after each of them."""
    shutil.copytree(original, folder)
    found = [contents(folder)]
    for change in CHANGES.values():
        change(Atlas.open(folder))
        found.append(contents(folder))
    assert all(found[i] != found[i + 1] for i in range(len(CHANGES)))
    return found


def check_moment(original: Path, folder: Path, moment: int, known: list[Any], environment: dict[str, str]) -> None:
    """Kill the changes at a moment: one of the known states is left, from which the others are reached."""
    shutil.copytree(original, folder)
    killed = run(folder, moment, environment)
    assert killed.returncode == -9, (moment, killed.stderr)
    found = contents(folder)
    assert found in known, moment
    for change in list(CHANGES.values())[known.index(found) :]:
        change(Atlas.open(folder))
    assert contents(folder) == known[-1], moment
    check_nothing_left_over(folder)
    shutil.rmtree(folder)


def check_nothing_left_over(folder: Path) -> None:
    """The next change removes what a killed one left."""
    atlas = Atlas.open(folder)
    atlas.rollback(atlas.version)
    manifests = [json.loads((folder / "objects" / name).read_bytes()) for name in head(folder)["versions"].values()]
    named = {name for one in manifests for name in (one["estimator"], *one["pieces"])}
    named |= {chunk["file"] for one in manifests for chunk in one["chunks"]} | set(head(folder)["versions"].values())
    assert {one.name for one in (folder / "objects").iterdir()} == named | {manifests_table(folder)}
    assert {one.name for one in folder.iterdir()} == {"HEAD", "lock", "objects"}


def head(folder: Path) -> Any:
    return json.loads((folder / "HEAD").read_bytes())


def manifests_table(folder: Path) -> str:
    """Return the name of the neighbor table of the newest version, the only one that is kept."""
    newest = head(folder)["versions"][str(head(folder)["version"])]
    return str(json.loads((folder / "objects" / newest).read_bytes())["table"])


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")


def test_a_killed_change_leaves_a_whole_version(tmp_path: Path, child_environment: dict[str, str]) -> None:
    append(small_atlas(tmp_path / "original"))
    known = states(tmp_path / "original", tmp_path / "finished")
    for moment in SOME:
        check_moment(tmp_path / "original", tmp_path / str(moment), moment, known, child_environment)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_changes_killed_at_every_moment_leave_a_whole_version(
    tmp_path: Path, child_environment: dict[str, str]
) -> None:
    killed = 0
    for weeks in (0, 1, 2):
        original = tmp_path / f"{weeks}"
        append(atlas := small_atlas(original))
        for _ in range(weeks):
            refit(atlas)
            append(atlas)
        known = states(original, tmp_path / f"{weeks}-finished")
        shutil.copytree(original, tmp_path / f"{weeks}-counted")
        moments = int(run(tmp_path / f"{weeks}-counted", 0, child_environment).stdout)
        for moment in range(1, moments + 1):
            check_moment(original, tmp_path / f"{weeks}-{moment}", moment, known, child_environment)
        killed += moments
    assert killed >= 200
