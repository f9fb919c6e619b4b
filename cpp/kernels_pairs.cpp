// Compiled once a level with VICINAL_LEVEL set; exports pair_kernels() in the level's namespace.
#include "kernels.hpp"
#include "pair_terms.hpp"
#include "rng.hpp"
#include "sparse_search.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

float rank_dense_any(const float* x, const float* y, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() { return static_cast<float>(rank_dense<T>(x, y, rule)); });
}

float rank_sparse_any(const SparseView& heads, Size head, const SparseView& tails, Size tail, const PairRule& rule) {
    const double rank = with_terms(
        rule.terms, [&]<class T>() { return rank_sparse<T>(sparse_row(heads, head), sparse_row(tails, tail), rule); });
    const double apart = heads.is_flat(head) != tails.is_flat(tail) ? 1.0 : 0.0;
    return static_cast<float>(rank > 0.0 ? rank + apart : apart);
}

}  // namespace

void pair_kernels(Kernels& out) {
    out.rank_dense = rank_dense_any;
    out.rank_sparse = rank_sparse_any;
    out.sparse_nearest = sparse_nearest;
    out.sum_alone = sum_alone;
    out.sketch_sparse = sketch_sparse;
}

}  // namespace vicinal::VICINAL_LEVEL
