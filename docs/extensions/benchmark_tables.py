"""Tables of measurements in the manual, written from the raw JSON of benchmarks/results when the site is built."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from repository import ROOT
from sphinx.application import Sphinx

RESULTS = ROOT / "benchmarks" / "results"
# Words of comparisons of vicinal with itself, which are no comparisons with a peer.
WITH_OURSELVES = ("our UMAP", "fit of all rows", "against ours", "for 10,000")
CHART = "generated/benchmark-ratios.png"

sys.path.insert(0, str(ROOT / "benchmarks"))
import table  # noqa: E402
from areas_table import areas_table  # noqa: E402
from bars import all_bars  # noqa: E402
from published_table import published_table  # noqa: E402
from quality_table import reading_table  # noqa: E402
from release import NOT_MEASURED  # noqa: E402


def read_tables() -> str:
    """Return the tables of all suites as Markdown, without their title, with pictures from docs/generated."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.md"
        table.write_table(RESULTS, file)
        return file.read_text().partition("\n")[2].replace("(results/", "(generated/")


def draw_ratios(path: Path) -> None:
    """Draw how many times as long the peer takes, for every comparison of times."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    pairs = [
        (bar.work, 1 / bar.value)
        for bar in all_bars(table.read_documents(RESULTS))
        if bar.kind == "ratio" and bar.peer and not any(word in bar.work for word in WITH_OURSELVES)
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, ax = plt.subplots(figsize=(9, 0.36 * len(pairs) + 0.8), layout="constrained")
    pairs.reverse()
    places = range(len(pairs))
    ax.barh(places, [times for _, times in pairs], color="#2a78b5")
    ax.set_yticks(places, [work for work, _ in pairs], fontsize=8)
    for place, (_, times) in zip(places, pairs, strict=True):
        ax.text(times, place, f" {times:.1f}", va="center", fontsize=8)
    ax.axvline(1, color="0.4", lw=0.8)
    ax.set_xlabel("time (or memory) of the peer / that of vicinal")
    ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write_chart(app: Sphinx) -> None:
    draw_ratios(Path(app.srcdir) / CHART)
    for picture in RESULTS.glob("*.png"):
        shutil.copyfile(picture, Path(app.srcdir) / "generated" / picture.name)


def read_table(suite: str, write: Callable[[table.Documents], list[str]]) -> str:
    """Return the lines about a suite, or say that it has no results of this version."""
    documents = table.read_documents(RESULTS)
    return "\n".join(write(documents)) if suite in documents else NOT_MEASURED


# Where a page shows tables, and which.
TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "benchmarks": ("<!-- tables of benchmarks/results -->", read_tables),
    "guides/clusters": ("<!-- tables of clusters -->", lambda: "\n".join(areas_table(RESULTS))),
    "guides/published": (
        "<!-- table of published figures -->",
        lambda: read_table("published", published_table),
    ),
    "start/reading": (
        "<!-- table of distances -->",
        lambda: read_table("quality", reading_table),
    ),
}


def insert_tables(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname in TABLES:
        for file in sorted(RESULTS.glob("*.json")):
            app.env.note_dependency(str(file))
        marker, write = TABLES[docname]
        if marker not in source[0]:
            raise LookupError(f"docs/{docname}.md has no line {marker}")
        source[0] = source[0].replace(marker, write())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", write_chart)
    # After links were rewritten: the tables contain none.
    app.connect("source-read", insert_tables, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
