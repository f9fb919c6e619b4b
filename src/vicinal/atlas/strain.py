"""Strain: how much a map needs a new layout, per area.

Rows that came since the last fit moved among rows that stayed. Their edges are longer than those of the rows that were
laid out together. Let u be the share of rows of an area that the fit has not seen, and c the mean attraction of the
edges of a row, -ln q. The strain of the area is

    u (c of rows since the fit / c of rows of the fit - 1),  at least 0

which is by how much its attraction exceeds that of a map in which all rows were laid out together, if these had the
edges of the others. A refit is advisable if the strain of the whole map, that of an area, or the share of rows in new
territory is large.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.atlas.tables import INSIDE, Placed

# A refit is advisable from these on. Smaller areas than FEWEST rows, or with fewer rows since the fit, say too little.
MOST_STRAIN, MOST_AREA_STRAIN, MOST_TERRITORY, FEWEST = 0.05, 0.2, 0.01, 20


@dataclass(frozen=True)
class Strain:
    """How much the areas of a map need a new layout.

    Attributes
    ----------
    total : float
        The strain of the whole map.
    areas : list of dict
        Number and name of each area, its rows, those that came since the last fit, and its strain.
    territory : float
        Share of rows in new territory.
    """

    total: float
    areas: list[dict[str, Any]]
    territory: float

    @property
    def reasons(self) -> list[str]:
        """Why a refit is advisable, one line for each reason; none if it is not."""
        found = []
        if self.total > MOST_STRAIN:
            found.append(f"the strain of the map is {self.total:.2f}, more than {MOST_STRAIN:g}")
        if self.territory > MOST_TERRITORY:
            found.append(f"{100 * self.territory:.1f} % of the rows are in new territory")
        found += [
            f"the strain of {one['name']} is {one['strain']:.2f}, more than {MOST_AREA_STRAIN:g}"
            for one in self.areas
            if one["strain"] > MOST_AREA_STRAIN
        ]
        return found

    @property
    def refit_advisable(self) -> bool:
        """Whether a refit is advisable."""
        return bool(self.reasons)


def measure_strain(placed: Placed, unseen: NDArray[np.bool_], names: tuple[str, ...]) -> Strain:
    """Measure the strain of the areas of a map; ``unseen`` are the rows that came since the last fit."""
    inside = placed.territory == INSIDE
    areas = []
    for area, name in enumerate(names):
        mine = inside & (placed.area == area)
        rows, new = int(mine.sum()), int((mine & unseen).sum())
        strain = _strain(placed.cost[mine], unseen[mine]) if min(rows - new, new) >= FEWEST else 0.0
        areas.append({"area": area, "name": name, "rows": rows, "since_fit": new, "strain": strain})
    territory = float((~inside).mean()) if len(placed) else 0.0
    return Strain(_strain(placed.cost[inside], unseen[inside]), areas, territory)


def _strain(cost: NDArray[np.float32], unseen: NDArray[np.bool_]) -> float:
    if not unseen.any() or unseen.all():
        return 0.0
    usual = float(cost[~unseen].mean(dtype=np.float64))
    longer = float(cost[unseen].mean(dtype=np.float64)) / max(usual, 1e-12) - 1.0
    return max(0.0, float(unseen.mean()) * longer)
