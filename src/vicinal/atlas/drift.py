"""Measure how new rows differ from the rows that a map was made of, per area and as a whole.

Four measures, each with a test:

- **distance**: mean distance of the new rows to their nearest old rows in the data;
- **nowhere**: share of the new rows that fit nowhere: farther from the old rows than 99 % of the area's old rows are
  from each other;
- **growth**: new rows per old row of an area;
- **composition**: total variation between the labels of new and old rows, 0 (same shares) to 1 (no label in common).

**Tests.** If nothing has drifted, any other rows could have been the new ones. So old and new rows are pooled, as many
rows as there are new ones are drawn from the pool again and again, and each draw is measured like the new rows: against
the rows that were not drawn. The p-value is the share of draws that are at least as far from what is expected, and the
new rows count as one of the draws. Draws for the whole and for the growth are from all rows; those for an area are from
its own rows, so growth alone changes nothing else. Draws depend on the seed only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.areas.hierarchy import NOISE
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.neighbors.index import NeighborIndex
from vicinal.neighbors.metrics import is_sparse
from vicinal.plot.annotations import classes_of, is_continuous
from vicinal.runtime.constraints import SEED, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Old rows whose mean distance says how far a new row is from the data.
NEAREST = 5
# A row fits nowhere if it is farther from the data than this share of the area's old rows.
INSIDE = 0.99
# Fewer new rows of an area are counted, but their distances and labels are not tested.
LEAST_TESTED = 5
RESAMPLES, FEWEST_RESAMPLES = 999, 19
# Shares of the draws below and above the interval that is reported.
TAIL = 0.025
# False discoveries among the measures that are reported as drifted.
LEVEL = 0.05
WHOLE, NO_AREA = "all rows", "no area"
MEASURES = ("distance", "nowhere", "growth", "composition")


@dataclass(frozen=True)
class Measure:
    """A measure of the new rows beside the same measure of rows drawn from the pool.

    Attributes
    ----------
    value : float or None
        Of the new rows; None if there are none, or no labels.
    expected, low, high : float or None
        Mean of the draws, and the interval that contains 95 % of them. For ``distance`` and ``nowhere``, what is
        expected is the measure of the old rows among each other.
    p : float or None
        Share of the draws that are at least as extreme; None if there are too few rows for a test.
    """

    value: float | None
    expected: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None


@dataclass(frozen=True)
class AreaDrift:
    """The drift of one area; ``area`` is None for all rows together, -1 for rows of no area.

    The p-value of the growth of all rows tests whether their areas grow alike. ``drifted`` names the measures that have
    drifted.
    """

    area: int | None
    name: str
    old: int
    new: int
    distance: Measure
    nowhere: Measure
    growth: Measure
    composition: Measure
    drifted: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """Return one row of a table: the numbers of each measure side by side."""
        found: dict[str, Any] = {"area": self.area, "name": self.name, "old": self.old, "new": self.new}
        for name in MEASURES:
            one: Measure = getattr(self, name)
            found |= {name: one.value, f"{name}_expected": one.expected, f"{name}_low": one.low}
            found |= {f"{name}_high": one.high, f"{name}_p": one.p}
        return found | {"drifted": list(self.drifted)}

    def told(self, name: str) -> str:
        """Return one measure as text."""
        one: Measure = getattr(self, name)
        if self.area is None and name == "growth":
            return f"areas grow differently (p = {one.p:.3g})"
        value, expected = ("unknown" if number is None else f"{number:.3g}" for number in (one.value, one.expected))
        return f"{name} {value} (expected {expected}, p = {one.p:.3g})"


@dataclass(frozen=True)
class Drift:
    """What :func:`measure_drift` found: first all rows together, then the areas, then the rows of no area."""

    entries: tuple[AreaDrift, ...]
    resamples: int
    seed: int

    @property
    def whole(self) -> AreaDrift:
        """All rows together."""
        return self.entries[0]

    @property
    def drifted(self) -> list[AreaDrift]:
        """The areas in which some measure has drifted, and all rows together if so."""
        return [one for one in self.entries if one.drifted]

    def table(self) -> list[dict[str, Any]]:
        """Return one dictionary per entry, with the numbers of all measures."""
        return [one.row() for one in self.entries]

    def to_json(self) -> str:
        """Return the table, the number of draws and their seed as JSON."""
        document = {"resamples": self.resamples, "seed": self.seed, "table": self.table()}
        return json.dumps(document, indent=1, allow_nan=False)

    def plot(self, *, theme: str = "light", most: int = 30) -> list[Axes]:
        """Draw each measure of all rows and of up to ``most`` areas beside the interval of the draws.

        Returns
        -------
        list of matplotlib axes
            One for each measure that was taken; :func:`vicinal.plot.save` writes their figure.
        """
        from vicinal.atlas.drift_plot import draw_drift

        return draw_drift(self, theme, most)

    def __str__(self) -> str:
        lines = [f"{self.whole.new:,} new rows against {self.whole.old:,} old ones"]
        for one in self.entries:
            said = [one.told(name) for name in one.drifted]
            lines += [f"  {one.name}: {'; '.join(said)}"] if said else []
        return "\n".join([*lines, *(["  no drift"] if not self.drifted else [])])


def measure_drift(
    old: Any,
    new: Any,
    areas: tuple[ArrayLike, ArrayLike],
    names: Sequence[str],
    labels: tuple[ArrayLike, ArrayLike] | None = None,
    *,
    metric: Any = "euclidean",
    metric_kwds: dict[str, Any] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Drift:
    """Measure how new rows differ from old ones, per area and as a whole, and test each difference.

    Parameters
    ----------
    old, new : array or sparse matrix of shape (n_rows, n_features)
        The rows of the map, and those that came later.
    areas : pair of int arrays
        The area of each old and of each new row; -1 is no area.
    names : sequence of str
        Names of the areas.
    labels : pair of array-like, optional
        A column of categories, for old and for new rows.
    metric, metric_kwds
        Metric of the rows, as for :func:`vicinal.find_neighbors`.
    resamples : int, default 999
        Number of draws; the smallest p-value is one divided by one more.
    seed : int, default 0
        Seed of the draws.

    Returns
    -------
    Drift
        A measure is listed as drifted if at most 5 % of the listed ones are expected to be false (Benjamini and
        Hochberg), among the areas and among the measures of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from vicinal.atlas.drift import measure_drift
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(size=(300, 4)), rng.normal(size=(60, 4)) + 3.0
    >>> found = measure_drift(old, new, (np.zeros(300, int), np.zeros(60, int)), ["all"], resamples=99)
    >>> found.whole.distance.p, found.whole.drifted
    (0.01, ('distance', 'nowhere'))
    """
    if not whole(FEWEST_RESAMPLES).allows(resamples):
        raise ValueError(f"resamples must be {whole(FEWEST_RESAMPLES)}, got {resamples!r}")
    if not SEED.allows(seed):
        raise ValueError(f"seed must be {SEED}, got {seed!r}")
    given = [_areas_of(one, rows, len(names), name) for one, rows, name in zip(areas, (old, new), _SIDES, strict=True)]
    n, m = len(given[0]), len(given[1])
    if n <= NEAREST or m == 0:
        raise ValueError(f"drift needs more than {NEAREST} old rows and at least one new row, got {n} and {m}")
    codes, k = (None, 0) if labels is None else _codes_of(labels, n, m)
    pool = _Pool(old, new, metric, metric_kwds, np.concatenate(given), len(names), codes, k)
    return _report(pool, names, resamples, seed)


_SIDES = ("old", "new")


def _areas_of(given: ArrayLike, rows: Any, k: int, side: str) -> NDArray[np.int64]:
    areas = np.asarray(given)
    n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    if areas.shape != (n,) or (n and areas.dtype.kind not in "iu"):
        raise ValueError(f"areas of the {side} rows must be {n} whole numbers, got {areas.dtype} of {areas.shape}")
    bad = np.flatnonzero((areas < NOISE) | (areas >= k))
    if len(bad):
        raise ValueError(f"areas of the {side} rows must be -1 or below {k}, got {areas[bad[0]]} in row {bad[0]}")
    return areas.astype(np.int64)


def _codes_of(labels: tuple[ArrayLike, ArrayLike], n: int, m: int) -> tuple[NDArray[np.int64], int]:
    """Return the number of each row's category, and how many there are; rows without a label are one of them."""
    both = [np.asarray(one) for one in labels]
    for one, rows, side in zip(both, (n, m), _SIDES, strict=True):
        if one.shape != (rows,):
            raise ValueError(f"labels of the {side} rows must have {rows} entries, got shape {one.shape}")
    joined = np.concatenate([one if one.dtype.kind == both[0].dtype.kind else one.astype(object) for one in both])
    if is_continuous(joined):
        raise ValueError("labels must be categories, got numbers that are a scale; divide them into classes")
    names, codes = classes_of(joined, n + m)
    return codes, len(names) + 1


