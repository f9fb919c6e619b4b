"""An atlas: rows come, change and go, old places stay, and every version can be read."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_atlases import WHEN, groups, small_atlas

from vicinal import TSNE, UMAP, Atlas, DensMAP, LargeVis
from vicinal.atlas.strain import measure_strain
from vicinal.atlas.tables import Placed
from vicinal.atlas.versions import AtlasError, Folder

NEW = groups(30, seed=7)[0]


@pytest.fixture
def atlas(tmp_path: Path) -> Atlas:
    return small_atlas(tmp_path / "atlas")


def places_by_id(atlas: Atlas) -> dict[Any, bytes]:
    return {one: place.tobytes() for one, place in zip(atlas.ids.tolist(), atlas.embedding, strict=True)}


def reopened(atlas: Atlas) -> Atlas:
    return Atlas.open(atlas.path)


def test_the_first_version_is_the_fit(atlas: Atlas) -> None:
    model = UMAP(n_neighbors=8, n_epochs=30, random_state=3).fit(groups(240)[0])
    assert atlas.version == 1
    assert atlas.embedding.tobytes() == model.embedding_.tobytes()
    assert atlas.ids.tolist() == list(range(240))
    assert sorted(one["rows"] for one in atlas.areas) == [60, 60, 60, 60]
    assert len({one["name"] for one in atlas.areas}) == 4


def test_appended_rows_lie_where_transform_places_them_and_old_rows_stay(atlas: Atlas) -> None:
    before = atlas.embedding.copy()
    expected = atlas.model.transform(NEW)
    record = atlas.append(NEW)
    assert record == {
        "rows": 270, "added": 30, "skipped": 0, "changed": 0, "described": 0, "deleted": 0, "new_territory": 0,
    }  # fmt: skip
    assert atlas.embedding[:240].tobytes() == before.tobytes()
    assert atlas.embedding[240:].tobytes() == expected.tobytes()
    assert atlas.ids[240:].tolist() == list(range(240, 270))


def test_an_opened_atlas_continues_with_the_same_bits(atlas: Atlas, tmp_path: Path) -> None:
    other = small_atlas(tmp_path / "other")
    for one in (atlas, reopened(other)):
        one.append(NEW)
    atlas.refit()
    reopened(other).refit()
    again = reopened(other)
    again.append(NEW[:5] + 0.5)
    atlas.append(NEW[:5] + 0.5)
    assert again.embedding.tobytes() == atlas.embedding.tobytes()
    assert reopened(atlas).embedding.tobytes() == atlas.embedding.tobytes()


def test_known_rows_are_skipped_and_changed_rows_move(atlas: Atlas) -> None:
    before, X = places_by_id(atlas), groups(240)[0]
    given = X[:6].copy()
    given[4:] = X[2:4]
    record = atlas.append(given, np.arange(6))
    assert (record["skipped"], record["changed"], record["added"], record["rows"]) == (4, 2, 0, 240)
    after = places_by_id(atlas)
    assert after.pop(4) == before[2]
    assert after.pop(5) == before[3]
    assert all(before[one] == place for one, place in after.items())


def test_an_append_of_known_rows_makes_no_version(atlas: Atlas) -> None:
    assert atlas.append(groups(240)[0][:6], np.arange(6))["skipped"] == 6
    assert atlas.version == 1


def test_deleted_rows_go_and_old_versions_keep_them(atlas: Atlas) -> None:
    record = atlas.append(NEW, deleted=[0, 7])
    assert (record["deleted"], record["rows"]) == (2, 268)
    assert not {0, 7} & set(atlas.ids.tolist())
    assert {0, 7} < set(atlas.snapshot(1).ids.tolist())
    assert len(atlas.rows()) == 268


def test_further_columns_follow_their_rows(tmp_path: Path) -> None:
    # neither the name of the folder nor that of a column is a pattern
    X, of = groups(240)
    names = [f"group {one}" for one in of]
    atlas = small_atlas(tmp_path / "atlas[1]", columns={"*": names, "number": of})
    assert {one["name"] for one in atlas.areas} == set(names)
    atlas.append(NEW, columns={"*": ["late"] * 30, "number": [9] * 30})
    record = atlas.append(X[:3], [0, 1, 2], columns={"*": ["other"] * 3, "number": [0, 1, 2]})
    assert (record["described"], record["changed"]) == (3, 0)
    columns = dict(zip(atlas.ids.tolist(), atlas.columns()["*"].to_list(), strict=True))
    assert (columns[0], columns[5], columns[250]) == ("other", names[5], "late")
    moved = atlas.append(X[100:101], [3])
    assert moved["changed"] == 1
    assert dict(zip(atlas.ids.tolist(), atlas.columns()["*"].to_list(), strict=True))[3] == names[3]
    assert atlas.columns(1)["*"].to_list() == names


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
def test_rows_keep_their_type_and_content(tmp_path: Path, dtype: str) -> None:
    X = np.clip(groups(120)[0] * 3 + 100, 0, 255).astype(dtype)
    atlas = Atlas.create(tmp_path / "atlas", X, estimator=UMAP(n_neighbors=8, n_epochs=5))
    atlas.append(X[:20] + np.array(1, dtype))
    assert atlas.rows().dtype == dtype
    assert atlas.rows()[:120].tobytes() == X.tobytes()
    assert reopened(atlas).append(X[:20], np.arange(20))["skipped"] == 20


@pytest.mark.parametrize("estimator", [DensMAP, LargeVis])
def test_other_methods_can_be_kept(tmp_path: Path, estimator: type) -> None:
    atlas = Atlas.create(tmp_path / "atlas", groups(120)[0], estimator=estimator(n_epochs=10))
    before = atlas.embedding.copy()
    atlas.append(NEW)
    assert atlas.embedding[:120].tobytes() == before.tobytes()
    atlas.refit()
    assert reopened(atlas).append(NEW + 0.25)["added"] == 30


def test_a_rollback_has_the_old_content_and_continues_with_the_same_bits(atlas: Atlas) -> None:
    first = atlas.embedding.copy()
    atlas.append(NEW)
    atlas.refit()
    assert not Folder(atlas.path).has(atlas._folder.manifest(atlas._head, 1).table)
    assert atlas.rollback(1) == 4
    assert atlas.embedding.tobytes() == first.tobytes()
    assert [one["made"] for one in atlas.versions] == ["create", "append", "refit", "rollback"]
    atlas.append(NEW, np.arange(240, 270))
    assert atlas.embedding.tobytes() == atlas.snapshot(2).embedding.tobytes()


def test_a_second_writer_is_refused(atlas: Atlas) -> None:
    other = reopened(atlas)
    with atlas._folder.writing(), pytest.raises(OSError, match="another process is changing this atlas"):
        other.rollback(1)
    assert other.rollback(1) == 2
    assert atlas.refresh().version == 2


def test_a_version_that_cannot_be_read_leaves_the_one_before(atlas: Atlas) -> None:
    reopened(atlas).append(NEW)
    newest = atlas._folder.manifest(atlas._folder.head())
    piece = atlas._folder.object(newest.pieces[-1])
    content, before = piece.read_bytes(), atlas.embedding.tobytes()
    piece.unlink()
    with pytest.raises(FileNotFoundError):
        atlas.refresh()
    assert (atlas.version, atlas.embedding.tobytes()) == (1, before)
    piece.write_bytes(content)
    assert atlas.refresh().version == 2


def test_a_writer_continues_from_what_another_one_wrote(atlas: Atlas) -> None:
    reopened(atlas).append(NEW)
    atlas.append(NEW + 0.5)
    assert atlas.version == 3
    assert len(atlas.ids) == 300


def test_versions_share_what_did_not_change(atlas: Atlas) -> None:
    def size() -> int:
        return sum(one.stat().st_size for one in (atlas.path / "objects").iterdir())

    first = size()
    for day in range(3):
        atlas.append(groups(2, seed=20 + day)[0])
    assert size() < 2 * first
    assert len(atlas.versions) == 4


def test_forgotten_rows_are_in_no_file(tmp_path: Path) -> None:
    X, _ = groups(240)
    names = [f"person-{one:05}" for one in range(240)]
    atlas = small_atlas(tmp_path / "atlas", ids=names, columns={"note": [f"secret {one}" for one in names]})
    late = [f"visitor-{one:05}" for one in range(30)]
    atlas.append(NEW, late, columns={"note": [f"secret {one}" for one in late]}, at=WHEN)
    atlas.append(X[:1] + 3, [names[9]], columns={"note": ["secret again"]}, at=WHEN)
    atlas.refit(at=WHEN)
    atlas.append(NEW + 0.5, [f"guest-{one:05}" for one in range(30)], at=WHEN)
    before, rest = places_by_id(atlas), [one for one in atlas.ids if one not in (names[9], late[4])]
    record = atlas.forget([names[9], late[4]])
    assert (record["forgotten"], record["stored_rows"], record["rows"]) == (2, 3, 298)
    assert {one: place for one, place in before.items() if one in rest} == places_by_id(atlas)
    values = [X[9], NEW[4], (X[:1] + 3)[0]]
    for content in everything_in(atlas.path):
        for word in (names[9], late[4], "secret again"):
            assert word.encode() not in content
        assert not any(one.tobytes() in content for one in values)
    assert all(any(one.encode() in content for content in everything_in(atlas.path)) for one in rest[:3])
    assert all(len(atlas.snapshot(one["version"])) for one in atlas.versions)
    assert atlas.model.map_.data.n == 268
    fresh = UMAP(n_neighbors=8, n_epochs=30, random_state=3).fit(atlas.model.map_.data.rows)
    assert np.array_equal(fresh.map_.neighbors.index, atlas.model.map_.neighbors.index)
    assert reopened(atlas).append(NEW[4:5], ["new"])["added"] == 1


def everything_in(folder: Path) -> list[bytes]:
    """Return the bytes of all files, and of those of tables also the values of every column."""
    import polars as pl

    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            found.append(path.read_bytes())
        if path.suffix == ".parquet":
            for column in pl.read_parquet(path):
                texts = column.dtype == pl.String
                found.append("\n".join(column.to_list()).encode() if texts else column.to_numpy().tobytes())
    return found


def test_a_window_forgets_what_is_old(atlas: Atlas) -> None:
    atlas.append(NEW, at=datetime(2026, 3, 9, tzinfo=UTC))
    with pytest.raises(ValueError, match="nothing would be left of the last fit"):
        atlas.forget(older_than=datetime(2026, 3, 5))
    atlas.refit()
    atlas.forget(older_than=datetime(2026, 3, 5))
    assert atlas.ids.tolist() == list(range(240, 270))
    atlas.forget(keep_last=10)
    assert atlas.ids.tolist() == list(range(260, 270))
    assert [one["made"] for one in atlas.versions] == ["append", "refit", "forget", "forget"]


def test_a_refit_is_recognizable(atlas: Atlas) -> None:
    names = {one["name"] for one in atlas.areas}
    atlas.append(NEW)
    record = atlas.refit()
    assert record["names_kept"] == 1.0
    assert {one["name"] for one in atlas.areas} == names
    assert record["median_move"] < 0.1
    assert record["changes"] == []
    assert {one["name"]: one["new_rows"] for one in record["areas"]} == {
        name: int((atlas.labels[240:] == a).sum()) for a, name in enumerate(one["name"] for one in atlas.areas)
    }
    free = Atlas.open(atlas.path)
    free.rollback(2)
    assert free.refit(loyalty=10.0)["median_move"] < record["median_move"]
    free.rollback(2)
    assert "loss_without_loyalty" not in free.refit(loyalty=0.0)
    free.rollback(2)
    turned = free.refit(fresh=True)
    assert turned["names_kept"] == 1.0


def test_the_model_places_in_the_scale_of_the_layout(atlas: Atlas) -> None:
    atlas.append(NEW)
    atlas.refit()
    zoom = atlas._manifest.zoom
    assert zoom != 1.0
    np.testing.assert_allclose(atlas.model.embedding_, atlas.embedding * zoom, rtol=1e-5, atol=1e-5)
    before = atlas.embedding.copy()
    atlas.append(NEW + 0.25)
    expected = atlas.model.transform(NEW + 0.25) / zoom
    np.testing.assert_allclose(atlas.embedding[270:], expected, rtol=1e-5, atol=1e-5)
    assert atlas.embedding[:270].tobytes() == before.tobytes()


def test_strain_says_when_a_refit_is_advisable(atlas: Atlas) -> None:
    assert atlas.strain.total == 0.0
    assert not atlas.strain.refit_advisable
    atlas.append(groups(240, seed=11)[0])
    assert sum(one["since_fit"] for one in atlas.strain.areas) == 240
    atlas.append(groups(240, seed=12)[0] * 1.5)
    assert any("new territory" in one for one in atlas.strain.reasons)
    atlas.refit()
    assert atlas.strain.reasons == []


def test_strain_is_the_excess_of_the_attraction() -> None:
    rows, one, nowhere = np.arange(100), np.zeros(100, dtype=np.int32), np.zeros(100, dtype=np.int32)
    cost = np.where(rows < 60, 2.0, 3.0).astype(np.float32)
    placed = Placed(rows, np.zeros((100, 2), dtype=np.float32), one, nowhere, cost)
    strain = measure_strain(placed, rows >= 60, ("all",))
    assert strain.total == pytest.approx(0.4 * 0.5)
    assert strain.areas == [{"area": 0, "name": "all", "rows": 100, "since_fit": 40, "strain": strain.total}]
    assert len(strain.reasons) == 1


def test_migration_keeps_ids_and_reports_neighbors(atlas: Atlas) -> None:
    atlas.append(NEW)
    rows = np.concatenate([atlas.rows() * 2.0, atlas.rows()[:, :2]], axis=1)
    order = np.random.default_rng(0).permutation(270)
    names = {one["name"] for one in atlas.areas}
    found = atlas.migrate(rows[order], atlas.ids[order])
    assert found.ids.tolist() == list(range(270))
    assert (found.kept_neighbors > 0.3).mean() > 0.9
    assert {one["name"] for one in atlas.areas} == names
    assert atlas.rows().shape == (270, 8)
    assert atlas.rows(2).shape == (270, 6)
    assert reopened(atlas).append(rows[:4] + 0.125)["rows"] == 274
    with pytest.raises(ValueError, match="ids misses 2 rows of the atlas"):
        atlas.migrate(np.zeros((272, 3)), np.arange(272))


def test_differences_tell_what_came_and_went(atlas: Atlas, tmp_path: Path) -> None:
    atlas.append(NEW, deleted=[5])
    found = atlas.diff(1)
    assert found.added.tolist() == list(range(240, 270))
    assert found.deleted.tolist() == [5]
    assert np.nanmax(found.moved) == 0.0
    assert found.summary()["names_kept"] == 1.0
    assert found.to_html(tmp_path / "diff.html").stat().st_size > 10_000
    assert "30 added, 1 deleted, 0 moved" in str(found)


def test_drift_of_rows_since_the_fit(atlas: Atlas) -> None:
    atlas.append(groups(40, seed=9)[0] + 4.0)
    found = atlas.drift(resamples=99)
    assert "distance" in found.whole.drifted
    with pytest.raises(ValueError, match="label must be one of the columns"):
        atlas.drift(label="none")


def test_exports(atlas: Atlas, tmp_path: Path) -> None:
    import polars as pl

    import vicinal

    atlas.append(NEW)
    atlas.export(tmp_path / "map.parquet")
    table = pl.read_parquet(tmp_path / "map.parquet")
    assert table.columns == ["id", "x", "y", "area", "territory"]
    assert table["id"].to_list() == list(range(270))
    atlas.export(tmp_path / "first.csv", version=1)
    assert pl.read_csv(tmp_path / "first.csv").height == 240
    atlas.export(tmp_path / "map.vicinal")
    assert vicinal.load(tmp_path / "map.vicinal").transform(NEW).tobytes() == atlas.embedding[240:].tobytes()
    atlas.export(tmp_path / "map.html")
    with pytest.raises(ValueError, match="path must end in"):
        atlas.export(tmp_path / "map.png")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"ids": [1, 2, 2]}, ValueError, "ids must differ, but rows 1 and 2 both have 2"),
        ({"ids": [1, 2]}, ValueError, "ids must have an entry for each of 3 rows, got 2"),
        ({"ids": [1, 2, None]}, TypeError, "ids must be texts or whole numbers, got None for row 2"),
        ({"ids": [1, "b", 3]}, TypeError, "ids must all be texts or all be whole numbers"),
        ({"ids": ["a", "b", "c"]}, TypeError, "ids must be whole numbers as those of the atlas are"),
        ({"deleted": [999]}, ValueError, "deleted has 999, which no row of the atlas has"),
        ({"ids": [1, 2, 3], "deleted": [2]}, ValueError, "deleted has 2, which is also an id of the new rows"),
        ({"columns": {"a": [1]}}, ValueError, "columns must have a value for each of 3 rows, got 1"),
        ({"at": "today"}, TypeError, "a time must be a datetime"),
    ],
)
def test_a_wrong_append_is_refused(atlas: Atlas, given: dict[str, Any], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        atlas.append(NEW[:3], **given)
    with pytest.raises(ValueError, match="features"):
        atlas.append(NEW[:, :4])
    assert reopened(atlas).version == 1


def test_wrong_folders_and_estimators_are_refused(atlas: Atlas, tmp_path: Path) -> None:
    X = groups(30)[0]
    with pytest.raises(FileExistsError):
        Atlas.create(atlas.path, X)
    with pytest.raises(AtlasError, match="is not an atlas"):
        Atlas.open(tmp_path)
    for estimator, message in (
        (TSNE(), "must be a UMAP, DensMAP or LargeVis"),
        (UMAP(metric="precomputed"), "precomputed"),
        (UMAP(output_metric="hyperboloid"), "output_metric must be 'euclidean'"),
        (UMAP(init=np.zeros((30, 2))), "init must be a name"),
        (UMAP(random_state=np.random.RandomState(0)), "random_state must be a number"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            Atlas.create(tmp_path / "other", X, estimator=estimator)
    assert not (tmp_path / "other").exists()
    for wrong in (-1.0, np.nan):
        with pytest.raises(ValueError, match="loyalty must be a number from 0 on"):
            atlas.refit(wrong)
    with pytest.raises(ValueError, match="version must be one of those of the atlas"):
        atlas.rollback(5)
    with pytest.raises(ValueError, match="forget takes one of ids, older_than and keep_last, got none"):
        atlas.forget()
    with pytest.raises(ValueError, match="ids has 999, which no row of any version"):
        atlas.forget([999])


@pytest.mark.parametrize("content", [b"", b"{}", b'{"format": 9, "version": 1, "versions": {}}', b'{"versions": 3}'])
def test_a_damaged_head_is_named(atlas: Atlas, content: bytes) -> None:
    (atlas.path / "HEAD").write_bytes(content)
    with pytest.raises(AtlasError, match="HEAD"):
        reopened(atlas)


def test_a_manifest_cannot_name_files_elsewhere(atlas: Atlas) -> None:
    name = atlas._head.versions[1]
    path = atlas.path / "objects" / name
    path.write_bytes(path.read_bytes().replace(b'"estimator": "', b'"estimator": "../'))
    with pytest.raises(AtlasError, match="a name is a path"):
        reopened(atlas)
