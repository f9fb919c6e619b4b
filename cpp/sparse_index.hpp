// Sparse rows made searchable: prepared by their metric, and listed by column.
#pragma once

#include "pair_metric.hpp"
#include "parallel.hpp"

#include <memory>
#include <vector>

namespace vicinal {

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
};

struct SparseSketch {
    static constexpr Size width = 128;
    std::uint64_t seed = 0;
    bool unit = false, truth = false;
};

class SparseIndex {
  public:
    // Keeps the view: the arrays must outlive the index.
    SparseIndex(SparseMatrix rows, const MetricRule& metric, double power, ThreadTeam& team);

    const SparseView& rows() const { return rows_.view(); }

    // Whether all pairs can be had from the columns' lists, and how many additions that takes for all rows.
    bool additive() const;
    double additions() const;

    // k nearest rows of every row, itself first; [rows][k].
    void search(Size k, Index* index, float* distance, ThreadTeam& team) const;
    // k nearest rows of every query; [queries][k].
    void query(SparseMatrix queries, Size k, Index* index, float* distance, ThreadTeam& team) const;
    // Ranks of pairs of these rows, which are queries or the index's own, with the index's.
    std::unique_ptr<PairMetric> pairs(SparseMatrix rows) const;
    // Dense rows [rows][SparseSketch::width] of about the same neighbours.
    void sketch(SparseMatrix rows, std::uint64_t seed, float* out, ThreadTeam& team) const;

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
