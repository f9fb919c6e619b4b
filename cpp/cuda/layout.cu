// The sampled layout on a GPU: the edges of the rows in the order in which they pull, and the sweeps (layout_rows.hpp).
#include "cuda/layout_rows.hpp"

using namespace vicinal;

// The phase of every edge; thread per edge. `row_key` names the rows in the random generator.
extern "C" __global__ void edge_phases(const Index* head, const Index* tails, const std::uint64_t* row_key,
                                       std::uint64_t key, Size n_edges, std::uint32_t* phase) {
    const Size e = thread_number();
    if (e >= n_edges) return;
    const Size i = head[e];
    const std::uint64_t name = row_key != nullptr ? row_key[i] : static_cast<std::uint64_t>(i);
    phase[e] = firing_phase(key, name, static_cast<std::uint64_t>(tails[e]));
}
THREAD_KERNEL(edge_phases)

// Puts every edge of a row in a slice at its place in the random order of its row; thread per edge. `slot` is the
// position of a row among the sorted rows.
extern "C" __global__ void place_edges(const Size* indptr, const Index* head, const Index* tails, const float* weights,
                                       const std::uint32_t* phase, const Index* slot, const Size* begin, Size n_long,
                                       float heaviest, double firings_per_sweep, Size n_edges, Index* placed_tails,
                                       Clock* clock) {
    const Size e = thread_number();
    if (e >= n_edges || slot[head[e]] < n_long) return;
    const Size i = head[e];
    const FiringEdge own{tails[e], firing_rate(weights[e], heaviest, firings_per_sweep), phase[e]};
    Size before = 0;
    for (Size other = indptr[i]; other < indptr[i + 1]; ++other) {
        const FiringEdge its{tails[other], 0, phase[other]};
        const bool earlier = in_random_order(its, own) || (other < e && !in_random_order(own, its));
        before += earlier ? 1 : 0;
    }
    const Size at = EdgePlaces{begin, n_long}.first(slot[i]) + before * slice_rows;
    placed_tails[at] = own.tail;
    clock[at] = {own.rate, own.phase};
}
THREAD_KERNEL(place_edges)

// The number of rows with more than `most` edges, of rows that are sorted by their number of edges; thread per row.
extern "C" __global__ void count_long(const Index* degree, Size n, Index most, Size* count) {
    const Size r = thread_number();
    if (r < n && degree[r] > most && (r + 1 == n || degree[r + 1] <= most)) *count = r + 1;
}
THREAD_KERNEL(count_long)

// What sorts the edges of long rows: the row, then the random order; thread per edge. `edges` are their numbers.
extern "C" __global__ void order_keys(const Index* head, const std::uint32_t* phase, const Index* slot,
                                      const Size* edges, Size n, std::uint64_t* key) {
    const Size at = thread_number();
    if (at >= n) return;
    const Size e = edges[at];
    key[at] = static_cast<std::uint64_t>(slot[head[e]]) << 32 | finalize32(phase[e]);
}
THREAD_KERNEL(order_keys)

// The edges of long rows in their order; thread per edge.
extern "C" __global__ void place_long_edges(const Size* edges, const Index* tails, const float* weights,
                                            const std::uint32_t* phase, float heaviest, double firings_per_sweep,
                                            Size n, Index* placed_tails, Clock* clock) {
    const Size at = thread_number();
    if (at >= n) return;
    const Size e = edges[at];
    placed_tails[at] = tails[e];
    clock[at] = {firing_rate(weights[e], heaviest, firings_per_sweep), phase[e]};
}
THREAD_KERNEL(place_long_edges)

// Edges of fixed rows never fire; thread per row.
extern "C" __global__ void pin_rows(const Size* begin, Size n_long, const Index* degree, const Index* head_of,
                                    const bool* fixed, Size n_heads, Clock* clock) {
    const Size r = thread_number();
    if (r >= n_heads || !fixed[head_of[r]]) return;
    const EdgePlaces places{begin, n_long};
    for (Index j = 0; j < degree[r]; ++j) clock[places.first(r) + j * places.stride(r)].rate = 0;
}
THREAD_KERNEL(pin_rows)

// One sweep; warp per long row, then warp per VICINAL_SLICES slices.
extern "C" __global__ void __launch_bounds__(sweep_threads)
    layout_sweep(const Size* __restrict__ begin, Size n_long, const Index* __restrict__ degree,
                 const Index* __restrict__ head_of, const Index* __restrict__ tails, const Clock* __restrict__ clock,
                 Size n_heads, const std::uint64_t* __restrict__ row_key, const float* reference, Size n_reference,
                 const std::uint32_t* __restrict__ negative_keep, const Index* __restrict__ negative_alias,
                 std::int64_t* negative_moves, float a, float b, float gamma, const float* __restrict__ space_values,
                 const float* head_in, float* __restrict__ head_out, std::uint32_t sweep, std::uint64_t sweep_key,
                 float learning_rate, float longest_push) {
    using namespace vicinal::gpu;
    __shared__ WarpMemory memory[sweep_threads / warp_lanes];
    const Size w = warp_number();
    const Size first = n_long + (w - n_long) * VICINAL_SLICES * slice_rows;
    if (w >= n_long && first >= n_heads) return;

    const float* all_points = reference != nullptr ? reference : head_in;
    LayoutTask layout;
    layout.head_in = head_in;
    layout.reference = all_points;
    layout.n_reference = n_reference;
    layout.dim = VICINAL_DIM;
    layout.negative_keep = VICINAL_WEIGHTED ? negative_keep : nullptr;
    layout.negative_alias = VICINAL_WEIGHTED ? negative_alias : nullptr;
    layout.negative_moves = VICINAL_MOVING ? negative_moves : nullptr;
    const VICINAL_FORCE force({ForceKind::umap, a, b, gamma});
    const VICINAL_SPACE space({SpaceKind::euclidean, space_values});
    const Mover mover(layout, VICINAL_PULLS, VICINAL_NEGATIVES, force, space);
    const float bound = push_bound(longest_push, learning_rate)[0];
    const SweepTask task{{begin, n_long}, degree,   head_of,    tails, clock,     n_heads,       row_key,
                         head_in,         head_out, all_points, sweep, sweep_key, learning_rate, bound};
    WarpMemory& own_memory = memory[threadIdx.x / warp_lanes];
    if (w < n_long)
        move_long(task, mover, w, own_memory.listed);
    else
        move_slices(task, mover, first, own_memory.slices);
}
WARP_KERNEL(layout_sweep)

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
