"""The sampled layout as a resumable object: ``step(10); step(190)`` equals ``step(200)`` bit for bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal import _core
from vicinal.graph import Graph
from vicinal.kernel import Kernel

# umap-learn's choice: small data is cheap, so it gets more.
SMALL_ROWS, SMALL_EPOCHS, LARGE_EPOCHS = 10_000, 500, 200


def default_epochs(n: int) -> int:
    return SMALL_EPOCHS if n <= SMALL_ROWS else LARGE_EPOCHS


@dataclass(frozen=True)
class Schedule:
    """Epochs, the learning rate they start from (it falls linearly to 0), and how negatives are drawn."""

    n_epochs: int = 200
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    update_negatives: bool = False

    def learning_rates(self, start: int, n: int) -> NDArray[np.float32]:
        epochs = np.arange(start, start + n)
        return (self.learning_rate * np.maximum(0.0, 1.0 - epochs / max(self.n_epochs, 1))).astype(np.float32)


class Layout:
    """Moves the rows of an embedding along a graph's edges, epoch by epoch.

    With ``reference`` the graph leads from the embedding's rows to the reference's, which stay where they are;
    ``row_keys`` then name the rows to the random generator, so that a row's place does not depend on its company.
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
    ) -> None:
        self.schedule = schedule
        self.n_jobs = n_jobs
        places = np.ascontiguousarray(embedding, dtype=np.float32)
        n_places = graph.n_tails * places.shape[1]
        if places.shape[1] != 2 and n_places >= 2**31:
            raise ValueError(f"n_components={places.shape[1]} is too large for {graph.n_tails} rows")
        self._core = _core.SampledLayout(
            graph.indptr,
            graph.indices,
            graph.weights,
            places,
            None if reference is None else np.ascontiguousarray(reference, dtype=np.float32),
            row_keys,
            [kernel.a, kernel.b, schedule.repulsion_strength],
            schedule.negative_sample_rate,
            # A symmetric graph's mirrored edge pulls this row too; frozen references do not pull.
            2.0 if reference is None else 1.0,
            schedule.update_negatives,
            seed,
        )

    @property
    def epoch(self) -> int:
        """Epochs done so far."""
        return self._core.epoch

    @property
    def embedding(self) -> NDArray[np.float32]:
        """A copy of the places of all rows."""
        return self._core.embedding()

    def step(self, n: int = 1) -> None:
        """Runs ``n`` more epochs."""
        self._core.step(self.schedule.learning_rates(self.epoch, n), self.n_jobs)
