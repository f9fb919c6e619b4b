"""Interrupts and errors inside the calls of ProgressiveUMAP: real signals at random moments."""

from __future__ import annotations

import functools
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import was_interrupted
from numpy.typing import NDArray

import vicinal
from vicinal import ProgressiveUMAP
from vicinal.graph.fuzzy import fuzzy_graph

Rows = NDArray[np.float32]
N_INTERRUPTS = 200
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


def check_consistent(model: ProgressiveUMAP, labelled: bool = False) -> None:
    """Raise AssertionError or ValueError if rows, labels, neighbors, edges and places do not fit together."""
    grown = model._map
    edges = model.graph_
    grown.check()
    assert len(grown.graph.targets) == model.n_rows_ == len(model.rows_)
    assert (edges != edges.T).nnz == 0
    if not labelled:
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


def test_partial_fit_interrupted_at_any_moment_is_complete_or_changes_nothing(
    stream: list[tuple[Rows, NDArray[Any]]], tmp_path: Path
) -> None:
    model = ProgressiveUMAP(n_neighbors=8, random_state=0).partial_fit(*stream[0])
    saved, states, seconds = [pickle.dumps(model)], [state_of(model)], [0.0]
    for batch in stream[1:]:
        begin = time.perf_counter()
        model.partial_fit(*batch)
        seconds.append(time.perf_counter() - begin)
        saved.append(pickle.dumps(model))
        states.append(state_of(model))

    rng = np.random.default_rng(1)
    outcomes = {"unchanged": 0, "complete": 0, "not interrupted": 0}
    while outcomes["unchanged"] + outcomes["complete"] < N_INTERRUPTS:
        trial = sum(outcomes.values())
        last = trial % (len(SIZES) - 1)
        model = pickle.loads(saved[last])
        call = functools.partial(model.partial_fit, *stream[last + 1])
        interrupted = was_interrupted(call, rng.uniform(0, 0.9 * seconds[last + 1]))
        check_consistent(model, labelled=True)
        is_complete = model.n_rows_ > states[last]["labels"].size
        assert is_complete or interrupted
        assert not differences(state_of(model), states[last + is_complete])
        outcomes["not interrupted" if not interrupted else "complete" if is_complete else "unchanged"] += 1
        if not interrupted:  # the call was timed while the machine was slower than now
            seconds[last + 1] *= 0.8
        assert outcomes["not interrupted"] < N_INTERRUPTS, outcomes
        if trial % 20 == 0:
            model.save(tmp_path / "model")
            model = vicinal.load(tmp_path / "model")
            for batch in stream[last + 1 + is_complete :]:
                model.partial_fit(*batch)
            assert not differences(state_of(model), states[-1])
    assert outcomes["unchanged"] > N_INTERRUPTS / 4, outcomes
    assert outcomes["complete"] > N_INTERRUPTS / 10, outcomes


def test_a_map_goes_on_after_interrupts_of_insert_step_run_and_polish(stream: list[tuple[Rows, NDArray[Any]]]) -> None:
    X = np.concatenate([rows for rows, _ in stream])
    rng = np.random.default_rng(2)
    n_interrupted = 0
    for trial in range(6):
        model = ProgressiveUMAP(n_neighbors=8, random_state=trial).insert(X[:60])
        while (n := model.n_rows_) < len(X):
            calls: list[Callable[[], object]] = [
                functools.partial(model.insert, X[n : n + 60]),
                functools.partial(model.step, n_ops=40),
                functools.partial(model.step, budget_ms=5),
                model.step,
                model.run,
                model.polish,
            ]
            n_interrupted += was_interrupted(calls[rng.integers(len(calls))], rng.exponential(0.01))
            assert model.n_rows_ in (n, min(n + 60, len(X)))
            check_consistent(pickle.loads(pickle.dumps(model)))
            check_consistent(model)
        model.run()
        assert model.pending_ == 0
        assert model.embedding_.shape == (len(X), 2)
        check_consistent(model)
    assert n_interrupted > 12


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
