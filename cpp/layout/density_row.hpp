// Sums over the radii of rows, and what a row adds to the gradient of densMAP's term (density_term.hpp). In double
// precision and in a fixed order, so that the CPU and a GPU have the same bits: rows are added up in chunks of
// density_chunk_rows, and the chunks in their order.
#pragma once

#include "base/elementary.hpp"
#include "layout/density_task.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal {

constexpr Size density_chunk_rows = 256;
constexpr double radius_epsilon = 1e-8;  // added under the logarithm, as in umap-learn; in squared units of the map
constexpr double smallest_variance = 1e-12;

// r_q of a row with so many edges, whose q sum up to `mass` and q d^2 to `moment`.
VICINAL_INLINE double log_radius_of(Size edges, double mass, double moment) {
    return log_exact(radius_epsilon + (edges > 0 ? moment / mass : 0.0));
}

// Two sums over rows.
struct RowSums {
    double first = 0.0, second = 0.0;
};

// The number of rows that are not excluded, and the sum of their r_q, for rows [begin, end).
VICINAL_INLINE RowSums sum_radii(const float* target, const double* log_radius, Size begin, Size end) {
    RowSums sums;
    for (Size i = begin; i < end; ++i) {
        if (std::isnan(target[i])) continue;
        sums.first += 1.0;
        sums.second += log_radius[i];
    }
    return sums;
}

VICINAL_INLINE double mean_radius(const RowSums& sums) { return sums.first > 0.0 ? sums.second / sums.first : 0.0; }

// The squares of r_q - mean, and its products with the standardized r_p.
VICINAL_INLINE RowSums sum_deviations(const float* target, const double* log_radius, double mean, Size begin,
                                      Size end) {
    RowSums sums;
    for (Size i = begin; i < end; ++i) {
        if (std::isnan(target[i])) continue;
        const double apart = log_radius[i] - mean;
        sums.first += apart * apart;
        sums.second += apart * target[i];
    }
    return sums;
}

VICINAL_INLINE DensitySummary summarized(const RowSums& radii, const RowSums& deviations, double variance_shift,
                                         double strength) {
    const double others = std::max(radii.first - 1.0, 1.0);
    return {mean_radius(radii), std::max(deviations.first / others + variance_shift, smallest_variance),
            deviations.second / others, strength};
}

// (A, B) of a row; 0 for an excluded one.
VICINAL_INLINE void share_of_row(const DensitySummary& summary, float target, double log_radius, double mass,
                                 float* share) {
    double a = 0.0, b = 0.0;
    if (!std::isnan(target) && mass > 0.0) {
        const double pull = summary.covariance * (log_radius - summary.mean) / summary.variance;
        a = (target - pull) / mass;
        b = a * exp_exact(-log_radius);
    }
    share[0] = static_cast<float>(a);
    share[1] = static_cast<float>(b);
}

// The factor of the gradient: a frozen reference pulls once, a fit twice.
VICINAL_INLINE float density_scale(const DensitySummary& summary, int pulls, float lambda) {
    return static_cast<float>(pulls / 2.0 * lambda * summary.strength / std::sqrt(summary.variance));
}
VICINAL_INLINE float density_bound(int pulls) { return static_cast<float>(pulls) * gradient_bound / 2147483648.0f; }

}  // namespace vicinal
