"""Rows whose points a training of ParametricUMAP keeps or moves to given positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.neighbors.metrics import Rows, is_sparse
from vicinal.neighbors.rows import stack_rows

LandmarkPairs = tuple[Rows, NDArray[np.float32]]  # rows and their positions


def chosen_rows(n: int, sample_pct: float, sample_mode: str, idx: Any, seed: int) -> NDArray[Any]:
    """Return which of ``n`` rows become landmarks: some at random, or those that ``idx`` lists or marks."""
    if sample_mode == "predetermined" and idx is not None:
        return np.asarray(idx)
    if sample_mode == "uniform" and 0.0 < sample_pct <= 1.0:
        return np.random.default_rng(seed).choice(n, max(1, int(n * sample_pct)), replace=False)
    raise ValueError(
        "give sample_mode='uniform' with sample_pct in (0, 1], or 'predetermined' with idx; "
        f"got sample_mode={sample_mode!r}, sample_pct={sample_pct}, idx={idx}"
    )


def all_landmarks(
    known: LandmarkPairs | None, rows: Rows, landmark_positions: Any, n_components: int
) -> LandmarkPairs | None:
    """Return the landmarks of earlier fits and the rows of a fit that are given positions; None if there are none."""
    if known is not None and known[1].shape[1] != n_components:
        raise ValueError(
            f"n_components={n_components} differs from the {known[1].shape[1]} components of the landmarks; "
            "call remove_landmarks first"
        )
    if landmark_positions is None:
        return known
    positions = np.require(landmark_positions, np.float32, ["C", "A"])
    if positions.shape != (rows.shape[0], n_components):
        raise ValueError(f"landmark_positions must have shape {(rows.shape[0], n_components)}, got {positions.shape}")
    placed = np.isfinite(positions).all(axis=1)
    if known is None:
        return rows[placed], positions[placed]
    return _joined(known[0], rows[placed]), np.concatenate([known[1], positions[placed]])


def _joined(above: Rows, below: Rows) -> Rows:
    """Stack rows; the result is sparse if either part is."""
    if is_sparse(above) != is_sparse(below):
        from scipy.sparse import csr_matrix

        above, below = csr_matrix(above), csr_matrix(below)
    return stack_rows(above, below)
