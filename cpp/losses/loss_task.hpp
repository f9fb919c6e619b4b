// Arguments of sums over pairs of points (loss_sums.hpp). Plain data shared by all levels.
#pragma once

#include "layout/layout_task.hpp"

namespace vicinal {

// Heads per chunk: they share a block of tails, which stays in the cache. Tails per block: the length of float32
// partial sums, over 16 lanes.
constexpr Size pair_heads = 32;
constexpr Size pair_tails = 512;

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

}  // namespace vicinal
