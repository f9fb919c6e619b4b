"""A parametric model as a file (:mod:`vicinal.model_io`): the networks' weights are its arrays, the rest is JSON.

A network that is a module of the user's own is not in the file, only its weights: it has to be given again, or
registered under a name.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vicinal.model_io import ModelFileError, read_file, write_file
from vicinal.parametric.encoders import Shape
from vicinal.parametric.model import Model
from vicinal.parametric.rows import choose_device

MODULE = "<module>"  # in place of a name: the network has to be given again
FITTED = ("loss_history_", "n_epochs_", "init_used_", "stage_times_")


def _as_arrays(tensors: dict[str, Tensor]) -> dict[str, NDArray[Any]]:
    try:
        return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}
    except TypeError as error:
        raise ModelFileError(f"the networks have weights of a type that files cannot hold: {error}") from error


def save_estimator(path: str | os.PathLike[str], estimator: Any) -> None:
    """Parameters that are numbers or words, the networks' weights, the map and the landmarks."""
    model: Model = estimator._model
    tensors = {f"networks.{name}": tensor for name, tensor in model.networks.state_dict().items()}
    arrays = {"embedding": estimator.embedding_}
    if hasattr(estimator, "_landmarks"):
        arrays["landmark_rows"], arrays["landmark_places"] = estimator._landmarks
    tensors |= {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    document = {
        "parameters": {name: value for name, value in estimator.get_params(deep=False).items() if _is_plain(value)},
        "shape": [model.shape.n_features, model.shape.n_components, list(model.shape.dims)],
        "dtype": str(model.dtype).removeprefix("torch."),
        "networks": {
            kind: getattr(estimator, kind) if isinstance(getattr(estimator, kind), str | None) else MODULE
            for kind in ("encoder", "decoder")
        },
        "parts": list(model.networks),
        "n_classes": len(tensors["networks.head.places"]) if "head" in model.networks else 0,
        "fitted": {name: getattr(estimator, name) for name in FITTED if hasattr(estimator, name)},
        "feature_names": _names(estimator),
    }
    write_file(path, _as_arrays(tensors), {"parametric": document})


def load_estimator(path: str | os.PathLike[str], fresh: Any) -> None:
    """Fills an estimator made with the networks and the device that the caller gives."""
    arrays, described = read_file(path)
    if not isinstance(described.get("parametric"), dict):
        raise ModelFileError(f"{path} does not hold a ParametricUMAP")
    document: dict[str, Any] = described["parametric"]
    tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
    given = {"encoder": fresh.encoder, "decoder": fresh.decoder}
    for kind, name in document["networks"].items():
        if name == MODULE and given[kind] is None:
            raise ValueError(f"{path} was trained with a module as its {kind}: give it as load(path, {kind}=module)")
    parameters = document["parameters"] | {kind: value for kind, value in given.items() if value is not None}
    if parameters.get("dims") is not None:
        parameters["dims"] = tuple(parameters["dims"])
    fresh.set_params(**parameters | {"device": fresh.device})
    n_features, n_components, dims = document["shape"]
    shape = Shape(n_features, n_components, tuple(dims))
    has_decoder = "decoder" in document["parts"]
    decoder = (fresh.decoder or "mlp") if has_decoder else None
    model = Model.build(
        shape, fresh.encoder or "mlp", decoder, choose_device(fresh.device), getattr(torch, document["dtype"])
    )
    if document["n_classes"]:
        model.add_head(document["n_classes"])
    weights = {name.removeprefix("networks."): t for name, t in tensors.items() if name.startswith("networks.")}
    try:
        model.networks.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the weights in {path} do not fit these networks: {error}") from error
    model.networks.eval()
    fresh._model, fresh.n_features_in_ = model, n_features
    fresh.embedding_ = tensors["embedding"].numpy()
    if "landmark_rows" in tensors:
        fresh._landmarks = tensors["landmark_rows"].numpy(), tensors["landmark_places"].numpy()
    for name, value in document["fitted"].items():
        setattr(fresh, name, value)
    if document["feature_names"] is not None:
        fresh.feature_names_in_ = np.asarray(document["feature_names"], dtype=object)


def _is_plain(value: Any) -> bool:
    """Whether JSON can hold the value; modules, callables and arrays are not kept."""
    if isinstance(value, tuple | list):
        return all(_is_plain(item) for item in value)
    return value is None or type(value) in (bool, int, float, str)


def _names(estimator: Any) -> list[str] | None:
    names: NDArray[Any] | None = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
