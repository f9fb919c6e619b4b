// A fuzzy graph whose rows arrive over time: the directed memberships of some rows are replaced, and the symmetric
// edges of some rows are asked for, each at the cost of these rows alone.
//
//   p_ij = mix * (p_{j|i} + p_{i|j} - p_{j|i} p_{i|j}) + (1 - mix) * p_{j|i} p_{i|j}              (survey eq. 4)
//
// A row's edges are those it lists and those of the rows that list it. Which rows list it is kept up to date; their
// memberships are looked up where they are listed, so that replacing a row touches only the rows that come or go.
// What it holds is a function of the last memberships of every row, not of the order in which they came.
#pragma once

#include "graph/symmetrize.hpp"

#include <vector>

namespace vicinal {

class GrowingGraph {
  public:
    GrowingGraph(Size k, float mix) : k_(k), mix_{mix} {}

    Size n() const { return static_cast<Size>(listed_by_.size()); }
    Size k() const { return k_; }
    // Rows 0..n-1 exist from now on; new ones have no edges.
    void extend(Size n);
    // New lists [count][k] of some rows; an entry of -1 or of membership 0 is none, nor is the row itself or a repeated
    // one.
    void replace(const Index* rows, Size count, const Index* index, const float* membership);
    // The symmetric edges of some rows, as compressed rows in the order asked for.
    OwnedCsr edges(const Index* rows, Size count, ThreadTeam& team) const;

    const std::vector<Index>& index() const { return index_; }            // [n][k]
    const std::vector<float>& membership() const { return membership_; }  // [n][k]

  private:
    bool lists(Size row, Index tail) const;
    float membership_of(Size row, Index tail) const;
    void ask_for(Index row) const;

    Size k_;
    FuzzyMix mix_;
    std::vector<Index> index_;
    std::vector<float> membership_;
    std::vector<std::vector<Index>> listed_by_;  // in no particular order
};

}  // namespace vicinal
