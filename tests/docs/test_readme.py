"""The figures of README.md and RESULTS.md are those of benchmarks/results."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HOW = "run `python benchmarks/table.py`"


@pytest.fixture(autouse=True)
def _benchmarks_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def test_readme_shows_the_recorded_results() -> None:
    from readme import BLOCK, readme_block
    from table import read_documents

    shown = BLOCK.search((ROOT / "README.md").read_text())
    assert shown is not None
    assert shown.group() == readme_block(read_documents(ROOT / "benchmarks" / "results")), HOW


def test_table_shows_the_recorded_results(tmp_path: Path) -> None:
    from table import write_table

    write_table(ROOT / "benchmarks" / "results", tmp_path / "RESULTS.md")
    assert (tmp_path / "RESULTS.md").read_text() == (ROOT / "benchmarks" / "RESULTS.md").read_text(), HOW


def test_written_figures_follow_the_results(tmp_path: Path) -> None:
    from readme import write_readme
    from table import read_documents

    documents = read_documents(ROOT / "benchmarks" / "results")
    changed = json.loads(json.dumps(documents))
    for record in changed["fresh"]["records"]:
        if record["system"] == "vicinal":
            record["wall"] = 123.4
    file = tmp_path / "README.md"
    file.write_text("before\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nafter\n")
    write_readme(changed, file)
    text = file.read_text()
    assert "123.4 s" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")


def test_readme_needs_all_of_its_results() -> None:
    from readme import readme_block
    from table import read_documents

    documents = read_documents(ROOT / "benchmarks" / "results")
    del documents["memory"]
    with pytest.raises(LookupError, match="peak memory"):
        readme_block(documents)


def test_results_of_other_versions_are_not_shown(tmp_path: Path) -> None:
    from release import RELEASE, read_result

    file = tmp_path / "fresh.json"
    for document, shown in (
        ({"code": {"version": RELEASE, "commit": "0"}, "records": []}, True),
        ({"code": {"version": "0.1.0", "commit": "0"}, "records": []}, False),
        ({"records": []}, False),
        ([], False),
    ):
        file.write_text(json.dumps(document))
        assert (read_result(file) is not None) == shown, document
    assert read_result(tmp_path / "missing.json") is None


def test_shown_results_are_those_of_this_release() -> None:
    from release import RELEASE

    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert version == RELEASE or "dev" in version, "set RELEASE in benchmarks/release.py, and measure"


def test_more_instructions_need_a_reason() -> None:
    from instructions import grown_stages, record

    before = {"graph": 1000, "layout": 1000}
    assert grown_stages({"graph": 1051, "layout": 1049, "new": 5}, before) == ["graph"]
    document = {"counts": {"here": before}, "reasons": []}
    with pytest.raises(SystemExit, match="graph"):
        record(document, "here", {"graph": 1051, "layout": 1049}, None)
    changed = record(document, "here", {"graph": 1051, "layout": 1049}, "exact sums")
    assert changed["counts"] == {"here": {"graph": 1051, "layout": 1049}}
    assert [(one["stage"], one["from"], one["to"]) for one in changed["reasons"]] == [("graph", 1000, 1051)]
    assert record(document, "elsewhere", {"graph": 9000}, None)["counts"]["here"] == before
