"""Count the rows of a file without reading their values."""

from __future__ import annotations

from pathlib import Path

from vicinal.files.readers import array_files, tabular_files
from vicinal.files.readers.dialects import detect

# Bytes that are read at a time to count lines.
BLOCK = 2**22


def row_count(path: Path) -> int | None:
    """Return the number of rows, or None if counting would take as long as reading them."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return len(array_files.map_npy(path))
    if suffix in (".parquet", ".feather"):
        import polars as pl

        scan = pl.scan_parquet if suffix == ".parquet" else pl.scan_ipc
        counted = tabular_files.read_frame(path, suffix[1:], lambda name: scan(name).select(pl.len()).collect())
        return int(counted.item())
    if suffix == ".jsonl":
        return _lines(path)
    if suffix in (".csv", ".tsv"):
        # line breaks within quotes are counted too, so that the count may be slightly too high
        dialect = detect(path)
        return None if dialect.encoding == "utf-16" else _lines(path) - int(dialect.has_header)
    return None


def _lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            lines += block.count(b"\n")
            last = block
    return lines + int(not last.endswith(b"\n"))
