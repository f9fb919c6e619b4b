"""Fits and transforms of Dask arrays: the stages of :mod:`vicinal.maps` over parts of the rows."""
