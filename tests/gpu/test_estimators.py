"""Every estimator on a device: the CPU's results, files and pickles, arrays and tensors of a GPU."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import KNeighborsTransformer, ParametricUMAP

Rows = NDArray[np.float32]

MAPS: dict[str, dict[str, Any]] = {
    "UMAP": {"n_neighbors": 8, "n_epochs": 10},
    "DensMAP": {"n_neighbors": 8, "n_epochs": 10},
    "LargeVis": {"n_epochs": 10},
    "TSNE": {"perplexity": 8, "max_iter": 20},
}


def new_model(name: str, **parameters: Any) -> Any:
    return getattr(vicinal, name)(random_state=0, **MAPS[name], **parameters)


@pytest.mark.parametrize("name", ["DensMAP", "LargeVis"])
def test_model_of_a_device_is_saved_and_transforms_on_the_host_and_back(
    place: Any, rows: Rows, name: str, tmp_path: Path
) -> None:
    model = new_model(name, device="cuda").fit(rows)
    np.testing.assert_array_equal(model.embedding_, new_model(name).fit(rows).embedding_)
    model.save(tmp_path / "model")
    new = rows[::40] + np.float32(0.1)
    expected = vicinal.load(tmp_path / "model").transform(new)
    there = vicinal.load(tmp_path / "model", device="cuda")
    np.testing.assert_array_equal(there.transform(new), expected)
    assert there._map_for(new).graph.place is place
    np.testing.assert_array_equal(model.transform(new), expected)


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_neighbors_transformer_has_the_graph_of_the_cpu(place: Any, rows: Rows, mode: str) -> None:
    here, there = (KNeighborsTransformer(mode=mode, n_neighbors=6, device=where) for where in ("cpu", "cuda"))
    assert (here.fit_transform(rows) != there.fit_transform(rows)).nnz == 0
    assert there.neighbors_.data.place is place
    new = rows[::30] + np.float32(0.1)
    expected = here.transform(new)
    assert (there.transform(new) != expected).nnz == 0
    copy = pickle.loads(pickle.dumps(there))
    assert copy.neighbors_.data.place is None
    assert (copy.transform(new) != expected).nnz == 0


@pytest.mark.parametrize("name", sorted(MAPS))
@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_arrays_of_a_gpu_give_arrays_of_the_same_library(gpu: Any, rows: Rows, name: str, library: str) -> None:
    if library == "torch":
        torch = pytest.importorskip("torch")
        X, expected_type = torch.as_tensor(rows, device="cuda"), torch.Tensor
    else:
        X, expected_type = gpu.xp.asarray(rows), gpu.xp.ndarray
    model = new_model(name)
    places = model.fit_transform(X)
    assert isinstance(places, expected_type)
    on_host = np.asarray(places.cpu() if library == "torch" else places.get())
    host = new_model(name).fit(rows)
    np.testing.assert_array_equal(on_host, host.embedding_)
    placed = model.transform(X[:7] + 0.05)
    assert isinstance(placed, expected_type)
    on_host = np.asarray(placed.cpu() if library == "torch" else placed.get())
    np.testing.assert_array_equal(on_host, host.transform(rows[:7] + np.float32(0.05)))


def test_parametric_map_is_trained_on_a_gpu_with_neighbors_of_the_gpu(gpu: Any, rows: Rows) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("this PyTorch has no CUDA")
    model = ParametricUMAP(n_neighbors=8, n_epochs=3, device="cuda", random_state=0)
    assert model._search_place() is gpu
    places = model.fit_transform(rows)
    assert np.isfinite(places).all()
    here = ParametricUMAP(n_neighbors=8, n_epochs=1, device="cpu", random_state=0).fit(rows)
    assert (model.graph_ != here.graph_).nnz == 0
    new = rows[:5] + np.float32(0.1)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(copy.transform(new), model.transform(new), atol=1e-4)
