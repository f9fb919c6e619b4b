"""Areas of two versions of a map: names that are kept, splits, merges, births and deaths."""

from __future__ import annotations

import json

import numpy as np
import pytest

import vicinal
from vicinal.areas.layers import matched
from vicinal.atlas.areas import AreaMatch, follow_names, match_areas, named_from_start, shared_rows

NAMES = ("coats", "shoes")
OLD = np.repeat([0, 1], [100, 80])
SAME = np.arange(180)


def kinds(found: AreaMatch) -> dict[str, str]:
    return {one.name: one.kind for one in found.changes}


def test_renumbered_areas_keep_their_names() -> None:
    found = match_areas(OLD, 1 - OLD, SAME, NAMES)
    assert found.names == ("shoes", "coats")
    assert kinds(found) == {"shoes": "kept", "coats": "kept"}
    assert found.kept == 1.0


def test_larger_part_of_a_split_keeps_the_name() -> None:
    new = np.repeat([0, 2, 1], [70, 30, 80])
    found = match_areas(OLD, new, SAME, NAMES, ["", "", "parkas"])
    assert found.names == ("coats", "shoes", "parkas")
    assert kinds(found) == {"coats": "split", "shoes": "kept", "parkas": "split off"}
    assert found.changes[0].parts == (("parkas", 30),)
    assert found.changes[2].sources == (("coats", 100 - 70),)
    assert found.kept == 1.0


def test_area_in_two_halves_loses_its_name() -> None:
    new = np.repeat([0, 2, 1], [50, 50, 80])
    found = match_areas(OLD, new, SAME, NAMES)
    assert found.names == ("coats (2)", "shoes", "coats (3)")
    assert kinds(found)["coats"] == "divided"
    assert found.changes[-1].parts == (("coats (2)", 50), ("coats (3)", 50))
    assert found.kept == 0.5
    # one row more in a part, and it has the majority
    new[50] = 0
    assert match_areas(OLD, new, SAME, NAMES).names == ("coats", "shoes", "coats (2)")


def test_merged_areas_have_the_name_of_the_larger_one() -> None:
    found = match_areas(OLD, np.zeros(180, int), SAME, NAMES)
    assert found.names == ("coats",)
    assert kinds(found) == {"coats": "merged", "shoes": "absorbed"}
    assert found.changes[0].sources == (("shoes", 80),)
    assert found.changes[1].parts == (("coats", 80),)


def test_tie_goes_to_the_smaller_area_then_to_the_lower_number() -> None:
    old = np.repeat([0, 1, 2, 3], [30, 20, 20, 20])
    # area 0 gives 20 of its 30 rows, as many as areas 1 and 2 give in whole; area 3 stays
    new = np.repeat([0, -1, 0, 0, 1], [20, 10, 20, 20, 20])
    found = match_areas(old, new, np.arange(90), ["a", "b", "c", "d"])
    assert found.names == ("b", "d")


def test_area_of_new_rows_is_born_and_area_of_deleted_rows_is_gone() -> None:
    position = np.concatenate([np.arange(100), np.full(50, -1)])
    new = np.repeat([0, 1], [100, 50])
    found = match_areas(OLD, new, position, NAMES, ["", "shoes"])
    # the name of an area that is gone is not given to another one
    assert found.names == ("coats", "shoes (2)")
    assert kinds(found) == {"coats": "kept", "shoes (2)": "born", "shoes": "gone"}
    assert found.changes[1].added == 50
    assert found.changes[2].deleted == 80


@pytest.mark.parametrize(("added", "kind"), [(0, "kept"), (30, "kept"), (100, "grown")])
def test_growth_is_relative_to_the_map(added: int, kind: str) -> None:
    position = np.concatenate([SAME, np.full(added, -1)])
    found = match_areas(OLD, np.append(OLD, np.zeros(added, int)), position, NAMES)
    assert kinds(found) == {"coats": kind, "shoes": "kept"}
    assert found.changes[0].growth == pytest.approx(1 + added / 100)


def test_rows_that_left_their_area_count_and_deleted_rows_do_not() -> None:
    new = np.where(np.arange(180) < 40, 0, np.where(np.arange(180) < 100, -1, 1))
    assert kinds(match_areas(OLD, new, SAME, NAMES))["coats"] == "gone"  # 60 of 100 rows are in no area
    kept = np.concatenate([np.arange(40), np.arange(100, 180)])
    found = match_areas(OLD, new[kept], kept, NAMES)
    assert found.names == NAMES
    assert found.changes[0].deleted == 60


