"""Read texts as numbers and dates, as people of many countries and their programs write them.

A column is read by one format that all its values agree with. What they cannot decide ("1,234" is 1234 or 1.234) is
decided by the other columns of the file, and otherwise by the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


# Missing values in every column, as spreadsheets, R and pandas write them.
NULLS = ["", "NA", "N/A", "n/a", "nan", "NaN", "null", "NULL", "None", "<NA>", "#N/A"]
# What people write for missing values among numbers; in lower case.
MISSING = [
    "-", "--", "---", "\u2013", "\u2014", ".", "..", "...", "?", "*", "/", "unknown", "unk", "missing", "none", "na",
    "n/a", "n.a.", "nd", "n.d.", "nr", "null", "nil", "nan", "<na>", "(null)", "#na", "#n/a", "#value!", "#div/0!",
    "#ref!", "#num!", "not available", "not applicable", "not recorded", "not measured", "no data", "tbd", "k.a.",
    "k. a.", "keine angabe", "unbekannt", "fehlt", "inconnu", "inconnue", "manquant", "nc", "n.c.", "s/o",
    "non disponible", "n.n.", "desconocido", "sin datos", "onbekend",
]  # fmt: skip
# A column is numeric if this share of its known values are numbers, or half of them and few different others.
MOSTLY, HALF, FEW_OTHERS = 0.9, 0.5, 3
SHOWN_OTHERS = 3
MOST_UNITS = 8  # of amounts of one column
KEPT_ROWS = 1000  # rows of odd texts that are looked at
# Around texts, also those that nobody sees: pages and spreadsheets leave marks of the direction and of width 0.
BLANKS = " \t\r\n\u00a0\u2007\u2009\u202f\u200b\u200e\u200f\ufeff"
LONGEST_SHOWN = 100  # characters of a cell or a name in a message
POINT, COMMA = ".", ","
# What else than numbers is written with digits and marks.
CODES = {
    "IP addresses": r"^\d{1,3}(?:\.\d{1,3}){3}$",
    "phone numbers": r"^\+\d{1,3}[ /(-][\d /()-]{5,}$",
    "codes with leading zeros": r"^0\d+(?:[ /-]\d+)*\s*\p{L}*$",
}
LEADING_ZERO = r"^[-+]?0\d+$"
CURRENCIES = r"(?:[$€£¥₹]|USD|EUR|GBP|JPY|CHF|SEK|NOK|DKK|Fr\.|kr\.?|zł|R\$)"
# Of measurements: kg, °C, mg/l, m², years
UNIT = r"(?:°\s?[CFK]?|[µμ]?\p{L}{1,12}[.²³]?(?:/[µμ]?\p{L}{1,6}[²³]?)?)"
MINUS = r"[-\x{2212}]"
SPACES = r"[ '\x{2019}\x{a0}\x{202f}]"
# sign, currency, digits with marks, currency, percent sign or unit
AMOUNT = (
    rf"^([+-]?|\x{{2212}})\s*({CURRENCIES}?)\s*([+-]?|\x{{2212}})"
    rf"((?:\d[\d.,'\x{{2019}} \x{{a0}}\x{{202f}}]*|[.,]\d+)(?:[eE][-+]?\d+)?)\s*({CURRENCIES}|%|‰|{UNIT})?$"
)
YEAR_FIRST, DAY_OR_MONTH = r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}", r"^\d{1,2}[./-]\d{1,2}[./-]\d{4}"
MONTH_OF_YEAR, YEAR_AND_MONTH = r"^(0[1-9]|1[0-2])[./-]((?:19|20)\d\d)$", r"^((?:19|20)\d\d)-(0[1-9]|1[0-2])$"
TIME = r"(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[-+]\d{2}:?\d{2})?)?$"


@dataclass(frozen=True)
class FileFormat:
    """How a file is written; what is None is detected.

    Parameters
    ----------
    decimal, thousands : str, optional
        The mark before decimals, and the one between groups of three digits.
    separator, encoding : str, optional
        Of a .csv or .tsv file.
    na : sequence of str
        Further texts that mean a missing value.
    sheet : str, optional
        The sheet of a workbook.
    skip : sequence of int
        Lines that are left out, counted from 1; negative ones from the end.
    header : bool, optional
        Whether the first line that is read has the names of the columns.
    """

    decimal: str | None = None
    thousands: str | None = None
    separator: str | None = None
    encoding: str | None = None
    na: tuple[str, ...] = ()
    sheet: str | None = None
    skip: tuple[int, ...] = ()
    header: bool | None = None

    def __post_init__(self) -> None:
        if self.decimal not in (None, POINT, COMMA):
            raise ValueError(f"--decimal must be . or , but is {self.decimal!r}")
        if self.thousands is not None and (len(self.thousands) != 1 or self.thousands not in "., '_\u2019\u00a0\u202f"):
            raise ValueError(f"--thousands must be one of . , ' or a blank, but is {self.thousands!r}")
        if self.thousands is not None and self.thousands == self.decimal:
            raise ValueError(f"--decimal and --thousands are both {self.decimal!r}")
        if self.separator is not None and len(self.separator.encode()) != 1:
            raise ValueError(f"--separator must be one character, but is {self.separator!r}")
        if 0 in self.skip:
            raise ValueError("--skip counts lines from 1, and from -1 at the end")

    @property
    def given_decimal(self) -> str | None:
        """The decimal mark, given as such or by a mark of thousands."""
        if self.decimal is None and self.thousands in (POINT, COMMA):
            return COMMA if self.thousands == POINT else POINT
        return self.decimal


DETECTED = FileFormat()


@dataclass(frozen=True)
class Evidence:
    """How the values of a column are written: counts of values that only one decimal mark explains, and of others."""

    numbers: int
    point: int
    comma: int
    open_point: int  # as 1.234
    open_comma: int  # as 1,234
    units: tuple[str, ...]

    @property
    def decimal(self) -> str | None:
        """The mark that most values agree with, None if they do not decide."""
        return None if self.point == self.comma else POINT if self.point > self.comma else COMMA


@dataclass(frozen=True)
class NumberTexts:
    """A column of texts read as numbers, and what it contains beside numbers."""

    numbers: pl.Series
    note: str
    share: float
    odd: list[int]  # rows of texts that are no numbers

    @property
    def mostly(self) -> bool:
        return self.share >= MOSTLY


def amounts(texts: pl.Series) -> pl.DataFrame:
    """Return the sign, the digits with their marks, and the unit of every text that looks like an amount."""
    import polars as pl

    # accountants write negative amounts in parentheses or with the sign behind
    text = pl.col("text").str.replace(r"^\((.*)\)$", "-$1").str.replace(r"^(.*\d[.,]\d+)-$", "-$1")
    groups = text.str.extract_groups(AMOUNT)
    parts = pl.DataFrame({"text": texts}).select(groups.alias("found")).unnest("found")
    before, currency, after, digits, unit = (pl.col(name) for name in parts.columns)
    negative = (before + after).str.contains(MINUS)
    plain = digits.str.strip_chars().str.replace_all(SPACES, " ")
    return parts.select(
        negative.alias("negative"), plain.alias("digits"), (currency + unit.fill_null("")).alias("unit")
    )


def evidence(parts: pl.DataFrame) -> Evidence:
    """Count the ways in which the amounts of a column are written."""
    import polars as pl

    digits = pl.col("digits")

    def decided(mark: str, other: str) -> pl.Expr:
        m, o = re.escape(mark), re.escape(other)
        fraction = rf"^(?:\d*{m}(?:\d{{0,2}}|\d{{4,}})|(?:\d{{4,}}|0\d*|){m}\d{{3}})(?:[eE].*)?$"
        part = r"\d{2,3}" if other == COMMA else r"\d{3}"  # lakhs: 12,34,567
        groups = rf"^[1-9]\d?\d?(?:{o}{part})*{o}\d{{3}}{m}\d*$|^[1-9]\d?\d?(?:{o}{part})+{o}\d{{3}}$"
        spaced = rf"^\d{{1,3}}(?: \d{{3}})+{m}\d+$"
        return digits.str.contains(f"{fraction}|{groups}|{spaced}").sum()

    counts = parts.select(
        digits.count().alias("numbers"),
        decided(POINT, COMMA).alias("point"),
        decided(COMMA, POINT).alias("comma"),
        digits.str.contains(r"^[1-9]\d{0,2}\.\d{3}$").sum().alias("open_point"),
        digits.str.contains(r"^[1-9]\d{0,2},\d{3}$").sum().alias("open_comma"),
    ).row(0, named=True)
    known = parts.filter(digits.is_not_null())["unit"]
    return Evidence(units=tuple(sorted(known.unique().to_list())), **counts)


def code_name(texts: pl.Series) -> str:
    """Return what most texts of a column are that have digits and marks but are no numbers, or ""."""
    known = texts.drop_nulls()
    if known.str.contains(LEADING_ZERO).any():
        return "codes with leading zeros"
    return next((name for name, pattern in CODES.items() if share_of(known, pattern) >= MOSTLY), "")


def measured(parts: pl.DataFrame) -> tuple[pl.DataFrame, str]:
    """Return amounts without those of units that other amounts do not have, and what is then to be said.

    Currencies and percent signs are not units here: "12" among "$12" is an amount, but "12" among "12 kg" is not.
    """
    import polars as pl

    units, usual = parts.filter(pl.col("digits").is_not_null())["unit"], rf"^(?:{CURRENCIES}|%|‰)*$"
    others = units.unique().sort().to_list()
    foreign = len(units) - int(units.str.contains(usual).sum())
    if not foreign or len(others) == 1:
        return parts, ""
    several = foreign >= MOSTLY * parts.height and len(others) <= MOST_UNITS
    note = f"amounts of different units ({', '.join(one or 'none' for one in others)})" if several else ""
    return parts.with_columns(pl.when(pl.col("unit").str.contains(usual)).then(pl.col("digits", "unit"))), note


def read_numbers(texts: pl.Series, parts: pl.DataFrame, decimal: str, thousands: str | None) -> NumberTexts:
    """Read a column with a decimal mark; values that it does not explain are missing, and the note names them."""
    import polars as pl

    group = thousands or (COMMA if decimal == POINT else POINT)
    allowed = re.escape(group) if thousands else f"[{re.escape(group)} ]"
    d = re.escape(decimal)
    part = r"\d{2,3}" if group == COMMA else r"\d{3}"
    form = rf"^(?:\d+|[1-9]\d?\d?(?:{allowed}{part})*{allowed}\d{{3}})?(?:{d}\d*)?(?:[eE][-+]?\d+)?$"
    digits = pl.col("digits")
    plain = digits.str.replace_all(allowed, "").str.replace(decimal, POINT, literal=True)
    value = pl.when(digits.str.contains(form)).then(plain).cast(pl.Float64, strict=False)
    signed = pl.when(pl.col("negative")).then(-value).otherwise(value)
    numbers = parts.select(signed.alias(texts.name)).to_series()
    return NumberTexts(numbers, *_described(texts, numbers))


def plain_numbers(texts: pl.Series) -> pl.Series:
    """Read the texts that computers write as numbers, for example 1e-5; others are missing."""
    import polars as pl

    return texts.cast(pl.Float64, strict=False)


def _described(texts: pl.Series, numbers: pl.Series) -> tuple[str, float, list[int]]:
    """Say what a column contains beside plain numbers; return the share of numbers and the rows of odd texts, too."""
    others, marked = numbers.is_null() & texts.is_not_null(), texts.str.to_lowercase().is_in(MISSING)
    unknown, odd = texts.filter(others & marked), texts.filter(others & ~marked)
    n = len(numbers) - numbers.null_count()
    share = n / (n + len(odd)) if n else 0.0
    if odd.n_unique() <= FEW_OTHERS and share >= HALF:
        share = max(share, MOSTLY)
    notes = _examples(texts, numbers)
    if len(unknown):
        notes.append(f"missing values written as {listed_texts(unknown)}")
    if len(odd):
        notes.append(f"not numbers: {listed_texts(odd)}")
    return ", ".join(notes), share, (others & ~marked).arg_true().head(KEPT_ROWS).to_list()


def _examples(texts: pl.Series, numbers: pl.Series) -> list[str]:
    """Show how a value was read that computers write in another way, and one with an accountant's sign."""
    changed = numbers.is_not_null() & ~plain_numbers(texts).eq_missing(numbers)
    signed = changed & texts.str.contains(r"^\(|-$")
    rows = [at for some in (changed, signed) if some.any() and (at := some.arg_max()) is not None]
    return [f"{shown_text(texts[at])} is read as {numbers[at]:.10g}" for at in dict.fromkeys(rows)]


