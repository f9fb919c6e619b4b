"""One number per row that says how far to believe its place in a map, and the parts it is made of.

    rank_i      = max(0, (wide_i - m) / (1 - m))    m: median of `wide` in the null map, at most 1/2; 0 without one
    placed_i    = max(0, (own_i - f) / (1 - f))     own: share of the neighbors on the row's island; f: of all rows;
                                                    beyond its median in the null map, as for `wide`
    kept_i      = rank_i + (1 - rank_i) placed_i min(1, wide_i / typical_i)
                                                    typical: median of `wide` on the island
    whole_i     = 1 - torn_i                        torn: share of the row's edge weight whose edges the map tears
    stability_i = R_i / (R_i + spread_i)            R: distance to the 10 k-th nearest point of the map
    settled_i   = stability_i + (1 - stability_i) placed_i min(1, stability_i / typical_i)
                                                    typical: median of `stability` on the island
    reliability_i = (kept_i * whole_i * settled_i)^(1/3), the geometric mean; of the known parts only

A row is believed if the map shows it in the right part (``kept``), with all that it is connected to (``whole``), and
would do so again (``settled``; stability is 1 if chance does not move the row, 1/2 if it moves it by R). Islands are
the parts of the map that gaps separate. Inside a cluster without structure no map keeps the nearest neighbors, and
each seed orders them differently. So what is lost within the row's own island counts only as far as the row loses
more than others there; this holds for neighbors, torn edges and stability. On a map of one island there is nothing to
be placed on, and the ranks alone count. Stretch does not enter: a map may draw dense areas larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from vicinal.backends import cpu
from vicinal.graph.graph import Graph
from vicinal.layout.density import MOST_TREE_COMPONENTS
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.search import nearest_points
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows

Floats = NDArray[np.float64]

# The wide scale, as a multiple of the number of neighbors.
WIDE_FACTOR = 10
# The wide scale has at most this fraction of the points: among half of them nearly every neighbor would be kept.
LARGEST_SHARE = 5
# Entries of the tables that are held at a time: 4 M of 8 bytes.
BLOCK_ENTRIES = 1 << 22
# Data without structure keeps nearly all neighbors if there are few rows. A row that keeps as many is not worthless, so
# at most this much is subtracted; and from the second limit on, the labels say that there are too few rows.
MOST_CHANCE, TELLING_NOTHING = 0.5, 0.8
# A row is an outlier if its neighbors are this many times as far from it as their own neighbors are from them.
OUTLIER = 1.5
# A part of the reliability that is below this is the reason of a low number.
LOW = 0.7
# A row with torn edges that keeps at least this share of its neighbors belongs to two places; with less, it is lost.
LEAST_KEPT = 0.25
# Distances are compared with this relative tolerance, since those of the tree are rounded to float32.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Preservation:
    """The kept share of each row's neighbors, and the local scale of the map around each point.

    ``near`` and ``wide`` are NaN for rows without neighbors. ``near_radius`` and ``wide_radius`` are the distances to
    the k-th and the ``within``-th nearest point of the map.
    """

    n_neighbors: int
    within: int
    near: Floats
    wide: Floats
    near_radius: Floats
    wide_radius: Floats

    @property
    def score(self) -> Floats:
        """The mean of both shares."""
        return 0.5 * (self.near + self.wide)


def measure_preservation(
    neighbors: Neighbors, places: NDArray[np.float32], n_neighbors: int, n_jobs: int = -1
) -> Preservation:
    """Measure the kept share of the first ``n_neighbors`` other rows of each row of the table.

    The table has all rows, each first in its own list, and more columns than ``n_neighbors``.
    """
    n = len(places)
    k, within = n_neighbors, max(n_neighbors, min(WIDE_FACTOR * n_neighbors, n // LARGEST_SHARE))
    near_radius, wide_radius = map_radii(places, (k, within), n_jobs)
    near, wide = np.full(n, np.nan), np.full(n, np.nan)
    block = max(1, BLOCK_ENTRIES // (k * places.shape[1]))
    for rows in gen_batches(n, block):
        index = neighbors.index[rows, 1 : k + 1]
        present = index >= 0
        length = distances_between(places[rows, None], places[np.maximum(index, 0)])
        count = np.maximum(present.sum(axis=1), 1)
        known = present.any(axis=1)
        for share, radius in ((near, near_radius), (wide, wide_radius)):
            kept = present & (length <= radius[rows, None] * (1.0 + ROUNDING))
            share[rows] = np.where(known, kept.sum(axis=1) / count, np.nan)
    return Preservation(k, within, near, wide, near_radius, wide_radius)


def map_radii(places: NDArray[np.float32], ranks: tuple[int, ...], n_jobs: int = -1) -> list[Floats]:
    """Return the distance of each point to its nearest other points of the given ranks, in ascending order."""
    n, n_components = places.shape
    places = np.ascontiguousarray(places, dtype=np.float32)
    radii = [np.zeros(n) for _ in ranks]
    # The point itself, or another point at the same place, takes column 0.
    if n_components > MOST_TREE_COMPONENTS:
        table = NeighborIndex(places, n_jobs=n_jobs).search(ranks[-1] + 1)
        return [table.distance[:, rank].astype(np.float64) for rank in ranks]
    tree = cpu.PointTree(places, n_jobs)
    block = max(1, BLOCK_ENTRIES // (ranks[-1] + 1))
    for rows in gen_batches(n, block):
        distance = tree.query(places[rows], ranks[-1] + 1, n_jobs)[1]
        for radius, rank in zip(radii, ranks, strict=True):
            radius[rows] = distance[:, rank]
    return radii


def distances_between(heads: NDArray[np.float32], tails: NDArray[np.float32]) -> Floats:
    """Return euclidean distances along the last axis, computed in float64."""
    return np.asarray(np.sqrt(np.square(heads.astype(np.float64) - tails).sum(axis=-1)))


TRUSTWORTHY, UNDECIDED, DUBIOUS = "trustworthy", "undecided", "dubious"
LABELS = (TRUSTWORTHY, UNDECIDED, DUBIOUS)
NEIGHBORS_LOST, TORN, UNSTABLE, OUTLYING = "neighbors lost", "torn", "unstable", "outlier in the data"
TOO_FEW_ROWS, BY_CHANCE, NO_NEIGHBORS = "too few rows to say", "no better than chance", "no neighbors"
REASONS = ("", NEIGHBORS_LOST, TORN, UNSTABLE, OUTLYING, TOO_FEW_ROWS, BY_CHANCE, NO_NEIGHBORS)


class Standing(NamedTuple):
    """How the rows stand on their islands: what is kept, whether in the right place, and how far outside the data."""

    kept: Floats
    placed: Floats
    outlier: Floats
    island: NDArray[np.int32]
    null_wide: float

    def forgiven(self, part: Floats) -> Floats:
        """Return a part of the reliability of which rows lose no more than others of their island as near to 1."""
        return part + (1.0 - part) * self.placed * relative_to(part, self.island)


def measure_standing(
    neighbors: Neighbors,
    preservation: Preservation,
    island: NDArray[np.int32],
    null_wide: float,
    null_placed: float = 0.0,
) -> Standing:
    """Measure what each row keeps by the formulas above, and how far it lies outside the data."""
    wide = preservation.wide
    rank = _beyond(wide, min(null_wide, MOST_CHANCE) if np.isfinite(null_wide) else 0.0)
    placed = _beyond(measure_placed(neighbors, preservation.n_neighbors, island), null_placed)
    kept = rank + (1.0 - rank) * placed * relative_to(wide, island)
    return Standing(kept, placed, measure_outliers(neighbors, preservation.n_neighbors), island, null_wide)


def _beyond(share: Floats, chance: float) -> Floats:
    return np.asarray(np.clip((share - chance) / max(1.0 - chance, 1e-9), 0.0, 1.0))


def measure_placed(neighbors: Neighbors, k: int, island: NDArray[np.int32]) -> Floats:
    """Return the share of each row's neighbors on its own island, beyond the island's share of all rows."""
    index = neighbors.index[:, 1 : k + 1]
    present = index >= 0
    own = ((island[np.maximum(index, 0)] == island[:, None]) & present).sum(axis=1) / np.maximum(present.sum(axis=1), 1)
    share = np.bincount(island)[island] / len(island)
    return np.asarray(np.where(share < 1, np.clip((own - share) / np.maximum(1.0 - share, 1e-9), 0.0, 1.0), 0.0))


def relative_to(values: Floats, group: NDArray[np.int32]) -> Floats:
    """Return values in [0, 1] relative to the median of their group, at most 1."""
    typical = median_of(values, group)
    return np.asarray(np.clip(values / np.where(typical > 0, typical, 1.0), 0.0, 1.0))


def median_of(values: Floats, group: NDArray[np.int32]) -> Floats:
    """Return for each row the median of the finite values of its group; NaN if there are none."""
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.lexsort((values[known], group[known]))]
    count = np.bincount(group[known], minlength=int(group.max(initial=-1)) + 1)
    first = np.cumsum(count) - count
    found = np.full(len(count), np.nan)
    filled = count > 0
    low = order[(first + (count - 1) // 2)[filled]]
    high = order[(first + count // 2)[filled]]
    found[filled] = 0.5 * (values[low] + values[high])
    return found[group]


def measure_outliers(neighbors: Neighbors, k: int) -> Floats:
    """Return how far each row is from its neighbors, relative to how far these are from theirs; NaN if unknown."""
    distance = neighbors.distance[:, 1 : k + 1].astype(np.float64)
    index = neighbors.index[:, 1 : k + 1]
    present = (index >= 0) & np.isfinite(distance)
    count = np.maximum(present.sum(axis=1), 1)
    radius = np.where(present, distance, 0.0).sum(axis=1) / count
    around = np.where(present, radius[np.maximum(index, 0)], 0.0).sum(axis=1) / count
    known = present.any(axis=1) & (around > 0)
    return np.where(known, radius / np.where(known, around, 1.0), np.nan)


# Share of false calls that is accepted among the rows called trustworthy, and among those called dubious.
FALSE_DISCOVERY_RATE = 0.05


class Significance(NamedTuple):
    """Rows compared with a null: p-values, p-values adjusted for the number of rows, and labels."""

    p_value: Floats
    q_value: Floats
    label: NDArray[np.str_]


def compare_with_null(score: Floats, null: Floats | None, rate: float = FALSE_DISCOVERY_RATE) -> Significance:
    """Label rows by their scores and those of a null map; without a null, or a score, they are undecided."""
    p_value, q_value = np.full((2, len(score)), np.nan)
    label = np.full(len(score), UNDECIDED, dtype=f"<U{max(map(len, LABELS))}")
    known = np.isfinite(score)
    null = np.zeros(0) if null is None else np.sort(null[np.isfinite(null)])
    if known.any() and len(null):
        own = score[known]
        above = len(null) - np.searchsorted(null, own, side="left")
        below = np.searchsorted(null, own, side="right")
        p_above: Floats = np.divide(1.0 + above, 1.0 + len(null))
        p_below: Floats = np.divide(1.0 + below, 1.0 + len(null))
        p_value[known], q_value[known] = p_above, adjusted(p_above)
        unlikely = np.where(adjusted(p_below) <= rate, DUBIOUS, UNDECIDED)
        label[known] = np.where(q_value[known] <= rate, TRUSTWORTHY, unlikely)
    return Significance(p_value, q_value, label)


def adjusted(p_value: Floats) -> Floats:
    """Return the smallest false discovery rate at which each row is called (Benjamini and Hochberg 1995)."""
    order = np.argsort(p_value, kind="stable")[::-1]
    rank = np.arange(len(p_value), 0, -1)
    scaled = np.minimum.accumulate(p_value[order] * len(p_value) / rank)
    out = np.empty_like(p_value)
    out[order] = np.minimum(scaled, 1.0)
    return out


def shuffled_data(data: TrainingData, seed: int) -> TrainingData | None:
    """Return data of the same size without structure, or None if there are no columns or pairs to shuffle.

    Rows have every column shuffled on its own; of a full matrix of distances the pairs are shuffled.
    """
    rng = np.random.default_rng(seed)
    if isinstance(data, TrainingRows):
        rows = _shuffled_sparse(data.rows, rng) if is_sparse(data.rows) else rng.permuted(data.rows, axis=0)
        return replace(data, rows=rows, given=None)
    if isinstance(data, TrainingDistances) and not is_sparse(data.rows):
        matrix = np.zeros_like(data.rows)
        upper = np.triu_indices(data.n, k=1)
        matrix[upper] = rng.permutation(data.rows[upper])
        return TrainingDistances(matrix + matrix.T, data.n_jobs)
    return None


def _shuffled_sparse(rows: Rows, rng: np.random.Generator) -> Rows:
    """Give the stored entries of each column to other rows, drawn without replacement."""
    columns = rows.tocsc(copy=True)
    for begin, end in zip(columns.indptr[:-1], columns.indptr[1:], strict=True):
        if end > begin:
            columns.indices[begin:end] = np.sort(rng.choice(rows.shape[0], size=end - begin, replace=False))
            columns.data[begin:end] = rng.permutation(columns.data[begin:end])
    shuffled = columns.tocsr()
    shuffled.sort_indices()
    return shuffled


# Points of the map that are fitted around each row.
AROUND = 15
# Neighborhoods that are fitted at a time.
BLOCK_ROWS = 1 << 15
# A spread of 0 has no logarithm; this share of the median spread takes its place.
LEAST_SPREAD = 1e-6


def local_spread(
    places: NDArray[np.float32], others: Sequence[NDArray[np.float32]], around: int = AROUND, n_jobs: int = -1
) -> Floats:
    """Return the spread of each row over other maps of the same rows, which were made with other random numbers.

    The nearest points ``around`` each row are fitted to their places in the judged map.
    """
    n = len(places)
    around = min(around, n - 1)
    if around < 1 or not others:
        return np.full(n, np.nan)
    near = _others_nearby(nearest_points(places, places, around + 1, n_jobs).index)
    squared = np.zeros(n)
    for other in others:
        for rows in gen_batches(n, BLOCK_ROWS):
            squared[rows] += _squared_displacement(places, other, near[rows], rows)
    return np.sqrt(squared / len(others))


def _others_nearby(index: NDArray[np.int32]) -> NDArray[np.int32]:
    """Remove each row from its own list; the farthest point is removed if others at the same place hide the row."""
    own = index == np.arange(len(index))[:, None]
    own[~own.any(axis=1), -1] = True
    others: NDArray[np.int32] = index[~own].reshape(len(index), -1)
    return others


def _squared_displacement(
    places: NDArray[np.float32], other: NDArray[np.float32], near: NDArray[np.int32], rows: slice
) -> Floats:
    target, source = places[near].astype(np.float64), other[near].astype(np.float64)
    target_center, source_center = target.mean(axis=1), source.mean(axis=1)
    # einsum sums in a fixed order; the order of a BLAS product depends on its number of threads.
    moment = np.einsum("nki,nkj->nij", source - source_center[:, None], target)
    predicted = np.einsum("nc,ncd->nd", other[rows] - source_center, _rotations(moment)) + target_center
    return np.asarray(np.square(predicted - places[rows]).sum(axis=1))


def _rotations(moment: Floats) -> Floats:
    """Return the rotations or reflections R with the largest trace of R' M, for each matrix M of ``moment``."""
    if moment.shape[1] != 2:
        u, _, vt = np.linalg.svd(moment)
        return np.asarray(u @ vt)
    # In the plane: the rotation or the reflection along (M + adj M) or (M - adj M), whichever is longer.
    a, b, c, d = moment[:, 0, 0], moment[:, 0, 1], moment[:, 1, 0], moment[:, 1, 1]
    turn, mirror = np.hypot(a + d, b - c), np.hypot(a - d, b + c)
    sign = np.where(turn >= mirror, 1.0, -1.0)
    longer = np.maximum(turn, mirror)
    unit = 1.0 / np.where(longer > 0, longer, 1.0)
    cosine, sine = np.where(longer > 0, (a + sign * d) * unit, 1.0), (b - sign * c) * unit
    return np.stack([cosine, sine, -sign * sine, sign * cosine], axis=1).reshape(-1, 2, 2)


