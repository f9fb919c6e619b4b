"""The executors of arrays and of partitions give the same bits, step by step, or refuse a step by name."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conformance.table import CELLS, DATA, ESTIMATORS
from scipy import sparse

import vicinal
from vicinal.estimators.parametric import TrainingExecutor
from vicinal.pipeline import STEPS, Executor, Refused
from vicinal.pipeline.align import AlignedExecutor
from vicinal.pipeline.compose import ComposedExecutor
from vicinal.pipeline.fit import ArrayExecutor, GivenPlaces, UpdateExecutor
from vicinal.pipeline.grow import GrowingExecutor

da = pytest.importorskip("dask.array", reason="the extra 'cluster' is not installed: no Dask")
PartExecutor = pytest.importorskip("vicinal.cluster.fit").PartExecutor

EXECUTORS = [
    ArrayExecutor, UpdateExecutor, GivenPlaces, ComposedExecutor, AlignedExecutor, GrowingExecutor, TrainingExecutor,
    PartExecutor,
]  # fmt: skip
# What partitions refuse, by the name of the step or of the parameter.
REFUSED = {
    "jaccard": "metric must be one of",
    "pins": "fixed_mask and fixed_positions are not possible for a Dask array",
}
ON_DASK = [
    (estimator, data)
    for estimator, data in CELLS
    if estimator in ("UMAP", "DensMAP", "LargeVis") and data not in REFUSED
]


@pytest.mark.parametrize("executor", EXECUTORS, ids=lambda executor: executor.__name__)
def test_an_executor_implements_every_step_or_refuses_it_by_name(executor: type[Executor]) -> None:
    assert set(executor.refuses) <= set(STEPS)
    for step in STEPS:
        implemented = getattr(executor, step) is not getattr(Executor, step)
        if executor.refuses.get(step) is None:
            assert implemented, f"{executor.__name__} neither implements nor refuses {step}"
        else:
            assert len(executor.refuses[step]) > 10
    documented = inspect.getdoc(executor)
    assert documented


def test_a_refused_step_names_itself_and_the_reason() -> None:
    with pytest.raises(Refused, match="GrowingExecutor does not orient: old rows keep their places"):
        GrowingExecutor.refuse(object.__new__(GrowingExecutor), "orient")


def array(X: Any, size: int = 50) -> Any:
    """Return rows, dense or sparse, as a Dask array in chunks."""
    import dask

    if not sparse.issparse(X):
        return da.from_array(X, chunks=(size, -1))
    meta = sparse.csr_matrix((0, 0), dtype=np.float32)
    blocks = [
        da.from_delayed(dask.delayed(X[i : i + size]), shape=(min(size, X.shape[0] - i), X.shape[1]), meta=meta)
        for i in range(0, X.shape[0], size)
    ]
    return da.concatenate(blocks)


@pytest.fixture(scope="module", params=["threads", "processes"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Dask's threads, or a client with two worker processes."""
    if request.param == "threads":
        yield None
        return
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed: no distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
            yield client


def steps_of(model: Any, monkeypatch: pytest.MonkeyPatch, X: Any, **arguments: Any) -> tuple[Any, Any, list[str]]:
    """Fit a model; return the executor that carried out its steps, the model, and the warnings about isolated rows."""
    ran = []
    for kind in (ArrayExecutor, PartExecutor):
        original = kind.report

        def report(self: Any, original: Any = original) -> Any:
            ran.append(self)
            return original(self)

        monkeypatch.setattr(kind, "report", report)
    begin = PartExecutor.start

    def start(self: Any) -> None:
        begin(self)
        self.start_places = loaded(self, self.started, ("places",))[0]  # before the layout replaces them

    monkeypatch.setattr(PartExecutor, "start", start)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, **arguments)
    return ran[-1], model, [str(one.message) for one in caught if "disconnected" in str(one.message)]


def loaded(executor: Any, parts: Any, names: tuple[str, ...]) -> list[Any]:
    """Return arrays of stored parts, joined."""
    stored = executor.engine.values(list(parts))
    return [np.concatenate([one.load(name) for one in stored]) for name in names]


# Tasks are the same for threads and processes; these cells show that all they need can be sent to a process.
SENT = [
    ("UMAP", "labels"),
    ("UMAP", "weights"),
    ("UMAP", "sparse correlation"),
    ("DensMAP", "isolated"),
    ("LargeVis", "plain"),
]
RUNS = [*(("threads", *cell) for cell in ON_DASK), *(("processes", *cell) for cell in SENT)]


