"""What ParametricUMAP promises: scikit-learn's contract, bits, files that carry no code, errors before work."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import vicinal
from vicinal import ParametricUMAP

torch = pytest.importorskip("torch")

Rows = NDArray[np.float32]
# umap-learn's constructor, in order.
UMAP_LEARNS = {
    "batch_size": None,
    "dims": None,
    "encoder": "mlp",
    "decoder": None,
    "parametric_reconstruction": False,
    "parametric_reconstruction_loss_fcn": None,
    "parametric_reconstruction_loss_weight": 1.0,
    "autoencoder_loss": False,
    "reconstruction_validation": None,
    "global_correlation_loss_weight": 0,
    "landmark_loss_fn": None,
    "landmark_loss_weight": 1.0,
}


def quick(**options: Any) -> ParametricUMAP:
    """A short training: what is tested here does not need a good map."""
    given: dict[str, Any] = {"n_epochs": 2, "batch_size": 64, "init": "random", "random_state": 0, "n_jobs": 1}
    return ParametricUMAP(**given | options)


class Narrow(torch.nn.Module):  # type: ignore[name-defined, misc]
    """A user's encoder, with dropout: randomness of torch's own."""

    def __init__(self, n_features: int = 64) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.Linear(n_features, 16),
            torch.nn.Tanh(),
            torch.nn.Dropout(0.2),
            torch.nn.Linear(16, 2),
        )

    def forward(self, x: Any) -> Any:
        return self.layers(x / 16.0)


@parametrize_with_checks([ParametricUMAP(n_epochs=2, batch_size=16, init="random", n_jobs=1)])
def test_estimator_checks(estimator: ParametricUMAP, check: Any) -> None:
    check(estimator)


def test_constructor_begins_with_umap_learns_arguments() -> None:
    parameters = inspect.signature(ParametricUMAP.__init__).parameters.values()
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"}
    assert list(positional.items()) == list(UMAP_LEARNS.items())


@pytest.mark.parametrize(
    "options",
    [
        {"init": "spectral"},
        {"encoder": "conv", "dims": (8, 8)},
        {"encoder": Narrow(), "dims": (8, 8)},
        {"autoencoder_loss": True, "global_correlation_loss_weight": 0.5},
    ],
    ids=["mlp", "conv", "module", "autoencoder"],
)
def test_a_seed_gives_the_same_bits(digits: Rows, options: dict[str, Any]) -> None:
    X = digits[:200]
    torch.manual_seed(1)
    first = quick(**options).fit(X)
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    second = quick(**options).fit(X)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert first.loss_history_ == second.loss_history_
    assert torch.equal(torch.random.get_rng_state(), before), "the user's generator was left as it was"


def test_a_row_has_one_place_whatever_its_company(digits: Rows) -> None:
    model = quick().fit(digits[:600])
    np.testing.assert_array_equal(model.transform(digits[:600]), model.embedding_)
    for rows in (slice(0, 1), slice(3, 90), slice(599, 600)):
        np.testing.assert_array_equal(model.transform(digits[rows]), model.embedding_[rows])
    order = np.random.default_rng(0).permutation(600)
    np.testing.assert_array_equal(model.transform(digits[order]), model.embedding_[order])


def test_fit_leaves_parameters_and_data_alone(digits: Rows) -> None:
    X = digits[:100].copy()
    encoder = Narrow()
    weights = copy.deepcopy(encoder.state_dict())
    model = quick(encoder=encoder, dims=(8, 8)).fit(X)
    assert model.encoder is encoder
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])
    np.testing.assert_array_equal(X, digits[:100])
    twin = clone(model)
    assert not hasattr(twin, "embedding_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.embedding_)


def test_read_only_memory_is_enough(digits: Rows, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", digits[:100])
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    np.testing.assert_array_equal(quick().fit(mapped).embedding_, quick().fit(digits[:100]).embedding_)


def test_duplicates_and_constant_rows_stay_finite() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32), 20, axis=0)
    model = quick(n_epochs=5, learning_rate=0.05).fit(X)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.embedding_[:20], np.repeat(model.embedding_[:1], 20, axis=0))
    assert np.isfinite(quick(init="spectral").fit(np.ones((30, 3))).embedding_).all()
    assert quick().fit(X[:1]).embedding_.shape == (1, 2)


SAVED: dict[str, dict[str, Any]] = {
    "mlp": {},
    "decoder and labels": {"parametric_reconstruction": True},
    "conv": {"encoder": "conv", "dims": (8, 8)},
    "registered": {"encoder": "narrow"},
}
LOAD = """
import sys, numpy as np, torch
from vicinal import ParametricUMAP
from vicinal.parametric.encoders import register_encoder

register_encoder("narrow", lambda shape: torch.nn.Linear(shape.n_features, shape.n_components))
rows = np.load("rows.npy")
for name in sys.argv[1:]:
    np.save(f"{name}.npy", ParametricUMAP.load(f"{name}.safetensors").transform(rows))
