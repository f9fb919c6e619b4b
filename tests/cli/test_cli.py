"""The command line: what it writes, what it says, and that bad input is one line and exit code 2."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

import vicinal
from vicinal import cli
from vicinal.files import readers

ROWS = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Run = Callable[..., tuple[int, str, str]]


class Stub:
    """Takes the estimator's place where a test is about what the command line makes of its behaviour."""

    raised: BaseException | None = None

    def __init__(self, n_components: int = 2, random_state: Any = None, n_jobs: int = -1) -> None:
        self.stage_times_ = {"neighbors": 0.5, "layout": 1.5}

    def fit(self, X: NDArray[np.float32]) -> None:
        if self.raised is not None:
            raise self.raised
        self.embedding_ = X[:, :2]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in an empty directory; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VICINAL_TRACEBACK", raising=False)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = cli.main(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def write(path: str, text: str | bytes) -> None:
    Path(path).write_bytes(text.encode() if isinstance(text, str) else text)


def csv_of(rows: NDArray[Any], names: str = "a,b,c,d") -> str:
    return "\n".join([names, *(",".join(map(str, row)) for row in rows.tolist())]) + "\n"


def leftovers() -> list[str]:
    return sorted(path.name for path in Path().iterdir() if path.name.startswith("."))


@pytest.mark.parametrize("source", ["data.npy", "data.csv", "data.tsv", "data.parquet"])
@pytest.mark.parametrize("output", ["map.npy", "map.csv", "map.parquet"])
def test_embed_reads_and_writes_every_format(run: Run, source: str, output: str) -> None:
    names = ["a", "b", "c", "d"]
    if source.endswith(".npy"):
        np.save(source, ROWS)
    elif source.endswith(".parquet"):
        pl.DataFrame(ROWS, schema=names).write_parquet(source)
    else:
        pl.DataFrame(ROWS, schema=names).write_csv(source, separator="\t" if source.endswith("tsv") else ",")
    code, out, err = run("embed", source, "-o", output, "--n-epochs", "20")
    assert (code, err) == (0, "")
    assert "60 rows of 4 columns" in out
    if output.endswith(".npy"):
        found = np.load(output)
    else:
        frame = pl.read_csv(output) if output.endswith(".csv") else pl.read_parquet(output)
        assert frame.columns == ["x", "y"]
        found = frame.to_numpy()
    assert found.shape == (60, 2)
    assert np.isfinite(found).all()
    assert leftovers() == []


def test_embed_with_everything(run: Run) -> None:
    labels = np.array(["cat", "dog"])[np.arange(60) % 2]
    pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(
        pl.Series("kind", labels), pl.Series("note", ["x"] * 60)
    ).write_csv("data.csv")
    options = "--columns a,b,d --label kind --png map.png --report map.json --n-epochs 20 --seed 7 --jobs 1"
    code, out, err = run("embed", "data.csv", "-o", "map.csv", *options.split())
    assert (code, err) == (0, "")
    assert "trustworthiness" in out
    assert "ignoring 2 other column(s)" in out
    frame = pl.read_csv("map.csv")
    assert frame.columns == ["x", "y", "label"]
    assert frame["label"].to_list() == labels.tolist()
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    report = json.loads(Path("map.json").read_text())
    assert (report["rows"], report["columns"]) == (60, 3)
    assert report["parameters"]["random_state"] == 7
    assert report["quality"]["trustworthiness"] > 0.5
    assert 0.0 <= report["quality"]["knn_accuracy"] <= 1.0
    assert report["seconds"].keys() >= {"layout", "quality"}


def test_measurements_as_labels_are_values_not_classes(run: Run) -> None:
    write("data.csv", csv_of(ROWS))
    code, _, err = run("embed", "data.csv", "-o", "m.csv", "--label", "d", "--png", "m.png", "--report", "m.json")
    assert (code, err) == (0, "")
    assert json.loads(Path("m.json").read_text())["quality"]["knn_accuracy"] is None


def test_quiet_says_nothing_and_force_replaces(run: Run) -> None:
    np.save("data.npy", ROWS)
    write("real.npy", "old")
    Path("map.npy").symlink_to("real.npy")
    assert run("embed", "data.npy", "-o", "map.npy", "--quiet", "--force", "--n-epochs", "20") == (0, "", "")
    assert Path("map.npy").is_symlink()
    assert np.load("real.npy").shape == (60, 2)


