"""Titles, units, further names and totals among the lines of a table: each is a question, and an option answers it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from vicinal.files.batches import read_batches
from vicinal.files.data_table import ColumnChoice
from vicinal.files.number_texts import FileFormat
from vicinal.files.readers import ReadError, read_table
from vicinal.files.tabular_files import kept_lines

NUMBERS = np.random.default_rng(0).uniform(10, 90, (12, 2)).round(2)
ROWS = [f"s{a},{x},{y}" for a, (x, y) in enumerate(NUMBERS.tolist())]
GERMAN = [f"s{a};{x};{y}".replace(".", ",") for a, (x, y) in enumerate((100 * NUMBERS).round(2).tolist())]
SUMS, MEANS = (",".join(f"{one:.3f}" for one in some) for some in (NUMBERS.sum(axis=0), NUMBERS.mean(axis=0)))
# The lines of a file, the end of the question that it raises, and the option that answers it.
CASES: list[tuple[list[str], str, dict[str, Any]]] = [
    (["Report", "for 2023,spring", "", "id,a,b", *ROWS], "names are in line 4: --skip 1-3; .*", {"skip": (1, 2, 3)}),
    (["Bericht", "", "id;a;b", *GERMAN], "names are in line 3: --skip 1-2; .*", {"skip": (1, 2)}),
    (["Report,,", "id,a,b", *ROWS], "line 1 names 1 of 3 columns; .* --skip 1; if not: --header", {"skip": (1,)}),
    (["Report,,", ",,", "id,a,b", *ROWS], "line 1 names .* --skip 1; .*", {"skip": (1, 2)}),
    (["id,a,b", ",°C,mg/l", *ROWS], "line 2 has texts above numbers: '°C', 'mg/l'; .*--skip 2; .*", {"skip": (2,)}),
    (["id,a,b", 'x,"how\nold",size', "{x},{y},{z}", *ROWS], "line 2 has .*--skip 2-3; .*--skip 1", {"skip": (2, 3)}),
    (["2022,,", "id,a,b", *ROWS], "line 1 names 1 of 3 columns; .*", {"skip": (1,)}),
    (["", "id,a,b", "id,°C,°C", *ROWS], "line 3 has texts .* --skip 3; .*--skip 1-2", {"skip": (1, 3)}),
    (["id,a,b", *ROWS[:5], "id,a,b", *ROWS[5:]], "row 5 repeats the names .*", {"skip": (7,)}),
    (["id,a,b", *ROWS, "Source: a survey"], "if no row begins there: --skip -1", {"skip": (-1,)}),
    (["id,a,b", *ROWS, "", "Source: a survey", "of 2023", ""], "--skip -1,-2", {"skip": (-1, -2)}),
    (["id,a,b", *ROWS, f"Total,{SUMS}"], "last row has the sums or means .* --skip -1", {"skip": (-1,)}),
    (["id,a,b", *ROWS, f"Mittel,{MEANS}", ""], "last row has the sums or means .* --skip -1", {"skip": (-1,)}),
    (ROWS, "it has numbers: .*; say --header or --no-header", {"header": False}),
]


@pytest.mark.parametrize(("lines", "question", "answer"), CASES, ids=range(len(CASES)))
def test_stray_lines_are_questions(tmp_path: Path, lines: list[str], question: str, answer: dict[str, Any]) -> None:
    path = tmp_path / "data.csv"
    path.write_text("\n".join(lines) + "\n")
    for options in ({}, {"missing": True}):
        with pytest.raises(ReadError, match=question + "$"):
            read_table(path, ColumnChoice(**options))
    choice = ColumnChoice(form=FileFormat(**answer))
    table = read_table(path, choice)
    expected = NUMBERS * (100 if lines[-1] == GERMAN[-1] else 1)
    assert table.feature_names == (("1", "2") if "header" in answer else ("a", "b"))
    np.testing.assert_allclose(table.X, expected, rtol=1e-6)
    batches = np.concatenate([one.X for one in read_batches(path, 5, choice)])
    np.testing.assert_array_equal(batches, table.X)


@pytest.mark.parametrize(
    "names",
    ["id,2019,2020", "id,0,1", ",0,1", "1,2,3", "id,400.5,402.1,403.9,405.2", "id,a,b,,,"],
)
def test_numbers_that_are_names_are_no_question(tmp_path: Path, names: str) -> None:
    _, *others = names.split(",")
    rows = [",".join([f"s{a}", *(f"{a + 0.5}" if name else "" for name in others)]) for a in range(12)]
    (tmp_path / "data.csv").write_text("\n".join([names, *rows]) + "\n")
    assert read_table(tmp_path / "data.csv").feature_names == tuple(filter(None, others))


def test_a_number_among_names_needs_no_question_if_told(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("\n".join(["id,7.5,b", *ROWS]))
    assert read_table(tmp_path / "data.csv").feature_names == ("7.5", "b")  # b is above numbers
    (tmp_path / "data.csv").write_text("\n".join(["id,7.5,3", *ROWS]))
    with pytest.raises(ReadError, match="--header or --no-header"):
        read_table(tmp_path / "data.csv")
    assert read_table(tmp_path / "data.csv", ColumnChoice(form=FileFormat(header=True))).feature_names == ("7.5", "3")


def test_columns_without_names_are_no_title_if_told(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("\n".join(["id,,", *ROWS]))
    with pytest.raises(ReadError, match="if not: --header"):
        read_table(tmp_path / "data.csv")
    assert read_table(tmp_path / "data.csv", ColumnChoice(form=FileFormat(header=True))).X.shape == (12, 1)


def test_rows_like_totals_stay(tmp_path: Path) -> None:
    """Counts that are mostly 0 have sums that equal a count; a failing sensor writes the same text into all columns."""
    counts = np.zeros((40, 6), dtype=int)
    counts[::9] = 1
    counts[-1] = counts[:-1].sum(axis=0)
    pl.DataFrame(counts, schema=list("abcdef")).write_csv(tmp_path / "counts.csv")
    assert len(read_table(tmp_path / "counts.csv").X) == 40
    # the mean of the years above the last one is 1995.08
    years = np.column_stack([1990 + np.array([*range(11), 6, 5]), NUMBERS[[*range(12), 0], 0]])
    pl.DataFrame(years, schema=["year", "x"]).write_csv(tmp_path / "years.csv")
    assert len(read_table(tmp_path / "years.csv").X) == 13
    (tmp_path / "sensor.csv").write_text("\n".join(["id,a,b", *ROWS[:5], "s,broken,broken", *ROWS[5:]]))
    assert np.isnan(read_table(tmp_path / "sensor.csv", ColumnChoice(missing=True)).X[5]).all()


def test_rows_named_as_totals_are_said(tmp_path: Path) -> None:
    names = ["Total", *(f"s{a}" for a in range(5)), "Total:", *(f"s{a}" for a in range(5, 10))]
    lines = [f"{name},{x},{y}" for name, (x, y) in zip(names, NUMBERS.tolist(), strict=True)]
    (tmp_path / "data.csv").write_text("\n".join(["id,a,b", *lines]))
    reasons = {one.name: one.reason for one in read_table(tmp_path / "data.csv").columns}
    assert reasons["id"] == "text, 12 different, rows of totals: 'Total', 'Total:', --skip leaves lines out"


def test_empty_lines_are_no_rows(tmp_path: Path) -> None:
    lines = [line for row in ROWS for line in (row, "", ",,")]
    (tmp_path / "data.csv").write_text("\n".join(["", "id,a,b", "", *lines]))
    table = read_table(tmp_path / "data.csv")
    np.testing.assert_allclose(table.X, NUMBERS, rtol=1e-6)
    # a row of missing values is one, and so is an empty line of a single column
    (tmp_path / "data.csv").write_text("\n".join(["a,b", "1,2", "NA,NA", "3,5"]))
    assert len(read_table(tmp_path / "data.csv", ColumnChoice(missing=True)).X) == 3
    (tmp_path / "data.csv").write_text("a\n1.5\n\n3\n")
    assert len(read_table(tmp_path / "data.csv", ColumnChoice(missing=True)).X) == 3


def test_lines_may_end_as_on_old_macs(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes("\r".join(["id,a,\u200bb\u00a0", *ROWS, ""]).encode())
    table = read_table(tmp_path / "data.csv")
    assert table.feature_names == ("a", "b")
    np.testing.assert_allclose(table.X, NUMBERS, rtol=1e-6)


def test_a_stated_separator_is_used(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("\n".join(["sep=;", "id;a;b", *GERMAN]))
    np.testing.assert_allclose(read_table(tmp_path / "data.csv").X, 100 * NUMBERS, rtol=1e-6)


def test_lines_are_counted_from_both_ends() -> None:
    def kept(*skip: int) -> list[int]:
        return [number for number, _ in kept_lines("abcdef", skip)]

    assert kept() == [1, 2, 3, 4, 5, 6]
    assert kept(1, -1) == [2, 3, 4, 5]
    assert kept(-2) == [1, 2, 3, 4, 6]
    assert kept(5, -3) == [1, 2, 3, 6]
    assert kept(9, -9) == [1, 2, 3, 4, 5, 6]
    assert all(b - a == 1 for a, b in pairwise(kept(-6)))


def test_quotes_never_join_rows(tmp_path: Path) -> None:
    rows = [[f'{a}" pipe', x, y] for a, (x, y) in enumerate(NUMBERS.tolist())]
    path = tmp_path / "data.csv"
    path.write_text("size,a,b\n" + "".join(f"{name},{x},{y}\n" for name, x, y in rows))
    table = read_table(path)
    np.testing.assert_allclose(table.X, NUMBERS, rtol=1e-6)
    assert table.columns[-1].values is not None
    assert table.columns[-1].values.tolist() == [name for name, *_ in rows]
    for name in ('"5" pipe"', r'"O\"Neill"'):
        path.write_text("size,a,b\n" + "".join(f"{name},{x},{y}\n" for _, x, y in rows))
        for read in (read_table, lambda path: list(read_batches(path, 5))):
            with pytest.raises(ReadError, match=r"data\.csv: line 2 has a quote within quotes that is not doubled"):
                read(path)
    # a line break within quotes, and a file where each third row has one
    path.write_text("size,a,b\n" + "".join(f'"s\n""{a}""",{x},{y}\n' for a, (_, x, y) in enumerate(rows)))
    assert read_table(path).columns[-1].values.tolist() == [f's\n"{a}"' for a in range(12)]  # type: ignore[union-attr]