def smoothed(spread: Floats, graph: Graph) -> Floats:
    """Return the geometric mean of each row's spread and the weighted geometric mean of its graph neighbors'."""
    known = np.isfinite(spread)
    if not known.all() or not spread.any():
        return spread
    log = np.log(np.maximum(spread, LEAST_SPREAD * float(np.median(spread[spread > 0]))))
    degree = graph.degree()
    around = np.divide(graph.to_scipy().astype(np.float64) @ log, degree, out=log.copy(), where=degree > 0)
    return np.where(spread > 0, np.exp(0.5 * (log + around)), 0.0)


# A torn edge is listed if it has at least this share of the heaviest edge of one of its ends.
LARGE_WEIGHT = 0.5
# Edges that are measured at a time.
BLOCK_EDGES = 1 << 20


@dataclass(frozen=True)
class TornEdges:
    """Heavy edges of the graph that a map tears, each once, the worst first.

    ``length`` is the edge's length in the map in units of the larger of its ends' wide radii, so above 1; edges are
    sorted by weight times length.
    """

    head: NDArray[np.int64]
    tail: NDArray[np.int64]
    weight: Floats
    length: Floats

    def __len__(self) -> int:
        return len(self.head)

    def renumbered(self, rows: NDArray[np.int64]) -> TornEdges:
        """Return the edges with other row numbers."""
        return TornEdges(rows[self.head], rows[self.tail], self.weight, self.length)


