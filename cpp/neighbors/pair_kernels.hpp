// Hot code of metrics that are sums over the columns of a pair (pair_terms.hpp), one table per instruction-set level
// (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "neighbors/sparse_index.hpp"

namespace vicinal {

struct PairKernels {
    float (*rank_dense)(const float* x, const float* y, const PairRule& rule);
    float (*rank_sparse)(const SparseView& heads, Size head, const SparseView& tails, Size tail, const PairRule& rule);
    void (*sparse_nearest)(const Postings& postings, const SparseTask& task, ThreadTeam& team);
    void (*sum_alone)(const SparseView& rows, const PairRule& rule, double* out, ThreadTeam& team);
};

VICINAL_KERNELS(PairKernels, pair_kernels)

}  // namespace vicinal
