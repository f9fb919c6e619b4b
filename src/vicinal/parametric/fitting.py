"""Fits a model to data and its graph: the terms an objective asks for, a start, the training."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from vicinal.layout.kernel import Kernel
from vicinal.parametric.model import Model
from vicinal.parametric.rows import Rows, home_of, share
from vicinal.parametric.sampler import EdgeSampler
from vicinal.parametric.terms import (
    Batch,
    Correlation,
    Landmarks,
    PairLoss,
    Reconstruction,
    Supervision,
    Term,
    Umap,
    relative_squared_error,
    squared_distance,
)
from vicinal.parametric.training import History, Plan, train

# Fashion-MNIST (60,000 rows) needs some 4 million edges; small data gets more epochs, but not for ever.
EDGES, FEWEST_EPOCHS, MOST_EPOCHS = 4_000_000, 4, 40
START_STEPS = 150  # of regression to the initial places
LANDMARK_ROWS = 256  # in a batch
LABELLED_ROWS = 256


@dataclass(frozen=True)
class Data:
    """Rows, their graph in compressed sparse rows, and places to start from (None: wherever the encoder is)."""

    X: NDArray[np.float32]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    start: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Objective:
    """What the loss is made of."""

    kernel: Kernel
    negatives: int = 5
    repulsion: float = 1.0
    correlation: float = 0.0
    reconstruction: float = 1.0
    reconstruction_loss: PairLoss | None = None
    joint: bool = False
    landmarks: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None  # rows and their places
    landmark_weight: float = 1.0
    landmark_loss: PairLoss | None = None
    classes: NDArray[np.int64] | None = None  # of every row; negative = unlabelled
    triplets: bool = False
    supervision: float = 1.0

    def phases(self, model: Model, rows: Rows, generator: torch.Generator) -> list[list[Term]]:
        """Terms that share a step. With unlabelled rows, UMAP and classification alternate (survey section 2.5)."""
        terms: list[Term] = [Umap(self.kernel, self.negatives, self.repulsion)]
        if self.correlation > 0.0:
            terms.append(Correlation(self.correlation))
        if "decoder" in model.networks:
            loss = self.reconstruction_loss or relative_squared_error
            terms.append(Reconstruction(model.networks["decoder"], loss, self.reconstruction, self.joint))
        if self.landmarks is not None and len(self.landmarks[0]):
            known, places = self.landmarks
            terms.append(self._towards(model, known, places, generator))
        if self.classes is None or not (self.classes >= 0).any():
            return [terms]
        supervision = self._supervision(model, rows, self.classes, generator)
        return [terms, [supervision]] if (self.classes < 0).any() else [[*terms, supervision]]

    def _towards(
        self, model: Model, known: NDArray[np.float32], places: NDArray[np.float32], generator: torch.Generator
    ) -> Landmarks:
        return Landmarks(
            model.networks["encoder"],
            Rows(known, model.device, model.device, model.dtype),
            share(places).to(model.device, model.dtype),
            self.landmark_loss or squared_distance,
            self.landmark_weight,
            LANDMARK_ROWS,
            generator,
        )

    def _supervision(
        self, model: Model, rows: Rows, classes: NDArray[np.int64], generator: torch.Generator
    ) -> Supervision:
        labelled = np.flatnonzero(classes >= 0)
        return Supervision(
            model.networks["encoder"],
            None if self.triplets else model.add_head(int(classes.max()) + 1),
            rows,
            share(labelled).to(generator.device),
            share(classes[labelled]).to(model.device),
            self.supervision,
            LABELLED_ROWS,
            generator,
        )


def default_epochs(data: Data) -> int:
    return int(np.clip(round(EDGES / max(_edges_per_epoch(data), 1.0)), FEWEST_EPOCHS, MOST_EPOCHS))


def _edges_per_epoch(data: Data) -> float:
    """How many edges fire when each is tested once, the heaviest always."""
    weights = data.weights
    return float(weights.sum(dtype=np.float64) / weights.max()) if len(weights) and weights.max() > 0.0 else 0.0


def fit_model(
    model: Model,
    data: Data,
    objective: Objective,
    plan: Plan,
    *,
    seed: int,
    after_epoch: Callable[[int], bool] | None = None,
) -> History:
    """Trains the model's networks. Graph and rows go to the device if they fit there, else they are streamed."""
    n_bytes = sum(array.nbytes for array in (data.X, data.indptr, data.indices, data.weights))
    home = home_of(n_bytes, model.device)
    generator = torch.Generator(home).manual_seed(seed)
    rows = Rows(data.X, home, model.device, model.dtype)
    indptr, indices, weights = (share(array).to(home) for array in (data.indptr, data.indices, data.weights))
    sampler = EdgeSampler(indptr, indices, weights, generator)

    def batches() -> Batch:
        return Batch(model.networks["encoder"], rows, sampler, plan.batch_size)

    if data.start is not None and len(data.X) > 1 and plan.n_epochs > 0:
        # A short regression of the encoder to the initial places, centred.
        places = share(data.start - data.start.mean(axis=0)).to(model.device, model.dtype)
        encoder = model.networks["encoder"]
        term = Landmarks(encoder, rows, places, squared_distance, 1.0, 2 * plan.batch_size, generator)
        short = replace(plan, n_epochs=1, steps_per_epoch=START_STEPS, patience=None)
        train(model.networks, [[term]], batches, short)
    phases = objective.phases(model, rows, generator)
    plan = replace(plan, steps_per_epoch=math.ceil(_edges_per_epoch(data) / plan.batch_size))
    return train(model.networks, phases, batches, plan, after_epoch)
