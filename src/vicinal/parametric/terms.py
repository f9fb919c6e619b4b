"""The terms of the training loss. Each term is called with a batch of edges and draws any other rows it needs.

loss = umap + w_r reconstruction + w_g correlation + w_l landmarks + w_s supervision
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor, nn

from vicinal.parametric.loss import Negatives, correlation_loss, triplet_loss, umap_loss
from vicinal.parametric.rows import DeviceRows
from vicinal.parametric.sampler import EdgeSampler

if TYPE_CHECKING:
    from vicinal.layout.kernel import Kernel

PairLoss = Callable[[Tensor, Tensor], Tensor]


class EdgeBatch:
    """A batch of edges. It is drawn, fetched and encoded when a term first needs it, heads and tails in one pass."""

    def __init__(self, encoder: nn.Module, rows: DeviceRows, sampler: EdgeSampler, size: int) -> None:
        self._encoder, self._rows, self._sampler, self._size = encoder, rows, sampler, size

    @cached_property
    def edges(self) -> tuple[Tensor, Tensor]:
        """The row numbers of the heads and of the tails."""
        return self._sampler.draw(self._size)

    @cached_property
    def rows(self) -> Tensor:
        """The rows of the heads, then those of the tails."""
        return self._rows.take(torch.cat(self.edges))

    @cached_property
    def embedding(self) -> Tensor:
        """The points of ``rows``."""
        return encode(self._encoder, self.rows)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Return the points of the heads and of the tails."""
        return self.embedding[: self._size], self.embedding[self._size :]

    def negatives(self, number: int, strength: float) -> Negatives:
        """Return how the tails count as negatives: as if they were drawn uniformly from all rows."""
        heads, tails = self.edges
        device = self.embedding.device
        weight = self._sampler.uniform_weights(tails)
        return Negatives(number, strength, heads.to(device), tails.to(device), weight.to(device))


def encode(encoder: nn.Module, rows: Tensor) -> Tensor:
    """Return the points of rows in the rows' type: the losses of close pairs need more digits than bfloat16 has."""
    return encoder(rows).to(rows.dtype)  # type: ignore[no-any-return]


class Term(Protocol):
    """A summand of the loss. ``name`` is its key in the history, ``weight`` its factor."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float: ...

    def __call__(self, batch: EdgeBatch) -> Tensor: ...


@dataclass(frozen=True)
class UmapTerm:
    """UMAP's loss of the batch's edges and negatives: c^a + c^r of Algorithm 2."""

    kernel: Kernel
    negatives: int
    repulsion: float
    name: str = "umap"
    weight: float = 1.0

    def __call__(self, batch: EdgeBatch) -> Tensor:
        return umap_loss(*batch.ends(), self.kernel, batch.negatives(self.negatives, self.repulsion))


@dataclass(frozen=True)
class CorrelationTerm:
    """1 - correlation between distances in the data and distances in the map, over the batch."""

    weight: float
    name: str = "correlation"

    def __call__(self, batch: EdgeBatch) -> Tensor:
        return correlation_loss(batch.rows, batch.embedding)


@dataclass(frozen=True)
class ReconstructionTerm:
    """The loss between decoded points and their rows. Unless ``joint``, it trains the decoder only."""

    decoder: nn.Module
    loss: PairLoss
    weight: float
    joint: bool
    name: str = "reconstruction"

    def __call__(self, batch: EdgeBatch) -> Tensor:
        points = batch.embedding if self.joint else batch.embedding.detach()
        return self.loss(self.decoder(points), batch.rows)


@dataclass(frozen=True)
class LandmarkTerm:
    """The loss between the points of some rows and the positions where they should be."""

    encoder: nn.Module
    rows: DeviceRows
    positions: Tensor
    loss: PairLoss
    weight: float
    size: int
    generator: torch.Generator
    name: str = "landmarks"

    def __call__(self, batch: EdgeBatch) -> Tensor:
        index = draw_index(len(self.rows), self.size, self.generator)
        points = encode(self.encoder, self.rows.take(index))
        return self.loss(points, self.positions[index.to(self.positions.device)])


@dataclass(frozen=True)
class ClassTerm:
    """The loss of classifying labeled rows by their points: cross-entropy with a class head, triplets without."""

    encoder: nn.Module
    head: nn.Module | None
    rows: DeviceRows
    labeled: Tensor  # numbers of the rows that have a label
    labels: Tensor  # classes of those rows, on the training device
    weight: float
    size: int
    generator: torch.Generator
    name: str = "supervision"

    def __call__(self, batch: EdgeBatch) -> Tensor:
        chosen = draw_index(len(self.labeled), self.size, self.generator)
        points = encode(self.encoder, self.rows.take(self.labeled[chosen]))
        labels = self.labels[chosen.to(self.labels.device)]
        if self.head is None:
            return triplet_loss(points, labels, self.generator)
        return nn.functional.cross_entropy(self.head(points), labels)


def draw_index(n: int, size: int, generator: torch.Generator) -> Tensor:
    """Return ``size`` random numbers below ``n``, or all numbers below ``n`` if there are no more than ``size``."""
    if n <= size:
        return torch.arange(n, device=generator.device)
    return torch.randint(n, (size,), generator=generator, device=generator.device)


def relative_squared_error(decoded: Tensor, rows: Tensor) -> Tensor:
    """Return the squared error divided by the variance of the batch's rows, which does not depend on their scale."""
    variance = (rows - rows.mean(0)).square().mean().clamp_min(torch.finfo(rows.dtype).tiny)
    return (decoded - rows).square().mean() / variance


def mean_squared_distance(points: Tensor, positions: Tensor) -> Tensor:
    """Return the mean squared distance between points and their wanted positions."""
    return (points - positions).square().sum(1).mean()
