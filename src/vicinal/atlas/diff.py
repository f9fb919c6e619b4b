"""Write two versions of a map to one page: side by side, as an animation, with arrows and with what became of areas.

The page has the rows of both versions: first those of the new one, then those that it does not have any more. A row
that a version does not have is not drawn there. Both maps have the coordinates that they are given in: a row moves on
the page only if it has moved.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vicinal.areas.hierarchy import NOISE
from vicinal.atlas.areas import (
    ABSORBED,
    BORN,
    DIVIDED,
    GONE,
    GREW,
    KEPT,
    MERGED,
    SHRANK,
    SPLIT,
    SPLIT_OFF,
    AreaChange,
    AreaMatch,
    match_areas,
    shared_rows,
)
from vicinal.atlas.refit import width_of
from vicinal.atlas.snapshot import Snapshot
from vicinal.files.data_table import Column, Role
from vicinal.plot.annotations import Floats, coordinates
from vicinal.viewer.export import write_page
from vicinal.viewer.packing import Classes, Packed, compressed, pack

# A row has moved far if it moved by at least this share of the width of the old map.
FAR = 0.05
# Columns of the page.
AREA, AREA_BEFORE, CHANGE, MOVED = "area", "area before", "change", "moved, % of the map"
STAYED, FAR_MOVED, NEW, DELETED = "stayed", "moved", "new", "deleted"


@dataclass(frozen=True)
class MapVersion:
    """One version of a map.

    Parameters
    ----------
    title : str
        Title of the version on the page.
    places : array of shape (n_rows, 2) or (n_rows, 3)
        The map.
    ids : array-like of shape (n_rows,)
        Ids of the rows, all different; rows of two versions with the same id are the same row.
    areas : int array of shape (n_rows,)
        The area of each row; -1 is no area.
    names : sequence of str
        Names of the areas, all different.
    columns : mapping of str to array-like
        Further columns to show.
    """

    title: str
    places: Any
    ids: ArrayLike
    areas: ArrayLike
    names: Sequence[str]
    columns: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot, columns: Any = None) -> MapVersion:
        """Return a version of an atlas, with the data frame of its further columns."""
        title = f"version {snapshot.version}"
        names = [] if columns is None else columns.columns
        shown = {str(name): columns[name] for name in names}
        return cls(title, snapshot.embedding, snapshot.ids.tolist(), snapshot.labels, snapshot.names, shown)


def write_diff(
    path: str | Path,
    before: MapVersion,
    after: MapVersion,
    match: AreaMatch | None = None,
    *,
    title: str | None = None,
    theme: str = "auto",
    far: float = FAR,
) -> Path:
    """Write a page of two versions of a map, completely or not at all.

    Parameters
    ----------
    path : path
        File to write.
    before, after : MapVersion
        The old and the new version, in the same coordinates: the page does not align them.
    match : AreaMatch, optional
        What became of the areas; by default they are matched by their rows.
    title : str, optional
        Title of the page; by default the titles of both versions.
    theme : {"auto", "light", "dark"}
        Colors of the page.
    far : float, default 0.05
        Rows that moved by at least this share of the width of the old map have arrows.
    """
    return write_page(Path(path), pack_diff(before, after, match, title=title, theme=theme, far=far))


def pack_diff(
    before: MapVersion,
    after: MapVersion,
    match: AreaMatch | None = None,
    *,
    title: str | None = None,
    theme: str = "auto",
    far: float = FAR,
) -> Packed:
    """Return the content of the page of two versions; see :func:`write_diff`."""
    if not far > 0:
        raise ValueError(f"far must be above 0, got {far!r}")
    old, new = (_checked_places(one) for one in (before, after))
    if old.shape[1] != new.shape[1]:
        raise ValueError(f"both versions must have as many dimensions, got {old.shape[1]} and {new.shape[1]}")
    position = shared_rows(before.ids, after.ids)
    if match is None:
        match = match_areas(before.areas, after.areas, position, before.names, after.names)
    rows = _Rows.of(position, len(old))
    moved = rows.moved(old, new)
    areas = [_names_of_rows(one) for one in (before, after)]
    columns = [
        Column(AREA, Role.LABEL, rows.take(None, areas[1])),
        Column(AREA_BEFORE, Role.LABEL, rows.take(areas[0], None)),
        Column(CHANGE, Role.LABEL, rows.changes(moved, far)),
        Column(MOVED, Role.VALUE, 100 * moved),
        Column("id", Role.ID, rows.take(_entries(before.ids), _entries(after.ids))),
    ]
    given = {name: (before.columns.get(name), after.columns.get(name)) for name in {**after.columns, **before.columns}}
    columns += [Column(name, Role.DISPLAY, rows.take(*map(_entries, pair))) for name, pair in given.items()]
    titles = (before.title, after.title) if before.title != after.title else (f"{before.title} (old)", after.title)
    maps = {titles[0]: rows.places(old, new), titles[1]: rows.places(new, old, newest=True)}
    shown = " and ".join(titles) if title is None else title
    packed = pack(maps, columns, title=shown, theme=theme, color_by=AREA, clusters=False, one_box=True)
    diff = {
        "areas": [AREA_BEFORE, AREA],
        "change": CHANGE,
        "moved": FAR_MOVED,
        "facts": _facts(rows, moved, far, match),
        "changes": [_described(one) for one in sorted(match.changes, key=_importance)],
        "names": [_spots(before, old, match, old=True), _spots(after, new, match, old=False)],
    }
    absent = {f"absent{a}": compressed((one < 0).astype(np.uint8)) for a, one in enumerate((rows.before, rows.after))}
    return _with_equal_names(Packed(packed.meta | {"diff": diff}, packed.sections | absent), columns)


def _checked_places(version: MapVersion) -> Floats:
    """Return the places of a version, if all its parts have as many rows."""
    places = coordinates(version.places, 3, "places")
    for name, given in {"ids": version.ids, "areas": version.areas, **version.columns}.items():
        if len(given) != len(places):
            raise ValueError(f"{name} of {version.title!r} must have {len(places)} entries, got {len(given)}")
    areas = np.asarray(version.areas)
    bad = np.flatnonzero((areas < NOISE) | (areas >= len(version.names)))
    if len(bad):
        raise ValueError(f"areas of {version.title!r} must have names, got area {areas[bad[0]]} in row {bad[0]}")
    return places


def _entries(values: Any) -> NDArray[Any] | None:
    """Return any sequence as an array of Python's objects."""
    if values is None:
        return None
    convert = getattr(values, "tolist", None) or getattr(values, "to_list", None)
    entries = list(values if convert is None else convert())
    return np.fromiter(entries, dtype=object, count=len(entries))


