// The contribution of a pair of points at squared distance d^2 to a sum (loss_sums.hpp).
//
//   attract_cost  -ln q        survey eq. 8,   q = 1/(1 + a d^{2b}) (eq. 5; LargeVis, eq. 21: a = b = 1)
//   repel_cost    -ln(1 - q)   eq. 9
//   attract, repel             eq. 12, 13: coefficients of (y_i - y_j), as in a layout step (force.hpp)
//   student       (1 + d^2/dof)^{-(dof+1)/2}   the numerator of t-SNE's q, eq. 20 for dof = 1
//
// With u = a d^{2b}, -ln q = ln(1 + u) and -ln(1 - q) = ln(1 + 1/u). Neither subtracts, so distant pairs keep their
// precision. d^2 has a lower bound: the repulsive cost of coinciding points is large but finite.
#pragma once

#include "layout/force.hpp"
#include "losses/loss_task.hpp"

namespace vicinal::VICINAL_LEVEL {

// ln(1 + t) for t in [sqrt(1/2) - 1, sqrt(2) - 1], minimax with relative error 1.1e-7. The layout's log2 has one
// degree less and an error of 1e-6 near 1, which would be visible in a sum over 10^9 distant pairs.
VICINAL_INLINE Float log1p_near(Float t) {
    Float p = splat<Float>(0.08917643874883652f);
    p = p * t - 0.14350181818008423f;
    p = p * t + 0.14877021312713623f;
    p = p * t - 0.16565637290477753f;
    p = p * t + 0.19965393841266632f;
    p = p * t - 0.2500174641609192f;
    p = p * t + 0.33333858847618103f;
    const Float t2 = t * t;
    return t - (0.5f * t2 - t2 * t * p);
}

constexpr float ln_2 = 0.6931471805599453f;

// ln x for positive, normal x.
VICINAL_INLINE Float log(Float x) {
    const Int bits = bits_as<Int>(x);
    const Int exponent = (bits - 0x3f3504f3) >> 23;
    const Float t = bits_as<Float>(bits - (exponent << 23)) - 1.0f;
    return to_float(exponent) * ln_2 + log1p_near(t);
}

// ln(1 + x) for x >= 0. If the result is small, x itself is used instead of the rounded sum 1 + x.
VICINAL_INLINE Float log1p(Float x) {
    const Float sum = 1.0f + x;
    const Int bits = bits_as<Int>(sum);
    const Int exponent = (bits - 0x3f3504f3) >> 23;
    const Float rounded = bits_as<Float>(bits - (exponent << 23)) - 1.0f;
    const Float t = select(exponent == 0, x, rounded);
    return to_float(exponent) * ln_2 + log1p_near(t);
}

// u = a d^{2b}
struct PowerLaw {
    float a, b_by_ln_2;

    explicit PowerLaw(const ForceParameters& p) : a(p.a), b_by_ln_2(p.b / ln_2) {}
    VICINAL_INLINE Float operator()(Float d2) const {
        return a * exp2(log(max(d2, splat<Float>(smallest_d2))) * b_by_ln_2);
    }
};

struct AttractCost {
    PowerLaw u;
    VICINAL_INLINE Float operator()(Float d2) const { return log1p(u(d2)); }
};

struct RepelCost {
    PowerLaw u;
    VICINAL_INLINE Float operator()(Float d2) const { return log1p(1.0f / u(d2)); }
};

template <class Force>
struct Attract {
    Force force;
    VICINAL_INLINE Float operator()(Float d2) const { return force.attract(d2); }
};

template <class Force>
struct Repel {
    Force force;
    VICINAL_INLINE Float operator()(Float d2) const { return force.repel(d2); }
};

struct Cauchy {
    VICINAL_INLINE Float operator()(Float d2) const { return 1.0f / (1.0f + d2); }
};

struct Student {
    float dof;
    VICINAL_INLINE Float operator()(Float d2) const { return exp2(log1p(d2 / dof) * (-0.5f * (dof + 1.0f) / ln_2)); }
};

// Calls f(term) with the term of the quantity. New terms are added here.
template <class F>
void with_term(const PairQuantity& quantity, const F& f) {
    switch (quantity.term) {
    case PairTerm::attract_cost: return f(AttractCost{PowerLaw(quantity.force)});
    case PairTerm::repel_cost: return f(RepelCost{PowerLaw(quantity.force)});
    case PairTerm::attract:
        return with_force(quantity.force, [&]<class Force>(const Force& force) { f(Attract<Force>{force}); });
    case PairTerm::repel:
        return with_force(quantity.force, [&]<class Force>(const Force& force) { f(Repel<Force>{force}); });
    case PairTerm::student: return quantity.force.a == 1.0f ? f(Cauchy{}) : f(Student{quantity.force.a});
    }
}

}  // namespace vicinal::VICINAL_LEVEL
