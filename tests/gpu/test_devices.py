"""Choosing a device: names, errors before any work, values that move, results in the library of the input."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gpu.host_device import HostDevice
from numpy.typing import NDArray

import vicinal
from vicinal import Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph
from vicinal.backends import is_on_gpu
from vicinal.backends.cuda import device as devices
from vicinal.backends.cuda.device import Need
from vicinal.layout.forces import Forces, output_space

Rows = NDArray[np.float32]


class OnGpu(np.ndarray):
    """An array that says it lives on a GPU, for the device that is made of NumPy."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


class ArrayModule:
    """NumPy, with `OnGpu` as its own kind of arrays."""

    ndarray = OnGpu

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def from_dlpack(self, X: Any) -> Rows:
        return np.asarray(X).view(np.ndarray)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> HostDevice:
    device = HostDevice()
    device.xp = ArrayModule()
    device.asarray = lambda values, dtype=None: np.ascontiguousarray(values, dtype=dtype).view(np.ndarray)
    monkeypatch.setattr(devices, "cuda_device", lambda number=0: device)
    return device


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:x", "CPU", 0])
def test_unknown_device_is_refused(rows: Rows, device: Any) -> None:
    with pytest.raises(ValueError, match="device"):
        find_neighbors(rows, 5, device=device)
    with pytest.raises(ValueError, match="device"):
        vicinal.UMAP(device=device).fit(rows)


