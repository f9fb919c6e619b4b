// The edges of one row of a symmetric graph, from its directed memberships and those towards it. The rule for a pair is
//
//   FuzzyMix  p_ij = mix * (p_{j|i} + p_{i|j} - p_{j|i} p_{i|j}) + (1 - mix) * p_{j|i} p_{i|j}    (survey eq. 4),
//             mix = 1 is the fuzzy union, mix = 0 the fuzzy intersection;
//   Mean      p_ij = (p_{j|i} + p_{i|j}) / 2                                                      (eq. 19 times n).
#pragma once

#include "base/types.hpp"

namespace vicinal {

struct FuzzyMix {
    float mix;
    float operator()(float p, float q) const {
        const float product = p * q;
        return mix * (p + q - product) + (1.0f - mix) * product;
    }
};

struct Mean {
    float operator()(float p, float q) const { return 0.5f * (p + q); }
};

struct DirectedEdge {
    Index to;
    float p;
};

// Calls emit(j, w) for every edge of one row. [x, x_end) are the edges from the row, [y, y_end) those to it, both in
// ascending order.
template <class Combine, class Emit>
void merge_directions(const DirectedEdge* x, const DirectedEdge* x_end, const DirectedEdge* y,
                      const DirectedEdge* y_end, const Combine& combine, const Emit& emit) {
    while (x != x_end || y != y_end) {
        const bool take_x = y == y_end || (x != x_end && x->to <= y->to);
        const bool take_y = x == x_end || (y != y_end && y->to <= x->to);
        const Index j = take_x ? x->to : y->to;
        const float p = take_x ? (x++)->p : 0.0f, q = take_y ? (y++)->p : 0.0f;
        const float w = combine(p, q);
        if (w > 0.0f) emit(j, w);
    }
}

}  // namespace vicinal
