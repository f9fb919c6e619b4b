// The sampled layout on a GPU: the edges of the rows in the order in which they pull, and the sweeps. The moves are
// those of row_step.hpp, so the map has the bits of the CPU.
//
// A row makes its moves one after the other, so the time of a sweep is that of many short chains and of a few long
// ones. Rows are sorted by their number of edges. The longest have a warp each, which looks at 128 edges at a time,
// lists those that fire in shared memory, and moves the row in its first lane. All other rows have a thread each. They
// are cut into slices of 32 rows whose edges are stored column by column, so that the lanes of a warp read neighboring
// words, and the edges of a row that fire are the bits of a number. A warp takes several slices and sorts their rows by
// the number of firing edges: lanes that move rows together then finish together.
//
// The points that a move needs are requested one move ahead: they do not depend on the moves before.
//
// What a sweep does not need is not compiled: without moving negatives nothing is written between two negatives.
#include "cuda/sorted_edges.hpp"

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
#define VICINAL_SLICES 2    // slices per warp
#endif

namespace vicinal {

constexpr int sweep_threads = 128;
constexpr Index most_sliced = 128;  // edges of a row that is in a slice
constexpr int clocks_ahead = 8;     // edges of a row whose clocks a thread requests together
constexpr int steps_ahead = 4;      // the same for a warp, in steps of 32 edges
constexpr Index most_listed = 512;  // firing edges that a warp lists at a time
constexpr int most_counted = 8;     // rows with more firing edges are sorted as if they had this many

VICINAL_INLINE bool fires(Clock clock, std::uint32_t sweep) {
    const std::uint32_t before = clock.phase + sweep * clock.rate;
    return before + clock.rate < before;
}

// A set of edges of a row in a slice.
struct EdgeSet {
    std::uint64_t low, high;

    VICINAL_INLINE int count() const { return bit_count(low) + bit_count(high); }
    VICINAL_INLINE bool empty() const { return (low | high) == 0; }
    // The lowest edge; 0 if there is none.
    VICINAL_INLINE Index lowest() const { return low != 0 ? lowest_bit(low) : high != 0 ? 64 + lowest_bit(high) : 0; }
    VICINAL_INLINE void drop_lowest() {
        if (low != 0)
            low &= low - 1;
        else
            high &= high - 1;
    }
};

// The edges of a row in a slice that fire. Rows are filled up to a multiple of clocks_ahead edges with edges of rate 0,
// which never fire.
VICINAL_INLINE EdgeSet firing_edges(const Clock* __restrict__ clock, Index n_edges, std::uint32_t sweep) {
    EdgeSet fired{0, 0};
    for (Index j = 0; j < n_edges; j += clocks_ahead) {
        Clock ahead[clocks_ahead];
        VICINAL_UNROLL
        for (int u = 0; u < clocks_ahead; ++u) ahead[u] = clock[(j + u) * slice_rows];
        std::uint64_t bits = 0;
        VICINAL_UNROLL
        for (int u = 0; u < clocks_ahead; ++u) bits |= static_cast<std::uint64_t>(fires(ahead[u], sweep)) << u;
        if (j < 64)
            fired.low |= bits << j;
        else
            fired.high |= bits << (j - 64);
    }
    return fired;
}

// The arguments of a sweep that are the same for all rows.
struct SweepTask {
    EdgePlaces places;
    const Index* __restrict__ degree;
    const Index* __restrict__ head_of;
    const Index* __restrict__ tails;
    const Clock* __restrict__ clock;
    Size n_heads;
    const std::uint64_t* __restrict__ row_key;
    const float* head_in;
    float* __restrict__ head_out;
    const float* reference;
    std::uint32_t sweep;
    std::uint64_t sweep_key;
    float learning_rate;
    float push_bound;  // of the gradient
};

using Mover = gpu::RowStep<gpu::VICINAL_FORCE, gpu::VICINAL_SPACE, VICINAL_DIM>;

// A row on its way through the edges that fire.
class RowWalk {
  public:
    VICINAL_INLINE RowWalk(const SweepTask& task, const Mover& mover, Size head) : task_(task), mover_(mover) {
        const std::uint64_t name = task.row_key != nullptr ? task.row_key[head] : static_cast<std::uint64_t>(head);
        key_ = row_key(task.sweep_key, name);
        own_ = task.reference == task.head_in ? static_cast<Index>(head) : -1;
        mover.gather_points(task.head_in, static_cast<Index>(head), place_);
    }

    // Which of the n_fired firing edges pulls first.
    VICINAL_INLINE Index start(Index n_fired) const {
        return static_cast<Index>(below(draw32(key_, 0), static_cast<std::uint32_t>(n_fired)));
    }

