"""Fit a model to rows and their graph: build the terms of the loss, move the encoder to the start, train."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from vicinal.parametric.model import Model
from vicinal.parametric.rows import DeviceRows, InputRows, as_tensor, count_bytes, storage_device
from vicinal.parametric.sampler import EdgeSampler
from vicinal.parametric.terms import (
    ClassTerm,
    CorrelationTerm,
    EdgeBatch,
    LandmarkTerm,
    PairLoss,
    ReconstructionTerm,
    Term,
    UmapTerm,
    mean_squared_distance,
    relative_squared_error,
)
from vicinal.parametric.training import Plan, TrainingHistory, train

if TYPE_CHECKING:
    from vicinal.layout.kernel import Kernel

# Fashion-MNIST (60,000 rows) needs about 4 million edges. Small data get more epochs, up to a limit.
EDGES, FEWEST_EPOCHS, MOST_EPOCHS = 4_000_000, 4, 40
START_STEPS = 150  # steps of the regression to the initial points
LANDMARK_ROWS = 256  # per batch
LABELED_ROWS = 256  # per batch


@dataclass(frozen=True)
class Data:
    """Rows, their graph in compressed sparse rows, and initial points (None: those of the untrained encoder)."""

    X: InputRows
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    weights: NDArray[np.float32]
    start: NDArray[np.float32] | None = None


@dataclass(frozen=True)
class Objective:
    """The terms of the loss and their weights."""

    kernel: Kernel
    negatives: int = 5
    repulsion: float = 1.0
    correlation_weight: float = 0.0
    reconstruction_weight: float = 1.0
    reconstruction_loss: PairLoss | None = None
    joint: bool = False
    landmarks: tuple[InputRows, NDArray[np.float32]] | None = None  # rows and their positions
    landmark_weight: float = 1.0
    landmark_loss: PairLoss | None = None
    classes: NDArray[np.int64] | None = None  # one per row; negative = unlabeled
    triplets: bool = False
    class_weight: float = 1.0

    def phases(self, model: Model, rows: DeviceRows, generator: torch.Generator) -> list[list[Term]]:
        """Return the terms of each optimizer step; a class head is added to the model if one is needed.

        If some rows are unlabeled, steps of UMAP and of classification alternate (survey section 2.5).
        """
        terms: list[Term] = [UmapTerm(self.kernel, self.negatives, self.repulsion)]
        if self.correlation_weight > 0.0:
            terms.append(CorrelationTerm(self.correlation_weight))
        if "decoder" in model.networks:
            loss = self.reconstruction_loss or relative_squared_error
            terms.append(ReconstructionTerm(model.networks["decoder"], loss, self.reconstruction_weight, self.joint))
        if self.landmarks is not None and self.landmarks[0].shape[0]:
            terms.append(self._landmark_term(model, *self.landmarks, generator))
        if self.classes is None or not (self.classes >= 0).any():
            return [terms]
        class_term = self._class_term(model, rows, self.classes, generator)
        return [terms, [class_term]] if (self.classes < 0).any() else [[*terms, class_term]]

    def _landmark_term(
        self, model: Model, landmarks: InputRows, positions: NDArray[np.float32], generator: torch.Generator
    ) -> LandmarkTerm:
        return LandmarkTerm(
            model.networks["encoder"],
            DeviceRows(landmarks, model.device, model.device, model.dtype),
            as_tensor(positions).to(model.device, model.dtype),
            self.landmark_loss or mean_squared_distance,
            self.landmark_weight,
            LANDMARK_ROWS,
            generator,
        )

    def _class_term(
        self, model: Model, rows: DeviceRows, classes: NDArray[np.int64], generator: torch.Generator
    ) -> ClassTerm:
        labeled = np.flatnonzero(classes >= 0)
        return ClassTerm(
            model.networks["encoder"],
            None if self.triplets else model.add_head(int(classes.max()) + 1),
            rows,
            as_tensor(labeled).to(generator.device),
            as_tensor(classes[labeled]).to(model.device),
            self.class_weight,
            LABELED_ROWS,
            generator,
        )


def training_epochs(data: Data) -> int:
    """Return the default number of epochs: about 4 million edges, within limits."""
    return int(np.clip(round(EDGES / max(_edges_per_epoch(data), 1.0)), FEWEST_EPOCHS, MOST_EPOCHS))


def _edges_per_epoch(data: Data) -> float:
    """Return the expected number of edges that fire if each is tested once and the heaviest always fires."""
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
) -> TrainingHistory:
    """Train the model's networks in place and return the mean of every term by epoch.

    Graph and rows are copied to the training device if they fit there; otherwise each batch is copied from the host.
    """
    n_bytes = count_bytes(data.X) + sum(array.nbytes for array in (data.indptr, data.indices, data.weights))
    storage = storage_device(n_bytes, model.device)
    generator = torch.Generator(storage).manual_seed(seed)
    rows = DeviceRows(data.X, storage, model.device, model.dtype)
    indptr, indices, weights = (as_tensor(array).to(storage) for array in (data.indptr, data.indices, data.weights))
    sampler = EdgeSampler(indptr, indices, weights, generator)

    def batches() -> EdgeBatch:
        return EdgeBatch(model.networks["encoder"], rows, sampler, plan.batch_size)

    if data.start is not None and len(rows) > 1 and plan.n_epochs > 0:
        # A short regression of the encoder to the centered initial points.
        points = as_tensor(data.start - data.start.mean(axis=0)).to(model.device, model.dtype)
        encoder = model.networks["encoder"]
        term = LandmarkTerm(encoder, rows, points, mean_squared_distance, 1.0, 2 * plan.batch_size, generator)
        short = replace(plan, n_epochs=1, steps_per_epoch=START_STEPS, patience=None)
        train(model.networks, [[term]], batches, short)
    phases = objective.phases(model, rows, generator)
    plan = replace(plan, steps_per_epoch=math.ceil(_edges_per_epoch(data) / plan.batch_size))
    return train(model.networks, phases, batches, plan, after_epoch)
