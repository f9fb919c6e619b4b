// Arguments of the kernels of the full layout. Plain data shared by all levels.
#pragma once

#include "base/types.hpp"

namespace vicinal {

// Sums over the edges of a row or over all sources use this many lanes for any register width and are reduced by one
// fixed tree: the same bits at every level. Rows of edges are padded to multiples of it.
constexpr Size sum_lanes = 16;
// Sources whose sums are single precision; sums of these blocks are double precision.
constexpr Size field_block = 4096;
constexpr float far_away = 1e18f;  // of points that pad the sources; its square is still a finite float

// Attraction along the edges of a padded graph: pull_i = sum over j of p_ij (y_i - y_j) / (1 + d_ij^2 / dof).
struct AttractTask {
    const Size* start;  // [n_heads + 1], multiples of sum_lanes
    const Index* tails;
    const float* weights;
    const float* heads;    // [n_heads][dim]
    const float* sources;  // the points that the tails refer to
    Size n_heads, dim;
    float dof;
    float* pull;  // [n_heads][dim]
};

// The potential of all sources at every head, and its gradient, over all pairs.
struct FieldTask {
    const float* columns;  // component c of source j at columns[c * stride + j], padded with distant points
    Size n_sources, stride;
    const float* heads;  // [n_heads][dim]
    Size n_heads, dim;
    bool heads_are_sources;  // a head is then not a source of its own potential
    float dof;
    float* potential;  // [n_heads]
    float* field;      // [n_heads][dim], or null if only the potential is needed
};

// A row-major grid of nodes; node 0 of axis c is at origin[c].
struct Grid {
    static constexpr Size most_axes = 3;
    Size dim = 0;
    Size shape[most_axes] = {1, 1, 1};
    float origin[most_axes] = {0.0f, 0.0f, 0.0f};
    float spacing = 1.0f;

    VICINAL_INLINE Size size() const { return shape[0] * shape[1] * shape[2]; }
};

// Points are spread in this many parts, each onto its own grid, so the sum does not depend on the threads.
constexpr Size spread_shares = 8;

}  // namespace vicinal
