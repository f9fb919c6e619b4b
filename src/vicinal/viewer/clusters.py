"""Name the clusters of a map without labels by the words, categories or numbers that are typical of their rows.

Clusters are found by HDBSCAN on a sample of the points at several resolutions. A text column gives the words that are
most particular to a cluster (class-based TF-IDF: Grootendorst 2022, arXiv:2203.05794); otherwise a cluster is named by
its most enriched category, or by the number that differs most from the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.data_table import Column, Role

Floats = NDArray[np.float64]

SAMPLE = 6000
FEWEST_ROWS = 200
# Smallest cluster of each resolution, as a fraction of the sample, from coarse to fine.
RESOLUTIONS = (1 / 12, 1 / 40, 1 / 120)
SMALLEST = 12
WORDS = 3
SHORTEST_WORD = 3
# A column with more distinct texts than this has no categories.
MOST_CATEGORIES = 64
MOST_WORDS = 20_000
# A name must set its cluster apart by this much: ratio of shares for categories, standard deviations for numbers.
LEAST_LIFT, LEAST_EFFECT = 1.5, 0.5
SEED = 0
STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        "the and for with that this from are was were has have had not but its his her their our your they them then "
        "which who whom what when where will would can could may might into onto over under about between through also "
        "these those there here been being one two using used use based more most other some only all any each both "
        "you she him how why out off per via upon such very than",
    )
)


def named_clusters(positions: Floats, columns: Sequence[Column]) -> list[dict[str, Any]]:
    """Return named clusters with places, sizes and levels; none if there are labels or nothing gives names."""
    n = len(positions)
    described = {one.name: one.values for one in columns if one.role in (Role.DISPLAY, Role.FEATURE)}
    if any(one.role is Role.LABEL for one in columns) or n < FEWEST_ROWS:
        return []
    rng = np.random.default_rng(SEED)
    rows = np.sort(rng.choice(n, min(n, SAMPLE), replace=False))
    entries = {name: values[rows].tolist() for name, values in described.items() if values is not None}
    namer = _namer(entries)
    if namer is None:
        return []
    found: list[dict[str, Any]] = []
    for members, middle, level in _areas(positions[rows]):
        name, size = namer(members), round(len(members) * n / len(rows))
        # a coarser cluster at nearly the same place may have the name already
        if name and not any(other["name"] == name and other["size"] <= 3 * size for other in found):
            found.append({"name": name, "place": middle.tolist(), "size": size, "level": level})
    return found


def _areas(places: Floats) -> Iterator[tuple[NDArray[np.int64], Floats, int]]:
    """Yield clusters: their rows, the point nearest to their middle, and the number of their resolution."""
    from sklearn.cluster import HDBSCAN

    for level, share in enumerate(RESOLUTIONS):
        smallest = max(SMALLEST, round(share * len(places)))
        labels = HDBSCAN(min_cluster_size=smallest, min_samples=5, copy=True).fit_predict(places)
        for label in range(labels.max() + 1):
            rows = np.flatnonzero(labels == label)
            middle = np.median(places[rows], axis=0)
            yield rows, places[rows[np.linalg.norm(places[rows] - middle, axis=1).argmin()]], level


def _namer(entries: dict[str, list[Any]]) -> Callable[[NDArray[np.int64]], str] | None:
    """Return a function that names rows by the columns of all rows, or None if no column gives names."""
    texts = _longest_texts(entries)
    if texts is not None:
        return _word_namer(texts)
    categories: dict[str, NDArray[Any]] = {}
    numbers: dict[str, Floats] = {}
    for name, column in entries.items():
        known = [value for value in column if value is not None and value == value]
        if known and all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
            numbers[name] = np.array([np.nan if value is None else value for value in column], dtype=np.float64)
        elif known and len({str(value) for value in known}) <= MOST_CATEGORIES:
            categories[name] = np.array(["" if value is None else str(value) for value in column])
    if not categories and not numbers:
        return None
    return lambda rows: _enriched_category(categories, rows) or _different_number(numbers, rows)


def _longest_texts(entries: dict[str, list[Any]]) -> list[str] | None:
    """Return the column with the most words per row, if its rows have at least two words and are no categories."""
    best, most = None, 2.0
    for column in entries.values():
        if any(isinstance(value, int | float) and value == value for value in column):
            continue
        texts = ["" if value is None else str(value) for value in column]
        words = float(np.mean([text.count(" ") + 1 if text else 0 for text in texts]))
        if words >= most and len(set(texts)) > MOST_CATEGORIES:
            best, most = texts, words
    return best


def _word_namer(texts: Sequence[str]) -> Callable[[NDArray[np.int64]], str]:
    """Return a function that names rows by the words that they use more often than all rows do."""
    words = [_words(text) for text in texts]
    totals = dict(Counter(word for some in words for word in some).most_common(MOST_WORDS))
    mean = sum(totals.values()) / max(1, len(totals))

    def name(rows: NDArray[np.int64]) -> str:
        counts = Counter(word for row in rows for word in words[row] if word in totals)
        total = sum(counts.values())
        # a word must occur in several rows of the cluster, or a single long text would name it
        often = {word: count for word, count in counts.items() if count >= max(2, len(rows) // 50)}
        weight = {word: count / total * np.log1p(mean / totals[word]) for word, count in often.items()}
        return ", ".join(sorted(weight, key=lambda word: (-weight[word], word))[:WORDS])

    return name


def _words(text: str) -> set[str]:
    found = re.findall(r"[^\W\d_][\w'-]*", text.lower())
    return {word for word in found if len(word) >= SHORTEST_WORD and word not in STOP_WORDS}


def _enriched_category(categories: dict[str, NDArray[Any]], rows: NDArray[np.int64]) -> str:
    """Return the most enriched category of some rows."""
    best, most = "", 0.0
    for column in categories.values():
        names, counts = np.unique(column[rows], return_counts=True)
        for name, count in zip(names.tolist(), counts.tolist(), strict=True):
            share, overall = count / len(rows), float((column == name).mean())
            if name and share >= 0.5 and share / overall >= LEAST_LIFT and share * np.log(share / overall) > most:
                best, most = name, share * np.log(share / overall)
    return best


def _different_number(numbers: dict[str, Floats], rows: NDArray[np.int64]) -> str:
    """Return the number by which some rows differ most from all rows."""
    best, most = "", LEAST_EFFECT
    for name, column in numbers.items():
        spread = float(np.nanstd(column))
        if not np.isfinite(spread) or spread == 0 or np.isnan(column[rows]).all():
            continue
        effect = float((np.nanmean(column[rows]) - np.nanmean(column)) / spread)
        if abs(effect) > most:
            best, most = f"{'high' if effect > 0 else 'low'} {name}", abs(effect)
    return best
