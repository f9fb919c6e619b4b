"""New territory: rows that fit nowhere in a map, found together and drawn apart.

A row alone says little: held-out rows of a known class lie farther from it than its own rows lie from each other. Many
rows say more. Let n be the rows of the fit and m those that came since, and let s be the share of *company* among the k
nearest rows of a row: of rows of its batch and of earlier territory. If all rows are like the fit, s/(1 - s) is at most
m/n on average. Otherwise the part of the density around the row that the fit does not explain is

    novelty = 1 - m (1 - s) / (n s)

Rows are *seeds* if their novelty is at least SEED, and at least SEED_SHARE of their k nearest rows are company and as
many of the company are such rows too: a batch like the fit has none. Rows of earlier territory are seeds. From the
seeds territory grows to rows with a novelty of at least GROWN, by the mean of s over the row and its near company, if
at least COMPANY of the near company, and LEAST_COMPANY rows, belong to it.

A row is *lone* if it is farther from the fit, relative to the distances of its neighbors, than all but one in
LONE_ODDS rows of the fit. It lies around the map with no company until others of its kind come
(docs/decisions/2026-11-new-territory.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from vicinal.atlas.tables import INSIDE, LONE
from vicinal.layout.surroundings import Surroundings
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.rows import hash_rows, stack_rows
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingRows
from vicinal.pipeline.fit import ArrayExecutor, fit
from vicinal.pipeline.fitted import FittedMap
from vicinal.pipeline.place import free_places
from vicinal.pipeline.recipe import Places

SEED, GROWN = 0.9, 0.6
# Shares of company, and the least number of rows, as above.
SEED_SHARE, COMPANY, LEAST_COMPANY = 1 / 3, 0.3, 2
# Company is near up to this multiple of the distance of the k-th nearest row.
REACH = 1.25
LONE_ODDS = 1000
FARTHEST = 1.25  # how much farther than that row of the fit a lone row is
# Islands are at least this share of the width of the map apart from everything else.
MARGIN = 0.04


@dataclass(frozen=True)
class Held:
    """Rows of earlier territory: their values, places and islands."""

    rows: Rows
    places: Places
    island: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.island)


def find_territory(fitted: FittedMap, rows: Rows, known: Neighbors, held: Held, since: int) -> NDArray[np.int32]:
    """Return for each row of a batch whether it fits (0), its island (-1 if it is lone), and its company.

    Parameters
    ----------
    fitted : FittedMap
        The map of the last fit.
    rows : array [m, columns]
        The batch.
    known : Neighbors
        Their nearest rows of the fit.
    held : Held
        Rows of earlier territory.
    since : int
        Rows that came since the fit, those of the batch included.
    """
    m, ratio = len(rows), since / fitted.searched.n
    company = nearest_company(fitted, rows, held, known.k)
    near, share = np.maximum(company.index, 0), _share(known, company)
    reach = REACH * _radius(known, company)[:, None]
    there = (company.index >= 0) & (company.distance <= reach)
    is_held = np.arange(m + len(held)) >= m
    # Rows of earlier territory are seeds, but their shares are not known: they do not count for the mean.
    shares = np.concatenate([share, np.zeros(len(held))])
    strong = np.concatenate([(_novelty(share, ratio) >= SEED) & (share >= SEED_SHARE), is_held[m:]])
    found = strong.copy()
    found[:m] &= (strong[near] & there).sum(axis=1) >= SEED_SHARE * known.k
    lone = ~found[:m] & _is_far(fitted, known)
    counted = there & (near < m)
    mean = (share + np.where(counted, shares[near], 0.0).sum(axis=1)) / (1 + counted.sum(axis=1))
    able, grown = _novelty(mean, ratio) >= GROWN, -1
    while grown != int(np.count_nonzero(found)):
        grown = int(np.count_nonzero(found))
        around = (found[near] & there).sum(axis=1)
        found[:m] |= able & (around >= np.maximum(COMPANY * there.sum(axis=1), LEAST_COMPANY))
    island = _islands(found, near, there, held.island)
    island[lone & (island == INSIDE)] = LONE
    return island


def nearest_company(fitted: FittedMap, rows: Rows, held: Held, k: int) -> Neighbors:
    """Return the nearest other rows of the batch and of the held rows, for each row of the batch."""
    data = _as_data(fitted, stack_rows(rows, held.rows) if len(held) else rows)
    table = data.neighbors(min(k + 1, data.n))
    return Neighbors(table.index[: len(rows), 1:], table.distance[: len(rows), 1:])


def _share(known: Neighbors, company: Neighbors) -> NDArray[np.float64]:
    """Return the share of company among the nearest rows of all."""
    return np.asarray((company.distance <= _radius(known, company)[:, None]).sum(axis=1) / known.k)


def _radius(known: Neighbors, company: Neighbors) -> NDArray[np.float32]:
    """Return the distance of the k-th nearest row of all."""
    distance = np.concatenate([known.distance, company.distance], axis=1)
    return np.asarray(np.sort(distance, axis=1)[:, known.k - 1])


def _novelty(shared: NDArray[np.float64], ratio: float) -> NDArray[np.float64]:
    """Return the part of the density that the fit does not explain; ``ratio`` is m/n."""
    return np.where(shared > 0, 1.0 - ratio * (1.0 - shared) / np.maximum(shared, 1e-9), -np.inf)


def _is_far(fitted: FittedMap, known: Neighbors) -> NDArray[np.bool_]:
    """Return which rows are farther from the fit than nearly all of its own rows are from the others."""
    table = fitted.neighbors
    radius = table.distance[:, -1].astype(np.float64)
    own = radius / np.maximum(radius[np.maximum(table.index[:, 1:], 0)].mean(axis=1), 1e-30)
    there = known.index >= 0
    around = np.where(there, radius[np.maximum(known.index, 0)], 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    last = min(table.k, known.k) - 1
    far = known.distance[:, last] / np.maximum(around, 1e-30)
    usual = own[np.isfinite(own)]
    limit = np.quantile(usual, 1 - 1 / LONE_ODDS) if len(usual) else np.inf
    return np.asarray(far > FARTHEST * limit)


def _islands(
    found: NDArray[np.bool_], near: NDArray[np.int32], there: NDArray[np.bool_], held: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the island of each row: that of its nearest company which has one, or a new one for each component."""
    m, everyone = len(near), len(found)
    linked = there & found[near] & found[:m, None]
    head, column = np.nonzero(linked)
    edges = (np.ones(len(head), dtype=np.int8), (head, near[head, column]))
    component = connected_components(coo_matrix(edges, shape=(everyone, everyone)), directed=False)[1]
    island = np.full(m, INSIDE, dtype=np.int32)
    for one in np.unique(component[:m][found[:m]]):
        members = np.flatnonzero(component == one)
        own, old = members[members < m], members[members >= m] - m
        if len(old):
            island[own] = np.bincount(held[old].clip(0)).argmax() or LONE
        else:
            island[own] = max(island.max(), held.max(initial=0), 0) + 1
    return island


