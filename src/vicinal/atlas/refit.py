"""A new layout of all rows that people recognize: it starts from the published map and is pulled toward its shape.

The kernel sets the distances of neighbors, so a map of more rows is larger. People see it in a frame of its own: what
counts is its shape. Let g be the goals, the published places turned, mirrored, scaled and moved such that half of them
lie as close as possible to the layout. After every epoch each row y moves toward its goal by the share

    1 - e^{-λη w},    w = e^{-(|g - y| / PULLED)^2}

of the way (λ: loyalty, η: learning rate; PULLED is a share of the width of the map). So the pull holds rows that have
no reason to leave, and lets go of rows whose neighbors are elsewhere now. The finished layout is turned, mirrored,
scaled and moved onto the published map; ``zoom`` is its size relative to the published one
(docs/decisions/2026-11-atlas-refit.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.atlas.tables import INSIDE, Placed
from vicinal.initialize.medoid import aligned_to
from vicinal.layout.sampled import Layout
from vicinal.neighbors.table import Neighbors
from vicinal.pipeline.fit import ArrayExecutor, GivenPlaces, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.recipe import Places, Refused, SampledPlan

# Strength of the pull, and how far it reaches, as a share of the width of the map.
LOYALTY, PULLED = 0.2, 0.03
# Rounds of the alignment, of the finished layout and after every epoch.
ROUNDS, PULL_ROUNDS = 6, 2
# Rows that decide; more of them take time and hardly change the result.
DECIDING = 8192
# A layout that starts from a map needs more epochs than one that starts from a coarse layout.
LEAST_EPOCHS = 300
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
    """A fit that starts from the places of a published map and is pulled toward them.

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
        assert isinstance(plan, SampledPlan)
        if plan.stops is None:
            n_epochs = max(LEAST_EPOCHS, n_epochs)
        full = plan.schedule(n_epochs, self.graph.n)
        full = replace(full, learning_rate=plan.learning_rate, constant_rate_share=0.0, single_negative_share=0.0)
        return full, [n_epochs]

    def start(self) -> None:
        """Start at the given places, except for rows of new territory whose edges mostly lead to the published map.

        Such a row starts at its nearest neighbor of the published map: no force would lead it there from afar.
        """
        super().start()
        away = ~np.isfinite(self.selection.take(self.published)[:, 0])
        if not away.any() or away.all():
            return
        edges = self.graph.to_scipy()[away]
        home = edges.multiply(~away).tocsr()
        total, there = (np.asarray(one.sum(axis=1)).reshape(-1) for one in (edges, home))
        coming = np.flatnonzero(2 * there > total)
        nearest = np.asarray(home.argmax(axis=1)).reshape(-1)[coming]
        self.started = self.started.copy()
        self.started[np.flatnonzero(away)[coming]] = self.started[nearest]

    def guide(self, layout: Any) -> Any:
        if not self.loyalty:
            return layout
        goals = self.selection.take(self.published)
        return Pulled(layout, goals if self.linked is None else goals[self.linked], self.loyalty)


class Pulled:
    """A layout that is pulled toward the shape of a published map; ``goals`` has NaN for rows without a goal."""

    def __init__(self, layout: Layout, goals: Places, loyalty: float) -> None:
        self.layout, self.goals, self.loyalty = layout, goals, loyalty
        self.known = np.flatnonzero(np.isfinite(goals[:, 0]))
        self.epoch = 0  # epochs completed, with their pulls

    @property
    def embedding(self) -> Places:
        return self.layout.embedding

    def step(self, n: int = 1) -> None:
        """Run ``n`` more epochs."""
        for rate in self.layout.schedule.learning_rates(np.arange(self.epoch, self.epoch + n)):
            # After an interrupt the layout may have completed this epoch.
            if self.layout.epoch <= self.epoch:
                self.layout.step(1)
            self._pull(float(rate))
            self.epoch += 1

    def _pull(self, learning_rate: float) -> None:
        places = self.layout.embedding
        if not len(self.known):
            return
        own = places[self.known].astype(np.float64)
        way = aligned_to_most(self.goals[self.known], own.astype(np.float32), PULL_ROUNDS) - own
        reach = PULLED * float(np.ptp(own, axis=0).max())
        weight = np.exp(-np.square(way).sum(axis=1) / max(reach * reach, 1e-30))
        share = -np.expm1(-self.loyalty * learning_rate * weight)
        places[self.known] = (own + share[:, None] * way).astype(np.float32)
        self.layout.embedding = places


