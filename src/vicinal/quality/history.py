"""Losses along a layout."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vicinal.quality.losses import Floats, Loss
from vicinal.runtime.progress import LAYOUT


class History:
    """Callback that records losses during a layout.

    Parameters
    ----------
    loss : callable
        ``loss(embedding)`` returns the :class:`Loss` of a map.
    every : int, default 10
        Period in epochs; the last epoch is always recorded.

    Attributes
    ----------
    epochs : list of int
    losses : list of Loss
    values : array of float
        The values of the losses.
    """

    def __init__(self, loss: Callable[[NDArray[np.float32]], Loss], every: int = 10) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every}")
        self.epochs: list[int] = []
        self.losses: list[Loss] = []
        self.every = every
        self._loss = loss

    def __call__(self, stage: str, done: int, steps: int, embedding: NDArray[np.float32] | None) -> None:
        if stage == LAYOUT and embedding is not None and (done % self.every == 0 or done == steps):
            self.epochs.append(done)
            self.losses.append(self._loss(embedding))

    @property
    def values(self) -> Floats:
        return np.array([loss.value for loss in self.losses])
