"""Columns of a growing map in the format of a page: classes or values, ids and texts."""

from __future__ import annotations

import copy
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.annotations import is_continuous
from vicinal.quality.measures import missing_labels
from vicinal.runtime.growing_array import GrowingArray
from vicinal.viewer.packing import MOST_CLASSES, Packed, colouring_meta, compressed, compressed_texts, texts_of

UNLABELLED = -1


class GrowingColumns:
    """Labels, ids and texts of the rows so far; ``ids`` is the name of the id column.

    The first labels determine whether labels are classes or continuous values. A page lists classes in sorted order, so
    that a new class changes the numbers of others; ``colours`` then changes.
    """

    def __init__(self, ids: str | None = None) -> None:
        self.n = 0
        self._ids = ids
        self._values: bool | None = None
        self._classes: dict[str, int] = {}
        self._labels = GrowingArray(np.empty(0, np.float64))  # class numbers, or continuous values
        self._texts: dict[str, list[str]] = {}
        self._lock = threading.Lock()

    def append(self, n: int, labels: NDArray[Any] | None, extra: Mapping[str, NDArray[Any]]) -> None:
        """Append ``n`` rows with their labels and extra columns."""
        with self._lock:
            if labels is not None:
                self._append_labels(labels)
            for name in {**self._texts, **extra}:
                known = self._texts.setdefault(name, [""] * self.n)
                known += texts_of(name, extra[name], n) if name in extra else [""] * n
            self.n += n

    def with_class(self, name: str, n: int) -> GrowingColumns:
        """Return a copy with ``n`` more rows that have a class of their own, ids derived from it, and no texts."""
        longer = GrowingColumns(self._ids)
        with self._lock:
            longer.n, longer._values, longer._classes = self.n, self._values, dict(self._classes)
            longer._labels = GrowingArray(self._labels.view.copy())
            longer._texts = copy.deepcopy(self._texts)
        ids = {} if self._ids is None else {self._ids: np.array([f"{name}:{a}" for a in range(n)], dtype=object)}
        labels = np.full(n, np.nan) if longer._values else np.full(n, f"new: {name}", dtype=object)
        longer.append(n, labels, ids)
        return longer

    def colours(self, n: int) -> object:
        """Return a key that stays equal as long as new rows do not change the colours of the first ``n`` rows."""
        with self._lock:
            return self._limits(n) if self._values else (len(self._classes), self._unlabelled())

    def packed(self, begin: int, n: int) -> Packed:
        """Return the data of the rows from ``begin`` to ``n`` in the format of a page."""
        with self._lock:
            fields = [name for name in self._texts if name != self._ids]
            sections = self._packed_labels(begin, n)
            if self._ids is not None:
                sections["ids"] = compressed_texts(self._texts[self._ids][begin:n])
            sections |= {f"field{a}": compressed_texts(self._texts[name][begin:n]) for a, name in enumerate(fields)}
            limits = self._limits(n) if self._values else None
            colours = colouring_meta(self._names(), unlabelled=self._unlabelled(), limits=limits)
            return Packed({"n": n, "fields": fields, **colours}, sections)

    def _append_labels(self, labels: NDArray[Any]) -> None:
        if self._values is None:
            self._values = is_continuous(labels)
            self._labels.append(np.full(self.n, UNLABELLED, dtype=np.float64))
        if self._values:
            self._labels.append(
                labels.astype(np.float64) if labels.dtype.kind in "fiub" else np.full(len(labels), np.nan)
            )
            return
        missing = missing_labels(labels)
        codes = [
            UNLABELLED if gap else self._classes.setdefault(str(label), len(self._classes))
            for label, gap in zip(labels.tolist(), missing, strict=True)
        ]
        if len(self._classes) > MOST_CLASSES:
            raise ValueError(f"labels must have at most {MOST_CLASSES} classes; use hover or ids")
        self._labels.append(np.array(codes, dtype=np.float64))

    def _packed_labels(self, begin: int, n: int) -> dict[str, bytes]:
        labels = self._labels.view
        if self._values is None or not len(labels):
            return {}
        if self._values:
            low, high = self._limits(n)
            scaled = (labels[begin:n] - low) / (high - low) if high > low else np.full(n - begin, 0.5)
            return {"values": compressed(np.nan_to_num(scaled, nan=0.0).astype("<f4"))}
        numbers = np.empty(len(self._classes) + 1, dtype="<u2")
        for number, name in enumerate(self._names()):
            numbers[self._classes[name]] = number
        numbers[UNLABELLED] = len(self._classes)
        return {"codes": compressed(numbers[labels[begin:n].astype(np.int64)])}

    def _limits(self, n: int) -> tuple[float, float]:
        known = self._labels.view[:n]
        known = known[np.isfinite(known)]
        return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)

    def _names(self) -> list[str]:
        """Return the class names in sorted order, numerically if all are numbers."""
        try:
            return sorted(self._classes, key=float)
        except ValueError:
            return sorted(self._classes)

    def _unlabelled(self) -> bool:
        return self._values is False and bool((self._labels.view == UNLABELLED).any())
