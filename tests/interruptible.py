"""Work that takes far longer than a test, for the process that contract/test_cancellation.py interrupts.

Run as a program it reads names of ``STAGES``, one a line; of each it prepares the work, says "begun", works until it is
interrupted, and says "interrupted" and when, or what was wrong with the model that was left.
"""

from __future__ import annotations

import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

import vicinal
from vicinal import FullLayout, Graph, Layout, Neighbors, Phase, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.initialize.eigenmap import eigenmap
from vicinal.initialize.pca import pca
from vicinal.initialize.task import InitialTask
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.precomputed import neighbors_from_distances

Work = Callable[[], object]
# What prepares the work; a model comes with the work that must leave it as it was.
STAGES: dict[str, Callable[[], Work | tuple[Work, Any]]] = {}


def stage(prepare: Callable[[], Any]) -> Callable[[], Any]:
    STAGES[prepare.__name__] = prepare
    return prepare


def rows(n: int, d: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).normal(size=(n, d)).astype(np.float32)


def random_graph(n: int, k: int) -> Graph:
    rng = np.random.default_rng(0)
    index = rng.integers(n, size=(n, k)).astype(np.int32)
    index[:, 0] = np.arange(n)
    distance = np.sort(rng.random((n, k), dtype=np.float32), axis=1)
    distance[:, 0] = 0
    return fuzzy_graph(Neighbors(index, distance))


def places(n: int) -> NDArray[np.float32]:
    return np.random.default_rng(1).random((n, 2)).astype(np.float32)


@stage
def approximate_neighbours() -> Work:
    X = rows(60_000, 200)
    return lambda: find_neighbors(X, 15, method="approximate")


@stage
def approximate_neighbours_in_one_thread() -> Work:
    X = rows(60_000, 200)
    return lambda: find_neighbors(X, 15, method="approximate", n_jobs=1)


@stage
def exact_neighbours() -> Work:
    X = rows(30_000, 1000)
    return lambda: find_neighbors(X, 15, method="exact")


@stage
def exact_neighbours_of_wide_rows() -> Work:
    X = rows(2_000, 20_000)
    return lambda: find_neighbors(X, 15, metric="chebyshev", method="exact")


@stage
def neighbours_by_evaluated_pairs() -> Work:
    X = rows(20_000, 100)
    return lambda: find_neighbors(X, 15, metric="canberra")


@stage
def neighbours_by_a_python_function() -> Work:
    X = rows(3_000, 10)
    return lambda: find_neighbors(X, 15, metric=lambda x, y: float(np.abs(x - y).sum()))


@stage
def sparse_neighbours() -> Work:
    from scipy.sparse import random_array

    X = random_array((20_000, 2_000), density=0.02, format="csr", dtype=np.float32, rng=np.random.default_rng(0))
    return lambda: vicinal.KNeighborsTransformer(n_neighbors=15).fit_transform(X)


@stage
def neighbours_from_a_matrix_of_distances() -> Work:
    D = np.abs(rows(4_000, 4_000))
    return lambda: neighbors_from_distances(D, 15)


@stage
def query() -> Work:
    index = NeighborIndex(rows(5_000, 300))
    graph, Q = fuzzy_graph(index.search(15)), rows(20_000, 300) + 1
    return lambda: index.query(Q, 15, graph)


@stage
def graph() -> Work:
    n, k = 300_000, 30
    index = np.random.default_rng(0).integers(n, size=(n, k)).astype(np.int32)
    table = Neighbors(index, np.sort(np.random.default_rng(0).random((n, k), dtype=np.float32), axis=1))
    return lambda: fuzzy_graph(table)


@stage
def spectral_start() -> Work:
    made = random_graph(200_000, 15)
    return lambda: eigenmap(made, 2)


@stage
def principal_components() -> Work:
    task = InitialTask(random_graph(2_500, 5), rows(2_500, 4_000), 2, 0)
    return lambda: pca(task)


@stage
def layout() -> Work:
    running = Layout(random_graph(50_000, 15), places(50_000), fit_ab(), Schedule(100_000))
    return lambda: running.step(100_000)


@stage
def layout_of_few_rows() -> Work:
    running = Layout(random_graph(50, 5), places(50), fit_ab(), Schedule(10**9))
    return lambda: running.step(1_000_000)


@stage
def full_layout_of_every_pair() -> Work:
    running = FullLayout(random_graph(20_000, 15), places(20_000), [Phase(1)], method="exact")
    return lambda: running.step(10**6)


