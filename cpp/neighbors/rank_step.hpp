// How a column adds to the ranking value of a pair of rows (metric_table.hpp), and how partial values are merged.
#pragma once

#include "base/simd.hpp"
#include "neighbors/metric_table.hpp"

#include <cmath>

namespace vicinal::VICINAL_LEVEL {

struct Squared {
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) {
        const Float t = x - y;
        return multiply_add(t, t, sum);
    }
    static VICINAL_INLINE float merge(float x, float y) { return x + y; }
};

struct Absolute {
    static VICINAL_INLINE Float step(Float sum, Float x, Float y) { return sum + abs(x - y); }
    static VICINAL_INLINE float merge(float x, float y) { return x + y; }
};

struct Maximum {
    static VICINAL_INLINE Float step(Float most, Float x, Float y) { return max(most, abs(x - y)); }
    static VICINAL_INLINE float merge(float x, float y) { return x > y ? x : y; }
};

// The scale of a row for cosine and, centered, for correlation.
VICINAL_INLINE RowScale row_scale(const float* x, Size cols, bool centered) {
    double mean = 0.0, length2 = 0.0;
    if (centered) {
        for (Size k = 0; k < cols; ++k) mean += x[k];
        mean /= static_cast<double>(cols);
    }
    for (Size k = 0; k < cols; ++k) length2 += (x[k] - mean) * (x[k] - mean);
    // If a row is so short that its inverse length overflows float32, it has no direction.
    const double scale = length2 > 1e-72 ? 1.0 / std::sqrt(length2) : 0.0;
    return {static_cast<float>(mean), static_cast<float>(scale)};
}

}  // namespace vicinal::VICINAL_LEVEL
