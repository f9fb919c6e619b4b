// Every metric once: how a row is prepared, what is compared while ranking, and how a ranking value
// becomes the distance a user sees. Ranking skips whatever keeps the order (the square root).
//
//   metric         prepared row          ranking value      distance
//   euclidean      x                     sum (x-y)^2        sqrt(r)
//   sqeuclidean    x                     sum (x-y)^2        r
//   cosine         x / |x|               sum (x-y)^2        r / 2      = 1 - cos(x, y)
//   correlation    (x - mean) / |.|      sum (x-y)^2        r / 2      = 1 - pearson(x, y)
//   manhattan      x                     sum |x-y|          r
//   chebyshev      x                     max |x-y|          r
//
// Half the squared distance of unit vectors keeps the digits that 1 - x.y loses for near-parallel rows.
// A row of norm 0 has no direction; it gets a coordinate of its own, so that its distance to every other
// row is 1 and to another such row 0, as in scikit-learn.
#pragma once

#include "types.hpp"

#include <cmath>

namespace vicinal {

enum class Ranking { squared, absolute, maximum };
enum class Preparation { none, unit, centred_unit };
enum class Finish { identity, root, half };

struct MetricRule {
    const char* name;
    Preparation preparation;
    Ranking ranking;
    Finish finish;
};

constexpr MetricRule metric_table[] = {
    {"euclidean", Preparation::none, Ranking::squared, Finish::root},
    {"sqeuclidean", Preparation::none, Ranking::squared, Finish::identity},
    {"cosine", Preparation::unit, Ranking::squared, Finish::half},
    {"correlation", Preparation::centred_unit, Ranking::squared, Finish::half},
    {"manhattan", Preparation::none, Ranking::absolute, Finish::identity},
    {"chebyshev", Preparation::none, Ranking::maximum, Finish::identity},
};

inline float finish_distance(Finish finish, float rank) {
    switch (finish) {
    case Finish::root: return std::sqrt(rank);
    case Finish::half: return 0.5f * rank;
    case Finish::identity: break;
    }
    return rank;
}

// The prepared row is (x - shift) * scale; scale 0 marks a row without direction.
struct RowScale {
    float shift = 0.0f;
    float scale = 1.0f;
};

}  // namespace vicinal
