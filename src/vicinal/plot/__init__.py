"""Figures of maps, ready for publication, as matplotlib axes; they take the arguments of ``umap.plot`` too."""

from vicinal.plot.connectivity import connectivity
from vicinal.plot.diagnostic import diagnostic, loss, reliability, torn_edges
from vicinal.plot.interactive import interactive, nearest_neighbour_distribution, output_file, output_notebook, show
from vicinal.plot.look import DPI, FIGURE_INCHES, THEMES, palette, save
from vicinal.plot.points import compare, points

__all__ = [
    "DPI",
    "FIGURE_INCHES",
    "THEMES",
    "compare",
    "connectivity",
    "diagnostic",
    "interactive",
    "loss",
    "nearest_neighbour_distribution",
    "output_file",
    "output_notebook",
    "palette",
    "points",
    "reliability",
    "save",
    "show",
    "torn_edges",
]
