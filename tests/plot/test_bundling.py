"""Edge bundling: edges that lead the same way share a path, and their ends stay."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from vicinal.plot.connectivity import PIECES, bundled


def test_edges_that_lead_the_same_way_come_together() -> None:
    """Two fans of edges, up and down: each narrows in its middle, and they stay apart."""
    rng = np.random.default_rng(0)
    start = np.stack([np.zeros(200), np.repeat([0.0, 10.0], 100) + rng.random(200)], axis=1)
    end = start + np.array([20.0, 0.0])
    paths = bundled(start, end, np.ones(200))
    assert paths.shape == (200, PIECES + 1, 2)
    np.testing.assert_array_equal(paths[:, 0], start)
    np.testing.assert_array_equal(paths[:, -1], end)
    middle = paths[:, PIECES // 2, 1]
    for group in (slice(0, 100), slice(100, 200)):
        assert np.std(middle[group]) < 0.3 * np.std(start[group, 1])
        assert abs(middle[group].mean() - start[group, 1].mean()) < 0.3
    np.testing.assert_allclose(paths[:, PIECES // 2, 0], 10.0, atol=1.0)


def test_an_edge_alone_stays_straight() -> None:
    paths = bundled(np.array([[0.0, 1.0]]), np.array([[8.0, 5.0]]), np.array([0.5]))
    np.testing.assert_allclose(paths[0, :, 1], 1.0 + paths[0, :, 0] / 2, atol=0.1)


def test_blocks_do_not_change_the_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    start, end = np.random.default_rng(1).random((2, 50, 2))
    whole = bundled(start, end, np.ones(50))
    monkeypatch.setattr(sys.modules[bundled.__module__], "BLOCK", 7)
    np.testing.assert_allclose(bundled(start, end, np.ones(50)), whole, atol=1e-9)


def test_edges_without_an_extent_have_paths() -> None:
    point = np.zeros((3, 2))
    np.testing.assert_array_equal(bundled(point, point, np.ones(3)), 0.0)
    assert bundled(point[:0], point[:0], np.ones(0)).shape == (0, PIECES + 1, 2)
