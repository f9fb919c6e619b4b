"""Model files and ONNX files of ParametricUMAP: the same bits after loading, and no code in them."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from parametric.quick_models import Narrow, quick

import vicinal
from vicinal import ParametricUMAP

torch = pytest.importorskip("torch")

Rows = NDArray[np.float32]


SAVED: dict[str, dict[str, Any]] = {
    "mlp": {},
    "decoder and labels": {"parametric_reconstruction": True},
    "conv": {"encoder": "conv", "dims": (8, 8)},
    "registered": {"encoder": "narrow"},
}
LOAD = """
import sys, numpy as np, torch
from vicinal import ParametricUMAP
from vicinal.parametric.networks import register_encoder

register_encoder("narrow", lambda shape: torch.nn.Linear(shape.n_features, shape.n_components))
rows = np.load("rows.npy")
for name in sys.argv[1:]:
    np.save(f"{name}.npy", ParametricUMAP.load(f"{name}.safetensors").transform(rows))
"""


@pytest.mark.nightly
def test_saved_models_transform_to_same_bits_in_another_process(
    digits: Rows, digit_labels: Any, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    from vicinal.parametric.networks import register_encoder

    register_encoder("narrow", lambda shape: torch.nn.Linear(shape.n_features, shape.n_components))
    new = digits[150:250]
    np.save(tmp_path / "rows.npy", new)
    models = {}
    for name, options in SAVED.items():
        labels = digit_labels[:150] if "labels" in name else None
        models[name] = quick(**options).fit(digits[:150], labels)
        models[name].save(tmp_path / f"{name}.safetensors")
    subprocess.run([sys.executable, "-c", LOAD, *SAVED], check=True, env=child_environment, cwd=tmp_path)
    for name, model in models.items():
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), model.transform(new), err_msg=name)
        again = ParametricUMAP.load(tmp_path / f"{name}.safetensors")
        np.testing.assert_array_equal(again.embedding_, model.embedding_)
        assert again.loss_history_ == model.loss_history_
        assert again.get_params() == model.get_params()


def test_loading_a_model_with_a_user_module_requires_the_module(digits: Rows, tmp_path: Path) -> None:
    model = quick(encoder=Narrow(), dims=(8, 8)).fit(digits[:100])
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="encoder"):
        ParametricUMAP.load(tmp_path / "model")
    with pytest.raises(ValueError, match="do not fit"):
        ParametricUMAP.load(tmp_path / "model", encoder=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)))
    again = vicinal.load(tmp_path / "model", encoder=Narrow())
    assert isinstance(again, ParametricUMAP)
    np.testing.assert_array_equal(again.transform(digits[:100]), model.embedding_)


def test_saved_models_keep_the_networks_of_the_fit(digits: Rows, tmp_path: Path) -> None:
    model = quick(parametric_reconstruction=True).fit(digits[:100])
    points = model.transform(digits[100:150])
    model.set_params(encoder="conv", dims=(8, 8), decoder="no such", callback=print)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(again.transform(digits[100:150]), points)
        assert (again.encoder, again.decoder) == ("conv", "no such")
    model.save(tmp_path / "model")
    again = vicinal.load(tmp_path / "model")
    again.save(tmp_path / "again")
    for loaded in (again, vicinal.load(tmp_path / "again")):
        np.testing.assert_array_equal(loaded.transform(digits[100:150]), points)
        np.testing.assert_array_equal(loaded.inverse_transform(points), model.inverse_transform(points))
        assert (loaded.encoder, loaded.decoder) == ("conv", "no such")


def test_continued_models_are_saved_with_the_networks_of_the_first_fit(digits: Rows, tmp_path: Path) -> None:
    model = quick().fit(digits[:100]).add_landmarks(digits[:100]).set_params(encoder="conv", dims=(8, 8))
    model.fit(digits[:100]).save(tmp_path / "model")
    np.testing.assert_array_equal(vicinal.load(tmp_path / "model").transform(digits[:100]), model.embedding_)


def test_models_without_training_data_transform(digits: Rows, tmp_path: Path) -> None:
    model = quick().fit(digits[:100]).add_landmarks(digits[:100])
    model.save(tmp_path / "all")
    model.save(tmp_path / "networks", include_data=False)
    assert (tmp_path / "networks").stat().st_size < (tmp_path / "all").stat().st_size
    again = vicinal.load(tmp_path / "networks")
    np.testing.assert_array_equal(again.transform(digits[:100]), model.embedding_)
    assert again.n_epochs_ == model.n_epochs_
    for missing in ("embedding_", "graph_"):
        with pytest.raises(AttributeError, match="without its training data"):
            getattr(again, missing)
    assert again.fit(digits[:50]).init_used_ == "random", "the landmarks are training data too"


def test_inconsistent_model_files_are_rejected(digits: Rows, tmp_path: Path) -> None:
    model = quick().fit(digits[:100])
    broken = {
        "embedding": dataclasses.replace(model.map_, embedding=np.zeros((100, 3), np.float32)),
        "graph": dataclasses.replace(model.map_, graph=model.graph_[:50]),
    }
    for part, fitted in broken.items():
        model.map_ = fitted
        model.save(tmp_path / part)
        with pytest.raises(vicinal.ModelFileError, match=part):
            vicinal.load(tmp_path / part)


def test_changed_files_are_rejected(digits: Rows, tmp_path: Path) -> None:
    file = tmp_path / "model"
    quick().fit(digits[:100]).save(file)
    whole = file.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    offsets = (8 + whole[:header].find(b"n_neighbors") + 14, 8 + header, len(whole) // 2, len(whole) - 1)
    for at in offsets:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"model|changed|format"):
            ParametricUMAP.load(file)
    for broken in (b"", whole[:100], whole[:-5], pickle.dumps(print)):
        file.write_bytes(broken)
        with pytest.raises(ValueError, match="model file"):
            ParametricUMAP.load(file)
    with pytest.raises(FileNotFoundError):
        ParametricUMAP.load(tmp_path / "missing")


@pytest.mark.parametrize("options", [{}, {"encoder": "conv", "dims": (8, 8)}], ids=["mlp", "conv"])
def test_onnx_runtime_computes_the_same_points(digits: Rows, tmp_path: Path, options: dict[str, Any]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = quick(**options).fit(digits[:200])
    model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for rows in (digits[:1], digits[:200]):
        (found,) = session.run(["embedding"], {"X": rows})
        np.testing.assert_allclose(found, model.transform(rows), rtol=1e-4, atol=1e-4)
