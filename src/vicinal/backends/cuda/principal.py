"""Principal components on a device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vicinal.backends.cuda.device import Device, DeviceArray
from vicinal.backends.cuda.sums import column_bounds, column_sums

CENTERED_BYTES = 2**28  # of rows in double precision that are held at a time


def principal_scores(device: Device, rows: DeviceArray, n_components: int) -> NDArray[np.float64]:
    """Return coordinates along the leading principal axes, on the host; axes beyond the columns are zero.

    Rows are divided by their largest deviation from the mean, which keeps the sums of extreme data finite.
    """
    from scipy.linalg import eigh

    xp = device.xp
    n, d = (int(size) for size in rows.shape)
    step = max(1, CENTERED_BYTES // (8 * d))
    blocks = [slice(first, min(first + step, n)) for first in range(0, n, step)]
    center = device.to_numpy(column_sums(device, rows)) / max(n, 1)
    low, high = column_bounds(device, rows)
    largest = float(np.maximum(high - center, center - low).max(initial=0.0))
    scale = 1.0 / largest if largest > 0 else 1.0
    mean = device.asarray(center)
    gram = xp.zeros((d, d))
    for block in blocks:
        centered = (rows[block] - mean) * scale
        gram += centered.T @ centered
    kept = min(n_components, d)
    axes = eigh(device.to_numpy(gram), subset_by_index=[d - kept, d - 1])[1][:, ::-1]
    leading = device.asarray(np.ascontiguousarray(axes * scale))
    scores = np.concatenate([device.to_numpy((rows[block] - mean) @ leading) for block in blocks])
    return np.pad(scores, ((0, 0), (0, n_components - kept)))
