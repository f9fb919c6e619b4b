// Sparse rows made searchable: prepared by their metric, and listed by column.
#pragma once

#include "base/parallel.hpp"
#include "neighbors/pair_metric.hpp"

#include <vector>

namespace vicinal {

// Sparse rows with `cols` columns; indices ascend within a row.
struct SparseMatrix {
    Csr rows;
    Size cols = 0;
};

// Sparse rows as a metric compares them: values divided by the row's length where the metric asks for it.
struct SparseView {
    Csr csr;
    Size cols = 0;
    const std::uint8_t* flat = nullptr;  // whether a row has no direction (metric_table.hpp); null: none has

    VICINAL_INLINE bool is_flat(Size i) const { return flat != nullptr && flat[i] != 0; }
};

class SparseRows {
  public:
    // Keeps the view: the arrays must outlive this.
    SparseRows(SparseMatrix rows, Preparation preparation);
    const SparseView& view() const { return view_; }

  private:
    SparseView view_;
    std::vector<float> prepared_;
    std::vector<std::uint8_t> flat_;
};

constexpr int most_sums = 5;  // that any metric compares rows by (pair_terms.hpp)

// The rows that store a column, with their values, column after column; rows ascend.
struct Postings {
    const Size* begin = nullptr;  // [cols + 1]
    const Index* row = nullptr;
    const float* value = nullptr;
    const double* alone = nullptr;  // [rows][most_sums]: what a row adds where the other has nothing
    Size rows = 0;
};

struct SparseTask {
    SparseView heads, tails;
    PairRule rule;
    bool itself = false;  // heads are the tails, and no row is its own neighbour
    Size k = 0;
    Index* index = nullptr;  // [heads][stride], the first k are written
    float* rank = nullptr;
    Size stride = 0;
    // With a budget a row adds up no more than so many entries of lists, and evaluates the `pool` best of what it
    // finds.
    Size budget = 0, pool = 0;
};

class SparseIndex {
  public:
    // Keeps the view: the arrays must outlive the index.
    SparseIndex(SparseMatrix rows, const MetricRule& metric, double power, ThreadTeam& team);

    const SparseView& rows() const { return rows_.view(); }

    // Whether all pairs can be had from the columns' lists, and how many additions that takes for all rows.
    bool additive() const;
    double additions() const;

    // k nearest rows of every row, itself first; [rows][k]. Exact without a budget.
    void search(Size k, Size budget, Size pool, Index* index, float* distance, ThreadTeam& team) const;
    // k nearest rows of every query; [queries][k].
    void query(SparseMatrix queries, Size k, Size budget, Size pool, Index* index, float* distance,
               ThreadTeam& team) const;

  private:
    void finish(float* distance, Size n) const;

    const MetricRule& metric_;
    const PairRule rule_;
    const SparseRows rows_;
    std::vector<Size> begin_;
    std::vector<Index> row_;
    std::vector<float> value_;
    std::vector<double> alone_;
    Postings postings_;
};

}  // namespace vicinal
