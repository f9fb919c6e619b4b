"""Figures of maps, ready for publication, as matplotlib axes; they take the arguments of ``umap.plot`` too."""

from vicinal.plot.axes import DPI, FIGURE_INCHES, save
from vicinal.plot.compare import compare
from vicinal.plot.connectivity import connectivity
from vicinal.plot.diagnostic import diagnostic
from vicinal.plot.interactive import interactive, nearest_neighbour_distribution, output_notebook, show
from vicinal.plot.loss import loss
from vicinal.plot.palette import THEMES, palette
from vicinal.plot.points import points
from vicinal.plot.reliability import reliability, torn_edges

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
    "output_notebook",
    "palette",
    "points",
    "reliability",
    "save",
    "show",
    "torn_edges",
]
