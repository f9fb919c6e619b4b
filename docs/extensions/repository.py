"""Files of the repository as pages: documents at its root, and source files with an anchor per line.

- ``{repository-page} ARCHITECTURE.md`` as the whole content of a page makes it a copy of that document.
- Links of all Markdown pages to files of the repository lead to the page of a document, or to a page that shows the
  source. ``{source}`cpp/graph/smooth_knn.hpp: solve``` links to the line that defines a symbol. A file or symbol that
  does not exist is a warning, and so an error of the build.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxRole
from sphinx.util.osutil import relative_uri

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
logger = logging.getLogger(__name__)

# Documents outside of docs/ that have a page.
PAGES = {
    "ARCHITECTURE.md": "internals/architecture",
    "CONTRIBUTING.md": "internals/contributing",
    "CHANGELOG.md": "changelog",
    "SECURITY.md": "internals/security",
    "RELEASING.md": "internals/releasing",
    "README.md": "index",
    "benchmarks/RESULTS.md": "benchmarks",
}
MARKER = re.compile(r"^```\{repository-page\} (\S+)\n```$", re.M)
# An inline link, not an image and not inside code.
LINK = re.compile(r"(?<![!\\])\[((?:[^\[\]]|!?\[[^\]]*\](?:\([^)]*\))?)+)\]\(([^()\s]+)\)")
IMAGE = re.compile(r"!\[([^\]]*)\]\(([^()\s]+)\)")
FENCE = re.compile(r"^(```|:::|~~~)")


class source_link(nodes.General, nodes.Inline, nodes.TextElement):
    """A link to the page of a source file."""


def source_page(path: str) -> str:
    return f"code/{path}"


def find_line(path: str, symbol: str) -> int | None:
    """Return the number of the line that defines a symbol: a class, function, struct, method or constant."""
    name = re.escape(symbol.rpartition("::")[2].rpartition(".")[2])
    lines = (ROOT / path).read_text().splitlines()
    python = rf"^\s*(?:def|class) {name}\b|^\s*{name}\s*(?::[^=]+)?="
    native = (
        rf"^\s*(?:template\s*<[^>]*>\s*)?(?:struct|class|enum class|enum|using|namespace) {name}\b"
        rf"|^[\w:<>,&*\s\[\]]*[\s&*:]{name}\s*\((?!.*;\s*$)|^\s*(?:inline\s+)?constexpr .*\b{name}\b\s*[=\[{{]"
    )
    for pattern in (python,) if path.endswith(".py") else (native, rf"\b{name}\b"):
        for number, line in enumerate(lines, 1):
            if re.search(pattern, line) and not line.lstrip().startswith(("//", "#")):
                return number
    return None


class SourceRole(SphinxRole):
    """``path: symbol`` or ``text <path: symbol>`` as a link to the line of the source."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        match = re.fullmatch(r"(.*?)\s*<([^<>]+)>", self.text, re.S)
        text, target = match.groups() if match else (None, self.text)
        path, _, symbol = (part.strip() for part in target.partition(":"))
        if match is None:
            text = symbol or path
        return [make_source_link(self.env, text, path, symbol, self.get_location())], []


def make_source_link(env: Any, text: str, path: str, symbol: str = "", location: Any = None) -> nodes.Node:
    """Return a link to a file of the repository, or to the line of a symbol in it; warn if it does not exist."""
    if not (ROOT / path).exists():
        logger.warning("there is no file %s in the repository", path, location=location)
        return nodes.literal(text, text)
    if not (ROOT / path).is_file():
        return nodes.literal(text, text)
    line = find_line(path, symbol) if symbol else None
    if symbol and line is None:
        logger.warning("%s defines no %s", path, symbol, location=location)
    if not hasattr(env, "repository_sources"):
        env.repository_sources = {}
    env.repository_sources.setdefault(env.docname, set()).add(path)
    return source_link("", "", nodes.literal(text, text), page=source_page(path), line=line)


