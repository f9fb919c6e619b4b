"""Rows with very many columns: memory and time depend on what is stored and used, not on the width."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from vicinal import NeighborIndex, find_neighbors, fuzzy_graph
from vicinal.neighbors.metrics import METRICS
from vicinal.runtime.inputs import MOST_COLUMNS

needs_proc = pytest.mark.requires_proc

PEAK = """
from pathlib import Path
def peak():
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1e3
import numpy as np
import vicinal
vicinal.find_neighbors(np.eye(5), 2)
{rows}
before = peak()
vicinal.find_neighbors(X, 5)
print(peak() - before)
"""


def megabytes(rows: str, environment: dict[str, str]) -> float:
    """Return by how much a search of the rows increases the peak memory of a process."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK.format(rows=rows)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@needs_proc
def test_few_rows_are_compared_without_a_basis(child_environment: dict[str, str]) -> None:
    """A basis of a million columns takes half a gigabyte, and longer than comparing all rows."""
    assert megabytes("X = np.ones((20, 1_000_000), np.float32)", child_environment) < 150


@needs_proc
def test_memory_of_sparse_rows_depends_on_their_entries(child_environment: dict[str, str]) -> None:
    rows = (
        "from scipy.sparse import csr_matrix\n"
        "X = csr_matrix((np.ones(50, np.float32), (np.arange(50), np.arange(50) * 2**22)), shape=(50, 2**31 - 1))"
    )
    assert megabytes(rows, child_environment) < 50


def sparse_rows(columns: np.ndarray, width: int) -> csr_matrix:
    rng = np.random.default_rng(0)
    where = rng.integers(len(columns), size=(300, 12)), np.repeat(np.arange(300)[:, None], 12, axis=1)
    out = csr_matrix((rng.random(3600, dtype=np.float32), (where[1].ravel(), columns[where[0].ravel()])), (300, width))
    out.sum_duplicates()
    return out


@pytest.mark.parametrize("metric", [name for name, facts in METRICS.items() if facts.sparse and not facts.keywords])
def test_unused_columns_do_not_change_neighbors(metric: str) -> None:
    """Lists of the stored columns alone give the neighbors that lists of all columns give."""
    columns = np.sort(np.random.default_rng(1).choice(MOST_COLUMNS, 200, replace=False))
    narrow, wide = sparse_rows(np.arange(200), 200), sparse_rows(columns, MOST_COLUMNS)
    # Distances of some metrics depend on the number of columns, and their order does not.
    few, many = NeighborIndex(narrow[:250], metric), NeighborIndex(wide[:250], metric)
    expected, found = few.search(6), many.search(6)
    scaled = metric in ("hamming", "matching", "rogerstanimoto", "russellrao", "sokalmichener", "kulsinski", "yule")
    if scaled or metric == "correlation":
        assert np.isfinite(found.distance).all()
        return
    np.testing.assert_array_equal(found.index, expected.index)
    np.testing.assert_array_equal(found.distance, expected.distance)
    graph = fuzzy_graph(expected)
    queried, sought = many.query(wide[250:], 6, graph), few.query(narrow[250:], 6, graph)
    np.testing.assert_array_equal(queried.index, sought.index)
    np.testing.assert_array_equal(queried.distance, sought.distance)


@pytest.mark.parametrize("n", [200, 500, 600])
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "chebyshev"])
def test_rows_longer_than_a_sketch_have_exact_neighbors(n: int, metric: str) -> None:
    from scipy.spatial.distance import cdist

    X = np.random.default_rng(n).normal(size=(n + 20, 300)).astype(np.float32)
    expected = cdist(X, X, {"manhattan": "cityblock"}.get(metric, metric))
    index = NeighborIndex(X[:n], metric)
    table = index.search(8, "exact")
    np.testing.assert_allclose(table.distance[:, 1:], np.sort(expected[:n, :n], axis=1)[:, 1:8], rtol=1e-4)
    queried = index.query(X[n:], 8, fuzzy_graph(table), table.share)
    np.testing.assert_allclose(queried.distance, np.sort(expected[n:, :n], axis=1)[:, :8], rtol=1e-4)


def test_approximate_search_of_few_long_rows_finds_most_neighbors() -> None:
    X = np.random.default_rng(0).normal(size=(400, 300)).astype(np.float32)
    found, exact = find_neighbors(X, 10, method="approximate"), find_neighbors(X, 10, method="exact")
    assert np.mean(found.distance <= exact.distance[:, -1:] * 1.0001) > 0.9
