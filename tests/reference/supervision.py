"""The losses that section 2.5 and section 7 name without a formula: classification, triplets, reconstruction."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def class_cross_entropy(scores: Floats, labels: NDArray[np.int64]) -> float:
    """Return the mean of -ln softmax(scores)[label] over the rows."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    log_softmax = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return float(-log_softmax[np.arange(len(labels)), labels].mean())


def mean_triplet_loss(points: Floats, labels: NDArray[np.int64], margin: float = 1.0) -> float:
    """Return the mean hinge over all triplets of each anchor, averaged over the anchors that have triplets.

    A triplet is an anchor, another row of its class and a row of another class; its hinge is
    max(0, |anchor - positive| - |anchor - negative| + margin).
    """
    distance = np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=-1))
    means = []
    for anchor, label in enumerate(labels):
        positives = [i for i in np.flatnonzero(labels == label) if i != anchor]
        negatives = np.flatnonzero(labels != label)
        hinges = [max(0.0, distance[anchor, p] - distance[anchor, q] + margin) for p in positives for q in negatives]
        if hinges:
            means.append(np.mean(hinges))
    return float(np.mean(means))


def relative_reconstruction_error(decoded: Floats, rows: Floats) -> float:
    """Return the squared error of decoded rows divided by that of the mean row."""
    return float(((decoded - rows) ** 2).sum() / ((rows - rows.mean(axis=0)) ** 2).sum())
