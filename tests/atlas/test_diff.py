"""The page of two versions: which rows it has, where they are, and what it says about them."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vicinal import viewer
from vicinal.atlas.diff import MapVersion, pack_diff, write_diff
from vicinal.viewer.packing import STEPS, Packed

# Ten rows stay, of which the last one moves from one area to the other; two are deleted, three are new.
PLACES = np.array([[a, 0.0] for a in range(6)] + [[a, 10.0] for a in range(6)])
BEFORE = MapVersion("Monday", PLACES, list("abcdefghijkl"), np.repeat([0, 1], 6), ("low", "high"), {"size": range(12)})
KEPT = [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
MOVED = PLACES[KEPT].copy()
MOVED[-1] = [5.0, 0.0]
AFTER = MapVersion(
    "Friday",
    np.vstack([MOVED, [[20, 5], [20, 6], [20, 7]]]),
    [*(list("abcdefghijkl")[a] for a in KEPT), "x", "y", "z"],
    [0, 0, 0, 0, 0, 1, 1, 1, 1, 0, 2, 2, 2],
    ("low", "high", "far"),
    {"size": range(100, 113)},
)


def content(packed: Packed, name: str, kind: Any = np.uint8) -> np.ndarray:
    return np.frombuffer(zlib.decompress(packed.sections[name]), dtype=kind)


def column(packed: Packed, name: str) -> list[Any]:
    metas = packed.meta["columns"]
    at = next(a for a, one in enumerate(metas) if one["name"] == name)
    if metas[at]["kind"] == "values":
        return content(packed, f"column{at}", "<f4").tolist()
    return [[*metas[at]["names"], None][code] for code in content(packed, f"column{at}")]


def test_page_has_the_rows_of_both_versions() -> None:
    packed = pack_diff(BEFORE, AFTER)
    assert packed.meta["n"] == 15
    ids = zlib.decompress(packed.sections["ids"]).decode().split("\x1e")[:-1]
    assert ids == [*AFTER.ids, "f", "l"]
    assert content(packed, "absent0").tolist() == [0] * 10 + [1] * 3 + [0] * 2
    assert content(packed, "absent1").tolist() == [0] * 13 + [1] * 2
    assert column(packed, "change") == ["stayed"] * 9 + ["moved"] + ["new"] * 3 + ["deleted"] * 2
    assert column(packed, "area") == [*["low"] * 5, *["high"] * 4, "low", *["far"] * 3, None, None]
    assert column(packed, "area before") == [*["low"] * 5, *["high"] * 5, None, None, None, "low", "high"]
    assert column(packed, "size") == [*range(100, 113), 5, 11]
    moved = column(packed, "moved, % of the map")
    assert moved[:9] == [0.0] * 9
    assert moved[9] == pytest.approx(100 * np.hypot(1, 10) / 10)
    assert np.isnan(moved[10:]).all()


def test_both_maps_have_the_same_coordinates() -> None:
    packed = pack_diff(BEFORE, AFTER)
    boxes = [one["box"] for one in packed.meta["maps"]]
    assert boxes == [[0.0, 0.0, 20.0, 10.0]] * 2
    places = [content(packed, f"xy{a}", "<u2").reshape(2, -1).T / STEPS * [20, 10] for a in (0, 1)]
    assert np.allclose(places[1][:13], AFTER.places, atol=1e-3)
    assert np.allclose(places[0][:10], PLACES[KEPT], atol=1e-3)
    assert np.allclose(places[0][13:], PLACES[[5, 11]], atol=1e-3)


def test_areas_are_listed_with_what_became_of_them() -> None:
    diff = pack_diff(BEFORE, AFTER).meta["diff"]
    assert [(one["name"], one["kind"], one["rows"]) for one in diff["changes"]] == [
        ("far", "born", [0, 3]),
        ("high", "shrunk", [6, 4]),
        ("low", "kept", [6, 6]),
    ]
    assert [one["name"] for one in diff["names"][0]] == ["low", "high · shrunk"]
    assert [one["name"] for one in diff["names"][1]] == ["low", "high · shrunk", "far · born"]
    assert diff["names"][1][2]["place"] == [20.0, 6.0]
    assert dict(diff["facts"]) == {
        "rows": "12 → 13",
        "new": "3",
        "deleted": "2",
        "moved ≥ 5 %": "1",
        "median move": "0 % of the map",
        "names kept": "100 %",
    }


def test_numbers_of_areas_mean_the_same_in_both_versions() -> None:
    gone = replace(AFTER, areas=[0] * 13, names=("low",))
    metas = {one["name"]: one for one in pack_diff(BEFORE, gone).meta["columns"]}
    assert metas["area"]["names"] == metas["area before"]["names"] == ["high", "low"]
    assert metas["area"]["missing"] == metas["area before"]["missing"] > 0


def test_maps_in_space_and_equal_titles() -> None:
    deep = [replace(one, places=np.column_stack([one.places, np.ones(len(one.places))])) for one in (BEFORE, AFTER)]
    packed = pack_diff(deep[0], replace(deep[1], title="Monday"))
    assert [one["name"] for one in packed.meta["maps"]] == ["Monday (old)", "Monday"]
    assert len(packed.meta["maps"][0]["box"]) == 6


def test_other_pages_do_not_carry_the_diff(tmp_path: Path) -> None:
    compared = viewer.compare(tmp_path / "two.html", {"a": PLACES, "b": PLACES}).read_text()
    differs = write_diff(tmp_path / "diff.html", BEFORE, AFTER).read_text()
    assert differs.count("<script>") == compared.count("<script>") + 1
    assert "#diff .way" in differs
    assert "#diff .way" not in compared
    assert "absent0" not in compared


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ids": [1, 2]}, "ids of 'Friday' must have 13 entries, got 2"),
        ({"ids": [0] * 13}, "the ids of after must be unique"),
        ({"areas": [3] * 13}, "areas of 'Friday' must have names, got area 3 in row 0"),
        ({"places": np.zeros((13, 3))}, "both versions must have as many dimensions"),
        ({"columns": {"size": [1]}}, "size of 'Friday' must have 13 entries, got 1"),
    ],
    ids=["ids", "equal ids", "areas", "places", "columns"],
)
def test_versions_that_do_not_fit_are_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_diff(tmp_path / "diff.html", BEFORE, replace(AFTER, **change))
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="far must be above 0"):
        pack_diff(BEFORE, AFTER, far=0)
