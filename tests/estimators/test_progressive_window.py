"""ProgressiveUMAP whose rows leave: by ``forget``, or because a ``window`` is full."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupting import count_lines, interrupted_at
from numpy.typing import NDArray
from scipy import sparse

import vicinal
from vicinal import UMAP, ProgressiveUMAP
from vicinal.quality import trustworthiness

Rows = NDArray[np.float32]
FAST: dict[str, Any] = {"n_neighbors": 10, "random_state": 0}


@pytest.fixture(autouse=True)
def python_handles_ctrl_c() -> Iterator[None]:
    """A process started in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def grown(X: Any, y: Any = None, size: int = 100, **more: Any) -> ProgressiveUMAP:
    model = ProgressiveUMAP(**(FAST | more))
    for begin in range(0, X.shape[0], size):
        part = slice(begin, begin + size)
        model.partial_fit(X[part], None if y is None else y[part])
    return model


def bits(model: ProgressiveUMAP) -> bytes:
    return pickle.dumps(model._map.state())


def test_the_others_keep_their_places_bit_for_bit(digits: Rows) -> None:
    model = grown(digits[:600])
    places, ages = model.embedding_, model.age_
    gone = np.r_[0:100, 300:350, 599]
    assert model.forget(gone) is model
    stay = np.delete(np.arange(600), gone)
    assert model.embedding_.tobytes() == places[stay].tobytes()
    np.testing.assert_array_equal(model.age_, ages[stay])
    np.testing.assert_array_equal(model.row_ids_, stay)
    np.testing.assert_array_equal(model.rows_, digits[stay])
    assert (model.n_rows_, model.n_seen_) == (len(stay), 600)
    assert model.graph_.shape == (len(stay), len(stay))
    assert model.transform(digits[stay[:5]]).tobytes() == places[stay[:5]].tobytes()
    assert model.pending_
    model.run()
    assert model.pending_ == 0
    assert model._map.search.table().index.min() >= 0


def test_equal_rows_keep_their_place_when_the_first_of_them_leaves(digits: Rows) -> None:
    X = np.concatenate([digits[:300], digits[:40], digits[:40]])
    model = grown(X)
    places = model.embedding_
    model.forget(np.arange(20))
    assert model.embedding_.tobytes() == places[20:].tobytes()
    model.forget(np.arange(300, 310)).partial_fit(digits[300:400]).partial_fit(digits[:5])
    found = model.embedding_
    ids = model.row_ids_
    for row in range(5):
        rows = np.flatnonzero((model.rows_ == digits[row]).all(axis=1))
        assert ids[rows].tolist() == [340 + row, 480 + row]
        assert len(np.unique(found[rows], axis=0)) == 1


def test_a_stream_without_the_rows_has_a_map_as_good(digits: Rows) -> None:
    model = grown(digits[:1000], size=200, window=600)
    model.run().polish()
    fresh = UMAP(**FAST).fit(digits[400:1000])
    found, best = (trustworthiness(digits[400:1000], places) for places in (model.embedding_, fresh.embedding_))
    assert found >= best - 0.01


def test_a_window_holds_the_last_rows_in_bounded_memory(digits: Rows) -> None:
    model = ProgressiveUMAP(window=300, **FAST)
    sizes = []
    for batch in range(20):
        begin = batch * 50
        model.partial_fit(digits[begin : begin + 50])
        assert model.n_rows_ == len(model.embedding_) == min(300, 50 * (batch + 1))
        np.testing.assert_array_equal(model.row_ids_[-50:], np.arange(50 * batch, 50 * batch + 50))
        if model.n_rows_ == 300:
            sizes.append(len(bits(model)))
    assert model.n_seen_ == 1000
    assert max(sizes) <= 1.05 * min(sizes)


@pytest.mark.parametrize("window", [500, 60])
def test_a_search_in_pieces_gives_the_same_bits(digits: Rows, window: int) -> None:
    one, other = (ProgressiveUMAP(window=window, n_jobs=jobs, **FAST) for jobs in (1, 3))
    for begin in range(0, 1200, 200):
        for model, pieces in ((one, [180]), (other, [64, 100, 16])):
            model.insert(digits[begin : begin + 200])
            for n_ops in pieces:
                model._map.graph.search(n_ops, None)
    for model in (one, other):
        model.run()
    assert bits(one) == bits(other)


def test_threads_give_the_same_bits(digits: Rows) -> None:
    one, other = (grown(digits[:1000], window=400, n_jobs=jobs).forget(np.arange(700, 750)).run() for jobs in (1, 3))
    assert one.embedding_.tobytes() == other.embedding_.tobytes()
    assert bits(one) == bits(other)


