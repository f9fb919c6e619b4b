"""Detect how a text file of rows is written: encoding, separator, decimal comma, and whether there is a header."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from vicinal.files.readers.data_table import ReadError

# Separators that are tried if the first line does not contain that of the suffix.
SEPARATORS = (",", "\t", ";", "|")
PREFERRED = {".csv": ",", ".tsv": "\t"}
# Byte order marks; UTF-32 is not used for tables.
MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
# Bytes that are inspected to detect the encoding.
SAMPLE = 2**20
# Lines that are inspected to detect the separator.
LINES = 20


@dataclass(frozen=True)
class Dialect:
    """How a delimited file is written."""

    separator: str
    encoding: str = "utf-8-sig"
    decimal_comma: bool = False
    has_header: bool = True

    @contextmanager
    def open(self, path: Path) -> Iterator[TextIO]:
        """Open the file as text with line ends as they are."""
        with path.open(encoding=self.encoding, errors="replace", newline="") as file:
            yield file

    @property
    def is_utf8(self) -> bool:
        return self.encoding == "utf-8-sig"


def detect(path: Path) -> Dialect:
    """Return the dialect of a file; raise if it is binary."""
    with path.open("rb") as file:
        sample = file.read(SAMPLE)
    encoding = _encoding(path, sample)
    text = sample.decode(encoding, errors="replace")
    lines = text.splitlines()[:LINES]
    separator = _separator(lines, PREFERRED.get(path.suffix.lower(), ","))
    fields = next(csv.reader(lines, delimiter=separator), [])
    comma = separator == ";" and _has_decimal_comma(lines)
    return Dialect(separator, encoding, comma, has_header(fields, comma))


def _encoding(path: Path, sample: bytes) -> str:
    for mark, name in MARKS.items():
        if sample.startswith(mark):
            return name
    if b"\0" in sample:
        raise ReadError(f"{path} contains binary data, not text")
    try:
        # the sample may end within a character
        codecs.getincrementaldecoder("utf-8")().decode(sample)
    except UnicodeDecodeError:
        # every byte is a character of Latin-1; Windows' code page differs from it in quotes and dashes only
        return "cp1252" if not any(byte in sample for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)) else "latin-1"
    return "utf-8-sig"


def _separator(lines: list[str], preferred: str) -> str:
    """Return the preferred separator if the first line contains it, else the one that splits all lines alike."""
    if not lines or preferred in _unquoted(lines[0]):
        others = [one for one in SEPARATORS if one != preferred and lines and one in _unquoted(lines[0])]
        if not others or len(_widths(lines, preferred)) == 1:
            return preferred
    consistent = {one: _widths(lines, one) for one in SEPARATORS}
    usable = [one for one, widths in consistent.items() if len(widths) == 1 and next(iter(widths)) > 1]
    return max(usable, key=lambda one: next(iter(consistent[one])), default=preferred)


def _widths(lines: list[str], separator: str) -> set[int]:
    return {len(fields) for fields in csv.reader(lines, delimiter=separator) if fields}


def _unquoted(line: str) -> str:
    return "".join(part for a, part in enumerate(line.split('"')) if a % 2 == 0)


def _has_decimal_comma(lines: list[str]) -> bool:
    fields = [field.strip() for row in csv.reader(lines[1:], delimiter=";") for field in row]
    with_comma = [field for field in fields if "," in field]
    return bool(with_comma) and all(_is_number(field.replace(",", ".", 1)) for field in with_comma)


def has_header(fields: list[str], decimal_comma: bool = False) -> bool:
    """Return whether the first line has column names: it does unless all its fields are numbers.

    Numbers that count up from 0 or 1 are names too: pandas writes them for a frame without column names.
    """
    if fields in ([str(a) for a in range(len(fields))], [str(a + 1) for a in range(len(fields))]):
        return len(fields) > 1
    numbers = [field.replace(",", ".", 1) for field in fields] if decimal_comma else fields
    return not fields or not all(_is_number(field) for field in numbers)


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True
