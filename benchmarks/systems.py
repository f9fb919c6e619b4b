"""The compared systems: one adapter per library; no other module of the benchmarks uses a library's names.

The driver reads names and environments from here; the measured process calls the methods. Libraries are imported inside
methods, so that a process imports only the one that it measures.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

N_NEIGHBORS = 15
LAYOUT_EPOCHS = 200


class Stopwatch:
    """Run stages and store their seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, stage: str, work: Callable[[], Any]) -> Any:
        start = perf_counter()
        result = work()
        self.seconds[stage] = perf_counter() - start
        return result


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def random_positions(n: int, seed: int) -> np.ndarray:
    """Return the initial positions of a layout that is timed alone: uniform on umap-learn's square."""
    return np.random.default_rng(seed).uniform(0.0, 10.0, size=(n, 2)).astype(np.float32)


class System:
    """The interface of the driver; each library implements the tasks that it supports."""

    name: str
    # The virtual environment: "own" has vicinal, "peers" has the other libraries.
    environment: str = "peers"
    packages: tuple[str, ...] = ()

    def load(self) -> None:
        """Import the library, as a user's script does."""

    def fit(self, data: Any, seed: int | None, metric: str = "euclidean") -> Any:
        """Return a model with `embedding_` (and `transform`, if supported), with default parameters otherwise."""
        raise NotImplementedError

    def stage_times(self, model: Any) -> dict[str, float]:
        """Return the seconds per stage that the library reports for `fit`."""
        return {}

    def find_neighbors(self, data: np.ndarray, seed: int) -> np.ndarray:
        """Return the neighbor table of N_NEIGHBORS columns, the first of which is the row itself."""
        raise NotImplementedError

    def stages(self, data: np.ndarray, seed: int) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        """Time each stage alone; return seconds and results: `index` (neighbor table) and `embedding` (layout)."""
        raise NotImplementedError


class Vicinal(System):
    name = "vicinal"
    environment = "own"
    packages = ("vicinal", "numpy", "scipy", "scikit-learn")

    def load(self) -> None:
        import vicinal

        _ = vicinal.UMAP

    def fit(self, data: Any, seed: int | None, **options: Any) -> Any:
        import vicinal

        return vicinal.UMAP(random_state=seed, n_jobs=-1, **options).fit(data)

    def stage_times(self, model: Any) -> dict[str, float]:
        return {stage: float(seconds) for stage, seconds in model.stage_times_.items()}

    def find_neighbors(self, data: np.ndarray, seed: int) -> np.ndarray:
        from vicinal import find_neighbors

        return find_neighbors(data, n_neighbors=N_NEIGHBORS, seed=seed).index

    def stages(self, data: np.ndarray, seed: int) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        from vicinal import find_neighbors
        from vicinal.graph.fuzzy import fuzzy_graph
        from vicinal.layout.forces import fit_ab
        from vicinal.layout.sampled import Layout
        from vicinal.layout.schedule import Schedule

        watch = Stopwatch()
        neighbors = watch.time("neighbors", lambda: find_neighbors(data, n_neighbors=N_NEIGHBORS, seed=seed))
        graph = watch.time("graph", lambda: fuzzy_graph(neighbors))
        initial, kernel = random_positions(len(data), seed), fit_ab(spread=1.0, min_dist=0.1)

        def run_layout() -> np.ndarray:
            layout = Layout(graph, initial, kernel, Schedule(n_epochs=LAYOUT_EPOCHS), seed=seed)
            layout.step(LAYOUT_EPOCHS)
            return layout.embedding

        embedding = watch.time("layout", run_layout)
        model = watch.time("fit", lambda: self.fit(data, seed))
        within = {f"fit_{stage}": seconds for stage, seconds in self.stage_times(model).items()}
        return watch.seconds | within, {"index": neighbors.index, "embedding": embedding}


class VicinalTSNE(Vicinal):
    name = "vicinal t-SNE"

    def load(self) -> None:
        import vicinal

        _ = vicinal.TSNE

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import vicinal

        return vicinal.TSNE(random_state=seed, n_jobs=-1).fit(data)


class VicinalDensMAP(Vicinal):
    name = "vicinal DensMAP"

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import vicinal

        return vicinal.DensMAP(random_state=seed, n_jobs=-1).fit(data)


class VicinalLargeVis(Vicinal):
    name = "vicinal LargeVis"

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import vicinal

        return vicinal.LargeVis(random_state=seed, n_jobs=-1).fit(data)


class VicinalProgressive(Vicinal):
    """A stream in batches of 1,000 rows, finished and polished."""

    name = "vicinal Progressive"

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import vicinal

        return vicinal.ProgressiveUMAP(random_state=seed, n_jobs=-1).fit(data).polish()


class VicinalAligned(Vicinal):
    """Two slices with the same rows, each related to itself; the map is that of the first."""

    name = "vicinal Aligned"

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import vicinal

        same = {row: row for row in range(len(data))}
        model = vicinal.AlignedUMAP(random_state=seed, n_jobs=-1).fit([data, data], relations=[same])
        return type("Map", (), {"embedding_": model.embeddings_[0]})


class VicinalParametric(Vicinal):
    name = "vicinal Parametric"
    packages = (*Vicinal.packages, "torch")

    def fit(self, data: np.ndarray, seed: int | None, **options: Any) -> Any:
        import vicinal

        return vicinal.ParametricUMAP(random_state=seed, n_jobs=-1, **options).fit(data)


