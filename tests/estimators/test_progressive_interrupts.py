"""Interrupts and errors inside the calls of ProgressiveUMAP: real signals at counted lines."""

from __future__ import annotations

import functools
import pickle
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import count_lines, interrupted_at
from numpy.typing import NDArray

import vicinal
from vicinal import ProgressiveUMAP
from vicinal.graph.fuzzy import fuzzy_graph

Rows = NDArray[np.float32]
# Interrupts per batch, spread evenly over the lines that its call executes.
N_INTERRUPTS = 12
# Rows from which on the first map is kept, instead of 1,000, and batches of partial_fit: the first map, twice its
# replacement, few rows on a larger map, for which interrupts are deferred, and many rows.
FIRST_MAP_ROWS = 200
SIZES = [40, 60, 160, 1, 4, 2, 1, 60]


@pytest.fixture(autouse=True)
def python_handles_ctrl_c() -> Iterator[None]:
    """A process started in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def differences(one: Any, other: Any, where: str = "state") -> list[str]:
    """Return the names of the entries in which two states differ in any bit."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [found for name in one for found in differences(one[name], other[name], f"{where}.{name}")]
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        same = one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    else:
        same = type(one) is type(other) and one == other
    return [] if same else [where]


def state_of(model: ProgressiveUMAP) -> dict[str, Any]:
    return model._map.state()


def check_consistent(model: ProgressiveUMAP, labeled: bool = False) -> None:
    """Raise AssertionError or ValueError if rows, labels, neighbors, edges and places do not fit together."""
    grown = model._map
    edges = model.graph_
    grown.check()
    assert len(grown.graph.targets) == model.n_rows_ == len(model.rows_)
    assert (edges != edges.T).nnz == 0
    if not labeled:
        assert (edges != fuzzy_graph(grown.search.table()).to_scipy()).nnz == 0
    if grown.n_placed:
        assert np.isfinite(model.embedding_).all()


@pytest.fixture(autouse=True)
def small_first_map(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vicinal.pipeline.online_graph.FIRST_MAP_ROWS", FIRST_MAP_ROWS)


@pytest.fixture(scope="module")
def stream() -> list[tuple[Rows, NDArray[Any]]]:
    rng = np.random.default_rng(0)
    centers = rng.normal(scale=4.0, size=(7, 12))
    batches = []
    for size in SIZES:
        labels = rng.integers(7, size=size)
        rows = (centers[labels] + rng.normal(size=(size, 12))).astype(np.float32)
        batches.append((rows, np.where(rng.random(size) < 0.5, labels, -1)))
    return batches


def test_partial_fit_interrupted_anywhere_is_complete_or_changes_nothing(
    stream: list[tuple[Rows, NDArray[Any]]], tmp_path: Path
) -> None:
    model = ProgressiveUMAP(n_neighbors=8, random_state=0).partial_fit(*stream[0])
    saved, states, lines = [pickle.dumps(model)], [state_of(model)], [0]
    for batch in stream[1:]:
        lines.append(count_lines(functools.partial(model.partial_fit, *batch)))
        saved.append(pickle.dumps(model))
        states.append(state_of(model))

    outcomes = set()
    for last in range(len(SIZES) - 1):
        for line in np.linspace(1, lines[last + 1], N_INTERRUPTS, dtype=int):
            model = pickle.loads(saved[last])
            interrupted = interrupted_at(functools.partial(model.partial_fit, *stream[last + 1]), line)
            check_consistent(model, labeled=True)
            is_complete = model.n_rows_ > states[last]["labels"].size
            assert is_complete or interrupted
            assert not differences(state_of(model), states[last + is_complete])
            outcomes.add((interrupted, is_complete))
        model.save(tmp_path / "model")
        model = vicinal.load(tmp_path / "model")
        for batch in stream[last + 1 + is_complete :]:
            model.partial_fit(*batch)
        assert not differences(state_of(model), states[-1])
    assert {(True, False), (True, True)} <= outcomes


def test_a_map_goes_on_after_interrupts_of_insert_step_run_and_polish(stream: list[tuple[Rows, NDArray[Any]]]) -> None:
    X = np.concatenate([rows for rows, _ in stream])
    rng = np.random.default_rng(2)
    for trial in range(2):
        model = ProgressiveUMAP(n_neighbors=8, random_state=trial).insert(X[:60])
        while (n := model.n_rows_) < len(X):
            calls: list[Callable[[], object]] = [
                functools.partial(model.insert, X[n : n + 60]),
                functools.partial(model.step, n_ops=40),
                model.step,
                model.run,
                model.polish,
            ]
            interrupted_at(calls[rng.integers(len(calls))], rng.integers(1, 600))
            assert model.n_rows_ in (n, min(n + 60, len(X)))
            check_consistent(pickle.loads(pickle.dumps(model)))
            check_consistent(model)
        model.run()
        assert model.pending_ == 0
        assert model.embedding_.shape == (len(X), 2)
        check_consistent(model)


def test_a_callback_that_raises_leaves_the_map_as_it_was(stream: list[tuple[Rows, NDArray[Any]]]) -> None:
    model = ProgressiveUMAP(n_neighbors=8, random_state=0)
    for rows, _ in stream[:3]:
        model.partial_fit(rows)
    before, stages = state_of(model), []

    def callback(stage: str, epoch: int, n_epochs: int, embedding: Rows | None) -> None:
        stages.append(stage)
        if len(stages) == 2:
            raise OSError("the disk is full")

    model.set_params(callback=callback)
    with pytest.raises(OSError, match="the disk is full"):
        model.partial_fit(stream[3][0])
    assert stages == ["neighbors", "layout"]
    assert not differences(state_of(model), before)
