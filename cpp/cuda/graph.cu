// Graphs on a GPU: memberships, symmetric edges and the medoid of each row's neighbors. One thread per row, with the
// formulas of the CPU (smooth_knn.hpp, perplexity.hpp, symmetrize.hpp), and so its bits.
#include "cuda/device.hpp"

#include "base/simd.hpp"
#include "graph/perplexity.hpp"
#include "graph/smooth_knn.hpp"
#include "graph/symmetrize.hpp"

#include <cmath>

using namespace vicinal;

// rho, and whether one is 0; thread per row.
extern "C" __global__ void local_rho(const float* distance, Size rows, Size columns, double local_connectivity,
                                     float* rho, Index* any_zero) {
    const Size i = thread_number();
    if (i >= rows) return;
    rho[i] = SmoothKnnRow(distance + i * columns, columns).rho(local_connectivity);
    if (rho[i] <= 0.0f) *any_zero = 1;
}
THREAD_KERNEL(local_rho)

// sigma; thread per row. `mean_all` is the scale of rows whose rho is 0, unless rows are independent.
extern "C" __global__ void smooth_sigma(const float* distance, const float* rho, Size rows, Size columns, double target,
                                        double mean_all, bool independent_rows, float* sigma) {
    const Size i = thread_number();
    if (i >= rows) return;
    const SmoothKnnRow row(distance + i * columns, columns);
    sigma[i] = row.sigma(rho[i], target, rho[i] > 0.0f || independent_rows ? row.mean() : mean_all);
}
THREAD_KERNEL(smooth_sigma)

// Memberships; thread per entry.
extern "C" __global__ void membership_strengths(const Index* index, const float* distance, const float* rho,
                                                const float* sigma, Size rows, Size columns, bool bipartite,
                                                float* out) {
    const Size e = thread_number();
    if (e >= rows * columns) return;
    const Size i = e / columns;
    out[e] = membership(index[e], distance[e], i, rho[i], sigma[i], bipartite);
}
THREAD_KERNEL(membership_strengths)

// Conditional probabilities and sigma of rows from `first` on; thread per row. `room` is [columns][stride].
extern "C" __global__ void calibrate_perplexity(const Index* index, const float* distance, Size first, Size rows,
                                                Size columns, Size stride, double perplexity, bool bipartite,
                                                double* room, float* conditional, float* sigma) {
    const Size t = thread_number(), i = first + t;
    if (t >= rows) return;
    const NeighborTable table{index, distance, first + rows, columns};
    sigma[i] = PerplexityRow(table, i, perplexity, bipartite).calibrate({room + t, stride}, conditional + i * columns);
}
THREAD_KERNEL(calibrate_perplexity)

// The entries of positive membership of every row, sorted by index, and their number; thread per row.
extern "C" __global__ void sort_directed(const Index* index, const float* membership, Size rows, Size columns,
                                         DirectedEdge* sorted, Size* count) {
    const Size i = thread_number();
    if (i >= rows) return;
    DirectedEdge* row = sorted + i * columns;
    Size n = 0;
    for (Size e = i * columns; e < (i + 1) * columns; ++e) {
        if (!(membership[e] > 0.0f)) continue;
        Size at = n++;
        for (; at > 0 && row[at - 1].to > index[e]; --at) row[at] = row[at - 1];
        row[at] = {index[e], membership[e]};
    }
    count[i] = n;
}
THREAD_KERNEL(sort_directed)

// Edges in the order of their tails; thread per edge. `order` sorts the packed edges by tail.
extern "C" __global__ void turn_edges(const DirectedEdge* forward, const Index* source, const Size* order, Size n_edges,
                                      DirectedEdge* backward) {
    const Size e = thread_number();
    if (e < n_edges) backward[e] = {source[order[e]], forward[order[e]].p};
}
THREAD_KERNEL(turn_edges)

namespace vicinal {

template <class Emit>
VICINAL_INLINE void merge_row(const DirectedEdge* forward, const Size* forward_begin, const DirectedEdge* backward,
                              const Size* backward_begin, Size i, bool mean, float mix, const Emit& emit) {
    const DirectedEdge *x = forward + forward_begin[i], *x_end = forward + forward_begin[i + 1];
    const DirectedEdge *y = backward + backward_begin[i], *y_end = backward + backward_begin[i + 1];
    if (mean)
        merge_directions(x, x_end, y, y_end, Mean{}, emit);
    else
        merge_directions(x, x_end, y, y_end, FuzzyMix{mix}, emit);
}

}  // namespace vicinal

