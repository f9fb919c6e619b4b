"""Names on a figure: areas that a class dominates, and places for names that cover neither points nor each other.

The page finds areas and places by the same rules (web/src/islands.ts and web/src/names.ts).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.plot.look import Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Cells along the longer side of the map: fewer if there are few points, whose gaps would divide an area.
FEWEST_CELLS, MOST_CELLS = 10, 64
# A class may name a place where it is the majority, or this many times as frequent as overall and one of the two
# largest.
ENRICHED = 3.0
# An area is named if it has this share of its class, or this share of all rows, and at least this many rows.
SHARE_OF_CLASS, SHARE_OF_ALL, FEWEST = 0.08, 0.004, 6
# A class of at least this share is named in any case: where it is most frequent.
LARGE = 0.01
# A name stands at one of this many rows of its area, judged by the classes of the rows nearest to it.
CANDIDATES, NEAR = 32, 100
# On a map with fewer points, or more classes, nothing is named.
FEWEST_POINTS, MOST_CLASSES = 100, 400
# Rows beyond the middle part of a map do not stretch the grid: this share at each end, this many times its extent.
OUTER_SHARE, OUTER_REACH = 0.005, 1.5

FONT_POINTS = (8.5, 7.5)  # of main names and of finer ones
MOST_NAMES = 90
# Longer names are cut.
LONGEST_NAME = 36
# How far from its area a name may stand, for main names and finer ones, and the step of the search, in points of type.
REACH, STEP = (190.0, 70.0), 5.0
DIRECTIONS = 16
CELL = 2.0  # of the grid on which points are counted, in points of type
TOLERATED, COST_OF_POINT = 2, 20.0


@dataclass(frozen=True)
class Area:
    """A part of a map that has a name; ``code`` is the number of its class, -1 for a cluster; 0 is the main level."""

    name: str
    place: tuple[float, float]
    size: int
    level: int
    code: int = -1


def class_areas(xy: Floats, codes: Ints, names: Sequence[str]) -> list[Area]:
    """Return the areas that each class dominates, main areas first and large ones before small ones.

    Rows whose code is ``len(names)`` have no class.
    """
    n = len(xy)
    if n < FEWEST_POINTS or not 0 < len(names) <= MOST_CLASSES:
        return []
    from scipy.spatial import cKDTree

    grid, tree = _Grid(xy, codes, len(names)), cKDTree(xy)
    overall = np.bincount(codes, minlength=len(names) + 1)[:-1] / n
    found: list[Area] = []
    for code, name in enumerate(names):
        own = np.flatnonzero(codes == code)
        least = max(min(FEWEST, len(own)), min(SHARE_OF_CLASS * len(own), SHARE_OF_ALL * n))
        groups = [group for group in grid.groups(own, code, float(overall[code])) if len(group) >= least]
        anchors = [(_anchor(xy, codes, tree, group, code, overall), group) for group in groups]
        kept = [(row, group) for (row, typical), group in anchors if typical]
        if not kept and overall[code] >= LARGE:
            group = grid.purest(own, code)
            kept = [(_anchor(xy, codes, tree, group, code, overall)[0], group)]
        kept.sort(key=lambda one: -len(one[1]))
        for rank, (row, group) in enumerate(kept):
            found.append(Area(name, (float(xy[row, 0]), float(xy[row, 1])), len(group), min(rank, 1), code))
    return sorted(found, key=lambda area: (area.level, -area.size))


def cluster_areas(clusters: Sequence[Mapping[str, Any]]) -> list[Area]:
    """Return the areas of named clusters, mappings with ``name``, ``place``, ``size`` and ``level``."""
    areas = [
        Area(str(one["name"]), (float(one["place"][0]), float(one["place"][1])), int(one["size"]), int(one["level"]))
        for one in clusters
    ]
    return sorted(areas, key=lambda area: (area.level, -area.size))


class _Grid:
    """Counts of the classes in the cells of a grid over the map, summed over neighboring cells."""

    def __init__(self, xy: Floats, codes: Ints, n_classes: int) -> None:
        side = int(np.clip(round(0.9 * np.sqrt(len(xy))), FEWEST_CELLS, MOST_CELLS))
        low, high = np.quantile(xy, [OUTER_SHARE, 1 - OUTER_SHARE], axis=0)
        beyond = (OUTER_REACH - 1) / 2 * (high - low)
        low, high = np.maximum(low - beyond, xy.min(axis=0)), np.minimum(high + beyond, xy.max(axis=0))
        extent = float((high - low).max()) or 1.0
        at = np.clip(((xy - (low + high) / 2) / extent + 0.5) * side, 0, side - 1).astype(np.int64)
        self.side, self.cells = side, at[:, 1] * side + at[:, 0]
        flat = np.bincount(codes * side * side + self.cells, minlength=(n_classes + 1) * side * side)
        counts: Floats = flat.astype(np.float64).reshape(-1, side, side)
        for axis in (1, 2):
            widened = counts.copy()
            ahead, behind = (slice(None),) * axis + (slice(1, None),), (slice(None),) * axis + (slice(None, -1),)
            widened[ahead] += counts[behind]
            widened[behind] += counts[ahead]
            counts = widened
        self.counts = counts.reshape(-1, side * side)
        self.totals = np.maximum(self.counts.sum(axis=0), 1.0)
        known = np.sort(self.counts[:-1], axis=0)
        self.second = known[-2] if n_classes > 1 else np.zeros(side * side)

    def groups(self, rows: Ints, code: int, overall: float) -> Iterator[Ints]:
        """Yield rows whose cells touch and may be named; cells with very few rows of the class connect nothing."""
        from scipy.ndimage import label

        inside = np.bincount(self.cells[rows], minlength=self.side**2)
        share = self.counts[code] / self.totals
        able = (share >= 0.5) | ((share >= ENRICHED * overall) & (self.counts[code] >= self.second))
        haze = len(rows) / max(1, int((inside > 0).sum())) / 4
        parts, n_parts = label((able & (inside > 0) & (inside >= haze)).reshape(self.side, self.side), np.ones((3, 3)))
        part = parts.ravel()[self.cells[rows]]
        for number in range(1, n_parts + 1):
            yield rows[part == number]

    def purest(self, rows: Ints, code: int) -> Ints:
        """Return the rows in the cells with the largest shares of a class, if they have enough rows of it."""
        share = np.where(self.counts[code] >= min(len(rows), FEWEST), self.counts[code] / self.totals, -1.0)
        present = np.unique(self.cells[rows])
        best = present[np.argsort(-share[present], kind="stable")[:CANDIDATES]]
        return rows[np.isin(self.cells[rows], best)]


def _anchor(xy: Floats, codes: Ints, tree: Any, group: Ints, code: int, overall: Floats) -> tuple[int, bool]:
    """Return the row of a group where a name stands, and whether its class may name this place."""
    nearest = group[np.linalg.norm(xy[group] - xy[group].mean(axis=0), axis=1).argmin()]
    spread = group[np.linspace(0, len(group) - 1, min(CANDIDATES, len(group))).astype(np.int64)]
    tried = np.concatenate([[nearest], spread])
    around = codes[tree.query(xy[tried], k=min(NEAR, len(xy)))[1]]
    shares = (around == code).mean(axis=1)
    counts = np.stack([np.bincount(some, minlength=len(overall) + 1)[: len(overall)] for some in around])
    larger = (counts > counts[:, code][:, None]).sum(axis=1)
    typical = (shares >= 0.5) | ((shares >= ENRICHED * overall[code]) & (larger < 2))
    if typical.any():
        able = tried[typical]
        return int(able[np.linalg.norm(xy[able] - xy[nearest], axis=1).argmin()]), True
    return int(tried[shares.argmax()]), False


def draw_names(ax: Axes, xy: Floats, areas: Sequence[Area], look: Look, codes: Ints | None = None) -> list[Any]:
    """Write the names of areas beside their points, with a line to the area; return the texts that found a place.

    ``codes`` are the classes of the points: a name may cover very few points of other classes, none of its own.
    """
    from matplotlib.patheffects import withStroke

    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # places depend on the final size of the axes
    scale = figure.dpi / 72
    window = ax.get_window_extent()
    seen = (ax.transData.transform(xy) - [window.x0, window.y0]) / scale
    crowd = _Crowd(seen, codes, window.width / scale, window.height / scale, _point_radius(ax))
    halo = [withStroke(linewidth=2.5, foreground=look.background)]
    placed: list[_Placed] = []
    drawn = []
    for area in areas:
        if len(placed) >= MOST_NAMES:
            break
        level = min(area.level, 1)
        text = ax.text(
            *area.place, _shortened(area.name), fontsize=FONT_POINTS[level], color=look.theme.ink,
            fontweight="bold" if level == 0 else "normal", ha="center", va="center", path_effects=halo, zorder=6,
            in_layout=False,
        )  # fmt: skip
        size = text.get_window_extent()
        anchor = (ax.transData.transform(area.place) - [window.x0, window.y0]) / scale
        found = crowd.place(anchor, (size.width / scale, size.height / scale), area.code, REACH[level], placed)
        if found is None:
            text.remove()
            continue
        placed.append(found)
        drawn.append(text)
        to_data = ax.transData.inverted().transform
        x, y = to_data(found.middle * scale + [window.x0, window.y0])
        text.set_position((float(x), float(y)))
        if found.line is not None:
            ends = to_data(found.line * scale + [window.x0, window.y0])
            ax.plot(*ends.T, color=look.theme.ink, linewidth=0.5, zorder=5, scalex=False, scaley=False)
            ax.plot(*ends[:1].T, ".", color=look.theme.ink, markersize=3, zorder=5, scalex=False, scaley=False)
    return drawn


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip()}…"


def _point_radius(ax: Axes) -> float:
    """Return the radius of the largest point of a scatter plot, in points of type."""
    from matplotlib.collections import PathCollection

    areas = [float(one.get_sizes().max(initial=0.0)) for one in ax.collections if isinstance(one, PathCollection)]
    return 0.5 * math.sqrt(max(areas, default=0.0))


@dataclass(frozen=True)
class _Placed:
    """A name that has its place: lower left and upper right corner, and the line to its area if it is away from it."""

    low: Floats
    high: Floats
    line: Floats | None

    @property
    def middle(self) -> Floats:
        return np.asarray((self.low + self.high) / 2)


class _Crowd:
    """Counts of points per cell of the axes, as sums from the lower left corner, in points of type."""

    def __init__(self, seen: Floats, codes: Ints | None, width: float, height: float, radius: float = 0.0) -> None:
        self.size, self.radius = np.array([width, height]), radius
        self.shape = np.maximum(1, np.ceil(self.size / CELL).astype(np.int64))
        inside = ((seen >= 0) & (seen < self.size)).all(axis=1)
        at = (seen[inside] / CELL).astype(np.int64)
        self.cells = np.minimum(at, self.shape - 1)
        self.codes = None if codes is None else codes[inside]
        self.everything = self._sums(self.cells)

    def _sums(self, cells: Ints) -> Floats:
        flat = np.bincount(cells[:, 0] * self.shape[1] + cells[:, 1], minlength=int(self.shape.prod()))
        sums = np.zeros(self.shape + 1)
        sums[1:, 1:] = flat.reshape(self.shape).cumsum(axis=0).cumsum(axis=1)
        return sums

    def place(
        self, anchor: Floats, size: tuple[float, float], code: int, reach: float, placed: Sequence[_Placed]
    ) -> _Placed | None:
        """Return the cheapest place of a name, near its area and over few points, or None."""
        half = np.array(size) / 2 + 1.0
        angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS
        turned = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        support = (half / np.maximum(np.abs(turned), 1e-9)).min(axis=1)
        away = np.arange(STEP, reach + STEP, STEP)
        offsets = turned[:, None] * (away[None, :, None] + support[:, None, None])
        middles = np.concatenate([anchor[None], anchor + offsets.reshape(-1, 2)])
        cost = np.concatenate([[0.0], np.tile(away, DIRECTIONS)])
        low, high = middles - half, middles + half
        all_points = self._covered(self.everything, low, high)
        own = all_points
        if self.codes is not None and code >= 0:
            own = self._covered(self._sums(self.cells[self.codes == code]), low, high)
        limit = TOLERATED if own is not all_points else 0
        able = (low >= 0).all(axis=1) & (high <= self.size).all(axis=1) & (own == 0) & (all_points <= limit)
        cost = cost + COST_OF_POINT * all_points
        for at in np.flatnonzero(able)[np.argsort(cost[able], kind="stable")]:
            end = np.clip(anchor, low[at], high[at])
            line = None if (end == anchor).all() else np.stack([anchor, end])
            found = _Placed(low[at], high[at], line)
            if not any(_clash(found, other) for other in placed):
                return found
        return None

    def _covered(self, sums: Floats, low: Floats, high: Floats) -> Floats:
        """Count the points of which any part is in boxes."""
        a = np.clip(np.floor((low - self.radius) / CELL).astype(np.int64), 0, self.shape)
        b = np.clip(np.ceil((high + self.radius) / CELL).astype(np.int64), 0, self.shape)
        both = sums[b[:, 0], b[:, 1]] - sums[a[:, 0], b[:, 1]] - sums[b[:, 0], a[:, 1]] + sums[a[:, 0], a[:, 1]]
        return np.asarray(both)


def _clash(one: _Placed, other: _Placed) -> bool:
    """Return whether two names overlap, or the line of one crosses the other or its line."""
    if ((one.low < other.high) & (other.low < one.high)).all():
        return True
    if one.line is not None and other.line is not None and _meet(one.line, other.line):
        return True
    return any(
        line is not None and bool(((points > box.low) & (points < box.high)).all(axis=1).any())
        for line, box in ((one.line, other), (other.line, one))
        if line is not None
        for points in [line[0] + np.linspace(0, 1, 64)[:, None] * (line[1] - line[0])]
    )


def _meet(one: Floats, other: Floats) -> bool:
    """Return whether two lines cross: the ends of each are on different sides of the other."""

    def sides(line: Floats, points: Floats) -> Floats:
        (dx, dy), away = line[1] - line[0], points - line[0]
        return np.asarray(dx * away[:, 1] - dy * away[:, 0])

    return bool(sides(one, other).prod() < 0 and sides(other, one).prod() < 0)
