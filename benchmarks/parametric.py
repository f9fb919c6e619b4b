"""Compare parametric UMAP with its bars: `python benchmarks/parametric.py [TASK...] [--n-jobs N]`.

Results go to `results/parametric.json`. Tasks: fashion digits autoencoder semi_supervised landmarks (default: all). Use
the interpreter of the package's own environment; umap-learn, for its `inverse_transform`, is expected in `.venv-bench`
in the repository (or see --peer-python). Only the training on Fashion-MNIST and the embedding of its 10,000 test rows
are timed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from datasets import open_dataset
from machine import describe_machine
from release import measured_code, read_result
from scipy.spatial import cKDTree
from score import majority, map_neighbors, sample_rows, trustworthiness

from vicinal import UMAP, ParametricUMAP

HERE = Path(__file__).resolve().parent
TRAIN_ROWS = 60_000
SEEDS = (0, 1, 2)
LABELED_SHARE = 0.05
NEW_CLASS = 9

Record = dict[str, Any]

INVERSE = """
import sys, numpy as np, umap
train, test = np.load(sys.argv[1]), np.load(sys.argv[2])
errors = []
for seed in (0, 1, 2):
    model = umap.UMAP(random_state=seed, n_jobs=1).fit(train)
    errors.append(float(np.square(model.inverse_transform(model.transform(test)) - test).mean()))
print(errors)
"""


def accuracy(train_map: np.ndarray, train_labels: np.ndarray, moved: np.ndarray, labels: np.ndarray) -> float:
    """Return the 5-NN label accuracy of new rows among the training rows of the map."""
    near = cKDTree(train_map).query(moved, k=5)[1]
    return float((majority(train_labels[near]) == labels).mean())


def trust(X: np.ndarray, embedding: np.ndarray) -> float:
    chosen = sample_rows(len(X))
    return trustworthiness(X, chosen, map_neighbors(embedding, chosen, 15))


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training rows, held-out rows (one fifth), and their labels."""
    dataset = open_dataset("digits", None)
    X, y = np.asarray(dataset.data()), np.asarray(dataset.labels()).astype(np.int64)
    order = np.random.default_rng(0).permutation(len(X))
    held, train = order[: len(X) // 5], order[len(X) // 5 :]
    return X[train], X[held], y[train], y[held]


def fashion(arguments: argparse.Namespace) -> Record:
    """Trustworthiness >= 0.965 and 5-NN accuracy of test rows >= 0.73 within 600 s; 10,000 new rows in 0.2 s."""
    dataset = open_dataset("fashion", None)
    rows, labels = np.asarray(dataset.data()), np.asarray(dataset.labels()).astype(np.int64)
    X, unseen = np.ascontiguousarray(rows[:TRAIN_ROWS]), np.ascontiguousarray(rows[TRAIN_ROWS:])
    begin, cpu = perf_counter(), process_time()
    model = ParametricUMAP(random_state=0, n_jobs=arguments.n_jobs).fit(X)
    seconds, cpu_seconds = perf_counter() - begin, process_time() - cpu
    model.transform(unseen[:100])
    calls = []
    for _ in range(7):
        begin = perf_counter()
        moved = model.transform(unseen)
        calls.append(perf_counter() - begin)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,
        "stages": model.stage_times_,
        "transform_10000": calls,
        "trustworthiness_15": trust(X, model.embedding_),
        "accuracy_5nn_new_rows": accuracy(model.embedding_, labels[:TRAIN_ROWS], moved, labels[TRAIN_ROWS:]),
    }


def digits_quality(arguments: argparse.Namespace) -> Record:
    """Trustworthiness within 0.01 of UMAP's."""
    X = np.asarray(open_dataset("digits", None).data())
    own = [trust(X, ParametricUMAP(random_state=s, n_jobs=arguments.n_jobs).fit(X).embedding_) for s in SEEDS]
    return {"parametric": own, "umap": [trust(X, UMAP(random_state=s).fit(X).embedding_) for s in SEEDS]}


def autoencoder(arguments: argparse.Namespace) -> Record:
    """Squared error of held-out digits at most 0.8 of that of umap-learn's inverse_transform."""
    X, held, _, _ = digits()
    errors: dict[str, list[float]] = {"joint": [], "detached": []}
    for seed in SEEDS:
        for name, joint in (("joint", True), ("detached", False)):
            model = ParametricUMAP(
                parametric_reconstruction=True, autoencoder_loss=joint, random_state=seed, n_jobs=arguments.n_jobs
            ).fit(X)
            decoded = model.inverse_transform(model.transform(held))
            errors[name].append(float(np.square(decoded - held).mean()))
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("train.npy", "held.npy")]
        for file, array in zip(files, (X, held), strict=True):
            np.save(file, array)
        command = [arguments.peer_python, "-c", INVERSE, *files]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {**errors, "umap_learn": json.loads(done.stdout.splitlines()[-1])}


def semi_supervised(arguments: argparse.Namespace) -> Record:
    """5-NN accuracy of held-out digits: with 5 % of the labels better than without."""
    X, held, y, y_held = digits()
    found: dict[str, list[float]] = {"unsupervised": [], "semi_supervised": [], "supervised": []}
    for seed in SEEDS:
        some = np.where(np.random.default_rng(seed).random(len(y)) < LABELED_SHARE, y, -1)
        for name, labels in (("unsupervised", None), ("semi_supervised", some), ("supervised", y)):
            model = ParametricUMAP(random_state=seed, n_jobs=arguments.n_jobs).fit(X, labels)
            found[name].append(accuracy(model.embedding_, y, model.transform(held), y_held))
    return found


def landmarks(arguments: argparse.Namespace) -> Record:
    """Retraining on digits plus a new class moves landmarks by at most 2 % of the map's extent."""
    dataset = open_dataset("digits", None)
    X, y = np.asarray(dataset.data()), np.asarray(dataset.labels()).astype(np.int64)
    old = X[y != NEW_CLASS]
    records = []
    for seed in SEEDS:
        model = ParametricUMAP(random_state=seed, n_jobs=arguments.n_jobs).fit(old)
        before = model.embedding_
        marks = np.random.default_rng(seed).choice(len(old), len(old) // 10, replace=False)
        model.add_landmarks(old, sample_mode="predetermined", idx=marks).fit(X)
        drift = np.linalg.norm(model.transform(old) - before, axis=1) / np.ptp(before, axis=0).max()
        records.append(
            {
                "mean_landmark_drift": float(drift[marks].mean()),
                "mean_drift_of_old_rows": float(drift.mean()),
                "trustworthiness_15": trust(X, model.embedding_),
                "accuracy_5nn": accuracy(model.embedding_, y, model.embedding_, y),
            }
        )
    return {"runs": records}


TASKS: dict[str, Callable[[argparse.Namespace], Record]] = {
    "fashion": fashion,
    "digits": digits_quality,
    "autoencoder": autoencoder,
    "semi_supervised": semi_supervised,
    "landmarks": landmarks,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=", ".join(TASKS))
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--peer-python", type=Path, default=HERE.parent / ".venv-bench" / "bin" / "python")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "parametric.json")
    arguments = parser.parse_args()
    document = read_result(arguments.out) or {"records": {}}
    document |= {"suite": "parametric", "code": measured_code(), "machine": describe_machine()}
    for name in arguments.tasks or TASKS:
        document["records"][name] = {"bar": TASKS[name].__doc__, **TASKS[name](arguments)}
        print(name, json.dumps(document["records"][name], indent=1), flush=True)
        arguments.out.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
