// The spectral initialization on a GPU: connected components, and Chebyshev-filtered subspace iteration
// (initialize/eigenmap.hpp) on all components at once, each with its own polynomial and its own products.
//
// A block has 8 vectors, stored row by row. Sums over rows are in double precision, in chunks of rows of one component,
// so that two runs have the same bits.
#include "cuda/device.hpp"

#include "base/rng.hpp"

#include <cmath>

namespace vicinal {

constexpr int block_width = 8;

}  // namespace vicinal

using namespace vicinal;

// Links the roots of the two rows of every edge, the higher one to the lower one; thread per row.
extern "C" __global__ void hook_rows(const Size* indptr, const Index* indices, Size n, Index* parent, int* changed) {
    const Size i = thread_number();
    if (i >= n) return;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e) {
        const Index x = parent[i], y = parent[indices[e]];
        if (x == y) continue;
        *changed = 1;
        if (x < y)
            atomicMin(parent + y, x);
        else
            atomicMin(parent + x, y);
    }
}
THREAD_KERNEL(hook_rows)

// Links every row to its root; thread per row.
extern "C" __global__ void shorten_paths(Size n, Index* parent) {
    const Size i = thread_number();
    if (i >= n) return;
    Index root = parent[i];
    while (parent[root] != root) root = parent[root];
    parent[i] = root;
}
THREAD_KERNEL(shorten_paths)

// The square root of the degree of every row; thread per row.
extern "C" __global__ void degree_roots(const Size* indptr, const float* weights, Size n, double* root) {
    const Size i = thread_number();
    if (i >= n) return;
    double degree = 0.0;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e) degree += weights[e];
    root[i] = std::sqrt(degree > 1e-300 ? degree : 1e-300);
}
THREAD_KERNEL(degree_roots)

// The weights of D^{-1/2} W D^{-1/2}; thread per row.
extern "C" __global__ void normalize_weights(const Size* indptr, const Index* indices, const float* weights,
                                             const double* root, Size n, float* normalized) {
    const Size i = thread_number();
    if (i >= n) return;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e)
        normalized[e] = static_cast<float>(weights[e] / (root[i] * root[indices[e]]));
}
THREAD_KERNEL(normalize_weights)

// Random numbers in [-1/2, 1/2); thread per entry.
extern "C" __global__ void random_block(std::uint64_t key, Size n, float* block) {
    const Size e = thread_number();
    if (e < n * block_width)
        block[e] = static_cast<float>(row_key(key, static_cast<std::uint64_t>(e))) * 2.3283064365386963e-10f - 0.5f;
}
THREAD_KERNEL(random_block)

// next = scale * (M x - center * x) - keep * previous, with the numbers of the row's component; thread per entry. From
// step `degree` of a component on, its rows keep their values.
extern "C" __global__ void chebyshev_step(const Size* indptr, const Index* indices, const float* weights,
                                          const Index* component, const float* scale, const float* center, float keep,
                                          const Index* degree, int step, Size n, const float* x, const float* previous,
                                          float* next) {
    const Size at = thread_number();
    if (at >= n * block_width) return;
    const Size i = at / block_width, column = at % block_width;
    const Index c = component[i];
    if (step >= degree[c]) {
        next[at] = x[at];
        return;
    }
    float sum = x[at] * -center[c];
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e)
        sum += x[static_cast<Size>(indices[e]) * block_width + column] * weights[e];
    next[at] = sum * scale[c] - previous[at] * keep;
}
THREAD_KERNEL(chebyshev_step)

// Sums over the rows of a chunk of x_k y_l, [8][8] per chunk; warp per chunk. Chunk s has the rows order[begin[s] ...
// begin[s + 1]).
extern "C" __global__ void block_products(const float* x, const float* y, const Index* order, const Size* begin,
                                          Size n_chunks, double* sums) {
    const Size s = warp_number();
    if (s >= n_chunks) return;
    FOR_LANES(lane) {
        const int k = lane / block_width, l = lane % block_width;
        double low = 0.0, high = 0.0;
        for (Size p = begin[s]; p < begin[s + 1]; ++p) {
            const Size row = static_cast<Size>(order[p]) * block_width;
            low += static_cast<double>(x[row + k]) * y[row + l];
            high += static_cast<double>(x[row + k + 4]) * y[row + l];
        }
        sums[s * 64 + lane] = low;
        sums[s * 64 + 32 + lane] = high;
    }
}
WARP_KERNEL(block_products)

// Sums over the rows of a chunk of root * x_k, [8] per chunk; warp per chunk.
extern "C" __global__ void weighted_sums(const float* x, const double* root, const Index* order, const Size* begin,
                                         Size n_chunks, double* sums) {
    const Size s = warp_number();
    if (s >= n_chunks) return;
    FOR_LANES(lane) {
        if (lane >= block_width) continue;
        double sum = 0.0;
        for (Size p = begin[s]; p < begin[s + 1]; ++p)
            sum += root[order[p]] * x[static_cast<Size>(order[p]) * block_width + lane];
        sums[s * block_width + lane] = sum;
    }
}
WARP_KERNEL(weighted_sums)

// Subtracts root * amount, with the amounts of the row's component; thread per entry.
extern "C" __global__ void subtract_roots(const double* root, const Index* component, const double* amount, Size n,
                                          float* x) {
    const Size at = thread_number();
    if (at >= n * block_width) return;
    const Size i = at / block_width;
    x[at] =
        static_cast<float>(x[at] - root[i] * amount[static_cast<Size>(component[i]) * block_width + at % block_width]);
}
THREAD_KERNEL(subtract_roots)

