"""What the user says about single rows (labels, weights, pins), and which rows a fit lays out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.initialize.medoid import aligned_to
from vicinal.neighbors.training_data import TrainingData
from vicinal.runtime.cached import cached
from vicinal.runtime.inputs import as_array


@dataclass(frozen=True)
class Pins:
    """Rows that stay at given places. ``mask`` marks them; ``places`` has a line for every row."""

    mask: NDArray[np.bool_]
    places: NDArray[np.float32]

    def start(self, start: NDArray[np.float32]) -> NDArray[np.float32]:
        """Move a start as close as possible to the pinned places, with the pinned rows exactly there."""
        if not self.mask.any():
            return start
        moved = aligned_to(start, self.mask, self.places[self.mask])
        return np.where(self.mask[:, None], self.places, moved).astype(np.float32)


@dataclass(frozen=True)
class RowOptions:
    """Labels or numbers, weights and pins of the rows of a fit, checked; None if not given."""

    y: NDArray[Any] | None = None
    weight: NDArray[np.float32] | None = None
    pins: Pins | None = None

    def with_equal_rows_pinned(self, first: NDArray[np.int64]) -> RowOptions:
        """Return these options with every row pinned that equals a pinned one: equal rows share one place.

        ``first`` names for every row the first one that equals it. Raise ValueError if equal rows are pinned at
        different places.
        """
        if self.pins is None:
            return self
        mask, places = self.pins.mask, self.pins.places
        pinned = np.flatnonzero(mask)
        leader = np.full(len(first), -1, dtype=np.int64)
        leader[first[pinned[::-1]]] = pinned[::-1]  # the first pinned row of every group of equal rows
        leader = leader[first]
        differs = (places[pinned] != places[leader[pinned]]).any(axis=1)
        if differs.any():
            row = int(pinned[np.argmax(differs)])
            raise ValueError(
                f"fixed_positions has different places for rows {int(leader[row])} and {row}, which are equal"
            )
        shared = np.where((leader >= 0)[:, None], places[np.maximum(leader, 0)], np.float32(0))
        return replace(self, pins=Pins(leader >= 0, shared))

    def pinned(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the places with pinned rows exactly at theirs."""
        return places if self.pins is None else np.where(self.pins.mask[:, None], self.pins.places, places)

    def take(self, rows: NDArray[np.int64], weight: NDArray[np.float32] | None) -> RowOptions:
        """Return the options of some rows, with the given weights."""
        return RowOptions(
            None if self.y is None else self.y[rows],
            weight,
            None if self.pins is None else Pins(self.pins.mask[rows], self.pins.places[rows]),
        )

    def extended(self, n: int, m: int, y: NDArray[Any] | None) -> RowOptions:
        """Return the options of these ``n`` rows and ``m`` more with labels ``y`` or none, weight 1 and no pins."""
        pins = self.pins
        if pins is not None:
            free = np.zeros((m, pins.places.shape[1]), np.float32)
            pins = Pins(np.concatenate([pins.mask, np.zeros(m, bool)]), np.concatenate([pins.places, free]))
        weight = None if self.weight is None else np.concatenate([self.weight, np.ones(m, np.float32)])
        return RowOptions(_joined_labels(self.y, n, y, m), weight, pins)

    def check_length(self, n: int) -> None:
        """Raise ValueError if labels, weights or pins do not belong to ``n`` rows: a model file may hold anything."""
        for name, values in (("labels", self.y), ("weights", self.weight)):
            if values is not None and len(values) != n:
                raise ValueError(f"there are not as many {name} as rows")
        if self.pins is not None and (self.pins.mask.shape != (n,) or self.pins.places.shape[:1] != (n,)):
            raise ValueError("the pinned rows of the model have no places")


def _joined_labels(y: NDArray[Any] | None, n: int, more: NDArray[Any] | None, m: int) -> NDArray[Any] | None:
    if y is None and more is None:
        return None
    old = unlabeled(n, more) if y is None else y
    new = unlabeled(m, old) if more is None else more
    if old.shape[1:] != new.shape[1:]:
        raise ValueError(f"y must have shape {old.shape[1:]} per row like the labels so far, got {new.shape[1:]}")
    kinds = {"text" if kind in "US" else kind for kind in (old.dtype.kind, new.dtype.kind)}
    mixed = "O" in kinds or ("text" in kinds and len(kinds) > 1)
    return np.concatenate([old.astype(object), new.astype(object)] if mixed else [old, new])


def unlabeled(n: int, like: NDArray[Any] | None) -> NDArray[Any]:
    """Return ``n`` missing labels of the same type as ``like``: -1 for integers, NaN for floats, otherwise None."""
    assert like is not None
    shape = (n, *like.shape[1:])
    if like.dtype.kind in "iu":
        return np.full(shape, -1, dtype=np.int64)
    return np.full(shape, np.nan) if like.dtype.kind == "f" else np.full(shape, None, dtype=object)


