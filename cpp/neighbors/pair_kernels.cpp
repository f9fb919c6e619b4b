// Compiled once per level with VICINAL_LEVEL set.
#include "neighbors/pair_kernels.hpp"

#include "neighbors/pair_terms.hpp"
#include "neighbors/sparse_search.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

float rank_dense_any(const float* x, const float* y, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() { return static_cast<float>(rank_dense<T>(x, y, rule)); });
}

}  // namespace

const PairKernels pair_kernels{
    .rank_dense = rank_dense_any,
    .sparse_nearest = sparse_nearest,
    .sum_alone = sum_alone,
};

}  // namespace vicinal::VICINAL_LEVEL