// Every row times the matrix [8][8] of its component; thread per entry.
extern "C" __global__ void rotate_rows(const float* x, const Index* component, const double* rotation, Size n,
                                       float* out) {
    const Size at = thread_number();
    if (at >= n * block_width) return;
    const Size i = at / block_width, column = at % block_width;
    const double* matrix = rotation + static_cast<Size>(component[i]) * block_width * block_width;
    double sum = 0.0;
    for (int k = 0; k < block_width; ++k) sum += x[i * block_width + k] * matrix[k * block_width + column];
    out[at] = static_cast<float>(sum);
}
THREAD_KERNEL(rotate_rows)

// Sums over the rows of a chunk of the squared roots, [32] per chunk; warp per chunk.
extern "C" __global__ void root_squares(const double* root, const Index* order, const Size* begin, Size n_chunks,
                                        double* sums) {
    const Size s = warp_number();
    if (s >= n_chunks) return;
    FOR_LANES(lane) {
        double sum = 0.0;
        for (Size p = begin[s] + lane; p < begin[s + 1]; p += warp_lanes) sum += root[order[p]] * root[order[p]];
        sums[s * warp_lanes + lane] = sum;
    }
}
WARP_KERNEL(root_squares)

// The smallest and the largest value of every column over the rows of a chunk, [2][dim][32] per chunk; warp per chunk.
extern "C" __global__ void chunk_extremes(const float* vectors, int dim, const Index* order, const Size* begin,
                                          Size n_chunks, float* extremes) {
    const Size s = warp_number();
    if (s >= n_chunks) return;
    for (int c = 0; c < dim; ++c) {
        FOR_LANES(lane) {
            float low = vectors[static_cast<Size>(order[begin[s]]) * dim + c], high = low;
            for (Size p = begin[s] + lane; p < begin[s + 1]; p += warp_lanes) {
                const float x = vectors[static_cast<Size>(order[p]) * dim + c];
                low = x < low ? x : low;
                high = x > high ? x : high;
            }
            extremes[((s * 2 + 0) * dim + c) * warp_lanes + lane] = low;
            extremes[((s * 2 + 1) * dim + c) * warp_lanes + lane] = high;
        }
    }
}
WARP_KERNEL(chunk_extremes)

// Rows far from the middle of their component come closer (initialize/spectral.py): x = (value - middle) / unit becomes
// asinh(x), which is twice asinh(x / sqrt(2 + 2 sqrt(1 + x^2))), except for the factor; a unit of 0 changes nothing.
// Thread per number.
extern "C" __global__ void even_places(const float* vectors, int dim, const Index* component, const double* middle,
                                       const double* unit, int halvings, Size n, float* out) {
    const Size e = thread_number();
    if (e >= n * dim) return;
    const Size at = component[e / dim] * static_cast<Size>(dim) + e % dim;
    out[e] = vectors[e];
    if (!(unit[at] > 0.0)) return;
    double x = (static_cast<double>(vectors[e]) - middle[at]) / unit[at];
    for (int t = 0; t < halvings; ++t) x /= sqrt(2.0 + 2.0 * sqrt(1.0 + x * x));
    out[e] = static_cast<float>(x);
}
THREAD_KERNEL(even_places)

// Every component in its box: (value - middle) * scale, turned and moved to the center, with the numbers of the
// component, or for components marked as `scattered` a random place in a box of this scale; thread per row.
extern "C" __global__ void place_components(const float* vectors, int dim, const Index* component, const double* center,
                                            const double* middle, const double* scale, const double* turn,
                                            const bool* scattered, std::uint64_t key, Size n, float* places) {
    const Size i = thread_number();
    if (i >= n) return;
    const Size own = component[i];
    double inside[block_width];
    for (int c = 0; c < dim; ++c) {
        const Size at = own * dim + c, e = i * dim + c;
        const double x = scattered[own] ? row_key(key, static_cast<std::uint64_t>(e)) * 2.3283064365386963e-10 - 0.5
                                        : static_cast<double>(vectors[e]) - middle[at];
        inside[c] = x * scale[at];
    }
    for (int c = 0; c < dim; ++c) {
        double x = center[own * dim + c];
        for (int b = 0; b < dim; ++b) x += inside[b] * turn[(own * dim + b) * dim + c];
        places[i * dim + c] = static_cast<float>(x);
    }
}
THREAD_KERNEL(place_components)

// Noise of the given standard deviation: the sum of four uniform numbers, which is nearly normal.
VICINAL_INLINE double nearly_normal(std::uint64_t bits) {
    const std::uint64_t sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
    // The variance of a uniform number in [0, 65535] is (2^32 - 1) / 12.
    constexpr double unit = 1.7320508075688772 / 65536.0;
    return unit * (static_cast<double>(sum) - 131070.0);
}

// Scales every axis, (x - low) * factor + shift, and adds noise; thread per number.
extern "C" __global__ void scale_places(const float* places, int dim, const double* low, const double* factor,
                                        const double* shift, std::uint64_t key, double noise, Size n, float* out) {
    const Size e = thread_number();
    if (e >= n * dim) return;
    const int c = static_cast<int>(e % dim);
    const double x = (static_cast<double>(places[e]) - low[c]) * factor[c] + shift[c];
    out[e] = static_cast<float>(x + noise * nearly_normal(mix64(key ^ static_cast<std::uint64_t>(e))));
}
THREAD_KERNEL(scale_places)
