"""One file a model: tensors as safetensors, everything else as JSON in the same header, under one checksum.

Reading parses numbers and text and runs nothing. The checksum covers the names, types, shapes and bytes of all
tensors and the JSON, so that a file that was changed, on purpose or not, is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vicinal.parametric.encoders import Shape
from vicinal.parametric.model import Model
from vicinal.parametric.rows import choose_device

FORMAT = "vicinal-parametric-1"
MODULE = "<module>"  # in place of a name: the network has to be given again
FITTED = ("loss_history_", "n_epochs_", "init_used_", "stage_times_")


def write_model(path: str | os.PathLike[str], tensors: Mapping[str, Tensor], document: Mapping[str, Any]) -> None:
    """Writes beside the target and renames: an interrupted save leaves an older file as it was."""
    from safetensors.torch import save_file

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    header = {"format": FORMAT, "document": text, "sha256": _checksum(plain, text)}
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        save_file(plain, scratch, metadata=header)
        os.replace(scratch, target)
    finally:
        scratch.unlink(missing_ok=True)


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors and the document of a file that is whole; ValueError for any other."""
    from safetensors import SafetensorError, safe_open

    if not Path(path).is_file():
        raise FileNotFoundError(f"no model file at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise ValueError(f"{path} is not a readable model file: {error}") from error
    if header.get("format") != FORMAT:
        raise ValueError(f"{path} has the format {header.get('format')!r}, expected {FORMAT!r}")
    if header.get("sha256") != _checksum(tensors, header.get("document", "")):
        raise ValueError(f"{path} was changed after it was written: its checksum does not match")
    document: dict[str, Any] = json.loads(header["document"])
    return tensors, document


def _checksum(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}|{tensor.dtype}|{tuple(tensor.shape)}|".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


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
    write_model(path, tensors, document)


def load_estimator(path: str | os.PathLike[str], fresh: Any) -> None:
    """Fills an estimator made with the networks and the device that the caller gives."""
    tensors, document = read_model(path)
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
