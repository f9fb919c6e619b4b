// The part of an edge in densMAP's term (density_term.hpp).
#pragma once

#include "base/simd.hpp"
#include "layout/density_task.hpp"

namespace vicinal::VICINAL_LEVEL {

constexpr float density_smallest_d2 = 1e-12f;

VICINAL_INLINE Float density_affinity(const DensityTask& density, Float d2) {
    return 1.0f / (1.0f + density.a * pow(max(d2, splat<Float>(density_smallest_d2)), density.b));
}

// The coefficient of (y_i - y_j), from the sums a and b of the (A, B) of both ends.
VICINAL_INLINE Float density_slope(const DensityTask& density, Float a, Float b, Float q, Float squared) {
    const Float d2 = max(squared, splat<Float>(density_smallest_d2)), steep = density.b * (1.0f - q);
    return (2.0f * density.scale) * q * (a * steep / d2 + b * (1.0f - steep));
}

// The largest part of an edge that fires at this rate.
VICINAL_INLINE Float density_limit(const DensityTask& density, UInt rate) {
    return density.bound * to_float(bits_as<Int>(rate >> 1));
}

}  // namespace vicinal::VICINAL_LEVEL