@stage
def full_layout_on_a_grid() -> Work:
    running = FullLayout(random_graph(20_000, 15), places(20_000), [Phase(1)], method="fft")
    return lambda: running.step(10**6)


@stage
def losses() -> Work:
    made, where = random_graph(20_000, 15), places(20_000)
    return lambda: vicinal.quality.losses.effective_loss(made, where, fit_ab(), Schedule(10))


@stage
def quality() -> Work:
    X, where = rows(10_000, 300), places(10_000)
    return lambda: vicinal.quality.measures.report(X, where)


@stage
def quality_by_another_metric() -> Work:
    X, where = rows(5_000, 500), places(5_000)
    return lambda: vicinal.quality.measures.trustworthiness(X, where, metric="manhattan")


@stage
def inverse_transform() -> Work:
    model = vicinal.UMAP(n_epochs=1, init="random", random_state=0).fit(rows(3_000, 400))
    return lambda: model.inverse_transform(np.repeat(places(10_000), 3, axis=0))


@stage
def page() -> Work:
    where, labels = places(200_000), np.arange(200_000) % 7
    names = [str(label) for label in labels]
    folder = tempfile.mkdtemp()
    return lambda: vicinal.viewer.export(f"{folder}/map.html", where, labels, hover=names)


@stage
def picture() -> Work:
    where, labels = places(200_000), np.arange(200_000) % 7
    folder = tempfile.mkdtemp()
    return lambda: vicinal.plot.save(f"{folder}/map.png", vicinal.plot.points(where, labels))


def unfitted(model: Any, X: Any, *args: Any, **kwargs: Any) -> tuple[Work, Any]:
    return lambda: model.fit(X, *args, **kwargs), model


@stage
def fit_umap() -> tuple[Work, Any]:
    return unfitted(vicinal.UMAP(n_epochs=100_000, init="random"), rows(20_000, 50))


@stage
def fit_densmap() -> tuple[Work, Any]:
    return unfitted(vicinal.DensMAP(n_epochs=100_000, init="random", dens_frac=1.0), rows(5_000, 20))


@stage
def fit_sparse() -> tuple[Work, Any]:
    from scipy.sparse import csr_matrix

    return unfitted(vicinal.UMAP(n_epochs=100_000, init="random"), csr_matrix(np.maximum(rows(3_000, 50), 0)))


@stage
def fit_tsne() -> tuple[Work, Any]:
    return unfitted(vicinal.TSNE(max_iter=100_000), rows(3_000, 20))


@stage
def fit_largevis() -> tuple[Work, Any]:
    return unfitted(vicinal.LargeVis(n_epochs=100_000), rows(5_000, 20))


@stage
def fit_aligned() -> tuple[Work, Any]:
    same = {row: row for row in range(1_000)}
    slices = [rows(1_000, 20), rows(1_000, 20) + 1]
    return unfitted(vicinal.AlignedUMAP(n_epochs=100_000), slices, relations=[same])


@stage
def fit_parametric() -> tuple[Work, Any]:
    vicinal.ParametricUMAP(n_epochs=1, init="random").fit(rows(50, 20))  # torch is imported, and warm
    return unfitted(vicinal.ParametricUMAP(n_epochs=10_000, init="random"), rows(2_000, 20))


@stage
def fit_progressive() -> tuple[Work, Any]:
    return unfitted(vicinal.ProgressiveUMAP(polish_epochs=100_000), rows(5_000, 20))


@stage
def fit_again() -> tuple[Work, Any]:
    """A fitted model, to be fitted to other rows."""
    model = vicinal.TSNE(max_iter=5).fit(rows(100, 4))
    return unfitted(model.set_params(max_iter=100_000), rows(3_000, 20))


@stage
def update() -> tuple[Work, Any]:
    model = vicinal.UMAP(n_epochs=10, init="random").fit(rows(3_000, 20))
    model.set_params(n_epochs=300_000)
    new = rows(1_000, 20) + 1
    return lambda: model.update(new), model


@contextmanager
def left_as_it_was(model: Any) -> Iterator[None]:
    before = dict(vars(model))
    yield
    changed = [name for name in before.keys() | vars(model).keys() if before.get(name) is not vars(model).get(name)]
    if changed:
        print("changed", *changed, flush=True)


def run(name: str) -> None:
    prepared = STAGES[name]()
    work, model = prepared if isinstance(prepared, tuple) else (prepared, object.__new__(type("Nothing", (), {})))
    with left_as_it_was(model):
        try:
            print("begun", flush=True)
            while True:
                work()
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), flush=True)
    print("done", flush=True)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background may ignore it
    for line in sys.stdin:
        run(line.strip())
