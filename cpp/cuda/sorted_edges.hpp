// How the edges of a sampled layout are stored on a GPU: rows are sorted by their number of edges, and all but the
// longest are cut into slices of 32 rows whose edges are stored column by column.
#pragma once

#include "cuda/device.hpp"

namespace vicinal {

constexpr Size slice_rows = warp_lanes;

// 2^32 times the firings per sweep of an edge, and its phase; read at once.
struct alignas(8) Clock {
    std::uint32_t rate, phase;
};

// Where the edges of the sorted rows are: those of the first n_long rows one row after the other, then slice by slice.
struct EdgePlaces {
    const Size* begin;  // of every long row, then of every slice
    Size n_long;

    VICINAL_INLINE Size first(Size r) const {
        const Size s = r - n_long;
        return s < 0 ? begin[r] : begin[n_long + s / slice_rows] + s % slice_rows;
    }
    VICINAL_INLINE Size stride(Size r) const { return r < n_long ? 1 : slice_rows; }
};

}  // namespace vicinal
