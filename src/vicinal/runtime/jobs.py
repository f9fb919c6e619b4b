"""The number of threads that a caller asks for."""

from __future__ import annotations

from numbers import Integral
from typing import Any

LARGEST_N_JOBS = 2**31 - 1  # the compiled core takes a 32-bit number


def resolve_n_jobs(n_jobs: Any) -> int:
    """Turn the parameter ``n_jobs`` into the number that the compiled core takes.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads. -1 uses all processors, -2 all but one, and so on. None means what it means in scikit-learn:
        1, unless a ``joblib.parallel_config`` context sets another number.

    Returns
    -------
    int
        ``n_jobs`` itself, or the number that joblib gives for None.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0, too large, or not a whole number.

    Examples
    --------
    >>> resolve_n_jobs(-1), resolve_n_jobs(None)
    (-1, 1)
    """
    if n_jobs is None:
        from joblib import effective_n_jobs

        return int(effective_n_jobs(None))
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise ValueError(f"n_jobs must be a whole number or None, got {n_jobs!r}")
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; -1 uses all processors")
    if abs(int(n_jobs)) > LARGEST_N_JOBS:
        raise ValueError(f"n_jobs must be at most {LARGEST_N_JOBS}, got {n_jobs}; -1 uses all processors")
    return int(n_jobs)
