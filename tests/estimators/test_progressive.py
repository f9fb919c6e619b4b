"""ProgressiveUMAP: batches of any size, work split anywhere, killed processes, parameters and files."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal
from vicinal import UMAP, ProgressiveUMAP
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.quality.losses import effective_loss
from vicinal.quality.measures import neighbor_recall, trustworthiness

Rows = NDArray[np.float32]
FAST: dict[str, Any] = {"n_neighbors": 10, "polish_epochs": 12, "random_state": 0}


def grown(X: Rows, size: int, **parameters: Any) -> ProgressiveUMAP:
    model = ProgressiveUMAP(**{**FAST, **parameters})
    for begin in range(0, len(X), size):
        model.partial_fit(X[begin : begin + size])
    return model


def in_small_steps(X: Rows, n_jobs: int) -> list[Rows]:
    """Return the maps of a stream whose batches arrive before the earlier ones are finished."""
    model, maps = ProgressiveUMAP(n_jobs=n_jobs, **FAST), []
    for begin in range(0, len(X), 150):
        model.insert(X[begin : begin + 150])
        for n_ops in (40, 130, 700):
            model.step(n_ops=n_ops)
        if begin >= 150:
            maps.append(model.embedding_)
    return [*maps, model.run().polish().embedding_]


@parametrize_with_checks([ProgressiveUMAP(n_neighbors=5, new_epochs=12, polish_epochs=6)])
def test_estimator_checks(estimator: ProgressiveUMAP, check: Any) -> None:
    check(estimator)


def test_bits_do_not_depend_on_n_jobs(digits: Rows) -> None:
    one, *others = (in_small_steps(digits[:900], n_jobs) for n_jobs in (1, 2, 8))
    for other in others:
        for left, right in zip(one, other, strict=True):
            assert left.tobytes() == right.tobytes()


@pytest.mark.parametrize("copied", ["saved", "pickled"])
def test_a_copy_made_in_mid_stream_continues_bit_for_bit(digits: Rows, tmp_path: Path, copied: str) -> None:
    labels = np.array(["a", "b", None], dtype=object)[np.arange(900) % 3]
    model = ProgressiveUMAP(**FAST)
    model.partial_fit(digits[:400], labels[:400]).insert(digits[400:600], labels[400:600])
    model.step(n_ops=90)
    if copied == "saved":
        model.save(tmp_path / "model")
        other = vicinal.load(tmp_path / "model")
    else:
        other = pickle.loads(pickle.dumps(model))
    assert other.embedding_.tobytes() == model.embedding_.tobytes()
    assert other.pending_ == model.pending_ > 0
    for one in (model, other):
        one.step(n_ops=500)
        one.partial_fit(digits[600:900], labels[600:900])
        one.run().polish()
    assert other.embedding_.tobytes() == model.embedding_.tobytes()
    assert (other.graph_ != model.graph_).nnz == 0
    np.testing.assert_array_equal(other.age_, model.age_)


STREAM = """
import sys
from pathlib import Path
import numpy as np
import vicinal

file, waits = Path(sys.argv[1]), sys.argv[2] == "waits"
X = np.random.default_rng(0).normal(size=(600, 8)).astype("float32")
model = vicinal.load(file) if file.exists() else vicinal.ProgressiveUMAP(n_neighbors=10, random_state=0)
done = model.n_rows_ if file.exists() else 0
for begin in range(done, len(X), 60):
    model.insert(X[begin : begin + 60])
    model.step(n_ops=150)
    model.save(file)
    if waits and begin == 120:
        print("saved", flush=True)
        sys.stdin.read()
