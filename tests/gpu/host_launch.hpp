// What the kernels of cpp/cuda need to be compiled for the host: a launch is a loop over the threads of the grid. The
// lanes of a warp run in one thread, as loops (FOR_LANES).
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

struct ThreadPosition {
    unsigned x = 0, y = 0, z = 0;
};
inline ThreadPosition threadIdx, blockIdx, blockDim;

#define __global__
#define __shared__ static
#define __launch_bounds__(threads)
#define __restrict__

inline int atomicMin(int* to, int value) {
    const int before = *to;
    if (value < before) *to = value;
    return before;
}

namespace vicinal {

alignas(16) inline std::uint64_t host_shared_memory[1 << 16];

template <class... Parameters, std::size_t... At>
void call(void (*kernel)(Parameters...), void** arguments, std::index_sequence<At...>) {
    kernel(*static_cast<std::remove_reference_t<Parameters>*>(arguments[At])...);
}

template <class... Parameters>
void launch(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, unsigned step, void** arguments) {
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x += step)
            call(kernel, arguments, std::index_sequence_for<Parameters...>{});
}

template <class T>
struct PerLane {
    T value[32];
    T& operator[](int lane) { return value[lane]; }
};

inline std::uint32_t ballot(PerLane<bool>& votes) {
    std::uint32_t bits = 0;
    for (int lane = 0; lane < 32; ++lane) bits |= static_cast<std::uint32_t>(votes[lane]) << lane;
    return bits;
}
inline void sync_lanes() {}
template <class T>
PerLane<T> from_above(PerLane<T> values, int offset) {
    PerLane<T> out = values;
    for (int lane = 0; lane + offset < 32; ++lane) out[lane] = values[lane + offset];
    return out;
}
inline float of_first_lane(PerLane<float> values) { return values[0]; }
inline int bit_count(std::uint32_t bits) { return __builtin_popcount(bits); }
inline int bit_count(std::uint64_t bits) { return __builtin_popcountll(bits); }
inline int lowest_bit(std::uint64_t bits) { return __builtin_ctzll(bits); }
inline std::uint16_t half_bits(float x) {
    const auto half = static_cast<_Float16>(x);
    std::uint16_t bits;
    std::memcpy(&bits, &half, sizeof bits);
    return bits;
}
inline float half_value(std::uint16_t bits) {
    _Float16 half;
    std::memcpy(&half, &bits, sizeof half);
    return static_cast<float>(half);
}

}  // namespace vicinal

#define THREAD_KERNEL(name)                                                              \
    extern "C" void launch_##name(unsigned blocks, unsigned threads, void** arguments) { \
        vicinal::launch(name, blocks, threads, 1, arguments);                            \
    }
#define WARP_KERNEL(name)                                                                \
    extern "C" void launch_##name(unsigned blocks, unsigned threads, void** arguments) { \
        vicinal::launch(name, blocks, threads, 32, arguments);                           \
    }
#define FOR_LANES(lane) for (int lane = 0; lane < 32; ++lane)
