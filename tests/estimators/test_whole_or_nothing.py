"""An interrupted fit, update, transform, save or composition changes nothing, whichever stage it is in."""

from __future__ import annotations

import inspect
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import vicinal
from vicinal import TSNE, UMAP, AlignedUMAP, DensMAP, KNeighborsTransformer, LargeVis, ParametricUMAP

Rows = NDArray[np.float32]
PACKAGE = str(Path(vicinal.__file__).parent)
# Moments at which a call is interrupted, evenly distributed over its calls of functions, beside the first call of
# every module.
MOMENTS = 12


def called_module(frame: FrameType) -> str | None:
    """Return the name of the package's module that a frame belongs to.

    Generators are left out: an unfinished one is called once more when it is deleted, where errors are ignored.
    """
    name = frame.f_code.co_filename
    if frame.f_code.co_flags & inspect.CO_GENERATOR:
        return None
    return name[len(PACKAGE) + 1 : -3].replace("/", ".") if name.startswith(PACKAGE) else None


def modules_called(work: Callable[[], object]) -> list[str]:
    """Run the work and return the module of every call of one of the package's functions, in order.

    Work that caches something for the next time must have been done once before.
    """
    calls: list[str] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        module = called_module(frame)
        if event == "call" and module is not None:
            calls.append(module)

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def interrupt(work: Callable[[], object], moment: int) -> None:
    """Run the work, raise KeyboardInterrupt in a call of one of the package's functions, and expect it to arrive."""
    count = 0

    def watch(frame: FrameType, event: str, _: Any) -> None:
        nonlocal count
        if event == "call" and called_module(frame) is not None:
            if count == moment:
                sys.setprofile(None)
                raise KeyboardInterrupt
            count += 1

    sys.setprofile(watch)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        sys.setprofile(None)


def moments(calls: list[str]) -> list[int]:
    """Choose calls to interrupt: the first one of every module and some in between."""
    first = {module: number for number, module in reversed(list(enumerate(calls)))}
    spread = np.linspace(1, len(calls) - 1, MOMENTS).astype(int).tolist()
    return sorted({*first.values(), *spread} - {0})


class Unchanged:
    """What a model is at present, to be compared with what it is later."""

    def __init__(self, model: Any, results: Callable[[], Any]) -> None:
        self.model = model
        self.results = results
        self.attributes = dict(vars(model))
        self.bytes = pickle.dumps(model)
        self.expected = as_arrays(results())

    def check(self) -> None:
        assert vars(self.model).keys() == self.attributes.keys()
        assert all(vars(self.model)[name] is value for name, value in self.attributes.items())

    def check_bits(self) -> None:
        assert pickle.dumps(self.model) == self.bytes
        for found, expected in zip(as_arrays(self.results()), self.expected, strict=True):
            np.testing.assert_array_equal(found, expected)


def as_arrays(results: Any) -> list[NDArray[Any]]:
    many = results if isinstance(results, list | tuple) else [results]
    return [one.toarray() if sparse.issparse(one) else np.array(one) for one in many]


def interrupt_everywhere(work: Callable[[], object], calls: list[str], *unchanged: Unchanged) -> None:
    """Interrupt the work at many moments; the models must stay as they are."""
    for moment in moments(calls):
        interrupt(work, moment)
        for one in unchanged:
            one.check()
    for one in unchanged:
        one.check_bits()


def stages_of(calls: list[str]) -> set[str]:
    return {module.partition(".")[0] for module in calls}


