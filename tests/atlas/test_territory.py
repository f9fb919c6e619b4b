"""New territory: a kind of rows that comes for the first time is found, drawn apart, and joined by later rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_atlases import Rows, groups, small_atlas

from vicinal import UMAP, Atlas
from vicinal.atlas.tables import LONE


def days(kinds: int, n: int, seed: int) -> Rows:
    """Return rows of the first ``kinds`` of eight groups."""
    return groups(n, seed, centers=kinds)[0]


def start(path: Path, seed: int) -> Atlas:
    return Atlas.create(path, days(5, 600, seed), estimator=UMAP(n_neighbors=10, n_epochs=50, random_state=seed))


def test_a_new_kind_is_found_and_drawn_apart(tmp_path: Path, global_random_seed: int) -> None:
    atlas = start(tmp_path / "atlas", global_random_seed)
    assert atlas.append(days(5, 150, 100 + global_random_seed))["new_territory"] == 0
    before = atlas.embedding.copy()
    X, of = groups(180, 200 + global_random_seed, centers=6)
    record = atlas.append(X)
    new = atlas.new_territory[750:]
    assert new[of == 5].mean() >= 0.9
    assert new[of != 5].mean() <= 0.05
    assert record["new_territory"] == new.sum()
    snapshot = atlas.snapshot()
    assert set(snapshot.territory[750:][new].tolist()) == {1}
    island = snapshot.embedding[750:][new]
    nearest = np.linalg.norm(island[:, None] - before[None], axis=2).min()
    assert nearest > 0.02 * np.ptp(before, axis=0).max()
    assert atlas.embedding[:750].tobytes() == before.tobytes()


def test_later_rows_join_the_island(tmp_path: Path) -> None:
    atlas = start(tmp_path / "atlas", 0)
    atlas.append(days(6, 180, 1))
    middle = atlas.embedding[atlas.new_territory].mean(axis=0)
    X, of = groups(60, 2, centers=6)
    Atlas.open(atlas.path).append(X)
    atlas.refresh()
    island = atlas.snapshot().territory[-60:]
    assert (island[of == 5] == 1).all()
    assert (island[of != 5] == 0).all()
    away = np.linalg.norm(atlas.embedding[-60:][of == 5] - middle, axis=1)
    assert away.max() < 0.5 * np.ptp(atlas.embedding, axis=0).max()
    X, of = groups(140, 3, centers=7)
    atlas.append(X)
    island = atlas.snapshot().territory[-140:]
    assert set(island[of == 6].tolist()) == {2}
    assert set(island[of == 5].tolist()) == {1}


def test_a_refit_makes_an_area_of_the_island(tmp_path: Path) -> None:
    atlas = start(tmp_path / "atlas", 0)
    atlas.append(days(6, 180, 1))
    assert atlas.strain.territory > 0
    record = atlas.refit()
    assert not atlas.new_territory.any()
    assert any(line.endswith("born (0 to 30 rows)") for line in record["changes"])


def test_a_row_that_fits_nowhere_lies_around_the_map(tmp_path: Path) -> None:
    atlas = small_atlas(tmp_path / "atlas")
    before = atlas.embedding.copy()
    atlas.append(np.full((1, 6), 500, dtype=np.float32))
    assert atlas.snapshot().territory[-1] == LONE
    middle = (before.min(axis=0) + before.max(axis=0)) / 2
    assert np.linalg.norm(atlas.embedding[-1] - middle) > np.linalg.norm(before - middle, axis=1).max()
    away = np.linalg.norm(atlas.embedding[-1] - middle)
    atlas.refit()
    assert not atlas.new_territory.any()
    assert np.linalg.norm(atlas.embedding[-1] - middle) < away


@pytest.mark.parametrize("n", [1, 5, 300])
def test_rows_of_known_kinds_fit(tmp_path: Path, n: int) -> None:
    atlas = start(tmp_path / "atlas", 0)
    assert atlas.append(days(5, n, 4))["new_territory"] == 0
