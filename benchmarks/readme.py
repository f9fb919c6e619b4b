"""Write the figures of README.md from the raw results: `python benchmarks/table.py` does so for both documents."""

from __future__ import annotations

import re
from pathlib import Path

from bars import Bar, Documents, all_bars

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCK = re.compile(r"(?<=<!-- benchmarks -->\n).*(?=<!-- /benchmarks -->)", re.S)
# How the work of a bar begins, and what README says about it. "{umap-learn}" is the version that was measured.
LINES = {
    "fashion, fresh process": "UMAP, fresh process: start, import, fit, exit (umap-learn {umap-learn})",
    "whole fit, warm": "UMAP, whole fit, both warm (umap-learn)",
    "transform of 10,000 unseen rows": "`transform` of 10,000 unseen rows on a model of 60,000 (umap-learn)",
    "t-SNE, fresh process": "t-SNE, fresh process, KL divergence {low} against {high} (openTSNE {openTSNE})",
    "peak memory beyond the input": "peak memory beyond the input, UMAP (umap-learn)",
}
SCORES = {
    "fashion, recall@15": "neighbor recall@15",
    "fashion, 10-NN accuracy": "10-NN accuracy",
    "fashion, Spearman": "Spearman correlation of distances",
}


def find_bar(bars: list[Bar], beginning: str) -> Bar:
    """Return the bar whose work begins so; README cannot be written without it."""
    found = next((bar for bar in bars if bar.work.startswith(beginning)), None)
    if found is None:
        raise LookupError(f"benchmarks/results has no result of {beginning!r}, which README.md shows")
    return found


def readme_block(documents: Documents) -> str:
    """Return the table and the sentence of README.md."""
    bars = all_bars(documents)
    divergence = find_bar(bars, "t-SNE, KL divergence")
    words = {
        **documents["fresh"]["versions"]["peers"],
        **documents["tsne"]["versions"]["peers"],
        "low": f"{float(divergence.ours):.3f}",
        "high": f"{float(divergence.peer):.3f}",
    }
    cores = documents["fresh"]["machine"]["cores"]
    lines = [f"| Fashion-MNIST, 70,000 x 784, {cores} cores | vicinal | peer | ratio |", "|---|---|---|---|"]
    for beginning, text in LINES.items():
        bar = find_bar(bars, beginning)
        lines.append(f"| {text.format(**words)} | {bar.ours} | {bar.peer} | 1/{1 / bar.value:.1f} |")
    scores = []
    for beginning, name in SCORES.items():
        bar = find_bar(bars, beginning)
        scores.append(f"{name} {float(bar.ours):.3f} / {float(bar.peer):.3f}")
    lines += ["", f"Quality of the UMAP maps, vicinal / umap-learn: {', '.join(scores)}."]
    return "\n".join(lines) + "\n"


def write_readme(documents: Documents, file: Path = README) -> None:
    """Replace the block of README.md."""
    text = file.read_text()
    if not BLOCK.search(text):
        raise LookupError(f"{file} has no block of benchmarks")
    file.write_text(BLOCK.sub(lambda _: readme_block(documents), text))