class PaCMAP(System):
    name = "PaCMAP"
    packages = ("pacmap", "numba", "numpy", "scikit-learn")

    def load(self) -> None:
        import pacmap  # noqa: F401

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import pacmap

        return type("Map", (), {"embedding_": pacmap.PaCMAP(random_state=seed).fit_transform(data)})


class OpenTSNE(System):
    name = "openTSNE"
    packages = ("openTSNE", "numpy", "scipy", "scikit-learn")

    def load(self) -> None:
        import openTSNE  # noqa: F401

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import openTSNE

        embedding = openTSNE.TSNE(random_state=seed, n_jobs=available_cores()).fit(data)
        return type("Map", (), {"embedding_": np.asarray(embedding)})


class UmapLearn(System):
    name = "umap-learn"
    packages = ("umap-learn", "pynndescent", "numba", "numpy", "scipy", "scikit-learn")

    def load(self) -> None:
        import umap  # noqa: F401

    def fit(self, data: Any, seed: int | None, **options: Any) -> Any:
        import umap

        return umap.UMAP(random_state=seed, **options).fit(data)

    def stages(self, data: np.ndarray, seed: int) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        from umap.spectral import spectral_layout
        from umap.umap_ import fuzzy_simplicial_set, nearest_neighbors

        watch, random = Stopwatch(), np.random.RandomState(seed)
        index, distance, _ = watch.time(
            "neighbors", lambda: nearest_neighbors(data, N_NEIGHBORS, "euclidean", {}, False, random)
        )
        graph, _, _, _ = watch.time(
            "graph",
            lambda: fuzzy_simplicial_set(
                *(data, N_NEIGHBORS, random, "euclidean"),
                knn_indices=index,
                knn_dists=distance,
                # as `fit` passes it: with the default None, numba would compile another version
                return_dists=False,
            ),
        )
        watch.time("initialize", lambda: spectral_layout(data, graph, 2, random))
        embedding = watch.time("layout", self.prepare_layout(graph, random_positions(len(data), seed), random))
        # without a seed, because only then umap-learn's layout uses all cores
        watch.time("fit", lambda: self.fit(data, None))
        return watch.seconds, {"index": index, "embedding": embedding}

    def prepare_layout(self, graph: Any, embedding: np.ndarray, random: Any) -> Callable[[], np.ndarray]:
        """Do the same as `simplicial_set_embedding` before the layout, so that only the layout is timed."""
        from umap.layouts import optimize_layout_euclidean
        from umap.umap_ import find_ab_params, make_epochs_per_sample

        edges = graph.tocoo()
        edges.data[edges.data < edges.data.max() / LAYOUT_EPOCHS] = 0.0
        edges.eliminate_zeros()
        epochs_per_sample = make_epochs_per_sample(edges.data, LAYOUT_EPOCHS)
        a, b = find_ab_params(1.0, 0.1)
        state = random.randint(np.iinfo(np.int32).min + 1, np.iinfo(np.int32).max - 1, 3).astype(np.int64)
        return lambda: optimize_layout_euclidean(
            *(embedding, embedding, edges.row, edges.col, LAYOUT_EPOCHS, len(embedding), epochs_per_sample),
            *(a, b, state),
            parallel=True,
            move_other=True,
        )


class UmapDensmap(UmapLearn):
    name = "umap-learn densMAP"

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import umap

        return umap.UMAP(random_state=seed, densmap=True).fit(data)


class Pynndescent(System):
    name = "pynndescent"
    packages = ("pynndescent", "numba", "numpy")

    def load(self) -> None:
        import pynndescent  # noqa: F401

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        from pynndescent import NNDescent

        return NNDescent(data, n_neighbors=N_NEIGHBORS, random_state=seed).neighbor_graph

    def find_neighbors(self, data: np.ndarray, seed: int) -> np.ndarray:
        return self.fit(data, seed)[0]

    def stages(self, data: np.ndarray, seed: int) -> tuple[dict[str, float], dict[str, np.ndarray]]:
        watch = Stopwatch()
        index = watch.time("neighbors", lambda: self.find_neighbors(data, seed))
        return watch.seconds, {"index": index}


class Scranpy(System):
    """umappp, the C++ implementation, through its Python package."""

    name = "scranpy"
    packages = ("scranpy", "knncolle", "numpy")

    def load(self) -> None:
        import scranpy  # noqa: F401

    def fit(self, data: np.ndarray, seed: int | None) -> Any:
        import scranpy

        seeds = {} if seed is None else {"optimize_seed": seed, "initialize_seed": seed}
        embedding = scranpy.run_umap(data.T, num_threads=available_cores(), **seeds)
        return type("Map", (), {"embedding_": np.asarray(embedding)})


_ALL = (
    Vicinal(),
    VicinalTSNE(),
    VicinalDensMAP(),
    VicinalLargeVis(),
    VicinalProgressive(),
    VicinalAligned(),
    VicinalParametric(),
    UmapLearn(),
    UmapDensmap(),
    OpenTSNE(),
    PaCMAP(),
    Pynndescent(),
    Scranpy(),
)
SYSTEMS: dict[str, System] = {system.name: system for system in _ALL}
