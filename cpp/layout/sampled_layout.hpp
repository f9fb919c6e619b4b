// The sampled layout between sweeps: edges with rate and phase (firing.hpp), and two buffers of points.
#pragma once

#include "base/rng.hpp"
#include "base/types.hpp"
#include "layout/density.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

namespace vicinal {

// Draws rows in proportion to weights with one random number and two lookups (Walker 1977, Vose's construction).
//
// Row i of n keeps a share keep[i] / 2^32 of its n-th part of all draws and gives the rest to alias[i]. The high half
// of bits * n is i, the low half is the position within its part.
struct AliasTable {
    std::vector<std::uint32_t> keep;
    std::vector<Index> alias;

    AliasTable() = default;

    // Built in row order, so the table depends on the weights only.
    AliasTable(const float* weights, Size n) : keep(static_cast<std::size_t>(n)), alias(keep.size()) {
        double total = 0.0;
        for (Size i = 0; i < n; ++i) {
            if (!(weights[i] >= 0.0f)) throw std::invalid_argument("a weight of a negative is below 0 or NaN");
            total += weights[i];
        }
        if (!(total > 0.0)) throw std::invalid_argument("no row has a weight above 0");
        std::vector<double> share(keep.size());
        std::vector<Index> poor, rich;
        for (Size i = 0; i < n; ++i) {
            share[i] = weights[i] / total * static_cast<double>(n);
            (share[i] < 1.0 ? poor : rich).push_back(static_cast<Index>(i));
        }
        while (!poor.empty() && !rich.empty()) {
            const Index taker = poor.back(), giver = rich.back();
            poor.pop_back();
            settle(taker, share[taker], giver);
            share[giver] -= 1.0 - share[taker];
            if (share[giver] < 1.0) {
                rich.pop_back();
                poor.push_back(giver);
            }
        }
        // The remaining shares differ from 1 by rounding only.
        for (const Index i : rich) settle(i, 1.0, i);
        for (const Index i : poor) settle(i, 1.0, i);
    }

  private:
    void settle(Index i, double share, Index other) {
        keep[i] = static_cast<std::uint32_t>(std::min(share * 4294967296.0, 4294967295.0));
        alias[i] = other;
    }
};

// `force`, `pulls` and `firings_per_sweep` have no useful defaults: the caller sets them. The bindings reject pulls and
// firings_per_sweep of 0.
struct LayoutOptions {
    ForceParameters force;
    SpaceKind space = SpaceKind::euclidean;
    std::vector<float> space_values;
    std::shared_ptr<const SpaceFunction> space_function;
    int negatives = 0;  // per firing edge
    int pulls = 0;      // per firing edge: 2 if the graph is symmetric and tails move too, else 1
    bool update_negatives = false;
    double firings_per_sweep = 0.0;  // of the heaviest edge, in (0, 1]
    Size first_sweep = 0;
    // Sweeps with a lower number draw one negative per firing edge, whose repulsion is that of all of them.
    Size single_sweeps = 0;
    // The longest move by one negative along each axis, in the other sweeps.
    float longest_push = std::numeric_limits<float>::infinity();
    std::uint64_t seed = 0;
    // Weight of the heaviest edge, if the graph is a part of a larger one; 0: of the given graph.
    float heaviest = 0.0f;
};

// The edges of consecutive rows, as tails(), rate() and phase() of a SampledLayout return them, without the layout.
struct PartEdges {
    const Size* indptr = nullptr;
    const Index* tails = nullptr;
    const std::uint32_t* rate = nullptr;
    const std::uint32_t* phase = nullptr;
    Size first_row = 0, rows = 0;
};

// The rows of a part as heads among the snapshot `points` of all rows. head_in begins at the first row of the part.
LayoutTask task_of(const PartEdges& part, Matrix points);

// Arrays of an AliasTable; null if negatives are uniform.
struct NegativeTable {
    const std::uint32_t* keep = nullptr;
    const Index* alias = nullptr;
};

// What the sweep of a number draws, and the law of its moves; the sweeps of a GPU follow both.
std::pair<LayoutSweep, LayoutLaw> sweep_and_law(const LayoutOptions& options, Size number);

class SampledLayout {
  public:
    // Moves all points [n][dim], which are copied. The tails are these points too, or the rows of `reference`, which is
    // neither copied nor changed. `row_key` may be null; it names the rows to the random generator.
    //
    // With `head_row` only these points move: edge weights are then firing probabilities as they are, and there are no
    // pins, no density term and no moving negatives.
    SampledLayout(const Csr& graph, Matrix points, Matrix reference, const std::uint64_t* row_key,
                  const LayoutOptions& options, ThreadTeam& team, const Index* head_row = nullptr);

