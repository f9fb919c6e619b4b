"""Files as people have them: which columns are used, how their numbers are read, and what has to be answered first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from vicinal.files.column_contents import recognize
from vicinal.files.data_table import Categories, ColumnChoice, Dates, Role
from vicinal.files.frame_table import frame_table
from vicinal.files.number_texts import FileFormat, date_format, read_dates
from vicinal.files.readers import SUFFIXES, ReadError, describe, read_table

FOLDER = Path(__file__).parents[1] / "data" / "messy"
# For every file the features with their first values, and why some other columns are none.
EXPECTED: dict[str, tuple[dict[str, float], dict[str, str]]] = {
    "pinguine.csv": (  # Windows' code page, semicolons, decimal commas, thousands with points
        {"Schnabellänge (mm)": 39.1, "Schnabelhöhe (mm)": 18.7, "Flossenlänge (mm)": 181, "Masse (g)": 3750,
         "Delta 15 N": np.nan, "Delta 13 C": np.nan},
        {"Sample Number": "row ids, counts up", "Studie": "constant", "Art": "text, 3 classes", "Datum": "dates"},
    ),
    "loyers.tsv": (  # narrow blanks between thousands, euros, percent
        {"loyer": 771.5, "surface (m²)": 71.2, "revenu médian": 16289, "part de locataires": 45, "anciens baux": 39},
        {"ville": "text, 6 classes", "date": "dates"},
    ),
    "stores.csv": (  # dollars, quoted thousands, several marks of missing values, account numbers that repeat
        {"Revenue": 186896.38, "Cost": 145265.11, "Margin": 22.3, "Employees": 2137, "Rating": 4.1},
        {"Account Number": "row ids, by its name", "Opened": "dates", "Fax": "empty",
         "Zip Code": "text, 50 different, codes with leading zeros"},
    ),
    "ledger.csv": (  # commas within names, negative amounts in parentheses, numbers of vouchers per group, shuffled
        {"Balance": 5262.42, "Fee": 25.69, "Parcels": 3},
        {"Customer, office": "text, 12 classes", "Voucher Number": "row ids, by its name",
         "Posted": "dates written as numbers, such as 20230111"},
    ),
    "ambiguous.csv": ({"people": 1234, "area": 10}, {"town": "text, 12 different"}),
    "personen.csv": ({"Alter": 31, "Größe": 1.9, "Gewicht": 81.6}, {"Name": "text, 12 different"}),  # UTF-16, tabs
    "books.csv": (  # semicolons, quoted commas, semicolons, quotes and line breaks
        {"year": 2001, "pages": 778, "price": 23.6}, {"title": "text, 24 different"},
    ),
    "visits.csv": (
        {"visit": 1, "height": 163.6, "pulse": 70, "temperature": 37},
        {"": "no name", "site": "text, 8 classes", "visit_date": "dates", "when": "dates", "device": "constant",
         "remark": "empty", "unused": "empty"},
    ),
    "users.csv": (
        {"member": 1, "visits": 7, "spent": 10.71},
        {"UserID": "row ids, by its name", "postal": "text, 30 different, codes with leading zeros",
         "newsletter": "text, 2 classes"},
    ),
    "measurements.xlsx": (
        {"yield": 5.26, "height": 85.6, "moisture": 27.1},
        {"plot": "row ids, counts up", "treatment": "text, 3 classes", "sown": "dates", "empty": "empty"},
    ),
    "report.xlsx": (  # titles above the names, a total below an empty line
        {"revenue": 51.13, "cost": 48.81, "share": 55.76, "open": 0}, {"store": "text, 30 different"},
    ),
    "trees.ods": ({"girth": 17.9, "height": 81.1, "volume": 34.5}, {"stem": "text, 20 different"}),
    "sensors.jsonl": ({"reading": 23.18, "voltage": 3.315}, {"sensor": "text, 4 classes", "error": "empty"}),
    "wide.csv": (
        {f"ENSG{a:05d}": np.nan for a in range(300)}, {"sample": "text, 12 different", "group": "text, 2 classes"},
    ),
}  # fmt: skip
# What the user has to say before a file can be read.
ANSWERS: dict[str, dict[str, Any]] = {
    "ambiguous.csv": {"form": FileFormat(decimal=".")},
    "measurements.xlsx": {"form": FileFormat(sheet="plots")},
    "report.xlsx": {"form": FileFormat(skip=(1, 2, -1))},
}


def test_every_messy_file_is_expected() -> None:
    assert {path.name for path in FOLDER.iterdir() if path.suffix in SUFFIXES} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_columns_of_messy_files(name: str) -> None:
    features, others = EXPECTED[name]
    table = read_table(FOLDER / name, ColumnChoice(missing=True, **ANSWERS.get(name, {})))
    assert table.feature_names == tuple(features)
    for number, wanted in zip(table.X[0], features.values(), strict=True):
        assert np.isnan(wanted) or number == np.float32(wanted)
    reasons = {column.name: column.reason for column in table.columns if column.role is not Role.FEATURE}
    assert {column: reasons[column] for column in others} == others


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("ambiguous.csv", {"missing": True}, r"'people': '1,234' may have decimals or thousands: say --decimal \. or"),
        ("report.xlsx", {"missing": True}, "line 1 names 1 of 5 columns; if it is a title, leave it out: --skip 1; "),
        ("report.xlsx", {"form": FileFormat(skip=(1, 2))}, "last row has the sums or means .* --skip -1"),
        ("measurements.xlsx", {"form": FileFormat(sheet="x")}, "no sheet 'x'; it has 'notes', 'plots'"),
        ("visits.csv", {}, r"row 5 has 'broken', not a number, in column 'temperature' \(3 rows .* --impute .* nan_eu"),
        ("stores.csv", {"features": ["Region"]}, r"'Region' is not numeric \(text: 'North' \(17\), 'South' .*one-hot"),
        ("stores.csv", {"features": ["Opened"]}, "'Opened' is not numeric .*--dates number"),
        ("stores.csv", {"values": ["Region"]}, "'Region' is not numeric"),
        ("books.csv", {"form": FileFormat(encoding="klingon")}, "--encoding klingon is not known"),
        ("books.csv", {"form": FileFormat(sheet="a")}, "--sheet applies only to .xlsx and .ods"),
        ("books.csv", {"exclude": ["year", "color"]}, "no column 'color'"),
        ("books.csv", {"exclude": ["year"], "features": ["year"]}, "both a feature and excluded"),
        ("books.csv", {"features": ["pages"], "dates": Dates.NUMBER, "label": "x"}, "no column 'x'"),
    ],
)
def test_questions_and_mistakes_are_named(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ReadError, match=message):
        read_table(FOLDER / name, ColumnChoice(**options))


def column(values: list[str], name: str = "a", **form: Any) -> tuple[str, list[Any], str, str]:
    frame = pl.DataFrame({name: values, "b": ["x"] * len(values)})
    found = recognize(frame, FileFormat(**form))[name]
    return str(found.kind), found.series.to_list(), found.note, found.question


@pytest.mark.parametrize(
    ("values", "numbers"),
    [
        (["1,5", "2,25", "3"], [1.5, 2.25, 3]),
        (["1.234,56", "12,00", "7"], [1234.56, 12, 7]),
        (["1.234.567", "3"], [1234567, 3]),
        (["$1,234.50", "-$12", "$ 3.25"], [1234.5, -12, 3.25]),
        (["1 234,5 €", "12 €", "k.A."], [1234.5, 12, None]),
        (["1'234.50", "12"], [1234.5, 12]),
        (["12 %", "3.5%", "unknown"], [12, 3.5, None]),
        (["\u22123,5", "+2,5"], [-3.5, 2.5]),
        (["1,234.50", "(12.50)", "($3.00)", "7.25-"], [1234.5, -12.5, -3, -7.25]),
        (["1,23,456.5", "12"], [123456.5, 12]),
        (["1e-5", "2E3", "-"], [1e-5, 2000, None]),
        ([" 1.5", "2 "], [1.5, 2]),
        (["\u200b1.5", "\u200e2\u00a0"], [1.5, 2]),
        (["TRUE", "false"], [1, 0]),
        (["70.5 kg", "68 kg", "n.n."], [70.5, 68, None]),
        (["36,6 °C", "37 °C"], [36.6, 37]),
        (["12 Stk.", "3Stk."], [12, 3]),
        (["1.234,5 mg/l", "12,5mg/l"], [1234.5, 12.5]),
    ],
)
def test_numbers_of_people(values: list[str], numbers: list[float | None]) -> None:
    kind, found, _, question = column(values)
    assert (kind, found, question) == ("numbers", numbers, "")


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (["$1.50", "2.50 €"], "amounts of different units ($, €)"),
        (["12 %", "0.5", "3 %"], "amounts of different units (none, %)"),
        (["007", "011"], "codes with leading zeros"),
        (["030 123 456", "089 765 432"], "codes with leading zeros"),
        (["001A", "002A"], "codes with leading zeros"),
        (["+49 170 575 595", "+41 44 668 100"], "phone numbers"),
        (["192.168.100.101", "192.168.100.102"], "IP addresses"),
        (["3 kg", "500 g", "2 kg"], "amounts of different units (g, kg)"),
        (["3 kg", "2.5 kg", "1"], ""),
        (["1", "2", "3", "a", "b", "c", "d"], ""),
        (["1", "2", "3", "4", "5", "a", "b", "c", "d"], "56% of its values are numbers"),
        (["cat, dog", "1,5 and more"], ""),
        (["1.2.3", "1,2,3"], ""),
    ],
)
def test_texts_stay_texts(values: list[str], note: str) -> None:
    assert column(values) == ("text", values, note, "")


def test_few_odd_values_are_counted_and_shown() -> None:
    values = [str(a / 2) for a in range(40)] + ["broken", "broken", "see note", "-"]
    kind, found, note, _ = column(values)
    assert (kind, found[-5:]) == ("numbers", [19.5, None, None, None, None])
    assert note == "missing values written as '-', not numbers: 'broken' (2), 'see note'"
    _, _, note, _ = column(values, na=("broken",))
    assert note == "missing values written as '-', not numbers: 'see note'"


def test_one_column_decides_how_others_are_read() -> None:
    def read(text: str, **form: Any) -> list[Any]:
        frame = pl.DataFrame({"a": ["1,234", "2,345"], "b": text.split()})
        found = recognize(frame, FileFormat(**form))["a"]
        return [found.question] if found.question else found.series.to_list()

    assert read("0,5 7") == [1.234, 2.345]
    assert read("0.5 7") == [1234, 2345]
    assert read("1.234,5 7") == [1.234, 2.345]
    assert "say --decimal" in read("x y")[0]
    assert read("x y", decimal=",") == [1.234, 2.345]
    assert read("x y", thousands=",") == [1234, 2345]
    # codes and single numbers among texts decide nothing
    hosts, months = [f"192.168.100.{a}" for a in (101, 102, 103)], ["01.2021", "02.2021", "12.2021"]
    others = {"host": hosts, "month": months, "note": ["1.5 kg", "x", "y"]}
    frame = pl.DataFrame({"a": ["1,234", "2,345", "3,456"], **others})
    assert "say --decimal" in recognize(frame, FileFormat())["a"].question
    # a point before three digits each time separates thousands, perhaps, if there are also numbers without one
    grouped = pl.DataFrame({"a": ["1.234", "950", "12.500"], "b": ["7", "8", "9"]})
    assert "say --decimal" in recognize(grouped, FileFormat())["a"].question
    decided = grouped.with_columns(c=pl.Series(["0.5", "1", "2"]))
    assert recognize(decided, FileFormat())["a"].series.to_list() == [1.234, 950, 12.5]
    # only a file with semicolons may come from a country where a point separates thousands
    points = pl.DataFrame({"a": ["1.234", "2.345"]})
    assert recognize(points, FileFormat())["a"].series.to_list() == [1.234, 2.345]
    assert "say --decimal" in recognize(points, FileFormat(separator=";"))["a"].question


def test_dates() -> None:
    for texts, order in (
        ("2021-03-04 2021-12-31", "ymd"), ("4.3.2021 31.12.2021", "dmy"), ("04/03/2021 31/12/2021", "dmy"),
        ("03/04/2021 12/31/2021", "mdy"), ("03/04/2021 05/06/2021", "?"), ("1.2 3.4", None), ("3.2021 4.5", None),
    ):  # fmt: skip
        series = pl.Series("when", texts.split())
        assert date_format(series) == order
        if order in ("ymd", "dmy", "mdy"):
            assert [str(one)[:10] for one in read_dates(series, order).to_list()] == ["2021-03-04", "2021-12-31"]
    assert read_dates(pl.Series("when", ["2021-02-31", "2021-02-28T23:59"]), "ymd").is_null().to_list() == [True, False]
    for months in ("03.2021 12.2021", "03/2021 12/2021", "2021-03 2021-12"):
        found = recognize(pl.DataFrame({"when": months.split()}), FileFormat())["when"]
        assert [str(one)[:10] for one in found.series.to_list()] == ["2021-03-01", "2021-12-01"]
    open_dates = pl.DataFrame({"d": ["03/04/2021", "05/06/2021"]})
    with pytest.raises(ReadError, match="'03/04/2021' may be day/month or month/day"):
        frame_table(Path("f"), open_dates, ColumnChoice(features=["d"], dates=Dates.NUMBER))


def test_classes_and_dates_become_features() -> None:
    names = ["site", "visit_date", "when", "height"]
    choice = ColumnChoice(features=names, categories=Categories.ONE_HOT, dates=Dates.CYCLIC)
    table = read_table(FOLDER / "visits.csv", choice)
    assert len(table.feature_names) == 8 + 4 + 6 + 1
    assert table.indicators.tolist() == [True] * 18 + [False]
    X = dict(zip(table.feature_names, table.X.T, strict=True))
    sites = np.stack([X[f"site=S{a:02d}"] for a in range(8)], axis=1)
    assert np.array_equal(sites, np.repeat(np.eye(8), 5, axis=0))
    for period in ("year", "week"):
        assert X[f"visit_date cos {period}"] ** 2 + X[f"visit_date sin {period}"] ** 2 == pytest.approx(np.ones(40))
    shares = read_table(FOLDER / "stores.csv", ColumnChoice(features=["Region"], categories=Categories.FREQUENCY))
    assert sorted(set(shares.X[:, 0].tolist())) == pytest.approx([16 / 50, 17 / 50])
    days = read_table(FOLDER / "visits.csv", ColumnChoice(features=["visit_date"], dates=Dates.NUMBER))
    assert days.X[0, 0] == 8095  # from 2000-01-01 to 2022-03-01


def test_ids_are_found_by_what_they_count_too() -> None:
    n = np.arange(60)
    rng = np.random.default_rng(0)
    ids = {
        "counter": n,
        "again": n % 30,
        "pairs": n // 2,
        "shuffled": rng.permutation(60),
        "with gaps": rng.permutation(80)[:60],
        "nearly": rng.permutation([*range(57), 3, 5, 8]),
        "Sample Number": rng.permutation(n % 20),
        "Order No": rng.choice(10**4, 60, replace=False),
        "customerId": rng.integers(1, 9, 60),
        "barcode": rng.integers(10**7, 10**8, 60),
        "ticket": rng.choice(np.arange(200_000, 900_000), 60, replace=False),
        "Postleitzahl": rng.choice([10115, 80331, 20095], 60),
        "Kundennr.": rng.choice([40001, 40002, 40007], 60),
        "Order Number": rng.choice([40001, 40002, 40007], 60),
    }
    measured = {
        "year": 2000 + n % 7, "visits": rng.poisson(5, 60), "income": rng.integers(900, 90_000, 60), "rooms": 1 + n % 3,
        "paid": rng.normal(size=60), "num_words": rng.choice(9000, 60, replace=False), "visit number": 1 + n % 5,
        "Number of guests": rng.choice(9000, 60, replace=False), "range": rng.integers(0, 90, 60),
        "Hausnummer": rng.integers(1, 12, 60), "price code": rng.choice([9000, 12_000], 60),
    }  # fmt: skip
    frame = pl.DataFrame(ids | measured)
    table = frame_table(Path("file"), frame, ColumnChoice())
    assert table.feature_names == tuple(measured)
    assert all(one.reason.startswith("row ids, ") for one in table.columns if one.role is Role.DISPLAY)
    assert frame_table(Path("file"), frame, ColumnChoice(features=["counter"])).feature_names == ("counter",)


def test_amounts_are_no_codes_and_eight_digits_may_be_days() -> None:
    rng = np.random.default_rng(0)
    revenue = rng.choice(np.arange(200_000, 900_000), 60, replace=False)
    days = [20210000 + 100 * (1 + a % 12) + 1 + a % 28 for a in range(30)] * 2
    frame = pl.DataFrame({
        "euros": [f"{one} €" for one in revenue], "grouped": [f"{one:,}" for one in revenue], "day": days,
        "no day": [one + 50 for one in days],
    })  # fmt: skip
    table = frame_table(Path("file"), frame, ColumnChoice(form=FileFormat(decimal=".")))
    assert table.feature_names == ("euros", "grouped", "no day")
    assert {one.name: one.reason for one in table.columns}["day"] == "dates written as numbers, such as 20210101"


def test_columns_beyond_a_size_do_not_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vicinal.files.data_table.TRAVEL_BYTES", 400)
    words = ["abcdefghijklmnopqrstuvwxyz"] * 26 + ["z"]
    frame = pl.DataFrame({"x": [1.5, 2.5, 0.5] * 9, "long": words, "short": ["a", "b", "c"] * 9})
    columns = {one.name: one for one in frame_table(Path("file"), frame, ColumnChoice()).columns}
    assert columns["long"].role is Role.IGNORED
    assert "--hover shows it" in columns["long"].reason
    assert columns["short"].role is Role.DISPLAY
    chosen = frame_table(Path("file"), frame, ColumnChoice(display=["long"]))
    assert "long" in chosen.names(Role.DISPLAY)


def test_numbers_that_may_stand_for_missing_values_are_shown() -> None:
    notes = {one.name: one.reason for one in read_table(FOLDER / "visits.csv", ColumnChoice(missing=True)).columns}
    assert notes["pulse"] == "-999 in 2 rows, the only negative value: --na -999 if it means missing"
    table = read_table(FOLDER / "visits.csv", ColumnChoice(missing=True, form=FileFormat(na=("-999", "broken"))))
    notes = {one.name: one.reason for one in table.columns}
    assert (notes["pulse"], notes["temperature"]) == ("2 missing", "not numbers: 'see note', 3 missing")
    assert np.isnan(table.X[:, 2]).sum() == 2


def test_description_tells_the_problem() -> None:
    n, columns, _, problem = describe(FOLDER / "ambiguous.csv")
    assert (n, [str(one.role) for one in columns]) == (12, ["feature", "feature", "display"])
    assert "say --decimal" in problem
    assert describe(FOLDER / "trees.ods")[2:] == ("", "")


def test_empty_columns_are_left_out_of_every_format(tmp_path: Path) -> None:
    values = np.array([[1.5, np.nan, 2], [3, np.nan, 4.5], [0, np.nan, 1]])
    np.save(tmp_path / "a.npy", values)
    frame = pl.DataFrame({"a": [1.5, 3, 0], "b": [None] * 3, "c": [2.0, 4.5, 1.0]}, schema_overrides={"b": pl.Float64})
    frame.write_csv(tmp_path / "b.csv")
    frame.write_parquet(tmp_path / "c.parquet")
    frame.write_ndjson(tmp_path / "d.jsonl")
    for name in ("a.npy", "b.csv", "c.parquet", "d.jsonl"):
        table = read_table(tmp_path / name)
        assert table.X.tolist() == values[:, [0, 2]].tolist()
        assert [one.reason for one in table.columns if one.role is Role.IGNORED] == ["empty"]


LONG = "some words " * 1000


@pytest.mark.parametrize(
    ("content", "choice"),
    [
        ("a,b\n" + "1,2\n" * 40 + f"1,{LONG}\n", ColumnChoice()),
        ("a,b\n" + f"1,{LONG}\n" * 2, ColumnChoice(features=["b"])),
        (f"a,{LONG}\n1,2\n3,4\n", ColumnChoice(label="c")),
        (f"a,{LONG}\n1,2\n3,\n", ColumnChoice()),
        (f"a,{LONG}\n1,x\n3,y\n", ColumnChoice(features=[LONG])),
    ],
)
def test_messages_quote_only_the_beginning_of_long_texts(tmp_path: Path, content: str, choice: ColumnChoice) -> None:
    (tmp_path / "data.csv").write_text(content)
    with pytest.raises(ReadError) as found:
        read_table(tmp_path / "data.csv", choice)
    assert len(str(found.value)) < 1000
