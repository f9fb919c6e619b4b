#include "neighbors/sparse_pairs.hpp"

#include "neighbors/pair_kernels.hpp"

namespace vicinal {

void GrowingSparseRows::append(const Csr& rows) {
    const SparseRows prepared({rows, cols_}, metric_.preparation);
    const SparseView& given = prepared.view();
    const Size n = this->rows(), before = indices_.size(), entries = rows.indptr[rows.rows];
    indptr_.reserve(n + rows.rows + 1);
    indices_.reserve(before + entries);
    values_.reserve(before + entries);
    if (given.flat != nullptr) flat_.reserve(n + rows.rows);
    indices_.append(given.csr.indices, entries);
    values_.append(given.csr.weights, entries);
    if (given.flat != nullptr) flat_.append(given.flat, rows.rows);
    for (Size i = 1; i <= rows.rows; ++i) indptr_.push(before + rows.indptr[i]);
}

void GrowingSparseRows::truncate(Size n) {
    if (n >= rows()) return;
    indices_.resize(indptr_[n]);
    values_.resize(indptr_[n]);
    if (flat_.size() > 0) flat_.resize(n);
    indptr_.resize(n + 1);
}

float SparsePairs::rank(Size head, Size tail) const {
    const float rank = pair_kernels().rank_sparse(heads_.view(), head, tails_.view(), tail, rule_);
    return finish_distance(tails_.metric().finish, rank);
}

}  // namespace vicinal
