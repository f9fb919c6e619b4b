"""Match the areas of two versions of a map by the rows that they share, so that areas keep their names.

Let s(a, b) be the number of rows of the old area a in the new area b. Only rows of both versions count.

1. **Heir.** The heir of an old area is the new area that has more than half of the old area's rows that still exist. An
   area without an heir has been divided, or its rows are gone.
2. **Name.** A new area has the name of the old area that gave it the most rows, if it is the heir of that area. So
   every old name is used at most once, and no area has two.
3. **Ties.** If several old areas gave a new area equally many rows, the one with fewer rows comes first: more of it is
   there. Then the lower number decides.

Everything else is reported: what an area received, what it gave away, and where the rows of the others went.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.areas.hierarchy import MAJORITY, NOISE, Labels
from vicinal.areas.layers import Layer, same_area
from vicinal.estimators.clustering import Clusters

# An area has grown if its share of the map is at least this multiple of its share before, and if its rows are at least
# that multiple of its rows before; it has shrunk by the inverse.
GROWN, GROWN_ROWS = 1.2, 1.1
# Fewer rows than this share of an area, or than this number, that went elsewhere are no part of it.
PART, PART_ROWS = 0.1, 10
# Kinds of changes. The first five keep a name, the next two have a new one, the last three are of old areas only.
KEPT, GREW, SHRANK, SPLIT, MERGED = "kept", "grown", "shrunk", "split", "merged"
SPLIT_OFF, BORN = "split off", "born"
ABSORBED, DIVIDED, GONE = "absorbed", "divided", "gone"
# How areas without a proposed name are called.
PLAIN = "area"


@dataclass(frozen=True)
class AreaChange:
    """What happened to one area between two versions.

    Attributes
    ----------
    name : str
        The name in the new version; of an area that is no more, its old name.
    kind : str
        "kept", "grown", "shrunk", "split" (it keeps its name and has lost parts) or "merged" (it keeps its name and has
        absorbed others); "split off" (a part of an old area) or "born"; "absorbed" (most of it is in an area of another
        name), "divided" (none of its parts has most of it) or "gone" (most of its rows are deleted or in no area).
    before, after : int or None
        The number of the area in the old and in the new version.
    rows_before, rows_after : int
        Its rows in both versions.
    stayed : int
        Rows in the area in both versions.
    deleted, added : int
        Its old rows that the new version does not have; its new rows that the old version did not have.
    sources, parts : tuple of (str, int)
        Names of the other old areas whose rows it has, and of the other new areas that have its rows, with their number
        of rows, the most first. Fewer than a tenth of an area, or than ten rows, are left out.
    """

    name: str
    kind: str
    before: int | None
    after: int | None
    rows_before: int
    rows_after: int
    stayed: int
    deleted: int
    added: int
    sources: tuple[tuple[str, int], ...] = ()
    parts: tuple[tuple[str, int], ...] = ()

    @property
    def growth(self) -> float | None:
        """Rows after, relative to rows before; None for an area without rows before."""
        return self.rows_after / self.rows_before if self.rows_before else None

    def __str__(self) -> str:
        said = {
            SPLIT: f"split, gave rows to {_listed(self.parts)}",
            MERGED: f"has absorbed {_listed(self.sources)}",
            SPLIT_OFF: f"split off from {_listed(self.sources)}",
            ABSORBED: f"absorbed by {_listed(self.parts)}",
            DIVIDED: f"divided into {_listed(self.parts)}",
        }.get(self.kind, self.kind)
        return f"{self.name}: {said} ({self.rows_before:,} to {self.rows_after:,} rows)"


@dataclass(frozen=True)
class AreaMatch:
    """The names of the areas of a new version, and what happened to each area; :func:`match_areas` makes it."""

    names: tuple[str, ...]
    changes: tuple[AreaChange, ...]

    @property
    def kept(self) -> float:
        """Share of the old areas whose names are kept; 1 if there were none."""
        old = [one for one in self.changes if one.before is not None]
        return sum(one.after is not None for one in old) / len(old) if old else 1.0

    def of_kind(self, *kinds: str) -> list[AreaChange]:
        """Return the changes of some kinds."""
        return [one for one in self.changes if one.kind in kinds]

    def table(self) -> list[dict[str, Any]]:
        """Return one dictionary per area: the areas of the new version by number, then those that are no more."""
        return [asdict(one) | {"growth": one.growth} for one in self.changes]

    def to_json(self) -> str:
        """Return the table as JSON."""
        return json.dumps(self.table(), indent=1, allow_nan=False)

    def __str__(self) -> str:
        return "\n".join(map(str, self.changes)) or "no areas"


def shared_rows(before: ArrayLike, after: ArrayLike) -> NDArray[np.int64]:
    """Return for each row of the new version its number in the old version, or -1, given the ids of both."""
    old, new = (_ids(one, name) for one, name in ((before, "before"), (after, "after")))
    number = {one: row for row, one in enumerate(old)}
    return np.fromiter((number.get(one, -1) for one in new), dtype=np.int64, count=len(new))


def _ids(given: ArrayLike, name: str) -> list[Any]:
    ids: list[Any] = np.asarray(given).tolist() if not isinstance(given, list) else given
    seen: set[Any] = set()
    for row, one in enumerate(ids):
        if one in seen:
            raise ValueError(f"the ids of {name} must be unique, but row {row} has the id {one!r} of an earlier row")
        seen.add(one)
    return ids


def match_areas(
    before: ArrayLike,
    after: ArrayLike,
    position: ArrayLike,
    names: Sequence[str],
    proposed: Sequence[str] = (),
    reserved: Iterable[str] = (),
) -> AreaMatch:
    """Match the areas of two versions of a map and name those of the new one.

    Parameters
    ----------
    before, after : int array of shape (n_rows,)
        The area of each row of the old and of the new version; -1 is no area.
    position : int array of shape (n_rows of the new version,)
        For each row of the new version its number in the old version, -1 for a new row (see :func:`shared_rows`).
    names : sequence of str
        Names of the old areas, all different.
    proposed : sequence of str
        Names for new areas, one for each area of the new version. An area that has no old name takes its own of these;
        if it is empty or taken, it is derived from the largest area that gave it rows, or numbered.
    reserved : iterable of str
        Further names that no new area may have, for example those of earlier versions.

    Returns
    -------
    AreaMatch

    Examples
    --------
    >>> import numpy as np
    >>> old, new = np.repeat([0, 1], 20), np.repeat([1, 0, 2], [20, 14, 6])
    >>> found = match_areas(old, new, np.arange(40), ["coats", "shoes"], ["", "", "boots"])
    >>> found.names
    ('shoes', 'coats', 'boots')
    """
    old, new = _labels(before, "before"), _labels(after, "after")
    at, names, proposed = np.asarray(position), [str(one) for one in names], [str(one) for one in proposed]
    _check_position(at, len(old), len(new))
    k_old, k_new = len(names), max(len(proposed), int(new.max(initial=NOISE)) + 1)
    if len(set(names)) < k_old:
        raise ValueError(f"names must all be different, got {names!r}")
    if int(old.max(initial=NOISE)) >= k_old:
        raise ValueError(f"names must have a name for each area, got {k_old} for area {int(old.max())}")
    if proposed and len(proposed) < int(new.max(initial=NOISE)) + 1:
        raise ValueError(f"proposed must have an entry for each area, got {len(proposed)} for area {int(new.max())}")
    flow = _Flow(old, new, at, k_old, k_new)
    heirs = flow.heirs()
    owner = flow.owners(heirs)
    given = _name_areas(flow, owner, names, proposed, set(reserved))
    return AreaMatch(tuple(given), tuple(_changes(flow, heirs, owner, names, given)))


def _labels(given: ArrayLike, name: str) -> Labels:
    labels = np.asarray(given)
    if labels.ndim != 1 or (labels.size and labels.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be whole numbers, one per row, got {labels.dtype} of shape {labels.shape}")
    bad = np.flatnonzero(labels < NOISE)
    if len(bad):
        raise ValueError(f"{name} must be area numbers or -1, got {labels[bad[0]]} in row {bad[0]}")
    return labels.astype(np.int32)


def _check_position(at: NDArray[Any], n_old: int, n_new: int) -> None:
    if at.shape != (n_new,) or (at.size and at.dtype.kind not in "iu"):
        raise ValueError(f"position must be {n_new} whole numbers, got {at.dtype} of shape {at.shape}")
    bad = np.flatnonzero((at < -1) | (at >= n_old))
    if len(bad):
        raise ValueError(f"position must be rows below {n_old} or -1, got {at[bad[0]]} in row {bad[0]}")
    shared = np.sort(at[at >= 0])
    twice = np.flatnonzero(shared[1:] == shared[:-1])
    if len(twice):
        raise ValueError(f"position must name each old row at most once, got {shared[twice[0]]} twice")


class _Flow:
    """How many rows went from each old area to each new one."""

    def __init__(self, old: Labels, new: Labels, at: NDArray[Any], k_old: int, k_new: int) -> None:
        shared = at >= 0
        came, went = old[at[shared]], new[shared]
        both = (came >= 0) & (went >= 0)
        counts = np.bincount(came[both].astype(np.int64) * k_new + went[both], minlength=k_old * k_new)
        self.shared = counts.reshape(k_old, k_new)
        self.rows_before = np.bincount(old[old >= 0], minlength=k_old)
        self.rows_after = np.bincount(new[new >= 0], minlength=k_new)
        self.surviving = np.bincount(came[came >= 0], minlength=k_old)
        self.known = np.bincount(went[went >= 0], minlength=k_new)
        self.growth = len(new) / len(old) if len(old) else 1.0

    def heirs(self) -> list[int]:
        """Return for each old area the new area that has most of its rows, or -1."""
        found = []
        for a, row in enumerate(self.shared):
            most = int(row.argmax()) if row.size else NOISE
            found.append(most if row.size and row[most] > MAJORITY * self.surviving[a] else NOISE)
        return found

    def owners(self, heirs: list[int]) -> list[int]:
        """Return for each new area the old area whose name it has, or -1."""
        found = []
        for b in range(self.shared.shape[1]):
            first = self.sources(b)[:1]
            found.append(first[0] if first and heirs[first[0]] == b else NOISE)
        return found

    def sources(self, b: int) -> list[int]:
        """Return the old areas that gave rows to a new one: the most rows first, then the smaller, then by number."""
        giving = np.flatnonzero(self.shared[:, b])
        order = np.lexsort((giving, self.rows_before[giving], -self.shared[giving, b]))
        return [int(a) for a in giving[order]]

    def parts(self, a: int) -> list[int]:
        """Return the new areas that have rows of an old one: the most rows first, then the smaller, then by number."""
        having = np.flatnonzero(self.shared[a])
        order = np.lexsort((having, self.rows_after[having], -self.shared[a, having]))
        return [int(b) for b in having[order]]


def _name_areas(flow: _Flow, owner: list[int], names: list[str], proposed: list[str], reserved: set[str]) -> list[str]:
    """Return the names of the new areas, all different; no old name has another area than before."""
    taken = {*names, *reserved}
    given = [names[a] if a >= 0 else "" for a in owner]
    for b, kept in enumerate(given):
        if kept:
            continue
        sources = flow.sources(b)
        from_old = bool(sources) and flow.shared[sources[0], b] > MAJORITY * flow.rows_after[b]
        wish = proposed[b] if proposed and proposed[b] else names[sources[0]] if from_old else ""
        given[b] = unused_name(wish, taken)
        taken.add(given[b])
    return given


def unused_name(wish: str, taken: set[str]) -> str:
    """Return a name that is not taken: the wish, or the wish with a number; without a wish a numbered area."""
    if wish and wish not in taken:
        return wish
    form, number = (f"{wish} ({{}})", 2) if wish else (f"{PLAIN} {{}}", 1)
    while form.format(number) in taken:
        number += 1
    return form.format(number)


def _changes(
    flow: _Flow, heirs: list[int], owner: list[int], names: list[str], given: list[str]
) -> Iterable[AreaChange]:
    for b, a in enumerate(owner):
        yield _new_area(flow, heirs, b, a, names, given)
    for a in sorted(set(range(len(names))) - set(owner)):
        parts = _worth_telling(flow.parts(a), flow.shared[a], flow.rows_before[a])
        rows, inside = int(flow.rows_before[a]), int(flow.shared[a].sum())
        kind = GONE if inside <= MAJORITY * rows else ABSORBED if heirs[a] >= 0 else DIVIDED
        told = tuple((given[b], n) for b, n in parts)
        deleted = rows - int(flow.surviving[a])
        yield AreaChange(names[a], kind, a, None, rows, 0, 0, deleted, 0, (), told)


def _new_area(flow: _Flow, heirs: list[int], b: int, a: int, names: list[str], given: list[str]) -> AreaChange:
    """Return what happened to an area of the new version; ``a`` is the old area of the same name, or -1."""
    rows = int(flow.rows_after[b])
    near = _worth_telling([one for one in flow.sources(b) if one != a], flow.shared[:, b], rows)
    swallowed = [one for one in flow.sources(b) if one != a and heirs[one] == b]
    sources = tuple((names[one], int(flow.shared[one, b])) for one in dict.fromkeys([*swallowed, *dict(near)]))
    added = rows - int(flow.known[b])
    if a < 0:
        # without new rows and rows of no area, most of it comes from old areas
        kind = SPLIT_OFF if flow.shared[:, b].sum() > MAJORITY * rows else BORN
        return AreaChange(given[b], kind, None, b, 0, rows, 0, 0, added, sources)
    before, stayed = int(flow.rows_before[a]), int(flow.shared[a, b])
    others = [one for one in flow.parts(a) if one != b]
    parts = tuple((given[one], n) for one, n in _worth_telling(others, flow.shared[a], before))
    # rows that moved to an area with a name of its own are told, but only a part with a new name is a split
    divided = any(name not in names for name, _ in parts)
    kind = SPLIT if divided else MERGED if swallowed else _growth_kind(before, rows, flow.growth)
    deleted = before - int(flow.surviving[a])
    return AreaChange(given[b], kind, a, b, before, rows, stayed, deleted, added, sources, parts)


def _worth_telling(areas: list[int], shared: NDArray[Any], rows: int) -> list[tuple[int, int]]:
    return [(one, int(shared[one])) for one in areas if shared[one] >= max(PART * rows, PART_ROWS)]


def _growth_kind(before: int, after: int, growth: float) -> str:
    """Return whether an area has grown or shrunk, both in rows and relative to the map."""
    rows = after / before
    if rows >= GROWN_ROWS and rows / growth >= GROWN:
        return GREW
    return SHRANK if rows <= 1 / GROWN_ROWS and rows / growth <= 1 / GROWN else KEPT


def _listed(parts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({rows:,})" for name, rows in parts) or "others"


def named_from_start(clusters: Clusters) -> Clusters:
    """Return clusters whose areas all have names, different within a layer: the first version of an atlas."""
    nobody = np.full(len(clusters.labels), NOISE)
    nothing = Clusters((_empty_layer(clusters.layers[0], nobody.astype(np.int32)),))
    return follow_names(nothing, clusters, nobody)[0]


def _empty_layer(like: Layer, labels: Labels) -> Layer:
    none = np.empty(0, dtype=np.int32)
    return replace(like, labels=labels, parent=none, places=like.places[:0], names=())


def follow_names(
    before: Clusters, after: Clusters, position: ArrayLike, reserved: Iterable[str] = ()
) -> tuple[Clusters, list[AreaMatch]]:
    """Name the clusters of a new version after those of the old one, layer by layer.

    A layer is compared with the old layer of its resolution. An area that continues unchanged from a coarser layer has
    the name of that area, unless it has an old name of its own.

    Parameters
    ----------
    before, after : Clusters
        Clusters of the old and of the new version. The names of ``after`` are proposals for new areas.
    position : int array
        The old number of each new row, or -1, as :func:`shared_rows` returns it.
    reserved : iterable of str
        Names that no new area may have.

    Returns
    -------
    clusters : Clusters
        The clusters of the new version with their names. Its main layer is the one that is compared with the old main
        layer, so that areas are not replaced by finer or coarser ones.
    matches : list of AreaMatch
        One for each layer of the new version.
    """
    every = {name for layer in before.layers for name in layer.names} | set(reserved)
    layers: list[Layer] = []
    matches: list[AreaMatch] = []
    for layer in after.layers:
        old = before.layers[_in_force(before.layers, layer.resolution)]
        above = layers[-1] if layers else None
        same = np.zeros(layer.n_clusters, dtype=bool) if above is None else same_area(layer, above)
        inherited = [above.names[layer.parent[b]] if above and same[b] else "" for b in range(layer.n_clusters)]
        wishes = [name or wish for name, wish in zip(inherited, layer.names, strict=True)]
        # only the area of a coarser layer that continues here may share its name
        free = {name for name in inherited if name} - set(old.names)
        found = match_areas(old.labels, layer.labels, position, old.names, wishes, every - free)
        every |= set(found.names)
        layers.append(replace(layer, names=found.names))
        matches.append(found)
    resolution = before.layers[before.main].resolution if before.layers[before.main].n_clusters else None
    main = after.main if resolution is None else _in_force(after.layers, resolution)
    return replace(after, layers=tuple(layers), main=main), matches


def _in_force(layers: Sequence[Layer], resolution: float) -> int:
    """Return the layer that divides the rows at a resolution: a layer that divided nothing further was left out."""
    coarser = [a for a, layer in enumerate(layers) if layer.resolution <= resolution]
    return coarser[-1] if coarser else 0
