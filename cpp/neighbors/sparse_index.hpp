// Sparse rows prepared for searches: by their metric, and with lists of the rows that store each column. Sparse rows
// that arrive over time grow at their end, and their pairs are evaluated one by one.
#pragma once

#include "base/growing_array.hpp"
#include "base/parallel.hpp"
#include "neighbors/pair_metric.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace vicinal {

// Sparse rows with `cols` columns; indices ascend within a row.
struct SparseMatrix {
    Csr rows;
    Size cols = 0;
};

// Sparse rows as a metric compares them: divided by their length if the metric requires it.
struct SparseView {
    Csr csr;
    Size cols = 0;
    const std::uint8_t* flat = nullptr;  // whether a row has no direction (metric_table.hpp); null if all have one

    VICINAL_INLINE bool is_flat(Size i) const { return flat != nullptr && flat[i] != 0; }
};

class SparseRows {
  public:
    // Keeps a view of the arrays, which must outlive this object.
    SparseRows(SparseMatrix rows, Preparation preparation);
    const SparseView& view() const { return view_; }

  private:
    SparseView view_;
    std::vector<float> prepared_;
    std::vector<std::uint8_t> flat_;
};

constexpr int most_sums = 5;  // of any metric (pair_terms.hpp)

// For every column, the rows that store it, ascending, with their values. If there are far more columns than entries,
// only the columns that some row stores have a list: memory depends on the entries, not on the width.
struct Postings {
    const Size* begin = nullptr;    // [lists + 1]
    const Index* column = nullptr;  // [lists], ascending; null if list c is that of column c
    Size lists = 0;
    const Index* row = nullptr;
    const float* value = nullptr;
    const double* alone = nullptr;  // [rows][most_sums]: the part of a row where the other row is 0
    Size rows = 0;

    struct List {
        Size begin, end;
        VICINAL_INLINE Size length() const { return end - begin; }
    };
    VICINAL_INLINE List list(Index wanted) const {
        Size at = wanted;
        if (column != nullptr) {
            at = std::lower_bound(column, column + lists, wanted) - column;
            if (at == lists || column[at] != wanted) return {0, 0};
        }
        return {begin[at], begin[at + 1]};
    }
};

struct SparseTask {
    SparseView heads, tails;
    PairRule rule;
    bool itself = false;  // heads are the tails, and a row is not its own neighbor
    Size k = 0;
    Index* index = nullptr;  // [heads][stride]; the first k are written
    float* rank = nullptr;
    Size stride = 0;
    // With a budget, a row adds at most this many entries of lists and evaluates the `pool` best rows found.
    Size budget = 0, pool = 0;
};

class SparseIndex {
  public:
    // Keeps a view of the arrays, which must outlive the index.
    SparseIndex(SparseMatrix rows, const MetricRule& metric, double power, ThreadTeam& team);

    const SparseView& rows() const { return rows_.view(); }

    // Whether all pairs can be computed from the lists, and how many additions this takes for all rows.
    bool additive() const;
    double additions() const;

    // Writes the k nearest rows of every row, itself first, [rows][k]. Exact without a budget.
    void search(Size k, Size budget, Size pool, Index* index, float* distance, ThreadTeam& team) const;
    // Writes the k nearest rows of every query, [queries][k].
    void query(SparseMatrix queries, Size k, Size budget, Size pool, Index* index, float* distance,
               ThreadTeam& team) const;

  private:
    void finish(float* distance, Size n) const;

    const MetricRule& metric_;
    const PairRule rule_;
    const SparseRows rows_;
    std::vector<Size> begin_;
    std::vector<Index> column_, row_;
    std::vector<float> value_;
    std::vector<double> alone_;
    Postings postings_;
};

// Copies of sparse rows as their metric compares them, in compressed sparse rows that grow at their end.
class GrowingSparseRows {
  public:
    GrowingSparseRows(Size cols, const MetricRule& metric) : cols_(cols), metric_(metric) { indptr_.push(0); }

    Size rows() const { return indptr_.size() - 1; }
    Size cols() const { return cols_; }
    const MetricRule& metric() const { return metric_; }
    SparseView view() const {
        return {{indptr_.data(), indices_.data(), values_.data(), rows()},
                cols_,
                flat_.size() > 0 ? flat_.data() : nullptr};
    }

    // Appends all rows or, if memory runs out, none.
    void append(const Csr& rows);
    // Removes all rows from row n on.
    void truncate(Size n);
    // Returns a copy of some rows.
    std::unique_ptr<GrowingSparseRows> taken(const Index* rows, Size n) const;

  private:
    const Size cols_;
    const MetricRule& metric_;
    GrowingArray<Size> indptr_;
    GrowingArray<Index> indices_;
    GrowingArray<float> values_;
    GrowingArray<std::uint8_t> flat_;
};

// Pairs of sparse rows that arrive over time. Their ranks are distances for every metric, because such rows are
// searched by evaluated pairs only.
class SparsePairs : public PairMetric {
  public:
    // Keeps references to the rows, which must outlive this object.
    SparsePairs(const GrowingSparseRows& heads, const GrowingSparseRows& tails, double power)
        : heads_(heads), tails_(tails), rule_{tails.metric().terms, power, tails.cols()} {}
    float rank(Size head, Size tail) const override;

  private:
    const GrowingSparseRows &heads_, &tails_;
    const PairRule rule_;
};

}  // namespace vicinal
