"""Memberships and symmetric graphs on a device, with the bits of the CPU's (cpp/cuda/graph.cu)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from vicinal.backends import cpu
from vicinal.backends.cuda.device import USUAL_KERNELS, Device, DeviceArray, launch

USUAL_KERNELS.append(("local_rho", ()))

Edges = tuple[DeviceArray, DeviceArray, DeviceArray]  # indptr, indices, weights

# Memory for the squared distances of the rows whose perplexity is calibrated at a time.
CALIBRATION_BYTES = 2**28
MOST_ADDERS = 1 << 16  # threads that add up integers


def smooth_knn(
    device: Device,
    distance: DeviceArray,
    k: float,
    local_connectivity: float,
    bandwidth: float,
    independent_rows: bool,
    n_jobs: int,
    mean_distance: float | None = None,
) -> tuple[DeviceArray, DeviceArray]:
    """Return rho and sigma of a table of sorted distances, the row itself first (survey eq. 2, 3)."""
    rows, columns = distance.shape
    rho, sigma = device.xp.empty(rows, np.float32), device.xp.empty(rows, np.float32)
    sizes = np.int64(rows), np.int64(columns)
    any_zero = device.xp.zeros(1, np.int32)
    arguments = distance, *sizes, np.float64(local_connectivity), rho, any_zero
    launch(device.kernel("local_rho"), rows, arguments)
    mean_all = mean_distance or 0.0
    if mean_distance is None and not independent_rows and int(any_zero[0]):
        mean_all = _mean_in_order(device, distance)
    target = np.float64(math.log2(k) * bandwidth)
    scale = np.float64(mean_all), np.bool_(independent_rows)
    launch(device.kernel("smooth_sigma"), rows, (distance, rho, *sizes, target, *scale, sigma))
    return rho, sigma


def _mean_in_order(device: Device, distance: DeviceArray) -> float:
    """Return the mean of all finite distances, summed in the order of the table as the CPU does it."""
    values = device.to_numpy(distance).reshape(-1)
    values = values[np.isfinite(values)]
    return float(np.add.accumulate(values, dtype=np.float64)[-1]) / len(values) if len(values) else 0.0


def memberships(
    device: Device,
    index: DeviceArray,
    distance: DeviceArray,
    rho: DeviceArray,
    sigma: DeviceArray,
    bipartite: bool,
    n_jobs: int,
) -> DeviceArray:
    """Return the directed memberships of a table (eq. 1); 0 for missing neighbors."""
    rows, columns = index.shape
    out = device.xp.empty((rows, columns), np.float32)
    arguments = index, distance, rho, sigma, np.int64(rows), np.int64(columns), np.bool_(bipartite), out
    launch(device.kernel("membership_strengths"), rows * columns, arguments)
    return out


def perplexity_conditionals(
    device: Device, index: DeviceArray, distance: DeviceArray, perplexity: float, bipartite: bool, n_jobs: int
) -> tuple[DeviceArray, DeviceArray]:
    """Return the conditional probabilities of a table with a given perplexity, and sigma (eq. 18)."""
    rows, columns = index.shape
    conditional, sigma = device.xp.empty((rows, columns), np.float32), device.xp.empty(rows, np.float32)
    most = max(1, CALIBRATION_BYTES // (8 * max(columns, 1)))
    room = device.xp.empty((columns, min(most, rows)), np.float64)
    for first in range(0, rows, most):
        count = min(most, rows - first)
        sizes = np.int64(first), np.int64(count), np.int64(columns), np.int64(room.shape[1])
        settings = np.float64(perplexity), np.bool_(bipartite)
        arguments = index, distance, *sizes, *settings, room, conditional, sigma
        launch(device.kernel("calibrate_perplexity"), count, arguments)
    return conditional, sigma


def symmetrize(device: Device, index: DeviceArray, membership: DeviceArray, mix: float, n_jobs: int) -> Edges:
    """Return the symmetric graph of directed memberships (eq. 4)."""
    return _symmetrize(device, index, membership, mix)


def symmetrize_mean(device: Device, index: DeviceArray, membership: DeviceArray, n_jobs: int) -> Edges:
    """Return the mean of both conditional probabilities of a pair (eq. 19)."""
    return _symmetrize(device, index, membership, None)


def _symmetrize(device: Device, index: DeviceArray, membership: DeviceArray, mix: float | None) -> Edges:
    xp = device.xp
    rows, columns = index.shape
    sizes = np.int64(rows), np.int64(columns)
    padded, count = xp.empty((rows, columns, 2), np.int32), xp.empty(rows, np.int64)
    launch(device.kernel("sort_directed"), rows, (index, membership, *sizes, padded, count))
    kept = xp.flatnonzero(xp.arange(columns)[None, :] < count[:, None])
    forward, source = padded.reshape(-1, 2)[kept], (kept // columns).astype(np.int32)
    del padded, kept
    forward_begin = _offsets(xp, count)
    n_edges = int(forward.shape[0])
    # A stable sort by tail keeps the sources in order.
    tails = xp.ascontiguousarray(forward[:, 0])
    order = xp.argsort(tails, kind="stable").astype(np.int64, copy=False)
    backward = xp.empty((n_edges, 2), np.int32)
    launch(device.kernel("turn_edges"), n_edges, (forward, source, order, np.int64(n_edges), backward))
    backward_begin = group_begins(device, tails[order], rows)
    del source, tails, order
    rule = np.bool_(mix is None), np.float32(0.0 if mix is None else mix)
    directions = forward, forward_begin, backward, backward_begin, np.int64(rows), *rule
    launch(device.kernel("count_merged"), rows, (*directions, count))
    indptr = _offsets(xp, count)
    total = int(indptr[-1])
    indices, weights = xp.empty(total, np.int32), xp.empty(total, np.float32)
    launch(device.kernel("write_merged"), rows, (*directions, indptr, indices, weights))
    return indptr, indices, weights


def weight_units(device: Device, weights: DeviceArray, units: float) -> int:
    """Return the sum of weights as integer multiples of ``1 / units``."""
    n, total = int(weights.size), device.xp.zeros(1, np.int64)
    threads = min(n, MOST_ADDERS)
    arguments = weights, np.int64(n), np.float64(units), np.int64(threads), total
    launch(device.kernel("add_weight_units"), threads, arguments)
    return int(device.to_numpy(total)[0])


def neighbor_medoids(
    device: Device,
    indptr: DeviceArray,
    indices: DeviceArray,
    weights: DeviceArray,
    reference: NDArray[np.float32],
) -> NDArray[np.float32]:
    """Return for every head the place of the medoid of its tails, or the middle if it has none; on the host."""
    n, dim = int(indptr.shape[0]) - 1, reference.shape[1]
    out = device.xp.empty((n, dim), np.float32)
    places = device.asarray(reference, np.float32), device.asarray(cpu._middle_of(reference)), np.int32(dim)
    launch(device.kernel("neighbor_medoids"), n, (indptr, indices, weights, *places, np.int64(n), out))
    return device.to_numpy(out)


def group_begins(device: Device, ordered: DeviceArray, count: int) -> DeviceArray:
    """Return where each of ``count`` groups begins among sorted group numbers, and where the last one ends."""
    begin = device.xp.empty(count + 1, np.int64)
    arguments = ordered, np.int64(ordered.shape[0]), np.int64(count), begin
    launch(device.kernel("group_begins"), count + 1, arguments)
    return begin


def divide_weights(device: Device, weights: DeviceArray, total: float) -> DeviceArray:
    """Return weights divided by their total, in double precision and rounded."""
    out = device.xp.empty_like(weights)
    arguments = weights, np.int64(weights.size), np.float64(total), out
    launch(device.kernel("divide_weights"), int(weights.size), arguments)
    return out


def edge_heads(device: Device, indptr: DeviceArray, n_edges: int) -> DeviceArray:
    """Return the head of every edge."""
    n, heads = int(indptr.shape[0]) - 1, device.xp.empty(n_edges, np.int32)
    launch(device.kernel("edge_heads"), n, (indptr, np.int64(n), heads))
    return heads


def _offsets(xp: object, counts: DeviceArray) -> DeviceArray:
    """Return where the items of each row begin, and where the last ones end."""
    begin = xp.zeros(len(counts) + 1, np.int64)  # type: ignore[attr-defined]
    xp.cumsum(counts, out=begin[1:])  # type: ignore[attr-defined]
    return begin
