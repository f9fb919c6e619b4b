"""ParametricUMAP: scikit-learn's contract, reproducible bits, refits, callbacks, and errors before any work."""

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
from parametric.quick_models import Narrow, quick
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from vicinal import ParametricUMAP

torch = pytest.importorskip("torch")

Rows = NDArray[np.float32]
# The positional parameters of umap-learn's constructor, in order.
UMAP_LEARN_PARAMETERS = {
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
    "keras_fit_kwargs": None,
}


@parametrize_with_checks([ParametricUMAP(n_epochs=2, batch_size=16, init="random", n_jobs=1)])
def test_estimator_checks(estimator: ParametricUMAP, check: Any) -> None:
    check(estimator)


def test_positional_parameters_are_those_of_umap_learn() -> None:
    parameters = inspect.signature(ParametricUMAP.__init__).parameters.values()
    positional = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"}
    assert list(positional.items()) == list(UMAP_LEARN_PARAMETERS.items())


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
def test_same_random_state_gives_same_bits(digits: Rows, options: dict[str, Any]) -> None:
    X = digits[:200]
    torch.manual_seed(1)
    first = quick(**options).fit(X)
    torch.manual_seed(2)
    before = torch.random.get_rng_state()
    second = quick(**options).fit(X)
    np.testing.assert_array_equal(first.embedding_, second.embedding_)
    assert first.loss_history_ == second.loss_history_
    assert torch.equal(torch.random.get_rng_state(), before), "torch's global generator was changed"


def test_transform_of_a_row_does_not_depend_on_other_rows(digits: Rows) -> None:
    model = quick().fit(digits[:600])
    np.testing.assert_array_equal(model.transform(digits[:600]), model.embedding_)
    for rows in (slice(0, 1), slice(3, 90), slice(599, 600)):
        np.testing.assert_array_equal(model.transform(digits[rows]), model.embedding_[rows])
    order = np.random.default_rng(0).permutation(600)
    np.testing.assert_array_equal(model.transform(digits[order]), model.embedding_[order])


def test_fit_changes_neither_parameters_nor_data(digits: Rows) -> None:
    X = digits[:100].copy()
    encoder = Narrow()
    weights = copy.deepcopy(encoder.state_dict())
    model = quick(encoder=encoder, dims=(8, 8)).fit(X)
    assert model.encoder is encoder
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, weights[name])
    np.testing.assert_array_equal(X, digits[:100])
    assert not hasattr(clone(model), "embedding_")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.embedding_)


def test_fit_accepts_read_only_data(digits: Rows, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", digits[:100])
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    np.testing.assert_array_equal(quick().fit(mapped).embedding_, quick().fit(digits[:100]).embedding_)


def test_duplicate_and_constant_rows_give_finite_points() -> None:
    X = np.repeat(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32), 20, axis=0)
    model = quick(n_epochs=5, learning_rate=0.05).fit(X)
    assert np.isfinite(model.embedding_).all()
    np.testing.assert_array_equal(model.embedding_[:20], np.repeat(model.embedding_[:1], 20, axis=0))
    assert np.isfinite(quick(init="spectral").fit(np.ones((30, 3))).embedding_).all()
    assert quick().fit(X[:1]).embedding_.shape == (1, 2)


def test_refit_clears_previous_results(digits: Rows, digit_labels: Any) -> None:
    first = quick(parametric_reconstruction=True, reconstruction_validation=digits[:20], init="spectral")
    first.fit(digits[:200], digit_labels[:200])
    assert {"validation", "reconstruction", "supervision"} <= first.loss_history_.keys()
    refitted = first.set_params(**quick().get_params()).fit(digits[200:300, :50])
    fresh = quick().fit(digits[200:300, :50])
    assert refitted.loss_history_ == fresh.loss_history_
    assert vars(refitted).keys() == vars(fresh).keys()
    assert refitted.n_features_in_ == 50
    assert refitted.init_used_ == "random"
    np.testing.assert_array_equal(refitted.embedding_, fresh.embedding_)
    with pytest.raises(AttributeError, match="decoder"):
        refitted.inverse_transform(refitted.embedding_)


