"""A parametric model's networks in a file (:mod:`vicinal.files.models`): their weights by name, their sizes.

A network that is a module of the user's own is not in the file, only its weights: it has to be given again, or
registered under a name.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from vicinal.files.container import ModelFileError
from vicinal.parametric.encoders import DECODERS, ENCODERS, Shape
from vicinal.parametric.model import Model

TYPES = {"float32": torch.float32, "float64": torch.float64}


def described(model: Model) -> dict[str, Any]:
    """Sizes and weights in values that a file can hold."""
    try:
        weights = {name: tensor.detach().cpu().numpy() for name, tensor in model.networks.state_dict().items()}
    except TypeError as error:
        raise ModelFileError(f"the networks have weights of a type that files cannot hold: {error}") from error
    return {
        "shape": (model.shape.n_features, model.shape.n_components, model.shape.dims),
        "dtype": str(model.dtype).removeprefix("torch."),
        "weights": weights,
    }


def restored(described: dict[str, Any], encoder: Any, decoder: Any, device: torch.device) -> Model:
    """The networks, made again by name or copied from the modules given, with the weights of the file."""
    n_features, n_components, dims = described["shape"]
    shape = Shape(int(n_features), int(n_components), tuple(int(size) for size in dims))
    weights = {name: torch.from_numpy(np.array(array)) for name, array in described["weights"].items()}
    encoder = "mlp" if encoder is None else encoder
    if not any(name.startswith("decoder.") for name in weights):
        decoder = None
    elif decoder is None:
        decoder = "mlp"
    for kind, named, known in (("encoder", encoder, ENCODERS), ("decoder", decoder, DECODERS)):
        if isinstance(named, str) and named in known:
            _check_sizes(kind, known[named], shape, weights)
    model = Model.build(shape, encoder, decoder, device, TYPES[described["dtype"]])
    if "head.places" in weights:
        model.add_head(len(weights["head.places"]))
    try:
        model.networks.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelFileError(f"the weights in the file do not fit these networks: {error}") from error
    model.networks.eval()
    return model


def _check_sizes(kind: str, factory: Any, shape: Shape, weights: dict[str, torch.Tensor]) -> None:
    """A network of the sizes that a file claims is made without memory first, and compared with the weights."""
    try:
        with torch.device("meta"):
            wanted = {f"{kind}.{name}": tensor.shape for name, tensor in factory(shape).state_dict().items()}
    except NotImplementedError:
        return  # a registered network that computes while it is made
    found = {name: tensor.shape for name, tensor in weights.items() if name.startswith(f"{kind}.")}
    if wanted != found:
        raise ModelFileError(f"the weights in the file do not fit the {kind}")
