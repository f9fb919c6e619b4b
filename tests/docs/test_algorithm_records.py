"""The recorded states of Algorithms 2 and 3 are those of the estimators, and name lines that the page has."""

from __future__ import annotations

import base64
import itertools
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

import vicinal

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def records() -> Any:
    return SimpleNamespace(**runpy.run_path(str(DOCS / "extensions" / "algorithm_records.py")))


def rows_of(records: Any) -> np.ndarray[Any, Any]:
    rows: np.ndarray[Any, Any] = load_digits().data[: records.ROWS]
    return rows


def places_of(state: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(base64.b64decode(state["places"]), "<f4").reshape(-1, 2)


def lines_of_page() -> dict[str, int]:
    """Return how many lines the page shows of each algorithm."""
    text = (DOCS / "survey" / "steps.md").read_text(encoding="utf-8")
    parts = re.findall(r'data-algorithm="(\d)">(.*?)</ol>', text, re.DOTALL)
    return {number: part.count("<li ") for number, part in parts}


def check_lines(states: list[dict[str, Any]], algorithm: str) -> None:
    n_lines = lines_of_page()[algorithm]
    assert all(1 <= first <= last <= n_lines for first, last in (state["lines"] for state in states))
    assert states[-1]["lines"] == (n_lines, n_lines), "the last state is that of the line that returns"


def test_states_of_a_growing_map_are_those_of_its_batches(records: Any) -> None:
    X = rows_of(records)
    states = records.progressive_states(X)
    check_lines(states, "3")
    ends = [places_of(state) for state in states if state["lines"] == (21, 21)]
    model = vicinal.ProgressiveUMAP(n_neighbors=records.N_NEIGHBORS, random_state=records.SEED)
    begin = 0
    for places in ends:
        model.insert(X[begin : len(places)])
        while model.step(n_ops=None if begin else len(places)).pending:
            pass
        begin = len(places)
        np.testing.assert_array_equal(places, model.embedding_)
    assert [len(places) for places in ends] == [90, 105, 120]

    # rows without a ring stay where they are, also when new ones start
    for before, after in itertools.pairwise(states):
        if after["lines"] == (12, 20) and after["marked"]:
            still = np.setdiff1d(np.arange(len(places_of(after))), after["marked"])
            np.testing.assert_array_equal(places_of(before)[still], places_of(after)[still])
    started = next(state for state in states if state["lines"] == (5, 8))
    assert started["marked"] == list(range(90, 105))
    np.testing.assert_array_equal(places_of(started)[:90], ends[0])


@pytest.mark.requires_torch
def test_states_of_a_training_end_with_its_map(records: Any) -> None:
    X = rows_of(records)
    states = records.parametric_states(X)
    check_lines(states, "2")
    *_, epoch, end = (places_of(state) for state in states)
    np.testing.assert_array_equal(epoch, end)
    assert vicinal.quality.trustworthiness(X, end, n_neighbors=10) > 0.9
    untrained = places_of(next(state for state in states if state["lines"] == (3, 4)))
    assert np.ptp(untrained) < 0.5 * np.ptp(end)