@pytest.mark.parametrize(
    ("stage", "continued"), [("neighbors", False), ("initialize", True), ("layout", False), ("layout", True)]
)
def test_interrupted_fit_changes_nothing(digits: Rows, stage: str, continued: bool) -> None:
    model = quick(init="spectral").fit(digits[:200])
    if continued:
        model.add_landmarks(digits[:200])
    before, weights = dict(vars(model)), copy.deepcopy(model.map_.model.networks.state_dict())
    reached = []

    def interrupt(now: str, epoch: int, n_epochs: int, embedding: Rows | None) -> None:
        if now == stage:
            reached.append(now)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.set_params(callback=interrupt).fit(digits[200:400, :60] if not continued else digits[200:400])
    assert reached == [stage]
    assert vars(model) == before | {"callback": interrupt}
    for name, tensor in model.map_.model.networks.state_dict().items():
        assert torch.equal(tensor, weights[name])


def test_transform_uses_the_parameters_of_the_fit(digits: Rows) -> None:
    model = quick(parametric_reconstruction=True).fit(digits[:100])
    points, decoded = model.transform(digits[100:150]), model.inverse_transform(model.embedding_)
    model.set_params(encoder="conv", dims=(4, 16), decoder=None, parametric_reconstruction=False, n_components=5)
    model.set_params(metric="cosine", dtype="float64", n_neighbors=3)
    np.testing.assert_array_equal(model.transform(digits[100:150]), points)
    np.testing.assert_array_equal(model.inverse_transform(model.embedding_), decoded)
    assert list(model.get_feature_names_out()) == ["parametricumap0", "parametricumap1"]


def test_landmarks_of_another_dimension_raise(digits: Rows) -> None:
    model = quick().fit(digits[:100]).add_landmarks(digits[:100]).set_params(n_components=3)
    with pytest.raises(ValueError, match="remove_landmarks"):
        model.fit(digits[:100])
    assert model.remove_landmarks().fit(digits[:100]).embedding_.shape == (100, 3)


def test_landmark_positions_are_routed_through_a_pipeline(digits: Rows) -> None:
    X = digits[:100]
    positions = np.full((100, 2), np.nan)
    positions[:10] = 4.0
    expected = quick().fit(X, landmark_positions=positions).embedding_
    assert (expected != quick().fit(X).embedding_).any()
    pipeline = make_pipeline(FunctionTransformer(), quick())
    found = pipeline.fit(X, parametricumap__landmark_positions=positions)[-1].embedding_
    np.testing.assert_array_equal(found, expected)
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(FunctionTransformer(), quick().set_fit_request(landmark_positions=True))
        np.testing.assert_array_equal(routed.fit_transform(X, landmark_positions=positions), expected)


def test_memory_estimate_uses_the_row_count_of_the_statistics() -> None:
    from vicinal.estimators.parametric import MEASURED_ROWS, MEASURED_SIZE
    from vicinal.parametric.networks import STATISTICS_ROWS, STEP_SIZE

    assert (MEASURED_ROWS, MEASURED_SIZE) == (STATISTICS_ROWS, STEP_SIZE)


def test_callback_receives_the_map_and_can_stop_the_training(digits: Rows) -> None:
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


def test_training_stops_early_when_the_loss_stops_improving(digits: Rows) -> None:
    model = quick(n_epochs=50, patience=2, min_improvement=0.5).fit(digits[:100])
    assert 2 <= model.n_epochs_ < 10


def never(*_: object) -> None:
    raise AssertionError("work has begun")


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
def test_invalid_parameters_raise_before_any_work(
    digits: Rows, options: dict[str, Any], error: Any, words: str
) -> None:
    with pytest.raises(error, match=words):
        quick(callback=never, **options).fit(digits[:50])


def test_invalid_data_raise_before_any_work(digits: Rows) -> None:
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


def test_torch_is_imported_by_parametric_fits_only(child_environment: dict[str, str]) -> None:
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
