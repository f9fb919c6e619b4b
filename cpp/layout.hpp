// Owns what a sampled layout needs between epochs: edges with rate and phase, two buffers of places.
#pragma once

#include "alias_table.hpp"
#include "density.hpp"
#include "kernels.hpp"
#include "rng.hpp"

#include <optional>
#include <vector>

namespace vicinal {

struct LayoutOptions {
    ForceParameters force;
    SpaceKind space = SpaceKind::euclidean;
    std::vector<float> space_values;
    int negatives = 5;
    int pulls = 2;
    bool update_negatives = false;
    double often = 1.0;  // firings an epoch of the heaviest edge, at most 1
    Size epoch = 0;      // the number of the first epoch
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

    // An epoch for every row of the learning rates [n][1 or one a head]. The result depends on the epoch number only,
    // not on how the epochs are cut into calls.
    void step(Matrix learning_rates, ThreadTeam& team);

    // Rows marked here stay where they are, bit for bit, while the others still feel them.
    void pin(const bool* fixed);
    // Negatives are drawn in proportion to these weights, one for each row of the reference.
    void weigh_negatives(const float* weights) { negative_table_ = AliasTable(weights, n_reference()); }
    // From an epoch on, rows also move along densMAP's term (density_term.hpp); one target a head. Before pin.
    void add_density(const float* target, const DensityOptions& options) { density_.emplace(target, task(), options); }
    Density& density() { return density_.value(); }
    const DensitySummary& measure_density(ThreadTeam& team) { return density().measure(task(), options_.force, team); }
    const std::vector<float>& density_moves(ThreadTeam& team) {
        return density().moves(task(), options_.force, options_.pulls, team);
    }
    // Puts every row, pinned ones too, somewhere else; what follows depends on these places and the epoch alone.
    void place(Matrix places);

    Size epoch() const { return epoch_; }
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
    Size n_heads_, dim_, epoch_ = 0, most_block_edges_ = 0;
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
