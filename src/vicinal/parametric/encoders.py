"""Encoders and decoders by name: "mlp", "conv" for images, and those that users register.

A factory takes a :class:`Shape` and returns a module. An encoder maps rows [batch, n_features] to points
[batch, n_components], a decoder points to rows. A saved model stores the name of its factory, so loading a file runs no
code from it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WIDTH = 256  # units per hidden layer
DEPTH = 3  # hidden layers
COMPONENTS = 64  # principal components that are the input of the "mlp" encoder's first layer
PROTOTYPE_SPREAD = 5.0  # typical maps extend from -10 to 10
CHANNELS = (32, 64)  # of the convolutions; each halves height and width


@dataclass(frozen=True)
class Shape:
    """Sizes of the networks of a model.

    Parameters
    ----------
    n_features : int
        Columns of the data.
    n_components : int
        Dimensions of the map.
    dims : tuple of int
        Shape of one row: (n_features,), or (height, width) or (height, width, channels) for images.
    """

    n_features: int
    n_components: int
    dims: tuple[int, ...]


Factory = Callable[[Shape], nn.Module]
ENCODERS: dict[str, Factory] = {}
DECODERS: dict[str, Factory] = {}


def register_encoder(name: str, factory: Factory) -> None:
    """Register an encoder, so that ``ParametricUMAP(encoder=name)`` trains ``factory(shape)``.

    A model saved with this name can be loaded in any process that registers the name first.

    Parameters
    ----------
    name : str
        The value of the parameter ``encoder``.
    factory : callable
        Takes a :class:`vicinal.parametric.Shape` and returns a module that maps [batch, n_features] to
        [batch, n_components].
    """
    ENCODERS[name] = factory


def register_decoder(name: str, factory: Factory) -> None:
    """Register a decoder, so that ``ParametricUMAP(decoder=name)`` trains ``factory(shape)``.

    Parameters
    ----------
    name : str
        The value of the parameter ``decoder``.
    factory : callable
        Takes a :class:`vicinal.parametric.Shape` and returns a module that maps [batch, n_components] to
        [batch, n_features].
    """
    DECODERS[name] = factory


class Standardize(nn.Module):
    """Center rows, divide them by one number for all columns, and reduce wide rows to their principal components.

    One number for all columns keeps the proportions of distances. The components improve the conditioning of the first
    layer: on 10,000 rows of Fashion-MNIST the same number of steps gives trustworthiness 0.965 with 64 components and
    0.959 with all 784 columns.
    """

    mean: Tensor
    scale: Tensor
    basis: Tensor

    def __init__(self, n_features: int, *, reduce: bool = True) -> None:
        super().__init__()
        self.n_out = min(n_features, COMPONENTS) if reduce else n_features
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("scale", torch.ones(()))
        if self.n_out < n_features:
            self.register_buffer("basis", torch.eye(n_features, COMPONENTS))

    def measure(self, mean: Tensor, spread: float, sample: Tensor) -> None:
        """Set the column means, the overall spread and the principal components of a sample of rows."""
        self.mean.copy_(mean)
        self.scale.fill_(1.0 / spread)
        if self.n_out < len(mean):
            found = min(self.n_out, len(sample))
            centered = (sample.to(self.mean) - self.mean) * self.scale
            self.basis.zero_()
            self.basis[:, :found] = torch.pca_lowrank(centered, found, center=False)[2]

    def forward(self, x: Tensor) -> Tensor:
        centered = (x - self.mean) * self.scale
        return centered @ self.basis if self.n_out < len(self.mean) else centered


class Restore(nn.Module):
    """Undo the centering and division of :class:`Standardize`, as a decoder's last layer."""

    mean: Tensor
    spread: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("spread", torch.ones(()))

    def measure(self, mean: Tensor, spread: float, sample: Tensor) -> None:
        """Set the column means and the overall spread."""
        self.mean.copy_(mean)
        self.spread.fill_(spread)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.spread + self.mean


class Prototypes(nn.Module):
    """Classify points by one trained position per class: logits are negated squared distances to these positions.

    This pulls a class together, which a perceptron on the map does not. On digits with 5 % of the labels, the 5-NN
    accuracy of held-out rows after 12 epochs is 0.961 with prototypes, 0.950 with a perceptron, 0.947 without labels.
    """

    def __init__(self, n_components: int, n_classes: int) -> None:
        super().__init__()
        # The attribute's name is a key of model files.
        self.places = nn.Parameter(PROTOTYPE_SPREAD * torch.randn(n_classes, n_components))

    def forward(self, embedding: Tensor) -> Tensor:
        return -(embedding[:, None, :] - self.places).square().sum(-1)


def _stack(widths: Sequence[int]) -> list[nn.Module]:
    """Return linear layers of these widths with SiLU between them."""
    layers: list[nn.Module] = []
    for width, following in itertools.pairwise(widths):
        layers += [nn.SiLU(), nn.Linear(width, following)]
    return layers[1:]


def mlp_encoder(shape: Shape) -> nn.Module:
    """Build the encoder "mlp": a perceptron on standardized rows or their principal components."""
    first = Standardize(shape.n_features)
    return nn.Sequential(first, *_stack([first.n_out, *[WIDTH] * DEPTH, shape.n_components]))


def mlp_decoder(shape: Shape) -> nn.Module:
    """Build the decoder "mlp": a perceptron whose output is scaled back to the data."""
    widths = [shape.n_components, *[WIDTH] * DEPTH, shape.n_features]
    return nn.Sequential(*_stack(widths), Restore(shape.n_features))


class Image(nn.Module):
    """Reshape flat rows to images [batch, channels, height, width]; in ``dims`` the channels are last."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        super().__init__()
        self.height, self.width, self.channels = (*dims, 1)[:3]

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1, self.height, self.width, self.channels).permute(0, 3, 1, 2)


def conv_encoder(shape: Shape) -> nn.Module:
    """Build the encoder "conv": two convolutions and a perceptron, for images."""
    if len(shape.dims) not in (2, 3):
        raise ValueError(f"encoder='conv' needs dims=(height, width[, channels]), got dims={shape.dims}")
    image = Image(shape.dims)
    first, second = CHANNELS
    size = second * math.ceil(image.height / 4) * math.ceil(image.width / 4)
    return nn.Sequential(
        Standardize(shape.n_features, reduce=False),
        image,
        nn.Conv2d(image.channels, first, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(first, second, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Flatten(),
        *_stack([size, WIDTH, WIDTH, shape.n_components]),
    )


register_encoder("mlp", mlp_encoder)
register_encoder("conv", conv_encoder)
register_decoder("mlp", mlp_decoder)
