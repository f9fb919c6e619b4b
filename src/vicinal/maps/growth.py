"""Parameters of a growing map, and for how many epochs its rows move."""

from __future__ import annotations

from dataclasses import dataclass

from vicinal.layout.kernel import Kernel
from vicinal.layout.schedule import Schedule

# A row with fewer epochs left has a reduced learning rate: (left / FULL_EPOCHS)^1.5 of the full one.
FULL_EPOCHS = 60
# A batch that is a large share of the map changes the map as a whole: new and updated rows then move for that share of
# SHARED_EPOCHS, if this is more than new_epochs. Fashion-MNIST in batches of 1,000, 10-NN accuracy of the last map,
# mean over seeds: 0.765 with 0, 0.768 with 300, 0.772 with 400, 0.774 with 500 and with 1,000. The rule has no effect
# on batches of 1,000 rows once the map has more than 22,000.
SHARED_EPOCHS = 400


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
    updated_epochs: int = 6
    move_all: bool = False
    seed: int = 0
    n_jobs: int = -1

    @property
    def kernel(self) -> Kernel:
        return Kernel(self.a, self.b)

    @property
    def schedule(self) -> Schedule:
        return Schedule(FULL_EPOCHS, self.learning_rate, self.negative_sample_rate, self.repulsion_strength)

    def shared_epochs(self, n_new: int, n: int) -> int:
        """Return the epochs of new and updated rows if ``n_new`` of ``n`` are new; 0 if this is a small share."""
        n_epochs = round(SHARED_EPOCHS * n_new / n)
        return n_epochs if n_epochs > self.new_epochs else 0
