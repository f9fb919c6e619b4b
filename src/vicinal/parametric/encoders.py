"""Encoders and decoders by name: 'mlp', 'conv' for images, and whatever is registered.

A factory takes a :class:`Shape` and returns a module from rows [batch, n_features] to places
[batch, n_components]. A saved model names its factory, so that loading runs no code out of the file.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

WIDTH = 256  # units of a hidden layer
DEPTH = 3
COMPONENTS = 64  # principal ones, that a perceptron starts from
PROTOTYPE_SPREAD = 5.0  # maps extend some 10 to either side
CHANNELS = (32, 64)  # of the convolutions; each halves the picture


@dataclass(frozen=True)
class Shape:
    """Sizes of a model. ``dims`` is the form of one row, (height, width) or (height, width, channels) for pictures."""

    n_features: int
    n_components: int
    dims: tuple[int, ...]


Factory = Callable[[Shape], nn.Module]
ENCODERS: dict[str, Factory] = {}
DECODERS: dict[str, Factory] = {}


def register_encoder(name: str, factory: Factory) -> None:
    """Makes ``encoder=name`` build ``factory(shape)``; do the same before loading a model saved with that name."""
    ENCODERS[name] = factory


def register_decoder(name: str, factory: Factory) -> None:
    """Makes ``decoder=name`` build ``factory(shape)``."""
    DECODERS[name] = factory


class Standardize(nn.Module):
    """Rows centred, divided by one number for all columns, and reduced to their principal components if wide.

    One number, so that distances keep their proportions. The components condition the first layer: Fashion-MNIST,
    10,000 rows, the same number of steps, trustworthiness 0.959 on 784 columns and 0.965 on 64 components.
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
        """Takes over the data's column means and overall spread, and the principal components of some rows."""
        self.mean.copy_(mean)
        self.scale.fill_(1.0 / spread)
        if self.n_out < len(mean):
            found = min(self.n_out, len(sample))
            centred = (sample.to(self.mean) - self.mean) * self.scale
            self.basis.zero_()
            self.basis[:, :found] = torch.pca_lowrank(centred, found, center=False)[2]

    def forward(self, x: Tensor) -> Tensor:
        centred = (x - self.mean) * self.scale
        return centred @ self.basis if self.n_out < len(self.mean) else centred


class Restore(nn.Module):
    """Undoes centring and division, at a decoder's end."""

    mean: Tensor
    spread: Tensor

    def __init__(self, n_features: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("spread", torch.ones(()))

    def measure(self, mean: Tensor, spread: float, sample: Tensor) -> None:
        self.mean.copy_(mean)
        self.spread.fill_(spread)

    def forward(self, x: Tensor) -> Tensor:
        return x * self.spread + self.mean


class Prototypes(nn.Module):
    """A place for every class; a row's logits are its squared distances to them, negated.

    So a class is drawn together, which a perceptron on the map does not ask for. Digits with 5 % of the labels, 5-NN
    accuracy of held-out rows after 12 epochs: 0.950 with a perceptron, 0.961 with prototypes, 0.947 without labels.
    """

    def __init__(self, n_components: int, n_classes: int) -> None:
        super().__init__()
        self.places = nn.Parameter(PROTOTYPE_SPREAD * torch.randn(n_classes, n_components))

    def forward(self, embedding: Tensor) -> Tensor:
        return -(embedding[:, None, :] - self.places).square().sum(-1)


def _stack(widths: Sequence[int]) -> list[nn.Module]:
    """Linear layers of these widths, SiLU between each two."""
    layers: list[nn.Module] = []
    for width, following in itertools.pairwise(widths):
        layers += [nn.SiLU(), nn.Linear(width, following)]
    return layers[1:]


def mlp_encoder(shape: Shape) -> nn.Module:
    first = Standardize(shape.n_features)
    return nn.Sequential(first, *_stack([first.n_out, *[WIDTH] * DEPTH, shape.n_components]))


def mlp_decoder(shape: Shape) -> nn.Module:
    widths = [shape.n_components, *[WIDTH] * DEPTH, shape.n_features]
    return nn.Sequential(*_stack(widths), Restore(shape.n_features))


class Picture(nn.Module):
    """Flat rows as pictures [batch, channels, height, width]; ``dims`` has the channels last."""

    def __init__(self, dims: tuple[int, ...]) -> None:
        super().__init__()
        self.height, self.width, self.channels = (*dims, 1)[:3]

    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(-1, self.height, self.width, self.channels).permute(0, 3, 1, 2)


def conv_encoder(shape: Shape) -> nn.Module:
    if len(shape.dims) not in (2, 3):
        raise ValueError(f"encoder='conv' needs dims=(height, width[, channels]), got dims={shape.dims}")
    picture = Picture(shape.dims)
    first, second = CHANNELS
    size = second * math.ceil(picture.height / 4) * math.ceil(picture.width / 4)
    return nn.Sequential(
        Standardize(shape.n_features, reduce=False),
        picture,
        nn.Conv2d(picture.channels, first, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Conv2d(first, second, 3, stride=2, padding=1),
        nn.SiLU(),
        nn.Flatten(),
        *_stack([size, WIDTH, WIDTH, shape.n_components]),
    )


register_encoder("mlp", mlp_encoder)
register_encoder("conv", conv_encoder)
register_decoder("mlp", mlp_decoder)