def stored_map(model: Any, X: Any, places: Places, table: Neighbors | None) -> Any:
    """Return the model fitted to rows whose places are known; without a table their neighbors are searched."""
    prepared = model.executor(X)
    parts, more = (prepared.data, prepared.recipe, prepared.options), {"first_places": places, "seed": prepared.seed}
    executor = GivenPlaces(*parts, **more)
    if table is not None:
        executor = StoredMap(*parts, **more)
        executor.table = table
    return model.adopt_map(fit(executor))


@dataclass(frozen=True)
class Refit:
    """The places of a new layout in the frame of the published map, its zoom, and the losses."""

    places: Places
    zoom: float
    losses: dict[str, float]


def refit(model: Any, X: Any, start: Places, published: Places, loyalty: float | None) -> Refit:
    """Fit a model such that people recognize its map.

    Parameters
    ----------
    model : estimator
    X : array [rows, columns]
    start, published : arrays [rows, n_components]
        First places; and places in the published map, NaN for rows that it did not have.
    loyalty : float or None
        Strength of the pull toward the published map. With None the layout starts as that of any fit.
    """
    prepared = model.executor(X)
    if loyalty is None:
        places, zoom = register(model, fit(prepared), published)
        return Refit(places, zoom, {"loss": loss(model.map_)})
    executor = RefitExecutor(prepared, start, published, loyalty)
    places, zoom = register(model, fit(executor), published)
    losses = {"loss": loss(model.map_)}
    if loyalty:
        # The same layout without the pull shows what the pull costs.
        executor.loyalty = 0.0
        executor.lay_out(lambda places: executor.surround(executor.orient(places)))
        losses["loss_without_loyalty"] = loss(replace(model.map_, embedding=executor.finished))
    return Refit(places, zoom, losses)


def register(model: Any, fitted: FittedMap, published: Places) -> tuple[Places, float]:
    """Give a model a fitted map; return the map turned, scaled and moved onto the published one, and the zoom."""
    known = np.isfinite(published[:, 0])
    assert fitted.embedding is not None
    layout = fitted.embedding.astype(np.float64)
    moved = layout
    if known.any():
        order = np.argsort(~known, kind="stable")  # known rows first
        moved = np.empty_like(layout)
        moved[order] = aligned_to_most(fitted.embedding[order], published[known], ROUNDS)
    spread = np.linalg.norm(moved - moved.mean(axis=0))
    zoom = float(np.linalg.norm(layout - layout.mean(axis=0)) / spread) if spread > 0 else 1.0
    places = np.ascontiguousarray(moved, dtype=np.float32)
    model.adopt_map(replace(fitted, embedding=zoomed(places, zoom)))
    return places, zoom


def aligned_to_most(places: Places, goals: Places, rounds: int) -> NDArray[np.float64]:
    """Return places turned, mirrored, scaled and moved such that half of them lie as close as possible to their goals.

    The first rows have the goals. Rows that went elsewhere do not turn the map: in every round the half that lies
    closest to its goals decides, of up to ``DECIDING`` rows.
    """
    some = np.arange(0, len(goals), -(-len(goals) // DECIDING))
    deciding = some
    for _ in range(rounds - 1):
        moved = aligned_to(places[some], np.searchsorted(some, deciding), goals[deciding])
        away = np.square(moved - goals[some]).sum(axis=1)
        deciding = np.sort(some[np.argsort(away, kind="stable")[: (len(some) + 1) // 2]])
    return aligned_to(places, deciding, goals[deciding])


def zoomed(places: Places, zoom: float) -> Places:
    """Return published places in the scale of the layout."""
    return places if zoom == 1.0 else (places.astype(np.float64) * zoom).astype(np.float32)


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


def width_of(places: NDArray[np.floating[Any]]) -> float:
    """Return the width of a map: the longest side of the box around its points."""
    return float(np.ptp(places, axis=0).max()) if len(places) else 0.0
