"""Ghosts: copies of the rows of a finished map, laid out again with other random numbers.

A layer of ghosts has one copy of every row. It starts at the places of the finished map, runs up to a fifth of the
epochs of the fit from its full learning rate down to 0, and draws from its own stream of random numbers; then the
ghosts show where else the rows could have come to rest. Ghosts act on no row of the map. Those of one layer see each
other: a copy that moves alone in a fixed map shows the noise of its own draws only, and a row moves mostly together
with its neighbors. Spearman correlation of the spread (quality/displacement.py) with that of 10 fits with other seeds:

    digits          a copy that moves alone 0.45    4 layers 0.71
    Fashion-MNIST   (10,000 rows)                   4 layers 0.74

Two groups of 5 fits of the digits agree to 0.76 with each other. Lone copies forget where and when they started (0.45
from the first epoch on, and from 70 % of the epochs on), so starting them earlier does not help. Ghosts are not dropped
before their layer ends: with half of the rows dropped at 60 %, 80 % or 95 % of its epochs, the 0.73 of digits without
smoothing fall to 0.11, 0.34 and 0.64, because a dropped row keeps the noise of the learning rate at that time. Four
layers cost 0.85 times the layout of the fit (Fashion-MNIST, 70,000 rows).

t-SNE draws no random numbers except for its start: its ghosts start at places disturbed by normal noise of the size of
the local radius.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.layout.density import DensityTerm
from vicinal.layout.schedule import SMALL_ROWS
from vicinal.maps.plans import FullPlan, SampledPlan
from vicinal.maps.row_facts import RowFacts
from vicinal.quality.preservation import map_radii

# Epochs of a layer as a share of those of the fit, up to SMALL_ROWS rows and beyond. Correlation of the spread, see
# above, for 0.12, 0.15, 0.2: digits 0.63, 0.69, 0.71; 10,000 images 0.74, 0.75, 0.74.
GHOST_SHARE, LARGE_GHOST_SHARE = 0.2, 0.1
# Exponent of their learning rate. Correlation of the spread, see above, for 1, 1.5, 2, 3: digits 0.60, 0.71, 0.70,
# 0.71; 300 of them 0.46 for 1.5, 0.66 and 0.62.
GHOST_DECAY = 3.0
# The disturbance of t-SNE's ghosts is measured by the distance to the neighbor of this rank.
DISTURBANCE_RANK = 15


@dataclass(frozen=True)
class LaidOut:
    """What a layout was made from, so that it can be run again."""

    plan: SampledPlan | FullPlan
    graph: Graph
    places: NDArray[np.float32]
    facts: RowFacts = field(default_factory=RowFacts)
    density: DensityTerm | None = None
    seed: int = 0
    n_jobs: int = -1

    @property
    def n_epochs(self) -> int:
        return self.plan.epoch_stops(self.graph)[-1]

    def again(self, start: NDArray[np.float32], n_epochs: int, seed: int) -> NDArray[np.float32]:
        """Lay the rows out from ``start`` with another seed."""
        plan = self.plan
        if isinstance(plan, FullPlan):
            phases = plan.phases
            if n_epochs < self.n_epochs:
                phases = (replace(phases[-1], n_epochs=n_epochs),)
            full = replace(plan, phases=phases).layout(self.graph, start, n_jobs=self.n_jobs)
            full.step(n_epochs)
            return full.embedding
        schedule = plan.schedule(n_epochs, self.graph.n)
        if n_epochs < self.n_epochs:
            schedule = replace(schedule, decay=GHOST_DECAY, hold=0.0)
        layout = plan.layout(
            self.graph, start, self.facts, schedule, seed=seed, n_jobs=self.n_jobs, density=self.density
        )
        layout.step(n_epochs)
        return layout.embedding


def ghost_layers(laid_out: LaidOut, count: int) -> Iterator[NDArray[np.float32]]:
    """Yield the places of ``count`` layers of ghosts."""
    share = GHOST_SHARE if laid_out.graph.n <= SMALL_ROWS else LARGE_GHOST_SHARE
    n_epochs = max(1, round(share * laid_out.n_epochs))
    for layer in range(count):
        seed = other_seed(laid_out.seed, layer)
        start = laid_out.places
        if isinstance(laid_out.plan, FullPlan):
            radius = map_radii(start, (min(DISTURBANCE_RANK, len(start) - 1),), laid_out.n_jobs)[0]
            noise = np.random.default_rng(seed).normal(size=start.shape) * radius[:, None]
            start = (start + noise).astype(np.float32)
        yield laid_out.again(start, n_epochs, seed)


def other_seed(seed: int, number: int) -> int:
    """Return a 31-bit seed that differs from ``seed`` and for every number."""
    return int(np.random.SeedSequence([seed, number + 1]).generate_state(1)[0] >> 1)
