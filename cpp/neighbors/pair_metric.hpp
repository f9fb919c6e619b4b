// Ranks of pairs that must be evaluated one by one: by sums over the columns (pair_terms.hpp), or by a function of the
// caller.
#pragma once

#include "base/row_matrix.hpp"
#include "base/types.hpp"
#include "neighbors/metric_table.hpp"

namespace vicinal {

// How sums over columns become a rank.
struct PairRule {
    Terms terms = Terms::squared;
    double power = 2.0;
    Size cols = 0;
};

// Ranks of pairs of two sets of rows, heads and tails; both are the same set when an index is searched for the
// neighbors of its own rows. An infinite rank means that the pair cannot be compared.
class PairMetric {
  public:
    virtual ~PairMetric() = default;
    virtual float rank(Size head, Size tail) const = 0;
};

class DensePairs : public PairMetric {
  public:
    DensePairs(const RowMatrix& heads, const RowMatrix& tails, const MetricRule& metric, double power)
        : heads_(heads), tails_(tails), rule_{metric.terms, power, tails.cols} {}
    float rank(Size head, Size tail) const override;

  private:
    const RowMatrix heads_, tails_;
    const PairRule rule_;
};

// A compiled function: double f(x, y, columns[, data]) of two rows as floats or doubles (scipy.LowLevelCallable).
struct ForeignFunction {
    enum class Kind { floats, doubles, floats_data, doubles_data };
    Kind kind = Kind::floats;
    void* function = nullptr;
    void* data = nullptr;
};

class ForeignPairs : public PairMetric {
  public:
    ForeignPairs(Matrix heads, Matrix tails, ForeignFunction function)
        : heads_(heads), tails_(tails), function_(function) {}
    float rank(Size head, Size tail) const override;

  private:
    const Matrix heads_, tails_;
    const ForeignFunction function_;
};

// Converts the result of a metric function to a rank. Values just below 0 are rounding errors and become 0.
float checked_rank(double value, Size head, Size tail);

}  // namespace vicinal
