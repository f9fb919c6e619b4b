"""Pickles, joblib files and copies contain the bytes of a model file and what a model file cannot contain."""

from __future__ import annotations

import copy
import pickle
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from data.make_models import FAST, NAMES, models, placed
from data.make_models import iris as fitted_and_new
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import vicinal
from vicinal import UMAP

Rows = NDArray[np.float32]
PARAMETRIC = pytest.param("parametric", marks=pytest.mark.requires_torch)
ALL = [PARAMETRIC if name == "parametric" else name for name in NAMES]


@pytest.fixture(scope="module")
def fitted() -> dict[str, Any]:
    """Return a model of every kind; tests must not change them."""
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    return models(fitted_and_new()[0])


def by_pickle(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


def by_old_pickle(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model, protocol=2))


def by_buffers(model: Any) -> Any:
    """Pickle out of band: buffers are passed separately and may be read-only."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
    assert len(stream) < 2000
    return pickle.loads(stream, buffers=[bytes(buffer.raw()) for buffer in buffers])


@pytest.mark.parametrize("way", [by_pickle, by_old_pickle, by_buffers, copy.deepcopy, copy.copy])
@pytest.mark.parametrize("name", ALL)
def test_every_model_is_restored_to_the_same_bits(name: str, way: Any, fitted: dict[str, Any]) -> None:
    model, new = fitted[name], fitted_and_new()[1]
    twin = way(model)
    np.testing.assert_array_equal(placed(name, twin, new), placed(name, model, new))
    assert type(twin) is type(model)
    assert str(twin.get_params()) == str(model.get_params())
    assert set(vars(twin)) == set(vars(model))


@pytest.mark.parametrize("name", ALL)
def test_pickle_contains_the_bytes_of_the_file(name: str, tmp_path: Path, fitted: dict[str, Any]) -> None:
    model = copy.copy(fitted[name])
    model.save(tmp_path / "model")
    content = (tmp_path / "model").read_bytes()
    stream = pickle.dumps(model.set_params(device="auto") if name == "parametric" else model, protocol=5)
    if name != "parametric":  # a pickle also contains the device
        assert content in stream
    assert content[-1000:] in stream


@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_joblib_restores_the_model(tmp_path: Path, mmap_mode: Any, fitted: dict[str, Any]) -> None:
    model, new = fitted["umap"], fitted_and_new()[1]
    joblib.dump(model, tmp_path / "model")
    twin = joblib.load(tmp_path / "model", mmap_mode=mmap_mode)
    np.testing.assert_array_equal(twin.transform(new), model.transform(new))


def manhattan(x: Rows, y: Rows) -> float:
    return float(np.abs(x - y).sum())


class OwnUMAP(UMAP):
    """A user's subclass, which a model file cannot contain."""


def test_pickle_contains_what_a_file_cannot(iris: Rows, tmp_path: Path) -> None:
    model = OwnUMAP(metric=manhattan, callback=print_nothing, **FAST | {"random_state": np.random.RandomState(3)})
    twin = by_pickle(model)
    assert (twin.metric, twin.callback) == (manhattan, print_nothing)
    assert twin.random_state.randint(1 << 30) == model.random_state.randint(1 << 30)
    model.set_output(transform="pandas").fit(iris[:50])
    model.note_ = {"any": object}
    twin = by_pickle(model)
    assert type(twin) is OwnUMAP
    assert twin.note_ == model.note_
    assert twin.transform(iris[50:55]).equals(model.transform(iris[50:55]))
    with pytest.raises(vicinal.ModelFileError, match="OwnUMAP"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def print_nothing(*_: Any) -> None:
    pass


def test_lambda_is_copied_but_not_pickled(iris: Rows) -> None:
    """The behavior of pickle itself, whose error names the function."""
    model = UMAP(callback=lambda *_: None, **FAST).fit(iris[:50])
    assert copy.deepcopy(model).callback is model.callback
    assert clone(model).callback is model.callback
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


def test_grid_search_in_worker_processes(iris: Rows) -> None:
    y = np.arange(150) // 50
    pipeline = make_pipeline(UMAP(**FAST), KNeighborsClassifier())
    search = GridSearchCV(pipeline, {"umap__n_neighbors": [5, 10]}, cv=2, n_jobs=2).fit(iris, y)
    best = search.best_estimator_[0]
    (twin,) = joblib.Parallel(n_jobs=2, backend="loky")([joblib.delayed(by_pickle)(best)])
    np.testing.assert_array_equal(twin.transform(iris + 0.01), best.transform(iris + 0.01))


class TestWithoutData:
    def test_parametric_model_needs_no_data(self, tmp_path: Path, fitted: dict[str, Any]) -> None:
        model = fitted["parametric"]
        model.save(tmp_path / "whole")
        model.save(tmp_path / "model", include_data=False)
        assert not hasattr(vicinal.load(tmp_path / "model"), "embedding_")
        assert (tmp_path / "model").stat().st_size < (tmp_path / "whole").stat().st_size
        twin = vicinal.load(tmp_path / "model")
        new = np.ones((3, 4), dtype=np.float32)
        np.testing.assert_array_equal(twin.transform(new), model.transform(new))
        assert list(twin.get_feature_names_out()) == list(model.get_feature_names_out())

    @pytest.mark.parametrize("name", sorted({*NAMES} - {"parametric", "unfitted"}))
    def test_other_models_explain_why_they_need_data(self, name: str, tmp_path: Path, fitted: dict[str, Any]) -> None:
        model = fitted[name]
        with pytest.raises(vicinal.ModelFileError, match="compar"):
            model.save(tmp_path / "model", include_data=False)
        assert not list(tmp_path.iterdir())

    def test_unfitted_model_has_no_data(self, tmp_path: Path) -> None:
        UMAP(n_neighbors=7).save(tmp_path / "model", include_data=False)
        assert vicinal.load(tmp_path / "model").n_neighbors == 7
