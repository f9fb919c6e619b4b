"""Distances of counts and texts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from vicinal.graph import supervision as label_distances
from vicinal.graph.supervision import count_levels, edit_distances

EDITS = [
    ("", "", 0),
    ("", "abc", 3),
    ("a", "", 1),
    ("kitten", "sitting", 3),
    ("flaw", "lawn", 2),
    ("aaaa", "bbbb", 4),
    ("abcdef", "azced", 3),
    ("ABC", "abc", 3),
    ("\x00", "", 1),
    ("naïve 🙂", "naive 🙃", 2),
]


@pytest.mark.parametrize("cells", [1, 1 << 22], ids=["blocks of a pair", "one block"])
def test_edits_are_counted(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_distances, "BLOCK_CELLS", cells)
    texts = [text for one, other, _ in EDITS for text in (one, other)]
    first = np.arange(0, len(texts), 2)
    wanted = [edits for _, _, edits in EDITS]
    np.testing.assert_array_equal(edit_distances(texts, first, first + 1), wanted)
    np.testing.assert_array_equal(edit_distances(texts, first + 1, first), wanted)


@pytest.mark.parametrize("mean", [0.3, 7.0, 900.0])
def test_levels_of_counts_sum_up_improbabilities(mean: float) -> None:
    counts = np.array([0.0, 1.0, 2.0, 17.0, 31.0, 32.0, 33.0, 250.0, 2000.0])
    improbable = -stats.poisson.logpmf(np.arange(2000), mean)
    wanted = [improbable[: int(m)].sum() for m in counts]
    np.testing.assert_allclose(count_levels(counts, mean), wanted, rtol=1e-9)


def test_levels_of_unknown_and_of_equal_counts() -> None:
    levels = count_levels(np.array([3.0, np.nan, 3.0]))
    assert np.isnan(levels[1])
    assert levels[0] == levels[2]
    np.testing.assert_array_equal(count_levels(np.zeros(4)), 0.0)
    assert np.isnan(count_levels(np.full(2, np.nan))).all()
