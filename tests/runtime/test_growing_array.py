"""Arrays that grow at their end."""

from __future__ import annotations

import numpy as np

from vicinal.runtime.cached import GrowingArray


def test_a_growing_array_keeps_its_rows_and_can_be_written() -> None:
    grown, whole = GrowingArray(np.zeros((0, 3), np.float32)), np.empty((0, 3), np.float32)
    for n in (1, 0, 5, 40, 3):
        part = np.random.default_rng(n).normal(size=(n, 3)).astype(np.float32)
        grown.append(part)
        whole = np.concatenate([whole, part])
        np.testing.assert_array_equal(grown.view, whole)
    grown.view[3] = 7.0
    assert len(grown) == 49
    np.testing.assert_array_equal(grown.view[3], 7.0)


def test_truncated_rows_are_replaced_by_later_ones() -> None:
    grown = GrowingArray(np.arange(5))
    earlier = grown.view
    grown.truncate(2)
    grown.truncate(4)
    assert grown.view.tolist() == [0, 1]
    grown.append(np.array([7, 8, 9, 10]))
    assert grown.view.tolist() == [0, 1, 7, 8, 9, 10]
    assert earlier[:2].tolist() == [0, 1]
