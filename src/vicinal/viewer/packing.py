"""Pack the data of a page: a JSON description of the map and one compressed section per column.

A section is a zlib-compressed little-endian array, or UTF-8 texts that each end with U+001E. Positions are steps of a
16-bit grid over the bounding box of the map, all x before all y: 65,535 steps are finer than any screen, and a point
takes four bytes. The decoder of this format is web/src/data.ts.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.plot.annotations import Classes, classes_of, coordinates, is_continuous, scaled_values
from vicinal.plot.palette import OKABE_ITO, THEMES, VALUES_MAP, palette

FORMAT = 1
STEPS = 65535
SEPARATOR = "\x1e"
# Above this number of classes the colours repeat: more cannot be distinguished.
DISTINCT = 96
MOST_CLASSES = 65535
# Pictures are decompressed one block at a time, when the first picture of the block is shown.
IMAGES_PER_BLOCK = 512
VALUE_STEPS = 256
# zlib level: level 6 takes three times as long and saves less than 1 %, because noise does not compress.
COMPRESSION = 1

Box = tuple[float, float, float, float]


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


@dataclass(frozen=True)
class Columns:
    """Data of the rows of a map; each column is optional and has one entry per row.

    ``labels`` are classes, or continuous values if they are floats with fractions. ``hover`` is a data frame, a mapping
    of names to columns, or one column of texts. ``images`` is an array [rows, height, width] or [rows, height, width,
    channels]; types other than uint8 are scaled to 0..255. ``ids`` are used in selections instead of row numbers.
    """

    labels: ArrayLike | None = None
    values: ArrayLike | None = None
    hover: Any = None
    images: ArrayLike | None = None
    ids: Sequence[Any] | None = None


def pack(embedding: Any, columns: Columns, *, title: str, label: str = "", theme: str = "auto") -> Packed:
    """Check all inputs, then describe and compress them."""
    if theme not in ("auto", *THEMES):
        raise ValueError(f"theme must be one of auto, {', '.join(THEMES)}, got {theme!r}")
    positions = coordinates(embedding)
    n = len(positions)
    classes, values = _colouring(columns, n)
    fields = _fields(columns.hover, n)
    ids = None if columns.ids is None else texts_of("ids", columns.ids, n)
    images = None if columns.images is None else _pictures(np.asarray(columns.images), n)
    box = bounding_box(positions)
    sections = {"xy": compressed(quantized(positions, box))}
    if classes is not None:
        wide = len(classes.names) + int(not classes.known.all()) > 256
        sections["codes"] = compressed(classes.codes.astype("<u2" if wide else np.uint8))
    if values is not None:
        # values that are not finite become 0, the lowest value: float textures cannot rely on NaN
        sections["values"] = compressed(np.nan_to_num(values[0], nan=0.0).astype("<f4"))
    if ids is not None:
        sections["ids"] = compressed_texts(ids)
    sections |= {f"field{a}": compressed_texts(texts) for a, texts in enumerate(fields.values())}
    if images is not None:
        for a in range(0, n, IMAGES_PER_BLOCK):
            sections[f"images{a // IMAGES_PER_BLOCK}"] = compressed(images[a : a + IMAGES_PER_BLOCK])
    meta = {
        "version": FORMAT,
        "n": n,
        "title": title,
        "theme": theme,
        "box": box,
        "label": label,
        **colouring_meta(
            () if classes is None else classes.names,
            unlabelled=classes is not None and not bool(classes.known.all()),
            limits=None if values is None else values[1],
        ),
        "fields": list(fields),
        "images": None if images is None else _described(images),
        "live": None,
    }
    return Packed(meta, sections)


def pack_empty(*, title: str, label: str = "") -> Packed:
    """Return the data of a page without rows, for a growing map."""
    empty = pack(np.zeros((1, 2)), Columns(), title=title, label=label)
    return Packed({**empty.meta, "n": 0}, {"xy": compressed(np.empty(0, dtype="<u2"))})


def colouring_meta(
    names: Sequence[str], *, unlabelled: bool = False, limits: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Describe the colours of a page: those of classes, or those of values between limits."""
    return {
        "categories": list(names),
        "unlabelled": unlabelled,
        "palette": _colours(len(names), unlabelled, limits is not None),
        "values": None if limits is None else {"low": limits[0], "high": limits[1]},
    }


def bounding_box(positions: NDArray[Any]) -> Box:
    """Return left, bottom, right and top."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def quantized(positions: NDArray[Any], box: Box) -> NDArray[np.uint16]:
    """Return positions as grid steps [2, n]; positions outside the box are moved to its border."""
    low, high = np.array(box[:2]), np.array(box[2:])
    extent = np.where(high > low, high - low, 1.0)
    steps = np.rint((positions - low) / extent * STEPS)
    return np.ascontiguousarray(np.clip(steps, 0, STEPS).astype("<u2").T)


def _colouring(
    columns: Columns, n: int
) -> tuple[Classes | None, tuple[NDArray[np.float64], tuple[float, float]] | None]:
    labels, values = columns.labels, columns.values
    if labels is not None and values is not None:
        raise ValueError("labels and values cannot be used together: give only one to colour the points")
    if labels is not None and is_continuous(np.asarray(labels)):
        labels, values = None, labels
    if values is not None:
        scale, limits = scaled_values(values, n)
        return None, None if limits is None else (scale, limits)
    if labels is None:
        return None, None
    classes = classes_of(labels, n)
    if len(classes.names) > MOST_CLASSES:
        raise ValueError(
            f"labels must have at most {MOST_CLASSES} classes, got {len(classes.names)}; use hover or ids for texts"
        )
    return classes, None


def _colours(classes: int, unlabelled: bool, values: bool) -> dict[str, list[str]]:
    colours: dict[str, list[str]] = {"values": []}
    if values:
        import matplotlib
        from matplotlib.colors import to_hex

        colours["values"] = [to_hex(matplotlib.colormaps[VALUES_MAP](a)) for a in np.linspace(0, 1, VALUE_STEPS)]
    for name, look in THEMES.items():
        if not classes and not unlabelled:
            colours[name] = [OKABE_ITO[0]]
            continue
        distinct = palette(min(classes, DISTINCT), name)
        repeated = [distinct[a % DISTINCT] for a in range(classes)]
        colours[name] = [*repeated, look.faint] if unlabelled else repeated
    return colours


def _fields(hover: Any, n: int) -> dict[str, list[str]]:
    if hover is None:
        return {}
    if hasattr(hover, "columns"):
        named = {str(name): hover[name] for name in hover.columns}
    elif isinstance(hover, Mapping):
        named = {str(name): column for name, column in hover.items()}
    else:
        named = {"text": hover}
    return {name: texts_of(f"hover column {name!r}", column, n) for name, column in named.items()}


def texts_of(what: str, column: Any, n: int) -> list[str]:
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    if len(values) != n:
        raise ValueError(f"{what} must have {n} entries, got {len(values)}")
    return [_text(value) for value in values]


def _text(value: Any) -> str:
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace(SEPARATOR, " ")


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


def compressed(array: NDArray[Any]) -> bytes:
    return zlib.compress(array.tobytes(), COMPRESSION)


def compressed_texts(texts: Iterable[str]) -> bytes:
    joined = "".join(text + SEPARATOR for text in texts)
    return zlib.compress(joined.encode("utf-8", errors="replace"), COMPRESSION)
