"""Epochs, sweeps and learning rates of the sampled layout."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

# Small data gets more epochs, since its epochs are cheap. Trustworthiness of 20,000 uniform points in 5 dimensions:
# 300 epochs 0.937, 500 epochs 0.946, umap-learn 0.946.
EPOCHS, LARGE_ROWS, LARGE_EPOCHS = 500, 30_000, 200


# Exponent of the learning rate of a fit. Loss J of Fashion-MNIST (200 epochs from a start with room): 1.5 166,126,
# 2 165,425; digits, mean of 10 seeds: 1.5 5,238, 2 5,233.
DECAY = 2.0


def default_epochs(n: int) -> int:
    """Return UMAP's number of epochs for n rows."""
    return EPOCHS if n <= LARGE_ROWS else LARGE_EPOCHS


# A row makes all its moves of a sweep while the others stay where they were. The less a sweep moves, the lower the loss
# at the end: an epoch is divided into sweeps, each with its share of the firings, and the learning rate stays small
# for longer than umap-learn's. Loss J by (epochs, sweeps), Fashion-MNIST (1 seed) and digits (mean of 5 seeds):
#   Fashion-MNIST  (150, 4) 166,560   (200, 2) 166,453   (200, 3) 165,790   (200, 4) 165,425   (300, 4) 164,841
#   digits         (500, 2)   5,274   (500, 4)   5,247   (500, 8)   5,229   (500, 16)  5,222
# umap-learn: 165,991 and 5,275.
SMALL_ROWS, SMALL_SWEEPS, SWEEPS, MOST_SWEEPS = 10_000, 16, 4, 16


def default_sweeps(n: int) -> int:
    """Return the number of sweeps per epoch for n rows that move together."""
    return SMALL_SWEEPS if n <= SMALL_ROWS else SWEEPS


# Small data keeps the first learning rate for a while: its noise lets pieces of a cluster find each other. Digits, 20
# seeds, maps with the digit 1 in one piece: without 19, with it 20. Fashion-MNIST has a higher loss with it, 166,479
# against 165,425.
SMALL_HOLD = 0.1


def default_hold(n: int) -> float:
    """Return the share of the epochs of n rows that keep the first learning rate."""
    return SMALL_HOLD if n <= SMALL_ROWS else 0.0


# Most of the time of a sweep is that of the negatives. While rows still find their places, one negative that repels as
# much as five leads to the same loss: Fashion-MNIST, mean of 2 seeds, for a share of 0 165,710, 0.5 165,550, 0.75
# 165,500, in 1, 0.87 and 0.8 of the time. Small data, whose maps vary more, keeps all.
LARGE_SINGLE = 0.75


def default_single(n: int) -> float:
    """Return the share of the epochs of n rows in which a firing edge draws a single negative."""
    return LARGE_SINGLE if n > LARGE_ROWS else 0.0


# At a learning rate of 1 a near negative pushes a row by up to 4 units, out of its sheet or cluster, and what is torn
# then is not mended later. Loss J without a limit (and a hold of 0.3) and with one of 0.125, of 5,000 rows except for
# digits (20 seeds), uniform and Fashion-MNIST (20,000): digits 5,225, 5,221; a bumpy sheet 6,643, 6,512 (umap-learn
# 6,541); a bowl 6,002, 5,905 (5,914); a torus 8,036, 7,910 (7,865); a grid 6,899, 6,607; uniform 71,283, 70,598;
# Fashion-MNIST 55,645, 55,120. A limit of 0.25 is as good, one of 0.06 too short for digits (5,294). Single negatives
# have none: they stand for five.
LONGEST_PUSH = 0.125


def default_longest_push(n: int) -> float:
    """Return the longest move of a row by one negative, for n rows."""
    return LONGEST_PUSH if n <= LARGE_ROWS else math.inf


@dataclass(frozen=True)
class Schedule:
    """Epochs, learning rates and negatives of a sampled layout.

    A share ``constant_rate_share`` (c) of the n epochs has the full learning rate; then that of epoch e is
    learning_rate times ((1 - e/n) / (1 - c))^decay. An epoch is divided into sweeps; in each sweep an edge fires with
    its share of the probability of the epoch.

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
    sweeps : int, default 4
        Sweeps per epoch. More of them lower the loss at the end and cost time.
    firings : float, default 1
        Firings per epoch of the heaviest edge, at most one per sweep; other edges fire in proportion to their weights.
    decay : float, default 1.5
        Exponent of the learning rate, a multiple of 0.5.
    constant_rate_share : float, default 0
        Share of the epochs, less than 1, before the learning rate falls.
    single_negative_share : float, default 0
        Share of the epochs, from the first, in which a firing edge draws one negative that repels as much as all of
        them would.
    longest_push : float, default infinity
        The longest move of a row by one negative along each axis, except by a single one.

    See Also
    --------
    Layout : runs a schedule.

    Examples
    --------
    >>> from vicinal import Schedule
    >>> Schedule(n_epochs=100, negative_sample_rate=10).learning_rate
    1.0
    """

    n_epochs: int = 200
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    update_negatives: bool = False
    sweeps: int = SWEEPS
    firings: float = 1.0
    decay: float = 1.5
    constant_rate_share: float = 0.0
    single_negative_share: float = 0.0
    longest_push: float = math.inf

    def with_firings(self, firings: float) -> Schedule:
        """Return this schedule with ``firings`` per epoch of the heaviest edge, and with enough sweeps for them."""
        return replace(
            self, firings=firings, sweeps=max(self.sweeps, min(math.ceil(self.sweeps * firings), MOST_SWEEPS))
        )

    def learning_rates(self, epochs: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the learning rates of the given epochs."""
        left = np.clip((1.0 - epochs / max(self.n_epochs, 1)) / (1.0 - self.constant_rate_share), 0.0, 1.0)
        rates = np.full(left.shape, float(self.learning_rate))
        # Products and square roots are correctly rounded on all platforms, a general power is not.
        for _ in range(int(self.decay)):
            rates *= left
        if self.decay % 1.0:
            rates *= np.sqrt(left)
        return rates.astype(np.float32)
