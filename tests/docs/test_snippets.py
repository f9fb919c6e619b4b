"""Every Python snippet of the README and of the documentation runs: the snippets of a page are one program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(python|\{code-cell\} ipython3)\n(.*?)^```$", re.M | re.S)
OPTION = re.compile(r"^:\w.*\n+", re.M)
GENERATED = {"reference", "examples", "generated"}
# Pages for which `make test` has the time.
FIRST = {"README.md", "docs/start/first_map.md"}
# Pages whose snippets need what a machine for tests does not have.
NEEDS = {
    "docs/guides/gpu.md": "a GPU",
    "docs/guides/cluster.md": "a cluster, and files of rows",
    "docs/guides/vector_stores.md": "stores, which test_vector_stores.py makes",
}


def snippets(page: Path) -> str:
    """Return the snippets of a page, each at its own line, so that errors name the line of the page."""
    text = page.read_text()
    lines: list[str] = []
    for match in FENCE.finditer(text):
        start = text[: match.start(2)].count("\n")
        lines += [""] * (start - len(lines))
        code = match.group(2)
        options = re.match(r"(?::\w.*\n)+", code)
        if options and match.group(1) != "python":
            code = "\n" * options.group().count("\n") + code[options.end() :]
        lines += code.splitlines()
    return "\n".join(lines)


def is_first(page: Path) -> bool:
    return page.relative_to(ROOT).as_posix() in FIRST


PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if not GENERATED & set(page.relative_to(ROOT / "docs" if page.is_relative_to(ROOT / "docs") else ROOT).parts)
    and snippets(page).strip()
]


def test_pages_with_snippets_are_found() -> None:
    assert {"README.md", "first_map.md", "forces.md", "umap.md"} <= {page.name for page in PAGES}


# scanpy calls what matplotlib will deprecate.
@pytest.mark.filterwarnings("ignore:The set_bad function:PendingDeprecationWarning")
@pytest.mark.parametrize(
    "page",
    [page if is_first(page) else pytest.param(page, marks=pytest.mark.nightly) for page in PAGES],
    ids=lambda page: page.relative_to(ROOT).as_posix(),
)
def test_snippets_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = snippets(page)
    if missing := NEEDS.get(page.relative_to(ROOT).as_posix()):
        pytest.skip(f"the snippets of {page.name} need {missing}")
    if "ParametricUMAP" in code or "torch" in code:
        pytest.importorskip("torch", reason="the page uses PyTorch")
    if ".explore(" in code:
        pytest.importorskip("anywidget", reason="the page uses the widget of notebooks")
    if "IPython" in code:
        pytest.importorskip("IPython", reason="the page is a notebook that displays Markdown")
    import matplotlib as mpl

    monkeypatch.chdir(tmp_path)
    mpl.use("Agg")
    exec(compile(code, str(page), "exec"), {"__name__": "__main__"})
    import matplotlib.pyplot as plt

    plt.close("all")
