"""Epochs, sweeps and learning rates of the sampled layout."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# umap-learn's choice: small data is cheap, so it gets more.
SMALL_ROWS, SMALL_EPOCHS, LARGE_EPOCHS = 10_000, 500, 200


def default_epochs(n: int) -> int:
    return SMALL_EPOCHS if n <= SMALL_ROWS else LARGE_EPOCHS


# A row makes all its moves of a sweep while the others stand still. Two sweeps an epoch, each with half of the
# firings, and a rate that stays small for longer, make up for it. Means of Fashion-MNIST (3 seeds; recall@15, true
# 15 within 100) and digits (5 seeds; continuity), with (sweeps, power of the rate's fall):
#   (1, 1) 0.133 0.463 0.965   (2, 1) 0.131 0.468 0.978   (2, 1.5) 0.137 0.477 0.979   umap-learn 0.130 0.473 0.983
SWEEPS, MOST_SWEEPS = 2, 16


@dataclass(frozen=True)
class Schedule:
    """Epochs, the learning rate and how negatives are drawn.

    Epoch e of n has the rate learning_rate * (1 - e/n)^1.5 and is run in ``sweeps`` parts: an edge fires in every
    part with its share of the epoch's probability. The heaviest edge fires ``firings`` times an epoch, once a part at
    the most, the others in proportion to their weights.
    """

    n_epochs: int = 200
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    update_negatives: bool = False
    sweeps: int = SWEEPS
    firings: float = 1.0

    def with_firings(self, firings: float) -> Schedule:
        """This schedule for edges so heavy that they fire several times an epoch; more parts make room for them."""
        return replace(self, firings=firings, sweeps=min(math.ceil(SWEEPS * firings), MOST_SWEEPS))

    def learning_rates(self, epochs: NDArray[np.int64]) -> NDArray[np.float32]:
        left = np.clip(1.0 - epochs / max(self.n_epochs, 1), 0.0, 1.0)
        # The root is exactly rounded everywhere, a general power is not.
        return (self.learning_rate * left * np.sqrt(left)).astype(np.float32)
