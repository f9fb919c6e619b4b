"""The sampled layout as a resumable object: ``step(10); step(190)`` equals ``step(200)`` bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal.density import DensityTerm
from vicinal.graph import Graph
from vicinal.kernel import Kernel
from vicinal.output_space import output_space
from vicinal.progress import LAYOUT, Progress

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


class Layout:
    """Moves the rows of an embedding along a graph's edges, epoch by epoch.

    With ``heads`` the graph's heads are these rows of the embedding: they move, the others stay where they are, and the
    cost is that of the heads, whatever the number of rows. ``ages`` then says how many epochs of the schedule each of
    them has behind it, and ``first_epoch`` which epoch this is of a map that is moved time and again.
    With ``reference`` the graph leads from the embedding's rows to the reference's, which stay where they are;
    ``row_keys`` then name the rows to the random generator, so that a row's place does not depend on its company.
    Rows marked in ``fixed`` keep their places bit for bit, and attract and repel the others all the same.
    Negatives are drawn in proportion to ``negative_weights``, one for each tail, if they are given.
    ``output_metric`` is the distance of the map (:mod:`vicinal.output_space`). ``density`` is densMAP's term.
    """

    def __init__(
        self,
        graph: Graph,
        embedding: NDArray[np.float32],
        kernel: Kernel,
        schedule: Schedule,
        *,
        seed: int = 0,
        n_jobs: int = -1,
        reference: NDArray[np.float32] | None = None,
        row_keys: NDArray[np.uint64] | None = None,
        heads: NDArray[np.int32] | None = None,
        ages: NDArray[np.int32] | None = None,
        first_epoch: int = 0,
        fixed: NDArray[np.bool_] | None = None,
        negative_weights: NDArray[np.floating] | None = None,
        force: Literal["umap", "largevis"] = "umap",
        output_metric: str = "euclidean",
        output_metric_kwds: dict[str, Any] | None = None,
        density: DensityTerm | None = None,
    ) -> None:
        self.schedule = schedule
        self.n_jobs = n_jobs
        places = np.ascontiguousarray(embedding, dtype=np.float32)
        n_places = graph.n_tails * places.shape[1]
        if places.shape[1] != 2 and n_places >= 2**31:
            raise ValueError(f"n_components={places.shape[1]} is too large for {graph.n_tails} rows")
        space = output_space(output_metric, output_metric_kwds, places.shape[1])
        if force != "umap" and not space.is_euclidean:
            raise ValueError(f"output_metric={output_metric!r} goes with force='umap', got force={force!r}")
        options = _core.LayoutOptions()
        options.set_force(force, kernel.a, kernel.b, schedule.repulsion_strength)
        options.set_space(space.kind, list(space.values), places.shape[1])
        options.negatives = schedule.negative_sample_rate
        # A symmetric graph's mirrored edge pulls this row too; frozen references do not pull.
        options.pulls = 2 if reference is None else 1
        options.firings_per_sweep = min(1.0, schedule.firings / schedule.sweeps)
        options.update_negatives = schedule.update_negatives
        options.seed = seed
        options.first_sweep = first_epoch * schedule.sweeps
        self.first_epoch, self.heads, self.ages = first_epoch, heads, ages
        self._core = _core.SampledLayout(
            graph.indptr,
            graph.indices,
            graph.weights,
            places,
            None if reference is None else np.ascontiguousarray(reference, dtype=np.float32),
            row_keys,
            options,
            heads,
        )
        if density is not None:
            if not space.is_euclidean:
                raise ValueError(f"a density term goes with output_metric='euclidean', got {output_metric!r}")
            self._add_density(density)
        if fixed is not None:
            self._core.pin(_mask("fixed", fixed, places.shape[0]))
        if negative_weights is not None:
            self._core.weigh_negatives(np.require(negative_weights, dtype=np.float32, requirements=["C", "A"]))

    def _add_density(self, density: DensityTerm) -> None:
        first = self.schedule.n_epochs - int(np.floor(density.fraction * self.schedule.n_epochs))
        self._core.add_density(
            density.target,
            density.weight,
            density.variance_shift,
            first * self.schedule.sweeps,
            self.schedule.sweeps,  # once an epoch: the gradient of every edge costs more than a sweep
            None if density.fitted is None else list(density.fitted),
        )

    @property
    def density_summary(self) -> tuple[float, float, float, float]:
        """(mean, variance, covariance, strength) of the map's radii as they are: what placing new rows needs."""
        return self._core.density_summary(self.n_jobs)

    @property
    def epoch(self) -> int:
        """Epochs done so far."""
        return self._core.sweep // self.schedule.sweeps - self.first_epoch

    @property
    def embedding(self) -> NDArray[np.float32]:
        """A copy of the places of all rows. Assigning to it puts them elsewhere, pinned rows too."""
        return self._core.embedding()

    @embedding.setter
    def embedding(self, places: NDArray[np.floating]) -> None:
        wanted = self._core.embedding().shape
        if np.shape(places) != wanted:
            raise ValueError(f"embedding must have shape {wanted}, got {np.shape(places)}")
        given = np.require(places, dtype=np.float32, requirements=["C", "A"])
        bad = ~np.isfinite(given).all(axis=1)
        if bad.any():
            raise ValueError(f"embedding contains NaN or infinity, first in row {int(np.argmax(bad))}")
        self._core.place(given)

    def step(self, n: int = 1) -> None:
        """Runs ``n`` more epochs."""
        sweeps = self.schedule.sweeps
        epochs = np.arange(self.epoch, self.epoch + n)[:, None]
        rates = self.schedule.learning_rates(epochs if self.ages is None else epochs + self.ages)
        # Cut off within an epoch, what is left of it comes first.
        self._core.step(np.repeat(rates, sweeps, axis=0)[self._core.sweep % sweeps :], self.n_jobs)

    def run(
        self, stops: list[int], progress: Progress, places: Callable[[], NDArray[np.float32]]
    ) -> list[NDArray[np.float32]]:
        """Runs to the last stop, or until it is asked to end; the places at every stop that was reached."""
        listed = []
        with progress.stage(LAYOUT, stops[-1]):
            for stop in stops:
                if not progress.wants_epochs:
                    self.step(stop - self.epoch)
                while self.epoch < stop and not progress.stopped:
                    self.step(1)
                    progress.report(LAYOUT, self.epoch, stops[-1], places)
                if self.epoch == stop:
                    listed.append(places())
        return listed


def _mask(name: str, mask: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    """One bool a row; numbers are refused, since they may be meant as row numbers."""
    given = np.asarray(mask)
    if given.dtype != np.bool_ or given.shape != (n,):
        raise ValueError(f"{name} must hold one bool for each of {n} rows, got shape {given.shape} of {given.dtype}")
    return np.ascontiguousarray(given)
