"""Parameters of a growing map, and for how many epochs its rows move."""

from __future__ import annotations

from dataclasses import dataclass

from vicinal.graph.supervision import Supervision
from vicinal.layout.forces import Forces
from vicinal.layout.kernel import Kernel
from vicinal.layout.schedule import Schedule, default_single
from vicinal.maps.plans import SampledPlan
from vicinal.maps.recipe import FuzzyAffinity, Recipe

# The first map is made when FIRST_ROWS rows have neighbors, or earlier if no more are queued. A map of fewer rows than
# FOUNDERS is made anew each time their number has doubled, because a handful of rows does not represent the rest.
# Accuracy of the last map of a stream, Fashion-MNIST, 6 seeds: 0.773 with 1,000 founders, 0.778 with 4,000 or more.
FIRST_ROWS, FOUNDERS = 1000, 4000
# A large batch of rows that are mostly neighbors of each other belongs where the map has no room for it yet: rows in
# the order of a grid, of time, of a class. All rows then start anew, as long as there are at most MOST_REMADE.
# Trustworthiness of a grid in raster order, 4 seeds: 0.988 without, 0.9997 with.
MOST_REMADE = 10_000
# A row with fewer epochs left has a reduced learning rate: (left / FULL_EPOCHS)^1.5 of the full one.
FULL_EPOCHS = 80
SWEEPS = 2  # per epoch; most rows of a round rest, so more sweeps gain little
# A batch that is a large share of the map, at least LARGE_SHARE, changes the map as a whole: new and updated rows then
# move for that share of SHARED_EPOCHS.
SHARED_EPOCHS, LARGE_SHARE = 400, 0.1
# Epochs of all rows when they start as in a fit.
FIRST_EPOCHS = 300
# Rows that move while most others rest cannot rearrange a map. So all rows move together, for WHOLE_EPOCHS, whenever
# the map has doubled. Fashion-MNIST in batches of 1,000, 10-NN accuracy of the last map, 6 seeds: 0.775 with 70 epochs
# (4.2 s), 0.780 with 100 (4.5 s); a fit to all rows 0.783.
WHOLE_EPOCHS = 80


def first_map_is_due(founders: int, n: int, n_inserted: int) -> bool:
    """Return whether a map is to be made from ``n`` rows, of which the last one was made from ``founders``."""
    if not founders:
        return n > 0 and (n >= FIRST_ROWS or n == n_inserted)
    return founders < FOUNDERS and n >= 2 * founders


def may_start_anew(n_new: int, n: int) -> bool:
    """Return whether a map of ``n`` rows starts anew if ``n_new`` of them, which are new, are elsewhere."""
    return n <= MOST_REMADE and n_new >= LARGE_SHARE * n


def has_doubled(before: int, n: int) -> bool:
    return (n // FOUNDERS).bit_length() > (before // FOUNDERS).bit_length()


@dataclass(frozen=True)
class Growth:
    """How rows are connected and laid out, and for how many epochs they move."""

    a: float
    b: float
    n_components: int = 2
    init: str = "spectral"
    learning_rate: float = 1.0
    negative_sample_rate: int = 5
    repulsion_strength: float = 1.0
    local_connectivity: float = 1.0
    set_op_mix_ratio: float = 1.0
    disconnection_distance: float | None = None
    target_weight: float = 0.5
    new_epochs: int = 18
    updated_epochs: int = 18
    move_all: bool = False
    seed: int = 0
    n_jobs: int = -1
    target_metric: str = "categorical"

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.a, self.b)

    @property
    def gap(self) -> float:
        """Distance between pieces of a map that nothing connects: four times that at which q of eq. 5 is 1/2."""
        return float(4.0 * self.a ** (-0.5 / self.b))

    def schedule(self, n: int) -> Schedule:
        """Return the schedule by which rows of a map of ``n`` rows move."""
        return Schedule(
            FULL_EPOCHS,
            self.learning_rate,
            self.negative_sample_rate,
            self.repulsion_strength,
            sweeps=SWEEPS,
            single=default_single(n),
        )

    def affinity(self, k: int) -> FuzzyAffinity:
        """Return how a table of ``k`` neighbors per row becomes a graph."""
        return FuzzyAffinity(k, self.local_connectivity, self.set_op_mix_ratio, self.disconnection_distance)

    def plan(self, placement_seed: int) -> SampledPlan:
        """Return how a map of all rows at once is laid out, and other rows are placed in it."""
        return SampledPlan(
            Forces(self.kernel),
            learning_rate=self.learning_rate,
            negative_sample_rate=self.negative_sample_rate,
            repulsion_strength=self.repulsion_strength,
            placement_seed=placement_seed,
        )

    def recipe(self, k: int, placement_seed: int) -> Recipe:
        """Return the recipe of a fit to all rows at once, with ``k`` neighbors per row."""
        labels = Supervision(
            self.target_metric, weight=self.target_weight, n_neighbors=k, seed=self.seed, n_jobs=self.n_jobs
        )
        return Recipe(self.affinity(k), self.plan(placement_seed), self.n_components, self.init, supervision=labels)

    def shared_epochs(self, n_new: int, n: int) -> int:
        """Return the epochs of new and updated rows if ``n_new`` of ``n`` are new; 0 if this is a small share."""
        return round(SHARED_EPOCHS * n_new / n) if n_new >= LARGE_SHARE * n else 0
