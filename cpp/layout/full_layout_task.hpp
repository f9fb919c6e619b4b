// The full layout (full_layout.hpp): arguments of its kernels, and the step of one row in an iteration. Plain data and
// code shared by all levels and by the GPU (cuda/full_layout.cu).
#pragma once

#include "base/types.hpp"

#include <cmath>

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

// Gains by van der Maaten, longest step by openTSNE.
constexpr float gain_rise = 0.2f, gain_fall = 0.8f, smallest_gain = 0.01f, longest_step = 5.0f;
constexpr float smallest_normalizer = 1e-12f;

struct FullStep {
    float exaggeration;
    float learning_rate;
    float momentum;
};

// The numbers of one row, one per component.
struct RowForces {
    const float *pull, *field;
};
struct RowBefore {
    const float *place, *velocity, *gain;
};
struct RowAfter {
    float *place, *velocity, *gain;
};

// The step of one row. With momentum m, learning rate eta and exaggeration x:
//
//   gain     <- gain + 0.2 if velocity and gradient point in different directions, else 0.8 gain + 0.01
//   velocity <- m velocity - eta gain gradient, shortened to at most 5
//   y        <- y + velocity
//
// where the attractive part of the gradient is multiplied by x.
VICINAL_INLINE void move_row(const FullStep& step, float dof, float normalizer, Size dim, const RowForces& forces,
                             const RowBefore& before, const RowAfter& after) {
    const float attract = 2.0f * (dof + 1.0f) / dof * step.exaggeration;
    float length2 = 0.0f;
    for (Size c = 0; c < dim; ++c) {
        const float gradient = attract * forces.pull[c] + 2.0f * (forces.field[c] / normalizer);
        const float velocity = before.velocity[c];
        const bool opposed = (velocity > 0.0f) != (gradient > 0.0f) || velocity == 0.0f;
        const float gain = opposed ? before.gain[c] + gain_rise : before.gain[c] * gain_fall + smallest_gain;
        const float faster = step.momentum * velocity - step.learning_rate * gain * gradient;
        after.gain[c] = gain;
        after.velocity[c] = faster;
        length2 += faster * faster;
    }
    if (length2 > longest_step * longest_step) {
        const float shorten = longest_step / std::sqrt(length2);
        for (Size c = 0; c < dim; ++c) after.velocity[c] *= shorten;
    }
    for (Size c = 0; c < dim; ++c) after.place[c] = before.place[c] + after.velocity[c];
}

}  // namespace vicinal
