"""Networks of parametric UMAP: standardization, shapes, the registry, independence of the compiled core."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from vicinal.parametric.networks import (  # noqa: E402
    Model,
    Shape,
    Standardize,
    conv_encoder,
)


def test_standardization_keeps_the_proportions_of_distances_and_reduces_wide_rows() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 5)) @ rng.normal(size=(5, 100)) * 7.0 + 3.0).astype(np.float32)
    model = Model.build(Shape(100, 2, (100,)), "mlp", "mlp", torch.device("cpu"))
    model.measure(X)
    first = next(module for module in model.networks.modules() if isinstance(module, Standardize))
    Z = first(torch.from_numpy(X))
    assert Z.shape == (300, 64)
    expected = np.linalg.norm(X[:100] - X[100:200], axis=1) / X.std(axis=0).mean()
    ratio = torch.linalg.vector_norm(Z[:100] - Z[100:200], dim=1).numpy() / expected
    np.testing.assert_allclose(ratio / ratio.mean(), 1.0, rtol=1e-3)
    assert Z.square().sum(1).mean().sqrt() == pytest.approx(10.0, rel=1e-3)  # unit variance of 100 columns


def test_conv_encoder_accepts_images_of_odd_size() -> None:
    shape = Shape(7 * 9 * 3, 2, (7, 9, 3))
    assert conv_encoder(shape)(torch.zeros(4, 189)).shape == (4, 2)
    with pytest.raises(ValueError, match="dims"):
        conv_encoder(Shape(64, 2, (64,)))


def test_registered_networks_are_built_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    from vicinal import parametric
    from vicinal.parametric import networks

    monkeypatch.setattr(networks, "ENCODERS", dict(networks.ENCODERS))
    monkeypatch.setattr(networks, "DECODERS", dict(networks.DECODERS))
    parametric.register_encoder("linear", lambda shape: torch.nn.Linear(shape.n_features, shape.n_components))
    parametric.register_decoder("linear", lambda shape: torch.nn.Linear(shape.n_components, shape.n_features))
    model = Model.build(parametric.Shape(5, 3, (5,)), "linear", "linear", torch.device("cpu"))
    assert model.networks["encoder"].weight.shape == (3, 5)
    assert model.networks["decoder"].weight.shape == (5, 3)


def test_training_does_not_import_the_compiled_core(child_environment: dict[str, str]) -> None:
    script = (
        "import sys\n"
        "sys.modules['vicinal.backends._core'] = None\n"
        "import vicinal.parametric.training, vicinal.parametric.networks\n"
        "assert 'vicinal.backends.cpu' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, env=child_environment, capture_output=True)
