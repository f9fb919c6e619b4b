"""Model files of version 0.1: the classes that they name, and their state as today's.

Version 0.1 wrote every fitted attribute of an estimator by itself; today an estimator has one FittedMap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.graph.graph import Graph
from vicinal.layout.density import Radii
from vicinal.maps.fitted import FitReport, FittedDensity, FittedNeighbors
from vicinal.maps.row_facts import Pins, RowFacts
from vicinal.neighbors.metrics import Rows
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import TrainingData, TrainingDistances, TrainingRows


@dataclass(frozen=True)
class RowSource:
    """Version 0.1's TrainingRows."""

    rows: Rows
    metric: Any = "euclidean"
    metric_kwds: dict[str, Any] | None = None
    seed: int = 0
    n_jobs: int = -1
    given: Neighbors | None = None
    share: float = 1.0

    def upgraded(self) -> TrainingData:
        data = TrainingRows(self.rows, self.metric, self.metric_kwds, self.seed, self.n_jobs, self.given)
        data.check()
        return data


@dataclass(frozen=True)
class DistanceSource:
    """Version 0.1's TrainingDistances."""

    rows: Rows
    n_jobs: int = -1
    share = 1.0

    def upgraded(self) -> TrainingData:
        return TrainingDistances(self.rows, self.n_jobs)


@dataclass(frozen=True)
class Given:
    """Version 0.1's RowFacts."""

    y: NDArray[Any] | None = None
    weight: NDArray[np.float32] | None = None
    pins: Pins | None = None

    def upgraded(self) -> RowFacts:
        return RowFacts(self.y, self.weight, self.pins)


COLUMNS = ("n_features_in_", "feature_names_in_")


def upgraded(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a file of version 0.1 in today's form; any other state as it is."""
    kept = {name: state[name] for name in COLUMNS if name in state}
    if "_missing" in state:
        return {**kept, "composed": _composed(model, state)}
    if "_graphs" in state:
        return {"mappers_": state["mappers_"], "_partners": state["_partners"], "_seed": state["_random_seed"]}
    if "_source" not in state:
        return state
    source = state["_source"]
    if not isinstance(source, RowSource | DistanceSource):
        raise TypeError(f"the rows of a model are a source, not a {type(source).__name__}")
    if "_table" in state:
        table = replace(state["_table"], share=source.share)
        return {
            **kept,
            "neighbors_": _checked(FittedNeighbors(source.upgraded(), table, state["_search_graph"])),
            "changed_params": {},
        }
    return {**kept, "map_": _map(state, source), "changed_params": {}}


def _map(state: dict[str, Any], source: RowSource | DistanceSource) -> dict[str, Any]:
    """Return the parts of a FittedMap; t-SNE has ``_graph``, the others ``_search_graph``."""
    search_graph = state.get("_search_graph", state.get("_graph"))
    if not isinstance(search_graph, Graph):
        raise TypeError("the model has no graph")
    graph = search_graph
    if "graph_" in state and "_search_graph" in state:
        own = _own_graph(state["graph_"], search_graph)
        graph = search_graph if _equal(own, search_graph) else own
    neighbors = _neighbors(state, search_graph)
    everything, kept = state.get("_everything", source), state.get("_kept")
    given = state.get("_given", Given())
    return {
        "data": everything.upgraded(),
        "facts": given.upgraded(),
        "neighbors": replace(neighbors, share=source.share),
        "search_graph": search_graph,
        "graph": graph,
        "embedding": state.get("embedding_"),
        "seed": int(state.get("_fit_seed", getattr(source, "seed", 0))),
        "laid_out": kept,
        "density": _density(state),
        "report": _report(state),
    }


def _neighbors(state: dict[str, Any], graph: Graph) -> Neighbors:
    """Return the neighbor table. LargeVis and t-SNE did not keep theirs: an empty one stands for it."""
    if "_knn_indices" in state:
        return Neighbors(state["_knn_indices"], state["_knn_dists"])
    return Neighbors(np.full((graph.n, 1), -1, np.int32), np.full((graph.n, 1), np.inf, np.float32))


def _density(state: dict[str, Any]) -> FittedDensity | None:
    """Return the radii, which ``densmap`` kept as an object and ``output_dens`` alone only as results."""
    if "rad_emb_" not in state:
        return None
    kept = slice(None) if state.get("_kept") is None else state["_kept"]
    original, embedded = (np.asarray(state[name][kept], dtype=np.float64) for name in ("rad_orig_", "rad_emb_"))
    radii, summary = state["_fitted_density"] or (Radii(original, 0.0, 0.0, 0.0), None)
    correlation = float(state["radius_correlation_"])
    return FittedDensity(radii, embedded, correlation, None if summary is None else tuple(summary))


def _report(state: dict[str, Any]) -> FitReport:
    divergence = state.get("kl_divergence_")
    return FitReport(
        str(state.get("init_used_", "")),
        int(state.get("n_epochs_", state.get("n_iter_", 0))),
        dict(state.get("stage_times_", {})),
        tuple(state.get("embedding_list_", ())),
        state.get("loss_history_"),
        None if divergence is None else float(divergence),
    )


def _composed(model: Any, state: dict[str, Any]) -> dict[str, Any]:
    first = model.left
    while hasattr(first, "left"):
        first = first.left
    graph = _own_graph(state["graph_"], first.map_.search_graph)
    missing = tuple(float(weight) for weight in state["_missing"])
    return {
        "missing": missing,
        "graph": graph,
        "embedding": state["embedding_"],
        "init_used": str(state.get("init_used_", "")),
    }


def _own_graph(matrix: Any, search_graph: Graph) -> Graph:
    """Return the graph of a matrix that was made from one, with rho and sigma of the search graph.

    The arrays are used as they are: SciPy would sort malformed ones and crash.
    """
    indptr, indices = (np.ascontiguousarray(part, np.int64) for part in (matrix.indptr, matrix.indices))
    weights = np.ascontiguousarray(matrix.data, np.float32)
    graph = replace(search_graph, indptr=indptr, indices=indices.astype(np.int32), weights=weights)
    graph.check()
    return graph


def _checked(neighbors: FittedNeighbors) -> FittedNeighbors:
    neighbors.check()
    return neighbors


def _equal(one: Graph, other: Graph) -> bool:
    return (
        np.array_equal(one.indptr, other.indptr)
        and np.array_equal(one.indices, other.indices)
        and np.array_equal(one.weights, other.weights)
    )
