"""Sizes of the parts of the search engines, from which the memory of a search is estimated."""

from __future__ import annotations

from vicinal.backends import cpu

SKETCH_WIDTH = cpu.SKETCH_WIDTH  # columns of a sketch
ROWS_WITHOUT_BASIS = cpu.ROWS_WITHOUT_BASIS  # most rows that are compared without a basis for their sketches
MOST_BYTE_COLUMNS = cpu.MOST_BYTE_COLUMNS  # most columns of rows that are kept as bytes too
SPLIT_COLUMNS = cpu.SPLIT_COLUMNS  # columns of a sketch that trees split by
ONLINE_LEAF_ROWS = cpu.ONLINE_LEAF_ROWS  # most rows in a leaf of a growing tree
HEAP_PAD = cpu.HEAP_PAD  # rows of a heap, and short rows, are padded to a multiple of this


def sketch_sample_rows(n: int, d: int) -> int:
    """Return the number of rows that the basis of the sketches is fitted to."""
    most = max(cpu.SKETCH_SAMPLE_LEAST_ROWS, cpu.SKETCH_SAMPLE_FLOATS // d)
    return min(n, cpu.SKETCH_SAMPLE_MOST_ROWS, most)
