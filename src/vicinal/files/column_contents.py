"""Find out what the columns of a frame contain: numbers, texts, dates or vectors, by all of their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from vicinal.files.number_texts import (
    BLANKS,
    COMMA,
    HALF,
    NULLS,
    POINT,
    Evidence,
    FileFormat,
    amounts,
    code_name,
    date_format,
    evidence,
    file_decimal,
    listed_texts,
    measured,
    read_dates,
    read_numbers,
    shown_text,
)

if TYPE_CHECKING:
    import polars as pl

ENTRIES = 1 << 22  # entries that are looked at together
THOUSANDTH = 1e-6  # thousands of a number with three decimals are whole up to this


class Kind(StrEnum):
    """What a column contains."""

    NUMBERS = "numbers"
    TEXTS = "text"
    DATES = "dates"
    VECTORS = "vectors"
    OTHER = "other"


@dataclass(frozen=True)
class Content:
    """The values of a column.

    ``series`` has the values as they were read and ``given`` as they are in the file. ``note`` says what is particular
    about them, and ``question`` what has to be known before they can be numbers or dates. ``amounts`` are numbers
    written with a unit, or with marks between their digits, and ``decimal`` is the mark that they were read with.
    ``odd`` has the rows of texts that are neither numbers nor marks of missing values.
    """

    kind: Kind
    series: pl.Series
    given: pl.Series
    note: str = ""
    question: str = ""
    amounts: bool = False
    decimal: str | None = None
    odd: Sequence[int] = ()


def recognize(frame: pl.DataFrame, form: FileFormat) -> dict[str, Content]:
    """Return what the columns of a frame contain."""
    import polars as pl
    import polars.selectors as cs

    if {pl.Categorical, pl.Enum}.intersection(frame.dtypes):
        frame = frame.with_columns(cs.categorical().cast(pl.String), cs.enum().cast(pl.String))
    texts = frame.select(cs.string())
    found = _read_texts(texts, form)
    for series in frame.iter_columns():
        if series.name not in found:
            found[series.name] = _typed(series, form)
    return {name: found[name] for name in frame.columns}


def _typed(series: pl.Series, form: FileFormat) -> Content:
    """Return what a column contains that is not text."""
    import polars as pl

    kind = series.dtype
    if kind.is_numeric() or kind == pl.Null:
        marks = [number for text in form.na if (number := _number(text)) is not None]
        if marks and kind.is_numeric():
            floats = series.cast(pl.Float64)
            return Content(Kind.NUMBERS, floats.set(floats.is_in(marks), None), series)
        return Content(Kind.NUMBERS, series, series)
    if kind == pl.Boolean:
        return Content(Kind.NUMBERS, series.cast(pl.UInt8), series, "true is 1")
    if kind in (pl.Date, pl.Datetime):
        return Content(Kind.DATES, series, series)
    if isinstance(kind, pl.List | pl.Array) and kind.inner.is_numeric():
        return Content(Kind.VECTORS, series, series)
    return Content(Kind.OTHER, series, series, str(kind))


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _read_texts(texts: pl.DataFrame, form: FileFormat) -> dict[str, Content]:
    """Return what columns of texts contain; those with plain numbers alone are read together."""
    import polars as pl

    if not texts.width:
        return {}
    numbers = texts.select(pl.all().cast(pl.Float64, strict=False))
    coded = texts.select(pl.all().str.contains(r"^[-+]?0\d+(?:\.\d{4})?$").any()).row(0)
    gained = zip(numbers.null_count().row(0), texts.null_count().row(0), coded, strict=True)
    plain = [
        name for name, (after, before, code) in zip(texts.columns, gained, strict=True) if after == before and not code
    ]
    apart = set(texts.columns).difference(plain)
    groups = _perhaps_groups(texts, numbers, plain)
    plain = [name for name in plain if name not in groups]
    columns = {name: _UnreadTexts.of(texts[name], form) for name in texts.columns if name in apart | groups}
    decimal = _decimal(columns, texts, plain, form)
    if plain and (COMMA in (decimal, form.given_decimal) or form.separator == ";"):
        # a point may then separate thousands
        pointed = texts[plain].select(pl.all().str.contains(".", literal=True).any()).row(0)
        again = [name for name, has in zip(plain, pointed, strict=True) if has]
        columns |= {name: _UnreadTexts.of(texts[name], form) for name in again}
    found = {name: one.read(form, decimal) for name, one in columns.items()}
    return {name: found.get(name) or Content(Kind.NUMBERS, numbers[name], texts[name]) for name in texts.columns}


def _perhaps_groups(texts: pl.DataFrame, numbers: pl.DataFrame, names: Sequence[str]) -> set[str]:
    """Return columns whose points may separate thousands: all have three digits behind them, others have no point."""
    import numpy as np

    found = []
    together = max(1, ENTRIES // max(1, numbers.height))
    for begin in range(0, len(names), together):
        group = names[begin : begin + together]
        X = numbers[group].to_numpy()
        with np.errstate(invalid="ignore", over="ignore"):
            thousands = np.abs(1000 * X)
            whole, grouped = X % 1 == 0, (thousands >= 1000) & (np.abs(thousands - np.rint(thousands)) < THOUSANDTH)
        likely = (whole | grouped | np.isnan(X)).all(axis=0) & whole.any(axis=0) & (grouped & ~whole).any(axis=0)
        found += [name for name, one in zip(group, likely, strict=True) if one]
    form = r"^\s*[-+]?(?:\d{1,3}|[1-9]\d{0,2}\.\d{3})\s*$"
    return {name for name in found if texts[name].str.contains(form).all()}


def _decimal(
    columns: Mapping[str, _UnreadTexts], texts: pl.DataFrame, plain: Sequence[str], form: FileFormat
) -> str | None:
    """Return the decimal mark that the user gave or that the columns agree on."""
    import polars as pl

    if form.given_decimal is not None:
        return form.given_decimal
    agreed = file_decimal(one.evidence for one in columns.values())
    if agreed is None and plain and any(one.evidence.decimal is None for one in columns.values()):
        # numbers with a point, but not with three decimals, which could be groups of thousands
        points = texts[plain].select(pl.all().str.contains(r"\.(?:\d{1,2}|\d{4,})$|^0?\.\d").any()).row(0)
        return POINT if any(points) and not any(one.evidence.comma for one in columns.values()) else None
    return agreed


@dataclass(frozen=True)
class _UnreadTexts:
    """A column of texts without blanks around them, and the ways in which its numbers are written.

    ``order`` is that of the parts of dates, if they are dates, and ``note`` says why texts with digits are no numbers.
    """

    given: pl.Series
    texts: pl.Series
    parts: pl.DataFrame
    evidence: Evidence
    order: str | None = None
    note: str = ""

    @classmethod
    def of(cls, given: pl.Series, form: FileFormat) -> _UnreadTexts:
        import polars as pl

        stripped = pl.first().str.strip_chars(BLANKS)
        unknown = stripped.is_in([*NULLS, *form.na])
        texts = given.to_frame().select(pl.when(~unknown).then(stripped)).to_series()
        order = date_format(texts)
        note = "" if order else code_name(texts)
        parts, units = measured(amounts(texts.clear(len(texts)) if order or note else texts))
        # a number among texts says nothing about the others
        few = parts["digits"].count() < HALF * texts.count()
        return cls(given, texts, parts, evidence(parts.clear() if few else parts), order, note or units)

    def read(self, form: FileFormat, decimal: str | None) -> Content:
        """Return what the column contains; ``decimal`` is the mark of the file."""
        texts = self.texts
        if texts.null_count() == len(texts):
            return Content(Kind.TEXTS, texts, self.given)
        if self.note:
            return Content(Kind.TEXTS, texts, self.given, self.note)
        if texts.str.contains("(?i)^(?:true|false)$").all():
            return Content(Kind.NUMBERS, (texts.str.to_lowercase() == "true").cast(int), self.given, "true is 1")
        if self.order is not None:
            return self._dates(self.order)
        return self._numbers(form, decimal)

    def _dates(self, order: str) -> Content:
        if order == "?":
            first = self.texts.drop_nulls()[0]
            question = f"{first!r} may be day/month or month/day: write dates as 2021-12-31"
            return Content(Kind.DATES, self.texts, self.given, question=question)
        series = read_dates(self.texts, order)
        odd = self.texts.filter(series.is_null() & self.texts.is_not_null())
        note = f"{len(odd)} not dates: {listed_texts(odd)}" if len(odd) else ""
        return Content(Kind.DATES, series, self.given, note)

    def _numbers(self, form: FileFormat, decimal: str | None) -> Content:
        seen, mark = self.evidence, form.given_decimal or self.evidence.decimal or decimal
        mixed = seen.numbers > seen.open_point
        if mark is None and (seen.open_comma or seen.point or (seen.open_point and (mixed or form.separator == ";"))):
            marked = self.texts.filter(self.parts["digits"].str.contains("[.,]"))
            opened = marked.filter(marked.str.contains(r"[.,]\d{3}\D*$"))
            first = shown_text((opened if len(opened) else marked)[0])
            question = f"{first} may have decimals or thousands: say --decimal . or --decimal ,"
            return self._if_numbers(form, None, question)
        return self._if_numbers(form, mark, "")

    def _if_numbers(self, form: FileFormat, mark: str | None, question: str) -> Content:
        read = read_numbers(self.texts, self.parts, mark or POINT, form.thousands)
        units = [unit or "none" for unit in self.evidence.units]
        if not read.mostly:
            share = f"{read.share:.0%} of its values are numbers" if read.share >= 1 - HALF else ""
            return Content(Kind.TEXTS, self.texts, self.given, share)
        if len(set(units) - {"none"}) > 1 or (len(units) > 1 and not {"%", "‰"}.isdisjoint(units)):
            return Content(Kind.TEXTS, self.texts, self.given, f"amounts of different units ({', '.join(units)})")
        amounts = units not in ([], ["none"]) or bool(self.parts["digits"].str.contains("[., ]").any())
        return Content(Kind.NUMBERS, read.numbers, self.given, read.note, question, amounts, mark, read.odd)


def distinct(series: pl.Series) -> int:
    """Return the number of different known values."""
    return int(series.drop_nulls().n_unique())


def texts_of(series: pl.Series) -> list[Any]:
    """Return the values as texts, None if missing."""
    return [None if value is None else str(value) for value in series.to_list()]
