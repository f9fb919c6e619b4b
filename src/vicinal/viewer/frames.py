"""Frames of a moving map as bytes: a head of 32 bytes, then zlib over places or over their changes.

    head      little-endian: kind, 3 spare bytes, run, epoch, n_epochs (uint32), left, bottom, right, top (float32)
    KEY       steps of the 16-bit grid over the head's box, all x before all y
    DELTA     changes of the steps since the last frame of this feed, as int16
    EXACT     float32 places, all x before all y

Steps move little from frame to frame, so that changes compress to a fraction of the places. The reader is
web/src/frames.ts.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.viewer.packing import COMPRESSION, Box, bounding_box, quantized

KEY, DELTA, EXACT = 0, 1, 2
HEAD = struct.Struct("<B3xIII4f")
# Room around the places of a key frame, as a share of their extent: a map grows while it is laid out.
SLACK = 0.25


@dataclass(frozen=True)
class Moment:
    """Places at an epoch of a run. `final` places are sent as they are."""

    run: int
    epoch: int
    n_epochs: int
    places: NDArray[np.float32]
    final: bool = False


class Encoder:
    """Frames for one reader, which has seen every frame before."""

    def __init__(self) -> None:
        self._box: Box = (0.0, 0.0, 0.0, 0.0)
        self._steps: NDArray[np.uint16] | None = None

    def encode(self, moment: Moment) -> bytes:
        if moment.final:
            self._steps = None
            return self._framed(EXACT, moment, np.ascontiguousarray(moment.places.T, dtype="<f4").tobytes())
        last = self._steps
        if last is None or last.shape[1] != len(moment.places) or not self._holds(moment.places):
            self._box = _roomy(bounding_box(moment.places))
            self._steps = quantized(moment.places, self._box)
            return self._framed(KEY, moment, self._steps.tobytes())
        self._steps = quantized(moment.places, self._box)
        # differences modulo 2^16: the reader adds them modulo 2^16
        return self._framed(DELTA, moment, (self._steps - last).tobytes())

    def _holds(self, places: NDArray[np.float32]) -> bool:
        left, bottom, right, top = bounding_box(places)
        return self._box[0] <= left and self._box[1] <= bottom and right <= self._box[2] and top <= self._box[3]

    def _framed(self, kind: int, moment: Moment, content: bytes) -> bytes:
        head = HEAD.pack(kind, moment.run, moment.epoch, moment.n_epochs, *self._box)
        return head + zlib.compress(content, COMPRESSION)


def _roomy(box: Box) -> Box:
    """The box with slack, in float32: the reader must not see other borders than the grid was made for."""
    left, bottom, right, top = box
    across, up = SLACK * (right - left) or 1.0, SLACK * (top - bottom) or 1.0
    sides = np.array([left - across, bottom - up, right + across, top + up], dtype=np.float32)
    return float(sides[0]), float(sides[1]), float(sides[2]), float(sides[3])
