"""Everything the site loads comes from the site itself: MathJax, and the names of other projects' documentation.

MathJax is the single file that draws formulas as SVG, from the PyPI package sphinx-mathjax-offline: it needs no fonts.
The inventories of NumPy, SciPy and scikit-learn are short lists beside this file, of the names that the
docstrings refer to.
"""

from __future__ import annotations

import shutil
import zlib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

MATHJAX_FILE = "tex-svg.js"
INVENTORIES = Path(__file__).parent / "inventories"
HEADER = "# Sphinx inventory version 2\n# Project: {name}\n# Version: \n# The remainder is compressed using zlib.\n"


def find_mathjax() -> Path:
    """Return the path of MathJax's single-file build in the installed package."""
    package = distribution("sphinx-mathjax-offline")
    for file in package.files or ():
        if file.name == MATHJAX_FILE and file.parent.name == "mathjax":
            return Path(str(package.locate_file(file)))
    raise FileNotFoundError(f"sphinx-mathjax-offline has no {MATHJAX_FILE}")


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        shutil.copyfile(find_mathjax(), Path(app.outdir) / "_static" / MATHJAX_FILE)


def compress_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the lists of names as Sphinx inventories and return intersphinx's mapping.

    The first line of a list is the address of the documentation; the others are lines of an inventory, as Sphinx
    writes them before they are compressed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    mapping = {}
    for source in sorted(INVENTORIES.glob("*.txt")):
        address, _, lines = source.read_text().partition("\n")
        target = folder / f"{source.stem}.inv"
        target.write_bytes(HEADER.format(name=source.stem).encode() + zlib.compress(lines.encode()))
        mapping[source.stem] = (address, str(target))
    return mapping


def configure(app: Sphinx, config: Any) -> None:
    config.mathjax_path = MATHJAX_FILE
    config.mathjax3_config = {
        "tex": {"macros": {"b": [r"\boldsymbol{#1}", 1]}},
        "options": {"enableMenu": False, "processHtmlClass": "math|output_area"},
    }
    config.intersphinx_mapping = compress_inventories(Path(app.doctreedir) / "inventories")


def setup(app: Sphinx) -> dict[str, bool]:
    # Before intersphinx reads its mapping.
    app.connect("config-inited", configure, priority=100)
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
