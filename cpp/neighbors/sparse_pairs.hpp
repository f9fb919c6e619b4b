// Pairs of sparse rows that arrive over time, evaluated one by one.
#pragma once

#include "base/growing_array.hpp"
#include "neighbors/sparse_index.hpp"

namespace vicinal {

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

  private:
    const Size cols_;
    const MetricRule& metric_;
    GrowingArray<Size> indptr_;
    GrowingArray<Index> indices_;
    GrowingArray<float> values_;
    GrowingArray<std::uint8_t> flat_;
};

// Ranks are distances, whatever the metric: sparse rows that arrive over time are searched by evaluated pairs only.
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
