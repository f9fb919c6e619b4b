"""The companion of the survey: where an equation is implemented and tested, and how far the code is from it.

``{implementation} 12`` shows the row of an equation in docs/equations.md as links to lines of the source, and the error
that the tests measured against the float64 reference (`pytest --equation-errors FILE`). A symbol that is not found is a
warning, and so an error of the build.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes
from repository import DOCS, ROOT, find_line, make_source_link
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)
EQUATIONS = DOCS / "equations.md"
ERRORS = Path(os.environ.get("VICINAL_EQUATION_ERRORS", ROOT / "build" / "docs" / "equation-errors.json"))
CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Row:
    """A row of the table: cells of Markdown."""

    code: str
    reference: str
    test: str


@cache
def table_rows() -> dict[str, Row]:
    """Read the table of docs/equations.md; a row of several equations is found under each of their numbers."""
    rows: dict[str, Row] = {}
    for line in EQUATIONS.read_text().splitlines():
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 6 and cells[0] not in ("eq.", "---"):
            row = Row(*cells[3:])
            names = [cells[0]] if not cells[0][0].isdigit() else cells[0].split(",")
            for name in names:
                key = f"{name.strip()}: {cells[1]}" if name.startswith("Algorithm") else name.strip()
                rows[key] = row
    return rows


@cache
def measured_errors() -> dict[str, dict[str, Any]]:
    if not ERRORS.exists():
        logger.info("there are no measured errors in %s; the pages about the survey show none", ERRORS)
        return {}
    errors: dict[str, dict[str, Any]] = json.loads(ERRORS.read_text())
    return errors


def repository_path(text: str) -> str:
    return text if text.startswith(("cpp/", "tests/", "docs/")) else f"src/vicinal/{text}"


def is_path(text: str) -> bool:
    return re.fullmatch(r"[\w/.-]+\.(?:py|hpp|cpp)", text) is not None


class Implementation(SphinxDirective):
    """Show code, reference, tests and measured error of one equation or algorithm."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        row = table_rows().get(name)
        if row is None:
            logger.warning("docs/equations.md has no row of %s", name, location=self.get_location())
            return []
        self.env.note_dependency(str(EQUATIONS))
        fields = nodes.field_list(classes=["implementation"])
        for title, body in (
            ("Code", self.code(row.code)),
            ("Reference", self.reference(row.reference)),
            ("Tests", self.tests(row.test)),
            ("Measured error", self.error(name)),
        ):
            if body:
                paragraph = nodes.paragraph("", "", *body)
                fields += nodes.field("", nodes.field_name(title, title), nodes.field_body("", paragraph))
        return [fields]

    def link(self, text: str, path: str, symbol: str = "") -> nodes.Node:
        return make_source_link(self.env, text, path, symbol, self.get_location())

    def code(self, cell: str) -> list[nodes.Node]:
        """Return the cell with its code as links: ``symbol`` in ``path`` leads to the line of the symbol."""
        out: list[nodes.Node] = []
        for clause in re.split(r"(;)", cell):
            names = CODE.findall(clause)
            path = next((repository_path(name) for name in reversed(names) if is_path(name)), "")
            for index, part in enumerate(CODE.split(clause)):
                if index % 2 == 0:
                    out.append(nodes.Text(part))
                elif is_path(part):
                    out.append(self.link(part, repository_path(part)))
                elif path and re.fullmatch(r"[\w.:]+", part):
                    out.append(self.link(part, path, part))
                else:
                    out.append(nodes.literal(part, part))
        return out

    def reference(self, cell: str) -> list[nodes.Node]:
        out: list[nodes.Node] = []
        for index, part in enumerate(CODE.split(cell)):
            if index % 2 == 0:
                out.append(nodes.Text(part.replace("†", "")))
                continue
            files = sorted((ROOT / "tests" / "reference").glob("*.py"))
            paths = [file.relative_to(ROOT).as_posix() for file in files]
            found = next((path for path in paths if find_line(path, part)), None)
            if found is None:
                logger.warning("tests/reference has no %s", part, location=self.get_location())
                continue
            out.append(self.link(part, found, part))
        return out

    def tests(self, cell: str) -> list[nodes.Node]:
        out: list[nodes.Node] = []
        for index, part in enumerate(CODE.split(cell)):
            out.append(self.link(part, f"tests/{part}") if index % 2 else nodes.Text(part))
        return out

    def error(self, name: str) -> list[nodes.Node]:
        record = measured_errors().get(name.partition(":")[0])
        if record is None:
            return []
        self.env.note_dependency(str(ERRORS))
        what = f"{record['error']:.1e}" if record["error"] else "0"
        return [nodes.Text(f"{what}, the largest relative difference among {record['values']:,} values")]


class MeasuredErrors(SphinxDirective):
    """Show the measured errors of all equations in one table."""

    def run(self) -> list[nodes.Node]:
        errors = measured_errors()
        if not errors:
            return [nodes.paragraph("", "This build did not run the tests that measure the errors.")]
        self.env.note_dependency(str(ERRORS))

        def order(name: str) -> tuple[int, str]:
            return (int(name), "") if name.isdigit() else (1000, name)

        table = nodes.table(classes=["table"])
        group = nodes.tgroup(cols=4)
        table += group
        group += [nodes.colspec(colwidth=width) for width in (15, 20, 15, 50)]
        head, body = nodes.thead(), nodes.tbody()
        group += [head, body]

        def line(cells: list[list[nodes.Node]]) -> nodes.row:
            row = nodes.row()
            for cell in cells:
                row += nodes.entry("", nodes.paragraph("", "", *cell))
            return row

        titles = ("equation", "largest relative error", "values", "measured by")
        head += line([[nodes.Text(title)] for title in titles])
        for name in sorted(errors, key=order):
            record = errors[name]
            links: list[nodes.Node] = []
            for test in record["tests"]:
                path, _, function = test.partition("::")
                links += [make_source_link(self.env, function, path, function, self.get_location()), nodes.Text(" ")]
            cells = [name, f"{record['error']:.1e}" if record["error"] else "0", f"{record['values']:,}"]
            body += line([*([nodes.Text(cell)] for cell in cells), links])
        return [table]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("implementation", Implementation)
    app.add_directive("measured-errors", MeasuredErrors)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
