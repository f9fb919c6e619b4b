"""Train parametric UMAP on one GPU, with a precomputed graph.

    python benchmarks/parametric_gpu.py graph --data rows.npy --graph graph.npz
    python benchmarks/parametric_gpu.py train --data rows.npy --graph graph.npz --maps maps.npz --out gpu.json
    python benchmarks/parametric_gpu.py score --data rows.npy --labels labels.npy --maps maps.npz --out gpu.json

The first 60,000 rows are for training, the others are new. The training time includes everything from the arrays on the
host to the embedding on the host: transfers, principal components, initialization, training, encoding. The first run
of a process also loads CUDA's kernels; every run is reported.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

TRAIN_ROWS = 60_000
SEED = 0


def make_graph(arguments: argparse.Namespace) -> None:
    from vicinal.graph.fuzzy import fuzzy_graph
    from vicinal.initialize.start import initial_embedding
    from vicinal.initialize.task import InitialTask
    from vicinal.neighbors.index import NeighborIndex

    X = np.load(arguments.data)[:TRAIN_ROWS]
    begin = perf_counter()
    graph = fuzzy_graph(NeighborIndex(X, "euclidean", seed=SEED).search(15, "auto"))
    start, used = initial_embedding("spectral", InitialTask(graph, X, 2, SEED))
    print(f"graph and {used} start: {perf_counter() - begin:.1f} s")
    np.savez(arguments.graph, indptr=graph.indptr, indices=graph.indices, weights=graph.weights, start=start)


def train_once(
    X: np.ndarray, unseen: np.ndarray, graph: Any, arguments: argparse.Namespace
) -> tuple[dict[str, float], Any, Any]:
    import torch

    from vicinal import Kernel, ParametricUMAP
    from vicinal.parametric.networks import Model, Shape
    from vicinal.parametric.training import Training, seeded

    begin = perf_counter()
    where = torch.device(arguments.device)
    with seeded(SEED, where):
        model = Model.build(Shape(X.shape[1], 2, (X.shape[1],)), "mlp", None, where)
        model.measure(X)
        built = perf_counter()
        parameters = ParametricUMAP(
            arguments.batch_size, learning_rate=arguments.learning_rate, n_epochs=arguments.n_epochs or None
        )
        training = Training(parameters, Kernel(1.577, 0.8951), model, X, SimpleNamespace(**graph), SEED)
        training.approach(graph["start"])
        history = training.run()
    trained = perf_counter()
    embedding = model.encode(X)
    encoded = perf_counter()
    moved = model.encode(unseen)
    seconds = {
        "build": built - begin,
        "train": trained - built,
        "encode_training_rows": encoded - trained,
        "total": encoded - begin,
        "transform_new_rows": perf_counter() - encoded,
        "epochs": training.n_epochs,
        "last_loss": history["loss"][-1],
    }
    return seconds, embedding, moved


def train(arguments: argparse.Namespace) -> None:
    import torch

    rows = np.load(arguments.data)
    X, unseen = np.ascontiguousarray(rows[:TRAIN_ROWS]), np.ascontiguousarray(rows[TRAIN_ROWS:])
    with np.load(arguments.graph, allow_pickle=False) as stored:
        graph = {name: stored[name] for name in stored.files}
    runs = []
    for repeat in range(arguments.repeats):
        seconds, embedding, moved = train_once(X, unseen, graph, arguments)
        runs.append(seconds)
        print(repeat, seconds, flush=True)
    np.savez(arguments.maps, embedding=embedding, moved=moved)
    document = {
        "device": torch.cuda.get_device_name() if arguments.device.startswith("cuda") else arguments.device,
        "torch": torch.__version__,
        "rows": len(X),
        "batch_size": arguments.batch_size,
        "learning_rate": arguments.learning_rate,
        "runs": runs,
    }
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")


def score(arguments: argparse.Namespace) -> None:
    """Add the quality of the last run's map to the results."""
    from scipy.spatial import cKDTree
    from score import majority, map_neighbors, sample_rows, trustworthiness

    rows, labels = np.load(arguments.data), np.load(arguments.labels).astype(np.int64)
    with np.load(arguments.maps, allow_pickle=False) as maps:
        embedding, moved = maps["embedding"], maps["moved"]
    chosen = sample_rows(TRAIN_ROWS)
    near = cKDTree(embedding).query(moved, k=5)[1]
    document = json.loads(arguments.out.read_text()) | {
        "trustworthiness_15": trustworthiness(rows[:TRAIN_ROWS], chosen, map_neighbors(embedding, chosen, 15)),
        "accuracy_5nn_new_rows": float((majority(labels[:TRAIN_ROWS][near]) == labels[TRAIN_ROWS:]).mean()),
    }
    print(json.dumps(document, indent=1))
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")


TASKS = {"graph": make_graph, "train": train, "score": score}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--graph", type=Path)
    parser.add_argument("--maps", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=3)
    # ParametricUMAP's defaults
    parser.add_argument("--batch-size", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=0.006)
    parser.add_argument("--n-epochs", type=int)
    arguments = parser.parse_args()
    TASKS[arguments.task](arguments)


if __name__ == "__main__":
    main()
