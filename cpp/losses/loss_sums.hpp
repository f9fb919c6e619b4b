// Sums over pairs of points, of which every cost of the survey and its gradient is composed. With a term t of
// loss_term.hpp,
//
//   costs    sum_{j > i} (w_i + w_j) t(d^2_ij) for row i: every pair once
//   forces   sum_j w_j t(d^2_ij) (y_i - y_j) for row i, over all j
//   edges    sum_j p_ij t(d^2_ij) for row i, or with vectors sum_j p_ij t(d^2_ij) (y_i - y_j), over its edges
//   draws    sum_{j != i} t(d^2_ij) for row i, estimated from random rows j
//
// Each row has one writer, and its tails are added in 16 virtual lanes of float32, reduced by a fixed tree and summed
// up in double precision: results have the same bits for any number of threads and at every level.
#pragma once

#include "base/parallel.hpp"
#include "losses/loss_task.hpp"

#include <vector>

namespace vicinal {

class PairSums {
  public:
    // Copies the points [n][dim] and weights [n]; null means weights of 1.
    PairSums(Matrix embedding, const float* weight);

    Size rows() const { return n_; }
    Size dim() const { return dim_; }

    void costs(const PairQuantity& quantity, double* out, ThreadTeam& team) const;
    // dim values per head.
    void forces(const PairQuantity& quantity, const PairHeads& heads, double* out, ThreadTeam& team) const;
    // One value per head, or dim with `vectors`. Weighted by the graph.
    void edges(const PairQuantity& quantity, bool vectors, const PairHeads& heads, const Csr& graph, double* out,
               ThreadTeam& team) const;
    // Ignores the weights: all are 1.
    void draws(const PairQuantity& quantity, Size groups, std::uint64_t seed, const PairEstimate& out,
               ThreadTeam& team) const;

  private:
    PairPlaces view() const { return {places_.data(), weight_.data(), n_, dim_, stride_}; }

    Size n_, dim_, stride_;
    std::vector<float> places_, weight_;
};

}  // namespace vicinal
