// Attractive and repulsive forces of the sampled methods, as coefficients of (y_i - y_j): a gradient step of a cost c
// moves y_i by -eta * coefficient * (y_i - y_j).
//
//   UMAP (survey eq. 12, 13; q = 1/(1 + a d^{2b})):
//     attract = 2ab d^{2(b-1)} / (1 + a d^{2b})            of  c^a = -ln q
//     repel   = -2b gamma / ((eps + d^2)(1 + a d^{2b}))    of  c^r = -gamma ln(1 - q)
//
//   LargeVis (eq. 21, 23; q = 1/(1 + d^2)):
//     attract = 2 / (1 + d^2)                              of  -ln q
//     repel   = -2 gamma / ((eps + d^2)(1 + d^2))          of  -gamma ln(1 - q), eps larger than in eq. 13
//
// One power is enough: d^{2(b-1)} = d^{2b} / d^2. d^2 has a lower bound so that d^{2(b-1)} cannot overflow; below it,
// the difference vector is so short that the step vanishes.
#pragma once

#include "base/simd.hpp"
#include "layout/layout_task.hpp"

namespace vicinal::VICINAL_LEVEL {

constexpr float repulsion_epsilon = 1e-3f;  // eq. 13
constexpr float smallest_d2 = 1e-12f;

struct UmapForce {
    float a, b, gamma;

    explicit UmapForce(const ForceParameters& p) : a(p.a), b(p.b), gamma(p.gamma) {}

    VICINAL_INLINE Float attract(Float d2) const {
        d2 = max(d2, splat<Float>(smallest_d2));
        const Float ap = a * pow(d2, b);
        return (2.0f * b) * ap / (d2 * (1.0f + ap));
    }

    VICINAL_INLINE Float repel(Float d2) const {
        const Float ap = a * pow(max(d2, splat<Float>(smallest_d2)), b);
        return (-2.0f * b * gamma) / ((repulsion_epsilon + d2) * (1.0f + ap));
    }
};

// Near negatives push with gamma / eps. With LargeVis' gamma of 7 and the eps of eq. 13, each of these pushes would be
// as long as the clipping bound. The authors' program adds 0.1.
constexpr float largevis_epsilon = 0.1f;

struct LargeVisForce {
    float gamma;

    explicit LargeVisForce(const ForceParameters& p) : gamma(p.gamma) {}

    VICINAL_INLINE Float attract(Float d2) const { return 2.0f / (1.0f + d2); }
    VICINAL_INLINE Float repel(Float d2) const { return (-2.0f * gamma) / ((largevis_epsilon + d2) * (1.0f + d2)); }
};

// Calls f(force) with the force of the parameters.
template <class F>
void with_force(const ForceParameters& parameters, const F& f) {
    switch (parameters.kind) {
#define VICINAL_CASE(name, type) \
    case ForceKind::name: return f(type(parameters));
        VICINAL_FORCES(VICINAL_CASE)
#undef VICINAL_CASE
    }
}

}  // namespace vicinal::VICINAL_LEVEL
