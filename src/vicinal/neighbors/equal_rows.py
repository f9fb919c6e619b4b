"""The first of equal rows, for rows that arrive over time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.duplicates import DuplicateRows
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import equal_rows, hash_rows

Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int32]


class FirstEqualRows:
    """Find for each row the first row with the same content.

    Distinct hashes are kept in blocks of sorted arrays, each less than half as long as the one before: a batch costs
    time proportional to its rows, times the logarithm of the number of all rows.
    """

    def __init__(self) -> None:
        self._blocks: list[tuple[Hashes, Numbers]] = []

    def find(self, new: Rows, begin: int, rows: Callable[[Numbers], Rows], n_jobs: int = -1) -> tuple[Numbers, Hashes]:
        """Return the first equal row of each row of ``new``, and their hashes, which ``add`` takes.

        Parameters
        ----------
        new : rows
            Rows that follow the ``begin`` rows that were added.
        begin : int
        rows : callable
            Returns the rows, among the first ``begin``, of the given numbers.
        n_jobs : int
        """
        hashes = hash_rows(new, n_jobs)
        first = (begin + DuplicateRows(new, n_jobs, hashes).first).astype(np.int32)
        known = self._lookup(hashes)
        found = np.flatnonzero(known >= 0)
        if found.size:
            found = found[equal_rows(rows(known[found]), new[found])]
            first[found] = known[found]
        return first, hashes

    def add(self, hashes: Hashes, begin: int) -> None:
        """Add the rows that follow the ``begin`` rows that were added."""
        distinct, at = np.unique(hashes, return_index=True)
        is_new = self._lookup(distinct) < 0
        block = distinct[is_new], (at[is_new] + begin).astype(np.int32)
        while self._blocks and 2 * len(block[0]) >= len(self._blocks[-1][0]):
            last = self._blocks.pop()
            joined = np.concatenate([last[0], block[0]])
            order = np.argsort(joined, kind="stable")
            block = joined[order], np.concatenate([last[1], block[1]])[order]
        if len(block[0]):
            self._blocks.append(block)

    def _lookup(self, hashes: Hashes) -> Numbers:
        """Return the row that was added with each hash, or -1."""
        found = np.full(len(hashes), -1, np.int32)
        for known, numbers in self._blocks:
            at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
            found = np.where(known[at] == hashes, numbers[at], found)
        return found
