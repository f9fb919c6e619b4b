"""Invalid input: one line on stderr, exit code 2, and no file is changed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest
from cli.command_inputs import ROWS, Run, Stub, csv_of, hidden_files, write
from numpy.typing import NDArray

import vicinal

GOOD = csv_of(ROWS)
# What is said about the columns before an error that only the fit, or a later batch, can find.
COLUMNS_LINE = r"(\d features: [^\n]+\n)?"

PARQUET_MAGIC = b"PAR1" + bytes(40) + b"PAR1"


def _npy(array: NDArray[Any]) -> Callable[[str], None]:
    return lambda path: np.save(path, array)


def _archive(path: str) -> None:
    # savez adds .npz to a path that lacks it, but not to an open file
    with Path(path).open("wb") as file:
        np.savez(file, ROWS)


# (description, file name, its content or a function that writes it, further arguments, expected part of the message)
BAD: list[tuple[str, str, str | bytes | Callable[[str], None] | None, str, str]] = [
    ("missing file", "data.csv", None, "", "does not exist"),
    ("a directory", "data.csv", lambda path: Path(path).mkdir(), "", "directory"),
    ("an empty file", "data.csv", "", "", "empty"),
    ("only a header", "data.csv", "a,b\n", "", "no rows"),
    ("a blank line", "data.csv", "\n", "", "data.csv"),
    ("unknown suffix", "data.xls", GOOD, "", "unknown suffix"),
    ("no suffix", "data", GOOD, "", "unknown suffix"),
    ("a long row", "data.csv", GOOD + "1,2,3,4,5\n", "", "line 62 has 5"),
    ("a short row", "data.csv", GOOD + "1,2\n", "", "line 62 has 2"),
    ("no numeric column", "data.csv", "a,b\nx,y\nz,w\n", "", "no numeric column"),
    ("an unknown separator", "data.csv", "a:b\n1:2\n", "", "'a:b'"),
    ("bytes, not text", "data.csv", bytes(range(256)), "", "data.csv"),
    ("a missing value", "data.csv", GOOD + "1,,3,4\n", "", "row 60 has no value in column 'b'"),
    ("NaN in csv", "data.csv", GOOD + "1,NaN,3,4\n", "", "row 60"),
    ("infinity in csv", "data.csv", GOOD + "1,2,inf,4\n", "", "row 60 has inf in column 'c'"),
    ("too large for float32", "data.csv", GOOD + "1,2,1e300,4\n", "", "too large for float32"),
    (
        "NaN in npy",
        "data.npy",
        _npy(np.where(np.arange(8).reshape(4, 2) == 5, np.nan, 1.0)),
        "",
        "row 2 has nan",
    ),
    (
        "infinity in parquet",
        "data.parquet",
        lambda p: pl.DataFrame({"a": [1.0, 1e999]}).write_parquet(p),
        "",
        "row 1",
    ),
    ("objects", "data.npy", _npy(np.array([[1, "a"]], dtype=object)), "", "Python objects"),
    ("complex numbers", "data.npy", _npy(np.ones((5, 2), dtype=complex)), "", "complex128"),
    ("text in npy", "data.npy", _npy(np.array([["a", "b"]])), "", "not real numbers"),
    ("one dimension", "data.npy", _npy(np.ones(5)), "", "2-D"),
    ("three dimensions", "data.npy", _npy(np.ones((5, 2, 2))), "", "2-D"),
    ("no rows in npy", "data.npy", _npy(np.ones((0, 2))), "", "no rows"),
    ("no columns in npy", "data.npy", _npy(np.ones((5, 0))), "", "no numeric column"),
    ("not npy", "data.npy", "hello", "", "not a complete .npy"),
    ("cut npy", "data.npy", b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'for", "", "not a complete .npy"),
    ("an archive", "data.npy", _archive, "", "archive"),
    ("corrupt parquet", "data.parquet", PARQUET_MAGIC, "", "not a valid parquet"),
    ("text as parquet", "data.parquet", GOOD, "", "not a valid parquet"),
    ("unknown column", "data.csv", GOOD, "--features a,q", "no column 'q'; it has 'a', 'b', 'c', 'd'"),
    ("unknown label", "data.csv", GOOD, "--label q", "no column 'q'"),
    ("label among columns", "data.csv", GOOD, "--features a,b --label b", "both a feature and the label"),
    ("column twice", "data.csv", GOOD, "--features a,a", "twice"),
    ("no columns", "data.csv", GOOD, "--features ,", "at least one"),
    ("text as column", "data.csv", "a,b\n1,x\n2,y\n", "--features a,b", "'b' is not numeric"),
    ("column beyond npy", "data.npy", _npy(ROWS), "--features 0,4", "no column '4'"),
    ("n_neighbors too small", "data.csv", GOOD, "--n-neighbors 1", "--n-neighbors"),
    ("n_neighbors not a number", "data.csv", GOOD, "--n-neighbors many", "--n-neighbors"),
    ("negative min_dist", "data.csv", GOOD, "--min-dist -0.1", "--min-dist"),
    ("min_dist not a number", "data.csv", GOOD, "--min-dist nan", "--min-dist"),
    ("unknown method", "data.csv", GOOD, "--method pca", "pca"),
    ("parameter without value", "data.csv", GOOD, "--param spread", "NAME=VALUE"),
    ("unknown parameter", "data.csv", GOOD, "--param color=red", "not a parameter of"),
    ("parameter of the wrong kind", "data.csv", GOOD, "--param spread=wide", "spread"),
    ("parameter with an option of its own", "data.csv", GOOD, "--param random_state=1", "--seed"),
    ("unknown id", "data.csv", GOOD, "--id q", "no column 'q'"),
    ("unknown hover", "data.csv", GOOD, "--hover a,q", "no column 'q'"),
    ("array of a table", "data.csv", GOOD, "--array X", "applies only to .npz and .h5ad"),
    ("page of 4-D", "data.csv", GOOD, "--n-components 4 --html map.html", "--html"),
    ("page suffix", "data.csv", GOOD, "--html map.txt", ".html"),
    ("text as feather", "data.feather", GOOD, "", "not a valid feather"),
    ("text as jsonl", "data.jsonl", "hello\n", "", "data.jsonl"),
    ("jsonl without numbers", "data.jsonl", '{"a": "x"}\n{"a": "y"}\n', "", "no numeric column"),
    ("jsonl with a gap", "data.jsonl", '{"a": 1, "b": 2}\n{"a": 1}\n', "", "row 1 has no value in column 'b'"),
    ("text as npz", "data.npz", GOOD, "", "not a complete .npz"),
    ("npz without a matrix", "data.npz", lambda path: np.savez(path, a=np.ones(4)), "", "no 2-D array"),
    ("npz with two", "data.npz", lambda p: np.savez(p, a=ROWS, b=ROWS), "", "choose one with --array: 'a', 'b'"),
    ("npz without that one", "data.npz", lambda p: np.savez(p, a=ROWS), "--array z", "no array 'z'"),
    ("npz of objects", "data.npz", lambda p: np.savez(p, a=np.array([[None]])), "", "data.npz"),
    ("text as h5ad", "data.h5ad", GOOD, "", "not a valid h5ad"),
    ("h5ad without a matrix", "data.h5ad", lambda path: h5py.File(path, "w").close(), "", "no 2-D array"),
    ("min_dist above spread", "data.csv", GOOD, "--min-dist 5", "min_dist"),
    ("no dimensions", "data.csv", GOOD, "--n-components 0", "--n-components"),
    ("unknown metric", "data.csv", GOOD, "--metric nonsense", "nonsense"),
    ("negative epochs", "data.csv", GOOD, "--n-epochs -5", "--n-epochs"),
    ("negative seed", "data.csv", GOOD, "--seed -1", "--seed"),
    ("no jobs", "data.csv", GOOD, "--jobs 0", "--jobs"),
    ("picture of 3-D", "data.csv", GOOD, "--n-components 3 --png map.png", "--png"),
    ("picture suffix", "data.csv", GOOD, "--png map.bmp", ".png"),
    ("report suffix", "data.csv", GOOD, "--report map.txt", ".json"),
    ("nowhere to draw", "data.csv", GOOD, "--png no/such/map.png", "does not exist"),
    ("unknown option", "data.csv", GOOD, "--color red", "--color"),
    ("one argument too many", "data.csv", GOOD, "more.csv", "more.csv"),
]


# Options of `embed` that `stream` does not have.
EMBED_ONLY = ("--method", "--n-epochs")


@pytest.mark.parametrize("command", ["embed", "stream --batch-rows 20"])
@pytest.mark.parametrize(
    ("name", "content", "arguments", "word"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_invalid_file_or_option_prints_one_line(
    run: Run, command: str, name: str, content: Any, arguments: str, word: str
) -> None:
    if command != "embed" and arguments.startswith(EMBED_ONLY):
        word = arguments.split()[0]
    if callable(content):
        content(name)
    elif content is not None:
        write(name, content)
    before = sorted(path.name for path in Path().iterdir())
    for force in ([], ["--force"]):
        if force:
            write("map.npy", "old")
        code, out, err = run(*command.split(), name, "-o", "map.npy", *arguments.split(), *force)
        assert code == 2
        assert re.fullmatch(COLUMNS_LINE, out), out
        assert re.fullmatch(r"error: [^\n]+\n", err), err
        assert word in err
        assert "Traceback" not in err
        after = sorted(path.name for path in Path().iterdir())
        assert after == sorted(before + (["map.npy"] if force else []))
    assert Path("map.npy").read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("embed", "FILE"),
        ("embed data.npy", "--output"),
        ("embed data.npy -o map.txt", "must end in .npy or .csv or .parquet"),
        ("embed data.npy -o map", "must end in"),
        ("embed data.npy -o no/map.csv", "does not exist"),
        ("embed data.npy -o data.npy --force", "same file as the input"),
        ("embed data.npy -o ./sub/../data.npy --force", "same file as the input"),
        ("embed data.npy -o old.csv", "--force"),
        ("embed data.npy -o sub.csv", "directory"),
        ("embed data.npy -o map.csv --report map.json --png map.json", "must end in .png"),
        ("quality data.npy", "EMBEDDING"),
        ("quality data.npy none.csv", "does not exist"),
        ("quality data.npy short.npy", "one row for each of the 60"),
        ("quality data.npy data.npy --n-neighbors 0", "--n-neighbors"),
        ("quality data.npy data.npy --report old.csv", ".json"),
        ("quality data.npy data.npy --metric nonsense", "nonsense"),
        ("methods pca", "pca"),
        ("info none.vicinal", "does not exist"),
        ("info old.csv", "old.csv"),
        ("transform none.vicinal data.npy -o map.npy", "does not exist"),
        ("transform old.csv data.npy -o map.npy", "old.csv"),
        ("transform old.csv data.npy -o data.npy --force", "same file as the input"),
        ("embed data.npy -o map.npy --model m.pickle", ".vicinal"),
        ("stream", "FILE"),
        ("stream none.csv", "does not exist"),
        ("stream none.csv -o map.csv", "does not exist"),
        ("stream data.npy -o old.csv", "--force"),
        ("stream data.npy -o data.npy --force", "same file as the input"),
        ("stream data.npy -o map.csv --batch-rows 0", "--batch-rows"),
        ("stream data.npy --n-components 3", "2 dimensions"),
        ("stream data.npy --port 99999", "--port"),
        ("stream data.npy --save-state s.vicinal", "--output"),
        ("stream data.npy -o map.csv --save-state s.npy", ".vicinal"),
        ("stream data.npy -o map.csv --resume none.vicinal", "does not exist"),
        ("stream data.npy -o map.csv --resume old.csv", "old.csv"),
        ("demo --dataset mnist", "mnist"),
        ("demo --out old.csv", "is a file"),
        ("demo --out old.csv/deeper", "old.csv"),
        ("paint", "paint"),
        ("--nonsense", "--nonsense"),
    ],
)
def test_invalid_command_prints_one_line(run: Run, arguments: str, word: str) -> None:
    np.save("data.npy", ROWS)
    data = Path("data.npy").read_bytes()
    np.save("short.npy", ROWS[:7, :2])
    write("old.csv", "old")
    Path("sub").mkdir()
    Path("sub.csv").mkdir()
    before = sorted(Path().iterdir())
    code, out, err = run(*arguments.split())
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", err), err
    assert word in err
    assert sorted(Path().iterdir()) == before
    assert Path("data.npy").read_bytes() == data
    assert Path("old.csv").read_text() == "old"


@pytest.mark.parametrize(
    ("raised", "code", "line"),
    [
        (ValueError("n_neighbors is\nwrong"), 2, "error: n_neighbors is wrong"),
        (TypeError("metric must be text"), 2, "error: metric must be text"),
        (NotImplementedError("metric='x' is not there yet"), 2, "error: metric='x' is not there yet"),
        (OSError(28, "No space left on device", "map.csv"), 2, "error: map.csv: No space left on device"),
        (MemoryError("8 GiB"), 2, "error: not enough memory: 8 GiB"),
        (MemoryError(), 2, "error: not enough memory"),
        (RuntimeError("odd"), 2, "error: unexpected RuntimeError: odd (set VICINAL_TRACEBACK=1 to see the traceback)"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_exception_of_the_estimator_prints_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, line: str
) -> None:
    monkeypatch.setattr(vicinal, "UMAP", Stub)
    monkeypatch.setattr(Stub, "raised", raised)
    np.save("data.npy", ROWS)
    write("map.csv", "old")
    assert run("embed", "data.npy", "-o", "map.csv", "--force", "--quiet") == (code, "", line + "\n")
    assert Path("map.csv").read_text() == "old"
    assert hidden_files() == []


def test_failed_write_leaves_all_outputs_unchanged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vicinal, "UMAP", Stub)
    monkeypatch.setattr("vicinal.cli.writing.write_report", broken)
    np.save("data.npy", ROWS)
    for name in ("m.csv", "m.png", "m.json"):
        write(name, "old")
    code, _, err = run("embed", "data.npy", "-o", "m.csv", "--png", "m.png", "--report", "m.json", "--force")
    assert (code, err) == (2, f"error: {Path('m.json').resolve()}: No space left on device\n")
    assert {Path(name).read_text() for name in ("m.csv", "m.png", "m.json")} == {"old"}
    assert hidden_files() == []


def test_missing_packages_print_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("typer", "polars") else real(name))
    line = "error: the command line requires typer, polars; install with: pip install 'vicinal[app]'\n"
    assert run("demo") == (2, "", line)