@pytest.mark.parametrize(("width", "names"), [(1, ["x"]), (3, ["x", "y", "z"]), (4, ["d1", "d2", "d3", "d4"])])
def test_other_dimensions(run: Run, width: int, names: list[str]) -> None:
    np.save("data.npy", ROWS)
    run("embed", "data.npy", "-o", "map.csv", "--n-components", str(width), "--n-epochs", "20")
    assert pl.read_csv("map.csv").columns == names


def test_seed_decides_the_map_and_jobs_do_not(run: Run) -> None:
    np.save("data.npy", ROWS)
    for name, options in {"a": "--jobs 1", "b": "--jobs 2", "c": "--seed 1"}.items():
        assert run("embed", "data.npy", "-o", f"{name}.npy", "--quiet", *options.split())[0] == 0
    a, b, c = (np.load(f"{name}.npy") for name in "abc")
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)


GOOD = csv_of(ROWS)
PARQUET_MAGIC = b"PAR1" + bytes(40) + b"PAR1"


def _npy(array: NDArray[Any]) -> Callable[[str], None]:
    return lambda path: np.save(path, array)


def _archive(path: str) -> None:
    # savez adds .npz to a path that lacks it, but not to an open file
    with Path(path).open("wb") as file:
        np.savez(file, ROWS)


# (what is wrong, file name, its content or how to write it, further arguments, a word of the message)
BAD: list[tuple[str, str, str | bytes | Callable[[str], None] | None, str, str]] = [
    ("missing file", "data.csv", None, "", "does not exist"),
    ("a directory", "data.csv", lambda path: Path(path).mkdir(), "", "directory"),
    ("an empty file", "data.csv", "", "", "empty"),
    ("only a header", "data.csv", "a,b\n", "", "no rows"),
    ("a blank line", "data.csv", "\n", "", "data.csv"),
    ("unknown suffix", "data.xlsx", GOOD, "", "unknown suffix"),
    ("no suffix", "data", GOOD, "", "unknown suffix"),
    ("a long row", "data.csv", GOOD + "1,2,3,4,5\n", "", "line 62 has 5"),
    ("a short row", "data.csv", GOOD + "1,2\n", "", "line 62 has 2"),
    ("no numeric column", "data.csv", "a,b\nx,y\nz,w\n", "", "no numeric column"),
    ("wrong separator", "data.csv", "a;b\n1;2\n", "", "'a;b'"),
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
    ("unknown column", "data.csv", GOOD, "--columns a,q", "no column 'q'; it has 'a', 'b', 'c', 'd'"),
    ("unknown label", "data.csv", GOOD, "--label q", "no column 'q'"),
    ("label among columns", "data.csv", GOOD, "--columns a,b --label b", "both a feature and the label"),
    ("column twice", "data.csv", GOOD, "--columns a,a", "twice"),
    ("no columns", "data.csv", GOOD, "--columns ,", "at least one"),
    ("text as column", "data.csv", "a,b\n1,x\n2,y\n", "--columns a,b", "'b' is not numeric"),
    ("column beyond npy", "data.npy", _npy(ROWS), "--columns 0,4", "no column '4'"),
    ("n_neighbors too small", "data.csv", GOOD, "--n-neighbors 1", "--n-neighbors"),
    ("n_neighbors not a number", "data.csv", GOOD, "--n-neighbors many", "--n-neighbors"),
    ("negative min_dist", "data.csv", GOOD, "--min-dist -0.1", "--min-dist"),
    ("min_dist not a number", "data.csv", GOOD, "--min-dist nan", "--min-dist"),
    ("unknown method", "data.csv", GOOD, "--method pca", "pca"),
    ("parameter without value", "data.csv", GOOD, "--param spread", "name=value"),
    ("unknown parameter", "data.csv", GOOD, "--param colour=red", "not a parameter of"),
    ("parameter of the wrong kind", "data.csv", GOOD, "--param spread=wide", "spread"),
    ("parameter with an option of its own", "data.csv", GOOD, "--param random_state=1", "--seed"),
    ("unknown id", "data.csv", GOOD, "--id q", "no column 'q'"),
    ("unknown hover", "data.csv", GOOD, "--hover a,q", "no column 'q'"),
    ("array of a table", "data.csv", GOOD, "--array X", "only .npz and .h5ad"),
    ("page of 3-D", "data.csv", GOOD, "--n-components 3 --html map.html", "--html"),
    ("page suffix", "data.csv", GOOD, "--html map.txt", ".html"),
    ("text as feather", "data.feather", GOOD, "", "not a valid feather"),
    ("text as jsonl", "data.jsonl", "hello\n", "", "data.jsonl"),
    ("jsonl without numbers", "data.jsonl", '{"a": "x"}\n{"a": "y"}\n', "", "no numeric column"),
    ("jsonl with a gap", "data.jsonl", '{"a": 1, "b": 2}\n{"a": 1}\n', "", "row 1 has no value in column 'b'"),
    ("text as npz", "data.npz", GOOD, "", "not a complete .npz"),
    ("npz without a matrix", "data.npz", lambda path: np.savez(path, a=np.ones(4)), "", "no 2-D array"),
    ("npz with two", "data.npz", lambda p: np.savez(p, a=ROWS, b=ROWS), "", "--array chooses one of 'a', 'b'"),
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
    ("unknown option", "data.csv", GOOD, "--colour red", "--colour"),
    ("one argument too many", "data.csv", GOOD, "more.csv", "more.csv"),
]