// The number of edges of every row; thread per row.
extern "C" __global__ void count_merged(const DirectedEdge* forward, const Size* forward_begin,
                                        const DirectedEdge* backward, const Size* backward_begin, Size rows, bool mean,
                                        float mix, Size* count) {
    const Size i = thread_number();
    if (i >= rows) return;
    Size n = 0;
    merge_row(forward, forward_begin, backward, backward_begin, i, mean, mix, [&](Index, float) { ++n; });
    count[i] = n;
}
THREAD_KERNEL(count_merged)

// The edges of every row from indptr[i] on; thread per row.
extern "C" __global__ void write_merged(const DirectedEdge* forward, const Size* forward_begin,
                                        const DirectedEdge* backward, const Size* backward_begin, Size rows, bool mean,
                                        float mix, const Size* indptr, Index* indices, float* weights) {
    const Size i = thread_number();
    if (i >= rows) return;
    Size at = indptr[i];
    merge_row(forward, forward_begin, backward, backward_begin, i, mean, mix, [&](Index j, float w) {
        indices[at] = j;
        weights[at++] = w;
    });
}
THREAD_KERNEL(write_merged)

// Adds weights as integer multiples of a unit, whose sum does not depend on the order of the threads.
extern "C" __global__ void add_weight_units(const float* weights, Size n, double units, Size threads,
                                            std::int64_t* total) {
    std::int64_t sum = 0;
    for (Size e = thread_number(); e < n && thread_number() < threads; e += threads)
        sum += static_cast<std::int64_t>(static_cast<double>(weights[e]) * units);
    if (sum != 0) vicinal::gpu::add_atomically(total, sum);
}
THREAD_KERNEL(add_weight_units)

// Weights divided by their total; thread per edge. CuPy's own arithmetic would flush subnormal weights to zero.
extern "C" __global__ void divide_weights(const float* weights, Size n, double total, float* out) {
    const Size e = thread_number();
    if (e < n) out[e] = static_cast<float>(static_cast<double>(weights[e]) / total);
}
THREAD_KERNEL(divide_weights)

// The head of every edge; thread per row.
extern "C" __global__ void edge_heads(const Size* indptr, Size n_heads, Index* head) {
    const Size i = thread_number();
    if (i >= n_heads) return;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e) head[e] = static_cast<Index>(i);
}
THREAD_KERNEL(edge_heads)

// Where the items of each group begin among sorted group numbers, and where the last ones end; thread per group, and
// one more.
extern "C" __global__ void group_begins(const Index* sorted, Size n, Size n_groups, Size* begin) {
    const Size g = thread_number();
    if (g > n_groups) return;
    Size low = 0, high = n;
    while (low < high) {
        const Size middle = (low + high) / 2;
        if (sorted[middle] < g)
            low = middle + 1;
        else
            high = middle;
    }
    begin[g] = low;
}
THREAD_KERNEL(group_begins)

// First places of new rows, with the bits of the CPU: the point of the tail whose weighted
// distances to all tails of the row have the smallest sum, the first of equal ones, or `middle` for a row without
// edges; thread per row.
extern "C" __global__ void neighbor_medoids(const Size* indptr, const Index* tails, const float* weights,
                                            const float* reference, const float* middle, int dim, Size n, float* out) {
    const Size i = thread_number();
    if (i >= n) return;
    float least = 0.0f;
    Index chosen = -1;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e) {
        const float* place = reference + static_cast<Size>(tails[e]) * dim;
        float total = 0.0f;
        for (Size other = indptr[i]; other < indptr[i + 1]; ++other) {
            const float* its = reference + static_cast<Size>(tails[other]) * dim;
            float d2 = (place[0] - its[0]) * (place[0] - its[0]);
            for (int c = 1; c < dim; ++c) d2 += (place[c] - its[c]) * (place[c] - its[c]);
            total += weights[other] * std::sqrt(d2);
        }
        if (chosen < 0 || total < least) {
            least = total;
            chosen = tails[e];
        }
    }
    const float* place = chosen < 0 ? middle : reference + static_cast<Size>(chosen) * dim;
    for (int c = 0; c < dim; ++c) out[i * dim + c] = place[c];
}
THREAD_KERNEL(neighbor_medoids)
