"""Pack the data of a page: a JSON description of the map and one compressed section per column.

A section is a zlib-compressed little-endian array, or UTF-8 texts (:mod:`vicinal.viewer.columns`). Positions are steps
of a 16-bit grid over the bounding box of the map, all x before all y (before all z): 65,535 steps are finer than any
screen, and a point takes four bytes. The decoder of this format is web/src/data.ts.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.annotations import coordinates, is_continuous, label_names, natural_key, unlabelled_rows
from vicinal.plot.look import OKABE_ITO, THEMES, VALUE_STOPS, palette
from vicinal.runtime.cached import GrowingArray
from vicinal.viewer.clusters import named_clusters
from vicinal.viewer.columns import (
    MOST_CLASSES,
    Columns,
    PageColumn,
    class_column,
    compressed,
    compressed_texts,
    number_column,
    page_columns,
    text_column,
    texts_of,
)

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


UNLABELLED = -1


class _Classes:
    """Class numbers in the order of appearance; a page lists classes in natural order."""

    def __init__(self, n: int) -> None:
        self.numbers: dict[str, int] = {}
        self.codes = GrowingArray(np.full(n, UNLABELLED, dtype=np.int64))

    def append(self, labels: NDArray[Any]) -> None:
        missing = unlabelled_rows(labels)
        names = iter(label_names(labels[~missing]).tolist())
        codes = [
            UNLABELLED if gap else self.numbers.setdefault(next(names), len(self.numbers)) for gap in missing.tolist()
        ]
        if len(self.numbers) > MOST_CLASSES:
            raise ValueError(f"labels must have at most {MOST_CLASSES} classes; use hover or ids")
        self.codes.append(np.array(codes, dtype=np.int64))

    def key(self, n: int) -> object:
        return len(self.numbers), bool((self.codes.view == UNLABELLED).any())

    def packed(self, name: str, begin: int, n: int) -> PageColumn:
        names = sorted(self.numbers, key=natural_key)
        ranks = np.full(len(names) + 1, len(names))
        for rank, one in enumerate(names):
            ranks[self.numbers[one]] = rank
        column = class_column(name, names, ranks[self.codes.view[begin:n]])
        missing = int((self.codes.view[:n] == UNLABELLED).sum())
        return PageColumn({**column.meta, "missing": missing}, column.section)


class _Values:
    """Numbers; those that a batch does not have are missing."""

    def __init__(self, n: int) -> None:
        self.numbers = GrowingArray(np.full(n, np.nan))

    def append(self, values: NDArray[Any]) -> None:
        known = values.dtype.kind in "fiub"
        self.numbers.append(values.astype(np.float64) if known else np.full(len(values), np.nan))

    def key(self, n: int) -> object:
        return self._limits(n)

    def _limits(self, n: int) -> tuple[float, float]:
        known = self.numbers.view[:n]
        known = known[np.isfinite(known)]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)

    def packed(self, name: str, begin: int, n: int) -> PageColumn:
        column = number_column(name, self.numbers.view[begin:n])
        low, high = self._limits(n)
        missing = int((~np.isfinite(self.numbers.view[:n])).sum())
        return PageColumn({**column.meta, "low": low, "high": high, "missing": missing}, column.section)


class _Texts:
    """Texts, empty if a batch does not have them."""

    def __init__(self, n: int) -> None:
        self.texts = [""] * n

    def append(self, values: NDArray[Any]) -> None:
        self.texts += texts_of("a column", values, len(values))

    def key(self, n: int) -> object:
        return None

    def packed(self, name: str, begin: int, n: int) -> PageColumn:
        return text_column(name, self.texts[begin:n])


class GrowingColumns:
    """Labels, ids and other columns of the rows so far; ``ids`` is the name of the id column, ``label`` of the labels.

    The first batch determines whether a column has classes, values or texts. A page lists classes in natural order, so
    that a new class changes the numbers of others; ``colours`` then changes.
    """

    def __init__(self, ids: str | None = None, label: str = "") -> None:
        self.n = 0
        self._ids = ids
        self._label = label or "class"
        self._columns: dict[str, _Classes | _Values | _Texts] = {}
        self._lock = threading.Lock()

    def append(self, n: int, labels: NDArray[Any] | None, extra: Mapping[str, NDArray[Any]]) -> None:
        """Append ``n`` rows with their labels and extra columns."""
        given = dict(extra) if labels is None else {self._label: labels, **extra}
        with self._lock:
            for name, values in given.items():
                if name not in self._columns:
                    self._columns[name] = self._kind(name, np.asarray(values))(self.n)
            for name, column in self._columns.items():
                column.append(np.asarray(given[name]) if name in given else np.full(n, None, dtype=object))
            self.n += n

    def _kind(self, name: str, values: NDArray[Any]) -> type[_Classes | _Values | _Texts]:
        if name == self._label:
            return _Values if is_continuous(values) else _Classes
        return _Values if name != self._ids and values.dtype.kind in "fiu" else _Texts

    def with_class(self, name: str, n: int) -> GrowingColumns:
        """Return a copy with ``n`` more rows that have a class of their own, ids derived from it, and no texts."""
        longer = GrowingColumns(self._ids, self._label)
        with self._lock:
            longer.n = self.n
            for one, column in self._columns.items():
                copied = type(column)(0)
                if isinstance(column, _Classes) and isinstance(copied, _Classes):
                    copied.numbers, copied.codes = dict(column.numbers), GrowingArray(column.codes.view.copy())
                elif isinstance(column, _Values) and isinstance(copied, _Values):
                    copied.numbers = GrowingArray(column.numbers.view.copy())
                elif isinstance(column, _Texts) and isinstance(copied, _Texts):
                    copied.texts = list(column.texts)
                longer._columns[one] = copied
        ids = {} if self._ids is None else {self._ids: np.array([f"{name}:{a}" for a in range(n)], dtype=object)}
        labels = (
            None if isinstance(longer._columns.get(self._label), _Values) else np.full(n, f"new: {name}", dtype=object)
        )
        longer.append(n, labels, ids)
        return longer

    def colours(self, n: int) -> object:
        """Return a key that stays equal as long as new rows do not change the colours of the first ``n`` rows."""
        with self._lock:
            return tuple((name, column.key(n)) for name, column in self._columns.items())

    def packed(self, begin: int, n: int) -> Packed:
        """Return the data of the rows from ``begin`` to ``n`` in the format of a page."""
        with self._lock:
            # the labels first: they colour the points
            names = sorted((name for name in self._columns if name != self._ids), key=lambda name: name != self._label)
            found = [self._columns[name].packed(name, begin, n) for name in names]
            sections = {f"column{a}": one.section for a, one in enumerate(found)}
            ids = None if self._ids is None else self._columns.get(self._ids)
            if isinstance(ids, _Texts):
                sections["ids"] = compressed_texts(ids.texts[begin:n])
            color = self._label if self._label in self._columns else None
            return Packed({"n": n, "columns": [one.meta for one in found], "color": color}, sections)