def _names_of_rows(version: MapVersion) -> NDArray[Any]:
    names = np.array([*version.names, None], dtype=object)
    return np.asarray(names[np.asarray(version.areas)])


@dataclass(frozen=True)
class _Rows:
    """The rows of a page: for each its number in the old and in the new version, or -1."""

    before: NDArray[np.int64]
    after: NDArray[np.int64]

    @classmethod
    def of(cls, position: NDArray[np.int64], n: int) -> _Rows:
        deleted = np.setdiff1d(np.arange(n), position)
        return cls(np.append(position, deleted), np.append(np.arange(len(position)), np.full(len(deleted), -1)))

    @property
    def shared(self) -> NDArray[np.bool_]:
        return (self.before >= 0) & (self.after >= 0)

    def take(self, before: NDArray[Any] | None, after: NDArray[Any] | None) -> NDArray[Any]:
        """Return the values of the rows: those of the new version, for deleted rows those of the old one."""
        found = np.full(len(self.before), None, dtype=object)
        for values, row in ((before, self.before), (after, self.after)):
            if values is not None:
                found[row >= 0] = values[row[row >= 0]]
        return found

    def places(self, own: Floats, other: Floats, *, newest: bool = False) -> Floats:
        """Return the places of all rows in one version; a row that it does not have is where the other has it."""
        rows, others = (self.after, self.before) if newest else (self.before, self.after)
        return np.where((rows >= 0)[:, None], own[rows], other[others])

    def moved(self, old: Floats, new: Floats) -> Floats:
        """Return how far each row has moved, as a share of the width of the old map; NaN for others."""
        apart = np.linalg.norm(new[self.after] - old[self.before], axis=1) / (width_of(old) or 1.0)
        return np.where(self.shared, apart, np.nan)

    def changes(self, moved: Floats, far: float) -> NDArray[Any]:
        """Return what happened to each row."""
        kinds = np.where(moved >= far, FAR_MOVED, STAYED)
        return np.where(self.before < 0, NEW, np.where(self.after < 0, DELETED, kinds)).astype(object)


