"""Figures of the reliability and of torn edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

import vicinal
from vicinal import plot


@pytest.fixture(scope="module")
def model() -> Any:
    return vicinal.UMAP(random_state=0, n_epochs=50, n_neighbors=8).fit(load_iris().data)


def axes() -> Any:
    return Figure().add_subplot()


@pytest.mark.parametrize("part", ["reliability", "near", "wide", "stability", "spread", "stretch", "torn", "label"])
def test_points_are_colored_by_every_part(model: Any, part: str) -> None:
    ax = plot.reliability(model, part=part, ax=axes())
    drawn = [child for child in ax.collections if isinstance(child, PathCollection)]
    assert sum(len(child.get_offsets()) for child in drawn) == 150
    assert ax.get_title(loc="left")


def test_torn_edges_connect_their_rows(model: Any) -> None:
    found = vicinal.reliability(model, ghosts=0, null=False)
    torn = model.embedding_.copy()
    torn[0] += 100
    found = vicinal.reliability(load_iris().data, torn, null=False)
    assert len(found.torn_edges) > 0
    ax = plot.torn_edges(torn, found, ax=axes())
    (lines,) = [child for child in ax.collections if isinstance(child, LineCollection)]
    first = lines.get_segments()[0]
    ends = torn[[found.torn_edges.head[0], found.torn_edges.tail[0]]]
    assert np.allclose(first, ends)
    assert len(lines.get_segments()) == len(found.torn_edges)
    none = plot.torn_edges(torn, found, ax=axes(), most=0)
    assert not [child for child in none.collections if isinstance(child, LineCollection)]


def test_wrong_arguments_are_refused(model: Any) -> None:
    with pytest.raises(ValueError, match="part must be one of"):
        plot.reliability(model, part="trust")
    with pytest.raises(ValueError, match="found must be given"):
        plot.reliability(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="one entry for each of the 5 points, got 150"):
        plot.torn_edges(np.zeros((5, 2)), vicinal.reliability(model, ghosts=0, null=False))
    with pytest.raises(ValueError, match="most must be"):
        plot.torn_edges(model, most=-1)
