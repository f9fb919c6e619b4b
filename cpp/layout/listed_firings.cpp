#include "layout/listed_firings.hpp"

#include "layout/sampled_kernels.hpp"

#include <algorithm>

namespace vicinal {

namespace {

// Edges in the lists of a worker, unless a block has more: half a megabyte. Rows with very many edges get fewer sweeps.
constexpr Size most_scratch = Size{1} << 17;

Size block_begin(const LayoutTask& task, Size block) { return std::min(block * layout_block_rows, task.n_heads); }

Size n_blocks(const LayoutTask& task) { return (task.n_heads + layout_block_rows - 1) / layout_block_rows; }

Size most_block_edges(const LayoutTask& task) {
    Size most = 0;
    for (Size b = 0; b < n_blocks(task); ++b)
        most = std::max(most, task.indptr[block_begin(task, b + 1)] - task.indptr[block_begin(task, b)]);
    return most;
}

}  // namespace

ListedFirings::ListedFirings(const LayoutTask& task, int workers)
    : capacity_(most_block_edges(task) + most_lanes), blocks_(static_cast<std::size_t>(n_blocks(task))),
      scratch_(static_cast<std::size_t>(workers)), views_(blocks_.size()) {}

void ListedFirings::require(const LayoutTask& task, Size number, Size sweeps, ThreadTeam& team) {
    if (first_sweep_ <= number && number < first_sweep_ + sweeps_) return;
    sweeps_ = 0;  // in case of an interruption
    const Size listed = std::min(sweeps, std::clamp(most_scratch / capacity_, Size{1}, most_listed_sweeps));
    team.parallel_for(task.n_heads, layout_block_rows, [&](Size begin, Size end, int worker) {
        Lists& found = scratch_[worker];
        Lists& kept = blocks_[begin / layout_block_rows];
        const Size stride = end - begin + 1;
        found.tails.resize(static_cast<std::size_t>(listed * capacity_));
        kept.first.resize(static_cast<std::size_t>(listed * stride));
        sampled_kernels().list_firings(task, begin, end, number, listed, capacity_, found.tails.data(),
                                       kept.first.data());
        kept.tails.clear();
        for (Size s = 0; s < listed; ++s) {
            Index* first = kept.first.data() + s * stride;
            const Index* tails = found.tails.data() + s * capacity_;
            const auto before = static_cast<Index>(kept.tails.size());
            kept.tails.insert(kept.tails.end(), tails, tails + first[stride - 1]);
            for (Size k = 0; k < stride; ++k) first[k] += before;
        }
        const auto idle = static_cast<Index>(kept.tails.size());
        kept.tails.push_back(0);
        views_[begin / layout_block_rows] = {kept.tails.data(), kept.first.data(), idle};
    });
    first_sweep_ = number;
    sweeps_ = listed;
}

}  // namespace vicinal
