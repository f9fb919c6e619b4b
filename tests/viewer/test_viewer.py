"""vicinal.viewer.export: the packed content of a page, and errors for invalid input."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import vicinal
from vicinal.viewer import compare, export
from vicinal.viewer.packing import Packed, bounding_box, neighbors_of, pack, quantized, row_columns

ROOT = Path(__file__).parents[2]
POSITIONS = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)


def texts(content: bytes) -> list[str]:
    return zlib.decompress(content).decode().split("\x1e")[:-1]


def test_page_is_one_file_without_external_addresses(tmp_path: Path) -> None:
    path = export(tmp_path / "map.html", POSITIONS, title="</title><script>alert(1)</script>")
    page = path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["map.html"]
    assert "<script>alert" not in page
    assert not re.search(r"""(src|href)=["']?https?:|@import|url\(https?:""", page)
    meta = json.loads(re.search(r'id="vicinal-meta">(.*?)</script>', page)[1])  # type: ignore[index]
    assert meta["title"] == "</title><script>alert(1)</script>"
    packed = re.search(r'id="vicinal-xy0">(.*?)</script>', page)[1]  # type: ignore[index]
    steps = np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype="<u2")
    assert np.array_equal(steps, quantized(POSITIONS, bounding_box(POSITIONS)).ravel())


def test_model_is_packed_as_its_embedding(tmp_path: Path) -> None:
    model = SimpleNamespace(embedding_=POSITIONS)
    assert pack(model, title="").sections == pack(POSITIONS, title="").sections


def test_page_of_a_million_points_is_below_25_megabytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = export(tmp_path / "m.html", rng.normal(size=(1_000_000, 2)), rng.integers(20, size=1_000_000))
    assert path.stat().st_size < 25_000_000


def column(packed: Packed, name: str) -> tuple[dict[str, Any], bytes]:
    (found,) = [(a, one) for a, one in enumerate(packed.meta["columns"]) if one["name"] == name]
    return found[1], zlib.decompress(packed.sections[f"column{found[0]}"])


def values(packed: Packed, name: str) -> list[float]:
    return np.frombuffer(column(packed, name)[1], dtype="<f4").tolist()


def test_classes_are_numbered_and_unlabeled_rows_come_last() -> None:
    packed = pack(POSITIONS, row_columns(labels=[None, "b", "a", "b"] * 10, label="kind"), title="")
    meta, codes = column(packed, "kind")
    assert (meta["kind"], meta["names"], meta["missing"]) == ("classes", ["a", "b"], 10)
    assert list(codes[:4]) == [2, 1, 0, 1]
    assert packed.meta["color"] == "kind"


def test_classes_are_in_natural_order() -> None:
    packed = pack(POSITIONS, row_columns(labels=["c10", "c2", "C1", "b"] * 10), title="")
    assert column(packed, "class")[0]["names"] == ["b", "C1", "c2", "c10"]
    packed = pack(POSITIONS, row_columns(labels=np.array([10.0, 2.0, np.nan, 3.0] * 10)), title="")
    assert column(packed, "class")[0]["names"] == ["2", "3", "10"]


@pytest.mark.parametrize(
    ("labels", "names", "missing"),
    [
        ([-1, 0, 1, 2], ["0", "1", "2"], 10),
        (["-1", "0", "1", "2"], ["0", "1", "2"], 10),
        ([-1.0, 5.0, float("nan"), 5.0], ["5"], 20),
        ([-1, 1, 1, -1], ["-1", "1"], 0),
        ([-1, -2, 0, 1], ["-2", "-1", "0", "1"], 0),
        (["-1", "a", "b", "c"], ["-1", "a", "b", "c"], 0),
    ],
)
def test_minus_one_is_unlabeled_among_whole_numbers(labels: list[Any], names: list[str], missing: int) -> None:
    meta, _ = column(pack(POSITIONS, row_columns(labels=np.array(labels * 10)), title=""), "class")
    assert (meta["names"], meta["missing"]) == (names, missing)