def shown_text(text: str) -> str:
    """Return a text in quotes, with plain blanks; only the beginning of a long one."""
    short = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."
    return repr(re.sub("[\u00a0\u202f]", " ", short))


def share_of(texts: pl.Series, pattern: str) -> float:
    """Return the share of texts that match a pattern."""
    return float(texts.str.contains(pattern).sum()) / max(1, len(texts))


def listed_texts(texts: pl.Series) -> str:
    """Return the most frequent texts with their counts."""
    counts = texts.rename("text").value_counts(sort=False).sort(["count", "text"], descending=[True, False])
    shown = [
        shown_text(text) + (f" ({count})" if count > 1 else "") for text, count in counts.head(SHOWN_OTHERS).rows()
    ]
    return ", ".join(shown) + (", …" if counts.height > SHOWN_OTHERS else "")


def file_decimal(found: Iterable[Evidence]) -> str | None:
    """Return the decimal mark that the columns of a file agree on, or None."""
    marks = {one.decimal for one in found} - {None}
    return marks.pop() if len(marks) == 1 else None


def date_format(texts: pl.Series) -> str | None:
    """Return the order of the parts of dates, "ymd", "dmy", "mdy" or "?" if it is open; None if they are no dates."""
    known = _with_days(texts.drop_nulls())
    if not len(known):
        return None
    if share_of(known, YEAR_FIRST + TIME) >= MOSTLY:
        return "ymd"
    if share_of(known, DAY_OR_MONTH + TIME) < MOSTLY:
        return None
    if share_of(known, r"^\d{1,2}\.") >= MOSTLY:
        return "dmy"
    first, second = (
        int((known.str.extract(rf"^(?:\d+[/-]){{{a}}}(\d+)").cast(int, strict=False) > 12).sum()) for a in (0, 1)
    )
    return "dmy" if first else "mdy" if second else "?"


