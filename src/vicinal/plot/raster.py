"""Density shading: marks counted per pixel, for more points or edges than can be drawn one by one.

The colour of a pixel is the mean colour of its marks. Its opacity increases with the logarithm of their number and is
highest at the quantile DENSEST, so that single marks remain visible beside areas a thousand times as dense.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

# Pixels along the longer side of the window, about those of a printed column.
SIDE = 900
DENSEST = 0.99
# Points along edges are counted in blocks of this size, which bounds the memory.
BLOCK = 4_000_000


class Raster:
    """Sums of weights and colours per pixel of a grid over the window of the axes."""

    def __init__(self, ax: Axes) -> None:
        (self.left, self.right), (self.bottom, self.top) = ax.get_xlim(), ax.get_ylim()
        self.step = max(self.right - self.left, self.top - self.bottom) / SIDE
        self.width = max(1, round((self.right - self.left) / self.step))
        self.height = max(1, round((self.top - self.bottom) / self.step))
        self.sums = np.zeros((4, self.height * self.width))

    def add_points(self, xy: Floats, colours: Floats) -> None:
        """Add points, each with its own colour [n, 3]."""
        self._count(xy, np.concatenate([np.ones((len(xy), 1)), colours], axis=1))

    def add_lines(self, start: Floats, end: Floats, weights: Floats, colour: tuple[float, float, float]) -> None:
        """Add straight lines as points that are one pixel apart."""
        lengths = np.ceil(np.abs(end - start).max(axis=1) / self.step).astype(np.int64) + 1
        cuts = np.searchsorted(np.cumsum(lengths), np.arange(BLOCK, lengths.sum() + BLOCK, BLOCK))
        for some in np.split(np.arange(len(start)), cuts):
            line = np.repeat(some, lengths[some])
            first = np.repeat(np.cumsum(lengths[some]) - lengths[some], lengths[some])
            along = ((np.arange(len(line)) - first) / np.maximum(lengths[line] - 1, 1))[:, None]
            weight = weights[line][:, None]
            self._count(start[line] * (1 - along) + end[line] * along, weight * np.array([1.0, *colour]))

    def _count(self, xy: Floats, weighted: Floats) -> None:
        column = np.clip(((xy[:, 0] - self.left) / self.step).astype(np.int64), 0, self.width - 1)
        row = np.clip(((xy[:, 1] - self.bottom) / self.step).astype(np.int64), 0, self.height - 1)
        pixel = row * self.width + column
        for sums, values in zip(self.sums, weighted.T, strict=True):
            sums += np.bincount(pixel, weights=values, minlength=len(sums))

    def draw(self, ax: Axes, *, opaque: float = 1.0, faintest: float = 0.35, blur: float = 0.6) -> Any:
        """Draw the image; a pixel with a single mark has ``faintest`` times the opacity of a dense one."""
        from scipy.ndimage import gaussian_filter

        # single-pixel marks look like noise: spread the weight of a mark over its neighboring pixels
        total, *colours = (gaussian_filter(part.reshape(self.height, self.width), blur) for part in self.sums)
        marked = total > total.max() * 1e-6
        shade = np.zeros((self.height, self.width, 4))
        shade[marked, :3] = np.clip(np.stack(colours, axis=-1)[marked] / total[marked][:, None], 0.0, 1.0)
        least, most = np.quantile(total[marked], [0.05, DENSEST])
        depth = np.log1p(total[marked] / least) / np.log1p(max(most / least, 1.0))
        shade[marked, 3] = opaque * np.clip(faintest + (1.0 - faintest) * depth, 0.0, 1.0)
        # fade out the rim that only the blur has added around a mark
        shade[marked, 3] *= np.clip(total[marked] / least, 0.0, 1.0)
        extent = (self.left, self.left + self.width * self.step, self.bottom, self.bottom + self.height * self.step)
        return ax.imshow(shade, extent=extent, origin="lower", interpolation="antialiased", aspect="equal", zorder=1)
