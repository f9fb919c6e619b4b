"""The symmetric fuzzy graph of rows that arrive over time (survey eq. 4 for some rows at a time)."""

from __future__ import annotations

from vicinal.backends import cpu

# Keeps each row's memberships and which rows list it; `edges(rows)` returns the symmetric edges of some rows.
GrowingGraph = cpu.GrowingGraph
