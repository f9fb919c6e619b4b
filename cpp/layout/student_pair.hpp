// Student's kernel of t-SNE (survey eq. 20) of a pair of points.
//
//   w(d^2) = (1 + d^2/dof)^(-(dof+1)/2)         one degree of freedom: 1/(1 + d^2)
//   phi_i  = sum over j of w(d_ij^2)            the potential; Z = sum over i of phi_i
//   dc4/dy_i = 2 (dof+1)/dof * sum over j of p_ij (y_i - y_j)/(1 + d_ij^2/dof)  +  2/Z * dphi_i/dy_i     (of eq. 22)
//
// The attractive sum needs no power for any dof, and the repulsive sum is the gradient of one potential, so a grid
// needs only one number per node (grid_interpolation.hpp).
#pragma once

#include "base/simd.hpp"
#include "layout/full_layout_task.hpp"

namespace vicinal::VICINAL_LEVEL {

// The coefficient of (y_i - y_j) in the attraction of an edge.
VICINAL_INLINE Float attraction(Float weight, Float d2, float per_dof) { return weight / (1.0f + d2 * per_dof); }

// w of a pair, and the factor that makes it the coefficient of (y_i - y_j) in the repulsion.
template <bool Cauchy>
struct StudentPair {
    Float inverse, weight;

    VICINAL_INLINE StudentPair(Float d2, float per_dof, float power) {
        const Float s = 1.0f + d2 * per_dof;
        inverse = 1.0f / s;
        weight = Cauchy ? inverse : pow(s, power);
    }
};

// Any number of components, one edge at a time: such maps are small.
VICINAL_INLINE void attract_row_of_any_width(const AttractTask& t, Size i) {
    const float* y = t.heads + i * t.dim;
    float* pull = t.pull + i * t.dim;
    for (Size c = 0; c < t.dim; ++c) pull[c] = 0.0f;
    for (Size e = t.start[i]; e < t.start[i + 1]; ++e) {
        const float* z = t.sources + t.tails[e] * t.dim;
        float d2 = 0.0f;
        for (Size c = 0; c < t.dim; ++c) d2 += (y[c] - z[c]) * (y[c] - z[c]);
        const float coefficient = t.weights[e] / (1.0f + d2 / t.dof);
        for (Size c = 0; c < t.dim; ++c) pull[c] += coefficient * (y[c] - z[c]);
    }
}

}  // namespace vicinal::VICINAL_LEVEL
