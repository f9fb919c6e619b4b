"""Trains parametric UMAP on one GPU, on a graph that was made before; only torch, NumPy and SciPy are needed there.

    python benchmarks/parametric_gpu.py graph --data rows.npy --graph graph.npz            # where vicinal is built
    python benchmarks/parametric_gpu.py train --data rows.npy --labels labels.npy --graph graph.npz --out gpu.json

The first 60,000 rows are trained on, the rest are new. The time of training covers everything from the host's arrays
to the embedding on the host: transfers, principal components, start, training, encoding. The first run of a process
also pays for loading CUDA's kernels; it is reported apart.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

TRAIN_ROWS = 60_000
SEED = 0


def make_graph(arguments: argparse.Namespace) -> None:
    from vicinal.graph import fuzzy_graph
    from vicinal.initialize import InitialTask, initial_embedding
    from vicinal.neighbors import NeighborIndex

    X = np.load(arguments.data)[:TRAIN_ROWS]
    begin = perf_counter()
    graph = fuzzy_graph(NeighborIndex(X, "euclidean", seed=SEED).search(15, "auto"))
    start, used = initial_embedding("spectral", InitialTask(graph, X, 2, SEED))
    print(f"graph and {used} start: {perf_counter() - begin:.1f} s")
    np.savez(arguments.graph, indptr=graph.indptr, indices=graph.indices, weights=graph.weights, start=start)


def train_once(X: np.ndarray, unseen: np.ndarray, graph: Any, device: str) -> tuple[dict[str, float], Any, Any]:
    import torch

    from vicinal.kernel import Kernel
    from vicinal.parametric.encoders import Shape
    from vicinal.parametric.fitting import Data, Objective, default_epochs, fit_model
    from vicinal.parametric.model import Model
    from vicinal.parametric.training import Plan, seeded

    begin = perf_counter()
    where = torch.device(device)
    with seeded(SEED, where):
        model = Model.build(Shape(X.shape[1], 2, (X.shape[1],)), "mlp", None, where)
        model.measure(X)
        built = perf_counter()
        data = Data(X, graph["indptr"], graph["indices"], graph["weights"], graph["start"])
        # ParametricUMAP's defaults.
        plan = Plan(0.006, 512, default_epochs(data), clip_norm=1.0)
        history = fit_model(model, data, Objective(Kernel(1.577, 0.8951)), plan, seed=SEED)
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
        "epochs": plan.n_epochs,
        "last_loss": history["loss"][-1],
    }
    return seconds, embedding, moved


def train(arguments: argparse.Namespace) -> None:
    import torch
    from score import majority, map_neighbors, sample_rows, trustworthiness

    rows, labels = np.load(arguments.data), np.load(arguments.labels).astype(np.int64)
    X, unseen = np.ascontiguousarray(rows[:TRAIN_ROWS]), np.ascontiguousarray(rows[TRAIN_ROWS:])
    with np.load(arguments.graph, allow_pickle=False) as stored:
        graph = {name: stored[name] for name in stored.files}
    runs = []
    for repeat in range(arguments.repeats):
        seconds, embedding, moved = train_once(X, unseen, graph, arguments.device)
        runs.append(seconds)
        print(repeat, seconds, flush=True)
    chosen = sample_rows(len(X))
    from scipy.spatial import cKDTree

    near = cKDTree(embedding).query(moved, k=5)[1]
    document = {
        "device": torch.cuda.get_device_name() if arguments.device.startswith("cuda") else arguments.device,
        "torch": torch.__version__,
        "rows": len(X),
        "runs": runs,
        "trustworthiness_15": trustworthiness(X, chosen, map_neighbors(embedding, chosen, 15)),
        "accuracy_5nn_new_rows": float((majority(labels[:TRAIN_ROWS][near]) == labels[TRAIN_ROWS:]).mean()),
    }
    print(json.dumps(document, indent=1))
    Path(arguments.out).write_text(json.dumps(document, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["graph", "train"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--graph", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("parametric_gpu.json"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    make_graph(arguments) if arguments.task == "graph" else train(arguments)


if __name__ == "__main__":
    main()
