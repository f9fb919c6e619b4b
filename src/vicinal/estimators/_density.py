"""What densMAP adds to UMAP's fit: the term that matches local radii, and the radii themselves as results."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.estimators._umap_parameters import UMAPParameters
from vicinal.graph.graph import Graph
from vicinal.layout.density import (
    EXACT_SHARE,
    EXACT_SHIFT,
    DensityTerm,
    Radii,
    Summary,
    edge_distances,
    embedding_radii,
    finite_radii,
    radius_correlation,
)
from vicinal.layout.sampled import Layout
from vicinal.neighbors.table import Neighbors


class Densities(UMAPParameters):
    """The steps of a fit that ``densmap`` and ``output_dens`` ask for; without them each does nothing."""

    embedding_: NDArray[np.float32]
    rad_orig_: NDArray[np.float32]
    rad_emb_: NDArray[np.float32]
    radius_correlation_: float
    _fitted_density: tuple[Radii, Summary] | None

    def _radii_of(self, graph: Graph, neighbors: Neighbors) -> Radii | None:
        if not (self._matches_density() or self.output_dens):
            return None
        return Radii.of(graph, edge_distances(graph, neighbors, self._jobs()))

    def _density_term(self, radii: Radii | None) -> DensityTerm | None:
        if radii is None or not self._matches_density():
            return None
        return radii.term(EXACT_SHARE * self.dens_lambda, self.dens_frac, EXACT_SHIFT * self.dens_var_shift)

    def _keep_density(self, radii: Radii | None, layout: Layout, inverse: NDArray[np.int64]) -> None:
        """Radii of the data and of the map, how they correlate, and what placing new rows needs of them."""
        self._fitted_density = None
        if radii is None:
            return
        if self._matches_density():
            self._fitted_density = radii, layout.density_summary
        embedded = embedding_radii(layout.embedding, int(self.n_neighbors), self._jobs())
        self.radius_correlation_ = radius_correlation(radii.log_radius, embedded)
        self.rad_orig_, self.rad_emb_ = finite_radii(radii.log_radius)[inverse], finite_radii(embedded)[inverse]

    def _placing_density(self, graph: Graph, neighbors: Neighbors) -> DensityTerm | None:
        """The term for rows that are placed into the fitted map: each matches its own radius."""
        if getattr(self, "_fitted_density", None) is None:
            return None
        radii, summary = self._fitted_density  # type: ignore[misc]
        return radii.placing(EXACT_SHARE * self.dens_lambda, summary, graph, neighbors)
