"""ProgressiveUMAP: sparse rows, metric functions, numbers as labels, equal rows, pieces, which rows moved."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.neighbors import KNeighborsRegressor

import vicinal
from vicinal import UMAP, ProgressiveUMAP
from vicinal.files.models import ModelFileError

Rows = NDArray[np.float32]


def manhattan(x: Rows, y: Rows) -> float:
    return float(np.abs(x - y).sum())


def grown(X: Any, size: int, y: Any = None, **parameters: Any) -> ProgressiveUMAP:
    model = ProgressiveUMAP(**{"n_neighbors": 10, "random_state": 0, **parameters})
    for begin in range(0, X.shape[0], size):
        model.partial_fit(X[begin : begin + size], None if y is None else y[begin : begin + size])
    return model


def same_bits(one: ProgressiveUMAP, other: ProgressiveUMAP) -> bool:
    return one.embedding_.tobytes() == other.embedding_.tobytes() and (one.graph_ != other.graph_).nnz == 0


@pytest.mark.parametrize("kind", ["sparse", pytest.param("function", marks=pytest.mark.nightly)])
def test_sparse_rows_and_functions_work_in_every_call(digits: Rows, tmp_path: Path, kind: str) -> None:
    X: Any = sparse.csr_matrix(digits[:500]) if kind == "sparse" else digits[:400]
    parameters: dict[str, Any] = {"metric": "cosine" if kind == "sparse" else manhattan}
    model = grown(X[:200], 100, **parameters)
    model.insert(X[200:300])
    model.step(n_ops=60)
    model.save(tmp_path / "model")
    given = {"metric": manhattan} if kind == "function" else {}
    others = [vicinal.load(tmp_path / "model", **given), pickle.loads(pickle.dumps(model))]
    for one in (model, *others):
        one.step()
        one.partial_fit(X[300:])
        one.run().polish()
    assert all(same_bits(model, other) for other in others)
    assert model.embedding_.shape == (X.shape[0], 2)
    np.testing.assert_array_equal(model.transform(X[:50]), model.embedding_[:50])
    new: Any = X[:20] + X[20:40]
    assert np.isfinite(model.transform(new)).all()
    made = model.to_umap()
    assert type(made) is UMAP
    assert made.update(new).embedding_.shape == (X.shape[0] + 20, 2)
    fitted = ProgressiveUMAP(random_state=0, batch_size=150, **parameters).fit(X)
    assert np.isfinite(fitted.embedding_).all()
    assert fitted.bytes_per_row_ > 0


@pytest.mark.nightly
def test_a_map_of_sparse_rows_separates_classes_as_one_of_dense_rows(
    digits: Rows, digit_labels: NDArray[np.int64]
) -> None:
    X, y = digits[:1200], digit_labels[:1200]
    spread = sparse.hstack([sparse.csr_matrix(X), sparse.csr_matrix((1200, 300), dtype=np.float32)], format="csr")
    accuracies = []
    for rows in (X, sparse.csr_matrix(X), spread):
        places = grown(rows, 300).run().polish().embedding_
        near = vicinal.find_neighbors(places, 11).index[:, 1:]
        accuracies.append(np.mean([np.bincount(y[others]).argmax() == c for others, c in zip(near, y, strict=True)]))
    assert min(accuracies) > 0.93
    assert max(accuracies) - min(accuracies) < 0.03


def test_a_function_that_fails_changes_nothing(digits: Rows) -> None:
    calls = [0, 10**9]

    def sometimes(x: Rows, y: Rows) -> float:
        calls[0] += 1
        if calls[0] > calls[1]:
            raise ArithmeticError("no distance")
        return float(np.abs(x - y).sum())

    model, other = grown(digits[:200], 100, metric=sometimes), grown(digits[:200], 100, metric=manhattan)
    for most in (10, 4000, 9000):
        calls[:] = [0, most]
        with pytest.raises(ArithmeticError, match="no distance"):
            model.partial_fit(digits[200:300])
        assert model.n_rows_ == 200
    calls[1] = 10**9
    for one in (model, other):
        one.partial_fit(digits[200:300])
    assert same_bits(model, other)


def test_a_function_that_fails_for_one_row_of_a_large_map_changes_nothing(
    digits: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vicinal.pipeline.online_graph.FIRST_MAP_ROWS", 100)
    fails = [False]

    def sometimes(x: Rows, y: Rows) -> float:
        if fails[0]:
            raise ArithmeticError("no distance")
        return float(np.abs(x - y).sum())

    model = grown(digits[:300], 150, metric=sometimes).run()
    before, fails[0] = model.embedding_, True
    with pytest.raises(ArithmeticError, match="no distance"):
        model.partial_fit(digits[300:301])
    np.testing.assert_array_equal(model.embedding_, before)
    fails[0] = False
    assert model.partial_fit(digits[300:301]).n_rows_ == 301


def test_rows_of_another_kind_and_precomputed_distances_are_refused(digits: Rows, tmp_path: Path) -> None:
    model = grown(digits[:100], 100)
    for call in (model.partial_fit, model.transform, model.insert):
        with pytest.raises(TypeError, match="X must be dense like the first rows"):
            call(sparse.csr_matrix(digits[:5]))
    assert model.n_rows_ == 100
    with pytest.raises(ValueError, match="metric"):
        ProgressiveUMAP(metric="precomputed").partial_fit(digits[:20])
    grown(digits[:60], 60, metric=manhattan).save(tmp_path / "model")
    with pytest.raises(ModelFileError, match="metric was a function, manhattan"):
        vicinal.load(tmp_path / "model")


@pytest.mark.parametrize("columns", [1, 2])
def test_numbers_order_the_map(columns: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 8)).astype(np.float32)
    y = X[:, :columns] + 0.3 * rng.normal(size=(1500, columns))
    y = y[:, 0] if columns == 1 else y
    some = np.where(rng.random(1500)[:, None] < 0.1, np.nan, y.reshape(1500, -1)).reshape(y.shape)

    def explained(model: ProgressiveUMAP) -> float:
        places = model.run().polish().embedding_
        half = KNeighborsRegressor(10).fit(places[:750], y[:750]).predict(places[750:])
        return float(1 - np.square(half - y[750:]).mean() / y[750:].var(axis=0).mean())

    plain = explained(grown(X, 250))
    supervised = explained(grown(X, 250, some, target_metric="euclidean", target_weight=0.9))
    assert supervised > plain + 0.15


def test_numbers_are_saved_and_returned(digits: Rows, tmp_path: Path) -> None:
    y = np.where(np.arange(400) % 5, digits[:400].sum(axis=1), np.nan)
    model = grown(digits[:300], 100, y, target_metric="ordinal")
    model.save(tmp_path / "model")
    other = vicinal.load(tmp_path / "model")
    for one in (model, other):
        one.partial_fit(digits[300:400], y[300:])
    assert same_bits(model, other)
    made = model.to_umap()
    np.testing.assert_array_equal(made.map_.options.y, y)
    assert made.update(digits[400:420], y[:20]).embedding_.shape == (420, 2)
    with pytest.raises(ValueError, match="y contains infinity, first in row 1"):
        model.partial_fit(digits[:2], [0.0, np.inf])
    with pytest.raises(ValueError, match="target_metric"):
        ProgressiveUMAP(target_metric="cosine").partial_fit(digits[:20], y[:20])


@pytest.mark.parametrize("size", [1, 30, 300])
def test_equal_rows_share_a_place_even_if_all_their_neighbors_are_equal(size: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2, 5)).astype(np.float32)[rng.integers(2, size=300)]
    model = grown(X, size)
    assert len(np.unique(model.embedding_, axis=0)) == 2
    assert len(np.unique(model.run().polish().embedding_, axis=0)) == 2
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


@pytest.mark.nightly
def test_many_pieces_stay_within_bounds() -> None:
    rng = np.random.default_rng(0)
    centers = 100 * rng.normal(size=(600, 4))
    X = (np.repeat(centers, 5, axis=0) + 0.01 * rng.normal(size=(3000, 4))).astype(np.float32)
    model = ProgressiveUMAP(n_neighbors=5, disconnection_distance=1.0, random_state=0, batch_size=100).fit(X)
    places = model.embedding_
    assert np.ptp(places, axis=0).max() < 300
    middles = places.reshape(600, 5, 2).mean(axis=1)
    assert np.median(vicinal.find_neighbors(middles, 2).distance[:, 1]) > 0.5


def test_a_step_says_which_rows_are_new_and_which_moved(digits: Rows) -> None:
    X = np.concatenate([digits[:1300], digits[:3]])
    model = grown(X[:1200], 400).run()
    model.insert(X[1200:])
    new, moved = [], []
    while model.pending_:
        before = model.embedding_
        step = model.step(n_ops=150)
        after = model.embedding_
        changed = np.flatnonzero((after[: len(before)] != before).any(axis=1))
        assert set(changed) <= set(step.moved_rows.tolist())
        assert set(step.new_rows.tolist()) <= set(step.moved_rows.tolist())
        assert (np.diff(step.moved_rows) > 0).all()
        assert step.n_placed == len(after)
        new.append(step.new_rows)
        moved.append(step.moved_rows)
    np.testing.assert_array_equal(np.concatenate(new), np.arange(1200, 1303))
    assert len(np.unique(np.concatenate(moved))) < 1000
    assert not model.step().moved_rows.size


def test_the_first_steps_report_all_rows_as_new(digits: Rows) -> None:
    model = ProgressiveUMAP(random_state=0).insert(digits[:300])
    step = model.step()
    np.testing.assert_array_equal(step.new_rows, np.arange(300))
    np.testing.assert_array_equal(step.moved_rows, np.arange(300))
