"""Neighbors by cells: nothing is lost, nothing depends on how rows are split."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from vicinal import find_neighbors
from vicinal.neighbors import cells as module
from vicinal.neighbors.cells import CellLists, Cells, cell_count, merged_lists, sample_numbers, search_cell


def lists_of(cells: Cells, rows: Any, k: int) -> CellLists:
    visited, counts = cells.visits(rows)
    lists = []
    for cell in range(cells.count):
        row, rank = np.nonzero(counts & (visited == cell))
        if len(row):
            lists.append(search_cell(cells, cell, row.astype(np.int32), rank == 0, rows[row], k))
    return CellLists(*(np.concatenate([getattr(one, field.name) for one in lists]) for field in fields(CellLists)))


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
@pytest.mark.parametrize("sparse", [False, True])
def test_cells_find_nearly_all_neighbors(grouped: Any, metric: str, sparse: bool) -> None:
    dense = grouped(4000, 12)
    rows = dense
    if sparse:
        from scipy.sparse import csr_matrix

        rows = csr_matrix(np.where(np.abs(dense) > 0.5, dense, 0))
    cells = Cells.of(rows[sample_numbers(4000, 5, 0)], 5, metric)
    table, first, landmark = merged_lists(0, 4000, lists_of(cells, rows, 10), 10)
    exact = find_neighbors(rows, 10, metric=metric, method="exact")
    np.testing.assert_array_equal(table.index[:, 0], np.arange(4000))
    np.testing.assert_array_equal(first, np.arange(4000))
    assert np.mean(table.distance[:, 1:] <= exact.distance[:, -1:] * 1.0001) > 0.97
    assert landmark.min() >= 0
    assert all(len(set(line)) == 10 for line in table.index[:200].tolist())


def test_visits_do_not_depend_on_the_block(grouped: Any) -> None:
    rows = grouped(3000, 30)
    cells = Cells.of(rows[:1000], 7)
    whole = cells.visits(rows)
    for block in (slice(0, 1), slice(5, 78), slice(77, 2999)):
        for ours, all_rows in zip(cells.visits(rows[block]), whole, strict=True):
            np.testing.assert_array_equal(ours, all_rows[block])


def test_equal_rows_have_one_first_row(grouped: Any) -> None:
    rows = grouped(1500, 6)
    rows[900] = rows[1200] = rows[30]
    cells = Cells.of(rows[:800], 4)
    _, first, _ = merged_lists(0, 1500, lists_of(cells, rows, 5), 5)
    assert first[[30, 900, 1200]].tolist() == [30, 30, 30]


def test_cells_that_are_smaller_than_the_lists() -> None:
    rows = np.repeat(np.arange(4, dtype=np.float32)[:, None] * 1000, 3, axis=0) + np.arange(12)[:, None] % 3
    table, _, _ = merged_lists(0, 12, lists_of(Cells.of(rows.astype(np.float32), 4), rows.astype(np.float32), 5), 5)
    missing = table.index < 0
    assert missing.any()
    assert np.isinf(table.distance[missing]).all()
    assert np.isfinite(table.distance[~missing]).all()


def test_number_of_cells_grows_with_the_rows() -> None:
    assert cell_count(module.WHOLE_ROWS, 10) == 1
    assert cell_count(30 * module.CELL_ROWS, 10) == 30
    assert cell_count(10**6, 10**6) * module.LEAST_CELL_ROWS >= 10**6
    assert cell_count(10**9, 8) == module.MOST_CELLS
