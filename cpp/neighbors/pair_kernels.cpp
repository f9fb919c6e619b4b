// Compiled once per level with VICINAL_LEVEL set.
#include "neighbors/pair_kernels.hpp"

#include "neighbors/pair_terms.hpp"
#include "neighbors/sparse_search.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

float rank_dense_any(const float* x, const float* y, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() { return static_cast<float>(rank_dense<T>(x, y, rule)); });
}

float rank_sparse_any(const SparseView& heads, Size head, const SparseView& tails, Size tail, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() {
        const double apart = heads.is_flat(head) != tails.is_flat(tail) ? 1.0 : 0.0;
        const double rank = rank_sparse<T>(sparse_row(heads, head), sparse_row(tails, tail), rule) + apart;
        return static_cast<float>(rank > 0.0 ? rank : 0.0);
    });
}

}  // namespace

const PairKernels pair_kernels{
    .rank_dense = rank_dense_any,
    .rank_sparse = rank_sparse_any,
    .sparse_nearest = sparse_nearest,
    .sum_alone = sum_alone,
};

}  // namespace vicinal::VICINAL_LEVEL
