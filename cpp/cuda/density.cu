// densMAP's term on a GPU: one thread per row, with the formulas of the CPU (density_term.hpp, density_row.hpp) and its
// order of edges, so that it has the CPU's bits. Edges are those of sorted_edges.hpp.
#include "cuda/sorted_edges.hpp"

#include "layout/density_term.hpp"

#ifndef VICINAL_DIM
#define VICINAL_DIM 2
#endif

namespace vicinal {

constexpr int dim = VICINAL_DIM;

// The differences of a head and a tail, and their squared length.
VICINAL_INLINE gpu::Float differences(const float* head, const float* tail, gpu::Float* difference) {
    gpu::Float d2{};
    for (int c = 0; c < dim; ++c) {
        difference[c] = head[c] - tail[c];
        d2 += difference[c] * difference[c];
    }
    return d2;
}

}  // namespace vicinal

using namespace vicinal;

// Adds the rates of all edges; threads take edges in turns.
extern "C" __global__ void add_rates(const Clock* clock, Size n, Size threads, std::int64_t* total) {
    std::int64_t sum = 0;
    for (Size e = thread_number(); e < n && thread_number() < threads; e += threads) sum += clock[e].rate;
    if (sum != 0) vicinal::gpu::add_atomically(total, sum);
}
THREAD_KERNEL(add_rates)

// q of every edge, its sum per row, and the logarithm of the radius; thread per row.
extern "C" __global__ void measure_radii(const Size* __restrict__ begin, Size n_long, const Index* __restrict__ degree,
                                         const Index* __restrict__ head_of, const Index* __restrict__ tails,
                                         const float* points, const float* reference, Size n_heads, float a, float b,
                                         float* __restrict__ affinity, double* __restrict__ mass,
                                         double* __restrict__ log_radius) {
    using namespace vicinal::gpu;
    const Size r = thread_number();
    if (r >= n_heads) return;
    const EdgePlaces places{begin, n_long};
    const Size head = head_of[r], first = places.first(r), stride = places.stride(r);
    DensityTask task;
    task.a = a;
    task.b = b;
    double total = 0.0, moment = 0.0;
    for (Index j = 0; j < degree[r]; ++j) {
        const Size at = first + j * stride;
        Float difference[dim];
        const Float d2 = differences(points + head * dim, reference + static_cast<Size>(tails[at]) * dim, difference);
        const float q = density_affinity(task, d2)[0];
        affinity[at] = q;
        total += q;
        moment += static_cast<double>(q) * d2[0];
    }
    mass[head] = total;
    log_radius[head] = log_radius_of(degree[r], total, moment);
}
THREAD_KERNEL(measure_radii)

// Sums over the radii of chunks of rows; thread per chunk.
extern "C" __global__ void sum_radii_of_chunks(const float* target, const double* log_radius, Size n, RowSums* chunks) {
    const Size begin = thread_number() * density_chunk_rows;
    if (begin < n)
        chunks[thread_number()] = sum_radii(target, log_radius, begin, std::min(begin + density_chunk_rows, n));
}
THREAD_KERNEL(sum_radii_of_chunks)

// Sums over the deviations of the radii from their mean; thread per chunk.
extern "C" __global__ void sum_deviations_of_chunks(const float* target, const double* log_radius, Size n,
                                                    const RowSums* radii, RowSums* chunks) {
    const Size begin = thread_number() * density_chunk_rows;
    if (begin < n)
        chunks[thread_number()] =
            sum_deviations(target, log_radius, mean_radius(*radii), begin, std::min(begin + density_chunk_rows, n));
}
THREAD_KERNEL(sum_deviations_of_chunks)

// The summary of all radii; one thread.
extern "C" __global__ void summarize_radii(const RowSums* radii, const RowSums* deviations, double variance_shift,
                                           double strength, DensitySummary* summary) {
    if (thread_number() == 0) *summary = summarized(*radii, *deviations, variance_shift, strength);
}
THREAD_KERNEL(summarize_radii)

// (A, B) of every row; thread per row.
extern "C" __global__ void share_rows(const DensitySummary* summary, const float* target, const double* log_radius,
                                      const double* mass, Size n, float* share) {
    const Size i = thread_number();
    if (i < n) share_of_row(*summary, target[i], log_radius[i], mass[i], share + 2 * i);
}
THREAD_KERNEL(share_rows)

// Moves every row that is not fixed along the gradient; thread per row. `share` is null if the reference is frozen.
extern "C" __global__ void add_density_moves(const Size* __restrict__ begin, Size n_long,
                                             const Index* __restrict__ degree, const Index* __restrict__ head_of,
                                             const Index* __restrict__ tails, const Clock* __restrict__ clock,
                                             const float* __restrict__ affinity, const float* points,
                                             const float* reference, Size n_heads, float b,
                                             const DensitySummary* summary, int pulls, float lambda,
                                             const float* __restrict__ head_share, const float* __restrict__ share,
                                             const bool* fixed, float learning_rate, float* __restrict__ out) {
    using namespace vicinal::gpu;
    const Size r = thread_number();
    if (r >= n_heads) return;
    const EdgePlaces places{begin, n_long};
    const Size head = head_of[r], first = places.first(r), stride = places.stride(r);
    if (fixed != nullptr && fixed[head]) return;
    DensityTask task;
    task.b = b;
    task.scale = density_scale(*summary, pulls, lambda);
    task.bound = density_bound(pulls);
    double sum[dim] = {};
    for (Index j = 0; j < degree[r]; ++j) {
        const Size at = first + j * stride, tail = tails[at];
        Float sum_a = share != nullptr ? share[2 * tail] : 0.0f, sum_b = share != nullptr ? share[2 * tail + 1] : 0.0f;
        sum_a += head_share[2 * head];
        sum_b += head_share[2 * head + 1];
        Float difference[dim];
        const Float d2 = differences(points + head * dim, reference + tail * dim, difference);
        const Float slope = density_slope(task, sum_a, sum_b, affinity[at], d2);
        const Float limit = density_limit(task, clock[at].rate);
        for (int c = 0; c < dim; ++c) sum[c] += min(max(slope * difference[c], -limit), limit)[0];
    }
    for (int c = 0; c < dim; ++c) out[head * dim + c] += learning_rate * static_cast<float>(sum[c]);
}
THREAD_KERNEL(add_density_moves)
