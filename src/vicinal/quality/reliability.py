"""One number per row that says how far to believe its place in a map, and the parts it is made of.

    kept_i      = max(0, (wide_i - m) / (1 - m))    m: median of `wide` in the null map, 0 without one
    whole_i     = 1 - torn_i                        torn: share of the row's edge weight whose edges the map tears
    stability_i = R_i / (R_i + spread_i)            R: distance to the 10 k-th nearest point of the map
    reliability_i = (kept_i * whole_i * stability_i)^(1/3), the geometric mean; of the known parts only

A row is believed if the map shows it in the right part (``kept``), with all that it is connected to (``whole``), and
would do so again (``stability``: 1 if chance does not move the row, 1/2 if it moves it by R). The number is about the
wide scale, because inside a cluster without structure no map keeps the nearest neighbors; ``near`` and the p-values,
which use both scales, tell about that. Stretch does not enter: a map may draw dense areas larger.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.quality.null import LABELS, Significance
from vicinal.quality.preservation import Preservation
from vicinal.quality.stretch import TornEdges

Floats = NDArray[np.float64]


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
            spread[missing] = np.nan if values.dtype.kind == "f" else LABELS[1]
            return spread

        parts: dict[str, Any] = {name: taken(values) for name, values in self.columns().items()}
        return replace(self, torn_edges=self.torn_edges.renumbered(rows), **parts)

    def __str__(self) -> str:
        n, counts, means = len(self), self.counts(), self.summary()["mean"]
        lines = [f"reliability of a map of {n:,} rows"]
        lines += [f"  {label:<14}{100 * count / max(n, 1):6.1f} %" for label, count in counts.items()]
        lines += [f"  mean {name:<12}{'-' if mean is None else f'{mean:.3f}':>6}" for name, mean in means.items()]
        lines.append(f"  torn edges    {len(self.torn_edges):>8,}")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


def combine(
    preservation: Preservation,
    significance: Significance,
    spread: Floats,
    stretch: Floats,
    tears: tuple[Floats, TornEdges],
    null_wide: float,
    notes: tuple[str, ...],
) -> Reliability:
    """Combine the parts by the formulas above."""
    chance = null_wide if np.isfinite(null_wide) else 0.0
    kept = np.clip((preservation.wide - chance) / max(1.0 - chance, 1e-9), 0.0, 1.0)
    reach = preservation.wide_radius + spread
    # Points at one place have radius 0: their place is stable if it does not move at all.
    stability = np.where(reach > 0, preservation.wide_radius / np.where(reach > 0, reach, 1.0), 1.0)
    stability = np.where(np.isnan(spread), np.nan, stability)
    product, parts = kept * (1.0 - tears[0]), 2
    if not np.isnan(stability).all():
        product, parts = product * stability, 3
    return Reliability(
        reliability=product ** (1.0 / parts),
        near=preservation.near,
        wide=preservation.wide,
        p_value=significance.p_value,
        q_value=significance.q_value,
        label=significance.label,
        spread=spread,
        stability=stability,
        stretch=stretch,
        torn=tears[0],
        torn_edges=tears[1],
        n_neighbors=preservation.n_neighbors,
        within=preservation.within,
        null_wide=null_wide,
        notes=notes,
    )


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
