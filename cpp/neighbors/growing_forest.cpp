#include "neighbors/growing_forest.hpp"

#include "base/rng.hpp"
#include "neighbors/online_kernels.hpp"

#include <algorithm>

namespace vicinal {

// One empty leaf per tree.
GrowingForest::GrowingForest(Size trees, std::uint64_t seed)
    : forest_{.trees = trees, .n_nodes = trees, .n_leaves = trees} {
    reserve(0);
    const std::uint64_t key = stream_key(seed, Stream::forest);
    for (Size tree = 0; tree < trees; ++tree)
        nodes_[tree] = {.key = row_key(key, static_cast<std::uint64_t>(tree)), .leaf = static_cast<Index>(tree)};
}

// A row causes at most one split per tree.
void GrowingForest::reserve(Size rows) {
    const Size splits = rows * forest_.trees;
    nodes_.resize(forest_.n_nodes + 2 * splits);
    forest_.nodes = nodes_.data();
    normals_.resize((forest_.n_nodes + 2 * splits) * split_columns);
    forest_.normals = normals_.data();
    members_.resize((forest_.n_leaves + splits) * online_leaf_rows);
    forest_.members = members_.data();
}

void GrowingForest::plant(const SearchSpace& space, Size begin, Size end, const Index* above, ThreadTeam& team) {
    for (Size first = begin; first < end; first += whole_rows) {
        const Size last = std::min(first + whole_rows, end);
        if (first > begin) team.check_interrupt();
        reserve(last - first);
        const Index* nodes = above == nullptr ? nullptr : above + (first - begin) * forest_.trees;
        online_kernels().insert_rows(space, forest_, first, last, nodes, team);
    }
}

}  // namespace vicinal
