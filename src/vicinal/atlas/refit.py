"""A new layout of all rows that people recognize: it starts from the published map and is pulled towards it.

After every epoch each row that the published map had moves towards its old place, by the share 1 - e^{-λη} of the way
(λ: loyalty, η: learning rate), as in :mod:`vicinal.layout.alignment`. The finished map is turned, mirrored and moved so
that old rows lie as close as possible to their old places. It is not scaled: the kernel sets the scale of a map, and
the pull holds it (docs/decisions/2026-11-atlas-refit.md).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from vicinal.atlas.tables import INSIDE, Placed
from vicinal.initialize.medoid import aligned_to
from vicinal.layout.alignment import AlignedLayouts, Alignment
from vicinal.neighbors.table import Neighbors
from vicinal.pipeline.fit import ArrayExecutor, GivenPlaces, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import Places, Refused

LOYALTY = 0.1
# First learning rate relative to that of a fit (docs/decisions/2026-11-atlas-refit.md).
RATE = 0.6
# Partners per row from which the loss of a large map is estimated.
LOSS_SAMPLES, EXACT_LOSS_ROWS = 64, 10_000
BLOCK = 16_384  # rows whose neighbors are compared together


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
        super().__init__(prepared.data, prepared.recipe, prepared.options, first_places=start, seed=prepared.seed)
        if not prepared.recipe.plan.can_update:
            raise Refused("an atlas needs a map of the sampled layout: UMAP, DensMAP or LargeVis")
        self.published, self.loyalty = published, loyalty

    def schedule(self) -> tuple[Any, list[int]]:
        plan, n_epochs = self.recipe.plan, super().schedule()[1][-1]
        full = plan.schedule(n_epochs, self.graph.n)
        return replace(full, learning_rate=RATE * plan.learning_rate, constant_rate_share=0.0), [n_epochs]

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


def stored_map(model: Any, X: Any, places: Places, table: Neighbors | None) -> Any:
    """Return the model fitted to rows whose places are known; without a table their neighbors are searched."""
    prepared = model.executor(X)
    maker = StoredMap if table is not None else GivenPlaces
    executor = maker(prepared.data, prepared.recipe, prepared.options, first_places=places, seed=prepared.seed)
    if table is not None:
        executor.table = table
    return model.adopt_map(fit(executor))


def refit(model: Any, X: Any, start: Places, published: Places, loyalty: float | None) -> dict[str, Any]:
    """Fit a model such that people recognize its map; return the losses.

    Parameters
    ----------
    model : estimator
    X : array [rows, columns]
    start, published : arrays [rows, n_components]
        First places; and places in the published map, NaN for rows that it did not have.
    loyalty : float or None
        Strength of the pull towards the published places. With None the layout starts as that of any fit.
    """
    prepared = model.executor(X)
    if loyalty is None:
        model.adopt_map(registered(fit(prepared), published))
        return {"loss": loss(model.map_)}
    executor = RefitExecutor(prepared, start, published, loyalty)
    model.adopt_map(registered(fit(executor), published))
    losses = {"loss": loss(model.map_)}
    if loyalty:
        # The same layout without the pull shows what the pull costs.
        executor.loyalty = 0.0
        executor.lay_out(lambda places: executor.surround(executor.orient(places)))
        losses["loss_without_loyalty"] = loss(replace(model.map_, embedding=executor.finished))
    return losses


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


def neighbor_rows(fitted: FittedMap, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the neighbors of each row of a fit by their numbers in the atlas, without the row itself; -1 for none."""
    index = fitted.neighbors.index
    own = numbers if fitted.laid_out is None else numbers[fitted.laid_out]
    found = np.where(index >= 0, own[np.maximum(index, 0)], -1)[:, 1:]
    return np.asarray(found[np.maximum(fitted.selection.position, 0)])


def lines_of(table: NDArray[np.int64], numbers: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the lines of a table for some rows by their numbers; lines of -1 for rows that it does not have."""
    line = np.full(int(max(numbers.max(initial=0), rows.max(initial=0))) + 1, -1, dtype=np.int64)
    line[numbers] = np.arange(len(numbers))
    found = line[rows]
    return np.where(found[:, None] >= 0, table[np.maximum(found, 0)], -1)


def kept_neighbors(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each row the share of its neighbors that it had before; one line per row in both tables."""
    kept = np.zeros(len(after))
    for begin in range(0, len(after), BLOCK):
        part = slice(begin, begin + BLOCK)
        there = (after[part, :, None] == before[part, None, :]).any(axis=2) & (after[part] >= 0)
        kept[part] = there.sum(axis=1) / np.maximum((after[part] >= 0).sum(axis=1), 1)
    return kept


def moved_shares(before: Placed, after: Placed) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the old row of each row of a later version or -1, and its move as a share of the width of the old map."""
    order = np.argsort(before.row, kind="stable")
    at = order[np.minimum(np.searchsorted(before.row, after.row, sorter=order), len(order) - 1)]
    old = np.where(before.row[at] == after.row, at, -1)
    away = np.linalg.norm(after.places.astype(np.float64) - before.places[at], axis=1)
    return old, np.where(old >= 0, away / max(width_of(before.places), 1e-30), np.nan)


def describe_moves(
    before: Placed, after: Placed, was: NDArray[np.int64], now: NDArray[np.int64], names: tuple[str, ...]
) -> tuple[float, list[dict[str, Any]]]:
    """Return the median move of old rows, and per area how far they moved and what changed around them.

    ``was`` and ``now`` are the neighbors of the rows of ``after`` before and now, by their numbers; lines of -1 are of
    rows that the last fit did not have. A description has ``rows`` and ``new_rows`` (that the last fit did not have),
    ``moved`` (median), ``changed_neighbors`` (share of the neighbors of the others that they did not have), and
    ``new_neighbors`` (share of them that are new rows).
    """
    old, away = moved_shares(before, after)
    seen = (was >= 0).any(axis=1)
    changed = 1.0 - kept_neighbors(was, now)
    unseen = after.row[~seen]
    fresh = np.isin(now, unseen).sum(axis=1) / np.maximum((now >= 0).sum(axis=1), 1)
    found = []
    for area, name in enumerate(names):
        mine = after.area == area
        known, inside = mine & (old >= 0) & (before.territory[old] == INSIDE), mine & seen
        found.append(
            {
                "name": name,
                "rows": int(mine.sum()),
                "new_rows": int((mine & ~seen).sum()),
                "moved": _median(away[known]),
                "changed_neighbors": _mean(changed[inside]),
                "new_neighbors": _mean(fresh[inside]),
            }
        )
    known = (old >= 0) & (before.territory[old] == INSIDE)
    return _median(away[known]), found


def _median(values: NDArray[np.float64]) -> float:
    return round(float(np.median(values)), 5) if len(values) else 0.0


def _mean(values: NDArray[np.float64]) -> float:
    return round(float(values.mean()), 5) if len(values) else 0.0


def width_of(places: Places) -> float:
    """Return the width of a map: the longest side of the box around its points."""
    return float(np.ptp(places, axis=0).max()) if len(places) else 0.0
