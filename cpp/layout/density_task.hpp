// Arguments of the density kernels. Plain data shared by all levels.
#pragma once

#include "layout/layout_task.hpp"

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

}  // namespace vicinal