class _Pool:
    """Old rows, then new rows: their neighbors, areas and labels, and the measures of any division of them."""

    def __init__(
        self,
        old: Any,
        new: Any,
        metric: Any,
        metric_kwds: dict[str, Any] | None,
        area: NDArray[np.int64],
        k: int,
        codes: NDArray[np.int64] | None,
        n_codes: int,
    ) -> None:
        self.k, self.codes, self.n_codes = k, codes, n_codes
        # rows of no area are the last one
        self.area = np.where(area == NOISE, k, area)
        self.new = np.arange(len(area)) >= (old.shape[0] if hasattr(old, "shape") else len(old))
        self.n, self.m = int((~self.new).sum()), int(self.new.sum())
        self.rows_of = [np.flatnonzero(self.area == a) for a in range(k + 1)]
        share = self.n / (self.n + self.m)
        # enough neighbors that, drawn at random, NEAREST of them are old
        wanted = min(self.n + self.m, int(np.ceil((NEAREST + 3 * NEAREST**0.5) / share)) + 2)
        table = NeighborIndex(_joined(old, new), metric, metric_kwds=metric_kwds).search(wanted)
        self.index = np.asarray(table.index)[:, 1:]
        distance = np.asarray(table.distance)[:, 1:].astype(np.float64)
        # a row without enough neighbors is as far as any
        self.distance = np.where(np.isfinite(distance), distance, distance[np.isfinite(distance)].max(initial=0.0))
        self._old, self._new_rows, self._metric = old, new, (metric, metric_kwds)

    def reach(self, rows: NDArray[np.int64], new: Flags) -> tuple[Floats, Flags]:
        """Return the mean distance of rows to the nearest NEAREST old ones, and which rows know too few of these.

        Of rows that know too few, the distance is a lower bound.
        """
        index, distance = self.index[rows], self.distance[rows]
        usable = ~new[index] & (index >= 0)
        rank = np.cumsum(usable, axis=1)
        usable &= rank <= NEAREST
        found = np.minimum(rank[:, -1], NEAREST)
        total = np.where(usable, distance, 0.0).sum(axis=1) + (NEAREST - found) * distance[:, -1]
        return total / NEAREST, found < NEAREST

    @cached_property
    def reach_of_new(self) -> Floats:
        """The distance of the new rows, with a search of its own for rows that are mostly among each other."""
        reach, bound = self.reach(np.flatnonzero(self.new), self.new)
        if bound.any():
            index = NeighborIndex(self._old, self._metric[0], metric_kwds=self._metric[1])
            table = index.search(min(self.n, 15))
            far = np.flatnonzero(bound)
            near = index.query(self._new_rows[far], NEAREST, fuzzy_graph(table), table.share)
            exact = np.asarray(near.distance).astype(np.float64)
            reach[far] = np.where(np.isfinite(exact), exact, self.distance.max()).mean(axis=1)
        return reach

    @cached_property
    def _reach_of_old(self) -> Floats:
        return self.reach(np.flatnonzero(~self.new), self.new)[0]

    @property
    def old_measures(self) -> Floats:
        """The measures of the old rows among each other; only of their distances."""
        return self.measures(np.flatnonzero(~self.new), self._reach_of_old)[:2]

    @cached_property
    def limits(self) -> Floats:
        """How far a row of each area may be from the data; for a small area, that of all rows."""
        reach, area = self._reach_of_old, self.area[~self.new]
        everywhere = np.quantile(reach, INSIDE)
        enough = [a < self.k and (area == a).sum() >= 1 / (1 - INSIDE) for a in range(self.k + 1)]
        return np.array([np.quantile(reach[area == a], INSIDE) if ok else everywhere for a, ok in enumerate(enough)])

    def measures(self, rows: NDArray[np.int64], reach: Floats) -> Floats:
        """Return the measures if ``rows`` were the new ones [measure, entry]: of all rows, then of each area.

        The growth of all rows is how differently the areas grow: the total variation between their shares.
        """
        area, entries = self.area[rows], self.k + 1
        counts = np.bincount(area, minlength=entries).astype(np.float64)
        sums = np.bincount(area, weights=reach, minlength=entries)
        beyond = np.bincount(area, weights=reach > self.limits[area], minlength=entries)
        found = np.full((len(MEASURES), entries + 1), np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[0] = np.append(sums.sum(), sums) / np.append(len(rows), counts)
            found[1] = np.append(beyond.sum(), beyond) / np.append(len(rows), counts)
            others = self._sizes - counts
            found[2, 0] = variation(counts[None], others[None])[0]
            # an area of new rows only has grown from nothing
            found[2, 1:] = np.where(others > 0, counts / others, np.where(counts > 0, np.inf, np.nan))
        if self.codes is not None:
            cells = np.bincount(area * self.n_codes + self.codes[rows], minlength=entries * self.n_codes)
            table = cells.reshape(entries, self.n_codes).astype(np.float64)
            table = np.vstack([table.sum(axis=0), table])
            found[3] = variation(table, self._contents - table)
        return found

    @cached_property
    def _sizes(self) -> Floats:
        return np.bincount(self.area, minlength=self.k + 1).astype(np.float64)

    @cached_property
    def _contents(self) -> Floats:
        """Rows of each label, of all rows and of each area."""
        assert self.codes is not None, "there are labels"
        cells = np.bincount(self.area * self.n_codes + self.codes, minlength=(self.k + 1) * self.n_codes)
        table = cells.reshape(self.k + 1, self.n_codes).astype(np.float64)
        return np.vstack([table.sum(axis=0), table])

    def draw(self, rng: np.random.Generator, counts: NDArray[np.int64] | None) -> Floats:
        """Return the measures of rows drawn from all, or as many from each area as ``counts`` says."""
        if counts is None:
            rows = rng.choice(self.n + self.m, self.m, replace=False, shuffle=False)
        else:
            parts = zip(self.rows_of, counts.tolist(), strict=True)
            rows = np.concatenate([of[rng.choice(len(of), c, replace=False, shuffle=False)] for of, c in parts if c])
        new = np.zeros(self.n + self.m, dtype=bool)
        new[rows] = True
        return self.measures(rows, self.reach(rows, new)[0])


def _joined(old: Any, new: Any) -> Any:
    if is_sparse(old) or is_sparse(new):
        from scipy.sparse import vstack

        return vstack([old, new]).tocsr()
    return np.concatenate([np.asarray(old), np.asarray(new)])


def variation(counts: Floats, others: Floats) -> Floats:
    """Return half of the sum of the differences between the shares in two tables, row by row; NaN without rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = counts / counts.sum(axis=1, keepdims=True) - others / others.sum(axis=1, keepdims=True)
    return np.asarray(0.5 * np.abs(shares).sum(axis=1))


def _report(pool: _Pool, names: Sequence[str], resamples: int, seed: int) -> Drift:
    rows = np.flatnonzero(pool.new)
    value = pool.measures(rows, pool.reach_of_new)
    counts = np.bincount(pool.area[rows], minlength=pool.k + 1)
    drawn = np.empty((resamples, *value.shape))
    for one, rng in zip(drawn, np.random.default_rng(seed).spawn(resamples), strict=True):
        one[:] = pool.draw(rng, counts)
        anywhere = pool.draw(rng, None)
        one[:, 0], one[2] = anywhere[:, 0], anywhere[2]
    own = pool.old_measures
    olds = np.bincount(pool.area[~pool.new], minlength=pool.k + 1)
    sizes = [(pool.n, pool.m), *zip(olds.tolist(), counts.tolist(), strict=True)]
    numbers = [None, *range(pool.k), NOISE]
    entries = []
    for e, (number, name) in enumerate(zip(numbers, [WHOLE, *names, NO_AREA], strict=True)):
        if number == NOISE and sizes[e] == (0, 0):
            continue
        found = [
            _measure(value[a, e], drawn[:, a, e], both=a == 2 and e > 0, tested=a == 2 or _enough(sizes[e]))
            for a in range(len(MEASURES))
        ]
        for a in range(len(own)):
            if found[a].expected is not None and np.isfinite(own[a, e]):
                found[a] = replace(found[a], expected=float(own[a, e]))
        if e == 0:
            found[2] = Measure(pool.m / pool.n, pool.m / pool.n, p=found[2].p)
        entries.append(AreaDrift(number, name, *sizes[e], found[0], found[1], found[2], found[3]))
    return Drift((*_with_findings(entries[:1]), *_with_findings(entries[1:])), resamples, seed)


def _enough(size: tuple[int, int]) -> bool:
    """Return whether an area has enough old and new rows for a test of their distances and labels."""
    return min(size) >= LEAST_TESTED


def _measure(value: float, drawn: Floats, *, both: bool, tested: bool) -> Measure:
    """Return a value with what the draws say; large values are extreme, with ``both`` small ones too."""
    if np.isnan(value):
        return Measure(None)
    known = np.sort(drawn[np.isfinite(drawn)])
    if not tested or not len(known):
        return Measure(_finite(value))
    above = 1 + int((drawn >= value).sum())
    p = above / (len(drawn) + 1)
    if both:
        below = 1 + int((drawn <= value).sum())
        p = min(1.0, 2 * min(above, below) / (len(drawn) + 1))
    low, high = np.quantile(known, [TAIL, 1 - TAIL])
    return Measure(_finite(value), float(known.mean()), float(low), float(high), p)


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _with_findings(entries: list[AreaDrift]) -> list[AreaDrift]:
    """List in each entry which measures have drifted (Benjamini and Hochberg 1995)."""
    tests = sorted((getattr(one, name).p, a, name) for a, one in enumerate(entries) for name in MEASURES
                   if getattr(one, name).p is not None)  # fmt: skip
    passed = [rank for rank, (p, _, _) in enumerate(tests, 1) if p <= LEVEL * rank / len(tests)]
    found = {(a, name) for _, a, name in tests[: max(passed, default=0)]}
    return [
        replace(one, drifted=tuple(name for name in MEASURES if (a, name) in found)) for a, one in enumerate(entries)
    ]
