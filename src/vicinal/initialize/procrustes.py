"""Similarity transformations: one set of places moved onto another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def aligned_to(
    start: NDArray[np.float32], known: NDArray[Any], places: NDArray[np.float32], *, scaled: bool = True
) -> NDArray[np.float64]:
    """Move ``start`` so that its ``known`` rows lie as close as possible to ``places``.

    The transformation is a translation, a rotation or reflection and, if ``scaled``, a scaling. ``known`` holds row
    numbers or is a mask; ``places`` has one line per known row.
    """
    source, target = start.astype(np.float64), places.astype(np.float64)
    if not len(target):
        return source
    centre, target_centre = source[known].mean(axis=0), target.mean(axis=0)
    left, right = source[known] - centre, target - target_centre
    spread = np.square(left).sum()
    if spread > 0 and np.square(right).sum() > 0:
        # einsum sums in a fixed order; the order of a BLAS product depends on its number of threads.
        u, s, vt = np.linalg.svd(np.einsum("ni,nj->ij", left, right))
        rotation, scale = u @ vt, s.sum() / spread if scaled else 1.0
    else:  # a single place determines no direction
        rotation, scale = np.eye(source.shape[1]), 1.0
    return np.asarray(scale * np.einsum("nc,cd->nd", source - centre, rotation) + target_centre)
