"""Pack the data of a page: a JSON description of the map and one compressed section per column.

A section is a zlib-compressed little-endian array, or UTF-8 texts. Positions are steps of a 16-bit grid over the
bounding box of the map, all x before all y (before all z): 65,535 steps are finer than any screen, and a point takes
four bytes. Classes are codes into the list of names, the last code marks unlabeled rows; values are float32 numbers,
float64 if only these hold their integers, NaN if missing; texts each end with U+001E. The neighbors of the rows are row
numbers in as few bytes as they need: the low bytes of all first neighbors, of all second ones, and so on, then the
higher bytes. The decoder of this format is web/src/data.ts.
"""

from __future__ import annotations

import base64
import copy
import json
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators.clustering import named_clusters
from vicinal.files.data_table import Column, Role, values_of
from vicinal.plot.annotations import check_values, classes_of, coordinates, is_continuous, natural_key
from vicinal.plot.look import OKABE_ITO, THEMES, VALUE_STOPS, palette
from vicinal.runtime.arrow import read_table
from vicinal.runtime.cached import GrowingArray
from vicinal.runtime.inputs import as_array, reads_arrow

FORMAT = 2
STEPS = 65535
# Above this number of classes the colors repeat: more cannot be distinguished.
DISTINCT = 96
# Pictures are decompressed one block at a time, when the first picture of the block is shown.
IMAGES_PER_BLOCK = 512
DIMENSIONS = 3
SEPARATOR = "\x1e"
MOST_CLASSES = 65535
# Texts with at most this many distinct values, each used twice on average, are classes.
MOST_INFERRED = 64
# zlib level: level 6 takes three times as long and saves less than 1 %, because noise does not compress.
COMPRESSION = 1
# Neighbors of a row in a table that a page asks for, and the largest size of the table before compression.
NEIGHBORS, MOST_NEIGHBOR_BYTES = 8, 16 * 2**20
# The order of columns on a page: those that are meant to color the points first.
ORDER = (Role.LABEL, Role.VALUE, Role.DISPLAY, Role.FEATURE)

# The lowest coordinates, then the highest: [2, dimensions].
Box = NDArray[np.float64]


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


def row_columns(
    labels: Any = None, values: Any = None, hover: Any = None, ids: Any = None, label: str = ""
) -> list[Column]:
    """Return the data of the rows of a map, as :func:`vicinal.viewer.export` takes them, as columns."""
    single = "value" if labels is not None and values is not None else label or "value"
    found = [Column(name, Role.LABEL, _values(one, name)) for name, one in _named(labels, label or "class")]
    found += [Column(name, Role.VALUE, _values(one, name)) for name, one in _named(values, single)]
    found += [Column(name, Role.DISPLAY, _objects(one)) for name, one in _named(hover, "text")]
    named = [] if ids is None else [("id", one) for _, one in _named(ids, "id")]
    return found + [Column(name, Role.ID, _objects(one)) for name, one in named]


def _named(given: Any, name: str) -> list[tuple[str, Any]]:
    """Return the columns of a data frame or a mapping with their names; a single column gets ``name``."""
    if given is None:
        return []
    if reads_arrow(given):
        return [(one or name, column) for one, column in read_table(given)]
    if hasattr(given, "columns"):
        return [(str(one), given[one]) for one in given.columns]
    return [(str(one), column) for one, column in given.items()] if isinstance(given, Mapping) else [(name, given)]


def _values(given: Any, name: str) -> NDArray[Any]:
    """Return a column as an array; masked values are refused, dates are shown."""
    return as_array(given, name, text=True) if isinstance(given, np.ma.MaskedArray) else np.asarray(given)


