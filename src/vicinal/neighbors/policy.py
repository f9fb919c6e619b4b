"""Policy of the neighbor search: which method, which options, when to repeat. The same for every backend."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu

Method = Literal["auto", "exact", "approximate"]

# All pairs of dense rows are compared if that is faster (measurements: ARCHITECTURE.md): up to EXACT_ROWS rows always;
# for rows that are not longer than their sketch, if n * (d + 16) <= EXACT_WORK.
EXACT_ROWS, EXACT_WORK = 6_000, 3_000_000
# Long tables make the approximate search slow: for 91 columns and 10,000 images it takes 5.0 s of CPU, the exact search
# 2.4 s. The last columns of a long table have little weight, so beyond LONG_TABLE columns the search may be looser:
# for 20,000 images and 91 columns, recall 0.974 in 6.9 s of CPU instead of 0.992 in 13.6 s.
EXACT_ROWS_PER_NEIGHBOR, LONG_TABLE = 120, 48

# Evaluating a pair of dense rows (cpp/neighbors/pair_terms.hpp, a compiled function) costs more than comparing
# sketches, and a call of a Python function takes microseconds: half a million calls take seconds.
EXACT_EVALUATED_ROWS, EXACT_CALLED_ROWS = 4_000, 1_000

# Comparing all pairs of sparse rows costs an addition per pair of entries in the same column, and a check per pair of
# rows. Beyond EXACT_SPARSE_WORK the search of a row adds up SPARSE_BUDGET entries, those of the columns that the fewest
# rows store, and evaluates the best rows found.
EXACT_SPARSE_WORK, SPARSE_BUDGET, SPARSE_POOL = 1e10, 50_000, 128

# Spare neighbors make up for the inexact ranks of sketches. Long tables have enough neighbors that are near the end:
# for 70,000 images and 25 columns, 8 instead of 16 take 2.4 s instead of 2.9 s at a recall of 0.988 instead of 0.993.
ENOUGH_SOUGHT, LEAST_SPARE = 31, 8

FOREST_ROWS = 70_000

# The rounds of NN-descent do not show how much they found. So the neighbors of
# RECALL_SAMPLE rows are searched among all rows (3 % of the search time for 30,000 images). If the recall is below
# GOOD_RECALL, all pairs are compared if that takes at most EXACT_LATER multiplications; otherwise the search is
# repeated with more candidates, unless the data has no structure that a search can use.
RECALL_SAMPLE, GOOD_RECALL, EXACT_LATER = 24, 0.9, 4e11

# A query starts from the leaves of QUERY_TREES trees. One is enough for Fashion-MNIST images, but if clusters are far
# apart, it may lead to a wrong one: among 200 clusters in 128 dimensions, one tree finds 0.79 of the neighbors, two
# find 0.95.
QUERY_TREES = 2


@dataclass(frozen=True)
class SearchOptions:
    """Options of the approximate search of all rows.

    The defaults reach a recall of 0.985 on 70,000 images of 784 pixels in 0.55 of the time that pynndescent takes with
    its own defaults (benchmarks/RESULTS.md).

    Parameters
    ----------
    trees, leaf_rows : int
        Number of random projection trees, and the most rows per leaf.
    node_rows : int
        The rows of a node of at most this many rows are compared with each other.
    candidates : int
        New neighbors, and as many old ones, that a row introduces to each other per round.
    spare : int
        Neighbors that are searched beyond those asked for.
    rounds : int
        The most rounds of NN-descent per stage.
    coarse, fine, final, evaluated : float
        A stage ends when less than this fraction of the table changes in a round: the stage on sketches, on rows after
        sketches, on sketches that hold the whole row, and on evaluated pairs.
    structureless : float
        If the nearest row of a sample is on average farther than this fraction of the mean distance (both squared),
        rows are compared with the most central rows instead: 0.86 for normal noise in 500 dimensions, 0.33 for images.
    unordered_bytes : int
        Sketches, and rows as bytes, of more bytes in all are reordered by the leaves of a tree while they are searched.
        700,000 images (940 MB) take a tenth less time then; 70,000 (94 MB) 6 % less on two cores with 32 MB of cache,
        but 3 % more on 2 to 16 cores with 300 MB.
    """

    trees: int = 5
    leaf_rows: int = 96
    node_rows: int = 300
    candidates: int = 16
    spare: int = 16
    rounds: int = 12
    coarse: float = 0.55
    fine: float = 0.37
    final: float = 0.02
    structureless: float = 0.8
    evaluated: float = 0.1
    unordered_bytes: int = 1 << 28

    def for_rows(self, n: int) -> SearchOptions:
        """Add a tree per doubling of the rows beyond FOREST_ROWS.

        Without more trees, a larger data set needs one more round for the same recall. With two, 700,000 images take
        20.8 s instead of 18.8 s, at a recall of 0.967 instead of 0.963.
        """
        return replace(self, trees=self.trees + max(0, (n // FOREST_ROWS).bit_length() - 1))

    def for_table(self, k: int) -> SearchOptions:
        """Use fewer spare neighbors for longer tables, and fewer candidates and rounds for long ones."""
        options = replace(self, spare=min(self.spare, max(ENOUGH_SOUGHT - k, LEAST_SPARE)))
        return options if k <= LONG_TABLE else replace(options, candidates=10, fine=0.9, final=0.3)

    def harder(self) -> SearchOptions:
        """Use twice the candidates, three times the spare neighbors, and rounds until little changes."""
        more = replace(self, candidates=2 * self.candidates, spare=3 * self.spare)
        return replace(more, coarse=0.1, fine=0.05, final=self.final / 4, evaluated=0.02)


def check_method(method: Any) -> None:
    """Raise ValueError unless the value is a search method."""
    if method not in ("auto", "exact", "approximate"):
        raise ValueError(f"method must be 'auto', 'exact' or 'approximate', got {method!r}")


def compares_all_sketches(n: int, d: int, k: int) -> bool:
    """Tell whether all pairs of n dense rows are compared, for a metric that sketches can show."""
    short = d <= cpu.SKETCH_WIDTH and n * (d + 16) <= EXACT_WORK
    return n <= EXACT_ROWS or short or n <= EXACT_ROWS_PER_NEIGHBOR * k


def exact_rows(by_pairs: bool, calls_python: bool) -> int:
    """Return the number of dense rows up to which all are compared, whatever their width."""
    if calls_python:
        return EXACT_CALLED_ROWS
    return EXACT_EVALUATED_ROWS if by_pairs else EXACT_ROWS


def compares_all_sparse(n: int, additive: bool, additions: float) -> bool:
    """Tell whether all pairs of n sparse rows are compared.

    ``additive`` says whether the metric is a sum over the columns that both rows store; ``additions`` is their number.
    """
    return n <= EXACT_EVALUATED_ROWS or (additive and additions + float(n) ** 2 <= EXACT_SPARSE_WORK)


def sparse_budget(exact: bool) -> int:
    """Return the entries that the search of a sparse row adds up; 0 means all."""
    return 0 if exact else SPARSE_BUDGET


def sparse_pool(k: int) -> int:
    """Return the number of sparse rows that are evaluated per search."""
    return max(SPARSE_POOL, 4 * k)


def query_pool(k: int, n: int) -> int:
    """Return the number of rows that a query keeps while it searches."""
    return min(k + max(k // 8, 2), n)


def recall_sample(n: int) -> NDArray[np.int64]:
    """Return the rows whose recall is measured after an approximate search."""
    return np.unique(np.arange(RECALL_SAMPLE) * n // RECALL_SAMPLE)


def is_good_recall(recall: float) -> bool:
    """Tell whether the result of an approximate search is kept."""
    return recall >= GOOD_RECALL


def can_repeat_exactly(n: int, d: int) -> bool:
    """Tell whether comparing all pairs is affordable after an approximate search failed."""
    return float(n) ** 2 * d <= EXACT_LATER
