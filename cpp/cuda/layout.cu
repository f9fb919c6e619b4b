// The sampled layout on a GPU: one thread per row, with the moves of row_step.hpp and so the bits of the CPU.
//
// Rows are sorted by their number of edges and cut into slices of 32, and the edges of a slice are stored column by
// column, edge j of row r of slice s at slice_begin[s] + 32 j + r: the threads of a warp read neighboring words. A row
// lists its firing edges in shared memory; a row with more of them than fit there goes through its edges again. Rows
// with many edges decide how long a sweep takes, so a thread requests the clocks of several edges before it looks at
// the first.
//
// What a sweep does not need is not compiled: without moving negatives nothing is written between two negatives, and
// their points are requested together.
#include "cuda/device.hpp"

#include "layout/firing.hpp"
#include "layout/row_step.hpp"

#ifndef VICINAL_FORCE
#define VICINAL_FORCE UmapForce
#define VICINAL_SPACE EuclideanSpace
#define VICINAL_DIM 2
#define VICINAL_PULLS 2
#define VICINAL_NEGATIVES 5
#define VICINAL_MOVING 0    // negatives move
#define VICINAL_WEIGHTED 0  // negatives are drawn in proportion to weights
#endif

namespace vicinal {

constexpr int sweep_threads = 128;
constexpr int most_listed = 16;  // firing edges of a row that are listed in shared memory
constexpr Size slice_rows = 32;
constexpr int clocks_ahead = 8;

// 2^32 times the firings per sweep of an edge, and its phase; read at once.
struct alignas(8) Clock {
    std::uint32_t rate, phase;
};

VICINAL_INLINE bool fires(Clock clock, std::uint32_t sweep) {
    const std::uint32_t before = clock.phase + sweep * clock.rate;
    return before + clock.rate < before;
}

// Calls visit(j) for every edge j of a row that fires, in their order. Rows are filled up to a multiple of clocks_ahead
// edges with edges of rate 0, which never fire.
template <class Visit>
VICINAL_INLINE void for_each_firing(const Clock* __restrict__ clock, Index n_edges, std::uint32_t sweep,
                                    const Visit& visit) {
    for (Index j = 0; j < n_edges; j += clocks_ahead) {
        Clock ahead[clocks_ahead];
        VICINAL_UNROLL
        for (int u = 0; u < clocks_ahead; ++u) ahead[u] = clock[(j + u) * slice_rows];
        VICINAL_UNROLL
        for (int u = 0; u < clocks_ahead; ++u)
            if (fires(ahead[u], sweep)) visit(j + u);
    }
}

}  // namespace vicinal

using namespace vicinal;

// The head of every edge; thread per row.
extern "C" __global__ void edge_heads(const Size* indptr, Size n_heads, Index* head) {
    const Size i = thread_number();
    if (i >= n_heads) return;
    for (Size e = indptr[i]; e < indptr[i + 1]; ++e) head[e] = static_cast<Index>(i);
}
THREAD_KERNEL(edge_heads)

// The phase of every edge; thread per edge. `head` is the row of the graph, `name` its name in the random generator.
extern "C" __global__ void edge_phases(const Index* head, const Index* tails, const Index* head_row,
                                       const std::uint64_t* row_key, std::uint64_t key, Size n_edges,
                                       std::uint32_t* phase) {
    const Size e = thread_number();
    if (e >= n_edges) return;
    const Size i = head[e], row = head_row != nullptr ? head_row[i] : i;
    const std::uint64_t name = row_key != nullptr ? row_key[i] : static_cast<std::uint64_t>(row);
    phase[e] = firing_phase(key, name, static_cast<std::uint64_t>(tails[e]));
}
THREAD_KERNEL(edge_phases)

// Puts every edge into its slice, at its place in the random order of its row; thread per edge. `slot` is the position
// of a row among the sorted rows.
extern "C" __global__ void place_edges(const Size* indptr, const Index* head, const Index* tails, const float* weights,
                                       const std::uint32_t* phase, const Index* slot, const Size* slice_begin,
                                       float heaviest, double firings_per_sweep, Size n_edges, Index* sliced_tails,
                                       Clock* clock) {
    const Size e = thread_number();
    if (e >= n_edges) return;
    const Size i = head[e], r = slot[i];
    const FiringEdge own{tails[e], firing_rate(weights[e], heaviest, firings_per_sweep), phase[e]};
    Size before = 0;
    for (Size other = indptr[i]; other < indptr[i + 1]; ++other) {
        const FiringEdge its{tails[other], 0, phase[other]};
        const bool earlier = in_random_order(its, own) || (other < e && !in_random_order(own, its));
        before += earlier ? 1 : 0;
    }
    const Size at = slice_begin[r / slice_rows] + before * slice_rows + r % slice_rows;
    sliced_tails[at] = own.tail;
    clock[at] = {own.rate, own.phase};
}
THREAD_KERNEL(place_edges)

// Edges of fixed rows never fire; thread per row.
extern "C" __global__ void pin_rows(const Size* slice_begin, const Index* degree, const Index* head_of,
                                    const bool* fixed, Size n_heads, Clock* clock) {
    const Size r = thread_number();
    if (r >= n_heads || !fixed[head_of[r]]) return;
    for (Index j = 0; j < degree[r]; ++j) clock[slice_begin[r / slice_rows] + j * slice_rows + r % slice_rows].rate = 0;
}
THREAD_KERNEL(pin_rows)

