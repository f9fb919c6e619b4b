// What the kernels of the full layout work on: plain views, shared by all levels.
#pragma once

#include "base/types.hpp"

namespace vicinal {

// Sums along a row of a graph or of all sources run in this many lanes, whatever the width of a register, and are
// then added up by one fixed tree: the same bits at every level. Rows of edges are padded to whole multiples.
constexpr Size sum_lanes = 16;

// Attraction along the edges of a padded graph: pull_i = sum over j of p_ij (y_i - y_j) / (1 + d_ij^2 / dof).
struct AttractTask {
    const Size* start;  // [n_heads + 1], multiples of sum_lanes
    const Index* tails;
    const float* weights;
    const float* heads;    // [n_heads][dim]
    const float* sources;  // what the tails number
    Size n_heads, dim;
    float dof;
    float* pull;  // [n_heads][dim]
};

// The potential of all sources at every head, and its gradient, by every pair.
struct FieldTask {
    const float* columns;  // coordinate c of source j at columns[c * stride + j], padded with places far away
    Size n_sources, stride;
    const float* heads;  // [n_heads][dim]
    Size n_heads, dim;
    bool heads_are_sources;  // then a row is no source of its own
    float dof;
    float* potential;  // [n_heads]
    float* field;      // [n_heads][dim], or null where only the potential is asked for
};

// Nodes spacing apart, row-major; node 0 of axis c is at origin[c].
struct Grid {
    static constexpr Size most_axes = 3;
    Size dim = 0;
    Size shape[most_axes] = {1, 1, 1};
    float origin[most_axes] = {0.0f, 0.0f, 0.0f};
    float spacing = 1.0f;

    VICINAL_INLINE Size size() const { return shape[0] * shape[1] * shape[2]; }
};

// Points are spread in this many shares, each onto a grid of its own; their sum does not depend on the threads.
constexpr Size spread_shares = 8;

}  // namespace vicinal
