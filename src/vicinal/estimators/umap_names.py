"""Fitted values by umap-learn's names, which programs read from models, and set on models that they put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.maps.fitted import FittedMap
from vicinal.neighbors.rows import as_rows

# umap-learn compares all pairs of dense rows below this number, and its programs do the same.
SMALL_DATA = 4096


class FromMap:
    """An attribute that is computed from the fitted map unless a program has set it."""

    def __init__(self, get: Callable[[Any], Any]) -> None:
        self._get = get
        self.__doc__ = get.__doc__

    def __get__(self, model: Any, owner: type | None = None) -> Any:
        return self if model is None else self._get(model)


@dataclass(frozen=True)
class SearchIndex:
    """The search of a fitted map with the method of pynndescent's index."""

    fitted: FittedMap

    def query(
        self, query_data: Any, k: int = 10, epsilon: float = 0.1
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return indices and distances of the k nearest fitted rows; ``epsilon`` has no effect."""
        fitted = self.fitted
        found = fitted.searched.query(as_rows(query_data), k, fitted.search_graph, fitted.neighbors.share)
        return found.index, found.distance


# Parameters by the names under which programs set their values.
SET_PARAMETERS = {"_a": "a", "_b": "b", "_n_neighbors": "n_neighbors", "_metric_kwds": "metric_kwds"}
