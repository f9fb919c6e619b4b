"""Labels of rows that arrive over time, and how much they weaken edges (survey section 2.5).

An edge is multiplied by exp(-far * t), where t, from 0 to 1, says how different the labels of its rows are: for classes
0 or 1, for numbers their distance relative to the scale of all numbers, at most 1. So a label concerns only its row and
the rows that list it. A row without a label is at the distance that ``UNKNOWN_DISTANCE`` says from all others.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.supervision import UNKNOWN_DISTANCE, UNLABELLED, class_code, code_factors, far_distance
from vicinal.maps.row_facts import unlabeled
from vicinal.neighbors.metrics import ALIASES
from vicinal.runtime.growing_array import GrowingArray

CLASSES, LEVELS = "categorical", "ordinal"
# The order of the norm of a difference, by the metric of numbers.
NORMS = {LEVELS: 1.0, "euclidean": 2.0, "manhattan": 1.0, "chebyshev": np.inf}
TARGET_METRICS = (CLASSES, *NORMS, *(alias for alias, name in ALIASES.items() if name in NORMS))
# Numbers this many standard deviations apart are as different as two classes.
DEVIATIONS = 4.0

Factors = NDArray[np.float64]


class OnlineTargets(Protocol):
    """Labels of all rows, in the order of their arrival; some or all may be unknown."""

    def __len__(self) -> int: ...
    @property
    def is_known(self) -> bool:
        """Whether any row has a label."""

    def extended(self, y: NDArray[Any] | None, n: int) -> Any:
        """Compute what ``append`` needs to add the labels of ``n`` rows. It allocates the memory for them."""

    def append(self, extension: Any) -> None: ...
    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        """Return the factors of the edges from some rows to the rows in their lists."""

    def given(self, n: int) -> NDArray[Any] | None:
        """Return the labels of the first ``n`` rows as they were given, or None if all are unknown."""

    def state(self) -> dict[str, Any]: ...
    def restore(self, state: dict[str, Any]) -> None: ...
    def check(self) -> None:
        """Raise ValueError if the labels contradict each other."""


class ClassLabels:
    """Classes; -1, NaN or None if the class of a row is unknown."""

    def __init__(self, target_weight: float) -> None:
        self._far = far_distance(target_weight)
        self._codes = GrowingArray(np.empty(0, np.int64))
        self._classes: dict[Any, int] = {}

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def is_known(self) -> bool:
        return bool(self._classes)

    def extended(self, y: NDArray[Any] | None, n: int) -> tuple[NDArray[np.int64], dict[Any, int]]:
        classes, codes = self._classes, np.full(n, UNLABELLED, dtype=np.int64)
        if y is not None:
            classes = dict(classes)
            codes[:] = [class_code(label, classes) for label in y.tolist()]
        self._codes.reserve(len(self) + n)
        return codes, classes

    def append(self, extension: tuple[NDArray[np.int64], dict[Any, int]]) -> None:
        codes, self._classes = extension
        self._codes.append(codes)

    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        codes = self._codes.view
        return code_factors(codes[rows][:, None], codes[index], UNKNOWN_DISTANCE, self._far)

    def given(self, n: int) -> NDArray[Any] | None:
        if not self._classes:
            return None
        classes = np.array(list(self._classes))
        missing = unlabeled(1, classes)
        known = classes.astype(object) if missing.dtype.kind == "O" else classes
        labels: NDArray[Any] = np.concatenate([known, missing])[self._codes.view[:n]]
        return labels

    def state(self) -> dict[str, Any]:
        return {"labels": self._codes.view.copy(), "classes": list(self._classes)}

    def restore(self, state: dict[str, Any]) -> None:
        self._codes = self._codes.replaced("labels", state["labels"])
        self._classes = {label: number for number, label in enumerate(state["classes"])}

    def check(self) -> None:
        codes = self._codes.view
        if codes.max(initial=-1) >= len(self._classes) or codes.min(initial=-1) < UNLABELLED:
            raise ValueError("a growing map has labels that are no classes")


class NumberTargets:
    """Numbers, one or several per row; NaN if those of a row are unknown.

    Their scale is that of the first batch in which they are not all equal.
    """

    def __init__(self, metric: str, target_weight: float) -> None:
        self._order = NORMS[ALIASES.get(metric, metric)]
        self._far = far_distance(target_weight)
        self._numbers = GrowingArray(np.empty((0, 1)))
        self._scale = 0.0
        self._one_column = True

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def is_known(self) -> bool:
        return self._scale > 0.0

    def extended(self, y: NDArray[Any] | None, n: int) -> tuple[GrowingArray, NDArray[np.float64], float, bool]:
        numbers, scale, one = self._numbers, self._scale, self._one_column
        if y is None:
            values = np.full((n, numbers.view.shape[1]), np.nan)
        else:
            values, one = y.reshape(n, -1), y.ndim == 1
            if values.shape[1] != numbers.view.shape[1]:
                if np.isfinite(numbers.view).any():
                    raise ValueError(
                        f"y must hold {numbers.view.shape[1]} numbers per row as before, got {values.shape[1]}"
                    )
                numbers = GrowingArray(np.full((len(self), values.shape[1]), np.nan))
            known = values[np.isfinite(values).all(axis=1)]
            if not scale and len(known):
                scale = DEVIATIONS * float(np.linalg.norm(known.std(axis=0), self._order))
        numbers.reserve(len(self) + n)
        return numbers, values, scale, one

    def append(self, extension: tuple[GrowingArray, NDArray[np.float64], float, bool]) -> None:
        self._numbers, values, self._scale, self._one_column = extension
        self._numbers.append(values)

    def factors(self, rows: NDArray[np.int32], index: NDArray[np.int32]) -> Factors:
        numbers = self._numbers.view
        apart = np.linalg.norm(numbers[rows][:, None, :] - numbers[index], self._order, axis=2)
        distance = self._far * np.minimum(apart / self._scale, 1.0)
        return np.exp(-np.where(np.isnan(apart), UNKNOWN_DISTANCE, distance))

    def given(self, n: int) -> NDArray[Any] | None:
        numbers = self._numbers.view[:n]
        if not np.isfinite(numbers).any():
            return None
        return numbers[:, 0].copy() if self._one_column else numbers.copy()

    def state(self) -> dict[str, Any]:
        return {"labels": self._numbers.view.copy(), "classes": [self._scale, self._one_column]}

    def restore(self, state: dict[str, Any]) -> None:
        labels, (scale, one) = state["labels"], state["classes"]
        if not isinstance(labels, np.ndarray) or labels.dtype != np.float64 or labels.ndim != 2 or not labels.shape[1]:
            raise ValueError("a growing map has targets that are no numbers")
        self._numbers, self._scale, self._one_column = GrowingArray(labels), float(scale), bool(one)

    def check(self) -> None:
        if not 0.0 <= self._scale < np.inf or np.isinf(self._numbers.view).any():
            raise ValueError("a growing map has targets that are infinite")


def online_targets(metric: str, target_weight: float) -> OnlineTargets:
    """Return an empty list of labels that are compared by ``metric``, one of ``TARGET_METRICS``."""
    return ClassLabels(target_weight) if metric == CLASSES else NumberTargets(metric, target_weight)
