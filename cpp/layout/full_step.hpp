// The step of one row in an iteration of the full layout. With momentum m, learning rate eta and exaggeration x:
//
//   gain     <- gain + 0.2 if velocity and gradient point in different directions, else 0.8 gain + 0.01
//   velocity <- m velocity - eta gain gradient, shortened to at most 5
//   y        <- y + velocity
//
// where the attractive part of the gradient is multiplied by x.
#pragma once

#include "base/types.hpp"

#include <cmath>

namespace vicinal {

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
