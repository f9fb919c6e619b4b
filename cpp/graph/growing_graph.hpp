// A fuzzy graph whose rows arrive over time. The directed memberships of some rows can be replaced, and the symmetric
// edges of some rows can be computed, each at a cost that depends on these rows only.
//
//   p_ij = mix * (p_{j|i} + p_{i|j} - p_{j|i} p_{i|j}) + (1 - mix) * p_{j|i} p_{i|j}              (survey eq. 4)
//
// The edges of a row lead to the rows that it lists and to the rows that list it. The graph keeps track of who lists
// whom, and looks up memberships in the lists, so replacing a row changes only the rows that enter or leave its list.
// The content depends on the last memberships of every row, not on the order in which they were given.
#pragma once

#include "graph/symmetrize.hpp"

#include <vector>

namespace vicinal {

class GrowingGraph {
  public:
    GrowingGraph(Size k, float mix) : k_(k), mix_{mix} {}

    Size n() const { return static_cast<Size>(listed_by_.size()); }
    Size k() const { return k_; }
    // Adds rows without edges until there are n.
    void extend(Size n);
    // Replaces the lists [count][k] of some rows. Entries of index -1 or membership 0 are ignored, as are the row
    // itself and repeated entries.
    void replace(const Index* rows, Size count, const Index* index, const float* membership);
    // Removes all rows but the given ones, whose numbers ascend, and numbers these from 0. Lists lose the rows that go.
    void keep(const Index* rows, Size count);
    // The symmetric edges of some rows, in the order of `rows`.
    OwnedCsr edges(const Index* rows, Size count, ThreadTeam& team) const;

    // The rows whose list has no member.
    std::vector<Size> empty_rows() const;

    const std::vector<Index>& index() const { return index_; }            // [n][k]
    const std::vector<float>& membership() const { return membership_; }  // [n][k]

  private:
    bool lists(Size row, Index tail) const;
    float membership_of(Size row, Index tail) const;
    void prefetch_edges(Index row) const;

    Size k_;
    FuzzyMix mix_;
    std::vector<Index> index_;
    std::vector<float> membership_;
    std::vector<std::vector<Index>> listed_by_;  // in no particular order
};

}  // namespace vicinal
