"""densMAP (survey section 6): UMAP whose map keeps where the data is dense and where it is sparse."""

from __future__ import annotations

from vicinal.estimators.umap import UMAP


class DensMAP(UMAP):
    """UMAP with ``densmap=True``: local radii of the map follow those of the data.

    All parameters are :class:`vicinal.UMAP`'s; ``dens_lambda`` weighs the radii, ``dens_frac`` is the part of the
    epochs in which they count, ``dens_var_shift`` steadies their variance, and ``densmap`` itself has no effect. Unseen
    rows are placed so that their own radius is matched too. ``rad_orig_`` and ``rad_emb_`` are the logarithms of the
    radii, ``radius_correlation_`` is their correlation.
    """

    def _matches_density(self) -> bool:
        return True
