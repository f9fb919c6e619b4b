"""Which rows a fit lays out, and whose place every row takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.maps.row_facts import RowFacts
from vicinal.neighbors.training_data import TrainingData
from vicinal.runtime.cached import cached


@dataclass(frozen=True)
class Selection:
    """The rows that are laid out.

    ``rows`` lists them (None: all rows) and ``facts`` are theirs. ``position`` says for every row of the data which of
    the laid out rows has its place, or -1 if none has.
    """

    rows: NDArray[np.int64] | None
    position: NDArray[np.int64]
    facts: RowFacts

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


def select_rows(data: TrainingData, facts: RowFacts, *, unique: bool = False) -> Selection:
    """Choose the rows to lay out: those whose weight is not 0, and with ``unique`` only the first of equal rows.

    Equal rows share one place in any case, since a row that is placed later could not be told apart from them.
    """
    first = data.duplicates.first
    counts = np.ones(data.n, dtype=bool) if facts.weight is None else facts.weight > 0
    if counts.all() and not unique:
        return Selection(None, first, facts)
    # The first row that counts, for each group of equal rows.
    leader = np.full(data.n, -1, dtype=np.int64)
    counting = np.flatnonzero(counts)[::-1]
    leader[first[counting]] = counting
    leader = leader[first]
    rows = np.unique(leader[leader >= 0]) if unique else np.flatnonzero(counts)
    position = np.where(leader >= 0, np.searchsorted(rows, leader), -1)
    return Selection(rows, position, facts.take(rows, _weights(facts.weight, rows, position, unique)))


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
