"""What changed between two versions of an atlas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.atlas.areas import AreaMatch
from vicinal.atlas.refit import width_of
from vicinal.atlas.snapshot import Snapshot

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Difference:
    """Two versions side by side; :meth:`vicinal.Atlas.diff` makes it.

    Attributes
    ----------
    before, after : Snapshot
    areas : AreaMatch
        What became of the areas.
    position : int64 array
        For each row of the new version its number in the old one, or -1.
    """

    before: Snapshot
    after: Snapshot
    areas: AreaMatch
    position: NDArray[np.int64]
    columns: tuple[pl.DataFrame, pl.DataFrame]

    @property
    def added(self) -> NDArray[Any]:
        """Ids that only the new version has."""
        return self.after.ids[self.position < 0]

    @property
    def deleted(self) -> NDArray[Any]:
        """Ids that only the old version has."""
        return self.before.ids[np.setdiff1d(np.arange(len(self.before)), self.position)]

    @property
    def moved(self) -> NDArray[np.float64]:
        """How far each row of the new version moved, as a share of the width of the old map; NaN for added rows."""
        there = self.position >= 0
        way = self.after.embedding.astype(np.float64) - self.before.embedding[np.maximum(self.position, 0)]
        apart = np.linalg.norm(way, axis=1) / (width_of(self.before.embedding) or 1.0)
        return np.where(there, apart, np.nan)

    def summary(self) -> dict[str, Any]:
        """Return the numbers of the change and the table of the areas."""
        moved = self.moved[self.position >= 0]
        return {
            "before": self.before.version,
            "after": self.after.version,
            "rows_before": len(self.before),
            "rows_after": len(self.after),
            "added": len(self.added),
            "deleted": len(self.deleted),
            "moved": int((moved > 0).sum()),
            "median_move": round(float(np.median(moved)), 5) if len(moved) else 0.0,
            "names_kept": round(self.areas.kept, 5),
            "areas": self.areas.table(),
        }

    def to_json(self) -> str:
        """Return the summary as JSON."""
        return json.dumps(self.summary(), indent=1, allow_nan=False, default=str)

    def to_html(self, path: str | Path, **look: Any) -> Path:
        """Write a page of both versions, side by side and as an animation; :func:`vicinal.atlas.diff.write_diff`."""
        from vicinal.atlas.diff import MapVersion, write_diff

        before, after = (MapVersion.of(*one) for one in ((self.before, self.columns[0]), (self.after, self.columns[1])))
        return write_diff(path, before, after, self.areas, **look)

    def __str__(self) -> str:
        found = self.summary()
        rows = f"{found['rows_before']:,} to {found['rows_after']:,} rows"
        moved = f"{found['moved']:,} moved, by {100 * found['median_move']:.2g} % of the map at the median"
        counts = f"{found['added']:,} added, {found['deleted']:,} deleted, {moved}"
        return f"version {found['before']} to {found['after']}: {rows}; {counts}\n{self.areas}"