def test_many_classes_take_two_bytes() -> None:
    packed = pack(np.repeat(POSITIONS, 10, axis=0), row_columns(labels=[f"c{a}" for a in range(400)]), title="")
    meta, codes = column(packed, "class")
    assert (meta["wide"], len(codes)) == (True, 800)


def test_labels_with_fractions_or_many_numbers_are_values() -> None:
    measured = np.linspace(2.0, 4.0, 40)
    packed = pack(POSITIONS, row_columns(labels=measured, label="depth"), title="")
    meta, _ = column(packed, "depth")
    assert (meta["kind"], meta["low"], meta["high"], meta["missing"]) == ("values", 2.0, 4.0, 0)
    assert values(packed, "depth") == pytest.approx(measured, abs=1e-6)
    many = pack(np.repeat(POSITIONS, 3, axis=0), row_columns(labels=np.arange(120) + 1900, label="year"), title="")
    assert column(many, "year")[0]["kind"] == "values"
    few = pack(POSITIONS, row_columns(labels=np.arange(40) % 10), title="")
    assert column(few, "class")[0]["kind"] == "classes"


def test_values_that_are_not_finite_are_missing() -> None:
    numbers = np.arange(40, dtype=np.float64)
    numbers[[0, 7]] = [np.nan, np.inf]
    packed = pack(POSITIONS, row_columns(values=numbers), title="")
    meta, _ = column(packed, "value")
    assert (meta["low"], meta["high"], meta["missing"]) == (1.0, 39.0, 2)
    found = np.array(values(packed, "value"))
    assert np.isnan(found[[0, 7]]).all()
    assert np.isfinite(np.delete(found, [0, 7])).all()


def test_whole_numbers_are_exact() -> None:
    numbers = 123_456_789 + np.arange(40)
    packed = pack(POSITIONS, row_columns(values={"id": numbers, "share": np.arange(40) / 7}), title="")
    meta, content = column(packed, "id")
    assert meta["wide"]
    assert np.array_equal(np.frombuffer(content, dtype="<f8"), numbers)
    assert "wide" not in column(packed, "share")[0]


@pytest.mark.parametrize(("n", "width"), [(40, 1), (300, 2), (70_000, 3)])
def test_neighbors_take_as_few_bytes_as_they_need(n: int, width: int) -> None:
    near = np.random.default_rng(0).integers(n, size=(n, 3))
    packed = pack(np.zeros((n, 2)), title="", neighbors=near)
    assert packed.meta["neighbors"] == {"k": 3, "bytes": width}
    planes = np.frombuffer(zlib.decompress(packed.sections["neighbors"]), dtype=np.uint8).reshape(width, 3, n)
    found = sum(planes[byte].astype(np.int64) << (8 * byte) for byte in range(width))
    assert np.array_equal(found, near.T)
    assert "neighbors" not in pack(np.zeros((n, 2)), title="").sections


def test_table_of_neighbors_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vicinal.viewer.packing.MOST_NEIGHBOR_BYTES", 100)
    near = np.tile(np.arange(8), (40, 1))
    assert pack(POSITIONS, title="", neighbors=near).meta["neighbors"] == {"k": 2, "bytes": 1}


@pytest.mark.parametrize("unique", [False, True])
def test_neighbors_of_a_model_are_the_nearest_rows(unique: bool) -> None:
    rows = np.random.default_rng(0).normal(size=(80, 4)).astype(np.float32)
    rows[7] = rows[3]
    model = vicinal.UMAP(n_neighbors=6, n_epochs=0, unique=unique, random_state=0).fit(rows)
    found = neighbors_of(model, 4)
    distance = np.linalg.norm(rows[:, None] - rows[None], axis=-1)
    rank = np.argsort(distance, axis=1, kind="stable")
    others = [row for row in range(80) if row not in (3, 7) and not {3, 7} & set(rank[row, :6].tolist())]
    assert all(found[row].tolist() == rank[row, 1:5].tolist() for row in others)
    assert len(others) > 40
    assert found[7].tolist() == found[3].tolist()
    assert ((found >= 0) & (found < 80)).all()