SAME = [{row: row for row in range(60)}]
FEW_EPOCHS: dict[str, Any] = {"n_epochs": 1, "n_neighbors": 5, "batch_size": 512, "init": "random", "random_state": 0}
# The packages that a fit passes through.
STAGES = {"estimators", "neighbors", "graph", "initialize", "layout", "pipeline"}
MODELS: dict[str, tuple[Callable[[], Any], set[str]]] = {
    "UMAP": (lambda: UMAP(n_epochs=4, n_neighbors=5, random_state=0), STAGES),
    "UMAP with losses": (lambda: UMAP(n_epochs=4, n_neighbors=5, random_state=0, compute_loss=True), STAGES),
    "UMAP to a graph": (lambda: UMAP(n_neighbors=5, transform_mode="graph"), STAGES - {"initialize", "layout"}),
    "DensMAP": (lambda: DensMAP(n_epochs=4, n_neighbors=5, random_state=0), STAGES),
    "TSNE": (lambda: TSNE(max_iter=4, perplexity=5, random_state=0), {*STAGES, "quality"}),
    "LargeVis": (lambda: LargeVis(n_epochs=4, perplexity=5, random_state=0), STAGES),
    "KNeighborsTransformer": (lambda: KNeighborsTransformer(n_neighbors=4), {"estimators", "neighbors", "graph"}),
    "AlignedUMAP": (lambda: AlignedUMAP(n_epochs=4, n_neighbors=5, random_state=0), STAGES),
    "ParametricUMAP": (
        lambda: ParametricUMAP(**FEW_EPOCHS),
        {"estimators", "neighbors", "graph", "pipeline", "parametric"},
    ),
}


def make_model(name: str) -> Any:
    if name == "ParametricUMAP":
        pytest.importorskip("torch")
    return MODELS[name][0]()


def fit(name: str, model: Any, X: Rows) -> Any:
    if name == "AlignedUMAP":
        return model.fit([X[:60], X[:60] + 0.5], relations=SAME)
    return model.fit(X)


def transform(name: str, model: Any, X: Rows) -> Any:
    return model.transform([X, X]) if name == "AlignedUMAP" else model.transform(X)


@pytest.fixture(autouse=True)
def no_tracing() -> Iterator[None]:
    """Restore a profiler, such as that of a debugger."""
    before = sys.getprofile()
    yield
    sys.setprofile(before)


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_first_fit_leaves_the_model_unfitted(name: str, iris: Rows) -> None:
    model, spare = make_model(name), make_model(name)
    fit(name, make_model(name), iris)  # imports
    calls = modules_called(lambda: fit(name, spare, iris))
    assert MODELS[name][1] <= stages_of(calls), "a stage was not interrupted"
    before = dict(vars(model))
    for moment in moments(calls):
        interrupt(lambda: fit(name, model, iris), moment)
        assert vars(model) == before
    assert pickle.dumps(model) == pickle.dumps(make_model(name))


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_refit_keeps_the_previous_fit(name: str, iris: Rows) -> None:
    model, spare, other = fit(name, make_model(name), iris), make_model(name), iris[10:, :3] * 2
    calls = modules_called(lambda: fit(name, spare, other))
    assert MODELS[name][1] <= stages_of(calls)
    unchanged = Unchanged(model, lambda: transform(name, model, iris[:5] + 0.5))
    interrupt_everywhere(lambda: fit(name, model, other), calls, unchanged)


@pytest.mark.parametrize("name", ["UMAP", "UMAP with losses", "DensMAP"])
def test_interrupted_update_keeps_the_model(name: str, iris: Rows) -> None:
    model, spare = (make_model(name).fit(iris[:120]) for _ in range(2))
    more = iris[120:] + 0.01
    spare.transform(iris[:5] + 0.5)
    calls = modules_called(lambda: spare.update(more))
    assert {"neighbors", "graph", "layout", "pipeline"} <= stages_of(calls)
    unchanged = Unchanged(model, lambda: [model.embedding_, model.transform(iris[:5] + 0.5)])
    interrupt_everywhere(lambda: model.update(more), calls, unchanged)


