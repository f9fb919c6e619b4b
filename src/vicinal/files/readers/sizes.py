"""How many rows a file has, as far as that is known without reading them."""

from __future__ import annotations

from pathlib import Path

from vicinal.files.readers import arrays, frames

# Lines are counted a block at a time.
BLOCK = 2**22


def row_count(path: Path) -> int | None:
    """Rows of a file that can be read; None where that would take as long as reading them."""
    suffix = path.suffix.lower()
    if suffix == ".npy":
        return len(arrays.map_npy(path))
    if suffix in (".parquet", ".feather"):
        import polars as pl

        scan = pl.scan_parquet if suffix == ".parquet" else pl.scan_ipc
        return int(frames.read_frame(path, suffix[1:], lambda name: scan(name).select(pl.len()).collect()).item())
    if suffix == ".jsonl":
        return _lines(path)
    if suffix in frames.SEPARATORS:
        # breaks within quotes make it a few too many
        return _lines(path) - int(frames.has_header(path, frames.SEPARATORS[suffix]))
    return None


def _lines(path: Path) -> int:
    lines, last = 0, b"\n"
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            lines += block.count(b"\n")
            last = block
    return lines + int(not last.endswith(b"\n"))
