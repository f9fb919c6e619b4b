"""Texts in CSV files that a spreadsheet would run as a formula."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def inert(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula: such texts start with an apostrophe. Numbers stay."""
    if not isinstance(cell, str) or not cell.startswith(FORMULA_STARTS):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def inert_frame(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame whose texts and column names are no formulas."""
    import polars as pl
    import polars.selectors as cs

    changed = frame.with_columns(cs.string().map_elements(inert, return_dtype=pl.String))
    changed.columns = [inert(name) for name in frame.columns]
    return changed
