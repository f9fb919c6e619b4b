"""Pack the data of a page: a JSON description of the map and one compressed section per column.

A section is a zlib-compressed little-endian array, or UTF-8 texts (:mod:`vicinal.viewer.columns`). Positions are steps
of a 16-bit grid over the bounding box of the map, all x before all y (before all z): 65,535 steps are finer than any
screen, and a point takes four bytes. The decoder of this format is web/src/data.ts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.annotations import coordinates
from vicinal.plot.palette import OKABE_ITO, THEMES, VALUE_STOPS, palette
from vicinal.viewer.clusters import named_clusters
from vicinal.viewer.columns import Columns, PageColumn, compressed, compressed_texts, page_columns, texts_of

FORMAT = 2
STEPS = 65535
# Above this number of classes the colours repeat: more cannot be distinguished.
DISTINCT = 96
# Pictures are decompressed one block at a time, when the first picture of the block is shown.
IMAGES_PER_BLOCK = 512
DIMENSIONS = 3

Box = tuple[float, ...]


@dataclass(frozen=True)
class Packed:
    """The content of a page: its description and its compressed sections."""

    meta: dict[str, Any]
    sections: dict[str, bytes]

    def html(self) -> str:
        """Return script elements that contain the data and run nothing."""
        # "<" is escaped, because an end tag in the JSON would end the element
        described = json.dumps(self.meta, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
        parts = [f'<script type="application/json" id="vicinal-meta">{described}</script>']
        for name, content in self.sections.items():
            text = base64.b64encode(content).decode("ascii")
            parts.append(f'<script type="text/plain" id="vicinal-{name}">{text}</script>')
        return "\n".join(parts)


def pack(
    embedding: Any,
    columns: Columns,
    *,
    title: str,
    label: str = "",
    theme: str = "auto",
    color_by: str | None = None,
    clusters: bool = True,
) -> Packed:
    """Check all inputs, then describe and compress them.

    ``embedding`` is one map, or a mapping of names to several maps of the same rows.
    """
    if theme not in ("auto", *THEMES):
        raise ValueError(f"theme must be one of auto, {', '.join(THEMES)}, got {theme!r}")
    maps = _maps(embedding)
    first = next(iter(maps.values()))
    n = len(first)
    found = page_columns(columns, n, label)
    ids = None if columns.ids is None else texts_of("ids", columns.ids, n)
    images = None if columns.images is None else _pictures(np.asarray(columns.images), n)
    boxes = {name: bounding_box(positions) for name, positions in maps.items()}
    sections = {f"xy{a}": compressed(quantized(maps[name], boxes[name])) for a, name in enumerate(maps)}
    sections |= {f"column{a}": one.section for a, one in enumerate(found)}
    if ids is not None:
        sections["ids"] = compressed_texts(ids)
    if images is not None:
        for a in range(0, n, IMAGES_PER_BLOCK):
            sections[f"images{a // IMAGES_PER_BLOCK}"] = compressed(images[a : a + IMAGES_PER_BLOCK])
    meta = {
        "version": FORMAT,
        "n": n,
        "title": title,
        "theme": theme,
        "maps": [{"name": name, "box": box} for name, box in boxes.items()],
        "columns": [one.meta for one in found],
        "color": _first_colour(found, columns, color_by),
        "palette": page_palette(),
        "clusters": named_clusters(first, columns, n) if clusters and first.shape[1] == 2 else [],
        "images": None if images is None else _described(images),
        "live": None,
    }
    return Packed(meta, sections)


def pack_empty(*, title: str) -> Packed:
    """Return the data of a page without rows, for a growing map."""
    empty = pack(np.zeros((1, 2)), Columns(), title=title)
    return Packed({**empty.meta, "n": 0}, {"xy0": compressed(np.empty(0, dtype="<u2"))})


def page_palette() -> dict[str, Any]:
    """Return the colours of a page: those of classes, of values, of missing entries and of plain points."""
    return {
        "light": palette(DISTINCT, "light"),
        "dark": palette(DISTINCT, "dark"),
        "values": VALUE_STOPS,
        "missing": {name: look.faint for name, look in THEMES.items()},
        "plain": OKABE_ITO[0],
    }


def bounding_box(positions: NDArray[Any]) -> Box:
    """Return the lowest coordinates, then the highest: left, bottom, right and top of a flat map."""
    return tuple(float(side) for side in (*positions.min(axis=0), *positions.max(axis=0)))


def quantized(positions: NDArray[Any], box: Box) -> NDArray[np.uint16]:
    """Return positions as grid steps [2 or 3, n]; positions outside the box are moved to its border."""
    width = len(box) // 2
    low, high = np.array(box[:width]), np.array(box[width:])
    extent = np.where(high > low, high - low, 1.0)
    steps = np.rint((positions - low) / extent * STEPS)
    return np.ascontiguousarray(np.clip(steps, 0, STEPS).astype("<u2").T)


def _maps(embedding: Any) -> dict[str, NDArray[np.float64]]:
    if not isinstance(embedding, Mapping):
        return {"": coordinates(embedding, DIMENSIONS)}
    if not embedding:
        raise ValueError("maps must contain at least one map")
    maps = {str(name): coordinates(one, DIMENSIONS) for name, one in embedding.items()}
    first_name, first = next(iter(maps.items()))
    for name, positions in maps.items():
        if positions.shape != first.shape:
            raise ValueError(
                f"maps must have the same rows and dimensions; {name!r} has shape {positions.shape}, "
                f"{first_name!r} has {first.shape}"
            )
    return maps


def _first_colour(found: Sequence[PageColumn], columns: Columns, asked: str | None) -> str | None:
    """Return the column that colours the points at first: the one asked for, or the first label or value."""
    able = [one.name for one in found if one.colours]
    if asked is not None:
        if asked not in able:
            raise ValueError(f"color_by must be one of {', '.join(able) or 'no column'}, got {asked!r}")
        return asked
    given = columns.labels is not None or columns.values is not None
    return able[0] if able and given else None


def _pictures(images: NDArray[Any], n: int) -> NDArray[np.uint8]:
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[3] not in (1, 3, 4) or images.dtype.kind not in "fiub" or 0 in images.shape:
        raise ValueError(
            "images must be an array of numbers [rows, height, width] or [rows, height, width, 1, 3 or 4], "
            f"got {images.dtype} of shape {images.shape}"
        )
    if len(images) != n:
        raise ValueError(f"images must have {n} entries, got {len(images)}")
    if images.dtype == np.uint8:
        return images
    low, high = float(images.min()), float(images.max())
    if not np.isfinite([low, high]).all():
        raise ValueError("images must be finite")
    return np.asarray((images - low) * (255.0 / (high - low) if high > low else 0.0)).astype(np.uint8)


def _described(images: NDArray[np.uint8]) -> dict[str, int]:
    _, height, width, channels = images.shape
    return {"height": height, "width": width, "channels": channels, "block": IMAGES_PER_BLOCK}
