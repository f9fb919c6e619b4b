"""The networks of a parametric model, their sizes, and the device they are on."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from vicinal.parametric.encoders import DECODERS, ENCODERS, Factory, Prototypes, Restore, Shape, Standardize
from vicinal.parametric.rows import InputRows, apply_rows, dense_rows
from vicinal.parametric.statistics import column_means, sample_rows, total_spread

ONNX_OPSET = 17


@dataclass
class Model:
    """The networks of a model: ``networks`` has an "encoder", and optionally a "decoder" and a class "head"."""

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
        """Create the networks and check their widths. Initial weights come from torch's global generator."""
        networks = nn.ModuleDict({"encoder": _make_network("encoder", encoder, shape)})
        if decoder is not None:
            networks["decoder"] = _make_network("decoder", decoder, shape)
        model = cls(networks.to(device, dtype), shape, device, dtype)
        model._check_width("encoder", shape.n_features, shape.n_components)
        if decoder is not None:
            model._check_width("decoder", shape.n_components, shape.n_features)
        return model

    def _check_width(self, name: str, n_inputs: int, n_outputs: int) -> None:
        self.networks.eval()
        try:
            with torch.no_grad():
                found = tuple(self.networks[name](torch.zeros(2, n_inputs, device=self.device, dtype=self.dtype)).shape)
        except RuntimeError as error:
            raise ValueError(f"{name} does not accept rows of {n_inputs} numbers: {error}") from error
        if found != (2, n_outputs):
            raise ValueError(f"{name} must map 2 rows of {n_inputs} numbers to shape {(2, n_outputs)}, got {found}")

    def add_head(self, n_classes: int) -> nn.Module:
        """Add a classifier of points and return it."""
        self.networks["head"] = Prototypes(self.shape.n_components, n_classes).to(self.device, self.dtype)
        return self.networks["head"]

    def measure(self, X: InputRows) -> None:
        """Set the standardization of the networks by the data. This draws from torch's global generator."""
        mean = column_means(X)
        spread = total_spread(X, mean)
        sample = torch.from_numpy(sample_rows(X))
        for module in self.networks.modules():
            if isinstance(module, Standardize | Restore):
                module.measure(torch.from_numpy(mean), spread, sample)

    def encode(self, X: InputRows) -> NDArray[np.float32]:
        """Return the points of rows."""
        return apply_rows(self.networks["encoder"], X, self.device, self.dtype)

    def decode(self, points: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the rows that the decoder assigns to points."""
        return apply_rows(self.networks["decoder"], points, self.device, self.dtype)

    def reconstruction_error(self, X: InputRows) -> float:
        """Return the mean squared difference between rows and their reconstruction by encoder and decoder."""
        return float(np.square(self.decode(self.encode(X)) - dense_rows(X, slice(None))).mean())

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the encoder as ONNX: input "X" [rows, n_features], output "embedding" [rows, n_components], float32."""
        encoder = copy.deepcopy(self.networks["encoder"]).to("cpu", torch.float32).eval()
        axes = {"X": {0: "rows"}, "embedding": {0: "rows"}}
        with warnings.catch_warnings():  # this exporter needs no further package, but warns that it is deprecated
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


def _make_network(kind: str, network: str | nn.Module, shape: Shape) -> nn.Module:
    """Build a registered network by name, or copy the given module."""
    registered: Mapping[str, Factory] = ENCODERS if kind == "encoder" else DECODERS
    if isinstance(network, str):
        if network not in registered:
            raise ValueError(f"{kind} must be one of {sorted(registered)} or a torch module, got {network!r}")
        return registered[network](shape)
    if not isinstance(network, nn.Module):
        raise TypeError(f"{kind} must be one of {sorted(registered)} or a torch module, got {type(network).__name__}")
    module = copy.deepcopy(network)
    if kind == "decoder":
        return nn.Sequential(module, nn.Flatten())
    return nn.Sequential(nn.Unflatten(1, shape.dims), module) if len(shape.dims) > 1 else module
