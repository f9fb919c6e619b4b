"""Columns of a page: classes, values or texts, one entry per row.

Each column is described in the page's JSON and has one section. Classes are codes into the list of names, the last code
marks unlabelled rows; values are float32 numbers, NaN if missing; texts each end with U+001E.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.annotations import classes_of, is_continuous

SEPARATOR = "\x1e"
MOST_CLASSES = 65535
# Texts with at most this many distinct values, each used twice on average, are classes.
MOST_INFERRED = 64
# zlib level: level 6 takes three times as long and saves less than 1 %, because noise does not compress.
COMPRESSION = 1


@dataclass(frozen=True)
class Columns:
    """Data of the rows of a map; each column is optional and has one entry per row.

    ``labels`` are classes, or values if they are numbers with fractions or with many distinct values; ``values`` are
    numbers. Both are one column, or a data frame or mapping of names to columns. ``hover`` is a data frame, a mapping
    of names to columns, or one column of texts; its columns are classes, values or texts by their content. ``images``
    is an array [rows, height, width] or [rows, height, width, channels]; types other than uint8 are scaled to 0..255.
    ``ids`` are used in selections instead of row numbers.
    """

    labels: Any = None
    values: Any = None
    hover: Any = None
    images: Any = None
    ids: Sequence[Any] | None = None


@dataclass(frozen=True)
class PageColumn:
    """A column in the format of a page: its description and its section."""

    meta: dict[str, Any]
    section: bytes

    @property
    def name(self) -> str:
        return str(self.meta["name"])

    @property
    def colours(self) -> bool:
        """Whether points can be coloured by this column."""
        return bool(self.meta["kind"] != "texts")


def page_columns(columns: Columns, n: int, label: str = "") -> list[PageColumn]:
    """Return all columns, those that are meant to colour the points first."""
    both = columns.labels is not None and columns.values is not None
    found: dict[str, PageColumn] = {}
    for name, labels in named_columns(columns.labels, label or "class").items():
        found[name] = label_column(name, labels, n)
    for name, values in named_columns(columns.values, "value" if both else label or "value").items():
        found[name] = value_column(name, values, n)
    for name, entries in named_columns(columns.hover, "text").items():
        found.setdefault(name, inferred_column(name, entries, n))
    return list(found.values())


def named_columns(given: Any, name: str) -> dict[str, Any]:
    """Return the columns of a data frame or a mapping by name; a single column gets ``name``."""
    if given is None:
        return {}
    if hasattr(given, "columns"):
        return {str(one): given[one] for one in given.columns}
    if isinstance(given, Mapping):
        return {str(one): column for one, column in given.items()}
    return {name: given}


def label_column(name: str, labels: Any, n: int) -> PageColumn:
    """Return labels as classes, or as values if they are a scale."""
    array = np.asarray(labels)
    if array.shape == (n,) and is_continuous(array):
        return value_column(name, array, n)
    classes = classes_of(array, n)
    if len(classes.names) > MOST_CLASSES:
        raise ValueError(
            f"labels must have at most {MOST_CLASSES} classes, got {len(classes.names)}; use hover or ids for texts"
        )
    return class_column(name, classes.names, classes.codes)


def class_column(name: str, names: Sequence[str], codes: NDArray[Any]) -> PageColumn:
    """Return classes; the code ``len(names)`` marks unlabelled rows."""
    missing = int((codes == len(names)).sum())
    wide = len(names) >= 256
    meta = {"name": name, "kind": "classes", "names": list(names), "missing": missing, "wide": wide}
    return PageColumn(meta, compressed(codes.astype("<u2" if wide else np.uint8)))


def value_column(name: str, values: Any, n: int) -> PageColumn:
    """Return numbers; those that are not finite are missing."""
    array = np.asarray(values)
    if array.shape != (n,) or array.dtype.kind not in "fiub":
        raise ValueError(f"values must be {n} numbers, got shape {array.shape} and dtype {array.dtype}")
    return number_column(name, array.astype(np.float64))


def number_column(name: str, numbers: NDArray[np.float64]) -> PageColumn:
    """Return float64 numbers as a column of values."""
    known = np.isfinite(numbers)
    stored = np.where(known, numbers, np.nan).astype("<f4")
    finite = stored[np.isfinite(stored)]
    meta = {
        "name": name,
        "kind": "values",
        "low": float(finite.min()) if len(finite) else 0.0,
        "high": float(finite.max()) if len(finite) else 0.0,
        "missing": int(len(stored) - len(finite)),
    }
    return PageColumn(meta, compressed(stored))


def inferred_column(name: str, entries: Any, n: int) -> PageColumn:
    """Return numbers as values, texts that repeat as classes, and other texts as texts."""
    values = (
        entries.tolist()
        if hasattr(entries, "tolist")
        else entries.to_list()
        if hasattr(entries, "to_list")
        else entries
    )
    listed = list(values)
    if len(listed) != n:
        raise ValueError(f"hover column {name!r} must have {n} entries, got {len(listed)}")
    known = [value for value in listed if value is not None and value == value]
    if known and all(isinstance(value, bool | np.bool_) for value in known):
        return label_column(name, np.array([None if v is None else str(v).lower() for v in listed], dtype=object), n)
    if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return number_column(name, np.array([np.nan if v is None else v for v in listed], dtype=np.float64))
    distinct = {text_of(value) for value in known}
    if known and len(distinct) <= min(MOST_INFERRED, len(known) / 2):
        return label_column(
            name, np.array([None if v is None or v != v else text_of(v) for v in listed], dtype=object), n
        )
    return text_column(name, [text_of(value) for value in listed])


def text_column(name: str, texts: Iterable[str]) -> PageColumn:
    """Return texts, which are searched and shown but do not colour points."""
    return PageColumn({"name": name, "kind": "texts"}, compressed_texts(texts))


def texts_of(what: str, column: Any, n: int) -> list[str]:
    """Return a column as texts, empty if missing."""
    values = column.tolist() if hasattr(column, "tolist") else list(column)
    if len(values) != n:
        raise ValueError(f"{what} must have {n} entries, got {len(values)}")
    return [text_of(value) for value in values]


def text_of(value: Any) -> str:
    """Return a value as text without separators; missing values are empty."""
    if value is None or value != value:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value).replace(SEPARATOR, " ")


def compressed(array: NDArray[Any]) -> bytes:
    """Compress the bytes of an array."""
    return zlib.compress(array.tobytes(), COMPRESSION)


def compressed_texts(texts: Iterable[str]) -> bytes:
    """Compress texts, each followed by the separator."""
    joined = "".join(text + SEPARATOR for text in texts)
    return zlib.compress(joined.encode("utf-8", errors="replace"), COMPRESSION)
