"""Columns of a growing map in the format of a page: classes, values, ids and texts of rows that keep coming."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.annotations import is_continuous, label_names, natural_key, unlabelled_rows
from vicinal.runtime.growing_array import GrowingArray
from vicinal.viewer.columns import (
    MOST_CLASSES,
    PageColumn,
    class_column,
    compressed_texts,
    number_column,
    text_column,
    texts_of,
)
from vicinal.viewer.packing import Packed

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
