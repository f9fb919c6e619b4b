// What the density term reads and writes. Plain data shared by every instruction-set level.
#pragma once

#include "layout/layout_task.hpp"

namespace vicinal {

// Radii of all rows in two numbers each, and what they add up to (density_term.hpp).
struct DensitySummary {
    double mean = 0.0;        // of r_q
    double variance = 1.0;    // of r_q, plus the shift
    double covariance = 0.0;  // of r_q with the standardised r_p
    double strength = 0.0;    // firings of all edges in a sweep, over n - 1
};

struct DensityTask {
    float a = 1.0f, b = 1.0f;
    float scale = 0.0f;                 // lambda * strength / standard deviation of r_q
    float bound = 0.0f;                 // of an edge's part, for half a unit of its rate
    const float* target = nullptr;      // standardised r_p; NaN for a row without neighbours
    double* log_radius = nullptr;       // r_q
    double* mass = nullptr;             // sum of q over a row's edges
    float* affinity = nullptr;          // q of every edge
    float* share = nullptr;             // (A, B) of every row of the reference; null when the reference is frozen
    const float* head_share = nullptr;  // (A, B) of every head
    float* moves = nullptr;             // [n][dim], of the gradient, without the learning rate
};

// Room for one row's edges.
struct DensityScratch {
    float* d2;
    float* affinity;
    float* part;  // [dim][edges]
    Size stride;  // the most edges of a row, plus most_lanes
};

}  // namespace vicinal
