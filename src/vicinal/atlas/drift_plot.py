"""Draw the measures of a drift: one panel each, one line per area."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vicinal.atlas.drift import MEASURES, AreaDrift, Drift, Measure
from vicinal.plot.look import OKABE_ITO, OWN, Look, look_of, short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {
    "distance": "distance to old rows",
    "nowhere": "share that fits nowhere",
    "growth": "new rows per old row",
    "composition": "change of labels",
}
SHARES = ("nowhere", "growth", "composition")
PANEL_INCHES, LINE_INCHES, LEAST_INCHES, HEAD_INCHES = 2.5, 0.24, 1.2, 1.1

DRIFTED, SAME = OKABE_ITO[4], OKABE_ITO[0]


def draw_drift(drift: Drift, theme: str, most: int) -> list[Axes]:
    """Return the axes of a new figure, one for each measure that was taken."""
    from matplotlib import pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.lines import Line2D

    if most < 1:
        raise ValueError(f"most must be at least 1, got {most}")
    look = look_of(theme)
    entries = _chosen(drift, most)
    shown = [name for name in MEASURES if any(getattr(one, name).value is not None for one in entries)]
    height = max(LEAST_INCHES, LINE_INCHES * len(entries)) + HEAD_INCHES
    size = (PANEL_INCHES * len(shown) + 1.2, height)
    figure, grid = plt.subplots(
        1, len(shown), figsize=size, sharey=True, squeeze=False, layout=ConstrainedLayoutEngine(wspace=0.06)
    )
    figure.set_facecolor(look.background)
    figure.set_gid(OWN)
    for ax, name in zip(grid[0], shown, strict=True):
        _draw_panel(ax, name, entries, look)
    grid[0, 0].set_yticks(range(len(entries)), [short_name(one.name) for one in entries])
    grid[0, 0].set_ylim(len(entries) - 0.4, -0.6)
    looks = [(DRIFTED, "drifted"), (SAME, "not drifted")]
    marks = [Line2D([], [], linestyle="", marker="o", color=color, label=text) for color, text in looks]
    marks.append(Line2D([], [], linewidth=6, color=look.theme.faint, label="95 % of the draws"))
    legend = figure.legend(handles=marks, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    for text in legend.get_texts():
        text.set_color(look.theme.ink)
    return list(grid[0])


def _chosen(drift: Drift, most: int) -> list[AreaDrift]:
    """Return all rows together, then the areas with the most findings, and of these the largest, in their order."""
    areas = sorted(drift.entries[1:], key=lambda one: (-len(one.drifted), -one.new, -one.old))[:most]
    return [drift.whole, *(one for one in drift.entries[1:] if one in areas)]


def _draw_panel(ax: Axes, name: str, entries: list[AreaDrift], look: Look) -> None:
    from matplotlib.ticker import MaxNLocator

    ink, faint = look.theme.ink, look.theme.faint
    ax.set_facecolor(look.background)
    for line, entry in enumerate(entries):
        one: Measure = getattr(entry, name)
        if one.value is None:
            continue
        if one.low is not None and one.high is not None:
            ax.plot([one.low, one.high], [line, line], color=faint, linewidth=6, solid_capstyle="round", zorder=1)
        if one.expected is not None:
            ax.plot([one.expected], [line], marker="|", markersize=8, color=ink, zorder=2)
        color = DRIFTED if name in entry.drifted else SAME
        ax.plot([one.value], [line], marker="o", markersize=6, color=color, zorder=3, clip_on=False)
    ax.set_title(TITLES[name], color=ink, fontsize=10)
    if name in SHARES:
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
        ax.set_xlim(left=0)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.tick_params(colors=ink, labelsize=9, length=0)
    ax.grid(axis="x", color=faint, linewidth=0.5)
    ax.set_axisbelow(True)
    for spine in ax.spines.values():
        spine.set_visible(False)