def _facts(rows: _Rows, moved: Floats, far: float, match: AreaMatch) -> list[list[str]]:
    """Return lines about all rows: what is said, and the number."""
    known = moved[rows.shared]
    found = {
        "rows": f"{int((rows.before >= 0).sum()):,} → {int((rows.after >= 0).sum()):,}",
        "new": f"{int((rows.before < 0).sum()):,}",
        "deleted": f"{int((rows.after < 0).sum()):,}",
        f"moved ≥ {100 * far:.3g} %": f"{int((known >= far).sum()):,}",
        "median move": f"{100 * float(np.median(known)):.2g} % of the map" if len(known) else "no shared rows",
        "names kept": f"{100 * match.kept:.0f} %",
    }
    return [list(one) for one in found.items()]


# The order of the list of areas.
_ORDER = (BORN, GONE, SPLIT, SPLIT_OFF, DIVIDED, MERGED, ABSORBED, GREW, SHRANK, KEPT)


def _importance(change: AreaChange) -> tuple[int, int, str]:
    return _ORDER.index(change.kind), -max(change.rows_before, change.rows_after), change.name


def _described(change: AreaChange) -> dict[str, Any]:
    rows = [change.rows_before, change.rows_after]
    return {"name": change.name, "kind": change.kind, "text": str(change), "rows": rows}


def _spots(version: MapVersion, places: Floats, match: AreaMatch, *, old: bool) -> list[dict[str, Any]]:
    """Return the names of the areas of a version, with what happens to them, and where they are."""
    areas = np.asarray(version.areas)
    kind = {(one.before if old else one.after): one.kind for one in match.changes}
    found = []
    for area, name in enumerate(version.names):
        own = places[areas == area]
        if not len(own):
            continue
        middle = own[np.square(own - np.median(own, axis=0)).sum(axis=1).argmin()]
        told = name if kind.get(area, KEPT) == KEPT else f"{name} · {kind[area]}"
        found.append({"name": told, "place": middle.tolist(), "size": len(own), "level": 0})
    return found


def _with_equal_names(packed: Packed, columns: Sequence[Column]) -> Packed:
    """Give both columns of areas the names of both versions, so that a number means the same area in both."""
    values = {one.name: one.values for one in columns}
    n, both = packed.meta["n"], Classes()
    for name in (AREA_BEFORE, AREA):
        both.append(np.asarray(values[name], dtype=object))
    metas, sections = list(packed.meta["columns"]), dict(packed.sections)
    for begin, name in ((0, AREA_BEFORE), (n, AREA)):
        at = next(a for a, meta in enumerate(metas) if meta["name"] == name)
        # rows without an area have a color on both maps, also if only one version has such rows
        described, content = both.packed(begin, 2 * n)
        metas[at] = metas[at] | described
        size = 2 if described["wide"] else 1
        sections[f"column{at}"] = compressed(np.frombuffer(zlib.decompress(content), dtype=np.uint8)[: n * size])
    return Packed(packed.meta | {"columns": metas}, sections)