# Options that only `embed` has.
EMBED_ONLY = ("--method", "--n-epochs")


@pytest.mark.parametrize("command", ["embed", "stream --batch-rows 20"])
@pytest.mark.parametrize(
    ("name", "content", "arguments", "word"), [case[1:] for case in BAD], ids=[case[0] for case in BAD]
)
def test_bad_input_is_one_line(run: Run, command: str, name: str, content: Any, arguments: str, word: str) -> None:
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
        assert out == ""
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
def test_bad_commands_are_one_line(run: Run, arguments: str, word: str) -> None:
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
        (RuntimeError("odd"), 2, "error: unexpected RuntimeError: odd (VICINAL_TRACEBACK=1 shows where)"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_what_the_estimator_raises_is_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, raised: BaseException, code: int, line: str
) -> None:
    monkeypatch.setattr(vicinal, "UMAP", Stub)
    monkeypatch.setattr(Stub, "raised", raised)
    np.save("data.npy", ROWS)
    write("map.csv", "old")
    assert run("embed", "data.npy", "-o", "map.csv", "--force") == (code, "", line + "\n")
    assert Path("map.csv").read_text() == "old"
    assert leftovers() == []


def test_a_write_that_fails_leaves_every_output_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(vicinal, "UMAP", Stub)
    monkeypatch.setattr("vicinal.cli.output_files.write_report", broken)
    np.save("data.npy", ROWS)
    for name in ("m.csv", "m.png", "m.json"):
        write(name, "old")
    code, _, err = run("embed", "data.npy", "-o", "m.csv", "--png", "m.png", "--report", "m.json", "--force")
    assert (code, err) == (2, "error: No space left on device\n")
    assert {Path(name).read_text() for name in ("m.csv", "m.png", "m.json")} == {"old"}
    assert leftovers() == []


def test_missing_packages_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in ("typer", "polars") else real(name))
    line = "error: the command line needs typer, polars: pip install 'vicinal[app]'\n"
    assert run("demo") == (2, "", line)


