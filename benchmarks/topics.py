"""Sparse rows similar to TF-IDF weights of documents: 20 topics over words with frequencies proportional to 1 / rank.

60 % of the words of a document are drawn from the whole vocabulary, 40 % from its topic, which prefers 2,000 words. A
document keeps 100 distinct words; counts are weighted by the inverse document frequency and rows are scaled to unit
length.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

ROWS, WORDS, TOPICS = 20_000, 50_000, 20
WORDS_A_ROW, DRAWS_A_ROW = 100, 300
TOPIC_WORDS, TOPIC_SHARE = 2_000, 0.4
SEED = 20240229


def make_topics() -> tuple[sparse.csr_matrix, np.ndarray]:
    rng = np.random.default_rng(SEED)
    falling = 1.0 / np.arange(1, WORDS + 1)
    labels = rng.integers(TOPICS, size=ROWS)
    columns, counts = [], []
    chances = [topic_chances(rng, falling) for _ in range(TOPICS)]
    for topic in labels:
        drawn = np.searchsorted(chances[topic], rng.random(DRAWS_A_ROW))
        words, times = np.unique(drawn, return_counts=True)
        kept = np.sort(rng.choice(len(words), min(WORDS_A_ROW, len(words)), replace=False))
        columns.append(words[kept])
        counts.append(times[kept])
    indptr = np.concatenate([[0], np.cumsum([len(words) for words in columns])])
    indices = np.concatenate(columns).astype(np.int32)
    rarity = np.log((1 + ROWS) / (1 + np.bincount(indices, minlength=WORDS))) + 1.0
    values = np.concatenate(counts) * rarity[indices]
    length = np.sqrt(np.add.reduceat(values**2, indptr[:-1]))
    values /= np.repeat(length, np.diff(indptr))
    return sparse.csr_matrix((values.astype(np.float32), indices, indptr), shape=(ROWS, WORDS)), labels


def topic_chances(rng: np.random.Generator, falling: np.ndarray) -> np.ndarray:
    """Return the cumulative probabilities of the words in a topic."""
    chance = (1.0 - TOPIC_SHARE) * falling / falling.sum()
    favored = rng.choice(WORDS, TOPIC_WORDS, replace=False)
    weight = falling[:TOPIC_WORDS]
    chance[favored] += TOPIC_SHARE * weight / weight.sum()
    return np.cumsum(chance / chance.sum())
