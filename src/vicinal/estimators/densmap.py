"""densMAP (survey section 6): UMAP whose map shows where the data is dense and where it is sparse."""

from __future__ import annotations

from vicinal.estimators.umap import UMAP


class DensMAP(UMAP):
    """UMAP with ``densmap=True``: local radii of the map follow those of the data.

    All parameters are those of :class:`vicinal.UMAP`. ``dens_lambda`` is the weight of the radii: a larger one matches
    them better and keeps fewer neighbors (digits, correlation of local distances, recall@15: 0.5 gives 0.84 and 0.52,
    2 gives 0.89 and 0.47, 5 gives 0.91 and 0.38). ``dens_frac`` is the fraction of the epochs in which they count,
    ``dens_var_shift`` stabilizes their variance; ``densmap`` has no effect.
    New rows are placed so that their own radius is matched too.

    Attributes
    ----------
    rad_orig_, rad_emb_ : arrays [rows]
        Logarithms of the local radii in the data and in the map, both in a neighbor graph of their own.
    radius_correlation_ : float
        Their correlation.
    density_correlation_ : float
        Correlation of the radii that the cost compares, over the edges of the graph of the data (survey eq. 31, 33).

    See Also
    --------
    UMAP : without the term of the densities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vicinal import DensMAP
    >>> X = load_iris().data
    >>> model = DensMAP(random_state=42, output_dens=True).fit(X)
    >>> model.embedding_.shape, model.rad_orig_.shape
    ((150, 2), (150,))
    """

    def _matches_density(self) -> bool:
        return True
