"""The texts that the search of the site looks through, section by section, as a script.

Sphinx's own search fetches pages for its excerpts, which a browser refuses for pages opened from files, and its order
says little about relevance. docs/_static/search.js searches the texts that this module writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

FILE = "search-sections.js"
# Pages that list or repeat others.
LEFT_OUT = re.compile(r"genindex|py-modindex|search|.*sg_execution_times|.*gallery_header", re.IGNORECASE)
# Texts of a section beyond this length hardly matter for its rank.
LONGEST = 6000
# Of a section without a text of its own, the beginning of its subsections is searched and shown.
SHORT = 300

Entry = tuple[str, str, str, str]


def entries_of(doctree: nodes.document, name: str) -> Iterator[Entry]:
    """Yield (page#anchor, title, title of the page, text) of every section and every documented object of a page."""
    first = next(iter(doctree.findall(nodes.title)), None)
    page = name if first is None else first.astext()
    for section in doctree.findall(nodes.section):
        title = next((child.astext() for child in section.children if isinstance(child, nodes.title)), page)
        if any(_documents(child, title) for child in section.children):
            continue  # the object of the same name has the text
        text = _own_text(section)
        anchor = "" if first is not None and section is first.parent else f"#{section['ids'][0]}"
        # a section of sections has an excerpt too
        yield f"{name}.html{anchor}", title, page, text or " ".join(_all_words(section).split())[:SHORT]
    for described in doctree.findall(addnodes.desc):
        for signature in described.findall(addnodes.desc_signature):
            if signature.parent is described and signature["ids"]:
                title = str(signature["ids"][0])
                yield f"{name}.html#{title}", title, page, _own_text(described)


def _documents(node: nodes.Node, title: str) -> bool:
    """Return whether a node documents an object of this name."""
    signatures = node.findall(addnodes.desc_signature) if isinstance(node, addnodes.desc) else ()
    return any(str(one["ids"][0]).rsplit(".", 1)[-1] == title for one in signatures if one["ids"])


def _all_words(part: nodes.Element) -> str:
    """Return the text of everything in a section but titles."""
    words = (one.astext() for one in part.findall(nodes.TextElement) if not isinstance(one, nodes.title))
    return " ".join(words)


def _own_text(part: nodes.Element) -> str:
    """Return the text of a section or an object without that of the sections and objects inside of it."""
    words: list[str] = []

    def collect(node: nodes.Node) -> None:
        for child in node.children:
            if isinstance(child, nodes.section | addnodes.desc | nodes.title | nodes.comment | nodes.raw):
                continue
            if isinstance(child, nodes.TextElement | nodes.math_block):
                words.append(child.astext())
            else:
                collect(child)

    collect(part)
    return " ".join(" ".join(words).split())[:LONGEST]


def write_sections(app: Sphinx, error: Exception | None) -> None:
    """Write the sections of all pages."""
    if error is not None or app.builder.format != "html":
        return
    found = [
        entry
        for name in sorted(app.env.found_docs)
        if not LEFT_OUT.fullmatch(name)
        for entry in entries_of(app.env.get_doctree(name), name)
    ]
    script = f"window.searchSections = {json.dumps(found, ensure_ascii=False, separators=(',', ':'))};\n"
    (Path(app.outdir) / "_static" / FILE).write_text(script, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