def resolve_links(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for node in list(doctree.findall(source_link)):
        uri = relative_uri(app.builder.get_target_uri(docname), app.builder.get_target_uri(node["page"]))
        anchor = f"#L-{node['line']}" if node["line"] else ""
        reference = nodes.reference("", "", *node.children, refuri=uri + anchor, internal=True)
        node.replace_self(reference)


def rewrite_links(text: str, folder: Path, docname: str) -> str:
    """Rewrite links to files of the repository, relative to ``folder``, as links of the page ``docname``."""
    depth = "../" * docname.count("/")

    def image(match: re.Match[str]) -> str:
        label, target = match.groups()
        path = Path(os.path.normpath(folder / target))
        if "://" in target or not path.is_relative_to(DOCS):
            return match.group()
        return f"![{label}]({depth}{path.relative_to(DOCS).as_posix()})"

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        label = IMAGE.sub(image, label)
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return f"[{label}]({target})"
        full = Path(os.path.normpath(folder / path))
        if not full.is_relative_to(ROOT) or not full.exists():
            return f"[{label}]({target})"
        relative = full.relative_to(ROOT).as_posix()
        page = PAGES.get(relative)
        if page is None and full.suffix == ".md" and full.is_relative_to(DOCS):
            page = full.relative_to(DOCS).with_suffix("").as_posix()
        if page is not None:
            return f"[{label}]({depth}{page}.md{'#' + anchor if anchor else ''})"
        return f"{{source}}`{label.strip('`')} <{relative}>`"

    lines, fenced = [], False
    for line in text.splitlines():
        if FENCE.match(line.lstrip()) and not line.lstrip().startswith(":::"):
            fenced = not fenced
        elif not fenced:
            line = LINK.sub(link, line)
            line = IMAGE.sub(image, line)
        lines.append(line)
    return "\n".join(lines) + "\n"


def join_links(text: str) -> str:
    """Join the two lines of a link whose text is broken between lines."""
    return re.sub(r"(?<!\!)\[([^\[\]\n`]+)\n([^\[\]\n]+)\]\(", r"[\1 \2](", text)


def read_source(app: Sphinx, docname: str, source: list[str]) -> None:
    """Insert documents of the repository into their pages and rewrite links."""
    file = Path(app.env.doc2path(docname))
    if file.suffix != ".md":
        return
    folder, text = file.parent, source[0]
    match = MARKER.search(text)
    if match:
        document = ROOT / match.group(1)
        app.env.note_dependency(str(document))
        inserted = rewrite_links(join_links(document.read_text()), document.parent, docname)
        source[0] = text.replace(match.group(), inserted)
    else:
        source[0] = rewrite_links(join_links(text), folder, docname)


def forget(app: Sphinx, env: Any, docname: str) -> None:
    getattr(env, "repository_sources", {}).pop(docname, None)


def merge(app: Sphinx, env: Any, docnames: set[str], other: Any) -> None:
    if not hasattr(env, "repository_sources"):
        env.repository_sources = {}
    for name in docnames:
        if name in getattr(other, "repository_sources", {}):
            env.repository_sources[name] = other.repository_sources[name]


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Render every file that a page links to, with an anchor per line."""
    if app.builder.format != "html":
        return
    paths = set().union(*getattr(app.env, "repository_sources", {}).values(), set())
    for path in sorted(paths):
        formatter = HtmlFormatter(linenos="inline", lineanchors="L", anchorlinenos=True, cssclass="highlight")
        code = highlight((ROOT / path).read_text(), get_lexer_for_filename(path), formatter)
        body = f"<h1>{path}</h1>\n<div class='source-file'>{code}</div>"
        yield source_page(path), {"title": path, "body": body, "parents": []}, "page.html"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_node(source_link)
    app.add_role("source", SourceRole())
    app.connect("source-read", read_source)
    app.connect("doctree-resolved", resolve_links)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("html-collect-pages", source_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
