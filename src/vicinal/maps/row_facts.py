"""What is known of the rows besides their content: labels, weights, places they must keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from vicinal.initialize.procrustes import aligned_to


@dataclass(frozen=True)
class Pins:
    """Rows that stay where they are put."""

    mask: NDArray[np.bool_]
    places: NDArray[np.float32]

    def start(self, start: NDArray[np.float32]) -> NDArray[np.float32]:
        """A start moved, turned and scaled towards the pinned places, the pinned rows exactly there."""
        if not self.mask.any():
            return start
        fitted = aligned_to(start, self.mask, self.places[self.mask])
        return np.where(self.mask[:, None], self.places, fitted).astype(np.float32)


@dataclass(frozen=True)
class Given:
    """Checked labels or numbers, weights and pins of the rows of a fit; None where nothing was given."""

    y: NDArray[Any] | None = None
    weight: NDArray[np.float32] | None = None
    pins: Pins | None = None

    def pinned(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """The places with pinned rows exactly where they belong."""
        return places if self.pins is None else np.where(self.pins.mask[:, None], self.pins.places, places)

    def chosen(self, rows: NDArray[np.int64], inverse: NDArray[np.int64]) -> Given:
        """For some rows that stand for all: the weights of those they stand for add up."""
        return Given(
            None if self.y is None else self.y[rows],
            None if self.weight is None else np.bincount(inverse, weights=self.weight).astype(np.float32),
            None if self.pins is None else Pins(self.pins.mask[rows], self.pins.places[rows]),
        )

    def extended(self, m: int, y: NDArray[Any] | None, n: int) -> Given:
        """For ``m`` more rows after these ``n``, with ``y`` or without labels, of weight 1, free to move."""
        if y is None and self.y is None:
            labels = None
        else:
            old = unlabelled(n, y) if self.y is None else self.y
            new = unlabelled(m, old) if y is None else y
            if old.shape[1:] != new.shape[1:]:
                raise ValueError(f"y must have {old.shape[1:]} a row like the labels so far, got {new.shape[1:]}")
            kinds = {"text" if kind in "US" else kind for kind in (old.dtype.kind, new.dtype.kind)}
            mixed = "O" in kinds or ("text" in kinds and len(kinds) > 1)
            labels = np.concatenate([old.astype(object), new.astype(object)] if mixed else [old, new])
        pins = self.pins
        if pins is not None:
            free = np.zeros((m, pins.places.shape[1]), np.float32)
            pins = Pins(np.concatenate([pins.mask, np.zeros(m, bool)]), np.concatenate([pins.places, free]))
        weight = None if self.weight is None else np.concatenate([self.weight, np.ones(m, np.float32)])
        return Given(labels, weight, pins)


def unlabelled(n: int, like: NDArray[Any] | None) -> NDArray[Any]:
    """No labels for ``n`` rows, to stand beside others: -1 for whole numbers, NaN for others, else None."""
    assert like is not None
    shape = (n, *like.shape[1:])
    if like.dtype.kind in "iu":
        return np.full(shape, -1, dtype=np.int64)
    return np.full(shape, np.nan) if like.dtype.kind == "f" else np.full(shape, None, dtype=object)


class RowFacts(TypedDict, total=False):
    """What ``fit`` takes by name, besides ``X`` and ``y``."""

    sample_weight: Any
    fixed_mask: Any
    fixed_positions: Any
    ensure_all_finite: Any


def check_facts(facts: RowFacts, y: NDArray[Any] | None, n: int, n_components: int) -> Given:
    """The checked ``y`` and what else was given, or an error that names it."""
    unknown = set(facts) - set(RowFacts.__annotations__)
    if unknown:
        raise TypeError(f"fit got unexpected arguments {sorted(unknown)}; it takes {sorted(RowFacts.__annotations__)}")
    pins = check_pins(facts.get("fixed_mask"), facts.get("fixed_positions"), n, n_components)
    return Given(y, check_weights(facts.get("sample_weight"), n), pins)


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float32] | None:
    """One positive number a row, or None; equal weights are none."""
    if sample_weight is None:
        return None
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from error
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of {n} rows, got shape {weight.shape}")
    bad = ~(np.isfinite(weight) & (weight > 0))
    if bad.any():
        raise ValueError(f"sample_weight must be positive and finite, but is not in row {int(np.argmax(bad))}")
    return None if (weight == weight[0]).all() else weight.astype(np.float32)


def check_pins(mask: Any, positions: Any, n: int, n_components: int) -> Pins | None:
    """The pinned rows, or None; both arguments come together."""
    if mask is None and positions is None:
        return None
    if mask is None or positions is None:
        raise ValueError("fixed_mask and fixed_positions must be given together")
    marked = np.asarray(mask)
    if marked.dtype != np.bool_ or marked.shape != (n,):
        raise ValueError(f"fixed_mask must hold one bool for each of {n} rows, got {marked.dtype} of {marked.shape}")
    try:
        places = np.asarray(positions, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fixed_positions must hold numbers: {error}") from error
    if places.shape != (n, n_components):
        raise ValueError(f"fixed_positions must have shape {(n, n_components)}, got {places.shape}")
    bad = marked & ~np.isfinite(places).all(axis=1)
    if bad.any():
        raise ValueError(f"fixed_positions contains NaN or infinity, first in row {int(np.argmax(bad))}")
    return Pins(marked.copy(), np.where(marked[:, None], places, np.float32(0)))
