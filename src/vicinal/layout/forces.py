"""The forces of a sampled layout: attraction along edges, repulsion from negatives, and the distance of the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vicinal.layout.kernel import Kernel
from vicinal.layout.output_space import EUCLIDEAN, OutputSpace


@dataclass(frozen=True)
class Forces:
    """Attraction and repulsion between points of a map.

    Parameters
    ----------
    kernel : Kernel
        Similarity of two points by their distance.
    kind : {"umap", "largevis"}, default "umap"
        Cost that the forces are derived from: UMAP's cross-entropy (survey eq. 12, 13) or LargeVis' likelihood
        (eq. 23).
    space : OutputSpace, default euclidean
        Distance of the map. LargeVis' forces are defined for the euclidean distance only.
    """

    kernel: Kernel
    kind: Literal["umap", "largevis"] = "umap"
    space: OutputSpace = EUCLIDEAN

    def __post_init__(self) -> None:
        if self.kind not in ("umap", "largevis"):
            raise ValueError(f"kind must be 'umap' or 'largevis', got {self.kind!r}")
        if self.kind != "umap" and not self.space.is_euclidean:
            raise ValueError(f"kind={self.kind!r} requires the euclidean distance, got space {self.space.kind!r}")
