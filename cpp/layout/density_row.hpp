// densMAP's term (density_term.hpp): the arguments of its kernels, sums over the radii of all rows, and the two numbers
// (A, B) that a row adds to the gradient.
//
// Sums are in double precision and in a fixed order, so that the CPU and a GPU have the same bits: rows are added up in
// chunks of density_chunk_rows, and the chunks in their order.
#pragma once

#include "base/elementary.hpp"
#include "layout/layout_task.hpp"

#include <algorithm>
#include <cmath>

namespace vicinal {

// Sums over the radii of all rows (density_term.hpp).
struct DensitySummary {
    double mean = 0.0;        // of r_q
    double variance = 1.0;    // of r_q, plus the shift
    double covariance = 0.0;  // of r_q with the standardized r_p
    double strength = 0.0;    // firings of all edges per sweep, divided by n - 1
};

struct DensityTask {
    float a = 1.0f, b = 1.0f;
    float scale = 0.0f;                 // lambda * strength / standard deviation of r_q
    float bound = 0.0f;                 // of the part of an edge, per two units of its rate
    const float* target = nullptr;      // standardized r_p; NaN for a row without neighbors
    double* log_radius = nullptr;       // r_q
    double* mass = nullptr;             // sum of q over the edges of a row
    float* affinity = nullptr;          // q of every edge
    const float* share = nullptr;       // (A, B) of every row of the reference; null if the reference is frozen
    const float* head_share = nullptr;  // (A, B) of every head
    float* moves = nullptr;             // [n][dim], the gradient without the learning rate
};

// Working memory for the edges of one row.
struct DensityScratch {
    float* d2;
    float* affinity;
    float* part;  // [dim][edges]
    Size stride;  // largest number of edges of a row, plus most_lanes
};

constexpr Size density_chunk_rows = 256;
constexpr double radius_epsilon = 1e-8;  // added under the logarithm, as in umap-learn; in squared units of the map
constexpr double smallest_variance = 1e-12;

// r_q of a row: `mass` is the sum of q over its edges, `moment` that of q d^2.
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
