"""Classes and numbers of rows that arrive over time."""

from __future__ import annotations

import numpy as np
import pytest

from vicinal.graph.supervision import far_distance
from vicinal.pipeline.online_graph import DEVIATIONS, TARGET_METRICS, NumberTargets, online_targets

ROWS = np.array([0, 1], dtype=np.int32)
LISTS = np.array([[1, 2], [0, 3]], dtype=np.int32)


def test_numbers_weaken_edges_by_their_distance() -> None:
    targets = NumberTargets("euclidean", 0.5)
    targets.append(targets.extended(None, 1))
    assert not targets.is_known
    targets.append(targets.extended(np.array([0.0, 2.0, 4.0, np.nan]), 4))
    scale = DEVIATIONS * np.std([0.0, 2.0, 4.0])
    factors = targets.factors(np.array([1, 2], np.int32), np.array([[2, 3], [0, 4]], np.int32))
    np.testing.assert_allclose(factors[0], np.exp(-5.0 * np.array([2.0, 4.0]) / scale))
    np.testing.assert_allclose(factors[1], np.exp([-1.0, -1.0]))
    targets.append(targets.extended(np.array([1e6]), 1))
    assert targets.factors(np.array([1], np.int32), np.array([[5]], np.int32)) == pytest.approx(
        np.exp(-far_distance(0.5))
    )


@pytest.mark.parametrize("metric", TARGET_METRICS)
def test_a_state_restores_labels_of_every_kind(metric: str) -> None:
    y = np.array(["a", "b", "a"], dtype=object) if metric == "categorical" else np.array([1.0, np.nan, 3.0])
    one, other = online_targets(metric, 0.5), online_targets(metric, 0.5)
    one.append(one.extended(y, 3))
    one.append(one.extended(None, 1))
    other.restore(one.state())
    other.check()
    assert len(other) == 4
    np.testing.assert_array_equal(one.given(3), y)
    np.testing.assert_array_equal(other.given(4), one.given(4))
    np.testing.assert_array_equal(other.factors(ROWS, LISTS), one.factors(ROWS, LISTS))


def test_several_numbers_per_row_keep_their_number() -> None:
    targets = NumberTargets("chebyshev", 0.5)
    targets.append(targets.extended(None, 2))
    targets.append(targets.extended(np.array([[0.0, 1.0], [2.0, 5.0]]), 2))
    given = targets.given(4)
    assert given is not None
    assert given.shape == (4, 2)
    with pytest.raises(ValueError, match="2 numbers per row as before, got 3"):
        targets.extended(np.zeros((1, 3)), 1)
    assert len(targets) == 4


@pytest.mark.parametrize(
    "state",
    [
        {"labels": np.zeros(3), "classes": [1.0, True]},
        {"labels": np.full((3, 1), np.inf), "classes": [1.0, True]},
        {"labels": np.zeros((3, 1)), "classes": [float("nan"), True]},
        {"labels": np.zeros((3, 1), np.int64), "classes": [1.0, True]},
    ],
)
def test_a_state_that_is_malformed_is_refused(state: dict[str, object]) -> None:
    def restored() -> None:
        targets = online_targets("euclidean", 0.5)
        targets.restore(state)
        targets.check()

    with pytest.raises(ValueError, match="growing map"):
        restored()
