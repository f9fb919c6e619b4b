"""The API reference: every public name has a page, and a docstring that a page can be made of."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import vicinal


def docstring(name: str) -> str:
    return inspect.getdoc(getattr(vicinal, name)) or ""


@pytest.mark.parametrize("name", vicinal.__all__)
def test_every_public_name_has_an_example_and_related_names(name: str) -> None:
    text = docstring(name)
    assert re.search(r"^Examples\n-+\n(.|\n)*>>> ", text, re.M)
    assert re.search(r"^See Also\n-+\n", text, re.M)
    # The first line is a sentence.
    assert text.partition("\n")[0].endswith((".", ":"))


@pytest.mark.parametrize("name", vicinal.__all__)
def test_names_in_see_also_exist(name: str) -> None:
    if name == "ParametricUMAP":
        pytest.importorskip("torch")
    section = re.search(r"^See Also\n-+\n((?:.+\n?)+)", docstring(name), re.M)
    assert section
    for line in section.group(1).splitlines():
        for related in line.partition(" : ")[0].split(","):
            value = vicinal
            for part in related.strip().removeprefix("vicinal.").split("."):
                value = getattr(value, part)


def test_every_public_name_has_a_page(site: Path) -> None:
    pages = {path.stem for path in (site / "reference" / "api").glob("*.html") if not path.stem.startswith("module-")}
    assert pages == set(vicinal.__all__)
    index = (site / "reference" / "index.html").read_text()
    for name in vicinal.__all__:
        page = (site / "reference" / "api" / f"{name}.html").read_text()
        assert f'id="vicinal.{name}"' in page, f"the page of {name} does not describe it"
        assert f'href="api/{name}.html#vicinal.{name}"' in index, f"the index does not list {name}"


def test_pages_load_nothing_from_a_network(site: Path) -> None:
    """Links to other sites are allowed; scripts, styles, images, fonts and frames are not."""
    loaded = re.compile(r"<(?:script|img|iframe|source)[^>]*\bsrc=\"(?:https?:)?//|<link[^>]*\bhref=\"(?:https?:)?//")
    styled = re.compile(r"url\([\"']?(?:https?:)?//|@import\s+[\"'](?:https?:)?//")
    for page in site.rglob("*.html"):
        assert not loaded.search(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not styled.search(style.read_text()), style
    assert (site / "_static" / "tex-svg.js").stat().st_size > 1e6


def test_equations_have_formulas_links_to_lines_and_no_dead_links(site: Path) -> None:
    pages = {page: (site / "survey" / page).read_text() for page in ("umap.html", "densmap.html", "repulsion.html")}
    for page, text in pages.items():
        assert r"\[" in text
        targets = re.findall(r'href="(\.\./code/[^"#]+)#(L-\d+)"', text)
        assert targets, page
        for file, line in targets:
            source = (site / "survey" / file).resolve()
            assert f'id="{line}"' in source.read_text(), (file, line)


@pytest.mark.parametrize("number", range(1, 36))
def test_every_equation_of_the_survey_is_on_a_page(site: Path, number: int) -> None:
    titles = " ".join(
        title
        for page in (site / "survey").glob("*.html")
        for title in re.findall(r"<h[23]>(Equations? [^<]+)<", page.read_text())
    )
    assert re.search(rf"\b{number}\b", titles)
