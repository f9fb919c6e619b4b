// Compiled once a level with VICINAL_LEVEL set; exports pair_kernels() in the level's namespace.
#include "kernels.hpp"
#include "pair_terms.hpp"
#include "sparse_search.hpp"

namespace vicinal::VICINAL_LEVEL {

namespace {

float rank_dense_any(const float* x, const float* y, const PairRule& rule) {
    return with_terms(rule.terms, [&]<class T>() { return static_cast<float>(rank_dense<T>(x, y, rule)); });
}

}  // namespace

void pair_kernels(Kernels& out) {
    out.rank_dense = rank_dense_any;
    out.sparse_nearest = sparse_nearest;
    out.sum_alone = sum_alone;
}

}  // namespace vicinal::VICINAL_LEVEL
