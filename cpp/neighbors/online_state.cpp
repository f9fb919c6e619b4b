// Restoring the state of OnlineNeighbors, which may come from a file and hold anything.
#include "neighbors/online_neighbors.hpp"

#include <limits>
#include <stdexcept>
#include <utility>

namespace vicinal {

void OnlineNeighbors::restore(ThreadTeam& team) {
    n_ = rows_.size() / cols_;
    check_state();
    resize_table(n_);
    all_bytes_ = true;
    keep_bytes(row_matrix(), 0, team);
    if (sketcher_.prepares()) {
        scale_.resize(n_);
        sketcher_.prepare(row_matrix(), scale_.data(), team);
    }
    if (by_pairs()) pairs_ = std::make_unique<DensePairs>(pair_matrix(), pair_matrix(), metric_, power_);
    coarse_unit_ = coarse_unit_of(sketcher_, fitted_rows_, team);
    const Size sketched = std::exchange(sketched_, 0);
    if (sketched > 0) sketch_until(sketched, team);
    for (Size i = 0; i < searched_; ++i) worst_[i] = ranks_[i * stride_ + listed() - 1];
    for (Size e = queue_head_; e < queue_.size(); ++e) queued_[queue_[e]] = 1;
    if (kind_ == Kind::refresh)
        for (const Index row : chunk_) queued_[row] = 1;
    forest_ = GrowingForest(options_.trees, seed_);
    forest_.plant(space(), 0, merged_, nullptr, team);
    leaves_.clear();
    start_at_roots(kind_ == Kind::search ? chunk_.size() : 0);
}

void OnlineNeighbors::check_state() const {
    const auto require = [](bool holds) {
        if (!holds) throw std::invalid_argument("the state does not fit this search");
    };
    const auto known = [&](Index row, Size below) { return row >= 0 && row < below; };
    const Size n = n_, staged = kind_ == Kind::refresh ? chunk_.size() * stride_ : 0;
    require(rows_.size() == n * cols_ && pair_rows_.size() == n * pair_cols_ &&
            n < std::numeric_limits<Index>::max() / 2);
    require(ranks_.size() == n * stride_ && tags_.size() == n * stride_ && changes_.size() == n);
    require(0 <= merged_ && merged_ <= searched_ && searched_ <= sketched_ && sketched_ <= n);
    require(0 <= first_new_ && first_new_ <= searched_ && 0 <= queue_head_ && queue_head_ <= queue_.size());
    require(kind_ >= Kind::none && kind_ <= Kind::refresh && share_rows_ >= 0 && 0 <= fitted_rows_ &&
            fitted_rows_ <= n);
    require(sketched_ == 0 || sketcher_.fitted());
    require(kind_ == Kind::search ? searched_ - merged_ == chunk_.size() : searched_ == merged_);
    require(chunk_.size() <= chunk_rows && staged_ranks_.size() >= staged && staged_tags_.size() >= staged);
    for (const std::uint32_t tag : tags_) require(tag == no_tag || known(index_of(tag), searched_));
    for (const std::uint32_t tag : staged_tags_) require(tag == no_tag || known(index_of(tag), merged_));
    for (const Index row : queue_) require(known(row, merged_));
    for (const Index row : chunk_) require(known(row, searched_));
    for (const Offer& offer : offers_) require(known(offer.row, merged_) && known(offer.candidate, searched_));
}

}  // namespace vicinal