    // Moves along n edges; next_tail() returns their tails one after the other, and any row after the last.
    template <class NextTail>
    VICINAL_INLINE void move(Index n, const NextTail& next_tail) {
        Around next;
        request(next, next_tail());
        Index following = next_tail();
        for (Index t = 0; t < n; ++t) {
            Around here = next;
            if (t + 1 < n) {
                request(next, following);
                following = next_tail();
            }
            move_among(here);
        }
    }

    VICINAL_INLINE void write(Size head) const {
        for (int c = 0; c < VICINAL_DIM; ++c) task_.head_out[head * VICINAL_DIM + c] = place_[c][0];
    }

  private:
    static constexpr int negatives = VICINAL_NEGATIVES, room = negatives > 0 ? negatives : 1;

    // The points around a move: the tail and the negatives.
    struct Around {
        gpu::Float tail[VICINAL_DIM], points[room * VICINAL_DIM];
        gpu::Int negative[room];
    };

    VICINAL_INLINE void request(Around& around, Index tail) {
        mover_.gather_points(task_.reference, tail, around.tail);
        VICINAL_UNROLL
        for (int s = 0; s < negatives; ++s) {
            around.negative[s] = mover_.draw_negative(key_, ++draw_);
            mover_.gather_points(task_.reference, around.negative[s], around.points + s * VICINAL_DIM);
        }
    }

    VICINAL_INLINE void move_among(Around& around) {
        const gpu::Float rate = task_.learning_rate;
        VICINAL_UNROLL
        for (int p = 0; p < VICINAL_PULLS; ++p) {
            gpu::Float delta[VICINAL_DIM];
            for (int c = 0; c < VICINAL_DIM; ++c) delta[c] = around.tail[c];
            mover_.pull_to(rate, place_, delta);
        }
        gpu::Float push[VICINAL_DIM];
        for (int c = 0; c < VICINAL_DIM; ++c) push[c] = 0.0f;
        VICINAL_UNROLL
        for (int s = 0; s < negatives; ++s)
            mover_.push_from(around.negative[s], own_, -1, rate, task_.push_bound, place_,
                             around.points + s * VICINAL_DIM, push);
        for (int c = 0; c < VICINAL_DIM; ++c) place_[c] -= rate * push[c];
    }

    const SweepTask& task_;
    const Mover& mover_;
    std::uint32_t key_, draw_ = 0;
    Index own_;
    gpu::Float place_[VICINAL_DIM];
};

// Moves one row of a slice along the edges that fire; by one lane.
VICINAL_INLINE void move_sliced(const SweepTask& task, const Mover& mover, Size r, EdgeSet fired) {
    const Size head = task.head_of[r];
    RowWalk walk(task, mover, head);
    const Index n_fired = fired.count();
    EdgeSet rest = fired;
    for (Index skipped = walk.start(n_fired); skipped > 0; --skipped) rest.drop_lowest();
    EdgeSet before{fired.low ^ rest.low, fired.high ^ rest.high};
    const Index* tails = task.tails + task.places.first(r);
    walk.move(n_fired, [&] {
        const Index tail = tails[rest.lowest() * slice_rows];
        rest.drop_lowest();
        if (rest.empty()) {
            rest = before;
            before = {0, 0};
        }
        return tail;
    });
    walk.write(head);
}

// What the lanes of a warp tell each other: the firing edges of the rows of its slices, and the rows sorted by their
// number; or the firing edges of a long row.
struct SliceMemory {
    EdgeSet fired[VICINAL_SLICES * slice_rows];
    std::uint16_t order[VICINAL_SLICES * slice_rows];
};
union WarpMemory {
    SliceMemory slices;
    Index listed[most_listed];
};

// Moves the rows of some slices, from row `first` on.
VICINAL_INLINE void move_slices(const SweepTask& task, const Mover& mover, Size first, SliceMemory& memory) {
    PerLane<int> count[VICINAL_SLICES];
    VICINAL_UNROLL
    for (int u = 0; u < VICINAL_SLICES; ++u) {
        FOR_LANES(lane) {
            const Size r = first + u * slice_rows + lane;
            count[u][lane] = 0;
            if (r < task.n_heads) {
                const EdgeSet fired = firing_edges(task.clock + task.places.first(r), task.degree[r], task.sweep);
                memory.fired[u * slice_rows + lane] = fired;
                const int n = fired.count();
                count[u][lane] = n < most_counted ? n : most_counted;
                if (n == 0) {
                    const Size head = task.head_of[r];
                    gpu::Float place[VICINAL_DIM];
                    mover.gather_points(task.head_in, static_cast<Index>(head), place);
                    for (int c = 0; c < VICINAL_DIM; ++c) task.head_out[head * VICINAL_DIM + c] = place[c][0];
                }
            }
        }
    }
    int n_moving = 0;
    for (int n = most_counted; n > 0; --n) {
        VICINAL_UNROLL
        for (int u = 0; u < VICINAL_SLICES; ++u) {
            PerLane<bool> has;
            FOR_LANES(lane) has[lane] = count[u][lane] == n;
            const std::uint32_t votes = ballot(has);
            FOR_LANES(lane)
            if (has[lane])
                memory.order[n_moving + bit_count(votes & ((1u << lane) - 1u))] =
                    static_cast<std::uint16_t>(u * slice_rows + lane);
            n_moving += bit_count(votes);
        }
    }
    sync_lanes();
    for (int from = 0; from < n_moving; from += warp_lanes) {
        FOR_LANES(lane) if (from + lane < n_moving) {
            const int at = memory.order[from + lane];
            move_sliced(task, mover, first + at, memory.fired[at]);
        }
    }
}

// The edges of a long row, looked at by a warp.
class LongRow {
  public:
    VICINAL_INLINE LongRow(const SweepTask& task, Size r)
        : clock_(task.clock + task.places.begin[r]), tails_(task.tails + task.places.begin[r]),
          n_edges_(task.degree[r]), sweep_(task.sweep) {}

