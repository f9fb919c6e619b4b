"""Consecutive rows of a sampled layout, so that a layout can be spread over processes (survey Algorithm 1).

In a sweep each row has one writer and reads only the snapshot of the previous sweep. A part of the rows therefore needs
its own edges and a snapshot of all places, and parts that are computed anywhere, joined, have the same bits as a
:class:`~vicinal.layout.sampled.Layout` of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.layout.forces import Forces
from vicinal.layout.sampled import check_size, layout_options
from vicinal.layout.schedule import Schedule


@dataclass(frozen=True)
class SweepRule:
    """What all parts of a layout have in common; ``heaviest`` is the largest weight of all edges."""

    n: int
    n_components: int
    forces: Forces
    schedule: Schedule
    seed: int
    heaviest: float

    def __post_init__(self) -> None:
        check_size(self.n, self.n_components)
        if self.schedule.update_negatives:
            raise ValueError("update_negatives=True moves rows of other parts, so a layout in parts cannot have it")

    def options(self) -> cpu.LayoutOptions:
        """Return the options of the backend, which cannot be sent to other processes."""
        options: cpu.LayoutOptions = layout_options(cpu, self.forces, self.schedule, self.n_components, self.seed)
        options.heaviest = self.heaviest
        return options


@dataclass(frozen=True)
class LayoutPart:
    """The edges of the rows from ``first`` on, in the order of a sweep, with rate and phase of each edge."""

    first: int
    indptr: NDArray[np.int64]
    tails: NDArray[np.int32]
    rate: NDArray[np.uint32]
    phase: NDArray[np.uint32]

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def n_bytes(self) -> int:
        return int(self.indptr.nbytes + self.tails.nbytes + self.rate.nbytes + self.phase.nbytes)

    @classmethod
    def of(
        cls,
        first: int,
        edges: tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]],
        rule: SweepRule,
        n_jobs: int = 1,
    ) -> LayoutPart:
        """Prepare the edges (indptr, indices, weights) of consecutive rows; the tails are rows of the whole."""
        indptr, indices, weights = edges
        prepared = cpu.layout_edges(indptr, indices, weights, first, rule.n, rule.n_components, rule.options(), n_jobs)
        return cls(first, indptr, *prepared)

    @classmethod
    def joined(cls, parts: list[LayoutPart]) -> LayoutPart:
        """Join parts whose rows follow each other."""
        counts = [int(part.indptr[-1]) for part in parts]
        before = np.cumsum([0, *counts[:-1]])
        indptr = [part.indptr[:-1] + edges for part, edges in zip(parts, before, strict=True)]
        # Behind its edges an array has slots that vectors may read: only those of the last part stay.
        kept = [*counts[:-1], None]
        arrays = (
            np.concatenate([getattr(part, name)[:stop] for part, stop in zip(parts, kept, strict=True)])
            for name in ("tails", "rate", "phase")
        )
        return cls(parts[0].first, np.concatenate([*indptr, parts[-1].indptr[-1:] + before[-1]]), *arrays)

    def sweep(
        self,
        places: NDArray[np.float32],
        rule: SweepRule,
        number: int,
        *,
        negatives: NegativeTable | None = None,
        n_jobs: int = 1,
    ) -> NDArray[np.float32]:
        """Return the places of the rows of this part after one sweep from the snapshot ``places`` of all rows."""
        rate = float(rule.schedule.learning_rates(np.array([number // rule.schedule.sweeps]))[0])
        keep, alias = (None, None) if negatives is None else (negatives.keep, negatives.alias)
        edges = (self.indptr, self.tails, self.rate, self.phase)
        return cpu.sweep_part(*edges, self.first, places, rule.options(), number, rate, keep, alias, n_jobs)


@dataclass(frozen=True)
class NegativeTable:
    """Draws negatives in proportion to weights: one entry per row of the whole."""

    keep: NDArray[np.uint32]
    alias: NDArray[np.int32]

    @classmethod
    def of(cls, weights: NDArray[np.floating[Any]]) -> NegativeTable:
        """Build the table of the weights of all rows."""
        return cls(*cpu.alias_table(np.ascontiguousarray(weights, dtype=np.float32)))