@pytest.mark.parametrize("frame", [dict, pd.DataFrame, pl.DataFrame], ids=["mapping", "pandas", "polars"])
def test_several_columns_travel(frame: Any) -> None:
    hover = frame({"name": [f"r{a}" for a in range(40)], "size": [0.5, None] * 20, "kind": ["x", "y"] * 20})
    labels = frame({"a": [1, 2] * 20, "b": ["u", "v"] * 20})
    packed = pack(POSITIONS, row_columns(labels, frame({"v": np.arange(40) / 3}), hover, ids=range(100, 140)), title="")
    kinds = {one["name"]: one["kind"] for one in packed.meta["columns"]}
    assert kinds == {
        "a": "classes",
        "b": "classes",
        "v": "values",
        "name": "texts",
        "size": "values",
        "kind": "classes",
    }
    assert packed.meta["color"] == "a"
    assert pack(POSITIONS, row_columns(labels), title="", color_by="b").meta["color"] == "b"
    assert column(packed, "name")[1].decode().split("\x1e")[:2] == ["r0", "r1"]
    assert column(packed, "size")[0]["missing"] == 20
    assert texts(packed.sections["ids"]) == [str(a) for a in range(100, 140)]


def test_maps_in_space_have_three_coordinates() -> None:
    places = np.random.default_rng(0).normal(size=(40, 3))
    packed = pack(places, title="")
    assert len(packed.meta["maps"][0]["box"]) == 6
    steps = np.frombuffer(zlib.decompress(packed.sections["xy0"]), dtype="<u2")
    assert np.array_equal(steps, quantized(places, bounding_box(places)).ravel())


def test_compared_maps_are_aligned_and_packed_together(tmp_path: Path) -> None:
    turned = POSITIONS[:, ::-1] * 3 + 7
    page = compare(tmp_path / "two.html", {"one": POSITIONS, "other": turned}, np.arange(40) % 2).read_text()
    meta = json.loads(re.search(r'id="vicinal-meta">(.*?)</script>', page)[1])  # type: ignore[index]
    assert [one["name"] for one in meta["maps"]] == ["one", "other"]
    assert meta["maps"][0]["box"] == pytest.approx(meta["maps"][1]["box"], abs=1e-5)
    with pytest.raises(ValueError, match="at least two maps"):
        compare(tmp_path / "one.html", [POSITIONS])
    with pytest.raises(ValueError, match=r"'other' has shape \(20, 2\)"):
        compare(tmp_path / "one.html", {"one": POSITIONS, "other": POSITIONS[:20]})


def test_areas_of_a_map_are_named_by_their_words() -> None:
    rng = np.random.default_rng(0)
    topics = np.array([["cat", "dog", "bird", "fish", "mouse"], ["road", "wheel", "engine", "seat", "brake"]])
    codes = np.arange(1000) % 2
    notes = [" ".join(["a story about", *rng.choice(topics[code], 3)]) for code in codes]
    places = np.array([[-5, 0], [5, 0]])[codes] + rng.normal(size=(1000, 2))
    clusters = pack(places, row_columns(hover={"note": notes}), title="").meta["clusters"]
    coarse = [one for one in clusters if one["level"] == 0]
    assert len(coarse) == 2
    for one in coarse:
        words = set(one["name"].split(", "))
        assert words <= set(topics[int(one["place"][0] > 0)])
        assert len(words) == 3
    described = pack(places, row_columns(hover={"kind": np.array(["left", "right"])[codes]}), title="").meta["clusters"]
    assert {one["name"] for one in described} == {"left", "right"}
    numbers = pack(places, row_columns(hover={"height": codes + rng.normal(size=1000) / 9}), title="").meta["clusters"]
    assert {one["name"] for one in numbers} == {"low height", "high height"}
    assert pack(places, row_columns(labels=codes, hover={"note": notes}), title="").meta["clusters"] == []