def _objects(given: Any) -> NDArray[Any]:
    """Return any sequence as an array; numbers of an array stay numbers, other entries are the Python objects."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "fiub" and given.ndim == 1:
        return given
    convert = getattr(given, "tolist", None) or getattr(given, "to_list", None)
    entries = list(given if convert is None else convert())
    return np.fromiter(entries, dtype=object, count=len(entries))


def pack(
    embedding: Any,
    columns: Sequence[Column] | PageColumns = (),
    *,
    images: Any = None,
    title: str,
    theme: str = "auto",
    color_by: str | None = None,
    clusters: bool = True,
    about: str = "",
    neighbors: Any = None,
    one_box: bool = False,
) -> Packed:
    """Check all inputs, then describe and compress them.

    ``embedding`` is one map, or a mapping of names to several maps of the same rows. ``images`` is an array [rows,
    height, width] or [rows, height, width, channels]; types other than uint8 are scaled to 0..255. Clusters are named
    only by columns that are not in the format of a page yet. ``about`` says what the columns of a file are used for.
    ``neighbors`` is a table of row numbers, the nearest first. With ``one_box`` several maps have the same coordinates.
    """
    maps = _maps(embedding)
    first = next(iter(maps.values()))
    n, named = len(first), []
    if isinstance(columns, PageColumns):
        shown = columns
    else:
        shown = PageColumns.of(columns, n)
        fitted = embedding if hasattr(embedding, "embedding_") else first
        named = named_clusters(fitted, columns) if clusters else []
    found = shown.packed(0, n)
    if theme not in ("auto", *THEMES):
        raise ValueError(f"theme must be one of auto, {', '.join(THEMES)}, got {theme!r}")
    able = [one["name"] for one in found.meta["columns"] if one["kind"] != "texts"]
    if color_by is not None and color_by not in able:
        raise ValueError(f"color_by must be one of {', '.join(able) or 'no column'}, got {color_by!r}")
    boxes = {name: bounding_box(positions) for name, positions in maps.items()}
    if one_box:
        boxes = dict.fromkeys(maps, bounding_box(np.concatenate(list(boxes.values()))))
    sections = {f"xy{a}": compressed(quantized(maps[name], boxes[name])) for a, name in enumerate(maps)}
    sections |= found.sections
    described = None
    if images is not None:
        pictures = _pictures(as_array(images, "images"), n)
        described = dict(zip(("height", "width", "channels"), pictures.shape[1:], strict=True))
        described["block"] = IMAGES_PER_BLOCK
        for a in range(0, n, IMAGES_PER_BLOCK):
            sections[f"images{a // IMAGES_PER_BLOCK}"] = compressed(pictures[a : a + IMAGES_PER_BLOCK])
    near = None
    if neighbors is not None:
        near, sections["neighbors"] = _packed_neighbors(as_array(neighbors, "neighbors"), n)
    meta = {
        "version": FORMAT,
        "n": n,
        "title": title,
        "about": about,
        "theme": theme,
        "maps": [{"name": name, "box": box.ravel().tolist()} for name, box in boxes.items()],
        "columns": found.meta["columns"],
        "color": color_by or found.meta["color"],
        "palette": {
            "light": palette(DISTINCT, "light"),
            "dark": palette(DISTINCT, "dark"),
            "values": VALUE_STOPS,
            "missing": {name: look.faint for name, look in THEMES.items()},
            "plain": OKABE_ITO[0],
        },
        "clusters": named,
        "images": described,
        "neighbors": near,
        "live": None,
    }
    return Packed(meta, sections)


def bounding_box(positions: NDArray[Any]) -> Box:
    """Return the lowest and the highest coordinates."""
    return np.stack([positions.min(axis=0), positions.max(axis=0)]).astype(np.float64)


def quantized(positions: NDArray[Any], box: Box) -> NDArray[np.uint16]:
    """Return positions as grid steps [2 or 3, n]; positions outside the box are moved to its border."""
    low, high = box
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


def has_neighbors(model: Any) -> bool:
    """Return whether a fitted model keeps the neighbors of its rows."""
    return getattr(getattr(model, "map_", None), "neighbors", None) is not None


def neighbors_of(model: Any, k: int = NEIGHBORS) -> NDArray[np.int64]:
    """Return the nearest rows in the data of every row of a fitted model [rows, k], without the row itself."""
    if not has_neighbors(model):
        raise ValueError(f"neighbors must be a table of row numbers: a {type(model).__name__} keeps no neighbors")
    fitted = model.map_
    index = np.asarray(fitted.neighbors.index)[:, 1 : k + 1].astype(np.int64)
    index = np.where(index < 0, np.arange(len(index))[:, None], index)
    if fitted.laid_out is not None:
        index = fitted.laid_out[index]
    position = fitted.selection.position
    rows = np.arange(len(position))
    # a row without a place of its own, and one whose neighbor is missing, has itself as neighbor
    found = np.where(position[:, None] >= 0, index[position], rows[:, None])
    return np.asarray(found)


def _packed_neighbors(neighbors: NDArray[Any], n: int) -> tuple[dict[str, int], bytes]:
    """Return a table of neighbors in the format of a page, with fewer neighbors if it would be too large."""
    if neighbors.ndim != 2 or len(neighbors) != n or neighbors.dtype.kind not in "iu" or neighbors.shape[1] == 0:
        raise ValueError(
            f"neighbors must be row numbers of shape ({n}, k), got {neighbors.dtype} of shape {neighbors.shape}"
        )
    bad = np.flatnonzero(((neighbors < 0) | (neighbors >= n)).any(axis=1))
    if len(bad):
        raise ValueError(f"neighbors must be row numbers from 0 to {n - 1}; those of row {bad[0]} are not")
    width = row_bytes(n)
    k = min(neighbors.shape[1], max(1, MOST_NEIGHBOR_BYTES // (n * width)))
    return {"k": k, "bytes": width}, compressed(byte_planes(neighbors[:, :k], width))


def row_bytes(n: int) -> int:
    """Return the bytes that the number of one of ``n`` rows needs."""
    return max(1, (int(n - 1).bit_length() + 7) // 8)


def byte_planes(numbers: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Return whole numbers [rows, k] byte by byte, the lowest bytes first: [width, k, rows]."""
    turned = np.ascontiguousarray(numbers.T, dtype="<u4")
    return turned.view(np.uint8).reshape(*turned.shape, 4)[..., :width].transpose(2, 0, 1)


