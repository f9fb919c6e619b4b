"""The terms of a training loss. Each is a callable of a batch of edges; what else it needs, it draws itself.

loss = umap + w_r reconstruction + w_g correlation + w_l landmarks + w_s supervision
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from vicinal.layout.kernel import Kernel
from vicinal.parametric.loss import correlation_loss, triplet_loss, umap_loss
from vicinal.parametric.rows import Rows
from vicinal.parametric.sampler import EdgeSampler
from vicinal.runtime.sharing import once

PairLoss = Callable[[Tensor, Tensor], Tensor]


class Batch:
    """Edges of the graph: drawn, fetched and encoded when a term first asks, all rows in one pass."""

    def __init__(self, encoder: nn.Module, rows: Rows, sampler: EdgeSampler, size: int) -> None:
        self._encoder, self._rows, self._sampler, self._size = encoder, rows, sampler, size

    @once
    def rows(self) -> Tensor:
        """Heads, then tails."""
        return self._rows.take(torch.cat(self._sampler.draw(self._size)))

    @once
    def embedding(self) -> Tensor:
        return encode(self._encoder, self.rows)

    def ends(self) -> tuple[Tensor, Tensor]:
        """Places of the heads and of the tails."""
        return self.embedding[: self._size], self.embedding[self._size :]


def encode(encoder: nn.Module, rows: Tensor) -> Tensor:
    """Places of rows; mixed precision ends here, since costs of near pairs need all the digits."""
    return encoder(rows).to(rows.dtype)  # type: ignore[no-any-return]


class Term(Protocol):
    """``name`` is its key in the history, ``weight`` its factor in the sum."""

    @property
    def name(self) -> str: ...

    @property
    def weight(self) -> float: ...

    def __call__(self, batch: Batch) -> Tensor: ...


@dataclass(frozen=True)
class Umap:
    """Algorithm 2's (c^a + c^r)."""

    kernel: Kernel
    negatives: int
    repulsion: float
    name: str = "umap"
    weight: float = 1.0

    def __call__(self, batch: Batch) -> Tensor:
        return umap_loss(*batch.ends(), self.kernel, self.negatives, self.repulsion)


@dataclass(frozen=True)
class Correlation:
    """Distances across the batch should correlate with those in the data."""

    weight: float
    name: str = "correlation"

    def __call__(self, batch: Batch) -> Tensor:
        return correlation_loss(batch.rows, batch.embedding)


@dataclass(frozen=True)
class Reconstruction:
    """How far decoded places are from their rows. Detached, it trains the decoder only."""

    decoder: nn.Module
    loss: PairLoss
    weight: float
    joint: bool
    name: str = "reconstruction"

    def __call__(self, batch: Batch) -> Tensor:
        places = batch.embedding if self.joint else batch.embedding.detach()
        return self.loss(self.decoder(places), batch.rows)


@dataclass(frozen=True)
class Landmarks:
    """Some rows have places to keep."""

    encoder: nn.Module
    rows: Rows
    places: Tensor
    loss: PairLoss
    weight: float
    size: int
    generator: torch.Generator
    name: str = "landmarks"

    def __call__(self, batch: Batch) -> Tensor:
        index = draw(len(self.rows), self.size, self.generator)
        return self.loss(encode(self.encoder, self.rows.take(index)), self.places[index.to(self.places.device)])


@dataclass(frozen=True)
class Supervision:
    """Classification of labelled rows from their places: cross-entropy through a head, or triplets without one."""

    encoder: nn.Module
    head: nn.Module | None
    rows: Rows
    labelled: Tensor  # numbers of the rows that have a label
    labels: Tensor  # their classes, on the device
    weight: float
    size: int
    generator: torch.Generator
    name: str = "supervision"

    def __call__(self, batch: Batch) -> Tensor:
        chosen = draw(len(self.labelled), self.size, self.generator)
        places = encode(self.encoder, self.rows.take(self.labelled[chosen]))
        labels = self.labels[chosen.to(self.labels.device)]
        if self.head is None:
            return triplet_loss(places, labels, self.generator)
        return nn.functional.cross_entropy(self.head(places), labels)


def draw(n: int, size: int, generator: torch.Generator) -> Tensor:
    """Row numbers: all of them if they are few, else ``size`` at random."""
    if n <= size:
        return torch.arange(n, device=generator.device)
    return torch.randint(n, (size,), generator=generator, device=generator.device)


def relative_squared_error(decoded: Tensor, rows: Tensor) -> Tensor:
    """Relative to the variance of the batch's rows, so that its weight means the same for data of any scale."""
    variance = (rows - rows.mean(0)).square().mean().clamp_min(torch.finfo(rows.dtype).tiny)
    return (decoded - rows).square().mean() / variance


def squared_distance(places: Tensor, wanted: Tensor) -> Tensor:
    return (places - wanted).square().sum(1).mean()
