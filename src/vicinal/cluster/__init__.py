"""Fits and transforms of Dask arrays: the stages of :mod:`vicinal.pipeline` over parts of the rows."""