    // Moves the points `head_row` in the caller's array, which must outlive the layout. Neither making the layout nor a
    // sweep costs more for more points, only for more heads. A step that throws leaves the points unchanged.
    static SampledLayout in_place(const Csr& graph, float* points, Size n, Size dim, const LayoutOptions& options,
                                  const Index* head_row, ThreadTeam& team);
    // Continues in another array, which holds at least as many points.
    void attach(float* points, Size n);

    // Runs one sweep per row of the learning rates [sweeps][1 or n_heads]. The result depends on the numbers of the
    // sweeps, not on how they are split into calls.
    void step(Matrix learning_rates, ThreadTeam& team);

    // Marked points do not move at all, but still attract and repel the others.
    void pin(const bool* fixed);
    // Negatives are drawn in proportion to these weights, one per row of the reference.
    void weigh_negatives(const float* weights) { negative_table_ = AliasTable(weights, n_reference()); }
    // Adds densMAP's term (density_term.hpp); one target per head. To be called before pin().
    void add_density(const float* target, const DensityOptions& options) { density_.emplace(target, task(), options); }
    Density& density() { return density_.value(); }
    const DensitySummary& measure_density(ThreadTeam& team) { return density().measure(task(), options_.force, team); }
    const std::vector<float>& density_moves(ThreadTeam& team) {
        return density().moves(task(), options_.force, options_.pulls, team);
    }
    // The edges in the order of a sweep, each array with most_lanes entries beyond the last edge.
    const std::vector<Index>& tails() const { return tails_; }
    const std::vector<std::uint32_t>& rate() const { return rate_; }
    const std::vector<std::uint32_t>& phase() const { return phase_; }
    // Runs one sweep for some rows of a map, with the same bits as a layout of all rows: `points` is the snapshot of
    // all rows, `moves` are those of the density term (null: none), in a step of `move_length` times the learning rate,
    // `out` receives the points of the rows of the part.
    static void sweep_part(const PartEdges& part, Matrix points, const LayoutOptions& options, Size sweep,
                           float learning_rate, NegativeTable negatives, const float* moves, float move_length,
                           float* out, ThreadTeam& team);
    // Replaces all points, pinned ones too. Later sweeps depend on these points and the number of the sweep only.
    void place(Matrix points);

    Size sweep() const { return sweep_; }  // number of the next sweep
    Size n_reference() const { return reference_.data != nullptr ? reference_.rows : n_; }
    Size n_heads() const { return n_heads_; }
    Matrix embedding() const { return {points_, n_, dim_}; }

  private:
    struct Scratch;
    struct TeamScratch;
    SampledLayout(const Csr& graph, float* points, Size n, Size dim, Matrix reference, const std::uint64_t* row_key,
                  const LayoutOptions& options, ThreadTeam& team, const Index* head_row);
    float heaviest_edge(const Csr& graph, ThreadTeam& team) const;
    void add_edges(const Csr& graph, ThreadTeam& team);
    void run_sweeps(Matrix learning_rates, ThreadTeam& team);
    void gather_heads(float* out) const;
    void scatter_heads(const float* from);
    void add_negative_moves(ThreadTeam& team);
    void add_density_moves(const std::vector<float>& moves, float learning_rate, ThreadTeam& team);
    bool is_fixed(Size row) const { return !fixed_.empty() && fixed_[row]; }
    LayoutTask task();

    LayoutOptions options_;
    Size n_heads_, dim_, sweep_;
    Matrix reference_;
    std::vector<Size> indptr_;
    std::vector<Index> tails_, head_row_;
    std::vector<std::uint32_t> rate_, phase_;
    std::vector<std::uint64_t> row_key_;
    float* points_;  // the snapshot that a sweep reads: own_, or the caller's array
    Size n_;
    bool in_place_ = false;
    std::vector<float> own_, next_;  // next_ receives the heads
    std::vector<std::int64_t> negative_moves_;
    std::vector<bool> fixed_;
    AliasTable negative_table_;
    std::optional<Density> density_;
};

}  // namespace vicinal