def test_names_are_unique_and_do_not_depend_on_the_order_of_rows(global_random_seed: int) -> None:
    rng = np.random.default_rng(global_random_seed)
    for _ in range(30):
        n, k_old, k_new = rng.integers(1, 200), rng.integers(1, 9), rng.integers(1, 9)
        old, new = rng.integers(-1, k_old, n), rng.integers(-1, k_new, n + 20)
        position = rng.permutation(np.concatenate([rng.permutation(n)[: n // 2 + 1], np.full(n + 19 - n // 2, -1)]))
        names = [f"old {a}" for a in range(k_old)]
        found = match_areas(old, new, position, names, ["same"] * k_new, ["same"])
        assert len(set(found.names)) == k_new
        assert "same" not in found.names
        moved = rng.permutation(n + 20)
        assert match_areas(old, new[moved], position[moved], names, ["same"] * k_new, ["same"]) == found
        # each old area is reported once, and its rows are all accounted for
        old_areas = sorted(one.before for one in found.changes if one.before is not None)
        assert old_areas == list(range(k_old))
        for one in found.changes:
            if one.before is not None and one.after is not None:
                both = (new == one.after) & (position >= 0)
                assert one.stayed == (old[position[both]] == one.before).sum() > (one.rows_before - one.deleted) / 2


def test_rows_are_shared_by_their_ids() -> None:
    assert shared_rows(["a", "b", "c"], ["c", "x", "a"]).tolist() == [2, -1, 0]
    with pytest.raises(ValueError, match="after must be unique, but row 2 has the id 5"):
        shared_rows([1], [5, 6, 5])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"before": OLD.astype(float)}, "before must be whole numbers"),
        ({"after": OLD - 2}, "after must be area numbers or -1, got -2 in row 0"),
        ({"position": SAME[:-1]}, "position must be 180 whole numbers"),
        ({"position": SAME + 1}, "position must be rows below 180 or -1, got 180 in row 179"),
        ({"position": np.zeros(180, int)}, "position must name each old row at most once, got 0 twice"),
        ({"names": ("coats",)}, "names must have a name for each area"),
        ({"names": ("coats", "coats")}, "names must all be different"),
        ({"proposed": ["x"]}, "proposed must have an entry for each area"),
    ],
    ids=lambda one: one if isinstance(one, str) else next(iter(one)),
)
def test_bad_input_is_refused(change: dict, message: str) -> None:
    given = {"before": OLD, "after": OLD, "position": SAME, "names": NAMES} | change
    with pytest.raises(ValueError, match=message):
        match_areas(**given)


def test_report_is_json_and_text() -> None:
    found = match_areas(OLD, np.zeros(180, int), SAME, NAMES)
    rows = json.loads(found.to_json())
    assert [row["kind"] for row in rows] == ["merged", "absorbed"]
    assert rows[0]["growth"] == 1.8
    assert str(found).splitlines() == [
        "coats: has absorbed shoes (80) (100 to 180 rows)",
        "shoes: absorbed by coats (80) (80 to 0 rows)",
    ]


def test_names_are_kept_over_a_refit_of_the_digits(digits: np.ndarray, digit_labels: np.ndarray) -> None:
    labels = np.array([f"digit {one}" for one in digit_labels])
    n = 1747
    before = vicinal.UMAP(random_state=1).fit(digits[:n])
    after = vicinal.UMAP(random_state=2).fit(digits)
    old = named_from_start(vicinal.clusters(before, columns={"label": labels[:n]}))
    again = vicinal.clusters(after, columns={"label": labels})
    found, matches = follow_names(old, again, np.where(np.arange(len(digits)) < n, np.arange(len(digits)), -1))
    assert found.layers[found.main].resolution == old.layers[old.main].resolution
    persisting = kept = 0
    for layer, match in zip(found.layers, matches, strict=True):
        assert all(layer.names)
        assert len(set(layer.names)) == layer.n_clusters == len(match.names)
        old_layer = [one for one in old.layers if one.resolution <= layer.resolution][-1]
        pairs = matched(old_layer.labels, layer.labels[:n], old_layer.n_clusters, layer.n_clusters)
        same = [pair for pair in pairs if pair["jaccard"] >= 0.5]
        persisting += len(same)
        kept += sum(old_layer.names[pair["cluster"]] == layer.names[pair["other"]] for pair in same)
    assert persisting >= 20
    assert kept == persisting
    assert matches[found.main].kept >= 0.8