def place_territory(fitted: FittedMap, rows: Rows, island: NDArray[np.int32], held: Held, everyone: Places) -> Places:
    """Return places for the rows of a batch in new territory: rows join islands that exist, others get their own room.

    Parameters
    ----------
    fitted : FittedMap
    rows : array [m, columns]
        Rows of new territory only.
    island : int32 array [m]
    held : Held
    everyone : array
        All places of the map, which new islands keep away from.
    """
    places = np.zeros((len(rows), everyone.shape[1]), dtype=np.float32)
    lone = island == LONE
    places[lone] = Surroundings.of(everyone).new_rows(hash_rows(rows[lone]))
    taken = everyone
    for one in np.unique(island[~lone]):
        mine = np.flatnonzero(island == one)
        there = np.flatnonzero(held.island == one)
        if len(there):
            placed = _joining(fitted, rows[mine], held.rows[there], held.places[there])
        else:
            placed = _apart(_laid_out(fitted, rows[mine]), taken, fitted.seed)
        places[mine] = placed
        taken = np.concatenate([taken, placed])
    return places


def _joining(fitted: FittedMap, rows: Rows, known: Rows, places: Places) -> Places:
    """Place rows among those of an island, which stay."""
    data, affinity, jobs = _as_data(fitted, known), fitted.recipe.affinity, fitted.data.n_jobs
    table = data.neighbors(affinity.columns(data.n))
    near = data.query(rows, affinity.query_columns(data.n), affinity.graph(table, jobs), table.share)
    edges = affinity.graph_to_known(near, data.n, jobs)
    return fitted.recipe.plan.place(edges, places, hash_rows(rows, jobs), n_jobs=jobs)


def _laid_out(fitted: FittedMap, rows: Rows) -> Places:
    """Return a map of the rows of a new island by themselves, around the origin."""
    if len(rows) < 4:
        angle = 2 * np.pi * np.arange(len(rows)) / len(rows)
        places = np.zeros((len(rows), fitted.recipe.n_components), dtype=np.float32)
        places[:, 0] = np.cos(angle)
        places[:, min(1, places.shape[1] - 1)] = np.sin(angle)
        return places
    made: FittedMap = fit(ArrayExecutor(_as_data(fitted, rows), fitted.recipe, seed=fitted.seed))
    assert made.embedding is not None
    return np.asarray(made.embedding - (made.embedding.min(axis=0) + made.embedding.max(axis=0)) / 2)


def _apart(island: Places, everyone: Places, seed: int) -> Places:
    """Move an island to the nearest free room."""
    radius = float(np.linalg.norm(island, axis=1).max(initial=0.0))
    gap = radius + MARGIN * float(np.ptp(everyone, axis=0).max())
    # A center is at least a cell away from all points.
    center = next(free_places(everyone, np.random.default_rng(seed), gap))
    return np.asarray(island + center, dtype=np.float32)


def _as_data(fitted: FittedMap, rows: Rows) -> TrainingRows:
    """Return rows with what compares them: the metric of the fit, with what it learned from the rows of the fit."""
    data = fitted.data
    assert isinstance(data, TrainingRows)
    learned = {name: data.index.keywords[name] for name in ("V", "VI") if name in data.index.keywords}
    kwds = {**(data.metric_kwds or {}), **learned} or None
    return TrainingRows(np.ascontiguousarray(rows), data.metric, kwds, fitted.seed, data.n_jobs)
