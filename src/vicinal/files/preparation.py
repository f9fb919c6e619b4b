"""Steps that prepare rows before a fit, with what each learned, kept with the model to prepare other rows alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float32]

# The attribute of a model that holds what the steps learned.
ATTRIBUTE = "preprocessing_"


@dataclass(frozen=True)
class Steps:
    """Steps in their order, with what each learned."""

    learned: dict[str, NDArray[Any]]

    def add(self, X: Rows, name: str, learned: NDArray[Any]) -> Rows:
        """Append a step and return the rows after it."""
        self.learned[name] = learned
        prepared: Rows = _STEPS[name](X, learned)
        return prepared

    def apply(self, X: Rows) -> Rows:
        """Prepare rows."""
        for name in _STEPS:
            if name in self.learned:
                X = _STEPS[name](X, self.learned[name])
        return np.ascontiguousarray(X, dtype=np.float32)

    def keep_in(self, model: Any) -> None:
        """Store the steps in a fitted model."""
        if self.learned:
            setattr(model, ATTRIBUTE, dict(self.learned))

    @classmethod
    def of_model(cls, model: Any) -> Steps:
        """Return the steps of a model; none if it was fitted to rows as they are."""
        kept = getattr(model, ATTRIBUTE, {})
        unknown = set(kept) - set(_STEPS)
        if unknown:
            raise ValueError(f"the model was prepared by unknown steps: {', '.join(sorted(unknown))}")
        return cls(dict(kept))


def _take_log(X: Rows, _: NDArray[Any]) -> Rows:
    bad = np.flatnonzero((X <= -1).any(axis=1))
    if len(bad):
        raise ValueError(f"--log1p needs values above -1; row {bad[0]} has {X[bad[0]].min():g}")
    return np.log1p(X)


def _normalize(X: Rows, total: NDArray[Any]) -> Rows:
    bad = np.flatnonzero((X < 0).any(axis=1))
    if len(bad):
        raise ValueError(f"--counts needs counts, which are not negative; row {bad[0]} has {X[bad[0]].min():g}")
    sums = X.sum(axis=1, keepdims=True, dtype=np.float64)
    # a row without any count stays as it is
    return np.asarray(X * (total[0] / np.where(sums > 0, sums, total[0])), dtype=np.float32)


# In the order in which they are applied.
_STEPS: dict[str, Any] = {
    "fill": lambda X, learned: np.asarray(np.where(np.isnan(X), learned, X), dtype=np.float32),
    "total": _normalize,
    "log1p": _take_log,
    "columns": lambda X, learned: X[:, learned],
    "center": lambda X, learned: X - learned,
    "factor": lambda X, learned: X * learned,
    "clip": lambda X, learned: np.minimum(X, learned[0]),
    "mean": lambda X, learned: X - learned,
    "components": lambda X, learned: X @ learned.T,
}
