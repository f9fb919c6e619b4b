// Owns what a sampled layout needs between sweeps: edges with rate and phase, two buffers of places.
#pragma once

#include "base/rng.hpp"
#include "layout/alias_table.hpp"
#include "layout/density.hpp"

#include <optional>
#include <vector>

namespace vicinal {

// Set by the caller, field by field; a layout rejects options whose `pulls` or `firings_per_sweep` are still 0.
struct LayoutOptions {
    ForceParameters force;
    SpaceKind space = SpaceKind::euclidean;
    std::vector<float> space_values;
    int negatives = 0;  // per firing edge
    int pulls = 0;      // per firing edge: 2 if the graph is symmetric and tails move too, else 1
    bool update_negatives = false;
    double firings_per_sweep = 0.0;  // of the heaviest edge, in (0, 1]
    Size first_sweep = 0;
    std::uint64_t seed = 0;
};

class SampledLayout {
  public:
    // Places [n][dim] are copied. They are the heads', unless `head_row` says which of them the heads are. `reference`
    // is null when the heads are their own reference; otherwise it stays where it is and is never written. `row_key`
    // may be null, and so may `head_row`; with it weights are probabilities as they are, and there are no pins, no
    // densities and no moving negatives.
    SampledLayout(const Csr& graph, Matrix places, Matrix reference, const std::uint64_t* row_key,
                  const LayoutOptions& options, const Index* head_row = nullptr);

    // A sweep for every row of the learning rates [n][1 or one a head]. The result depends on the sweep number only,
    // not on how the sweeps are cut into calls.
    void step(Matrix learning_rates, ThreadTeam& team);

    // Rows marked here stay where they are, bit for bit, while the others still feel them.
    void pin(const bool* fixed);
    // Negatives are drawn in proportion to these weights, one for each row of the reference.
    void weigh_negatives(const float* weights) { negative_table_ = AliasTable(weights, n_reference()); }
    // From a sweep on, rows also move along densMAP's term (density_term.hpp); one target a head. Before pin.
    void add_density(const float* target, const DensityOptions& options) { density_.emplace(target, task(), options); }
    Density& density() { return density_.value(); }
    const DensitySummary& measure_density(ThreadTeam& team) { return density().measure(task(), options_.force, team); }
    const std::vector<float>& density_moves(ThreadTeam& team) {
        return density().moves(task(), options_.force, options_.pulls, team);
    }
    // Puts every row, pinned ones too, somewhere else; what follows depends on these places and the sweep alone.
    void place(Matrix places);

    Size sweep() const { return sweep_; }
    Size n_reference() const { return reference_.data != nullptr ? reference_.rows : embedding().rows; }
    Size n_heads() const { return n_heads_; }
    Matrix embedding() const { return {places_.data(), static_cast<Size>(places_.size()) / dim_, dim_}; }

  private:
    struct Scratch;
    void publish_moves();
    void add_negative_moves(ThreadTeam& team);
    void add_density_moves(const std::vector<float>& moves, float learning_rate, ThreadTeam& team);
    bool is_fixed(Size row) const { return !fixed_.empty() && fixed_[row]; }
    LayoutTask task();

    LayoutOptions options_;
    Size n_heads_, dim_, sweep_ = 0, most_block_edges_ = 0;
    Matrix reference_;
    std::vector<Size> indptr_;
    std::vector<Index> tails_, head_row_;
    std::vector<std::uint32_t> rate_, phase_;
    std::vector<std::uint64_t> row_key_;
    std::vector<float> places_, next_;
    std::vector<std::int64_t> negative_moves_;
    std::vector<bool> fixed_;
    AliasTable negative_table_;
    std::optional<Density> density_;
};

}  // namespace vicinal
