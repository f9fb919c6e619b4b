// Sums over pairs of rows of an embedding, from which every cost of the survey and its gradient is put together
// (vicinal.losses). With a term t of loss_term.hpp,
//   costs    sum_{j > i} (w_i + w_j) t(d^2_ij) of row i: every pair once
//   forces   sum_j w_j t(d^2_ij) (y_i - y_j) of row i, over all j
//   edges    sum_j p_ij t(d^2_ij) of row i, or with vectors sum_j p_ij t(d^2_ij) (y_i - y_j), over its edges
//   draws    sum_{j != i} t(d^2_ij) of row i, estimated from random rows j
//
// Each row has one writer, and its tails are added in 16 virtual lanes of float32, reduced by a fixed tree and
// carried on in double: the sums have the same bits for any number of threads and at every level.
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

// Places by component, [dim][stride]. The stride is a multiple of most_lanes; weights are 0 beyond n.
struct PairPlaces {
    const float* by_component = nullptr;
    const float* weight = nullptr;
    Size n = 0, dim = 0, stride = 0;
};

// The heads to sum for; null means row after row.
struct PairHeads {
    const Index* rows = nullptr;
    Size n = 0;
    VICINAL_INLINE Size at(Size i) const { return rows != nullptr ? rows[i] : i; }
};

// most_lanes draws a group, keyed by row.
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
    // Places [n][dim] and weights [n] are copied; no weights means 1.
    PairSums(Matrix embedding, const float* weight);

    Size rows() const { return n_; }
    Size dim() const { return dim_; }

    void costs(const PairQuantity& quantity, double* out, ThreadTeam& team) const;
    // dim values a head.
    void forces(const PairQuantity& quantity, const PairHeads& heads, double* out, ThreadTeam& team) const;
    // One value a head, or dim with `vectors`. Weights are the graph's.
    void edges(const PairQuantity& quantity, bool vectors, const PairHeads& heads, const Csr& graph, double* out,
               ThreadTeam& team) const;
    // All weights are 1 here.
    void draws(const PairQuantity& quantity, Size groups, std::uint64_t seed, const PairEstimate& out,
               ThreadTeam& team) const;

  private:
    PairPlaces view() const { return {places_.data(), weight_.data(), n_, dim_, stride_}; }

    Size n_, dim_, stride_;
    std::vector<float> places_, weight_;
};

}  // namespace vicinal