def test_interrupted_update_of_aligned_maps_keeps_them(iris: Rows) -> None:
    def make() -> AlignedUMAP:
        return fit("AlignedUMAP", make_model("AlignedUMAP"), iris)

    model, spare = make(), make()
    spare.transform([iris[:5] + 0.5] * 2)
    calls = modules_called(lambda: spare.update(iris[:60] + 1, relations=SAME[0]))
    assert {"neighbors", "graph", "initialize", "layout", "pipeline"} <= stages_of(calls)
    unchanged = Unchanged(model, lambda: [*model.embeddings_, *model.transform([iris[:5] + 0.5] * 2)])
    interrupt_everywhere(lambda: model.update(iris[:60] + 1, relations=SAME[0]), calls, unchanged)


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_transform_keeps_the_model(name: str, iris: Rows) -> None:
    model, new = fit(name, make_model(name), iris), iris[:7] + 0.05
    unchanged = Unchanged(model, lambda: transform(name, model, new))
    calls = modules_called(lambda: transform(name, model, new))
    interrupt_everywhere(lambda: transform(name, model, new), calls, unchanged)


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_save_keeps_the_model_and_the_older_file(name: str, iris: Rows, tmp_path: Path) -> None:
    path = tmp_path / "model.vicinal"
    older = make_model(name)
    older.save(path)
    before = path.read_bytes()
    model = fit(name, make_model(name), iris)
    calls = modules_called(lambda: model.save(tmp_path / "other"))
    (tmp_path / "other").unlink()
    unchanged = Unchanged(model, lambda: transform(name, model, iris[:5] + 0.5))
    for moment in moments(calls):
        interrupt(lambda: model.save(path), moment)
        assert [file.name for file in tmp_path.iterdir()] == ["model.vicinal"], calls[moment]
        assert path.read_bytes() == before
        unchanged.check()
    unchanged.check_bits()


def halves(iris: Rows) -> tuple[UMAP, UMAP]:
    left, right = (UMAP(n_epochs=4, n_neighbors=5, random_state=0).fit(part) for part in (iris[:, :2], iris[:, 2:]))
    return left, right


def test_interrupted_composition_keeps_its_parts(iris: Rows) -> None:
    left, right = halves(iris)
    assert (left * right).embedding_.shape == (150, 2)
    calls = modules_called(lambda: left * right)
    assert {"graph", "initialize", "layout", "pipeline"} <= stages_of(calls)
    parts = [
        Unchanged(model, lambda model=model, part=part: model.transform(part[:5] + 0.5))
        for model, part in ((left, iris[:, :2]), (right, iris[:, 2:]))
    ]
    interrupt_everywhere(lambda: left * right, calls, *parts)


def test_interrupted_transform_keeps_a_composed_model(iris: Rows) -> None:
    left, right = halves(iris)
    model = (left * right) + left
    new = ((iris[:5, :2] + 0.5, iris[:5, 2:] + 0.5), iris[:5, :2] + 0.5)
    unchanged = Unchanged(model, lambda: model.transform(new))
    calls = modules_called(lambda: model.transform(new))
    interrupt_everywhere(lambda: model.transform(new), calls, unchanged)


class Failure(Exception):
    pass


@pytest.mark.parametrize("name", ["UMAP", "UMAP with losses", "DensMAP", "TSNE", "LargeVis"])
def test_error_in_the_callback_at_any_report_keeps_the_model(name: str, iris: Rows) -> None:
    reports: list[tuple[str, int]] = []
    model = make_model(name).set_params(callback=lambda stage, done, *_: reports.append((stage, done))).fit(iris)
    assert {stage for stage, _ in reports} >= {"neighbors", "graph", "initialize", "layout"}
    model.set_params(callback=None)
    unchanged = Unchanged(model, lambda: model.transform(iris[:5] + 0.5))
    for wanted in reports:

        def fail(stage: str, done: int, *_: object, wanted: tuple[str, int] = wanted) -> None:
            if (stage, done) == wanted:
                raise Failure

        with pytest.raises(Failure):
            model.set_params(callback=fail).fit(iris[:, :3])
        model.set_params(callback=None)
        unchanged.check()
    unchanged.check_bits()


@pytest.mark.parametrize("name", MODELS)
def test_refused_fit_keeps_the_model(name: str, iris: Rows) -> None:
    model = fit(name, make_model(name), iris)
    unchanged = Unchanged(model, lambda: transform(name, model, iris[:5] + 0.5))
    with pytest.raises(ValueError, match="NaN"):
        fit(name, model, np.full((60, 7), np.nan, dtype=np.float32))
    unchanged.check()
    unchanged.check_bits()