def test_warnings_are_lines_without_source_code(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(self: Stub, X: NDArray[np.float32]) -> None:
        import warnings

        warnings.warn("n_neighbors is\nreduced", UserWarning, stacklevel=1)
        self.embedding_ = X[:, :2]

    monkeypatch.setattr(vicinal, "UMAP", Stub)
    monkeypatch.setattr(Stub, "fit", fit)
    np.save("data.npy", ROWS)
    assert run("embed", "data.npy", "-o", "map.npy")[2] == "warning: n_neighbors is reduced\n"
    assert run("embed", "data.npy", "-o", "map.npy", "--force", "--quiet")[2] == ""


def test_bars_show_every_stage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy")
    assert code == 0
    assert "finding neighbours" in err
    assert "laying out" in err
    assert "100%" in err


def test_help_and_version(run: Run) -> None:
    code, out, err = run("--version")
    assert (code, out, err) == (0, f"vicinal {vicinal.__version__}\n", "")
    for arguments in ([], ["--help"], ["embed", "--help"], ["demo", "--help"]):
        code, out, err = run(*arguments)
        assert (code, err) == (0, "")
        assert "Usage: vicinal" in out
    assert "--n-neighbors" in run("embed", "--help")[1]


def test_embed_takes_any_parameter_and_writes_a_page(run: Run) -> None:
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(
        pl.Series("name", [f"row {a}" for a in range(60)]), pl.Series("note", ["x", None] * 30)
    )
    frame.write_ndjson("data.jsonl")
    options = "--id name --hover note,d --param spread=2 --param init=random --param update_negatives=true"
    code, _, err = run(
        "embed", "data.jsonl", "-o", "map.csv", "--html", "map.html", "--report", "r.json", *options.split()
    )
    assert (code, err) == (0, "")
    parameters = json.loads(Path("r.json").read_text())["parameters"]
    assert parameters.items() >= {"spread": 2, "init": "random", "update_negatives": True}.items()
    written = pl.read_csv("map.csv")
    assert written.columns == ["name", "note", "d", "x", "y"]
    page = Path("map.html").read_text()
    assert '"fields": ["note", "d"]' in page
    assert 'id="vicinal-ids"' in page


def test_quality_measures_what_embed_wrote(run: Run) -> None:
    np.save("data.npy", ROWS)
    assert run("embed", "data.npy", "-o", "map.csv", "--label", "3", "--report", "a.json", "--quiet")[0] == 0
    code, out, err = run("quality", "data.npy", "map.csv", "--columns", "0,1,2", "--report", "b.json")
    assert (code, err) == (0, "")
    assert "trustworthiness" in out
    first, second = (json.loads(Path(name).read_text()) for name in ("a.json", "b.json"))
    assert first["quality"]["trustworthiness"] == second["trustworthiness"]


def test_a_model_is_kept_described_and_places_new_rows(run: Run) -> None:
    np.save("data.npy", ROWS)
    np.save("new.npy", np.vstack([ROWS[:5], ROWS[:5] + 0.05]))
    assert run("embed", "data.npy", "-o", "map.npy", "--model", "m.vicinal", "--n-neighbors", "8", "--quiet")[0] == 0
    code, out, err = run("info", "m.vicinal")
    assert (code, err) == (0, "")
    assert "60 x 2" in out
    assert "n_neighbors" in out
    code, out, err = run("transform", "m.vicinal", "new.npy", "-o", "new_map.npy")
    assert (code, err) == (0, "")
    placed = np.load("new_map.npy")
    assert np.array_equal(placed[:5], np.load("map.npy")[:5])
    assert np.isfinite(placed).all()


@pytest.mark.parametrize("method", ["densmap", "tsne", "largevis", "progressive"])
def test_every_method_makes_a_map(run: Run, method: str) -> None:
    np.save("data.npy", ROWS)
    parameter = "perplexity=5" if method in ("tsne", "largevis") else "n_neighbors=5"
    options = ["--method", method, "--param", parameter, "--report", "r.json"]
    code, _, err = run("embed", "data.npy", "-o", "map.npy", *options)
    assert (code, err) == (0, "")
    assert np.isfinite(np.load("map.npy")).all()
    report = json.loads(Path("r.json").read_text())
    assert report["method"] == method
    assert parameter.split("=")[0] in report["parameters"]


def test_methods_are_listed_with_their_parameters(run: Run) -> None:
    code, out, err = run("methods")
    assert (code, err) == (0, "")
    assert "umap" in out
    code, out, err = run("methods", "umap")
    assert (code, err) == (0, "")
    assert "n_neighbors" in out
    assert "random_state" not in out


def test_ctrl_c_during_the_layout_keeps_the_map(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from vicinal.cli.progress_bars import ProgressBars

    report = ProgressBars.__call__

    def interrupted(self: ProgressBars, stage: str, epoch: int, n_epochs: int, embedding: object) -> bool:
        if stage == "layout" and epoch == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return report(self, stage, epoch, n_epochs, embedding)

    monkeypatch.setattr(ProgressBars, "__call__", interrupted)
    np.save("data.npy", ROWS)
    code, _, err = run("embed", "data.npy", "-o", "map.npy", "--n-epochs", "10000000")
    assert (code, err) == (130, "interrupted\n")
    assert np.isfinite(np.load("map.npy")).all()


@pytest.mark.parametrize("dataset", ["iris", "wine"])
def test_demo_writes_map_picture_and_report(run: Run, dataset: str) -> None:
    code, out, err = run("demo", "--out", "deep/er", "--dataset", dataset)
    assert (code, err) == (0, "")
    assert "trustworthiness" in out
    assert sorted(path.name for path in Path("deep/er").iterdir()) == [
        "embedding.csv",
        "map.html",
        "map.png",
        "report.json",
    ]
    assert pl.read_csv("deep/er/embedding.csv").columns == ["x", "y", "label"]


def test_demo_in_a_process_of_its_own(tmp_path: Path) -> None:
    source = str(Path(cli.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([source, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "vicinal.cli", "demo", "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["rows"] == 1797
    assert report["quality"]["trustworthiness"] > 0.98
    assert report["quality"]["knn_accuracy"] > 0.96
    frame = pl.read_csv(tmp_path / "out" / "embedding.csv")
    assert frame.shape == (1797, 3)
    assert sorted(frame["label"].unique().to_list()) == list(range(10))


@pytest.mark.parametrize(
    ("text", "names", "rows"),
    [
        ("a, b\n1, 2\n3, 4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("5,6\n1,2\n", ("0", "1"), [[5, 6], [1, 2]]),
        ("0,1\n1,2\n", ("0", "1"), [[1, 2]]),
        (",a,b\n0,1,2\n1,3,4\n", ("a", "b"), [[1, 2], [3, 4]]),
        ("\ufeffa,b\n1,2\n", ("a", "b"), [[1, 2]]),
        ("a,b,t\n1,2,true\n3,4,false\n", ("a", "b", "t"), [[1, 2, 1], [3, 4, 0]]),
        ('a,"b,c"\n1,2\n', ("a", "b,c"), [[1, 2]]),
        ("a,b\r\n1,2\r\n", ("a", "b"), [[1, 2]]),
    ],
)
def test_csv_as_people_write_it(tmp_path: Path, text: str, names: tuple[str, ...], rows: list[list[float]]) -> None:
    path = tmp_path / "data.CSV"
    path.write_bytes(text.encode())
    table = readers.read_table(path)
    assert table.X.tolist() == rows
    assert table.feature_names == names
    assert table.X.dtype == np.float32
    assert table.X.flags.c_contiguous


def test_labels_come_with_their_gaps(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,kind,size\n1,x,3\n2,NA,4\n3,y,5\n")
    table = readers.read_table(path, label="kind")
    assert table.labels is not None
    assert table.labels.tolist() == ["x", None, "y"]
    assert table.feature_names == ("a", "size")
    sizes = readers.read_table(path, label="size")
    assert sizes.labels is not None
    assert sizes.labels.tolist() == [3, 4, 5]
    assert sizes.ignored == ("kind",)


def test_npy_is_taken_as_it_is_and_its_columns_by_number(tmp_path: Path) -> None:
    path = tmp_path / "data.npy"
    np.save(path, np.asfortranarray(np.arange(12.0).reshape(4, 3)))
    table = readers.read_table(path, columns=["2", "0"], label="1")
    assert table.X.tolist() == [[2, 0], [5, 3], [8, 6], [11, 9]]
    assert table.X.flags.c_contiguous
    assert table.labels is not None
    assert table.labels.tolist() == [1, 4, 7, 10]
    assert table.labels.dtype.kind == "i"


def test_npz_and_feather_and_jsonl(tmp_path: Path) -> None:
    np.savez(tmp_path / "one.npz", X=ROWS, other=ROWS[:3], kind=np.arange(60) % 4)
    table = readers.read_table(tmp_path / "one.npz", label="kind")
    assert np.array_equal(table.X, ROWS)
    assert table.labels is not None
    assert table.labels.tolist() == [a % 4 for a in range(60)]
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c", "d"]).with_columns(pl.Series("t", ["x"] * 60))
    frame.write_ipc(tmp_path / "two.feather")
    frame.write_ndjson(tmp_path / "two.jsonl")
    for name in ("two.feather", "two.jsonl"):
        read = readers.read_table(tmp_path / name, extra=["t"])
        assert pytest.approx(ROWS) == read.X
        assert read.extra["t"].tolist() == ["x"] * 60


def test_h5ad_dense_sparse_and_components(tmp_path: Path) -> None:
    from scipy.sparse import csr_matrix

    path = tmp_path / "cells.h5ad"
    sparse = csr_matrix(np.where(ROWS > 0, ROWS, 0))
    with h5py.File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"] = "csr_matrix"
        group.attrs["shape"] = sparse.shape
        for name in ("data", "indices", "indptr"):
            group[name] = getattr(sparse, name)
        file["obsm/X_pca"] = ROWS[:, :2]
        file["obs/depth"] = np.arange(60)
        file["obs/kind/codes"] = np.array([0, 1, -1] * 20, dtype=np.int8)
        file["obs/kind/categories"] = np.array(["T", "B"], dtype=h5py.string_dtype())
    table = readers.read_table(path, label="kind", extra=["depth"])
    assert np.array_equal(table.X, ROWS[:, :2])
    assert table.labels is not None
    assert table.labels[:3].tolist() == ["T", "B", None]
    assert table.extra["depth"].tolist() == list(range(60))
    assert np.array_equal(readers.read_table(path, array="X").X, sparse.toarray())
