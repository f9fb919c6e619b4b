// Exact nearest neighbors among the points of a map, by a balanced k-d tree.
//
// A squared distance is the sum of squared differences in ascending order of the components, in double precision. The
// neighbors of a query are the k smallest by (squared distance, row): of equally distant points the lower row wins.
// The reported distance is the square root, rounded to float32. Results do not depend on the number of threads.
//
// Nodes are split at the median of (coordinate, row) along their widest side. So the depth depends on the number of
// points only, and among equal points the left half holds the lower rows: a search skips a node whose rows all exceed
// the last accepted row at the same distance, which keeps searches among many duplicates short.
#pragma once

#include "base/parallel.hpp"

#include <vector>

namespace vicinal {

class PointTree {
  public:
    // Copies the points [n][dim]. Throws std::invalid_argument for NaN or infinity.
    PointTree(Matrix points, ThreadTeam& team);

    Size n() const { return n_; }
    Size dim() const { return dim_; }

    // Writes the k nearest points of every query, [queries][k], 1 <= k <= n. Returns the number of pairs compared.
    // Throws std::invalid_argument for NaN or infinity.
    Size query(Matrix queries, Size k, Index* index, float* distance, ThreadTeam& team) const;

  private:
    template <int Dim>
    friend class PointSearch;

    // Node p of level l covers positions [n p / 2^l, n (p + 1) / 2^l) of row_; its number is 2^l - 1 + p.
    Size begin_of(Size level, Size p) const { return n_ * p >> level; }
    Size nodes() const { return (Size{2} << depth_) - 1; }
    void split_level(Matrix points, Size level, ThreadTeam& team);
    void measure(Matrix points, Size level, Size p);

    Size n_, dim_, depth_ = 0;
    std::vector<Index> row_;         // rows in the order of the leaves
    std::vector<float> coordinate_;  // [dim][n], in the order of row_
    std::vector<float> box_;         // [nodes][dim][2]: the least and the greatest coordinate
    std::vector<Index> first_row_;   // the lowest row of every node
};

}  // namespace vicinal