// One sweep; thread per row.
extern "C" __global__ void __launch_bounds__(sweep_threads)
    layout_sweep(const Size* __restrict__ slice_begin, const Index* __restrict__ degree,
                 const Index* __restrict__ head_of, const Index* __restrict__ tails, const Clock* __restrict__ clock,
                 Size n_heads, const Index* __restrict__ head_row, const std::uint64_t* __restrict__ row_key,
                 const float* head_in, float* __restrict__ head_out, const float* reference, Size n_reference,
                 const std::uint32_t* __restrict__ negative_keep, const Index* __restrict__ negative_alias,
                 std::int64_t* negative_moves, std::uint32_t sweep, std::uint64_t sweep_key, float learning_rate,
                 const float* __restrict__ head_rates, float a, float b, float gamma,
                 const float* __restrict__ space_values) {
    using namespace vicinal::gpu;
    __shared__ Index listed[most_listed * sweep_threads];
    const Size r = thread_number();
    if (r >= n_heads) return;
    const Size head = head_of[r], row = head_row != nullptr ? head_row[head] : head;
    const Size first = slice_begin[r / slice_rows] + r % slice_rows;
    const Index n_edges = degree[r];
    Index* own_list = listed + threadIdx.x;

    Index n_fired = 0;
    for_each_firing(clock + first, n_edges, sweep, [&](Index j) {
        if (n_fired < most_listed) own_list[n_fired * sweep_threads] = j;
        ++n_fired;
    });

    LayoutTask task;
    task.head_in = head_in;
    task.reference = reference;
    task.n_reference = n_reference;
    task.dim = VICINAL_DIM;
    task.negative_keep = VICINAL_WEIGHTED ? negative_keep : nullptr;
    task.negative_alias = VICINAL_WEIGHTED ? negative_alias : nullptr;
    task.negative_moves = VICINAL_MOVING ? negative_moves : nullptr;
    const VICINAL_FORCE force({ForceKind::umap, a, b, gamma});
    const VICINAL_SPACE space({SpaceKind::euclidean, space_values});
    const RowStep<VICINAL_FORCE, VICINAL_SPACE, VICINAL_DIM> mover(task, VICINAL_PULLS, VICINAL_NEGATIVES, force,
                                                                   space);

    Float place[VICINAL_DIM], delta[VICINAL_DIM], push[VICINAL_DIM];
    mover.gather_points(head_in, static_cast<Index>(row), place);
    if (n_fired > 0) {
        const std::uint32_t key =
            vicinal::row_key(sweep_key, row_key != nullptr ? row_key[head] : static_cast<std::uint64_t>(row));
        const auto start = static_cast<Index>(below(draw32(key, 0), static_cast<std::uint32_t>(n_fired)));
        const Int own = reference == head_in ? static_cast<Index>(row) : -1;
        const Float rate = head_rates != nullptr ? head_rates[head] : learning_rate;
        UInt draw{};
        // A row with more firing edges than its list holds lists them piece by piece: those from the start on in a
        // first turn, those before it in a second one.
        const bool all_listed = n_fired <= most_listed;
        Index n_listed = n_fired, looked_at = 0, seen = 0;
        for (int turn = all_listed ? 1 : 0; turn < 2;) {
            if (!all_listed) {
                for (n_listed = 0; n_listed + clocks_ahead <= most_listed && looked_at < n_edges;) {
                    const Index from = looked_at;
                    for_each_firing(clock + first + from * slice_rows, clocks_ahead, sweep, [&](Index j) {
                        if ((seen++ >= start) == (turn == 0)) own_list[n_listed++ * sweep_threads] = from + j;
                    });
                    looked_at += clocks_ahead;
                }
            }
            Index at = all_listed ? start : 0;
            const auto next_tail = [&] {
                const Index j = own_list[at * sweep_threads];
                at = at + 1 < n_listed ? at + 1 : 0;
                return tails[first + j * slice_rows];
            };
            // A tail is requested two moves ahead, and its point one move ahead.
            Index tail = n_listed > 0 ? next_tail() : 0, following = n_listed > 0 ? next_tail() : 0;
            for (Index t = 0; t < n_listed; ++t) {
                prefetch_into_cache(reference + static_cast<Size>(following) * VICINAL_DIM);
                const Index later = next_tail();
                mover.pull(tail, rate, place, delta);
                mover.push_away(own, key, draw, -1, rate, place, delta, push);
                tail = following;
                following = later;
            }
            if (all_listed || looked_at >= n_edges) {
                ++turn;
                looked_at = seen = 0;
            }
        }
    }
    for (int c = 0; c < VICINAL_DIM; ++c) head_out[head * VICINAL_DIM + c] = place[c][0];
}
THREAD_KERNEL(layout_sweep)

// Adds the moves of negatives, and clears them; thread per coordinate.
extern "C" __global__ void add_negative_moves(std::int64_t* moves, const bool* fixed, Size n, int dim, float* points) {
    const Size e = thread_number();
    if (e >= n * dim) return;
    const std::int64_t units = moves[e];
    moves[e] = 0;
    if (fixed == nullptr || !fixed[e / dim])
        points[e] += static_cast<float>(static_cast<double>(units) * fixed_point_unit);
}
THREAD_KERNEL(add_negative_moves)
