// All metrics: how a row is prepared, which value ranks pairs, and how this value becomes the distance that users see.
// Ranking values keep the order of the distances, but have no square roots.
//
//   metric         prepared row          ranking value      distance
//   euclidean      x                     sum (x-y)^2        sqrt(r)
//   sqeuclidean    x                     sum (x-y)^2        r
//   cosine         x / |x|               sum (x-y)^2        r / 2      = 1 - cos(x, y)
//   correlation    (x - mean) / |.|      sum (x-y)^2        r / 2      = 1 - pearson(x, y)
//   hellinger      x / |x|, x roots      sum (x-y)^2        sqrt(r / 2)
//   haversine      x on the unit sphere  sum (x-y)^2        2 asin(sqrt(r) / 2)
//   manhattan      x                     sum |x-y|          r
//   chebyshev      x                     max |x-y|          r
//   bit_hamming    bits                  sum (x-y)^2        r
//   others         x                     a function of sums over the columns, without a lower bound from a sketch
//                                        (pair_terms.hpp), or a function of two rows
//
// Half the squared distance of unit vectors keeps the precision that 1 - x.y loses for nearly parallel rows. A row of
// norm 0 has no direction; it gets an additional coordinate, so that its distance to other rows is 1 and to another
// such row 0, as in scikit-learn. Square roots, positions on the sphere and all other transformations of rows that
// turn one metric into another are done in Python.
#pragma once

#include "base/types.hpp"

#include <cmath>

namespace vicinal {

// The first three have lower bounds from a part of the columns, so they can be sketched; `pairs` must be evaluated.
enum class Ranking { squared, absolute, maximum, pairs };
enum class Preparation { none, unit, centered_unit };
enum class Finish { identity, root, half, half_root, arc };

// Sums over the columns of two rows for metrics that cannot be sketched, and for sparse rows (pair_terms.hpp).
enum class Terms {
    squared,
    centered,
    absolute,
    maximum,
    power,
    canberra,
    braycurtis,
    present,
    hamming,
    jaccard,
    dice,
    matching,
    kulsinski,
    rogerstanimoto,
    russellrao,
    sokalsneath,
    yule,
    bit_jaccard,
    dirichlet
};

struct MetricRule {
    const char* name;
    Preparation preparation;
    Ranking ranking;
    Finish finish;
    Terms terms;          // for dense rows only if the ranking is by pairs; for sparse rows always
    bool packed = false;  // rows of bytes hold eight columns, bits, per byte
};

constexpr MetricRule metric_table[] = {
    {"euclidean", Preparation::none, Ranking::squared, Finish::root, Terms::squared},
    {"sqeuclidean", Preparation::none, Ranking::squared, Finish::identity, Terms::squared},
    {"cosine", Preparation::unit, Ranking::squared, Finish::half, Terms::squared},
    {"correlation", Preparation::centered_unit, Ranking::squared, Finish::half, Terms::centered},
    {"hellinger", Preparation::unit, Ranking::squared, Finish::half_root, Terms::squared},
    {"haversine", Preparation::none, Ranking::squared, Finish::arc, Terms::squared},
    {"manhattan", Preparation::none, Ranking::absolute, Finish::identity, Terms::absolute},
    {"chebyshev", Preparation::none, Ranking::maximum, Finish::identity, Terms::maximum},
    {"minkowski", Preparation::none, Ranking::pairs, Finish::identity, Terms::power},
    {"canberra", Preparation::none, Ranking::pairs, Finish::identity, Terms::canberra},
    {"braycurtis", Preparation::none, Ranking::pairs, Finish::identity, Terms::braycurtis},
    {"nan_euclidean", Preparation::none, Ranking::pairs, Finish::root, Terms::present},
    {"hamming", Preparation::none, Ranking::pairs, Finish::identity, Terms::hamming},
    {"jaccard", Preparation::none, Ranking::pairs, Finish::identity, Terms::jaccard},
    {"dice", Preparation::none, Ranking::pairs, Finish::identity, Terms::dice},
    {"matching", Preparation::none, Ranking::pairs, Finish::identity, Terms::matching},
    {"kulsinski", Preparation::none, Ranking::pairs, Finish::identity, Terms::kulsinski},
    {"rogerstanimoto", Preparation::none, Ranking::pairs, Finish::identity, Terms::rogerstanimoto},
    {"russellrao", Preparation::none, Ranking::pairs, Finish::identity, Terms::russellrao},
    {"sokalmichener", Preparation::none, Ranking::pairs, Finish::identity, Terms::rogerstanimoto},
    {"sokalsneath", Preparation::none, Ranking::pairs, Finish::identity, Terms::sokalsneath},
    {"yule", Preparation::none, Ranking::pairs, Finish::identity, Terms::yule},
    {"ll_dirichlet", Preparation::none, Ranking::pairs, Finish::identity, Terms::dirichlet},
    {"bit_hamming", Preparation::none, Ranking::squared, Finish::identity, Terms::squared, true},
    {"bit_jaccard", Preparation::none, Ranking::pairs, Finish::identity, Terms::bit_jaccard, true},
    // A function of the caller; its value is the distance.
    {"function", Preparation::none, Ranking::pairs, Finish::identity, Terms::squared},
};

inline float finish_distance(Finish finish, float rank) {
    switch (finish) {
    case Finish::root: return std::sqrt(rank);
    case Finish::half: return 0.5f * rank;
    case Finish::half_root: return std::sqrt(0.5f * rank);
    case Finish::arc: return 2.0f * std::asin(std::fmin(0.5f * std::sqrt(rank), 1.0f));
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
