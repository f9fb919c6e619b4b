"""Statements of the documentation agree with the code: numbers are read from the code, named files exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import vicinal
from vicinal.files import container
from vicinal.layout import schedule, surroundings
from vicinal.neighbors.online import OnlineOptions
from vicinal.pipeline import recipe

ROOT = Path(__file__).parents[2]
GENERATED = {"reference", "examples", "generated"}
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not GENERATED & set(page.parts)),
]
# Pages that are written once and not maintained.
LIVING = [page for page in DOCUMENTS if page.parent.name != "decisions"]
SOURCE = re.compile(r"\b(?:src|cpp|tests|benchmarks|docs|web|cmake)/[\w/.-]+\.(?:py|pyi|hpp|cpp|cu|md|json|ts|yml)\b")
TEST = re.compile(r"\b(?:\w+/)*test_\w+\.py\b")


@cache
def words(path: str) -> str:
    """Return a document with single spaces, so that sentences are found across lines."""
    return " ".join((ROOT / path).read_text().split())


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_named_files_exist() -> None:
    tests = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    missing = []
    for page in LIVING:
        text = re.sub(r"https?://\S+", "", page.read_text())
        missing += [(name_of(page), path) for path in SOURCE.findall(text) if not (ROOT / path).exists()]
        missing += [(name_of(page), path) for path in TEST.findall(text) if Path(path).name not in tests]
    assert not missing


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([\w-]+)(?: [\w-]+)*:", (ROOT / "Makefile").read_text(), re.M))
    named = {
        (name_of(page), target)
        for page in LIVING
        for target in re.findall(r"(?:`|^)make ([a-z][a-z-]+)", page.read_text(), re.M)
    }
    assert not [pair for pair in named if pair[1] not in targets]


def test_every_picture_is_shown_and_every_shown_picture_exists() -> None:
    """A dark version is shown in place of the light one."""
    shown = {name for page in LIVING for name in re.findall(r"images/([\w-]+\.png)", page.read_text())}
    pictures = {path.name for path in (ROOT / "docs" / "images").glob("*.png")}
    assert shown <= pictures
    assert {name.replace("_dark.png", ".png") for name in pictures} == shown


def test_architecture_can_be_read_in_ten_minutes() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(text.split()) <= 1_800
    reference = (ROOT / "tests" / "reference" / "umap.py").read_text()
    assert f"UMAP in {len(reference.splitlines())} lines of NumPy" in text


def test_decisions_are_short_dated_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    for page in folder.glob("2*.md"):
        text = page.read_text()
        dates = re.findall(r"^\*(\d{4}-\d\d)-\d\d\*$", text, re.M)
        assert dates, page
        assert page.name.startswith(dates[0]), page
        assert len(text.split()) <= 250, page
        assert f"\n{page.stem}\n" in (folder / "index.md").read_text(), page


def test_learning_rate_is_the_schedule() -> None:
    held = f"Up to {schedule.SMALL_ROWS:,} rows the first rate is kept for {schedule.SMALL_HOLD} of the epochs"
    assert held in words("docs/equations.md")


def test_default_epochs_and_sweeps() -> None:
    large = f"{schedule.LARGE_ROWS:,}"
    more = f'{recipe.ARRANGED_EPOCHS} with `init="auto"`, otherwise {schedule.LARGE_EPOCHS}'
    epochs = f"{schedule.EPOCHS} up to {large} rows; for more, {more}"
    assert epochs in words("docs/start/coming_from/umap_learn.md")
    sweeps = f"(S = {schedule.SMALL_SWEEPS} for up to {schedule.SMALL_ROWS:,} rows, else {schedule.SWEEPS})"
    assert sweeps in words("docs/equations.md")
    push = f"up to {large} rows no negative moves a row by more than {schedule.LONGEST_PUSH}"
    assert push in words("docs/equations.md")


def test_isolated_rows() -> None:
    fitted, new = surroundings.FITTED_ROWS, surroundings.NEW_ROWS
    page = words("docs/guides/guarantees.md")
    assert (
        f"begins at {fitted} times its radius. New rows without a neighbor are drawn at {new} times the radius" in page
    )


def test_progressive_epochs_are_the_defaults() -> None:
    model, page = vicinal.ProgressiveUMAP(), words("docs/guides/progressive.md")
    for name in ("new_epochs", "updated_epochs", "polish_epochs"):
        assert f"`{name}={getattr(model, name)}`" in page


def test_online_search_has_the_decided_options() -> None:
    options = OnlineOptions()
    decided = f"{options.trees} trees, {options.spare} spare entries, refresh after {options.refresh_after} changes"
    assert decided in words("docs/decisions/2026-11-streams.md")


def test_expansion_of_model_files() -> None:
    most = f"at most {container.MOST_EXPANSION} times"
    assert most in words("docs/guides/model_files.md")
    assert most in words("SECURITY.md")


def test_core_has_its_own_exp_and_log_and_no_lapack() -> None:
    """docs/guides/determinism.md: memberships and eigenvectors do not depend on the C library or on LAPACK."""
    page = words("docs/guides/determinism.md")
    assert "use the core's own `exp`, `log` and `pow`" in page
    assert "the core computes them, with sums in a fixed order" in page
    files = [path for stage in ("graph", "initialize", "layout") for path in (ROOT / "cpp" / stage).glob("*.?pp")]
    code = "\n".join(path.read_text() for path in files)
    assert set(re.findall(r"std::(exp|log|pow|exp2|log2|log1p|expm1|sin|cos)\(", code)) == {"log2"}
    assert code.count("std::log2(") == 1  # of k, once per fit
    assert "find_package(BLAS" not in (ROOT / "CMakeLists.txt").read_text()
    assert "find_package(LAPACK" not in (ROOT / "CMakeLists.txt").read_text()


def test_pages_name_no_release_before_the_first() -> None:
    for page in DOCUMENTS:
        assert not re.search(r"\b0\.1\.(?:0|x)\b|\bversion 0\.1\b", page.read_text(), re.I), page


BRITISH = re.compile(
    r"\b(?:neighbour\w*|colour\w*|centre\w*|behaviour\w*|grey\w*|visualis\w+|normalis\w+|optimis\w+|initialis\w+"
    r"|standardis\w+|minimis\w+|recognis\w+|modelled|labelled|unlabelled|towards)\b",
    re.I,
)


def test_spelling_is_american() -> None:
    for page in DOCUMENTS:
        prose = re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.S)
        assert not BRITISH.findall(prose), page
