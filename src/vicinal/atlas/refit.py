"""A new layout of all rows that people recognize: it starts from the published map and is pulled towards it.

After every epoch each row that the published map had moves towards its old place, by the share 1 - e^{-λη} of the way
(λ: loyalty, η: learning rate), as in :mod:`vicinal.layout.alignment`. The finished map is turned, mirrored and moved so
that old rows lie as close as possible to their old places. It is not scaled: the kernel sets the scale of a map, and
the pull holds it (docs/decisions/2026-11-atlas-refit.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.graph.graph import Graph
from vicinal.initialize.medoid import aligned_to
from vicinal.layout.alignment import AlignedLayouts, Alignment
from vicinal.neighbors.table import Neighbors
from vicinal.pipeline.fit import ArrayExecutor, GivenPlaces, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import Places, Refused

LOYALTY = 0.1
# First learning rate and epochs relative to those of a fit; docs/decisions/2026-11-atlas-refit.md has other values.
RATE, EPOCHS = 0.6, 1.0
# Partners per row from which the loss of a large map is estimated.
LOSS_SAMPLES, EXACT_LOSS_ROWS = 64, 10_000


class StoredMap(GivenPlaces):
    """A map whose places and neighbor table were stored: only its graph is made again."""

    init_used = "stored"
    table: Neighbors

    def search(self) -> None:
        self._found = self.table
        self.neighbors = self.table.first(self.recipe.affinity.columns(self.rows.n))


class RefitExecutor(ArrayExecutor):
    """A fit that starts from the places of a published map and is pulled towards them.

    ``published`` has NaN for rows that the published map did not have.
    """

    init_used = "published"

    def __init__(self, prepared: ArrayExecutor, start: Places, published: Places, loyalty: float) -> None:
        super().__init__(
            prepared.data, prepared.recipe, prepared.options, first_places=start, seed=prepared.seed
        )
        if not prepared.recipe.plan.can_update:
            raise Refused("an atlas needs a map of the sampled layout: UMAP, DensMAP or LargeVis")
        self.published, self.loyalty = published, loyalty

    def schedule(self) -> tuple[Any, list[int]]:
        plan = self.recipe.plan
        full, stops = super().schedule()
        n_epochs = max(1, round(EPOCHS * stops[-1]))
        if self.init_used == "published":
            full = replace(plan.schedule(n_epochs, self.graph.n), learning_rate=RATE * plan.learning_rate)
            full = replace(full, constant_rate_share=0.0)
        return full, [n_epochs]

    def guide(self, layout: Any) -> Any:
        if not self.loyalty:
            return layout
        goal = self.selection.take(self.published)
        goal = goal if self.linked is None else goal[self.linked]
        known = np.flatnonzero(np.isfinite(goal[:, 0]))
        n = len(goal)
        # The goals come before the rows in the columns of the links.
        links = csr_matrix((np.ones(len(known)), (known, known)), shape=(n, 2 * n))
        alignment = Alignment(links, np.ones(n), self.loyalty, mutual=False)
        return AlignedLayouts([layout], alignment, np.nan_to_num(goal))


@dataclass(frozen=True)
class AreaMove:
    """How far the old rows of an area moved in a refit, and what may have moved them.

    Attributes
    ----------
    area : int
        Number of the area in the new version.
    rows, new_rows : int
        Its rows, and those of them that no earlier fit had seen.
    moved : float
        Median move of its old rows, as a share of the width of the map.
    changed_neighbors : float
        Share of the neighbors of its old rows that they did not have in the fit before.
    new_neighbors : float
        Share of the neighbors of its old rows that are new rows.
    """

    area: int
    rows: int
    new_rows: int
    moved: float
    changed_neighbors: float
    new_neighbors: float


def stored_map(model: Any, X: Any, places: Places, table: Neighbors | None) -> Any:
    """Return the model fitted to rows whose places are known; without a table their neighbors are searched."""
    prepared = model.executor(X)
    maker = StoredMap if table is not None else GivenPlaces
    executor = maker(prepared.data, prepared.recipe, prepared.options, first_places=places, seed=prepared.seed)
    if table is not None:
        executor.table = table
    return model.adopt_map(fit(executor))


def refit(
    model: Any, X: Any, start: Places, published: Places, loyalty: float = LOYALTY
) -> tuple[Any, dict[str, Any]]:
    """Lay all rows out again; return the fitted model and the losses.

    Parameters
    ----------
    model : estimator
        It is fitted by this call.
    X : array [rows, columns]
    start, published : arrays [rows, n_components]
        First places; and places in the published map, NaN for rows that it did not have.
    loyalty : float
        Strength of the pull towards the old places.
    """
    executor = RefitExecutor(model.executor(X), start, published, loyalty)
    model.adopt_map(registered(fit(executor, None), published))
    losses = {"loss": loss(model.map_)}
    if loyalty:
        executor.loyalty = 0.0
        executor.lay_out(lambda places: executor.surround(executor.orient(places)))
        losses["loss_without_loyalty"] = loss(replace(model.map_, embedding=executor.finished))
    return model, losses


def registered(fitted: FittedMap, published: Places) -> FittedMap:
    """Return the map turned, mirrored and moved as close as possible to the published places."""
    known = np.isfinite(published[:, 0])
    assert fitted.embedding is not None
    if not known.any():
        return fitted
    moved = aligned_to(fitted.embedding, known, published[known], scaled=False)
    return replace(fitted, embedding=np.ascontiguousarray(moved, dtype=np.float32))


def loss(fitted: FittedMap) -> float:
    """Return J, the loss that sampling lowers, of a fitted map."""
    from vicinal.quality.losses import effective_loss

    kernel, rows = fitted.recipe.plan.forces.kernel, fitted.graph.n
    samples = None if rows <= EXACT_LOSS_ROWS else LOSS_SAMPLES
    schedule = fitted.recipe.plan.schedule(1, rows)
    return float(effective_loss(fitted.graph, fitted.reference_places, kernel, schedule, samples=samples))


def width_of(places: Places) -> float:
    """Return the width of a map: the longest side of the box around its points."""
    return float(np.ptp(places, axis=0).max()) if len(places) else 0.0
