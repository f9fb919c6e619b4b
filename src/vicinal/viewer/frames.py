"""Frames of a moving map as bytes: a head of 32 bytes, then zlib over places or over their changes.

    head      little-endian: kind, 3 spare bytes, run, epoch, n_epochs (uint32), left, bottom, right, top (float32)
    KEY       steps of the 16-bit grid over the head's box, all x before all y
    DELTA     changes of the steps since the last frame of this feed, as int16; steps of rows it did not have were 0
    EXACT     float32 places, all x before all y
    ROWS      no places, but what is known of rows to come: the length of a JSON text (uint32), the text, and the
              sections of a page (packing.py) whose lengths the text gives. Rows from its `begin` on are replaced.

Steps move little from frame to frame, so that changes compress to a fraction of the places. The reader is
web/src/frames.ts.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.viewer.growing_columns import GrowingColumns
from vicinal.viewer.packing import COMPRESSION, Box, bounding_box, quantized

KEY, DELTA, EXACT, ROWS = 0, 1, 2, 3
HEAD = struct.Struct("<B3xIII4f")
LENGTH = struct.Struct("<I")
# Room around the places of a key frame, as a share of their extent: a map grows while it is laid out.
SLACK = 0.25


@dataclass(frozen=True)
class Moment:
    """Places at an epoch of a run. `final` places are sent as they are; `columns` belong to rows that keep coming."""

    run: int
    epoch: int
    n_epochs: int
    places: NDArray[np.float32]
    final: bool = False
    columns: GrowingColumns | None = None

    @property
    def worth_drawing(self) -> bool:
        """Whether anything has a place yet."""
        return len(self.places) > 0 and (self.epoch > 0 or self.final or self.columns is not None)


class Encoder:
    """Frames for one reader, which has seen every frame before."""

    def __init__(self) -> None:
        self._box: Box = (0.0, 0.0, 0.0, 0.0)
        self._steps: NDArray[np.uint16] | None = None
        self._rows: tuple[GrowingColumns | None, object, int] = (None, None, 0)

    def frames(self, moment: Moment) -> list[bytes]:
        """Everything the reader needs to draw the moment, in order."""
        rows = self._new_rows(moment)
        return [*([] if rows is None else [rows]), self.encode(moment)]

    def encode(self, moment: Moment) -> bytes:
        if moment.final:
            self._steps = None
            return self._framed(EXACT, moment, np.ascontiguousarray(moment.places.T, dtype="<f4").tobytes())
        last = self._steps
        if last is None or last.shape[1] > len(moment.places) or not self._holds(moment.places):
            self._box = _roomy(bounding_box(moment.places))
            self._steps = quantized(moment.places, self._box)
            return self._framed(KEY, moment, self._steps.tobytes())
        self._steps = quantized(moment.places, self._box)
        # differences modulo 2^16: the reader adds them modulo 2^16
        changes = self._steps.copy()
        changes[:, : last.shape[1]] -= last
        return self._framed(DELTA, moment, changes.tobytes())

    def _new_rows(self, moment: Moment) -> bytes | None:
        """Rows of which the reader knows nothing, or all of them where their colours are others now."""
        columns, n = moment.columns, len(moment.places)
        if columns is None:
            return None
        key = columns.colours(n)
        begin = self._rows[2] if self._rows[:2] == (columns, key) else 0
        if begin == n:
            return None
        self._rows = (columns, key, n)
        packed = columns.packed(begin, n)
        lengths = {name: len(content) for name, content in packed.sections.items()}
        text = json.dumps({"begin": begin, "meta": packed.meta, "sections": lengths}, allow_nan=False).encode()
        return self._head(ROWS, moment) + LENGTH.pack(len(text)) + text + b"".join(packed.sections.values())

    def _holds(self, places: NDArray[np.float32]) -> bool:
        left, bottom, right, top = bounding_box(places)
        return self._box[0] <= left and self._box[1] <= bottom and right <= self._box[2] and top <= self._box[3]

    def _framed(self, kind: int, moment: Moment, content: bytes) -> bytes:
        return self._head(kind, moment) + zlib.compress(content, COMPRESSION)

    def _head(self, kind: int, moment: Moment) -> bytes:
        return HEAD.pack(kind, moment.run, moment.epoch, moment.n_epochs, *self._box)


def _roomy(box: Box) -> Box:
    """The box with slack, in float32: the reader must not see other borders than the grid was made for."""
    left, bottom, right, top = box
    across, up = SLACK * (right - left) or 1.0, SLACK * (top - bottom) or 1.0
    sides = np.array([left - across, bottom - up, right + across, top + up], dtype=np.float32)
    return float(sides[0]), float(sides[1]), float(sides[2]), float(sides[3])
