"""Models go from a device to the host and back: files, pickles, the parameter ``device`` of a loaded model."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu.host_device import COMPILER, HostDevice
from numpy.typing import NDArray

import vicinal
from vicinal.backends import backend_of, usable_place
from vicinal.backends.cuda import device as devices
from vicinal.graph.graph import Graph
from vicinal.initialize.task import InitialTask, pca_places
from vicinal.neighbors.rows import PlacedRows
from vicinal.pipeline.fit import ArrayExecutor

Rows = NDArray[np.float32]
SETTINGS: dict[str, Any] = {"n_epochs": 10, "random_state": 0}


@pytest.mark.parametrize("name", ["UMAP", "TSNE"])
def test_model_of_a_device_is_saved_and_transforms_on_the_host_and_back(
    place: Any, rows: Rows, name: str, tmp_path: Path
) -> None:
    settings = {"max_iter": 20, "random_state": 0, "perplexity": 8} if name == "TSNE" else SETTINGS
    model = getattr(vicinal, name)(device="cuda", **settings).fit(rows)
    model.save(tmp_path / "model")
    new = rows[::40] + np.float32(0.1)
    here = vicinal.load(tmp_path / "model")
    assert here.device is None
    assert here.map_.data.place is None
    expected = here.transform(new)
    there = vicinal.load(tmp_path / "model", device="cuda")
    found = there.transform(new)
    assert there._map_for(new).graph.place is place
    assert there._map_for(new) is there._map_for(new)  # it is moved once
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(model.set_params(device="cpu").transform(new), expected)


def test_model_of_the_host_is_used_on_a_device(place: Any, rows: Rows) -> None:
    model = vicinal.UMAP(n_neighbors=8, **SETTINGS).fit(rows)
    new = rows[::40] + np.float32(0.1)
    expected = model.transform(new)
    model.set_params(device="cuda")
    np.testing.assert_array_equal(model.transform(new), expected)
    assert model._map_for(new).data.place is place
    assert model.map_.data.place is None
    assert len(pickle.dumps(model)) < 1.2 * len(pickle.dumps(vicinal.UMAP(n_neighbors=8, **SETTINGS).fit(rows)))


def test_model_works_on_a_machine_without_a_gpu(
    place: Any, rows: Rows, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = pickle.dumps(vicinal.UMAP(n_neighbors=8, device="cuda", **SETTINGS).fit(rows))

    def no_device(number: int = 0) -> Any:
        raise devices.DeviceError("there is no GPU")

    monkeypatch.setattr(devices, "cuda_device", no_device)
    model = pickle.loads(content)
    with caplog.at_level("INFO", logger="vicinal"):
        found = model.transform(rows[:5] + np.float32(0.1))
    assert np.isfinite(found).all()
    assert "the placement of new rows: done on the CPU, because there is no GPU" in caplog.text
    with pytest.raises(devices.DeviceError):
        vicinal.UMAP(device="cuda").fit(rows)


def test_unknown_device_is_no_reason_for_the_cpu() -> None:
    with pytest.raises(ValueError, match="device"):
        usable_place("gpu", "the layout")


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler to compile the kernels for the host")
def test_parametric_umap_finds_its_neighbors_and_graph_on_the_gpu_that_trains(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    device = HostDevice()
    monkeypatch.setattr(devices, "cuda_device", lambda number=0: device)
    model = vicinal.ParametricUMAP(n_neighbors=8, device="cpu")
    assert model._search_place() is None
    with monkeypatch.context() as patched:
        patched.setattr("vicinal.parametric.device_rows.choose_device", lambda name: torch.device("cuda:0"))
        assert model._search_place() is device
        there = graph_of(model, rows)
    here = graph_of(model, rows)
    assert here.place is None
    assert there.place is device
    assert (here.to_scipy() != there.to_scipy()).nnz == 0


def graph_of(model: Any, rows: Rows) -> Graph:
    """Return the graph that a network is trained on."""
    executor = ArrayExecutor(model._graph_data(rows, None, 0), model._recipe(0))
    executor.check()
    executor.search()
    executor.relate()
    executor.build_graph()
    return executor.search_graph


def test_principal_components_are_those_of_the_cpu(place: Any, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vicinal.initialize.task.DEVICE_ROWS", 100)
    monkeypatch.setattr("vicinal.backends.cuda.spectral.CENTERED_BYTES", 8 * 12 * 100)
    X = rows * np.linspace(1, 30, 12, dtype=np.float32)
    graph = vicinal.Graph.without_edges(len(X))
    for scale in (1.0, 1e30):
        scaled = X * np.float32(scale)
        here, there, again = (
            pca_places(InitialTask(graph, PlacedRows(scaled).on(where), 3, 0)) for where in (None, place, place)
        )
        signs = np.sign((here * there).sum(axis=0))
        np.testing.assert_allclose(there * signs, here, atol=1e-6 * np.abs(here).max())
        np.testing.assert_array_equal(there, again)
    wide = backend_of(place).principal_scores(place.asarray(X[:, :2]), 3)
    assert (wide[:, 2] == 0).all()
