// Ranks of columns in a table of distances.
#include "cuda/device.hpp"

using namespace vicinal;

// The rank, counted from 1, of some columns of each row in the order of (distance, column); warp per row and column.
extern "C" __global__ void count_ranks(const double* distance, Size n_rows, Size n_columns, const Size* columns, int k,
                                       Size* ranks) {
    const Size at = warp_number();
    if (at >= n_rows * k) return;
    const double* row = distance + at / k * n_columns;
    const Size wanted = columns[at];
    const double value = row[wanted];
    PerLane<int> before;
    FOR_LANES(lane) {
        before[lane] = 0;
        for (Size c = lane; c < n_columns; c += warp_lanes) {
            const double other = row[c];
            if (other < value || (other == value && c <= wanted)) ++before[lane];
        }
    }
    for (int width = warp_lanes / 2; width > 0; width /= 2) {
        PerLane<int> other = from_above(before, width);
        FOR_LANES(lane) before[lane] += other[lane];
    }
    FOR_LANES(lane) if (lane == 0) ranks[at] = before[lane];
}
WARP_KERNEL(count_ranks)
