// Sums over rows in an order that does not depend on the threads: those of chunks of rows, then of the chunks.
#include "cuda/device.hpp"

#include "base/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vicinal {

constexpr int values_ahead = 16;  // values that a thread requests together, because it adds them one after the other

// Calls add(read(i)) for i from first to last, in this order.
template <class Read, class Add>
VICINAL_INLINE void for_values(Size first, Size last, const Read& read, const Add& add) {
    Size i = first;
    for (; i + values_ahead <= last; i += values_ahead) {
        decltype(read(i)) ahead[values_ahead];
        VICINAL_UNROLL
        for (int u = 0; u < values_ahead; ++u) ahead[u] = read(i + u);
        VICINAL_UNROLL
        for (int u = 0; u < values_ahead; ++u) add(ahead[u]);
    }
    for (; i < last; ++i) add(read(i));
}

}  // namespace vicinal

using namespace vicinal;

// Sums of `values - own` over chunks of rows; thread per chunk and column.
extern "C" __global__ void sum_chunks(const float* values, double own, Size n, Size width, Size chunk, double* out) {
    const Size t = thread_number(), first = t / width * chunk;
    if (first >= n) return;
    const Size last = std::min(first + chunk, n);
    double sum = 0.0;
    for_values(
        first, last, [&](Size i) { return values[i * width + t % width]; }, [&](float value) { sum += value - own; });
    out[t] = sum;
}
THREAD_KERNEL(sum_chunks)

// Sums of p ln p, p = weight / total, over chunks of weights; thread per chunk. Weights of 0 add nothing.
extern "C" __global__ void sum_entropy_chunks(const float* weights, Size n, float total, Size chunk, double* out) {
    const Size first = thread_number() * chunk;
    if (first >= n) return;
    double sum = 0.0;
    for_values(
        first, std::min(first + chunk, n), [&](Size e) { return weights[e] / total; },
        [&](float p) { sum += p > 0.0f ? static_cast<double>(p) * log_exact(p) : 0.0; });
    out[thread_number()] = sum;
}
THREAD_KERNEL(sum_entropy_chunks)

// The sums of the chunks in their order; thread per column.
extern "C" __global__ void add_chunks(const double* chunks, Size n_chunks, Size width, double* total) {
    const Size c = thread_number();
    if (c >= width) return;
    double sum = 0.0;
    for_values(0, n_chunks, [&](Size t) { return chunks[t * width + c]; }, [&](double chunk) { sum += chunk; });
    total[c] = sum;
}
THREAD_KERNEL(add_chunks)

// The largest magnitude of every lane's part of a chunk of numbers, [chunk][32], infinity if one is not a number; warp
// per chunk.
extern "C" __global__ void largest_magnitudes(const float* values, Size n, Size chunk, float* largest) {
    const Size s = warp_number();
    if (s * chunk >= n) return;
    const Size end = std::min((s + 1) * chunk, n);
    FOR_LANES(lane) {
        float most = 0.0f;
        for (Size e = s * chunk + lane; e < end; e += warp_lanes) {
            const float size = std::fabs(values[e]);
            most = size <= most ? most : size == size ? size : std::numeric_limits<float>::infinity();
        }
        largest[s * warp_lanes + lane] = most;
    }
}
WARP_KERNEL(largest_magnitudes)

// The smallest and largest values of chunks of rows, [chunk][low, high][column]; thread per chunk and column. Rows of
// low and high values may be apart: a second call joins the bounds of the chunks.
extern "C" __global__ void bound_chunks(const float* low_of, const float* high_of, Size n, Size width, Size stride,
                                        Size chunk, float* out) {
    const Size t = thread_number(), c = t % width, first = t / width * chunk;
    if (first >= n) return;
    const Size last = std::min(first + chunk, n);
    float low = low_of[first * stride + c], high = high_of[first * stride + c];
    for_values(
        first + 1, last, [&](Size i) { return low_of[i * stride + c]; },
        [&](float value) { low = std::min(low, value); });
    for_values(
        first + 1, last, [&](Size i) { return high_of[i * stride + c]; },
        [&](float value) { high = std::max(high, value); });
    out[t / width * 2 * width + c] = low;
    out[t / width * 2 * width + width + c] = high;
}
THREAD_KERNEL(bound_chunks)
