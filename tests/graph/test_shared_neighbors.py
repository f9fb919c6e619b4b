"""Neighbors chosen by the neighbors that rows have in common."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from vicinal import UMAP, find_neighbors
from vicinal.graph import fuzzy as shared_neighbors
from vicinal.graph.fuzzy import prefer_shared
from vicinal.neighbors.table import Neighbors
from vicinal.neighbors.training_data import SHORT_ROW, TrainingRows

TOPICS, TOPIC_WORDS = 12, 12


def documents(n: int = 600, seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray]:
    """Make rows with four words of their topic and five heavier ones, each of which one other row of any topic has."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(TOPICS, size=n)
    rare = rng.permutation(5 * n) // 2  # the number of every rare word occurs twice
    X = np.zeros((n, TOPICS * TOPIC_WORDS + 5 * n), dtype=np.float32)
    for row, own, words in zip(X, topic, rare.reshape(n, 5), strict=True):
        row[own * TOPIC_WORDS + rng.choice(TOPIC_WORDS, 4, replace=False)] = 1.0
        row[TOPICS * TOPIC_WORDS + words] = 2.0
    return sparse.csr_matrix(X), topic


def test_chosen_neighbors_are_those_of_the_formula() -> None:
    X, _ = documents(90)
    pool, k = find_neighbors(X, 22, metric="cosine"), 8
    chosen = prefer_shared(pool, k, 1.0)
    near = [set(row[:k]) for row in pool.index]
    for i in range(pool.n):
        value = [
            d - np.float32(len(near[i] & near[j]) / k)
            for j, d in zip(pool.index[i, 1:], pool.distance[i, 1:], strict=True)
        ]
        best = sorted(1 + np.argsort(np.asarray(value, dtype=np.float32), kind="stable")[: k - 1])
        np.testing.assert_array_equal(chosen.index[i], pool.index[i][[0, *best]])
        np.testing.assert_array_equal(chosen.distance[i], pool.distance[i][[0, *best]])


def test_blocks_do_not_change_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = find_neighbors(documents(90)[0], 22, metric="cosine")
    whole = prefer_shared(pool, 8, 1.0)
    monkeypatch.setattr(shared_neighbors, "BLOCK_PAIRS", 1)
    np.testing.assert_array_equal(prefer_shared(pool, 8, 1.0).index, whole.index)


def test_missing_neighbors_are_chosen_last() -> None:
    index = np.array([[0, 1, -1, -1], [1, 0, 2, -1], [2, 1, 0, -1]], dtype=np.int32)
    distance = np.array([[0, 0.5, np.inf, np.inf], [0, 0.5, 0.6, np.inf], [0, 0.6, 0.9, np.inf]], dtype=np.float32)
    chosen = prefer_shared(Neighbors(index, distance), 3, 1.0)
    np.testing.assert_array_equal(chosen.index, [[0, 1, -1], [1, 0, 2], [2, 1, 0]])


def test_graph_of_short_documents_joins_rows_of_one_topic() -> None:
    X, topic = documents()
    model = UMAP(metric="cosine", n_epochs=0, random_state=0).fit(X)

    def agreement(graph: sparse.csr_matrix) -> float:
        edges = graph.tocoo()
        return float((edges.data * (topic[edges.row] == topic[edges.col])).sum() / edges.data.sum())

    nearest = find_neighbors(X, 15, metric="cosine")
    plain = UMAP(metric="cosine", n_epochs=0, random_state=0, precomputed_knn=(nearest.index, nearest.distance)).fit(X)
    assert agreement(model.graph_) > agreement(plain.graph_) + 0.1
    # The table of the model is that of the nearest rows.
    np.testing.assert_array_equal(model.map_.neighbors.index, nearest.index)


def test_only_short_sparse_rows_prefer_shared_neighbors() -> None:
    X, _ = documents(60)
    assert TrainingRows(X, "cosine").prefers_shared
    assert TrainingRows(X, "jaccard").prefers_shared
    assert not TrainingRows(X, "euclidean").prefers_shared
    assert not TrainingRows(X.toarray(), "cosine").prefers_shared
    long = sparse.csr_matrix(np.random.default_rng(0).random((30, SHORT_ROW + 1)).astype(np.float32))
    assert not TrainingRows(long, "cosine").prefers_shared
