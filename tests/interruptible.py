"""Stages that take far longer than a test, for the process that estimators/test_cancellation.py interrupts.

As a program it reads names of ``STAGES``, one per line. It prepares each stage, runs it until it is interrupted, and
prints one line of JSON: whether it was interrupted, and the attributes of the model that were changed.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from interrupting import PACKAGE, interrupt_inside_a_call, interrupted_at
from numpy.typing import NDArray
from scipy.sparse import block_diag

import vicinal
from vicinal import FullLayout, Graph, Layout, Neighbors, Phase, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.initialize.spectral import component_maps
from vicinal.initialize.task import InitialTask, pca_places
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.table import neighbors_from_distances
from vicinal.quality.losses import effective_loss
from vicinal.quality.report import report

Work = Callable[[], object]
# Functions that prepare a stage and return the work; of a fit also the model, which an interrupt must not change.
STAGES: dict[str, Callable[[], Work | tuple[Work, Any]]] = {}
# Stages that spend their time in Python code or in short calls: the line before which the signal is sent.
LINES: dict[str, int] = {}


def stage(prepare: Callable[[], Any]) -> Callable[[], Any]:
    STAGES[prepare.__name__] = prepare
    return prepare


def python_stage(line: int) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def named(prepare: Callable[[], Any]) -> Callable[[], Any]:
        LINES[prepare.__name__] = line
        return stage(prepare)

    return named


def rows(n: int, d: int) -> NDArray[np.float32]:
    return np.random.default_rng(0).random((n, d), dtype=np.float32) - 0.5


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
def approximate_neighbors() -> Work:
    X = rows(60_000, 200)
    return lambda: find_neighbors(X, 15, method="approximate")


@stage
def approximate_neighbors_in_one_thread() -> Work:
    X = rows(60_000, 200)
    return lambda: find_neighbors(X, 15, method="approximate", n_jobs=1)


@stage
def exact_neighbors() -> Work:
    X = rows(30_000, 1000)
    return lambda: find_neighbors(X, 15, method="exact")


@stage
def exact_neighbors_of_wide_rows() -> Work:
    X = rows(2_000, 20_000)
    return lambda: find_neighbors(X, 15, metric="chebyshev", method="exact")


@stage
def exact_neighbors_by_sketches_of_very_wide_rows() -> Work:
    X = rows(600, 60_000)
    return lambda: find_neighbors(X, 15, method="exact")


@stage
def neighbors_of_few_rows_with_a_million_columns() -> Work:
    X = rows(30, 1_000_000)
    return lambda: find_neighbors(X, 15)


@stage
def neighbors_by_evaluated_pairs() -> Work:
    X = rows(20_000, 100)
    return lambda: find_neighbors(X, 15, metric="canberra")


@python_stage(100)
def neighbors_by_a_python_function() -> Work:
    X = rows(3_000, 10)
    return lambda: find_neighbors(X, 15, metric=lambda x, y: float(np.abs(x - y).sum()))


@stage
def sparse_neighbors() -> Work:
    from scipy import sparse

    draws = np.random.default_rng(0)
    X = sparse.random(20_000, 2_000, density=0.02, format="csr", dtype=np.float32, random_state=draws)
    return lambda: vicinal.KNeighborsTransformer(n_neighbors=15).fit_transform(X)


@python_stage(100)
def neighbors_from_a_matrix_of_distances() -> Work:
    D = np.abs(rows(1_500, 1_500))
    return lambda: neighbors_from_distances(D, 15)


@stage
def query() -> Work:
    index = NeighborIndex(rows(2_000, 300))
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
    return lambda: component_maps(made, 2)


@stage
def eigenmaps_of_components() -> Work:
    """Components as large as one thread takes alone, more than enough for all threads."""
    one = random_graph(4_000, 15).to_scipy()
    made = Graph.from_scipy(block_diag([one] * 100).tocsr())
    return lambda: component_maps(made, 2)


@stage
def principal_components() -> Work:
    task = InitialTask(random_graph(2_500, 5), rows(2_500, 4_000), 2, 0)
    return lambda: pca_places(task)


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


@python_stage(100)
def full_layout_on_a_grid() -> Work:
    running = FullLayout(random_graph(20_000, 15), places(20_000), [Phase(1)], method="fft")
    return lambda: running.step(10**6)


@stage
def losses() -> Work:
    made, where = random_graph(20_000, 15), places(20_000)
    return lambda: effective_loss(made, where, fit_ab(), Schedule(10))


@python_stage(100)
def quality() -> Work:
    X, where = rows(10_000, 300), places(10_000)
    return lambda: report(X, where)


@python_stage(100)
def reliability_of_a_large_map() -> Work:
    X, where = rows(100_000, 8), places(100_000)
    return lambda: vicinal.reliability(X, where, others=[where[::-1]] * 20, null=False)


@python_stage(1_000)
def ghosts() -> Work:
    model = vicinal.UMAP(n_epochs=5, init="random", random_state=0).fit(rows(1_000, 20))
    return lambda: vicinal.reliability(model, ghosts=100_000, null=False)


@python_stage(100)
def inverse_transform() -> Work:
    model = vicinal.UMAP(n_epochs=1, init="random", random_state=0).fit(rows(1_000, 400))
    return lambda: model.inverse_transform(np.repeat(places(10_000), 3, axis=0))


@python_stage(100)
def page() -> Work:
    where, labels = places(200_000), np.arange(200_000) % 7
    names = [str(label) for label in labels]
    folder = tempfile.mkdtemp()
    return lambda: vicinal.viewer.export(f"{folder}/map.html", where, labels, hover=names)


@python_stage(100)
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


@python_stage(10_000)
def fit_aligned() -> tuple[Work, Any]:
    same = {row: row for row in range(1_000)}
    slices = [rows(1_000, 20), rows(1_000, 20) + 1]
    return unfitted(vicinal.AlignedUMAP(n_epochs=100_000), slices, relations=[same])


@python_stage(5_000)
def fit_parametric() -> tuple[Work, Any]:
    vicinal.ParametricUMAP(n_epochs=1, init="random").fit(rows(50, 20))  # imports torch and starts its threads
    return unfitted(vicinal.ParametricUMAP(n_epochs=10_000, init="random"), rows(2_000, 20))


@python_stage(5_000)
def fit_progressive() -> tuple[Work, Any]:
    return unfitted(vicinal.ProgressiveUMAP(polish_epochs=100_000), rows(5_000, 20))


@stage
def fit_again() -> tuple[Work, Any]:
    """Fit a model that is fitted to other rows already."""
    model = vicinal.TSNE(max_iter=5).fit(rows(100, 4))
    return unfitted(model.set_params(max_iter=100_000), rows(3_000, 20))


@python_stage(600)
def update() -> tuple[Work, Any]:
    model = vicinal.UMAP(n_epochs=10, init="random").fit(rows(3_000, 20))
    new = rows(1_000, 20) + 1
    return lambda: model.update(new), model


def changed_attributes(model: Any, before: dict[str, Any]) -> list[str]:
    names = before.keys() | vars(model).keys()
    return sorted(name for name in names if name not in before or before[name] is not vars(model).get(name))


def run(name: str) -> dict[str, Any]:
    """Run a stage, interrupt it and return what happened."""
    prepared = STAGES[name]()
    work, model = prepared if isinstance(prepared, tuple) else (prepared, None)
    before = {} if model is None else dict(vars(model))

    def run_it() -> None:
        work()
        while model is None:  # stages that are short are repeated
            work()

    interrupted = False
    if name in LINES:
        interrupted = interrupted_at(run_it, LINES[name], (PACKAGE, __file__))
    else:
        try:
            with interrupt_inside_a_call():
                run_it()
        except KeyboardInterrupt:
            interrupted = True
    changed = [] if model is None else changed_attributes(model, before)
    return {"interrupted": interrupted, "changed": changed}


if __name__ == "__main__":
    # Stages import it when they need it; an interrupt within an import would leave modules half-loaded.
    importlib.import_module("sklearn.metrics")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a process started in the background may ignore it
    for line in sys.stdin:
        print(json.dumps(run(line.strip())), flush=True)