    VICINAL_INLINE void restart() { edge_ = seen_ = 0; }

    // Lists the tails of the firing edges with the numbers from ... to - 1, counted in their order, and returns the
    // number of firing edges up to where it looked: to the last edge, or with `stops` no further than needed. Continues
    // where the call before stopped.
    VICINAL_INLINE Index list(Index from, Index to, bool stops, Index* listed) {
        constexpr Index step = steps_ahead * warp_lanes;
        for (; edge_ < n_edges_ && !(stops && seen_ >= to); edge_ += step) {
            PerLane<bool> fired[steps_ahead];
            FOR_LANES(lane) {
                VICINAL_UNROLL
                for (int u = 0; u < steps_ahead; ++u) {
                    const Index e = edge_ + u * warp_lanes + lane;
                    fired[u][lane] = e < n_edges_ && fires(clock_[e], sweep_);
                }
            }
            Index seen = seen_;
            VICINAL_UNROLL
            for (int u = 0; u < steps_ahead; ++u) {
                const std::uint32_t votes = ballot(fired[u]);
                FOR_LANES(lane) {
                    const Index number = seen + bit_count(votes & ((1u << lane) - 1u));
                    if (fired[u][lane] && number >= from && number < to)
                        listed[number - from] = tails_[edge_ + u * warp_lanes + lane];
                }
                seen += bit_count(votes);
            }
            if (stops && seen > to) break;  // the rest of this step is listed by the next call
            seen_ = seen;
        }
        sync_lanes();
        return seen_;
    }

  private:
    const Clock* __restrict__ clock_;
    const Index* __restrict__ tails_;
    Index n_edges_, edge_ = 0, seen_ = 0;
    std::uint32_t sweep_;
};

// Moves a row with many edges.
VICINAL_INLINE void move_long(const SweepTask& task, const Mover& mover, Size r, Index* listed) {
    LongRow row(task, r);
    const Size head = task.head_of[r];
    const Index n_fired = row.list(0, most_listed, false, listed);
    RowWalk walk(task, mover, head);
    if (n_fired > 0 && n_fired <= most_listed) {
        FOR_LANES(lane) if (lane == 0) {
            Index at = walk.start(n_fired);
            walk.move(n_fired, [&] {
                const Index tail = listed[at];
                at = at + 1 < n_fired ? at + 1 : 0;
                return tail;
            });
        }
    }
    // More edges than fit into the list are listed piece by piece: those from the start on, then those before it.
    const Index start = n_fired > most_listed ? walk.start(n_fired) : 0;
    for (int turn = 0; turn < 2 && n_fired > most_listed; ++turn) {
        const Index end = turn == 0 ? n_fired : start;
        row.restart();
        for (Index from = turn == 0 ? start : 0; from < end; from += most_listed) {
            const Index to = end - from < most_listed ? end : from + most_listed;
            sync_lanes();
            row.list(from, to, true, listed);
            FOR_LANES(lane) if (lane == 0) {
                Index at = 0;
                walk.move(to - from, [&] {
                    const Index tail = listed[at];
                    at = from + at + 1 < to ? at + 1 : 0;
                    return tail;
                });
            }
        }
    }
    FOR_LANES(lane) if (lane == 0) walk.write(head);
}

}  // namespace vicinal

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