def _with_days(texts: pl.Series) -> pl.Series:
    """Return months as their first days."""
    return texts.str.replace(MONTH_OF_YEAR, "01.$1.$2").str.replace(YEAR_AND_MONTH, "$1-$2-01")


def read_dates(texts: pl.Series, order: str) -> pl.Series:
    """Read dates, with times if there are any, as datetimes; others are missing."""
    import polars as pl

    day = {"ymd": (1, 2, 3), "dmy": (3, 2, 1), "mdy": (3, 1, 2)}[order]
    parts = _with_days(texts).str.extract_groups(
        r"^(\d+)[-/.](\d+)[-/.](\d+)(?:[T ](\d+):(\d+)(?::(\d+))?)?"
    ).struct.unnest()  # fmt: skip
    numbers = parts.select(pl.all().cast(pl.Int32, strict=False))
    year, month, date = (pl.col(str(one)) for one in day)
    hour, minute, second = (pl.col(name).fill_null(0) for name in ("4", "5", "6"))
    valid = month.is_between(1, 12) & date.is_between(1, 31) & (hour < 24) & (minute < 60) & (second < 60)
    # a day that a month does not have is missing
    made = pl.format("{}-{}-{} {}:{}:{}", year, month, date, hour, minute, second)
    value = pl.when(valid).then(made).str.to_datetime("%Y-%m-%d %H:%M:%S", strict=False)
    return numbers.select(value.alias(texts.name)).to_series()
