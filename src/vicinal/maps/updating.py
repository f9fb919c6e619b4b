"""A fitted map with more rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.initialize.medoid import neighbor_medoid
from vicinal.maps.fitted import FittedMap
from vicinal.maps.fitting import LayoutTask, lay_out, prepare
from vicinal.maps.placement import memberships
from vicinal.maps.plans import PLACEMENT_RATE, SampledPlan
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.training_data import TrainingDistances
from vicinal.runtime.progress import Progress

# What `init_used_` says of an updated map: it starts from the earlier map, and new rows from their neighbors there.
INIT_USED = "update"


def update(
    fitted: FittedMap, rows: Rows, labels: NDArray[Any] | None = None, progress: Progress | None = None
) -> FittedMap:
    """Return the map with ``rows`` added; its points move a little to make room.

    ``labels`` are the checked labels of the rows. For precomputed distances ``rows`` holds the distances to the known
    rows and then to each other.
    """
    plan, n, m = fitted.recipe.plan, fitted.data.n, rows.shape[0]
    if fitted.embedding is None or not isinstance(plan, SampledPlan):
        raise ValueError("only maps of the sampled layout can be updated")
    progress = Progress() if progress is None else progress
    data = fitted.data.extended(rows)
    facts = fitted.facts.extended(n, m, labels)
    if facts.pins is not None:
        facts = facts.with_equal_rows_pinned(data.duplicates.first)
    to_known = memberships(fitted, rows[:, :n] if isinstance(fitted.data, TrainingDistances) else rows)
    start = np.concatenate([fitted.embedding, neighbor_medoid(to_known, fitted.reference.places)])
    given = getattr(fitted.data, "given", None)
    known = fitted.neighbors if given is None and fitted.laid_out is None and not fitted.recipe.unique else None
    prepared = prepare(data, fitted.recipe, facts, progress, known)
    n_epochs = plan.short_epochs(n + m)
    task = LayoutTask(data, fitted.recipe, facts, prepared, fitted.seed, progress)
    schedule = plan.refinement(n_epochs, prepared.graph.n, rate=PLACEMENT_RATE)
    with progress.stage("initialize"):
        start = prepared.selection.take(start)
    return lay_out(task, start, INIT_USED, schedule, [n_epochs])