UNLABELED = -1


class Classes:
    """Classes, numbered in the order of appearance; a page lists them in natural order."""

    kind: Literal["classes"] = "classes"

    def __init__(self, n: int = 0, colors: Mapping[str, str] | None = None) -> None:
        self.numbers: dict[str, int] = {}
        self.own_colors = dict(colors or {})
        self.codes = GrowingArray(np.full(n, UNLABELED, dtype=np.int64))

    def append(self, labels: NDArray[Any]) -> None:
        names, codes = classes_of(labels, len(labels))
        numbers = [self.numbers.setdefault(name, len(self.numbers)) for name in names]
        if len(self.numbers) > MOST_CLASSES:
            raise ValueError(
                f"labels must have at most {MOST_CLASSES} classes, got {len(self.numbers)}; use hover or ids for texts"
            )
        self.codes.append(np.array([*numbers, UNLABELED], dtype=np.int64)[codes])

    def key(self, n: int) -> object:
        return len(self.numbers), bool((self.codes.view == UNLABELED).any())

    def packed(self, begin: int, n: int) -> tuple[dict[str, Any], bytes]:
        names = sorted(self.numbers, key=lambda name: (natural_key(name), name))
        ranks = np.full(len(names) + 1, len(names))
        for rank, one in enumerate(names):
            ranks[self.numbers[one]] = rank
        wide = len(names) >= 256
        missing = int((self.codes.view[:n] == UNLABELED).sum())
        codes = ranks[self.codes.view[begin:n]].astype("<u2" if wide else np.uint8)
        described: dict[str, Any] = {"names": names, "missing": missing, "wide": wide}
        if self.own_colors:
            described["colors"] = [self.own_colors.get(name) for name in names]
        return described, compressed(codes)


