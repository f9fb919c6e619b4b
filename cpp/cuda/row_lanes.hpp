// Rows of 16 lanes, two per warp: the sums of the CPU have 16 lanes as well, and are added up by the same tree.
#pragma once

#include "cuda/device.hpp"

namespace vicinal {

constexpr int row_lanes = 16, warp_rows = warp_lanes / row_lanes;

VICINAL_INLINE Size row_of(int lane) { return warp_number() * warp_rows + lane / row_lanes; }

// Adds up the lanes of each row; the first lane of a row then has the sum.
template <class T>
VICINAL_INLINE void add_lanes(PerLane<T>& values) {
    for (int half = row_lanes / 2; half > 0; half /= 2) {
        PerLane<T> above = from_above(values, half);
        FOR_LANES(lane) {
            if (lane % row_lanes < half) values[lane] += above[lane];
        }
    }
}

}  // namespace vicinal
