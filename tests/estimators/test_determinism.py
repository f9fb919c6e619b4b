"""Same seed, same bits: for any number of threads, for split and whole runs, for two fits in one process."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from vicinal import UMAP, Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.neighbors.metrics import VECTOR_METRICS as METRICS

JOBS = (1, 2, 8)


def with_duplicates(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the rows and 500 copies of some of them, in random order; row 7 is copied 100 times."""
    rng = np.random.default_rng(4)
    copies = np.concatenate([rng.integers(len(rows), size=400), np.full(100, 7)])
    return np.concatenate([rows, rows[copies]])[rng.permutation(len(rows) + 500)]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"update_negatives": True},
        {"n_components": 3, "metric": "cosine"},
        {"n_components": 5, "init": "pca", "metric": "manhattan"},
        {"init": "random", "set_op_mix_ratio": 0.4, "local_connectivity": 1.5},
        {"force_approximation_algorithm": True},
    ],
    ids=str,
)
def test_fit_and_transform_do_not_depend_on_n_jobs(digits: NDArray[np.float32], options: dict[str, Any]) -> None:
    X, new = with_duplicates(digits[:1200]), digits[1200:1300] + 0.25
    models = [UMAP(random_state=5, n_epochs=40, n_jobs=jobs, **options).fit(X) for jobs in JOBS]
    assert np.isfinite(models[0].embedding_).all()
    placed = models[0].transform(new)
    for model in models[1:]:
        np.testing.assert_array_equal(model.embedding_, models[0].embedding_)
        np.testing.assert_array_equal(model._knn_indices, models[0]._knn_indices)
        np.testing.assert_array_equal(model.graph_.data, models[0].graph_.data)
        np.testing.assert_array_equal(model.transform(new), placed)


def test_supervised_fit_does_not_depend_on_n_jobs(digits: NDArray[np.float32], digit_labels: NDArray[np.int64]) -> None:
    first, *others = [
        UMAP(random_state=5, n_epochs=20, n_jobs=jobs).fit_transform(digits, digit_labels) for jobs in JOBS
    ]
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_large_fit_does_not_depend_on_n_jobs(grouped: Any) -> None:
    """With 10,500 rows the search is approximate, and the spectral initialization iterates."""
    X = with_duplicates(grouped(10_000, 40))
    first, *others = [UMAP(random_state=1, n_epochs=10, n_jobs=jobs).fit(X) for jobs in JOBS]
    placed = first.transform(X[:50] + 0.1)
    for other in others:
        np.testing.assert_array_equal(other._knn_indices, first._knn_indices)
        np.testing.assert_array_equal(other.embedding_, first.embedding_)
        np.testing.assert_array_equal(other.transform(X[:50] + 0.1), placed)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("d", [12, 150])
def test_approximate_neighbors_do_not_depend_on_n_jobs(grouped: Any, metric: str, d: int) -> None:
    X = with_duplicates(grouped(2000, d))
    first, *others = [find_neighbors(X, 15, metric=metric, method="approximate", seed=3, n_jobs=jobs) for jobs in JOBS]
    for other in others:
        np.testing.assert_array_equal(other.index, first.index)
        np.testing.assert_array_equal(other.distance, first.distance)


@pytest.mark.parametrize("metric", METRICS)
def test_exact_neighbors_do_not_depend_on_n_jobs_or_seed(grouped: Any, metric: str) -> None:
    X = with_duplicates(grouped(700, 150))
    first, *others = [find_neighbors(X, 15, metric=metric, method="exact", seed=jobs, n_jobs=jobs) for jobs in JOBS]
    for other in others:
        np.testing.assert_array_equal(other.index, first.index)
        np.testing.assert_array_equal(other.distance, first.distance)


@pytest.mark.parametrize("dim", [2, 3, 4])
@pytest.mark.parametrize("update_negatives", [False, True])
def test_split_and_whole_runs_agree(iris: NDArray[np.float32], dim: int, update_negatives: bool) -> None:
    graph = fuzzy_graph(find_neighbors(iris, 10))
    start = np.random.default_rng(0).uniform(0, 10, size=(150, dim)).astype(np.float32)
    schedule = Schedule(200, update_negatives=update_negatives)
    results = []
    for parts in ([200], [10, 190], [1] * 200, [0, 77, 0, 123]):
        layout = Layout(graph, start, fit_ab(), schedule, seed=2)
        for n in parts:
            layout.step(n)
        assert layout.epoch == 200
        results.append(layout.embedding)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_callback_and_verbose_keep_the_map(iris: NDArray[np.float32], capsys: pytest.CaptureFixture[str]) -> None:
    quiet = UMAP(random_state=0, n_epochs=200).fit_transform(iris)
    watched = UMAP(random_state=0, n_epochs=200, callback=lambda *_: None, verbose=True).fit_transform(iris)
    capsys.readouterr()
    np.testing.assert_array_equal(quiet, watched)


def test_two_fits_in_one_process_agree(digits: NDArray[np.float32]) -> None:
    X = with_duplicates(digits[:900])
    model = UMAP(random_state=9, n_epochs=30)
    first = model.fit_transform(X).copy()
    UMAP(random_state=1, n_epochs=10).fit(X[:300])
    np.testing.assert_array_equal(model.fit_transform(X), first)
    np.testing.assert_array_equal(UMAP(random_state=9, n_epochs=30).fit_transform(X), first)


def test_seeds_give_different_maps_and_none_is_random(iris: NDArray[np.float32]) -> None:
    maps = [UMAP(random_state=seed, n_epochs=20).fit_transform(iris) for seed in (0, 1, None, None)]
    for i, one in enumerate(maps):
        for other in maps[:i]:
            assert not np.array_equal(one, other)


@pytest.mark.parametrize("init", ["spectral", "pca"])
@pytest.mark.parametrize(("n", "d"), [(150, 10), (1500, 64), (1500, 400), (300, 700)])
def test_map_does_not_depend_on_the_threads_of_blas(grouped: Any, init: str, n: int, d: int) -> None:
    X = grouped(n, d)
    maps = []
    for limit in (1, 2):
        with threadpool_limits(limits=limit):
            maps.append(UMAP(random_state=0, n_epochs=10, init=init).fit_transform(X))
    np.testing.assert_array_equal(maps[0], maps[1])
