"""Make a table from a frame: decide what every column is used for, and say why."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vicinal.files.column_contents import Content, Kind, distinct, recognize, texts_of
from vicinal.files.column_encodings import Encoding, encode, fit_encoding
from vicinal.files.data_table import (
    CONSTANT,
    EMPTY,
    EXCLUDED,
    NOT_CHOSEN,
    Categories,
    Column,
    ColumnChoice,
    DataTable,
    Dates,
    ReadError,
    Role,
    as_rows_of_table,
    check_finite,
    listed,
    refusing,
    travelers,
    whole_numbers,
    without_bytes,
)
from vicinal.files.number_texts import FileFormat, listed_texts, shown_text
from vicinal.files.stray_lines import WRITTEN, require_no_total, require_rows

if TYPE_CHECKING:
    import polars as pl

# Numbers that stand for missing values in columns that are not negative otherwise.
STAND_INS = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0)
# Entries that are converted together.
ENTRIES = 1 << 24
# Texts are classes if there are at most this many, each used twice on average.
MOST_CLASSES = 100
# Fewer rows do not show that a column counts.
FEWEST_COUNTED = 10
# Shares of rows of a column that counts up, of different values of an id, and of those of an id that repeats.
COUNTED, UNIQUE, REPEATED = 0.9, 0.99, 0.2
# From this number of rows on, measured integers within a narrow range are not nearly all different.
MANY = 50
CODE, NAMED_CODE = 10**5, 10**4  # ids have at least six digits, and five if their name says that they are numbers
# Words of names: of ids always, and of ids if nearly all values differ.
ID_WORDS = {"id", "ids", "uid", "uuid", "guid", "rowid", "rownum", "barcode", "zip", "zipcode", "plz",
            "postcode", "postal", "postleitzahl", "npa", "isbn", "ean", "sku", "ssn", "phone", "telephone", "telefon",
            "téléphone", "iban"}  # fmt: skip
NUMBER_WORDS = {"no", "nr", "num", "number", "nummer", "numero", "numéro", "code", "key", "index", "idx", "row"}
# Names of rows that have sums or means of others.
TOTALS = ["total", "totals", "grand total", "subtotal", "sum", "average", "summe", "gesamt", "gesamtsumme",
          "zwischensumme", "insgesamt", "durchschnitt", "mittelwert", "somme", "moyenne", "totale"]  # fmt: skip
COUNT_WORDS = {"no", "nr", "num", "number"}  # they count if they come first: num_words, Number of rooms


def frame_table(path: Path, frame: pl.DataFrame, choice: ColumnChoice, first: int = 0) -> DataTable:
    """Make a table from a polars frame; ``first`` is the number of its first row within its file, for messages."""
    plan = Plan.of(path, frame, choice)
    plan.require_features()
    return plan.table(first)


@dataclass(frozen=True)
class Plan:
    """What every column of a frame contains and is used for; nothing is converted yet."""

    path: Path
    contents: Mapping[str, Content]
    choice: ColumnChoice
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, path: Path, frame: pl.DataFrame, choice: ColumnChoice) -> Plan:
        """Decide; raise ReadError if the choice does not fit the columns."""
        if frame.height == 0:
            raise ReadError(f"{path} has no rows")
        contents = recognize(frame, choice.form)
        choice.require_known(path, contents, frame.columns)
        if path.suffix.lower() in WRITTEN:
            require_rows(path, contents, choice.form)
        features, why = _features(path, contents, choice)
        gaps = _gaps(contents, features)
        notes = {name: _feature_note(contents[name], choice, name, gaps[name]) for name in features}
        columns = [Column(name, Role.FEATURE, reason=note) for name, note in notes.items()]
        columns += [Column(name, role, reason=contents[name].note) for name, role in choice.roles()]
        taken = {*features, *(name for name, _ in choice.roles())}
        others = [name for name in frame.columns if name not in taken]
        usable = [one for one in others if one and why.get(one) not in (EMPTY, CONSTANT) and not _nested(contents[one])]
        _, dropped = travelers({name: int(contents[name].series.estimated_size()) for name in usable}, choice)
        for name in others:
            role = Role.DISPLAY if name in usable and name not in dropped else Role.IGNORED
            reasons = (why.get(name, NOT_CHOSEN), dropped.get(name, ""))
            columns.append(Column(name, role, reason=", ".join(dict.fromkeys(one for one in reasons if one))))
        return cls(path, contents, choice, tuple(columns))

    @property
    def features(self) -> list[str]:
        return [column.name for column in self.columns if column.role is Role.FEATURE]

    @property
    def decimal(self) -> str | None:
        """The decimal mark that all columns of texts were read with."""
        marks = {content.decimal for content in self.contents.values()} - {None}
        return marks.pop() if len(marks) == 1 else None

    def require_features(self) -> None:
        """Raise ReadError if there is no feature, or if one cannot be read without an answer of the user."""
        if not self.features:
            ids = [one for one in self.columns if one.reason.startswith(ROW_IDS)]
            if ids:
                raise ReadError(
                    f"{self.path}: every numeric column looks like row ids: {listed([one.name for one in ids])}; "
                    f"use --features {shlex.quote(ids[0].name)} to embed it"
                )
            constant = [one.name for one in self.columns if one.reason == CONSTANT]
            if constant:
                raise ReadError(f"{self.path}: no numeric column has different values; constant are {listed(constant)}")
            raise ReadError(f"{self.path} has no numeric column to embed; it has {listed(list(self.contents))}")
        numeric = [name for name in self.features if self.contents[name].kind is Kind.NUMBERS]
        if self.choice.whole and self.path.suffix.lower() in WRITTEN:
            require_no_total(self.path, _numbers(self.contents, numeric))
        for name in [*self.features, *self.choice.values]:
            if self.contents[name].question:
                raise ReadError(f"{self.path}: column {shown_text(name)}: {self.contents[name].question}")

    def table(self, first: int = 0) -> DataTable:
        """Convert the columns."""
        parts, X, encodings = self._matrix(first)

        def original(row: int, a: int) -> Any:
            content = self.contents.get(parts[a])
            if content is None:
                return X[row, a]
            number = content.series[row] if content.series.dtype.is_numeric() else None
            if number is not None:
                return number
            with _naming_column(self.path, content):
                return content.given[row]

        check_finite(self.path, X, parts, original, first, self.choice)
        columns = tuple(
            replace(one, values=_values(self.path, self.contents[one.name])) if _is_read(one, encodings) else one
            for one in self.columns
        )
        return DataTable(X, columns, parts, encodings={name: one.plain for name, one in encodings.items()})

    def _matrix(self, first: int) -> tuple[tuple[str, ...], NDArray[Any], dict[str, Encoding]]:
        """Return the names of the columns of the matrix, the matrix, and how classes and dates became its columns."""
        names, height = self.features, len(next(iter(self.contents.values())).series)
        if self.contents[names[0]].kind is Kind.VECTORS:
            return *_vectors(self.path, self.contents[names[0]].series, first), {}
        encodings = {}
        for name in names:
            if self.contents[name].kind is not Kind.NUMBERS:
                known = self.choice.encodings.get(name)
                encodings[name] = Encoding(**known) if known else fit_encoding(name, self.contents[name], self.choice)
        parts = [part for name in names for part in (encodings[name].names if name in encodings else [name])]
        X = np.empty((height, len(parts)), dtype=np.float32)
        at = {part: a for a, part in enumerate(parts)}
        with np.errstate(over="ignore"):
            for group, numbers in _numbers(self.contents, [name for name in names if name not in encodings]):
                X[:, [at[name] for name in group]] = numbers
        for name, encoding in encodings.items():
            X[:, [at[part] for part in encoding.names]] = encode(self.contents[name], encoding)
        return tuple(parts), X, encodings


def columns_of_frame(path: Path, frame: pl.DataFrame, form: FileFormat) -> dict[str, NDArray[Any]]:
    """Return the values of all columns by name, without lists: numbers, or texts with None for missing ones."""
    contents = recognize(frame, form)
    return {name: _values(path, one) for name, one in contents.items() if name and not _nested(one)}


def _numbers(
    contents: Mapping[str, Content], names: Sequence[str]
) -> Iterator[tuple[Sequence[str], NDArray[np.float64]]]:
    """Yield numeric columns as matrices of some columns each, NaN where a value is missing."""
    import polars as pl

    if not names:
        return
    n = len(contents[names[0]].series)
    together = max(1, ENTRIES // max(1, n))
    for begin in range(0, len(names), together):
        group = names[begin : begin + together]
        series = [contents[name].series for name in group]
        frame = pl.DataFrame([one if one.dtype == pl.Float64 else one.cast(pl.Float64) for one in series])
        yield group, frame.to_numpy()


def _is_read(column: Column, encodings: Mapping[str, Encoding]) -> bool:
    return column.role is not Role.IGNORED and (column.role is not Role.FEATURE or column.name in encodings)


def _nested(content: Content) -> bool:
    return content.kind is Kind.VECTORS or content.series.dtype.is_nested()


def vector_column(path: Path, contents: Mapping[str, Content], choice: ColumnChoice) -> str | None:
    """Return the column of vectors to embed: the requested one, or the only one if no columns are requested."""
    found = [name for name, one in contents.items() if one.kind is Kind.VECTORS]
    wanted = choice.vectors
    if wanted is not None:
        if wanted not in contents:
            raise ReadError(f"{path} has no column {wanted!r}; it has {listed(list(contents))}")
        if wanted not in found:
            dtype = contents[wanted].given.dtype
            raise ReadError(f"{path}: column {wanted!r} does not contain lists of numbers ({dtype})")
        return wanted
    free = [name for name in found if name not in choice.not_features]
    if choice.features is not None or not free:
        return None
    if len(free) > 1:
        raise ReadError(f"{path} has several columns of vectors; choose one with --vectors: {listed(free)}")
    return free[0]


def _features(path: Path, contents: Mapping[str, Content], choice: ColumnChoice) -> tuple[list[str], dict[str, str]]:
    """Return the features, and why other columns are none."""
    vectors = vector_column(path, contents, choice)
    for name in choice.values:
        _require_numbers(path, name, contents[name], choice, "--label or --hover shows it")
    if vectors is not None or choice.features is not None:
        chosen = [vectors] if vectors is not None else list(choice.features or [])
        for name in chosen:
            if name in choice.encodings:
                _require_kind(path, name, contents[name], choice.encodings[name])
            elif vectors is None and not _encodes(contents[name], choice):
                classes = "--categories one-hot makes features of classes"
                help_ = "the model was fitted to numbers" if choice.fitted else classes
                _require_numbers(path, name, contents[name], choice, help_)
        return chosen, {}
    numbers = [name for name, one in contents.items() if one.kind is Kind.NUMBERS and name]
    why = _why_no_numbers(contents, numbers, drop_constant=choice.whole and not choice.constant)
    for name, content in contents.items():
        if name in choice.exclude:
            why[name] = EXCLUDED
        elif not name:
            why[name] = "no name"
        elif content.kind is not Kind.NUMBERS:
            reason = _why_no_texts(content, choice)
            if reason:
                why[name] = reason
    return [name for name in contents if name not in why and name not in choice.not_features], why


def _encodes(content: Content, choice: ColumnChoice) -> bool:
    """Return whether options make a feature of a column that has no numbers."""
    if content.kind is Kind.TEXTS:
        return choice.categories != Categories.IGNORE
    return content.kind is Kind.DATES and choice.dates != Dates.IGNORE


def _require_kind(path: Path, name: str, content: Content, encoding: Mapping[str, Any]) -> None:
    """Raise ReadError if a column does not contain what the column of the fit contained."""
    wanted = Kind.DATES if encoding["kind"] in tuple(Dates) else Kind.TEXTS
    if content.kind is not wanted:
        what = {Kind.DATES: "dates", Kind.TEXTS: "classes"}[wanted]
        raise ReadError(f"{path}: column {shown_text(name)} has {content.kind}, but the model was fitted to {what}")


def _require_numbers(path: Path, name: str, content: Content, choice: ColumnChoice, otherwise: str) -> None:
    if content.kind is Kind.NUMBERS:
        return
    what = str(content.kind) if content.kind is not Kind.OTHER else content.note
    if content.kind is Kind.TEXTS:
        numbers = content.series.cast(float, strict=False)
        what = f"text: {listed_texts(content.series.filter(numbers.is_null()).drop_nulls())}"
    help_ = "--dates number makes it one" if content.kind is Kind.DATES and not choice.fitted else otherwise
    raise ReadError(f"{path}: column {shown_text(name)} is not numeric ({what}); {help_}")


def _why_no_texts(content: Content, choice: ColumnChoice) -> str:
    """Return why a column of texts, dates or others is no feature, or "" if it is one."""
    kind, note = content.kind, content.note
    if kind is Kind.VECTORS:
        return "vectors"
    if kind is Kind.OTHER:
        return note
    if kind is Kind.DATES:
        return "dates" + (f", {note}" if note else "") if choice.dates == Dates.IGNORE else ""
    n, different = len(content.series) - content.series.null_count(), distinct(content.series)
    if different <= 1:
        return EMPTY if not n else CONSTANT
    classes = different <= min(MOST_CLASSES, n / 2)
    if classes and _encodes(content, choice):
        return ""
    what = f"text, {different} classes" if classes else f"text, {different} different"
    totals = content.series.filter(content.series.str.to_lowercase().str.strip_chars(": ").is_in(TOTALS))
    rows = f"rows of totals: {listed_texts(totals)}, --skip leaves lines out" if 0 < len(totals) < n / 2 else ""
    return ", ".join(one for one in (what, note, rows) if one)


ROW_IDS, DATES = "row ids", "dates written as numbers"
# The first and the last day that eight digits are taken for.
FIRST_DIGITS, LAST_DIGITS = 19000101, 21001231


def _are_days(numbers: NDArray[np.float64], low: float, high: float) -> bool:
    """Return whether all whole numbers are days of a calendar, written as 20211231."""
    if low < FIRST_DIGITS or high > LAST_DIGITS:
        return False
    days, months = numbers % 100, numbers // 100 % 100
    return bool(np.all(((days >= 1) & (days <= 31) & (months >= 1) & (months <= 12)) | np.isnan(numbers)))


def _why_no_numbers(contents: Mapping[str, Content], names: Sequence[str], *, drop_constant: bool) -> dict[str, str]:
    """Return which numeric columns are empty, constant (if those are dropped) or ids."""
    why = {}
    for group, numbers in _numbers(contents, names):
        n = len(numbers)
        gaps = np.isnan(numbers).sum(axis=0)
        low, high = np.fmin.reduce(numbers, axis=0), np.fmax.reduce(numbers, axis=0)
        with np.errstate(invalid="ignore"):
            counts = np.all((numbers == np.floor(numbers)) | np.isnan(numbers), axis=0)
        for a, name in enumerate(group):
            if gaps[a] == n:
                why[name] = EMPTY
            elif low[a] == high[a] and not gaps[a] and n > 1 and drop_constant:
                why[name] = CONSTANT
            elif counts[a] and _are_days(numbers[:, a], low[a], high[a]):
                why[name] = f"{DATES}, such as {low[a]:.0f}"
            elif counts[a]:
                reason = _id_reason(name, n, (low[a], high[a]), Steps.of(numbers[:, a]), contents[name].amounts)
                if reason:
                    why[name] = f"{ROW_IDS}, {reason}"
    return why


class Steps(NamedTuple):
    """How whole numbers change from row to row.

    ``unique`` is the share of different values, ``up`` that of rows that are one more than the row before. They are
    ``rising`` if no row is less than the row before, and ``slow`` if none is more than one more, too.
    """

    unique: float
    up: float
    rising: bool
    slow: bool

    @classmethod
    def of(cls, numbers: NDArray[np.float64]) -> Steps:
        n, step = len(numbers), np.diff(numbers)
        different = 1 + int((np.diff(np.sort(numbers[~np.isnan(numbers)])) > 0).sum())
        rising = bool((step >= 0).all())
        return cls(different / n, float((step == 1).sum()) / n, rising, rising and bool((step <= 1).all()))


def _id_reason(name: str, n: int, ends: tuple[float, float], steps: Steps, amounts: bool) -> str:
    """Say why a column of whole numbers looks like ids, or return ""."""
    unique = steps.unique
    words = [word.lower() for word in re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name))]
    first, last = set(words[:1]), set(words[-1:])
    if (first | last) & ID_WORDS or (words and re.fullmatch(r".{3,}(?<!gr)(?<!b)id", words[-1]) and unique > UNIQUE):
        return "by its name"
    compound = words and re.fullmatch(r".{3,}(nummer|nr|number)", words[-1])
    numbered = n > 1 and bool(((first - COUNT_WORDS) | last) & NUMBER_WORDS or compound)
    same_length = len(f"{ends[0]:.0f}") == len(f"{ends[1]:.0f}")
    if numbered and (unique >= COUNTED or (steps.rising and unique >= REPEATED)):
        return "by its name"
    if numbered and ends[0] >= NAMED_CODE and same_length and not amounts:
        return "by its name"
    if n < FEWEST_COUNTED:
        return ""
    if steps.up >= COUNTED or (steps.slow and unique >= REPEATED):
        return "counts up"
    # the rows of groups that each count from 1 may be shuffled
    if numbered and n >= MANY and unique >= REPEATED and unique * n >= COUNTED * (ends[1] - ends[0] + 1):
        return "by its name"
    if amounts:
        return ""
    if unique >= UNIQUE and ends[1] - ends[0] < 1.5 * n:
        return f"each number from {ends[0]:.0f} to {ends[1]:.0f} at most once"
    if unique >= COUNTED and n >= MANY and ends[1] - ends[0] < 1.5 * n:
        return f"nearly all different, from {ends[0]:.0f} to {ends[1]:.0f}"
    if unique >= UNIQUE and ends[0] >= CODE and same_length:
        return f"different codes of {len(f'{ends[0]:.0f}')} digits"
    return ""


def _gaps(contents: Mapping[str, Content], names: Sequence[str]) -> dict[str, str]:
    """Say how many values of columns are missing, and which numbers may stand for missing ones."""
    numeric = [name for name in names if contents[name].kind is Kind.NUMBERS]
    gaps = {name: contents[name].series.null_count() for name in names if contents[name].kind is not Kind.NUMBERS}
    found = {name: f"{n} missing" if n else "" for name, n in gaps.items()}
    for group, numbers in _numbers(contents, numeric):
        low = np.fmin.reduce(numbers, axis=0)
        for name, n in zip(group, np.isnan(numbers).sum(axis=0).tolist(), strict=True):
            found[name] = f"{n} missing" if n else ""
        for a in np.flatnonzero(np.isin(low, STAND_INS)).tolist():
            others = numbers[numbers[:, a] != low[a], a]
            if len(others) and np.fmin.reduce(others) >= 0:
                many = len(numbers) - len(others)
                hint = f"{low[a]:g} in {many} rows, the only negative value: --na {low[a]:g} if it means missing"
                found[group[a]] = ", ".join(one for one in (found[group[a]], hint) if one)
    return found


def _feature_note(content: Content, choice: ColumnChoice, name: str, missing: str) -> str:
    """Say how a column is a feature, if it is not simply a column of numbers."""
    if content.kind is Kind.VECTORS:
        return "vectors"
    if content.kind is Kind.NUMBERS:
        return content.question or ", ".join(one for one in (content.note, missing) if one)
    known = choice.encodings.get(name, {})
    how = known.get("kind") or (choice.categories if content.kind is Kind.TEXTS else choice.dates)
    what = f"{distinct(content.series)} classes" if content.kind is Kind.TEXTS else "dates"
    unknown = content.series.drop_nulls()
    if known.get("classes") and content.kind is Kind.TEXTS:
        unknown = unknown.filter(~unknown.is_in(list(known["classes"])))
        strange = f"unknown to the model: {listed_texts(unknown)}" if len(unknown) else ""
    else:
        strange = ""
    return ", ".join(one for one in (f"{what} as {how}", strange, missing) if one)


def _vectors(path: Path, series: pl.Series, first: int) -> tuple[tuple[str, ...], NDArray[Any]]:
    """Return a column of lists as a matrix; all lists must have the same length."""
    import polars as pl

    lengths = series.arr.len() if isinstance(series.dtype, pl.Array) else series.list.len()
    sizes = lengths.cast(pl.Int64).fill_null(-1).to_numpy()
    width = int(sizes.max())
    short = np.flatnonzero(sizes != width)
    name = shown_text(series.name)
    if len(short):
        size = sizes[short[0]]
        what = "no vector" if size < 0 else f"a vector of {size} numbers"
        raise ReadError(f"{path}: row {first + short[0]} has {what} in column {name}, others have {width}")
    if width < 1:
        raise ReadError(f"{path}: the vectors of column {name} are empty")
    small = isinstance(series.dtype, pl.Array | pl.List) and series.dtype.inner in (pl.Int8, pl.UInt8)
    values = series.explode() if small else series.explode().cast(pl.Float64)
    X = as_rows_of_table(values.to_numpy().reshape(len(series), width))
    return tuple(f"{series.name}[{a}]" for a in range(width)), X


def _values(path: Path, content: Content) -> NDArray[Any]:
    """Return the values of a column that is not a feature: numbers, or texts with None for missing ones."""
    import polars as pl

    series = content.series
    if content.kind is Kind.NUMBERS and content.given.dtype != pl.Boolean and not content.question:
        if series.dtype == pl.Float64 and content.given.dtype == pl.String:
            if "true is 1" in content.note or bool((series.abs() >= 2**53).any()):
                series = content.given
            else:
                return whole_numbers(series.to_numpy())
        elif series.dtype.is_numeric():
            # missing numbers become NaN, so that the others stay numbers
            return series.to_numpy()
    if content.kind is Kind.NUMBERS or content.kind is Kind.DATES:
        series = content.given
    with _naming_column(path, content):
        return without_bytes(np.array(texts_of(series), dtype=object))


def _naming_column(path: Path, content: Content) -> AbstractContextManager[None]:
    """Name the column of values that polars holds but cannot convert, such as a date of the year 30000."""
    return refusing(f"{path}: column {shown_text(content.given.name)} has a value that cannot be read")
