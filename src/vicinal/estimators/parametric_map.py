"""What a fit of ParametricUMAP learned, as one immutable value, and its form in model files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from vicinal.maps.judging import JudgedMap
    from vicinal.parametric.model import Model

# Attributes of ParametricUMAP, as model files call them, by the fields of a ParametricMap.
FILE_NAMES = {
    "model": "_model",
    "embedding": "embedding_",
    "graph": "graph_",
    "loss_history": "loss_history_",
    "n_epochs": "n_epochs_",
    "init_used": "init_used_",
    "stage_times": "stage_times_",
}


@dataclass(frozen=True)
class ParametricMap:
    """A trained model, the points of the training rows, their graph, and how the training went.

    ``embedding`` and ``graph`` are None if the model comes from a file without training data. ``training`` holds the
    training rows with their neighbors, by which the map is judged; it is not part of a file.
    """

    model: Model
    embedding: NDArray[np.float32] | None = None
    graph: csr_matrix | None = None
    loss_history: dict[str, list[float]] = field(default_factory=dict)
    n_epochs: int = 0
    init_used: str = ""
    stage_times: dict[str, float] = field(default_factory=dict)
    training: JudgedMap | None = None

    def state(self) -> dict[str, Any]:
        """Return plain values by the names that model files use."""
        from vicinal.parametric.state import model_state

        values = vars(self) | {"model": model_state(self.model)}
        return {name: values[part] for part, name in FILE_NAMES.items() if values[part] is not None}

    @staticmethod
    def from_state(state: dict[str, Any], *, encoder: Any, decoder: Any, device: str) -> ParametricMap:
        """Return the map whose `state` is given; raise ValueError if its parts do not fit together."""
        from vicinal.parametric.rows import choose_device
        from vicinal.parametric.state import model_from_state

        parts = {part: state[name] for part, name in FILE_NAMES.items() if name in state}
        parts["model"] = model_from_state(parts["model"], encoder, decoder, choose_device(device))
        fitted = ParametricMap(**parts)
        fitted.check()
        return fitted

    def check(self) -> None:
        """Raise ValueError if the parts do not fit together: a model file may hold anything."""
        points, graph = self.embedding, self.graph
        if points is not None and (
            points.dtype != np.float32 or points.ndim != 2 or points.shape[1] != self.model.shape.n_components
        ):
            raise ValueError(f"embedding_ must have float32 points of {self.model.shape.n_components} components")
        # equal rows may share a row of the graph (unique)
        if points is not None and graph is not None and not graph.shape[0] == graph.shape[1] <= len(points):
            raise ValueError(f"graph_ must have at most {len(points)} rows and as many columns, got {graph.shape}")


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the file of a model, given it or its folder: umap-learn saves models in folders."""
    return Path(path) / "model.vicinal" if Path(path).is_dir() else Path(path)
