"""Check and convert the inputs of figures and pages: coordinates, class labels and continuous values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Classes:
    """Labels as integers: ``names[codes[i]]`` is the label of row i; ``known[i]`` is False if row i has no label."""

    names: tuple[str, ...]
    codes: NDArray[np.int64]
    known: NDArray[np.bool_]


def classes_of(labels: ArrayLike, n: int) -> Classes:
    """Number the labels in sorted order; None and NaN are unknown and have the code ``len(names)``."""
    from vicinal.quality.measures import missing_labels

    array = np.asarray(labels)
    if array.shape != (n,):
        raise ValueError(f"labels must be one-dimensional with {n} entries, got shape {array.shape}")
    known = ~missing_labels(array)
    named = array[known]
    names, found = np.unique(named.astype(str) if named.dtype.kind == "O" else named, return_inverse=True)
    codes = np.full(n, len(names), dtype=np.int64)
    codes[known] = found
    return Classes(tuple(str(name) for name in names.tolist()), codes, known)


def is_continuous(labels: NDArray[Any]) -> bool:
    """Return whether labels are continuous values rather than classes: floats, at least one with a fraction."""
    return labels.dtype.kind == "f" and bool((labels[np.isfinite(labels)] % 1 != 0).any())


def scaled_values(values: ArrayLike, n: int) -> tuple[Floats, tuple[float, float] | None]:
    """Scale values to 0..1 (NaN if not finite); also return the limits, or None if no value is finite."""
    array = np.asarray(values)
    if array.shape != (n,) or array.dtype.kind not in "fiub":
        raise ValueError(f"values must be {n} numbers, got shape {array.shape} and dtype {array.dtype}")
    numbers = array.astype(np.float64)
    known = np.isfinite(numbers)
    numbers[~known] = np.nan
    if not known.any():
        return numbers, None
    low, high = float(numbers[known].min()), float(numbers[known].max())
    numbers[known] = (numbers[known] - low) / (high - low) if high > low else 0.5
    return numbers, (low, high)


def coordinates(embedding: Any) -> Floats:
    """Return the coordinates [n, 2] of a fitted model or an array, after checking that they are finite."""
    array = np.asarray(getattr(embedding, "embedding_", embedding))
    if array.ndim != 2 or array.shape[1] != 2 or len(array) == 0 or array.dtype.kind not in "fiub":
        raise ValueError(f"embedding must be numbers of shape (n, 2), got {array.dtype} of shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise ValueError(f"embedding must be finite; row {bad[0]} contains NaN or infinity")
    return array.astype(np.float64)


def training_rows(model: Any) -> Any:
    """Return the rows of the points of a fitted model (``model.rows_`` or ``model.map_.data.rows``), or None."""
    if hasattr(model, "rows_"):
        return model.rows_[: len(model.embedding_)]  # the last rows of a growing map may not be placed yet
    return getattr(getattr(getattr(model, "map_", None), "data", None), "rows", None)