@pytest.mark.parametrize("shape", [(40, 5, 4), (40, 5, 4, 3)])
def test_images_are_scaled_to_bytes_in_blocks(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]) -> None:
    monkeypatch.setattr("vicinal.viewer.packing.IMAGES_PER_BLOCK", 16)
    images = np.linspace(-1, 3, int(np.prod(shape))).reshape(shape)
    packed = pack(POSITIONS, images=images, title="")
    assert packed.meta["images"] == {"height": 5, "width": 4, "channels": 3 if len(shape) == 4 else 1, "block": 16}
    joined = b"".join(zlib.decompress(packed.sections[f"images{a}"]) for a in range(3))
    assert (len(joined), joined[0], joined[-1]) == (images.size, 0, 255)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [1, 2]}, "labels must be one-dimensional with 40"),
        ({"labels": {"a": [1]}}, "labels must be one-dimensional with 40"),
        ({"color_by": "other", "labels": [1] * 40}, "color_by must be one of class, got 'other'"),
        ({"values": ["a"] * 40}, "values must be 40 numbers"),
        ({"values": np.ma.masked_all(40)}, "value has masked values, first in row 0"),
        ({"labels": {"kind": np.ma.masked_all(40, "U1")}}, "kind has masked values"),
        ({"images": np.ma.masked_all((40, 2, 2))}, "images has masked values"),
        ({"hover": ["a"]}, "hover column 'text' must have 40"),
        ({"hover": {"x": ["a"]}}, "hover column 'x' must have 40"),
        ({"ids": ["a"]}, "ids must have 40"),
        ({"images": np.zeros((40, 3))}, "images must be an array"),
        ({"images": np.zeros((3, 2, 2))}, "images must have 40"),
        ({"images": np.full((40, 2, 2), np.nan)}, "images must be finite"),
        ({"theme": "pink"}, "theme must be one of"),
        ({"neighbors": True}, "a ndarray keeps no neighbors"),
        ({"neighbors": 0}, "neighbors must be at least 1, got 0"),
        ({"neighbors": np.full((40, 2), 40)}, "neighbors must be row numbers from 0 to 39; those of row 0 are not"),
        ({"neighbors": np.zeros((39, 2), dtype=int)}, r"neighbors must be row numbers of shape \(40, k\), got int64"),
    ],
)
def test_invalid_argument_is_named_and_nothing_is_written(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "map.html", POSITIONS, **arguments)
    with pytest.raises(ValueError, match="embedding must be"):
        export(tmp_path / "map.html", np.zeros((4, 4)))
    assert list(tmp_path.iterdir()) == []


def test_unwritable_path_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "map.html", Path("/proc/map.html")):
        with pytest.raises(OSError, match=r"/map\.html"):
            export(path, POSITIONS)


def test_bundle_is_small() -> None:
    static = Path(vicinal.__file__).parent / "viewer" / "static"
    for names in (("page.js", "page.css", "body.html", "page.html", "diff.js", "diff.css"), ("widget.js",)):
        content = b"".join((static / name).read_bytes() for name in names)
        assert len(gzip.compress(content)) < 400_000


def test_bundle_was_built_from_the_sources() -> None:
    stamp = Path(vicinal.__file__).parent / "viewer" / "static" / "sources.sha256"
    stated = dict(reversed(line.split("  ")) for line in stamp.read_text().splitlines())
    files = ["package.json", "package-lock.json", "vite.config.mjs"]
    web = ROOT / "web"
    inside = [path for folder in ("public", "src") for path in (web / folder).rglob("*") if path.is_file()]
    files += [path.relative_to(web).as_posix() for path in inside]
    found = {name: hashlib.sha256((web / name).read_bytes()).hexdigest() for name in files}
    assert stated == found, "run `make web` and commit src/vicinal/viewer/static"
