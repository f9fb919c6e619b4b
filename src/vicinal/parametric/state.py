"""Convert a model's networks to plain values for a model file, and back.

If a network is the user's own module, the file holds its weights only. To load the file, the module must be given
again or be registered under a name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from vicinal.parametric.encoders import DECODERS, ENCODERS, Factory, Shape
from vicinal.parametric.model import Model

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def model_state(model: Model) -> dict[str, Any]:
    """Return sizes, type and weights as values that a file can hold."""
    try:
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in model.networks.state_dict().items()}
    except TypeError as error:
        raise ValueError(f"the networks have weights of a type that a model file cannot hold: {error}") from error
    return {
        "shape": (model.shape.n_features, model.shape.n_components, model.shape.dims),
        "dtype": str(model.dtype).removeprefix("torch."),
        "weights": weights,
    }


def model_from_state(state: dict[str, Any], encoder: Any, decoder: Any, device: torch.device) -> Model:
    """Build the networks by name, or copy the given modules, and load the weights of ``state``."""
    n_features, n_components, dims = state["shape"]
    shape = Shape(int(n_features), int(n_components), tuple(int(size) for size in dims))
    weights = {name: torch.from_numpy(np.array(array)) for name, array in state["weights"].items()}
    encoder = "mlp" if encoder is None else encoder
    if not any(name.startswith("decoder.") for name in weights):
        decoder = None
    elif decoder is None:
        decoder = "mlp"
    for kind, network, registered in (("encoder", encoder, ENCODERS), ("decoder", decoder, DECODERS)):
        if isinstance(network, str) and network in registered:
            _check_sizes(kind, registered[network], shape, weights)
    model = Model.build(shape, encoder, decoder, device, DTYPES[state["dtype"]])
    if "head.places" in weights:
        model.add_head(len(weights["head.places"]))
    try:
        model.networks.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the weights in the file do not fit these networks: {error}") from error
    model.networks.eval()
    return model


def _check_sizes(kind: str, factory: Factory, shape: Shape, weights: dict[str, torch.Tensor]) -> None:
    """Compare the weights with a network that uses no memory, so that a file's sizes alone cannot exhaust it."""
    try:
        with torch.device("meta"):
            expected = {f"{kind}.{name}": tensor.shape for name, tensor in factory(shape).state_dict().items()}
    except NotImplementedError:
        return  # a registered network that needs values while it is built
    found = {name: tensor.shape for name, tensor in weights.items() if name.startswith(f"{kind}.")}
    if expected != found:
        raise ValueError(f"the weights in the file do not fit the {kind}")