@pytest.mark.parametrize(("scheduler", "estimator", "data"), RUNS, indirect=["scheduler"])
def test_partitions_have_the_bits_of_arrays_after_every_step(
    scheduler: Any, estimator: str, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = DATA[data]
    make = ESTIMATORS[estimator]
    here, local, warned_here = steps_of(make(**given.params), monkeypatch, given.X, **given.fit)
    there, spread, warned_there = steps_of(make(**given.params), monkeypatch, array(given.X), **given.fit)
    assert type(here) is ArrayExecutor
    assert type(there) is PartExecutor
    # search
    index, distance = loaded(there, there.table.parts, ("index", "distance"))
    np.testing.assert_array_equal(index, here.neighbors.index)
    np.testing.assert_array_equal(distance, here.neighbors.distance)
    # relate
    index, distance = loaded(there, there.related.parts, ("index", "distance"))
    far = distance >= there.limit * (1 - 1e-6)
    np.testing.assert_array_equal(np.where(far, -1, index), here.related.index)
    # build_graph, supervise
    for mine, theirs in ((here.search_graph, there.search_graph), (here.graph, there.graph)):
        weights, indices = loaded(there, theirs.parts, ("weights", "indices"))
        np.testing.assert_array_equal(indices, mine.indices)
        np.testing.assert_array_equal(weights, mine.weights)
    # start
    started = here.started if here.linked is None else here.started[here.linked]
    np.testing.assert_array_equal(there.start_places, started)
    # lay_out, orient, surround, report
    np.testing.assert_array_equal(np.asarray(spread.embedding_), local.embedding_)
    assert warned_there == warned_here
    assert (spread.init_used_, spread.n_epochs_) == (local.init_used_, local.n_epochs_)
    if estimator == "DensMAP":
        np.testing.assert_array_equal(spread.rad_orig_, local.rad_orig_)
        np.testing.assert_array_equal(spread.rad_emb_, local.rad_emb_)


@pytest.mark.parametrize("fitted_on", ["array", "dask"])
@pytest.mark.parametrize("data", ["plain", "isolated", "sparse cosine of unrelated rows", "labels"])
def test_transform_of_a_dask_array_has_the_local_bits(data: str, fitted_on: str, scheduler: Any) -> None:
    given = DATA[data]
    new = given.X * np.float32(1.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local = ESTIMATORS["UMAP"](**given.params).fit(given.X, **given.fit)
        model = local
        if fitted_on == "dask":
            model = ESTIMATORS["UMAP"](**given.params).fit(array(given.X), **given.fit)
        for rows in (given.X, new):
            np.testing.assert_array_equal(model.transform(array(rows, 35)).compute(), local.transform(rows))


@pytest.mark.parametrize("fitted_on", ["array", "dask"])
def test_graphs_and_neighbors_of_a_dask_array_have_the_local_bits(fitted_on: str, scheduler: Any) -> None:
    X = DATA["plain"].X
    fit_rows = array(X) if fitted_on == "dask" else X
    local = vicinal.UMAP(transform_mode="graph", random_state=0).fit(X)
    model = vicinal.UMAP(transform_mode="graph", random_state=0).fit(fit_rows)
    assert (model.transform(array(X + 0.1)).compute() != local.transform(X + 0.1)).nnz == 0
    near = vicinal.KNeighborsTransformer(n_neighbors=5).fit(X)
    model = vicinal.KNeighborsTransformer(n_neighbors=5).fit(fit_rows)
    assert (model.transform(array(X + 0.1)).compute() != near.transform(X + 0.1)).nnz == 0


def test_a_model_of_a_dask_array_is_saved_and_loaded(tmp_path: Any, scheduler: Any) -> None:
    X = DATA["plain"].X
    local, model = (ESTIMATORS["DensMAP"]().fit(rows) for rows in (X, array(X)))
    model.save(tmp_path / "model.vicinal")
    loaded_model = vicinal.load(tmp_path / "model.vicinal")
    np.testing.assert_array_equal(loaded_model.embedding_, local.embedding_)
    np.testing.assert_array_equal(loaded_model.transform(X + 0.1), local.transform(X + 0.1))


@pytest.mark.parametrize("data", REFUSED)
def test_partitions_refuse_what_they_cannot_do(data: str) -> None:
    given = DATA[data]
    with pytest.raises(ValueError, match=REFUSED[data]):
        ESTIMATORS["UMAP"](**given.params).fit(array(given.X), **given.fit)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (vicinal.TSNE(), "lay_out: t-SNE's layout adds up all pairs"),
        (vicinal.UMAP(unique=True), "check: unique=True is not possible for a Dask array"),
        (vicinal.UMAP(compute_loss=True), "lay_out: compute_loss=True is not possible"),
        (vicinal.UMAP(output_metric="haversine"), "lay_out: output_metric is not possible"),
        (vicinal.ProgressiveUMAP(), "X must be an array in memory for ProgressiveUMAP"),
        (vicinal.AlignedUMAP(), "X must be a list"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_methods_refuse_a_dask_array_by_name(model: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(array(DATA["plain"].X))


def test_a_model_says_what_to_do_after_its_client_has_closed() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra 'cluster' is not installed: no distributed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options: dict[str, Any] = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
            model = ESTIMATORS["UMAP"]().fit(array(DATA["plain"].X))
        for name in ("embedding_", "graph_"):
            with pytest.raises(RuntimeError, match="save the model or compute embedding_ before the client closes"):
                getattr(model, name)
        with pytest.raises(RuntimeError, match="before the client closes"):
            model.transform(DATA["plain"].X)
