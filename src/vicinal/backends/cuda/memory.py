"""The memory of a device: what a search and a fit take, as functions of their sizes.

CuPy's pool keeps blocks of memory that were used, and a large array does not fit into the gaps between small ones, so
that about a tenth of the memory is not available (USABLE).
"""

from __future__ import annotations

from dataclasses import dataclass

USUAL_NEIGHBORS = 15
# Matrices of products are computed block by block. Blocks are smaller if the device is small; two fit beside the rest.
MOST_BLOCK, BLOCK_SHARE, BLOCKS = 2**31, 16, 2
PAD_COLUMNS = 8  # rows in half precision have a multiple of this many columns
USABLE = 0.9
# Bytes per row of the tables of a search (mostly candidates of the rounds over neighbors of neighbors) and of a fit
# (mostly edges in both directions while the graph is made, or edges in the order of the layout), and per row and
# neighbor.
SEARCH_ROW, SEARCH_NEIGHBOR = 600, 20
FIT_ROW, FIT_NEIGHBOR = 150, 60
QUERY_ROW = 3_000  # bytes per row of a query, mostly of the edges that it follows
MERGED_NEIGHBOR = 24  # bytes per row and neighbor of lists that are merged, and of the table that is made of them


def block_bytes(capacity: int) -> int:
    """Return the most bytes of a matrix of products, and of the rows in half precision that it is made from."""
    return min(MOST_BLOCK, capacity // BLOCK_SHARE)


def query_rows(d: int, capacity: int) -> int:
    """Return how many rows of d columns are placed among others at a time."""
    return max(1, block_bytes(capacity) // (QUERY_ROW + 8 * d))


def half_bytes(d: int) -> int:
    """Return the bytes of a row in half precision."""
    return 2 * (-(-d // PAD_COLUMNS) * PAD_COLUMNS)


@dataclass(frozen=True)
class Need:
    """What the work on rows allocates: ``copies`` of the rows in float32, and tables of ``k`` neighbors.

    Rows that live on the device need no copy, those of the host one; a metric that transforms rows needs one more.
    ``streamed`` rows are searched in groups, and only their tables are held. ``fit`` says that a graph and a layout
    follow the search.
    """

    d: int
    k: int = USUAL_NEIGHBORS
    copies: int = 1
    streamed: bool = False
    fit: bool = True

    @property
    def search_row(self) -> int:
        """Bytes per row of a search."""
        return 4 * self.d * self.copies + half_bytes(self.d) + SEARCH_ROW + SEARCH_NEIGHBOR * self.k

    @property
    def row(self) -> int:
        """Bytes per row of the whole work."""
        if self.streamed:
            return FIT_ROW + FIT_NEIGHBOR * self.k if self.fit else MERGED_NEIGHBOR * self.k
        tables = FIT_ROW + FIT_NEIGHBOR * self.k - SEARCH_ROW - SEARCH_NEIGHBOR * self.k if self.fit else 0
        return self.search_row + max(0, tables)

    def total(self, n: int, capacity: int) -> int:
        """Return the bytes that the work on n rows takes."""
        return n * self.row + BLOCKS * block_bytes(capacity)

    def rows(self, free: int, capacity: int) -> int:
        """Return how many rows can be worked on in ``free`` bytes."""
        return max(0, free - BLOCKS * block_bytes(capacity)) // self.row

    def group_rows(self, n: int, free: int, capacity: int) -> int:
        """Return how many rows of a group can be searched in ``free`` bytes, beside the merged lists of n rows.

        The available memory is rounded down to a sixteenth of all, so that small differences do not change the groups.
        """
        step = max(1, capacity // 16)
        available = int(USABLE * (free // step * step)) - n * 8 * self.k - BLOCKS * block_bytes(capacity)
        return max(0, available) // self.search_row
