"""Files that are read from elsewhere: compressed files and standard input, unpacked to a temporary file."""

from __future__ import annotations

import gzip
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from vicinal.files.readers.data_table import ReadError

STDIN = "-"
GZIP = ".gz"
# The first bytes of the formats that standard input may have; anything else is text.
MAGIC = {b"\x93NUMPY": ".npy", b"PAR1": ".parquet", b"ARROW1": ".feather", b"PK\x03\x04": ".npz", b"\x89HDF": ".h5ad"}


def is_local(path: Path) -> bool:
    """Return whether a file can be read where it is."""
    return str(path) != STDIN and path.suffix.lower() != GZIP


@contextmanager
def local_file(path: Path) -> Iterator[Path]:
    """Yield a plain file with the content of ``path``; messages about it name ``path``."""
    if is_local(path):
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="vicinal-") as folder:
        try:
            local = _from_stdin(Path(folder)) if str(path) == STDIN else _unpacked(path, Path(folder))
            yield local
        except ReadError as error:
            name = "standard input" if str(path) == STDIN else str(path)
            raise ReadError(_renamed(str(error), folder, name)) from error


def _renamed(message: str, folder: str, name: str) -> str:
    return " ".join(name if word.rstrip(":;,").startswith(folder) else word for word in message.split(" "))


def _unpacked(path: Path, folder: Path) -> Path:
    inner = Path(path.stem)
    if not inner.suffix:
        raise ReadError(f"{path}: a compressed file must be named like data.csv.gz")
    local = folder / f"data{inner.suffix}"
    try:
        with gzip.open(path, "rb") as packed, local.open("wb") as file:
            shutil.copyfileobj(packed, file)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReadError(f"{path} is not a complete gzip file") from error
    except OSError as error:
        raise ReadError(f"{path} cannot be read: {error.strerror or error}") from error
    return local


def _from_stdin(folder: Path) -> Path:
    stream: BinaryIO = sys.stdin.buffer
    first = stream.read(8)
    if first[:2] == b"\x1f\x8b":
        raise ReadError("standard input is compressed; unpack it first: gunzip -c FILE | vicinal ...")
    known = next((suffix for magic, suffix in MAGIC.items() if first.startswith(magic)), None)
    suffix = known or (".jsonl" if first.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else ".csv")
    local = folder / f"data{suffix}"
    with local.open("wb") as file:
        file.write(first)
        shutil.copyfileobj(stream, file)
    return local
