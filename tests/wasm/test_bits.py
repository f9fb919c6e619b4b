"""Fits in Node have the bits of the package: neighbors, graph, map and places of new rows."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from wasm import node
from wasm.defaults import camel

import vicinal
from vicinal.estimators.base import random_seed
from vicinal.graph.entropic import entropic_graph
from vicinal.graph.fuzzy import fuzzy_graph
from vicinal.graph.graph import Graph
from vicinal.layout.forces import fit_ab
from vicinal.neighbors.table import Neighbors

pytestmark = pytest.mark.skipif(bool(node.missing()), reason=node.missing())

Floats = NDArray[np.float32]
FRESH = 20


class Case(NamedTuple):
    n: int
    d: int
    parameters: dict[str, Any]
    apart: float = 0.0  # distance between two halves of the rows


CASES = {
    "plain": Case(300, 12, {}),
    "manhattan": Case(300, 12, {"metric": "manhattan", "n_epochs": 30}),
    "cosine": Case(300, 12, {"metric": "cosine", "n_epochs": 30}),
    "correlation": Case(300, 12, {"metric": "correlation", "n_epochs": 30}),
    "three components": Case(250, 8, {"n_components": 3, "min_dist": 0.3, "spread": 1.5, "n_epochs": 30}),
    "parameters": Case(
        250,
        8,
        {"n_neighbors": 7, "set_op_mix_ratio": 0.5, "local_connectivity": 2.0, "repulsion_strength": 0.7,
         "negative_sample_rate": 3, "learning_rate": 0.5, "update_negatives": True, "a": 1.2, "b": 0.8, "n_epochs": 40},
    ),
    "two halves": Case(300, 8, {"n_neighbors": 8, "n_epochs": 50}, apart=500.0),
    "isolated rows": Case(300, 6, {"disconnection_distance": 2.5, "n_epochs": 30}),
    "approximate": Case(6_100, 140, {"n_epochs": 3}),
}  # fmt: skip


def rows_of(case: Case) -> Floats:
    rng = np.random.default_rng(case.n + case.d)
    centers = 4.0 * rng.normal(size=(8, case.d))
    rows = centers[rng.integers(8, size=case.n + FRESH)] + rng.normal(size=(case.n + FRESH, case.d))
    rows[: case.n // 2] += case.apart
    rows[5] = rows[6]  # equal rows
    return np.ascontiguousarray(rows, dtype=np.float32)


def start_of(case: Case) -> Floats:
    shape = case.n, case.parameters.get("n_components", 2)
    return np.random.default_rng(1).uniform(0, 7, size=shape).astype(np.float32)


def queries_of(case: Case, name: str) -> Floats:
    rows = rows_of(case)
    # With a cut-off most new rows have no neighbors; those near rows of the fit have some.
    return rows[10:20] + np.float32(0.01) if name == "isolated rows" else np.concatenate([rows[case.n :], rows[10:13]])


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    calls = node.Calls(tmp_path_factory.mktemp("node"))
    for name, case in CASES.items():
        options = {camel(key): value for key, value in case.parameters.items()}
        options |= {"randomState": 42, "init": start_of(case)}
        calls.add("fit", options, rows=rows_of(case)[: case.n], fresh=queries_of(case, name))
    return dict(zip(CASES, calls.run(), strict=True))


@pytest.mark.parametrize("name", CASES)
def test_fit_and_transform_have_the_bits_of_umap(fitted: dict[str, dict[str, Any]], name: str) -> None:
    case, found = CASES[name], fitted[name]
    model = vicinal.UMAP(random_state=42, init=start_of(case), n_jobs=1, **case.parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of isolated rows
        model.fit(rows_of(case)[: case.n])
    related = model.map_.neighbors.within(case.parameters.get("disconnection_distance", np.inf))
    assert found["index"].tobytes() == related.index.tobytes()
    assert found["distance"].tobytes() == related.distance.tobytes()
    assert found["weights"].tobytes() == model.map_.graph.weights.tobytes()
    isolated = np.flatnonzero(model.map_.graph.isolated())
    assert found["isolated"] == isolated.tolist()
    places = found["embedding"].reshape(model.embedding_.shape)
    # Angles around the map come from the C library.
    linked = np.setdiff1d(np.arange(case.n), isolated)
    assert places[linked].tobytes() == model.embedding_[linked].tobytes()
    np.testing.assert_allclose(places[isolated], model.embedding_[isolated], rtol=1e-6)
    queries = queries_of(case, name)
    placed = found["placed"].reshape(len(queries), -1)
    own = np.isin(np.arange(10, 20), isolated) if name == "isolated rows" else np.zeros(len(queries), dtype=bool)
    assert placed[~own].tobytes() == model.transform(queries)[~own].tobytes()
    assert name != "isolated rows" or isolated.size > 0


def table(n: int, k: int, seed: int = 0) -> tuple[Floats, Neighbors]:
    rows = np.random.default_rng(seed).normal(size=(n, 6)).astype(np.float32)
    return rows, vicinal.find_neighbors(rows, k)


def test_layouts_of_other_methods_follow_the_estimators(tmp_path: Path) -> None:
    n = 200
    rows, neighbors = table(n, 25)
    start = np.random.default_rng(2).uniform(0, 10, size=(n, 2)).astype(np.float32)
    calls = node.Calls(tmp_path)
    options = {"randomState": 7, "init": start, "nEpochs": 60}
    fresh = rows[:9] + np.float32(0.1)
    for method in ("largevis", "densmap", "tsne"):
        places = {"fresh": fresh} if method == "largevis" else {}
        calls.add("fit", options | {"method": method}, rows=rows, **places)
    largevis, densmap, tsne = calls.run()
    given = {"random_state": 7, "n_jobs": 1}
    expected = vicinal.LargeVis(init=start, n_epochs=60, **given).fit(rows)
    assert largevis["embedding"].tobytes() == expected.embedding_.tobytes()
    assert largevis["placed"].tobytes() == expected.transform(fresh).tobytes()
    # The logarithms of radii come from the C library, and a layout amplifies differences in the last bits.
    dense = vicinal.DensMAP(init=start, n_epochs=60, **given).fit(rows)
    assert densmap["weights"].tobytes() == dense.map_.graph.weights.tobytes()
    plain = vicinal.UMAP(init=start, n_epochs=60, **given).fit(rows)
    apart = np.abs(densmap["embedding"].reshape(n, 2) - dense.embedding_).mean()
    assert apart < 0.2 * np.abs(plain.embedding_ - dense.embedding_).mean()
    # Means and deviations of the start are summed in another order.
    student = vicinal.TSNE(init=start, max_iter=60, method="exact", **given).fit(rows)
    assert tsne["weights"].tobytes() == student.map_.graph.weights.tobytes()
    np.testing.assert_allclose(tsne["embedding"].reshape(n, 2), student.embedding_, rtol=0.05, atol=0.05)
    assert neighbors.n == n


def test_steps_and_graphs_of_other_origin_have_the_same_bits(tmp_path: Path) -> None:
    n = 150
    _, neighbors = table(n, 10, seed=3)
    graph = fuzzy_graph(neighbors)
    start = np.random.default_rng(4).uniform(0, 10, size=(n, 2)).astype(np.float32)
    calls = node.Calls(tmp_path)
    calls.add("graph", neighbors=neighbors, k=10)
    calls.add("graph", {"method": "largevis", "perplexity": 3}, neighbors=neighbors, k=10)
    calls.add("layout", {"seed": 5}, graph=graph, start=start)
    calls.add("layout", {"seed": 5}, graph=graph, start=start, steps=[1, 99, 400])
    made, entropic, whole, stepped = calls.run()
    assert_same_graph(made, graph)
    assert_same_graph(entropic, entropic_graph(neighbors, 3.0, normalized=False))
    assert whole["embedding"].tobytes() == stepped["embedding"].tobytes()
    assert whole["nEpochs"] == 500


def assert_same_graph(found: dict[str, Any], graph: Graph) -> None:
    assert found["indptr"].tolist() == graph.indptr.tolist()
    assert found["indices"].tobytes() == graph.indices.tobytes()
    assert found["weights"].tobytes() == graph.weights.tobytes()


def test_spectral_start_has_the_shape_of_the_package_s(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(600, 5)), 30 + rng.normal(size=(300, 5))]).astype(np.float32)
    one, two = (fuzzy_graph(vicinal.find_neighbors(part, 12)) for part in (rows[:600], rows))
    calls = node.Calls(tmp_path)
    calls.add("start", {"seed": 0}, graph=one)
    calls.add("start", {"seed": 0}, graph=two, rows=rows)
    calls.add("start", {"init": "random"}, graph=one)
    connected, apart, scattered = (answer["places"].reshape(-1, 2) for answer in calls.run())
    # Both differ in their noise of 1e-4 and in the medians of the evened axes' last bits only.
    np.testing.assert_allclose(connected, vicinal.spectral_start(one), atol=5e-3)
    expected = vicinal.spectral_start(two, rows)
    gap = np.linalg.norm(apart[:600].mean(axis=0) - apart[600:].mean(axis=0))
    assert gap == pytest.approx(np.linalg.norm(expected[:600].mean(axis=0) - expected[600:].mean(axis=0)), rel=0.5)
    assert gap > apart[600:].std()
    assert scattered.min() == 0
    assert scattered.max() == 10
    assert len(np.unique(scattered[:, 0])) == 600


@pytest.mark.parametrize("seed", [0, 1, 42, 2**32 - 1])
def test_random_state_stands_for_the_same_seed(tmp_path: Path, seed: int) -> None:
    _, neighbors = table(60, 5)
    graph, start = fuzzy_graph(neighbors), np.random.default_rng(0).uniform(0, 9, size=(60, 2)).astype(np.float32)
    calls = node.Calls(tmp_path)
    for options in ({"randomState": seed}, {"seed": random_seed(seed)}):
        calls.add("layout", options | {"nEpochs": 5}, graph=graph, start=start)
    by_state, by_seed = calls.run()
    assert by_state["embedding"].tobytes() == by_seed["embedding"].tobytes()


def test_kernels_are_those_of_the_package(tmp_path: Path) -> None:
    _, neighbors = table(60, 5)
    graph, start = fuzzy_graph(neighbors), np.random.default_rng(0).uniform(0, 9, size=(60, 2)).astype(np.float32)
    calls = node.Calls(tmp_path)
    curves = [(0.0, 1.0), (0.001, 1.0), (0.25, 1.0), (0.99, 1.0), (0.5, 2.0), (0.1, 0.3), (5.0, 40.0)]
    for min_dist, spread in curves:
        kernel = fit_ab(spread, min_dist)
        for options in ({"minDist": min_dist, "spread": spread}, {"a": kernel.a, "b": kernel.b}):
            calls.add("layout", options | {"nEpochs": 5}, graph=graph, start=start)
    places = [answer["embedding"].tobytes() for answer in calls.run()]
    assert places[::2] == places[1::2]


REFUSED = {
    "unknown": ({"neighbours": 5}, [[0], [1]], "TypeError", "unknown option neighbours; options are a, b, "),
    "fraction": ({"nNeighbors": 1.5}, [[0], [1]], "RangeError", "nNeighbors must be a whole number from 2 to"),
    "text": ({"minDist": "0.1"}, [[0], [1]], "RangeError", "minDist must be a number from 0 to"),
    "curve": ({"minDist": 2}, [[0], [1]], "RangeError", "minDist must not exceed spread, got minDist 2, spread 1"),
    "metric": ({"metric": "jaccard"}, [[0], [1]], "TypeError", "metric must be one of euclidean, manhattan"),
    "method": ({"method": "pca"}, [[0], [1]], "TypeError", "method must be one of umap, densmap, largevis, tsne"),
    "init": ({"init": "auto"}, [[0], [1]], "TypeError", 'init must be "spectral", "random" or an array, got "auto"'),
    "init shape": ({"init": [[0, 1]]}, [[0], [1]], "RangeError", "init must have 2 * 2 numbers, got 2"),
    "pair": ({"a": 1}, [[0], [1]], "TypeError", "a and b must be given together"),
    "one row": ({}, [[0]], "RangeError", "a fit needs at least 2 rows, got 1"),
    "ragged": ({}, [[0, 1], [1]], "RangeError", "rows must have 2 columns as row 0, row 1 has 1"),
    "null": ({}, [[0], [None]], "TypeError", "rows contains null, in row 1, column 0"),
    "large": ({}, [[0], [1e30]], "RangeError", "rows must have a largest magnitude from 1e-12 to 1000000000000000"),
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    calls = node.Calls(tmp_path_factory.mktemp("refused"))
    for options, rows, _, _ in REFUSED.values():
        calls.add("refused", options, rows=rows)
    return dict(zip(REFUSED, calls.run(), strict=True))


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_is_refused_by_name(refusals: dict[str, dict[str, Any]], name: str) -> None:
    _, _, kind, message = REFUSED[name]
    assert refusals[name]["name"] == kind
    assert refusals[name]["message"].startswith(message)
