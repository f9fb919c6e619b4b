"""Encode frames of a moving map as bytes: a header of 40 bytes, then zlib-compressed positions or changes.

    header    little-endian: kind, dimensions, 2 unused bytes, run, epoch, n_epochs (uint32), the lowest x, y and z and
              the highest x, y and z (float32; 0 for z of a flat map)
    KEY       positions as steps of a 16-bit grid over the header's box, all x before all y (before all z)
    DELTA     changes of the steps since the previous frame of this feed, as int16; steps of new rows start at 0
    EXACT     float32 positions, all x before all y (before all z)
    ROWS      no positions, but the data of new rows: the length of a JSON text (uint32), the text, and the sections of
              a page (packing.py), whose lengths are in the text; replaces all rows from its `begin` on

Positions move little between frames, so that changes compress to a fraction of the positions. The decoder is
web/src/frames.ts.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vicinal.viewer.columns import COMPRESSION
from vicinal.viewer.growing_columns import GrowingColumns
from vicinal.viewer.packing import Box, bounding_box, quantized

KEY, DELTA, EXACT, ROWS = 0, 1, 2, 3
HEADER = struct.Struct("<BB2xIII6f")
LENGTH = struct.Struct("<I")
# Margin around the positions of a key frame, as a fraction of their extent: a map expands during the layout.
MARGIN = 0.25


@dataclass(frozen=True)
class Snapshot:
    """Positions at an epoch of a run; ``final`` ones are sent exactly, ``columns`` has the data of a growing map."""

    run: int
    epoch: int
    n_epochs: int
    positions: NDArray[np.float32]
    final: bool = False
    columns: GrowingColumns | None = None

    @property
    def drawable(self) -> bool:
        """Whether there are positions to draw."""
        return len(self.positions) > 0 and (self.epoch > 0 or self.final or self.columns is not None)


class FrameEncoder:
    """Encode frames for one client, which has received every previous frame."""

    def __init__(self) -> None:
        self._box: Box = (0.0,) * 4
        self._steps: NDArray[np.uint16] | None = None
        self._rows: tuple[GrowingColumns | None, object, int] = (None, None, 0)

    def frames(self, snapshot: Snapshot) -> list[bytes]:
        """Return the frames that the client needs to draw the snapshot, in order."""
        rows = self._new_rows(snapshot)
        return [*([] if rows is None else [rows]), self.encode(snapshot)]

    def encode(self, snapshot: Snapshot) -> bytes:
        """Encode the positions of a snapshot."""
        if snapshot.final:
            self._steps = None
            return self._framed(EXACT, snapshot, np.ascontiguousarray(snapshot.positions.T, dtype="<f4").tobytes())
        last = self._steps
        if last is None or last.shape[1] > len(snapshot.positions) or not self._holds(snapshot.positions):
            self._box = _with_margin(bounding_box(snapshot.positions))
            self._steps = quantized(snapshot.positions, self._box)
            return self._framed(KEY, snapshot, self._steps.tobytes())
        self._steps = quantized(snapshot.positions, self._box)
        # differences modulo 2^16; the client adds modulo 2^16
        changes = self._steps.copy()
        changes[:, : last.shape[1]] -= last
        return self._framed(DELTA, snapshot, changes.tobytes())

    def _new_rows(self, snapshot: Snapshot) -> bytes | None:
        """Encode the rows that the client does not have yet, or all rows if their colours have changed."""
        columns, n = snapshot.columns, len(snapshot.positions)
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
        return self._header(ROWS, snapshot) + LENGTH.pack(len(text)) + text + b"".join(packed.sections.values())

    def _holds(self, positions: NDArray[np.float32]) -> bool:
        box, width = bounding_box(positions), positions.shape[1]
        if len(self._box) != len(box):
            return False
        lower = all(mine <= its for mine, its in zip(self._box[:width], box[:width], strict=True))
        return lower and all(mine >= its for mine, its in zip(self._box[width:], box[width:], strict=True))

    def _framed(self, kind: int, snapshot: Snapshot, content: bytes) -> bytes:
        return self._header(kind, snapshot) + zlib.compress(content, COMPRESSION)

    def _header(self, kind: int, snapshot: Snapshot) -> bytes:
        width = len(self._box) // 2
        box = (*self._box[:width], *(0.0,) * (3 - width), *self._box[width:], *(0.0,) * (3 - width))
        dimensions = snapshot.positions.shape[1]
        return HEADER.pack(kind, dimensions, snapshot.run, snapshot.epoch, snapshot.n_epochs, *box)


def _with_margin(box: Box) -> Box:
    """Return the box with a margin, rounded to float32: client and grid must use identical borders."""
    width = len(box) // 2
    low, high = np.array(box[:width]), np.array(box[width:])
    margin = np.where(high > low, MARGIN * (high - low), 1.0)
    return tuple(float(side) for side in np.concatenate([low - margin, high + margin]).astype(np.float32))