def measure_stretch(neighbors: Neighbors, preservation: Preservation) -> Floats:
    """Return the stretch of each row; NaN if all its neighbors are equal to it, in the data or in the map."""
    distance = neighbors.distance[:, 1 : preservation.n_neighbors + 1].astype(np.float64)
    present = np.isfinite(distance) & (neighbors.index[:, 1 : preservation.n_neighbors + 1] >= 0)
    count = present.sum(axis=1)
    radius = np.where(present, distance, 0.0).sum(axis=1) / np.maximum(count, 1)
    known = (radius > 0) & (preservation.near_radius > 0)
    stretch = np.full(len(radius), np.nan)
    stretch[known] = np.log2(preservation.near_radius[known] / radius[known])
    return stretch - np.median(stretch[known]) if known.any() else stretch


def measure_tears(
    graph: Graph, places: NDArray[np.float32], wide_radius: Floats, island: NDArray[np.int32] | None = None
) -> tuple[Floats, TornEdges]:
    """Return the share of each row's edge weight that is torn, and the list of heavy torn edges.

    On an island of the map, only what a row tears beyond the median of the island counts.
    """
    n, weights = graph.n, graph.weights.astype(np.float64)
    relative, torn = np.empty(graph.n_edges), np.zeros(graph.n_edges, dtype=bool)
    heads = graph.heads()
    for begin in range(0, graph.n_edges, BLOCK_EDGES):
        part = slice(begin, begin + BLOCK_EDGES)
        head, tail = heads[part], graph.indices[part]
        reach = np.maximum(wide_radius[head], wide_radius[tail])
        length = distances_between(places[head], places[tail])
        torn[part] = length > reach * (1.0 + ROUNDING)
        relative[part] = length / np.where(reach > 0, reach, 1.0)
    degree = np.bincount(heads, weights, minlength=n)
    lost = np.bincount(heads[torn], weights[torn], minlength=n)
    share = np.divide(lost, degree, out=np.zeros(n), where=degree > 0)
    if island is not None:
        inside = torn & (island[heads] == island[graph.indices])
        near = np.divide(
            np.bincount(heads[inside], weights[inside], minlength=n), degree, out=np.zeros(n), where=degree > 0
        )
        share = share - np.minimum(near, median_of(near, island))
    heaviest = np.zeros(n)
    np.maximum.at(heaviest, heads, weights)
    # in an area without inner order every row has torn edges, and none of them tells anything
    telling = (share[heads] > 0) | (share[graph.indices] > 0)
    listed = np.flatnonzero(torn & telling & (heads < graph.indices))
    limit = LARGE_WEIGHT * np.minimum(heaviest[heads[listed]], heaviest[graph.indices[listed]])
    listed = listed[weights[listed] >= limit]
    listed = listed[np.argsort(-(weights[listed] * relative[listed]), kind="stable")]
    ends = heads[listed].astype(np.int64), graph.indices[listed].astype(np.int64)
    return share, TornEdges(*ends, weights[listed], relative[listed])


