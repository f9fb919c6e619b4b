"""The figures of README.md and RESULTS.md are those of benchmarks/results."""

from __future__ import annotations

import json
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
