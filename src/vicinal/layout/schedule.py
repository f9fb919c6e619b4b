"""Epochs, sweeps and learning rates of the sampled layout."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# umap-learn's choice: small data gets more epochs, since its epochs are cheap.
SMALL_ROWS, SMALL_EPOCHS, LARGE_EPOCHS = 10_000, 500, 200


def default_epochs(n: int) -> int:
    """Return UMAP's number of epochs for n rows."""
    return SMALL_EPOCHS if n <= SMALL_ROWS else LARGE_EPOCHS


# A row makes all its moves of a sweep while the others stay where they were. Two sweeps per epoch, each with half of
# the firings, and a learning rate that stays small for longer compensate for that. Means of Fashion-MNIST (3 seeds;
# recall@15, true 15 within 100) and digits (5 seeds; continuity) by (sweeps, exponent of the learning rate):
#   (1, 1) 0.133 0.463 0.965   (2, 1) 0.131 0.468 0.978   (2, 1.5) 0.137 0.477 0.979   umap-learn 0.130 0.473 0.983
SWEEPS, MOST_SWEEPS = 2, 16


@dataclass(frozen=True)
class Schedule:
    """Epochs, learning rates and negatives of a sampled layout.

    Epoch e of n has the learning rate learning_rate * (1 - e/n)^1.5. It is divided into sweeps; in each sweep an edge
    fires with its share of the probability of the epoch.

    Parameters
    ----------
    n_epochs : int, default 200
        Number of epochs after which the learning rate is 0.
    learning_rate : float, default 1
        Learning rate of the first epoch.
    negative_sample_rate : int, default 5
        Negatives per firing edge.
    repulsion_strength : float, default 1
        Factor on the repulsion.
    update_negatives : bool, default False
        Whether negatives move too, by the opposite of the push that they give.
    sweeps : int, default 2
        Sweeps per epoch.
    firings : float, default 1
        Firings per epoch of the heaviest edge, at most one per sweep; other edges fire in proportion to their weights.
    """

    n_epochs: int = 200
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    update_negatives: bool = False
    sweeps: int = SWEEPS
    firings: float = 1.0

    def with_firings(self, firings: float) -> Schedule:
        """Return this schedule with ``firings`` per epoch of the heaviest edge, and with enough sweeps for them."""
        return replace(self, firings=firings, sweeps=min(math.ceil(SWEEPS * firings), MOST_SWEEPS))

    def learning_rates(self, epochs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the learning rates of the given epochs."""
        left = np.clip(1.0 - epochs / max(self.n_epochs, 1), 0.0, 1.0)
        # A square root is correctly rounded on all platforms, a general power is not.
        return (self.learning_rate * left * np.sqrt(left)).astype(np.float32)
