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
#include "layout/layout_task.hpp"

#include <vector>

namespace vicinal {

enum class PairTerm { attract_cost, repel_cost, attract, repel, student };
constexpr const char* term_names[] = {"attract_cost", "repel_cost", "attract", "repel", "student"};

struct PairQuantity {
    PairTerm term = PairTerm::repel_cost;
    ForceParameters force;  // a of the Student kernel is its degrees of freedom
};

// Points by component, [dim][stride]. The stride is a multiple of most_lanes; weights are 0 beyond n.
struct PairPlaces {
    const float* by_component = nullptr;
    const float* weight = nullptr;
    Size n = 0, dim = 0, stride = 0;
};

// The heads to sum for; null means all rows in order.
struct PairHeads {
    const Index* rows = nullptr;
    Size n = 0;
    VICINAL_INLINE Size at(Size i) const { return rows != nullptr ? rows[i] : i; }
};

// most_lanes draws per group, keyed by row.
struct PairDraws {
    Size groups = 2;
    std::uint64_t key = 0;
};

struct PairEstimate {
    double* value;
    double* variance;
};

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
