"""Random initialization: uniform in a box."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.initialize.task import InitialTask


def uniform_places(task: InitialTask) -> NDArray[np.float64]:
    """Draw every coordinate uniformly from [0, 1)."""
    return task.rng.uniform(size=(task.graph.n, task.n_components))
