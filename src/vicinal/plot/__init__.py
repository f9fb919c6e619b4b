"""Static figures of maps, ready for publication; every function returns matplotlib axes."""

from vicinal.plot.axes import DPI, FIGURE_INCHES, save
from vicinal.plot.compare import compare
from vicinal.plot.connectivity import connectivity
from vicinal.plot.diagnostic import diagnostic
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
    "loss",
    "palette",
    "points",
    "reliability",
    "save",
    "torn_edges",
]