class Values:
    """Numbers, float32 if these hold all that are whole; those beyond the range of float32 are missing."""

    kind: Literal["values"] = "values"

    def __init__(self, n: int = 0) -> None:
        self.numbers = GrowingArray(np.full(n, np.nan, dtype="<f8"))

    def append(self, values: NDArray[Any]) -> None:
        stored = values.astype("<f8") if values.dtype.kind in "fiub" else np.full(len(values), np.nan)
        with np.errstate(over="ignore"):
            self.numbers.append(np.where(np.isfinite(stored.astype("<f4")), stored, np.nan))

    def key(self, n: int) -> tuple[float, float]:
        known = self.numbers.view[:n]
        known = known[np.isfinite(known)]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)

    def packed(self, begin: int, n: int) -> tuple[dict[str, Any], bytes]:
        low, high = self.key(n)
        numbers = self.numbers.view[:n]
        short = numbers.astype("<f4")
        wide = bool(((short != numbers) & (numbers == np.rint(numbers))).any())
        described: dict[str, Any] = {"low": low, "high": high, "missing": int(np.isnan(numbers).sum())}
        return described | ({"wide": True} if wide else {}), compressed((numbers if wide else short)[begin:n])


class Texts:
    """Texts, empty if missing: they are searched and shown, but color no points."""

    kind: Literal["texts"] = "texts"

    def __init__(self, n: int = 0) -> None:
        self.texts = [""] * n

    def append(self, values: NDArray[Any]) -> None:
        self.texts += [text_of(value) for value in values.tolist()]

    def key(self, n: int) -> object:
        return None

    def packed(self, begin: int, n: int) -> tuple[dict[str, Any], bytes]:
        joined = "".join(text + SEPARATOR for text in self.texts[begin:n])
        return {}, zlib.compress(joined.encode("utf-8", errors="replace"), COMPRESSION)


Encoder = Classes | Values | Texts


def encode(column: Column, n: int) -> Encoder:
    """Return the ``n`` rows of a complete column as a page shows them: classes, values or texts by role and content."""
    values = np.asarray(column.values)
    if column.role is Role.VALUE:
        check_values(values, n)
    elif column.role is Role.LABEL and values.shape != (n,):
        raise ValueError(f"labels must be one-dimensional with {n} entries, got shape {values.shape}")
    elif len(values) != n:
        what = "ids" if column.role is Role.ID else f"hover column {column.name!r}"
        raise ValueError(f"{what} must have {n} entries, got {len(values)}")
    found: Encoder
    if column.role in (Role.DISPLAY, Role.FEATURE):
        found, values = _inferred(values)
    elif column.role is Role.ID:
        found = Texts()
    else:
        found = Values() if column.role is Role.VALUE or is_continuous(values) else Classes()
    if isinstance(found, Classes):
        found = Classes(colors=column.colors)
    found.append(values)
    return found


def _inferred(values: NDArray[Any]) -> tuple[Encoder, NDArray[Any]]:
    """Return numbers as values, texts that repeat as classes, and other texts as texts."""
    if values.dtype.kind in "fiu" and not (values.dtype.kind == "f" and np.isnan(values).all()):
        return Values(), values
    entries = values.tolist()
    known = [value for value in entries if value is not None and value == value]
    if known and all(isinstance(value, bool | np.bool_) for value in known):
        return Classes(), np.array([None if v is None else str(v).lower() for v in entries], dtype=object)
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return Values(), np.array([np.nan if v is None else v for v in entries], dtype=np.float64)
    if known and len({text_of(value) for value in known}) <= min(MOST_INFERRED, len(known) / 2):
        return Classes(), np.array([None if v is None or v != v else text_of(v) for v in entries], dtype=object)
    return Texts(), values


