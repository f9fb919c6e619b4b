"""The first of equal rows, in batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from vicinal.neighbors.rows import DuplicateRows, FirstEqualRows


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("size", [1, 17, 400])
def test_batches_find_the_same_rows_as_all_at_once(kind: str, size: int) -> None:
    rng = np.random.default_rng(0)
    distinct = rng.integers(0, 3, size=(120, 6)).astype(np.float32)
    rows: Any = distinct[rng.integers(120, size=400)]
    rows = sparse.csr_matrix(rows) if kind == "sparse" else rows
    equal, first = FirstEqualRows(), []
    for begin in range(0, 400, size):
        new = rows[begin : begin + size]
        found, hashes = equal.find(new, begin, lambda which: rows[which])
        equal.add(hashes, begin)
        first.append(found)
    np.testing.assert_array_equal(np.concatenate(first), DuplicateRows(rows).first)


def test_rows_with_the_same_hash_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vicinal.neighbors.rows.hash_rows", lambda rows, n_jobs: np.zeros(len(rows), np.uint64))
    rows = np.array([[1.0], [2.0], [1.0], [3.0]], dtype=np.float32)
    equal = FirstEqualRows()
    assert equal.find(rows, 0, lambda which: rows[which])[0].tolist() == [0, 1, 0, 3]
    equal.add(np.zeros(4, np.uint64), 0)
    assert equal.find(rows, 4, lambda which: rows[which])[0].tolist() == [0, 5, 0, 7]


def test_blocks_stay_few() -> None:
    equal = FirstEqualRows()
    rng = np.random.default_rng(0)
    for begin in range(2000):
        equal.add(rng.integers(2**62, size=1).astype(np.uint64), begin)
    assert len(equal._blocks) <= 12
    assert sum(len(numbers) for _, numbers in equal._blocks) == 2000