@pytest.mark.parametrize("kind", ["dense", "sparse", "classes", "numbers"])
def test_a_saved_window_goes_on_with_the_same_bits(digits: Rows, digit_labels: Any, tmp_path: Path, kind: str) -> None:
    X: Any = sparse.csr_matrix(digits) if kind == "sparse" else digits
    y = {"classes": digit_labels, "numbers": digit_labels.astype(float)}.get(kind)
    more = {"target_metric": "euclidean"} if kind == "numbers" else {}
    one = ProgressiveUMAP(window=350, **FAST, **more)
    other = one
    for begin in range(0, 900, 100):
        part = slice(begin, begin + 100)
        for model in {id(one): one, id(other): other}.values():
            model.insert(X[part], None if y is None else y[part])
            model.step(n_ops=130)
            model.forget(model.row_ids_[3:20:4])
        one.save(tmp_path / "model.vicinal")
        other = vicinal.load(tmp_path / "model.vicinal")
        assert bits(one) == bits(other)
    one.run()
    other.run()
    assert one.embedding_.tobytes() == other.embedding_.tobytes()
    assert other.window == 350
    assert other.n_rows_ <= 350


def test_nothing_of_a_forgotten_row_is_in_the_file(digits: Rows, tmp_path: Path) -> None:
    names = np.array([f"kind-{row % 7}" for row in range(500)], dtype=object)
    names[11] = "only-here"
    model = grown(digits[:500] + np.float32(0.125), names)
    file = tmp_path / "model.vicinal"
    model.save(file)
    needles = [(digits[row] + np.float32(0.125)).tobytes() for row in (0, 11, 250)] + [b"only-here"]
    assert sum(needle in file.read_bytes() for needle in needles) == len(needles)
    model.forget([0, 11, 250])
    model.save(file)
    assert not any(needle in file.read_bytes() for needle in needles)
    assert not any(needle in pickle.dumps(model) for needle in needles)
    model.to_umap().save(file)
    assert not any(needle in file.read_bytes() for needle in needles)


def test_interrupts_leave_a_whole_model(digits: Rows) -> None:
    model = grown(digits[:300], size=300, window=300)
    before, copy = bits(model), pickle.dumps(model)
    calls = (
        partial(ProgressiveUMAP.forget, rows=np.arange(50, 100)),
        partial(ProgressiveUMAP.partial_fit, X=digits[300:360]),
    )
    for call in calls:
        wanted = pickle.loads(copy)
        call(wanted)
        n_lines = count_lines(partial(call, pickle.loads(copy)))
        outcomes = set()
        for line in np.linspace(1, n_lines, 12).astype(int):
            other = pickle.loads(copy)
            interrupted_at(partial(call, other), int(line))
            assert bits(other) in (before, bits(wanted))
            outcomes.add(bits(other))
        assert before in outcomes


def test_wrong_rows_and_windows_are_refused(digits: Rows) -> None:
    model = grown(digits[:100])
    for rows, error, message in (
        ([100], ValueError, "there is no row 100"),
        ([0.5], TypeError, "whole numbers"),
        (np.arange(100), ValueError, "must not name all 100 rows"),
    ):
        with pytest.raises(error, match=message):
            model.forget(rows)
    assert model.n_rows_ == 100
    with pytest.raises(ValueError, match="window"):
        ProgressiveUMAP(window=0).fit(digits[:50])
    with pytest.raises(vicinal.estimators.progressive.NotFittedError):
        ProgressiveUMAP().forget([0])


def test_a_batch_larger_than_the_window_leaves_its_last_rows(digits: Rows) -> None:
    model = ProgressiveUMAP(window=80, **FAST).partial_fit(digits[:50]).partial_fit(digits[50:400])
    np.testing.assert_array_equal(model.row_ids_, np.arange(320, 400))
    assert np.isfinite(model.embedding_).all()
    assert ProgressiveUMAP(window=80, **FAST).fit_transform(digits[:400]).shape == (80, 2)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("search", "n_ever"), 2**60),
        (("search", "n_ever"), 5),
        (("search", "n_ever"), "x"),
        (("search", "ids"), np.zeros(80, np.int64)),
        (("search", "core", "removed"), -1),
        (("search", "core", "longest2"), float("nan")),
        (("search", "core", "coarse_unit"), 0.5),
        (("search", "core", "coarse_unit"), float("inf")),
        (("clock",), [80, 0, 0, 79]),
        (("clock",), [80, 0, 0, 161]),
    ],
    ids=["large", "small", "text", "equal", "negative", "nan", "unit", "infinite", "settled-low", "settled-high"],
)
def test_forged_states_are_refused(digits: Rows, where: tuple[str, ...], value: Any) -> None:
    grown_map = ProgressiveUMAP(window=80, **FAST).fit(digits[:120])._map
    state = grown_map.state()
    part = state
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    with pytest.raises(ValueError, match=r"ids|n_ever|clock|removed|longest2|coarse_unit|state"):
        type(grown_map).from_state(state, grown_map.recipe, grown_map.pace, 1)
