#include "neighbors/sparse_index.hpp"

#include "neighbors/neighbor_kernels.hpp"

namespace vicinal {

namespace {

// Up to this many columns per entry, every column has a list.
constexpr Size most_columns_per_entry = 8, few_columns = Size{1} << 16;

// The columns that some row stores, ascending.
std::vector<Index> stored_columns(const Csr& csr) {
    std::vector<Index> columns(csr.indices, csr.indices + csr.indptr[csr.rows]);
    std::sort(columns.begin(), columns.end());
    columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
    return columns;
}

}  // namespace

SparseRows::SparseRows(SparseMatrix rows, Preparation preparation) : view_{rows.rows, rows.cols} {
    if (preparation == Preparation::none) return;
    const Csr& csr = rows.rows;
    prepared_.resize(static_cast<std::size_t>(csr.indptr[csr.rows]));
    flat_.resize(static_cast<std::size_t>(csr.rows));
    for (Size i = 0; i < csr.rows; ++i) {
        const Size begin = csr.indptr[i], end = csr.indptr[i + 1];
        double mean = 0.0;
        if (preparation == Preparation::centered_unit) {
            for (Size e = begin; e < end; ++e) mean += csr.weights[e];
            mean /= static_cast<double>(rows.cols);
        }
        double length2 = static_cast<double>(rows.cols - (end - begin)) * mean * mean;
        for (Size e = begin; e < end; ++e) length2 += (csr.weights[e] - mean) * (csr.weights[e] - mean);
        const double scale = length2 > 1e-72 ? 1.0 / std::sqrt(length2) : 0.0;
        flat_[i] = scale == 0.0 ? 1 : 0;
        // The mean is not subtracted, because that would make the row dense. Centered terms subtract it from the
        // difference instead (pair_terms.hpp).
        for (Size e = begin; e < end; ++e) prepared_[e] = static_cast<float>(csr.weights[e] * scale);
    }
    view_.csr.weights = prepared_.data();
    view_.flat = flat_.data();
}

SparseIndex::SparseIndex(SparseMatrix rows, const MetricRule& metric, double power, ThreadTeam& team)
    : metric_(metric), rule_{metric.terms, power, rows.cols}, rows_(rows, metric.preparation) {
    const Csr& csr = rows_.view().csr;
    const Size n = csr.rows, entries = csr.indptr[n];
    const bool compact = rows.cols > few_columns && rows.cols / most_columns_per_entry > entries;
    if (compact) column_ = stored_columns(csr);
    const Size lists = compact ? static_cast<Size>(column_.size()) : rows.cols;
    const auto list_of = [&](Index column) -> Size {
        return compact ? std::lower_bound(column_.begin(), column_.end(), column) - column_.begin() : column;
    };
    begin_.assign(static_cast<std::size_t>(lists + 1), 0);
    for (Size e = 0; e < entries; ++e) ++begin_[list_of(csr.indices[e]) + 1];
    for (Size c = 0; c < lists; ++c) begin_[c + 1] += begin_[c];
    row_.resize(static_cast<std::size_t>(entries));
    value_.resize(static_cast<std::size_t>(entries));
    std::vector<Size> next(begin_.begin(), begin_.end() - 1);
    for (Size i = 0; i < n; ++i)
        for (Size e = csr.indptr[i]; e < csr.indptr[i + 1]; ++e) {
            const Size at = next[list_of(csr.indices[e])]++;
            row_[at] = static_cast<Index>(i);
            value_[at] = csr.weights[e];
        }
    alone_.assign(static_cast<std::size_t>(n * most_sums), 0.0);
    neighbor_kernels().sum_alone(rows_.view(), rule_, alone_.data(), team);
    postings_ = {
        begin_.data(), compact ? column_.data() : nullptr, lists, row_.data(), value_.data(), alone_.data(), n};
}

bool SparseIndex::additive() const { return metric_.terms != Terms::maximum && metric_.terms != Terms::power; }

double SparseIndex::additions() const {
    double total = 0.0;
    for (std::size_t c = 0; c + 1 < begin_.size(); ++c) {
        const auto length = static_cast<double>(begin_[c + 1] - begin_[c]);
        total += length * length;
    }
    return total;
}

void SparseIndex::finish(float* distance, Size n) const {
    for (Size e = 0; e < n; ++e) distance[e] = finish_distance(metric_.finish, distance[e]);
}

void SparseIndex::search(Size k, Size budget, Size pool, Index* index, float* distance, ThreadTeam& team) const {
    const Size n = rows().csr.rows;
    SparseTask task{rows(), rows(), rule_, true, k - 1, index + 1, distance + 1, k, budget, pool};
    if (k > 1) neighbor_kernels().sparse_nearest(postings_, task, team);
    for (Size i = 0; i < n; ++i) {
        index[i * k] = static_cast<Index>(i);
        distance[i * k] = 0.0f;
    }
    finish(distance, n * k);
}

void SparseIndex::query(SparseMatrix queries, Size k, Size budget, Size pool, Index* index, float* distance,
                        ThreadTeam& team) const {
    const SparseRows heads(queries, metric_.preparation);
    SparseTask task{heads.view(), rows(), rule_, false, k, index, distance, k, budget, pool};
    neighbor_kernels().sparse_nearest(postings_, task, team);
    finish(distance, queries.rows.rows * k);
}

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

std::unique_ptr<GrowingSparseRows> GrowingSparseRows::taken(const Index* rows, Size n) const {
    auto out = std::make_unique<GrowingSparseRows>(cols_, metric_);
    for (Size i = 0; i < n; ++i) {
        const Size begin = indptr_[rows[i]], entries = indptr_[rows[i] + 1] - begin;
        out->indices_.append(indices_.data() + begin, entries);
        out->values_.append(values_.data() + begin, entries);
        if (flat_.size() > 0) out->flat_.push(flat_[rows[i]]);
        out->indptr_.push(out->indices_.size());
    }
    return out;
}

float SparsePairs::rank(Size head, Size tail) const {
    const float rank = neighbor_kernels().rank_sparse(heads_.view(), head, tails_.view(), tail, rule_);
    return finish_distance(tails_.metric().finish, rank);
}

}  // namespace vicinal