model.run().save(file)
"""


def test_a_killed_process_is_resumed_from_its_file(tmp_path: Path, child_environment: dict[str, str]) -> None:
    whole, cut = tmp_path / "whole", tmp_path / "cut"

    def stream(file: Path, waits: str = "") -> subprocess.Popen[str]:
        command = [sys.executable, "-c", STREAM, str(file), waits]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=child_environment, stdin=pipe, stdout=pipe, text=True)

    with stream(whole) as undisturbed, stream(cut, "waits") as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == "saved\n"
        killed.kill()
    assert (undisturbed.returncode, killed.returncode) == (0, -signal.SIGKILL)
    assert vicinal.load(cut).n_rows_ == 180
    with stream(cut) as resumed:
        pass
    assert resumed.returncode == 0
    one, other = vicinal.load(whole), vicinal.load(cut)
    assert one.embedding_.tobytes() == other.embedding_.tobytes()
    assert one.pending_ == other.pending_ == 0


def test_batches_of_one_row(iris: Rows) -> None:
    model = grown(iris[:60], 1)
    assert model.embedding_.shape == (60, 2)
    assert np.isfinite(model.run().polish().embedding_).all()
    assert model.pending_ == 0
    assert model.coverage_ == 1.0


def test_a_batch_ten_times_as_large_as_the_map(digits: Rows) -> None:
    model = ProgressiveUMAP(**FAST).partial_fit(digits[:120]).partial_fit(digits[120:1320]).run()
    assert model.embedding_.shape == (1320, 2)
    assert np.isfinite(model.embedding_).all()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_small_map_is_as_good_as_a_fit(digits: Rows, seed: int) -> None:
    fit = UMAP(random_state=seed).fit(digits)
    graph, kernel = fit.map_.graph, vicinal.fit_ab(min_dist=0.1)

    def loss(places: Rows) -> float:
        return effective_loss(graph, places, kernel, negatives="resting", samples=None).value

    stream = ProgressiveUMAP(random_state=seed).fit_transform(digits)
    assert loss(stream) < 1.02 * loss(fit.embedding_)
    assert neighbor_recall(digits, stream) > 0.96 * neighbor_recall(digits, fit.embedding_)


@pytest.mark.nightly
def test_small_batches_sorted_by_class_keep_the_neighborhoods(digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    order = np.argsort(digit_labels, kind="stable")
    for seed in (0, 1):
        places = ProgressiveUMAP(random_state=seed, batch_size=50).fit_transform(digits[order])
        assert trustworthiness(digits[order], places, n_neighbors=15) > 0.983  # 0.988 by UMAP


def test_equal_rows_share_one_place(digits: Rows) -> None:
    X = np.concatenate([digits[:200], np.repeat(digits[:5], 60, axis=0), digits[:200]])
    model = grown(X, 100).run()
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.embedding_[500:], model.embedding_[:200])
    np.testing.assert_array_equal(model.embedding_[200:500], np.repeat(model.embedding_[:5], 60, axis=0))
    np.testing.assert_array_equal(model.transform(X), model.embedding_)


def test_a_distant_cluster_is_placed_apart_from_the_map(digits: Rows) -> None:
    model = ProgressiveUMAP(**FAST).partial_fit(digits[:600]).run()
    before = model.embedding_
    model.partial_fit(digits[600:660] + 1000.0).run()
    after = model.embedding_
    assert np.isfinite(after).all()
    cluster, rest = after[600:], after[:600]
    spread = np.linalg.norm(cluster - cluster.mean(axis=0), axis=1).max()
    assert np.linalg.norm(rest - cluster.mean(axis=0), axis=1).min() > 0.5 * spread
    assert drift(before, rest) < 0.02


def drift(before: Rows, after: Rows) -> float:
    """Return the median distance that rows moved, as a share of the extent of the map."""
    moved = np.linalg.norm(after[: len(before)] - before, axis=1)
    return float(np.median(moved) / np.ptp(before, axis=0).max())


@pytest.mark.parametrize("move", ["active", "all"])
def test_old_rows_move_little_when_few_rows_arrive(digits: Rows, move: str) -> None:
    model = grown(digits[:1500], 500, move=move).run().polish()
    before = model.embedding_
    after = model.partial_fit(digits[1500:1515]).run().embedding_
    assert drift(before, after) < 0.02
    at_rest = (after[: len(before)] == before).all(axis=1)
    assert at_rest.any() == (move == "active")


def test_only_new_and_updated_rows_move(digits: Rows) -> None:
    model = grown(digits[:1200], 400).run()
    age, before = model.age_, model.embedding_
    model.partial_fit(digits[1200:1203])
    lived = model.age_[:1200] > age
    moved = (model.embedding_[:1200] != before).any(axis=1)
    assert 0 < moved.sum() <= lived.sum() < 200


def test_the_graph_equals_the_fuzzy_graph_of_the_neighbors(digits: Rows) -> None:
    model = grown(digits[:900], 200).run()
    table = model._map.search.table()
    np.testing.assert_array_equal(model.graph_.toarray(), fuzzy_graph(table).to_scipy().toarray())


def test_labels_separate_classes_and_unlabeled_rows_follow(digits: Rows, digit_labels: NDArray[np.int64]) -> None:
    blurred = digits + np.random.default_rng(0).normal(scale=8.0, size=digits.shape).astype(np.float32)
    known = np.where(np.arange(len(digits)) % 3, digit_labels, -1)
    plain, supervised = (ProgressiveUMAP(random_state=0) for _ in range(2))
    for begin in range(0, 1500, 500):
        rows = slice(begin, begin + 500)
        plain.partial_fit(blurred[rows])
        supervised.partial_fit(blurred[rows], known[rows])
    within = [scatter(model.run().polish().embedding_, digit_labels[:1500]) for model in (plain, supervised)]
    assert within[1] < 0.8 * within[0]
    np.testing.assert_array_equal(supervised.to_umap().map_.options.y, known[:1500])


def scatter(places: Rows, labels: NDArray[np.int64]) -> float:
    """Return the share of the variance of the map that lies within classes."""
    inside = sum(places[labels == c].var(axis=0).sum() * (labels == c).mean() for c in np.unique(labels))
    return float(inside / places.var(axis=0).sum())


def test_to_umap_returns_an_independent_umap(digits: Rows, tmp_path: Path) -> None:
    model = grown(digits[:800], 300).run()
    made = model.to_umap()
    assert type(made) is UMAP
    np.testing.assert_array_equal(made.embedding_, model.embedding_)
    np.testing.assert_array_equal(made.transform(digits[:800]), model.transform(digits[:800]))
    new = made.transform(digits[800:820])
    made.save(tmp_path / "umap")
    np.testing.assert_array_equal(vicinal.load(tmp_path / "umap").transform(digits[800:820]), new)
    assert made.update(digits[800:900]).embedding_.shape == (900, 2)
    assert model.embedding_.shape == (800, 2)


def test_transform_places_each_row_independently_and_does_not_change_the_map(digits: Rows) -> None:
    model = grown(digits[:800], 300).run()
    before, new = model.embedding_, digits[800:830]
    places = model.transform(new)
    assert np.isfinite(places).all()
    np.testing.assert_array_equal(places[::-1], model.transform(np.ascontiguousarray(new[::-1])))
    np.testing.assert_array_equal(places[7:8], model.transform(new[7:8]))
    np.testing.assert_array_equal(model.embedding_, before)


def test_step_reports_the_state_of_the_map(digits: Rows) -> None:
    model = ProgressiveUMAP(**FAST).insert(digits[:300])
    assert (model.n_rows_, model.pending_) == (300, 300)
    first = model.step(n_ops=100)
    assert (first.n_rows, first.n_placed, first.moved) == (300, 0, 0)
    assert first.coverage < 1
    while not model.step(budget_ms=20).n_placed:
        pass
    last = model.run().step()
    assert (last.n_placed, last.pending, last.coverage, last.moved, last.stage) == (300, 0, 1.0, 0, "idle")


def test_a_callback_sees_the_map_grow_and_can_stop_a_call(digits: Rows) -> None:
    seen: list[tuple[str, int]] = []

    def callback(stage: str, epoch: int, n_epochs: int, embedding: Rows | None) -> bool:
        assert 0 <= epoch <= n_epochs
        seen.append((stage, 0 if embedding is None else len(embedding)))
        return len(seen) == stop

    stop = 0
    model = ProgressiveUMAP(callback=callback, **FAST).partial_fit(digits[:300]).partial_fit(digits[300:500])
    assert {stage for stage, _ in seen} == {"neighbors", "layout"}
    assert (seen[0][1], seen[-1][1]) == (300, 500)
    stop = len(seen) + 1
    model.insert(digits[500:510]).run()
    assert len(seen) == stop
    assert model.pending_
    model.run()
    assert not model.pending_


def test_input_is_copied_and_not_changed(digits: Rows) -> None:
    given = digits[:300].copy()
    model = ProgressiveUMAP(**FAST).partial_fit(given)
    np.testing.assert_array_equal(given, digits[:300])
    given[:] = 0
    other = grown(digits[:300], 300)
    assert model.run().embedding_.tobytes() == other.run().embedding_.tobytes()


def test_fit_replaces_the_rows_inserted_before(digits: Rows) -> None:
    model = grown(digits[:300], 100)
    again = clone(model).fit(digits[300:600]).embedding_
    assert model.fit(digits[300:600]).embedding_.tobytes() == again.tobytes()


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"move": "some"}, "move"),
        ({"new_epochs": -1}, "new_epochs"),
        ({"metric": "precomputed"}, "metric"),
        ({"min_dist": 2.0}, "min_dist"),
        ({"a": 1.0}, "a and b"),
        ({"batch_size": 0}, "batch_size"),
    ],
)
def test_bad_parameters_are_refused_by_name_before_any_work(iris: Rows, parameters: dict[str, Any], name: str) -> None:
    model = ProgressiveUMAP(**parameters)
    with pytest.raises((ValueError, TypeError), match=name):
        model.partial_fit(iris)
    assert not hasattr(model, "embedding_")


def test_bad_rows_and_labels_do_not_change_the_map(digits: Rows) -> None:
    model = grown(digits[:300], 100)
    broken = digits[300:400].copy()
    broken[17, 3] = np.nan
    with pytest.raises(ValueError, match="row 17"):
        model.partial_fit(broken)
    with pytest.raises(ValueError, match="y must have 100 rows"):
        model.partial_fit(digits[300:400], np.zeros(99))
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(digits[300:400, :10])
    other = grown(digits[:300], 100)
    assert model.run().embedding_.tobytes() == other.run().embedding_.tobytes()


def test_column_names_are_kept_and_checked(digits: NDArray[np.float32]) -> None:
    frame = pd.DataFrame(digits[:120, 20:24], columns=list("abcd"))
    for model in (ProgressiveUMAP(random_state=0).fit(frame), ProgressiveUMAP(random_state=0).partial_fit(frame)):
        assert list(model.feature_names_in_) == list("abcd")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.transform(frame[:3])
        with pytest.raises(ValueError, match="feature names"):
            model.transform(frame[list("dcba")])


def test_transform_and_later_batches_use_the_parameters_of_the_first(digits: Rows, tmp_path: Path) -> None:
    one, other = grown(digits[:500], 250).run(), grown(digits[:500], 250).run()
    other.set_params(n_neighbors=30, learning_rate=0.1, min_dist=0.9, transform_seed=7, new_epochs=100, n_components=3)
    new = digits[500:520]
    np.testing.assert_array_equal(one.transform(new), other.transform(new))
    for model in (one, other):
        model.partial_fit(digits[520:700])
    np.testing.assert_array_equal(one.embedding_, other.embedding_)
    other.save(tmp_path / "model")
    loaded = vicinal.load(tmp_path / "model")
    assert loaded.n_neighbors == 30
    np.testing.assert_array_equal(loaded.transform(new), one.transform(new))
    np.testing.assert_array_equal(loaded.to_umap().transform(new), one.to_umap().transform(new))
    assert other.fit(digits[:100]).embedding_.shape == (100, 3)


@pytest.mark.parametrize("n_reports", [0, 1, 5, 12])
def test_a_fit_that_fails_leaves_the_model_as_it_was(digits: Rows, n_reports: int) -> None:
    model = grown(digits[:300], 100).run()
    before, reports = model.embedding_, []

    def callback(*args: Any) -> None:
        reports.append(args)
        if len(reports) > n_reports:
            raise KeyboardInterrupt

    model.set_params(callback=callback, batch_size=150)
    with pytest.raises(KeyboardInterrupt):
        model.fit(digits[:600, :30])
    assert model.n_features_in_ == 64
    np.testing.assert_array_equal(model.embedding_, before)
    other = grown(digits[:300], 100).run()
    for one in (model.set_params(callback=None), other):
        one.partial_fit(digits[300:400])
    np.testing.assert_array_equal(model.embedding_, other.embedding_)


def test_a_first_batch_that_is_refused_leaves_the_model_unfitted(digits: Rows) -> None:
    model = ProgressiveUMAP(metric="hellinger")
    for call in (model.insert, model.partial_fit, model.fit):
        with pytest.raises(ValueError, match="negative"):
            call(-1 - digits[:50])
        assert not set(vars(model)) - set(model.get_params())
    for method in (model.step, model.run, model.polish):
        with pytest.raises(NotFittedError):
            method()
    with pytest.raises(NotFittedError):
        model.insert(digits[:50]).transform(digits[:3])


@pytest.mark.parametrize("bound", [{"n_ops": -1}, {"n_ops": 2.5}, {"budget_ms": -1}, {"budget_ms": float("nan")}])
def test_bounds_of_step_are_checked(digits: Rows, bound: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bound))):
        grown(digits[:100], 100).step(**bound)
