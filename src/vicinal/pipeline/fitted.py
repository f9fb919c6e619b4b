"""What a fit learned, as one immutable value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import Place
from vicinal.graph.graph import Graph
from vicinal.layout.density import Radii, Summary
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData
from vicinal.pipeline.recipe import Places, Recipe
from vicinal.pipeline.row_options import RowOptions, Selection, pushing_weights, select_rows
from vicinal.runtime.cached import cached, uncached_state


@dataclass(frozen=True)
class FittedNeighbors:
    """Searchable rows: their neighbor table, and the graph along which queries search."""

    data: TrainingData
    neighbors: Neighbors
    search_graph: Graph

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        n, index = self.data.n, self.neighbors.index
        if not self.search_graph.n == self.search_graph.n_tails == n == len(index):
            raise ValueError("the neighbor table does not cover the rows")
        if not -1 <= index.min(initial=-1) <= index.max(initial=-1) < n:
            raise ValueError("the neighbor table names rows that do not exist")


@dataclass(frozen=True)
class FittedDensity:
    """Local radii of the rows that were laid out.

    ``summary`` describes the map's radii as densMAP's term saw them last; it is None if they were only reported.
    """

    radii: Radii
    embedded: NDArray[np.float64]
    correlation: float
    summary: Summary | None = None


@dataclass(frozen=True)
class FitReport:
    """How a fit went.

    ``snapshots`` holds the maps at the epochs that were asked for if these are several, ``losses`` the recorded losses
    by epoch, ``divergence`` is t-SNE's loss of the finished map.
    """

    init_used: str = ""
    n_epochs: int = 0
    stage_times: dict[str, float] = field(default_factory=dict)
    snapshots: tuple[NDArray[np.float32], ...] = ()
    losses: dict[str, list[Any]] | None = None
    divergence: float | None = None


@dataclass(frozen=True)
class FittedMap:
    """A map and everything that placing new rows in it, updating it and reporting on it need.

    ``data``, ``options`` and ``embedding`` cover all rows of the fit. If only some rows were laid out (equal rows as
    one, rows of weight 0 not at all), ``laid_out`` lists them, and ``neighbors``, ``search_graph``, ``graph`` and
    ``density`` cover these. ``embedding`` is None if only the graph was asked for. ``search_graph`` is the graph
    without labels, along which queries search.
    """

    data: TrainingData
    recipe: Recipe
    options: RowOptions
    neighbors: Neighbors
    search_graph: Graph
    graph: Graph
    embedding: NDArray[np.float32] | None = None
    seed: int = 0
    laid_out: NDArray[np.int64] | None = None
    density: FittedDensity | None = None
    report: FitReport = field(default_factory=FitReport)

    def __getstate__(self) -> dict[str, Any]:
        return uncached_state(self)

    def on(self, place: Place) -> FittedMap:
        """Return this map with its data, tables and graphs on a device, or with None on the host."""
        if place is self.data.place:
            return self
        if self._elsewhere.get("place") is not place or "map" not in self._elsewhere:
            parts = {name: getattr(self, name).on(place) for name in ("data", "neighbors", "search_graph", "graph")}
            self._elsewhere.update(place=place, map=replace(self, **parts))
        moved: FittedMap = self._elsewhere["map"]
        return moved

    @cached
    def _elsewhere(self) -> dict[str, Any]:
        """The map as it was last moved, because rows are placed in it call by call."""
        return {}

    @cached
    def searched(self) -> TrainingData:
        """The rows that new ones are compared with."""
        return self.data if self.laid_out is None else self.data.take(self.laid_out)

    @cached
    def selection(self) -> Selection:
        """The rows that were laid out, and whose place every row of the data has."""
        return select_rows(self.data, self.options, unique=self.recipe.unique)

    @cached
    def disconnected(self) -> NDArray[np.bool_]:
        """Which rows of the fit have no neighbor: the graph has no edge for them, and they lie around the map."""
        position = self.selection.position
        return np.asarray((position >= 0) & self.isolated[position])

    @cached
    def shown_places(self) -> Places | None:
        """The places of all rows as results show them."""
        return None if self.embedding is None else self.recipe.shown(self.embedding, self.disconnected)

    @cached
    def reference_places(self) -> Places:
        """The places of the rows that were laid out, among which new rows are placed."""
        if self.embedding is None:
            raise ValueError("there is no map: only the graph was asked for")
        return self.embedding if self.laid_out is None else self.embedding[self.laid_out]

    @cached
    def negative_weights(self) -> NDArray[np.floating[Any]] | None:
        """The proportions in which the rows that were laid out are drawn as negatives; None if uniformly.

        Rows without edges push no new row.
        """
        options = self.options if self.laid_out is None else self.selection.options
        weights = self.recipe.plan.negative_weights(self.graph.degree, options)
        return pushing_weights(weights, self.isolated) if self.recipe.plan.has_outside else weights

    @cached
    def isolated(self) -> NDArray[np.bool_]:
        """Which of the rows that were laid out have no edge."""
        return self.graph.isolated()

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        n = self.data.n if self.laid_out is None else len(self.laid_out)
        if self.laid_out is not None:
            rows = self.laid_out
            if rows.dtype != np.int64 or rows.ndim != 1 or not n or not 0 <= rows.min() <= rows.max() < self.data.n:
                raise ValueError(f"laid_out must list some of the {self.data.n} rows")
        for name, graph in (("search_graph", self.search_graph), ("graph", self.graph)):
            if not graph.n == graph.n_tails == n:
                raise ValueError(f"{name} is not a graph of the {n} rows")
        index = self.neighbors.index
        if len(index) != n or not -1 <= index.min(initial=-1) <= index.max(initial=-1) < n:
            raise ValueError(f"neighbors is not a neighbor table of the {n} rows")
        places = self.embedding
        if places is not None and (
            places.dtype != np.float32 or places.shape != (self.data.n, self.recipe.n_components)
        ):
            raise ValueError(f"embedding has no places for the {self.data.n} rows")
        self.options.check_length(self.data.n)
