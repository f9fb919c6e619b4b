"""A model: its networks, their sizes, and the device they live on."""

from __future__ import annotations

import copy
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vicinal.parametric.encoders import DECODERS, ENCODERS, Factory, Prototypes, Restore, Shape, Standardize
from vicinal.parametric.rows import apply_rows

STATISTICS_ROWS = 1 << 14  # looked at together
SAMPLE_ROWS = 1 << 13  # enough for principal components
ONNX_OPSET = 17


@dataclass
class Model:
    """``networks`` holds the encoder, and where they were asked for a decoder and a class head."""

    networks: nn.ModuleDict
    shape: Shape
    device: torch.device
    dtype: torch.dtype = torch.float32

    @classmethod
    def build(
        cls,
        shape: Shape,
        encoder: str | nn.Module,
        decoder: str | nn.Module | None,
        device: torch.device,
        dtype: torch.dtype = torch.float32,
    ) -> Model:
        """Makes the networks and checks their widths; weights come from torch's global generator."""
        networks = nn.ModuleDict({"encoder": _network("encoder", encoder, shape)})
        if decoder is not None:
            networks["decoder"] = _network("decoder", decoder, shape)
        model = cls(networks.to(device, dtype), shape, device, dtype)
        model._check_width("encoder", shape.n_features, shape.n_components)
        if decoder is not None:
            model._check_width("decoder", shape.n_components, shape.n_features)
        return model

    def _check_width(self, name: str, given: int, wanted: int) -> None:
        self.networks.eval()
        try:
            with torch.no_grad():
                found = tuple(self.networks[name](torch.zeros(2, given, device=self.device, dtype=self.dtype)).shape)
        except RuntimeError as error:
            raise ValueError(f"{name} does not accept rows of {given} numbers: {error}") from error
        if found != (2, wanted):
            raise ValueError(f"{name} must turn rows of {given} numbers into {wanted}, but two rows gave {found}")

    def add_head(self, n_classes: int) -> nn.Module:
        """A classifier on the map."""
        self.networks["head"] = Prototypes(self.shape.n_components, n_classes).to(self.device, self.dtype)
        return self.networks["head"]

    def measure(self, X: NDArray[np.float32]) -> None:
        """Tells the networks' standardisations about the data; torch's global generator is drawn from."""
        mean = X.mean(axis=0, dtype=np.float64)
        parts = range(0, len(X), STATISTICS_ROWS)
        square = sum(float(np.square(X[i : i + STATISTICS_ROWS] - mean).sum()) for i in parts)
        spread = max(math.sqrt(square / X.size), float(np.finfo(np.float32).tiny)) if square > 0.0 else 1.0
        sample = torch.from_numpy(X[:: -(-len(X) // SAMPLE_ROWS)].copy())
        for module in self.networks.modules():
            if isinstance(module, Standardize | Restore):
                module.measure(torch.from_numpy(mean), spread, sample)

    def encode(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        return apply_rows(self.networks["encoder"], X, self.device, self.dtype)

    def decode(self, places: NDArray[np.float32]) -> NDArray[np.float32]:
        return apply_rows(self.networks["decoder"], places, self.device, self.dtype)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Writes the encoder: input "X" [rows, n_features], output "embedding" [rows, n_components], float32."""
        encoder = copy.deepcopy(self.networks["encoder"]).to("cpu", torch.float32).eval()
        axes = {"X": {0: "rows"}, "embedding": {0: "rows"}}
        with warnings.catch_warnings():  # the exporter that needs no further package announces its successor
            warnings.simplefilter("ignore")
            torch.onnx.export(
                encoder,
                (torch.zeros(2, self.shape.n_features),),
                os.fspath(path),
                input_names=["X"],
                output_names=["embedding"],
                dynamic_axes=axes,
                opset_version=ONNX_OPSET,
                dynamo=False,
            )


def _network(kind: str, given: str | nn.Module, shape: Shape) -> nn.Module:
    """By name from the registry, or a copy of the module that was given."""
    known: Mapping[str, Factory] = ENCODERS if kind == "encoder" else DECODERS
    if isinstance(given, str):
        if given not in known:
            raise ValueError(f"{kind} must be one of {sorted(known)} or a torch module, got {given!r}")
        return known[given](shape)
    if not isinstance(given, nn.Module):
        raise TypeError(f"{kind} must be one of {sorted(known)} or a torch module, got {type(given).__name__}")
    module = copy.deepcopy(given)
    if kind == "decoder":
        return nn.Sequential(module, nn.Flatten())
    return nn.Sequential(nn.Unflatten(1, shape.dims), module) if len(shape.dims) > 1 else module