@dataclass(frozen=True)
class Reliability:
    """How far each row of a map can be believed.

    Attributes
    ----------
    reliability : array of shape (n_rows,)
        The number in [0, 1]; NaN for rows that were not laid out or have no neighbors.
    near, wide : arrays
        Share of the ``n_neighbors`` nearest rows in the data that are among the ``n_neighbors``, and among the
        ``within`` nearest in the map.
    p_value, q_value : arrays
        Probability that data without structure keep as many neighbors, and the same adjusted for the number of rows.
    label : array of str
        "trustworthy", "undecided" or "dubious".
    kept : array
        What counts of the neighbors that the row keeps, a part of the reliability.
    outlier : array
        Mean distance to the neighbors, relative to that of the neighbors to theirs.
    reason : array of str
        Why a row is not trustworthy, or its number is low: "neighbors lost", "torn", "unstable", "outlier in the data",
        "too few rows to say", "no better than chance" or "no neighbors"; otherwise "".
    spread, stability : arrays
        How far other random numbers move the row, in units of the map, and the same as a number in [0, 1]; NaN if
        unknown.
    stretch : array
        log2 of the scale of the map around the row, relative to the median.
    torn : array
        Share of the row's edge weight whose edges the map tears.
    torn_edges : TornEdges
        The torn edges of large weight.
    n_neighbors, within : int
        The two scales.
    null_wide : float
        Median of ``wide`` in the null map; NaN if there is none.
    notes : tuple of str
        What could not be measured, and why.
    """

    reliability: Floats
    near: Floats
    wide: Floats
    p_value: Floats
    q_value: Floats
    label: NDArray[np.str_]
    kept: Floats
    outlier: Floats
    reason: NDArray[np.str_]
    spread: Floats
    stability: Floats
    stretch: Floats
    torn: Floats
    torn_edges: TornEdges
    n_neighbors: int
    within: int
    null_wide: float = float("nan")
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.reliability)

    def counts(self) -> dict[str, int]:
        """Return the number of rows with each label."""
        return {label: int((self.label == label).sum()) for label in LABELS}

    def explained(self) -> NDArray[np.str_]:
        """Return the label of each row with its reason, if there is one: "undecided: torn"."""
        return np.array(
            [f"{a}: {b}" if b else a for a, b in zip(self.label.tolist(), self.reason.tolist(), strict=True)]
        )

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return what is known per row by name, for tables, plots and pages."""
        arrays = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: values for name, values in arrays.items() if isinstance(values, np.ndarray)}

    def summary(self) -> dict[str, Any]:
        """Return numbers, strings and lists only, ready for JSON: means, counts of labels and notes."""
        means = {name: _mean(getattr(self, name)) for name in ("reliability", "near", "wide", "stability", "torn")}
        return {
            "n_neighbors": self.n_neighbors,
            "within": self.within,
            "mean": means,
            "labels": self.counts(),
            "reasons": {one: int((self.reason == one).sum()) for one in REASONS[1:] if (self.reason == one).any()},
            "null_wide": self.null_wide if np.isfinite(self.null_wide) else None,
            "torn_edges": len(self.torn_edges),
            "notes": list(self.notes),
        }

    def spread_to(self, position: NDArray[np.int64], rows: NDArray[np.int64]) -> Reliability:
        """Return the values of all rows of the data.

        ``position`` says which of the measured rows has the place of each row, or -1; ``rows`` are the numbers of the
        measured rows.
        """
        missing = position < 0

        def taken(values: NDArray[Any]) -> NDArray[Any]:
            spread = values[np.maximum(position, 0)]
            if values.dtype.kind == "f":
                spread[missing] = np.nan
            return spread

        parts: dict[str, Any] = {name: taken(values) for name, values in self.columns().items()}
        parts["label"][missing], parts["reason"][missing] = UNDECIDED, NO_NEIGHBORS
        return replace(self, torn_edges=self.torn_edges.renumbered(rows), **parts)

    def __str__(self) -> str:
        n, counts, means = len(self), self.counts(), self.summary()["mean"]
        lines = [f"reliability of a map of {n:,} rows"]
        lines += [f"  {label:<14}{100 * count / max(n, 1):6.1f} %" for label, count in counts.items()]
        reasons = self.summary()["reasons"].items()
        lines += [f"    {reason:<20}{100 * count / max(n, 1):6.1f} %" for reason, count in reasons]
        lines += [f"  mean {name:<12}{'-' if mean is None else f'{mean:.3f}':>6}" for name, mean in means.items()]
        lines.append(f"  torn edges    {len(self.torn_edges):>8,}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


def combine(
    preservation: Preservation,
    significance: Significance,
    spread: Floats,
    stretch: Floats,
    tears: tuple[Floats, TornEdges],
    standing: Standing,
    notes: tuple[str, ...],
) -> Reliability:
    """Combine the parts by the formulas above."""
    reach = preservation.wide_radius + spread
    # Points at one place have radius 0: their place is stable if it does not move at all.
    stability = np.where(reach > 0, preservation.wide_radius / np.where(reach > 0, reach, 1.0), 1.0)
    stability = np.where(np.isnan(spread), np.nan, stability)
    product, parts = standing.kept * (1.0 - tears[0]), 2
    if not np.isnan(stability).all():
        product, parts = product * standing.forgiven(stability), 3
    telling = not standing.null_wide > TELLING_NOTHING
    if not telling:
        share = f"{100 * standing.null_wide:.0f} % of their neighbors"
        n = len(standing.kept)
        notes = (*notes, f"too few rows ({n}) to tell structure from chance: rows without structure keep {share}")
    return Reliability(
        product ** (1.0 / parts),
        preservation.near,
        preservation.wide,
        *significance,
        standing.kept,
        standing.outlier,
        _reasons(preservation.wide, standing, (1.0 - tears[0], standing.forgiven(stability)), significance.label),
        spread,
        stability,
        stretch,
        *tears,
        preservation.n_neighbors,
        preservation.within,
        standing.null_wide,
        notes,
    )


def _reasons(
    wide: Floats, standing: Standing, others: tuple[Floats, Floats], label: NDArray[np.str_]
) -> NDArray[np.str_]:
    """Say for each row why it is not believed: its lowest part, or why its label says nothing.

    ``others`` are the parts beside what is kept: whole and settled.
    """
    reason = np.full(len(label), "", dtype=f"<U{max(map(len, REASONS))}")
    undecided = label == UNDECIDED
    reason[undecided] = TOO_FEW_ROWS if standing.null_wide > TELLING_NOTHING else BY_CHANCE
    parts = np.stack([standing.kept, *(np.where(np.isnan(part), 1.0, part) for part in others)])
    known = np.isfinite(standing.kept)
    lowest = np.where(known, parts, 1.0).argmin(axis=0)
    lowest[(parts[1] < LOW) & (wide >= LEAST_KEPT)] = 1
    # a row that keeps about as much as rows without structure do, and loses about as little, has lost nothing
    chance = standing.null_wide
    ordinary = undecided & (lowest == 0) & (wide >= 0.5 * chance) & (1.0 - wide <= 2.0 * (1.0 - chance))
    low = known & (parts.min(axis=0) < LOW) & ~ordinary
    reason[low] = np.array([NEIGHBORS_LOST, TORN, UNSTABLE])[lowest[low]]
    reason[standing.outlier > OUTLIER] = OUTLYING
    reason[~known] = NO_NEIGHBORS
    return reason


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
