// The threads of a GPU. Kernels are compiled by NVRTC, and for tests by the host's compiler, where a launch is a loop
// over the threads (tests/gpu/host_launch.hpp). Threads of a block do not communicate; those of a warp do, in kernels
// that are marked as WARP_KERNEL: what a lane holds is a PerLane, and FOR_LANES runs over the lanes, which is one lane
// on a GPU and all lanes of the warp on the host.
#pragma once

#define VICINAL_LEVEL gpu
#define VICINAL_ONE_LANE 1

#include "base/types.hpp"

#include <cstring>

#if defined(__CUDACC_RTC__)

#define THREAD_KERNEL(name)
#define WARP_KERNEL(name)
#define FOR_LANES(lane) for (int lane = threadIdx.x & 31, lane##_once = 1; lane##_once != 0; lane##_once = 0)

#else

#include "host_launch.hpp"

#endif

namespace vicinal {

constexpr int warp_lanes = 32;

VICINAL_INLINE Size thread_number() { return static_cast<Size>(blockIdx.x) * blockDim.x + threadIdx.x; }
VICINAL_INLINE Size warp_number() { return thread_number() / warp_lanes; }

#if defined(__CUDACC_RTC__)

template <class T>
struct PerLane {
    T value;
    VICINAL_INLINE T& operator[](int) { return value; }
};

// One bit per lane.
VICINAL_INLINE std::uint32_t ballot(PerLane<bool>& votes) { return __ballot_sync(0xffffffffu, votes.value); }
// Makes what the lanes wrote to shared memory visible to each other.
VICINAL_INLINE void sync_lanes() { __syncwarp(); }
// Lane l receives the value of lane l + offset.
template <class T>
VICINAL_INLINE PerLane<T> from_above(PerLane<T> values, int offset) {
    return {__shfl_down_sync(0xffffffffu, values.value, offset)};
}
VICINAL_INLINE float of_first_lane(PerLane<float> values) { return __shfl_sync(0xffffffffu, values.value, 0); }
VICINAL_INLINE int bit_count(std::uint32_t bits) { return __popc(bits); }
VICINAL_INLINE int bit_count(std::uint64_t bits) { return __popcll(bits); }
// The position of the lowest bit that is set; there must be one.
VICINAL_INLINE int lowest_bit(std::uint64_t bits) { return __ffsll(static_cast<long long>(bits)) - 1; }
VICINAL_INLINE std::uint16_t half_bits(float x) {
    std::uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
VICINAL_INLINE float half_value(std::uint16_t bits) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}

#endif

// Rows of 16 lanes, two per warp: the sums of the CPU have 16 lanes as well, and are added up by the same tree.
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