def check_weights(sample_weight: Any, n: int) -> NDArray[np.float32] | None:
    """Check for one number of at least 0 per row, not all of them 0; uniform weights are treated as no weights."""
    if sample_weight is None:
        return None
    given = as_array(sample_weight, "sample_weight")
    try:
        weight = given.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers: {error}") from error
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must hold one number for each of {n} rows, got shape {weight.shape}")
    bad = ~(np.isfinite(weight) & (weight >= 0))
    if bad.any():
        raise ValueError(f"sample_weight must be finite and at least 0, but is not in row {int(np.argmax(bad))}")
    if not weight.any():
        raise ValueError("sample_weight must not be zero in all rows: at least one row must count")
    return None if (weight == weight[0]).all() else weight.astype(np.float32)


def check_pins(mask: Any, positions: Any, n: int, n_components: int) -> Pins | None:
    """Check the pinned rows and their places; both arguments must be given together, or neither."""
    if mask is None and positions is None:
        return None
    if mask is None or positions is None:
        raise ValueError("fixed_mask and fixed_positions must be given together")
    marked = as_array(mask, "fixed_mask")
    if marked.dtype != np.bool_ or marked.shape != (n,):
        raise ValueError(f"fixed_mask must hold one bool for each of {n} rows, got {marked.dtype} of {marked.shape}")
    given = as_array(positions, "fixed_positions")
    try:
        places = given.astype(np.float32, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"fixed_positions must hold numbers: {error}") from error
    if places.shape != (n, n_components):
        raise ValueError(f"fixed_positions must have shape {(n, n_components)}, got {places.shape}")
    bad = marked & ~np.isfinite(places).all(axis=1)
    if bad.any():
        raise ValueError(f"fixed_positions contains NaN or infinity, first in row {int(np.argmax(bad))}")
    return Pins(marked.copy(), np.where(marked[:, None], places, np.float32(0)))


@dataclass(frozen=True)
class Selection:
    """The rows that are laid out.

    ``rows`` lists them (None: all rows) and ``options`` are theirs. ``position`` says for every row of the data which
    of the laid out rows has its place, or -1 if none has.
    """

    rows: NDArray[np.int64] | None
    position: NDArray[np.int64]
    options: RowOptions

    @cached
    def _is_identity(self) -> bool:
        """Whether every row is laid out and has a place of its own."""
        return self.rows is None and bool((self.position == np.arange(len(self.position))).all())

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the rows that are laid out."""
        return values if self.rows is None else values[self.rows]

    def spread(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the places of all rows; a row without one is put in the middle of the map."""
        if self._is_identity:
            return places
        spread: NDArray[np.float32] = places[self.position]
        missing = self.position < 0
        if missing.any():
            spread[missing] = places.mean(axis=0, dtype=np.float64)
        return spread


def select_rows(data: TrainingData, options: RowOptions, *, unique: bool = False) -> Selection:
    """Choose the rows to lay out: those whose weight is not 0, and with ``unique`` only the first of equal rows.

    Equal rows share one place in any case, since a row that is placed later could not be told apart from them.
    """
    first = data.duplicates.first
    counts = np.ones(data.n, dtype=bool) if options.weight is None else options.weight > 0
    if counts.all() and not unique:
        return Selection(None, first, options)
    # The first row that counts, for each group of equal rows.
    leader = np.full(data.n, -1, dtype=np.int64)
    counting = np.flatnonzero(counts)[::-1]
    leader[first[counting]] = counting
    leader = leader[first]
    rows = np.unique(leader[leader >= 0]) if unique else np.flatnonzero(counts)
    position = np.where(leader >= 0, np.searchsorted(rows, leader), -1)
    return Selection(rows, position, options.take(rows, _weights(options.weight, rows, position, unique)))


def _weights(
    weight: NDArray[np.float32] | None, rows: NDArray[np.int64], position: NDArray[np.int64], unique: bool
) -> NDArray[np.float32] | None:
    """Return the weights of the rows that are laid out; a row that stands for equal ones has the sum of theirs."""
    if weight is None:
        return None
    own = weight[rows]
    if unique:
        placed = position >= 0
        own = np.bincount(position[placed], weights=weight[placed], minlength=len(rows)).astype(np.float32)
    return None if (own == own[0]).all() else own


def pushing_weights(
    weights: NDArray[np.floating[Any]] | None, isolated: NDArray[np.bool_]
) -> NDArray[np.floating[Any]] | None:
    """Return the proportions in which rows are drawn as negatives: rows without edges push nobody."""
    if not isolated.any() or isolated.all():
        return weights
    return np.where(isolated, np.float32(0), np.float32(1) if weights is None else weights).astype(np.float32)
