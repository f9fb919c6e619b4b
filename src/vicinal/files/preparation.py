"""Steps that prepare rows before a fit, with what each learned, kept with the model to prepare other rows alike."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.data_table import (
    ColumnSelection,
    DataTable,
    ReadError,
    array_table,
    frame_table,
    listed,
)
from vicinal.files.readers import ARRAY_READERS, TABULAR_READERS, check_file, local_file, read_table

Rows = NDArray[np.float32]

# The attribute of a model that holds what the steps learned.
ATTRIBUTE = "preprocessing_"


@dataclass(frozen=True)
class Steps:
    """Steps in their order, with what each learned."""

    learned: dict[str, NDArray[Any]]

    def add(self, X: Rows, name: str, learned: NDArray[Any]) -> Rows:
        """Append a step and return the rows after it."""
        self.learned[name] = learned
        prepared: Rows = _STEPS[name](X, learned)
        return prepared

    def apply(self, X: Rows) -> Rows:
        """Prepare rows."""
        for name in _STEPS:
            if name in self.learned:
                X = _STEPS[name](X, self.learned[name])
        return np.ascontiguousarray(X, dtype=np.float32)

    def keep_in(self, model: Any) -> None:
        """Store the steps in a fitted model."""
        if self.learned:
            setattr(model, ATTRIBUTE, dict(self.learned))

    @classmethod
    def of_model(cls, model: Any) -> Steps:
        """Return the steps of a model; none if it was fitted to rows as they are."""
        kept = getattr(model, ATTRIBUTE, {})
        unknown = set(kept) - set(_STEPS)
        if unknown:
            raise ValueError(f"the model was prepared by unknown steps: {', '.join(sorted(unknown))}")
        return cls(dict(kept))


def _take_log(X: Rows, _: NDArray[Any]) -> Rows:
    bad = np.flatnonzero((X <= -1).any(axis=1))
    if len(bad):
        raise ValueError(f"--log1p needs values above -1; row {bad[0]} has {X[bad[0]].min():g}")
    return np.log1p(X)


def _normalize(X: Rows, total: NDArray[Any]) -> Rows:
    bad = np.flatnonzero((X < 0).any(axis=1))
    if len(bad):
        raise ValueError(f"--counts needs counts, which are not negative; row {bad[0]} has {X[bad[0]].min():g}")
    sums = X.sum(axis=1, keepdims=True, dtype=np.float64)
    # a row without any count stays as it is
    return np.asarray(X * (total[0] / np.where(sums > 0, sums, total[0])), dtype=np.float32)


# In the order in which they are applied.
_STEPS: dict[str, Any] = {
    "fill": lambda X, learned: np.asarray(np.where(np.isnan(X), learned, X), dtype=np.float32),
    "total": _normalize,
    "log1p": _take_log,
    "columns": lambda X, learned: X[:, learned],
    "center": lambda X, learned: X - learned,
    "factor": lambda X, learned: X * learned,
    "clip": lambda X, learned: np.minimum(X, learned[0]),
    "mean": lambda X, learned: X - learned,
    "components": lambda X, learned: X @ learned.T,
}


# The attribute of a model that holds its source columns, and the number of rows of that fit.
COLUMNS_ATTRIBUTE = "source_columns_"


@dataclass(frozen=True)
class SourceColumns:
    """The features of a fit and the columns that were read with them."""

    features: tuple[str, ...]
    label: str | None = None
    ids: str | None = None
    extra: tuple[str, ...] = ()
    vectors: str | None = None
    array: str | None = None
    missing: bool = False

    @classmethod
    def of_model(cls, model: Any) -> SourceColumns | None:
        """Return the source columns of a model, or None if it was not fitted to a file."""
        kept = getattr(model, COLUMNS_ATTRIBUTE, None)
        if not isinstance(kept, dict) or not kept.get("features"):
            return None
        names: dict[str, Any] = {name: kept[name] for name in cls.__dataclass_fields__ if name in kept}
        names |= {name: tuple(value) for name, value in names.items() if isinstance(value, list)}
        return cls(**names)

    def keep_in(self, model: Any) -> None:
        """Store the columns in a fitted model."""
        kept = asdict(self)
        setattr(model, COLUMNS_ATTRIBUTE, {name: list(v) if isinstance(v, tuple) else v for name, v in kept.items()})

    @property
    def named(self) -> bool:
        """Whether the features have names of their own, not only numbers."""
        return not _are_numbers(self.features)

    def read(self, path: Path, **changes: Any) -> DataTable:
        """Read a file of the same layout: the same features by name, and the other columns that it has.

        ``changes`` replaces some of the columns; a column named there must exist.
        """
        with local_file(path) as local:
            return self._read(local, changes)

    def read_rows(self, path: Path) -> NDArray[np.float32]:
        """Read only the features of a file of the same layout."""
        return self.read(path).X

    def _read(self, path: Path, changes: dict[str, Any]) -> DataTable:
        suffix = check_file(path)
        source = replace(self, **{name: value for name, value in changes.items() if value})
        if suffix in ARRAY_READERS:
            matrix, columns, row_names = ARRAY_READERS[suffix](path, source.array if suffix != ".npy" else None)
            numbers = [str(a) for a in range(matrix.shape[1] if matrix.ndim == 2 else 0)]
            selection = source._selection(path, numbers, list(columns), changes)
            return replace(array_table(path, matrix, columns, selection), row_names=row_names)
        frame = TABULAR_READERS[suffix](path)
        return frame_table(path, frame, source._selection(path, frame.columns, [], changes))

    def _selection(self, path: Path, names: list[str], beside: list[str], changes: dict[str, Any]) -> ColumnSelection:
        known = {*names, *beside}
        label, ids = (name if name in known or name in changes.values() else None for name in (self.label, self.ids))
        asked = set(changes.get("extra") or ())
        extra = [name for name in (*([] if ids is None else [ids]), *self.extra) if name in known or name in asked]
        selection = ColumnSelection(None, label, tuple(dict.fromkeys(extra)), missing=self.missing)
        if self.vectors is not None and self.vectors in names:
            return replace(selection, vectors=self.vectors)
        return replace(selection, columns=self._features(path, names, selection.not_features))

    def _features(self, path: Path, names: list[str], others: set[str]) -> list[str]:
        """Return the columns of the features: by name, or by position if the model or the file has no names."""
        if set(self.features) <= set(names):
            return list(self.features)
        free = [name for name in names if name not in others]
        if (not self.named or _are_numbers(names) or self.vectors is not None) and len(free) == len(self.features):
            return free
        absent = [name for name in self.features if name not in names]
        if self.named and not _are_numbers(names):
            raise ReadError(f"{path} has no column {absent[0]!r}; the model was fitted to {listed(self.features)}")
        raise ReadError(f"{path} has {len(free)} features, but the model was fitted to {len(self.features)}")


def _are_numbers(names: tuple[str, ...] | list[str]) -> bool:
    return list(names) == [str(a) for a in range(len(names))]


@dataclass(frozen=True)
class PreparedSource:
    """How the rows of a fit were read and prepared, to read and prepare others in the same way."""

    columns: SourceColumns | None
    steps: Steps

    @classmethod
    def of_model(cls, model: Any) -> PreparedSource:
        return cls(SourceColumns.of_model(model), Steps.of_model(model))

    def read(self, path: Path, **changes: Any) -> DataTable:
        """Read rows to place; ``changes`` replaces column arguments."""
        if self.columns is None:
            return read_table(path, **changes)
        return self.columns.read(path, **{name: value for name, value in changes.items() if value})

    def read_rows(self, path: Path) -> NDArray[np.float32]:
        """Read rows to place and prepare them."""
        return self.steps.apply(self.read(path).X)

    def keep_in(self, model: Any) -> None:
        """Store all of it in a fitted model."""
        self.steps.keep_in(model)
        if self.columns is not None:
            self.columns.keep_in(model)
