"""Static pictures of maps, meant to be published as they come out; each function returns matplotlib axes."""

from vicinal.plot.frame import DPI, FIGURE_INCHES, save
from vicinal.plot.palette import THEMES, palette
from vicinal.plot.points import points

__all__ = ["DPI", "FIGURE_INCHES", "THEMES", "palette", "points", "save"]
