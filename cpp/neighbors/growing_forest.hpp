// The trees of a stream (online_forest.hpp) and their memory. A tree depends on its rows and their order only.
#pragma once

#include "base/growing_array.hpp"
#include "base/parallel.hpp"
#include "neighbors/online_task.hpp"

namespace vicinal {

class GrowingForest {
  public:
    // Trees without rows.
    GrowingForest(Size trees, std::uint64_t seed);

    // Allocates what planting `rows` more rows takes.
    void reserve(Size rows);

    // Rows that are inserted between two checks for an interrupt.
    static constexpr Size whole_rows = 4096;

    // Inserts the rows [begin, end) into all trees. `above` holds a node of each tree that is an ancestor of the row's
    // leaf, [rows][trees]; null means the roots. Up to `whole_rows` rows are never interrupted.
    void plant(const SearchSpace& space, Size begin, Size end, const Index* above, ThreadTeam& team);

    const OnlineForest& view() const { return forest_; }

  private:
    GrowingArray<TreeNode> nodes_;
    GrowingArray<float> normals_;
    GrowingArray<Index> members_;
    OnlineForest forest_;
};

}  // namespace vicinal
