"""Check and convert the inputs of figures and pages: coordinates, class labels and continuous values."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.runtime.inputs import as_array

Floats = NDArray[np.float64]


# Numbers with more distinct values than this are a scale, not classes.
MOST_NUMBERED = 64


def classes_of(labels: ArrayLike, n: int) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the classes in natural order (2 before 10) and the number of the class of each row.

    Unlabeled rows have the number ``len(names)``.
    """
    from vicinal.quality.measures import check_labels

    array = check_labels(labels, n)
    known = ~unlabeled_rows(array)
    texts = label_names(array[known]).tolist()
    names = sorted(sorted(set(texts)), key=natural_key)
    numbers = {name: a for a, name in enumerate(names)}
    codes = np.full(n, len(names), dtype=np.int64)
    codes[known] = [numbers[text] for text in texts]
    return names, codes


def label_names(labels: NDArray[Any]) -> NDArray[np.str_]:
    """Return labels as text; whole numbers have no decimals."""
    if labels.dtype.kind == "f":
        whole = np.isfinite(labels).all() and (labels % 1 == 0).all()
        return np.asarray(labels.astype(np.int64).astype(str) if whole else labels.astype(str))
    return np.array([str(label) for label in labels.tolist()], dtype=str)


def natural_key(name: str) -> list[tuple[int, float, str]]:
    """Return a sort key that compares numbers within texts as numbers."""
    parts = re.split(r"(\d+(?:\.\d+)?)", name)
    if parts[0] == "-" and len(parts) > 1:
        parts = ["", f"-{parts[1]}", *parts[2:]]  # a negative number, not a dash before a number
    return [(0, float(part), "") if a % 2 else (1, 0.0, part.casefold()) for a, part in enumerate(parts) if part]


def unlabeled_rows(labels: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the mask of rows without a label: None, NaN, or -1 among whole numbers.

    -1 marks noise and unlabeled rows in scikit-learn's conventions. It is a class if the only other number is 1.
    """
    from vicinal.quality.measures import missing_labels

    missing = missing_labels(labels)
    texts = label_names(labels[~missing]) if _may_have_minus_one(labels) else np.empty(0, dtype=str)
    names = set(texts.tolist())
    if "-1" in names and not names <= {"-1", "1"} and all(re.fullmatch(r"-1|\d+", name) for name in names):
        missing[~missing] = texts == "-1"
    return missing


def _may_have_minus_one(labels: NDArray[Any]) -> bool:
    if labels.dtype.kind in "fiu":
        return bool((labels == -1).any())
    return labels.dtype.kind in "UO" and any(label == "-1" or label == -1 for label in labels.tolist())


def is_continuous(labels: NDArray[Any]) -> bool:
    """Return whether labels are a scale rather than classes: numbers with fractions, or many distinct numbers."""
    if labels.dtype.kind not in "fiu":
        return False
    finite = labels[np.isfinite(labels)] if labels.dtype.kind == "f" else labels
    return bool((finite % 1 != 0).any()) or len(np.unique(finite)) > MOST_NUMBERED


def categories(labels: NDArray[Any] | None) -> NDArray[Any] | None:
    """Return the labels, None for unlabeled rows, or None if they are continuous values."""
    if labels is None or is_continuous(labels):
        return None
    missing, known = unlabeled_rows(labels), labels.astype(object)
    known[missing] = None
    return known if missing.any() else labels


def check_values(values: ArrayLike, n: int) -> NDArray[Any]:
    """Return ``n`` numbers, or raise ValueError."""
    array = as_array(values, "values", text=True)
    if array.shape != (n,) or array.dtype.kind not in "fiub":
        raise ValueError(f"values must be {n} numbers, got shape {array.shape} and dtype {array.dtype}")
    return array


def scaled_values(values: ArrayLike, n: int) -> tuple[Floats, tuple[float, float] | None]:
    """Scale values to 0..1 (NaN if not finite); also return the limits, or None if no value is finite."""
    numbers = check_values(values, n).astype(np.float64)
    known = np.isfinite(numbers)
    numbers[~known] = np.nan
    if not known.any():
        return numbers, None
    low, high = float(numbers[known].min()), float(numbers[known].max())
    numbers[known] = (numbers[known] - low) / (high - low) if high > low else 0.5
    return numbers, (low, high)


def coordinates(embedding: Any, most: int = 2, name: str = "embedding") -> Floats:
    """Return the finite coordinates [n, 2] of a fitted model or an array, or up to [n, most]."""
    array = as_array(getattr(embedding, "embedding_", embedding), name, text=True)
    fitted: Any = getattr(embedding, "map_", None)
    if getattr(getattr(fitted, "recipe", None), "isolated", "around") == "nan":
        array = fitted.embedding  # figures show the rows that have no neighbors around the map
    shapes = " or ".join(f"(n, {width})" for width in range(2, most + 1))
    if array.ndim != 2 or not 2 <= array.shape[1] <= most or len(array) == 0 or array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be numbers of shape {shapes}, got {array.dtype} of shape {array.shape}")
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if len(bad):
        raise ValueError(f"{name} must be finite; row {bad[0]} contains NaN or infinity")
    return array.astype(np.float64)
