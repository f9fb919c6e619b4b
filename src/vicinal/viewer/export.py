"""One offline HTML file of a map: page, program and data in it, nothing fetched from anywhere."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from vicinal.files.atomic import Outputs
from vicinal.viewer.packing import Columns, Packed, pack


def export(
    path: str | Path,
    embedding: Any,
    labels: ArrayLike | None = None,
    *,
    values: ArrayLike | None = None,
    hover: Any = None,
    images: ArrayLike | None = None,
    ids: Sequence[Any] | None = None,
    title: str | None = None,
    label: str = "",
    theme: str = "auto",
) -> Path:
    """Write a page that shows a map: zoom, hover, search, filter by class, select with a lasso, save the ids.

    `embedding` is a fitted model or an array [rows, 2]. `labels` are classes, or measurements if they are numbers
    with fractions; `values` are measurements. `hover` is a data frame, a mapping of names to columns, or one column
    of texts. `images` are small pictures, an array [rows, height, width] or [rows, height, width, channels]. `ids`
    name the rows in selections instead of their numbers. `label` says what the labels are. `theme` is "light",
    "dark" or "auto", the reader's own. The file opens from anywhere, without a network.
    """
    path = Path(path)
    columns = Columns(labels, values, hover, images, ids)
    packed = pack(embedding, columns, title=path.stem if title is None else title, label=label, theme=theme)
    with Outputs() as outputs:
        outputs.staged(path).write_text(page(packed), encoding="utf-8")
    return path


def page(packed: Packed) -> str:
    """The whole HTML of a packed map."""
    static = resources.files("vicinal.viewer") / "static"
    parts = {
        "title": html.escape(str(packed.meta["title"])),
        "style": (static / "page.css").read_text(encoding="utf-8"),
        "data": packed.html(),
        # inside a script element only these two could be taken for its end or for a comment
        "script": re.sub(r"<(?=/script|!--)", r"\\x3c", (static / "page.js").read_text(encoding="utf-8")),
    }
    template = (static / "page.html").read_text(encoding="utf-8")
    # one pass, so that nothing inside a part is taken for a place to fill
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], template)
