"""Make features of classes and dates, in the same way for the rows of a fit and for later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vicinal.files.column_contents import Content, Kind
from vicinal.files.data_table import Categories, ColumnChoice, Dates, ReadError
from vicinal.files.number_texts import shown_text

if TYPE_CHECKING:
    import polars as pl

# Days are counted from here: numbers that float32 holds to the minute.
FIRST_DAY = "2000-01-01"
YEAR, WEEK, DAY = "year", "week", "day"  # periods in days: 365.2425, 7, 1
PERIODS = {YEAR: 365.2425, WEEK: 7.0, DAY: 1.0}
MICROSECONDS = 86_400 * 10**6


@dataclass(frozen=True)
class Encoding:
    """How a column of classes or dates became features: their names, and the classes or the periods of dates."""

    kind: str
    names: Sequence[str]
    classes: Sequence[str] = ()
    shares: Sequence[float] = field(default=())

    @property
    def plain(self) -> dict[str, Any]:
        """The encoding as lists, for a model file."""
        return {name: value if isinstance(value, str) else list(value) for name, value in vars(self).items()}


def fit_encoding(name: str, content: Content, choice: ColumnChoice) -> Encoding:
    """Learn how a column becomes features."""
    if content.kind is Kind.DATES:
        if content.question:
            raise ReadError(f"column {shown_text(name)}: {content.question}")
        if choice.dates == Dates.NUMBER:
            return Encoding(choice.dates, [name])
        timed = (_days(content.series) % 1 != 0).any()
        periods = [YEAR, WEEK, *([DAY] if timed else [])]
        return Encoding(choice.dates, [f"{name} {wave} {one}" for one in periods for wave in ("cos", "sin")], periods)
    counts = content.series.drop_nulls().rename("text").value_counts().sort("text")
    classes, n = counts["text"].to_list(), counts["count"].to_list()
    if choice.categories == Categories.ONE_HOT:
        return Encoding(choice.categories, [f"{name}={one}" for one in classes], classes)
    return Encoding(choice.categories, [name], classes, [one / sum(n) for one in n])


def encode(content: Content, encoding: Encoding) -> NDArray[np.float64]:
    """Return the features of a column; a class that is missing or unknown has no indicator, and frequency 0."""
    if encoding.kind in tuple(Dates):
        days = _days(content.series)
        if encoding.kind == Dates.NUMBER:
            return days[:, None]
        turns = [2 * np.pi * days / PERIODS[one] for one in encoding.classes]
        return np.column_stack([wave(turn) for turn in turns for wave in (np.cos, np.sin)])
    numbers = {one: a for a, one in enumerate(encoding.classes)}
    codes = np.array([numbers.get(str(one), -1) for one in content.series.to_list()])
    if encoding.kind == Categories.FREQUENCY:
        shares = np.append(encoding.shares, 0.0)
        return np.asarray(shares[codes][:, None], dtype=np.float64)
    return np.asarray(codes[:, None] == np.arange(len(numbers)), dtype=np.float64)


def _days(dates: pl.Series) -> NDArray[np.float64]:
    """Return dates as days since FIRST_DAY, NaN if missing."""
    stamps = dates.dt.epoch("us")
    first = np.datetime64(FIRST_DAY, "us").astype(np.int64)
    return np.asarray((stamps.cast(float) - float(first)).to_numpy() / MICROSECONDS, dtype=np.float64)