class PageColumns:
    """The columns of the rows so far as a page shows them, complete or growing.

    The first batch of a growing column determines whether it has classes, values or texts. A page lists classes in
    natural order, so that a new class changes the numbers of others; ``colors`` then changes.
    """

    def __init__(self) -> None:
        self.n = 0
        self._ids: Encoder | None = None
        self._columns: dict[str, tuple[Role, Encoder]] = {}
        self._lock = threading.Lock()

    @classmethod
    def of(cls, columns: Iterable[Column], n: int) -> PageColumns:
        """Return complete columns; of two columns with one name, values come before labels, and both before others."""
        made = cls()
        made.n = n
        given = [column for column in columns if column.values is not None]
        for column in sorted((one for one in given if one.role in ORDER), key=lambda one: ORDER.index(one.role)):
            if column.role in (Role.LABEL, Role.VALUE) or column.name not in made._columns:
                made._columns[column.name] = (column.role, encode(column, n))
        for column in given:
            if column.role is Role.ID:
                made._ids = encode(column, n)
        return made

    def append(self, n: int, columns: Iterable[Column]) -> None:
        """Append ``n`` rows with those of their columns that have values."""
        given = [column for column in columns if column.values is not None]
        shown = {column.name: column for column in given if column.role in ORDER}
        ids = values_of(given, Role.ID)
        with self._lock:
            for name, column in shown.items():
                if name not in self._columns:
                    self._columns[name] = (column.role, _growing(column, self.n))
            if ids is not None and self._ids is None:
                self._ids = Texts(self.n)
            for name, (_, encoder) in self._columns.items():
                encoder.append(np.asarray(shown[name].values) if name in shown else np.full(n, None, dtype=object))
            if self._ids is not None:
                self._ids.append(np.full(n, None, dtype=object) if ids is None else ids)
            self.n += n

    def with_new_rows(self, name: str, n: int) -> PageColumns:
        """Return a copy with ``n`` more rows, which have a class of their own, numbered ids and no other data."""
        longer = PageColumns()
        with self._lock:
            longer.n = self.n
            for one, (role, shown) in self._columns.items():
                # labels that are a scale cannot have the class of the new rows
                scale = role is Role.LABEL and shown.kind == "values"
                longer._columns[one] = (Role.VALUE if scale else role, copy.deepcopy(shown))
            longer._ids = copy.deepcopy(self._ids)
        classes = [one for one, (role, _) in longer._columns.items() if role is Role.LABEL]
        new = np.full(n, f"new: {name}", dtype=object)
        ids = np.array([f"{name}:{a}" for a in range(n)], dtype=object)
        if longer._ids is None:
            longer._ids = Texts()
            longer._ids.append(np.arange(longer.n))
        longer.append(n, [Column("id", Role.ID, ids), *(Column(one, Role.LABEL, new) for one in classes or ["rows"])])
        return longer

    def colors(self, n: int) -> object:
        """Return a key that stays equal as long as new rows do not change the colors of the first ``n`` rows."""
        with self._lock:
            return tuple((name, encoder.key(n)) for name, (_, encoder) in self._columns.items())

    def packed(self, begin: int, n: int) -> Packed:
        """Return the data of the rows from ``begin`` to ``n`` in the format of a page."""
        with self._lock:
            names = sorted(self._columns, key=lambda name: ORDER.index(self._columns[name][0]))
            metas, sections, color = [], {}, None
            for a, name in enumerate(names):
                role, encoder = self._columns[name]
                described, sections[f"column{a}"] = encoder.packed(begin, n)
                metas.append({"name": name, "kind": encoder.kind, **described})
                if color is None and role in (Role.LABEL, Role.VALUE) and encoder.kind != "texts":
                    color = name
            if self._ids is not None:
                sections["ids"] = self._ids.packed(begin, n)[1]
            return Packed({"n": n, "columns": metas, "color": color}, sections)


def _growing(column: Column, n: int) -> Encoder:
    """Return a column whose first batch is given, with ``n`` missing rows before it."""
    values = np.asarray(column.values)
    if column.role is Role.LABEL:
        return Values(n) if is_continuous(values) else Classes(n)
    return Values(n) if values.dtype.kind in "fiu" else Texts(n)


def text_of(value: Any) -> str:
    """Return a value as text without separators; missing values are empty."""
    if value is None or value != value:
        return ""
    return f"{value:.15g}" if isinstance(value, float) else str(value).replace(SEPARATOR, " ")


def compressed(array: NDArray[Any]) -> bytes:
    """Compress the bytes of an array."""
    return zlib.compress(array.tobytes(), COMPRESSION)
