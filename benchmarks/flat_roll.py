"""How well distances of the swiss roll correlate with those of the sheet that it was rolled from.

    python benchmarks/flat_roll.py

A map that unrolls the roll without any error has this correlation, which the suite `optimum_shapes` measures for maps.
"""

from __future__ import annotations

from score import score_sheet
from shapes import swiss_roll, unrolled

if __name__ == "__main__":
    rows = swiss_roll()[0]
    print(f"{score_sheet(unrolled(rows), rows):.4f}")