"""


def test_saved_models_transform_to_the_same_bits_in_another_process(
    digits: Rows, digit_labels: Any, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    from vicinal.parametric.encoders import register_encoder

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


def test_a_module_of_ones_own_is_given_again_to_load(digits: Rows, tmp_path: Path) -> None:
    model = quick(encoder=Narrow(), dims=(8, 8)).fit(digits[:100])
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="encoder"):
        ParametricUMAP.load(tmp_path / "model")
    with pytest.raises(ValueError, match="do not fit"):
        ParametricUMAP.load(tmp_path / "model", encoder=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)))
    again = vicinal.load(tmp_path / "model", encoder=Narrow())
    assert isinstance(again, ParametricUMAP)
    np.testing.assert_array_equal(again.transform(digits[:100]), model.embedding_)


def test_a_changed_file_is_refused(digits: Rows, tmp_path: Path) -> None:
    file = tmp_path / "model"
    quick().fit(digits[:100]).save(file)
    whole = file.read_bytes()
    header = int.from_bytes(whole[:8], "little")
    places = (8 + whole[:header].find(b"n_neighbors") + 14, 8 + header, len(whole) // 2, len(whole) - 1)
    for at in places:
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ValueError, match=r"model|changed|format"):
            ParametricUMAP.load(file)
    for broken in (b"", whole[:100], whole[:-5], pickle.dumps(print)):
        file.write_bytes(broken)
        with pytest.raises(ValueError, match="model file"):
            ParametricUMAP.load(file)
    with pytest.raises(FileNotFoundError):
        ParametricUMAP.load(tmp_path / "nowhere")


@pytest.mark.parametrize("options", [{}, {"encoder": "conv", "dims": (8, 8)}], ids=["mlp", "conv"])
def test_onnx_runtime_gives_the_same_coordinates(digits: Rows, tmp_path: Path, options: dict[str, Any]) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = quick(**options).fit(digits[:200])
    model.to_onnx(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    for rows in (digits[:1], digits[:200]):
        (found,) = session.run(["embedding"], {"X": rows})
        np.testing.assert_allclose(found, model.transform(rows), rtol=1e-4, atol=1e-4)


def test_a_callback_sees_the_map_and_may_stop(digits: Rows) -> None:
    seen = []

    def look(stage: str, epoch: int, n_epochs: int, embedding: Rows | None) -> bool:
        if stage == "layout":
            assert embedding is not None
            seen.append((epoch, n_epochs, embedding.copy()))
        return stage == "layout" and epoch == 3

    model = quick(n_epochs=10, callback=look).fit(digits[:100])
    assert [(epoch, total) for epoch, total, _ in seen] == [(1, 10), (2, 10), (3, 10)]
    np.testing.assert_array_equal(seen[-1][2], model.embedding_)
    assert model.n_epochs_ == len(model.loss_history_["loss"]) == 3


def test_training_ends_early_when_the_loss_stands_still(digits: Rows) -> None:
    model = quick(n_epochs=50, patience=2, min_improvement=0.5).fit(digits[:100])
    assert 2 <= model.n_epochs_ < 10


def never(*_: object) -> None:
    raise AssertionError("work was begun")


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"encoder": "no such"}, ValueError, "encoder"),
        ({"encoder": torch.nn.Linear(64, 3)}, ValueError, "encoder"),
        ({"encoder": torch.nn.Linear(5, 2)}, ValueError, "encoder"),
        ({"decoder": torch.nn.Linear(2, 3)}, ValueError, "decoder"),
        ({"encoder": "conv"}, ValueError, "dims"),
        ({"dims": (7, 9)}, ValueError, "dims"),
        ({"device": "tpu"}, ValueError, "device"),
        ({"dtype": "float16"}, ValueError, "dtype"),
        ({"optimizer": "newton"}, ValueError, "optimizer"),
        ({"batch_size": 0}, ValueError, "batch_size"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate"),
        ({"supervision": "none"}, ValueError, "supervision"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
        ({"a": 1.0}, ValueError, "b must be given"),
        ({"min_dist": 2.0}, ValueError, "min_dist"),
        ({"reconstruction_validation": np.zeros((3, 64))}, ValueError, "parametric_reconstruction"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(
    digits: Rows, options: dict[str, Any], error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        quick(callback=never, **options).fit(digits[:50])


def test_bad_data_is_refused_before_any_work(digits: Rows) -> None:
    X = digits[:50].copy()
    with pytest.raises(ValueError, match=r"\by\b"):
        quick(callback=never).fit(X, np.zeros(49))
    with pytest.raises(ValueError, match="landmark_positions"):
        quick(callback=never).fit(X, landmark_positions=np.zeros((50, 3)))
    model = quick().fit(X)
    with pytest.raises(AttributeError, match="decoder"):
        model.inverse_transform(model.embedding_)
    with pytest.raises(ValueError, match="sample_mode"):
        model.add_landmarks(X, sample_mode="predetermined")
    X[7, 3] = np.nan
    with pytest.raises(ValueError, match=r"row 7\b"):
        quick(callback=never).fit(X)


def test_torch_is_imported_by_nothing_else(child_environment: dict[str, str]) -> None:
    script = (
        "import sys, numpy as np, vicinal\n"
        "vicinal.UMAP(n_epochs=2).fit(np.random.rand(30, 3))\n"
        "model = vicinal.ParametricUMAP()\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['torch'] = None\n"
        "try:\n    model.fit(np.random.rand(30, 3))\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, env=child_environment, capture_output=True)
    assert b"pip install 'vicinal[torch]'" in done.stdout