@pytest.mark.parametrize(
    "call",
    [
        lambda X: vicinal.UMAP(device="cuda").fit(X),
        lambda X: vicinal.DensMAP(device="cuda:0").fit(X),
        lambda X: vicinal.TSNE(device="cuda").fit(X),
        lambda X: vicinal.LargeVis(device="cuda").fit(X),
        lambda X: vicinal.KNeighborsTransformer(device="cuda").fit(X),
        lambda X: find_neighbors(X, 5, device="cuda"),
        lambda X: fuzzy_graph(find_neighbors(X, 5), device="cuda"),
        lambda X: Layout(fuzzy_graph(find_neighbors(X, 5)), X[:, :2], fit_ab(), Schedule(5), device="cuda"),
    ],
)
def test_without_cupy_the_error_says_what_to_install(rows: Rows, call: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    devices.cuda_device.cache_clear()
    with pytest.raises(devices.DeviceError, match=r"pip install 'vicinal\[cuda13\]'"):
        call(rows)


def test_extras_install_the_libraries_of_cuda() -> None:
    content = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    extras = tomllib.loads(content)["project"]["optional-dependencies"]
    for major in ("12", "13"):
        assert [one for one in extras[f"cuda{major}"] if one.startswith(f"cupy-cuda{major}x[ctk]")]


def test_without_a_gpu_the_error_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cupy", reason="CuPy is not installed")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    code = "import vicinal; vicinal.find_neighbors([[0.0], [1.0]], 2, device='cuda')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "DeviceError: device='cuda" in done.stderr


def test_importing_and_fitting_do_not_import_cupy(child_environment: dict[str, str]) -> None:
    code = (
        "import sys, numpy as np, vicinal\n"
        "vicinal.UMAP(n_epochs=5).fit(np.random.default_rng(0).normal(size=(50, 4)))\n"
        "assert 'cupy' not in sys.modules and 'vicinal.backends.cuda' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], env=child_environment, check=True)


def test_device_is_not_part_of_a_model_file(place: Any, rows: Rows, tmp_path: Path) -> None:
    model = vicinal.UMAP(n_neighbors=8, n_epochs=10, random_state=0, device="cuda").fit(rows)
    assert model.map_.graph.place is place
    model.save(tmp_path / "model")
    for copy in (vicinal.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert copy.map_.graph.place is None
        assert copy.map_.data.place is None
        np.testing.assert_array_equal(copy.embedding_, model.embedding_)
        np.testing.assert_array_equal(copy.transform(rows[:9] + 0.1), model.transform(rows[:9] + 0.1))


def test_values_move_between_places(place: Any, rows: Rows) -> None:
    table = find_neighbors(rows, 6)
    moved = table.on(place)
    assert moved.place is place
    assert moved.on(place) is moved
    back = moved.on(None)
    assert back.place is None
    np.testing.assert_array_equal(back.index, table.index)
    graph = fuzzy_graph(moved)
    assert graph.place is place
    assert graph.held("weights").here is None  # the host's copy is made when it is read
    np.testing.assert_array_equal(graph.weights, fuzzy_graph(table).weights)
    assert graph.held("weights").here is graph.weights
    assert graph.held("indices").here is None
    with pytest.raises(AttributeError, match="no attribute 'wieghts'"):
        _ = graph.wieghts


def test_array_on_a_gpu_is_recognized(rows: Rows) -> None:
    assert is_on_gpu(rows.view(OnGpu))
    for X in (rows, rows.tolist(), None, OnGpu):
        assert not is_on_gpu(X)


def test_rows_on_a_gpu_are_fitted_there(host: HostDevice, rows: Rows) -> None:
    model = vicinal.UMAP(n_neighbors=8, n_epochs=10, random_state=0)
    there = model.fit_transform(rows.view(OnGpu))
    assert model.map_.graph.place is host
    assert not model.map_.data.on_host  # the rows were not moved to the host
    here = vicinal.UMAP(n_neighbors=8, n_epochs=10, random_state=0).fit(rows)
    np.testing.assert_array_equal(there, here.embedding_)
    np.testing.assert_array_equal(model.transform(rows.view(OnGpu)[:5]), here.transform(rows[:5]))
    table = find_neighbors(rows.view(OnGpu), 5)
    assert table.place is host
    np.testing.assert_array_equal(table.index, find_neighbors(rows, 5).index)


def test_device_cpu_moves_rows_from_a_gpu(host: HostDevice, rows: Rows) -> None:
    model = vicinal.UMAP(n_neighbors=8, n_epochs=10, random_state=0, device="cpu").fit(rows.view(OnGpu))
    assert model.map_.graph.place is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_bad_value_on_a_gpu_is_named(host: HostDevice, rows: Rows, bad: float) -> None:
    X = rows.copy()
    X[17, 3] = bad
    with pytest.raises(ValueError, match="row 17"):
        vicinal.UMAP(n_neighbors=8).fit(X.view(OnGpu))


def test_wrong_shapes_on_a_gpu_are_refused(host: HostDevice, rows: Rows) -> None:
    with pytest.raises(ValueError, match="2-D"):
        vicinal.UMAP().fit(rows[0].view(OnGpu))
    with pytest.raises(ValueError, match="at least 1 column"):
        vicinal.UMAP().fit(rows[:0].view(OnGpu))
    model = vicinal.UMAP(n_neighbors=8, n_epochs=5).fit(rows.view(OnGpu))
    with pytest.raises(ValueError, match="features"):
        model.transform(rows[:, :5].view(OnGpu))


def test_too_many_rows_for_a_device_are_refused_with_what_would_fit(
    host: HostDevice, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = 200_000
    monkeypatch.setattr(HostDevice, "free_bytes", lambda self: free)
    # Rows of the host are sent to the device in groups, but their tables must fit; rows of a device are there already.
    streamed = Need(12, 15, streamed=True)
    search, resident = replace(streamed, k=60, fit=False), Need(12, 15, copies=0)
    streamed, search, resident = (need.rows(free, free) for need in (streamed, search, resident))
    for call, fitting in (
        (lambda: vicinal.UMAP(device="cuda").fit(rows), streamed),
        (lambda: vicinal.UMAP().fit(rows.view(OnGpu)), resident),
        (lambda: find_neighbors(rows, 60, device="cuda"), search),
    ):
        with pytest.raises(MemoryError, match=f"about {fitting} rows would fit"):
            call()


def euclidean(x: Rows, y: Rows) -> tuple[float, Rows]:
    """Return a distance of the map and its gradient, as a function."""
    distance = float(np.linalg.norm(x - y))
    return distance, (x - y) / max(distance, 1e-6)


def test_fallback_is_said_in_the_log(place: Any, rows: Rows, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="vicinal"):
        find_neighbors(rows, 5, metric="canberra", device="cuda")
        forces = Forces(fit_ab(), space=output_space(euclidean, None, 2))
        Layout(fuzzy_graph(find_neighbors(rows, 7)), rows[:, :2], forces, Schedule(1), device="cuda").step(1)
    assert "the neighbor search: done on the CPU" in caplog.text
    assert "the layout: done on the CPU" in caplog.text
