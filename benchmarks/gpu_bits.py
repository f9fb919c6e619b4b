"""What must have the same bits on a GPU as on the CPU, compared (a part of gpu.py)."""

from __future__ import annotations

import pickle
import time
from typing import Any

import cupy as cp
import numpy as np

import vicinal
from vicinal import Layout, Schedule, find_neighbors, fit_ab, fuzzy_graph


def same_bits(a: Any, b: Any) -> bool:
    """Tell whether two arrays of float32 have the same bits."""
    return bool(np.array_equal(np.asarray(a).view(np.uint32), np.asarray(b).view(np.uint32)))


def layout_pair(rows: int, dim: int, moving: bool, fixed: bool, epochs: int) -> bool:
    """Tell whether a layout has the same bits on both processors."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(rows, 12)).astype(np.float32)
    graph = fuzzy_graph(find_neighbors(X, 15))
    start = rng.uniform(0, 10, (rows, dim)).astype(np.float32)
    mask = np.arange(rows) % 5 == 0 if fixed else None
    weights = rng.uniform(0.5, 2.0, rows).astype(np.float32) if fixed else None
    maps = []
    for device in ("cpu", "cuda"):
        schedule = Schedule(epochs, update_negatives=moving)
        layout = Layout(graph, start, fit_ab(), schedule, seed=3, fixed=mask, negative_weights=weights, device=device)
        layout.step(epochs // 2)
        layout.step(epochs - epochs // 2)
        maps.append(layout.embedding)
    return same_bits(*maps)


def bits() -> dict[str, Any]:
    """Compare every stage that must have the CPU's bits."""
    out: dict[str, Any] = {}
    for name, arguments in {
        "layout 2": (5000, 2, False, False, 50),
        "layout 3, pins, weighted negatives": (3000, 3, False, True, 20),
        "layout 2, moving negatives": (3000, 2, True, False, 20),
    }.items():
        start = time.perf_counter()
        out[name] = layout_pair(*arguments), round(time.perf_counter() - start, 2)
        print(name, out[name], flush=True)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(3000, 40)).astype(np.float32)
    X[10:20] = X[10]
    for d in (40, 300):
        rows = X if d == 40 else rng.normal(size=(3000, d)).astype(np.float32)
        for metric in ("euclidean", "cosine", "correlation", "manhattan", "chebyshev"):
            a = find_neighbors(rows, 15, metric=metric, method="exact")
            b = find_neighbors(rows, 15, metric=metric, method="exact", device="cuda")
            out[f"exact {metric} {d}"] = bool(np.array_equal(a.index, b.index)), same_bits(a.distance, b.distance)
            print(metric, d, out[f"exact {metric} {d}"], flush=True)
    table = find_neighbors(X, 15)
    a, b = fuzzy_graph(table, set_op_mix_ratio=0.7), fuzzy_graph(table, set_op_mix_ratio=0.7, device="cuda")
    parts = ("indptr", "indices", "weights", "rho", "sigma")
    out["graph"] = {part: bool(np.array_equal(getattr(a, part), getattr(b, part))) for part in parts}
    print("graph", out["graph"], flush=True)
    out["libraries"] = libraries(X)
    print("libraries", out["libraries"], flush=True)
    out |= whole_fits(X)
    return out


def whole_fits(X: np.ndarray) -> dict[str, Any]:
    """Compare whole fits and placements of both processors."""
    mask = np.arange(len(X)) % 5 == 0
    pins = {"fixed_mask": mask, "fixed_positions": np.where(mask[:, None], X[:, :2], 0.0)}
    kinds: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "fit of 3,000 rows": ({}, {}),
        "densMAP": ({"densmap": True, "n_epochs": 100}, {}),
        "pins": ({"n_epochs": 100}, pins),
        "3 components": ({"n_components": 3, "n_epochs": 100}, {}),
    }
    out = {}
    for name, (parameters, given) in kinds.items():
        start = time.perf_counter()
        models = [vicinal.UMAP(random_state=0, device=d, **parameters).fit(X, **given) for d in ("cpu", "cuda")]
        out[name] = same_bits(*(model.embedding_ for model in models)), round(time.perf_counter() - start, 2)
        print(name, out[name], flush=True)
        if name == "fit of 3,000 rows":
            new = X[:500] + np.float32(0.05)
            there, moved = models[1].transform(new), pickle.loads(pickle.dumps(models[1])).transform(new)
            out["transform of 500 rows"] = same_bits(models[0].transform(new), there) and same_bits(moved, there)
            print("transform", out["transform of 500 rows"], flush=True)
    return out


def libraries(X: np.ndarray) -> dict[str, str]:
    """Return the kinds of results for rows of several libraries."""
    import torch

    model = vicinal.UMAP(random_state=0, n_epochs=20)
    given = {"cupy": cp.asarray(X), "torch": torch.as_tensor(X).cuda(), "numpy": X}
    kinds = {}
    for name, rows in given.items():
        fitted = model.fit_transform(rows)
        placed = model.transform(rows[:10] + 0.01)
        kinds[name] = f"{type(fitted).__module__} {type(placed).__module__} {getattr(fitted, 'device', '')}"
    return kinds
