"""Sizes in bytes: what a fit allocates, the form of its input, limits as users write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from vicinal.runtime.inputs import ROW_TYPES

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


class Ledger:
    """Bytes allocated, and the most there were at any time."""

    def __init__(self) -> None:
        self.held = self.peak = 0.0

    def keep(self, amount: float) -> None:
        """Add a permanent allocation."""
        self.held += amount
        self.use(0.0)

    def use(self, amount: float) -> None:
        """Add a temporary allocation, which is freed before the next entry."""
        self.peak = max(self.peak, self.held + amount)


@dataclass(frozen=True)
class InputShape:
    """Rows and columns of an input: ``stored`` entries if it is sparse, ``copied`` if it has to be converted.

    ``kind`` is the type in which the rows are searched, one of the ``ROW_TYPES``.
    """

    n: int
    d: int
    stored: int | None = None
    copied: bool = False
    kind: np.dtype[Any] = ROW_TYPES[0]

    @property
    def values(self) -> int:
        return self.n * self.d if self.stored is None else self.stored

    @staticmethod
    def of(X: Any, *, typed: bool = False) -> InputShape | None:
        """Return the shape of an argument of ``fit``; None if it is not known before the argument is converted.

        With ``typed``, dense rows are not converted if they have one of the ``ROW_TYPES``.
        """
        shape = getattr(X, "shape", None)
        if shape is None or len(shape) != 2:
            return None
        stored = int(X.nnz) if hasattr(X, "nnz") else None
        values = getattr(X, "data", X) if stored is not None else X
        contiguous = stored is not None or (isinstance(X, np.ndarray) and X.flags.c_contiguous)
        kept = ROW_TYPES if typed and stored is None else ROW_TYPES[:1]
        given = getattr(values, "dtype", None)
        kind = given if given in kept else ROW_TYPES[0]
        return InputShape(int(shape[0]), int(shape[1]), stored, not (given == kind and contiguous), kind)


def check_limit(ledger: Ledger, limit: Any, what: str) -> None:
    """Raise MemoryError if a fit, described by ``what``, would take more than the limit."""
    if ledger.peak > bytes_of(limit):
        raise MemoryError(f"fitting {what} takes about {readable(ledger.peak)}, more than memory_limit={limit!r}")


def bytes_of(size: Any) -> float:
    """Return a number of bytes, given as a number or a text such as "500 MB", "2GB" or "1.5 GiB"."""
    if not isinstance(size, str):
        return float(size)
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", size.lower())
    if found is None or (found[3] and not found[2]):
        raise ValueError(f"{size!r} is not a size")
    return float(found[1]) * (BINARY if found[3] else UNITS)[found[2]]


def readable(size: float) -> str:
    """Return a size with at least two digits and a unit."""
    unit = next(name for name in ("T", "G", "M", "k") if size >= UNITS[name.lower()] or name == "k")
    amount = size / UNITS[unit.lower()]
    return f"{amount:.{0 if amount >= 10 else 1}f} {unit}B"


class ByteSize:
    """A constraint on parameters: a positive number of bytes, or a text that gives one."""

    def allows(self, value: Any) -> bool:
        try:
            return not isinstance(value, bool | np.bool_) and 0 < bytes_of(value) < float("inf")
        except (TypeError, ValueError, OverflowError):
            return False

    def __str__(self) -> str:
        return "a number of bytes or a text such as '2GB'"
