"""vicinal.viewer.export: the packed content of a page, and errors for invalid input."""

from __future__ import annotations

import base64
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
from vicinal.viewer import export
from vicinal.viewer.packing import Columns, bounding_box, pack, quantized

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
    packed = re.search(r'id="vicinal-xy">(.*?)</script>', page)[1]  # type: ignore[index]
    steps = np.frombuffer(zlib.decompress(base64.b64decode(packed)), dtype="<u2")
    assert np.array_equal(steps, quantized(POSITIONS, bounding_box(POSITIONS)).ravel())


def test_model_is_packed_as_its_embedding(tmp_path: Path) -> None:
    model = SimpleNamespace(embedding_=POSITIONS)
    assert pack(model, Columns(), title="").sections == pack(POSITIONS, Columns(), title="").sections


def test_page_of_a_million_points_is_below_25_megabytes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    path = export(tmp_path / "m.html", rng.normal(size=(1_000_000, 2)), rng.integers(20, size=1_000_000))
    assert path.stat().st_size < 25_000_000


def test_classes_are_numbered_and_unlabelled_rows_come_last() -> None:
    packed = pack(POSITIONS, Columns(labels=[None, "b", "a", "b"] * 10), title="")
    assert packed.meta["categories"] == ["a", "b"]
    assert packed.meta["unlabelled"]
    assert len(packed.meta["palette"]["light"]) == 3
    assert list(zlib.decompress(packed.sections["codes"])[:4]) == [2, 1, 0, 1]


def test_many_classes_take_two_bytes_and_repeat_colours() -> None:
    packed = pack(np.repeat(POSITIONS, 10, axis=0), Columns(labels=np.arange(400)), title="")
    assert len(zlib.decompress(packed.sections["codes"])) == 800
    light = packed.meta["palette"]["light"]
    assert len(light) == 400
    assert light[0] == light[96]


def test_labels_with_fractions_are_values() -> None:
    measured = np.linspace(2.0, 4.0, 40)
    packed = pack(POSITIONS, Columns(labels=measured), title="")
    assert packed.meta["values"] == {"low": 2.0, "high": 4.0}
    found = np.frombuffer(zlib.decompress(packed.sections["values"]), dtype="<f4")
    assert found == pytest.approx((measured - 2) / 2, abs=1e-6)
    assert len(packed.meta["palette"]["values"]) == 256


@pytest.mark.parametrize(
    "hover",
    [
        {"name": [f"r{a}" for a in range(40)], "size": [0.5, None] * 20},
        pd.DataFrame({"name": [f"r{a}" for a in range(40)], "size": [0.5, None] * 20}),
        pl.DataFrame({"name": [f"r{a}" for a in range(40)], "size": [0.5, None] * 20}),
    ],
    ids=["mapping", "pandas", "polars"],
)
def test_hover_accepts_mappings_and_data_frames(hover: Any) -> None:
    packed = pack(POSITIONS, Columns(hover=hover, ids=range(100, 140)), title="")
    assert packed.meta["fields"] == ["name", "size"]
    assert texts(packed.sections["field0"]) == [f"r{a}" for a in range(40)]
    assert texts(packed.sections["field1"]) == ["0.5", ""] * 20
    assert texts(packed.sections["ids"]) == [str(a) for a in range(100, 140)]


@pytest.mark.parametrize("shape", [(40, 5, 4), (40, 5, 4, 3)])
def test_images_are_scaled_to_bytes_in_blocks(monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...]) -> None:
    monkeypatch.setattr("vicinal.viewer.packing.IMAGES_PER_BLOCK", 16)
    images = np.linspace(-1, 3, int(np.prod(shape))).reshape(shape)
    packed = pack(POSITIONS, Columns(images=images), title="")
    assert packed.meta["images"] == {"height": 5, "width": 4, "channels": 3 if len(shape) == 4 else 1, "block": 16}
    joined = b"".join(zlib.decompress(packed.sections[f"images{a}"]) for a in range(3))
    assert (len(joined), joined[0], joined[-1]) == (images.size, 0, 255)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"labels": [1, 2]}, "labels must be one-dimensional with 40"),
        ({"labels": [1] * 40, "values": [1] * 40}, "labels and values"),
        ({"values": ["a"] * 40}, "values must be 40 numbers"),
        ({"hover": ["a"]}, "hover column 'text' must have 40"),
        ({"hover": {"x": ["a"]}}, "hover column 'x' must have 40"),
        ({"ids": ["a"]}, "ids must have 40"),
        ({"images": np.zeros((40, 3))}, "images must be an array"),
        ({"images": np.zeros((3, 2, 2))}, "images must have 40"),
        ({"images": np.full((40, 2, 2), np.nan)}, "images must be finite"),
        ({"theme": "pink"}, "theme must be one of"),
    ],
)
def test_invalid_argument_is_named_and_nothing_is_written(
    tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "map.html", POSITIONS, **arguments)
    with pytest.raises(ValueError, match="embedding must be"):
        export(tmp_path / "map.html", np.zeros((4, 3)))
    assert list(tmp_path.iterdir()) == []


def test_bundle_was_built_from_the_sources() -> None:
    stamp = Path(vicinal.__file__).parent / "viewer" / "static" / "sources.sha256"
    stated = dict(reversed(line.split("  ")) for line in stamp.read_text().splitlines())
    files = ["package.json", "package-lock.json", "vite.config.mjs"]
    files += [f"{folder}/{path.name}" for folder in ("public", "src") for path in (ROOT / "web" / folder).iterdir()]
    found = {name: hashlib.sha256((ROOT / "web" / name).read_bytes()).hexdigest() for name in files}
    assert stated == found, "run `make web` and commit src/vicinal/viewer/static"
