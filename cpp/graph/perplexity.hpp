// Conditional probabilities of the rows of a neighbor table. The entropy of a row's probabilities is that of
// `perplexity` equally likely neighbors (survey eq. 18).
//
//   p_{j|i} = exp(-d_ij^2 / (2 sigma_i^2)) / sum over k != i of exp(-d_ik^2 / (2 sigma_i^2))
//   sigma_i : -sum over j of p_{j|i} ln p_{j|i} = ln(perplexity)
//
// The survey prints d_ij / sigma_i; t-SNE squares the distance and divides by 2 sigma^2. The sum runs over the
// neighbors in the table; p is 0 for all other rows. If the entropy cannot be reached, the closest one is used: fewer
// neighbors than `perplexity` are equally likely (sigma infinite), and so are the nearest neighbors if more than
// `perplexity` of them are at the same distance (sigma 0).
//
// The formulas of one row are shared with the GPU (cuda/graph.cu); the loop over all rows is for the CPU.
#pragma once

#include "base/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#if !defined(VICINAL_ONE_LANE)
#include "base/parallel.hpp"

#include <vector>
#endif

namespace vicinal {

// Working memory: one number per neighbor of a row, `stride` apart. On a GPU, the numbers of neighboring rows are
// interleaved.
struct NeighborRoom {
    double* data;
    Size stride;

    VICINAL_INLINE double& operator[](Size c) const { return data[c * stride]; }
};

class PerplexityRow {
  public:
    // In a bipartite table, an index that equals the row's own number refers to another row.
    VICINAL_INLINE PerplexityRow(const NeighborTable& table, Size row, double perplexity, bool bipartite)
        : index_(table.index + row * table.k), distance_(table.distance + row * table.k), row_(row), k_(table.k),
          target_(log_exact(perplexity)), bipartite_(bipartite) {}

    // Writes the probabilities of all k entries, 0 for those that are no neighbors, and returns sigma. `u` has room for
    // k numbers.
    float calibrate(NeighborRoom u, float* conditional) const {
        double nearest = std::numeric_limits<double>::infinity(), farthest = 0.0;
        Size count = 0;
        for (Size c = 0; c < k_; ++c)
            if (is_neighbor(c)) {
                nearest = std::min(nearest, squared(distance_[c]));
                farthest = std::max(farthest, squared(distance_[c]));
                ++count;
            }
        // Squared distances minus the smallest, divided by their range: the shift does not change the probabilities,
        // and beta = width / (2 sigma^2) has no unit.
        const double width = count > 0 && farthest > nearest ? farthest - nearest : 1.0;
        Size at = 0;
        for (Size c = 0; c < k_; ++c)
            if (is_neighbor(c)) u[at++] = (squared(distance_[c]) - nearest) / width;
        const bool reachable = count > 0 && target_ < log_exact(static_cast<double>(count));
        const double beta = reachable ? solve(u, count) : 0.0;
        double sum = 0.0;
        for (Size c = 0; c < count; ++c) {
            const double weight = exp_exact(-beta * u[c]);
            u[c] = weight;
            sum += weight;
        }
        at = 0;
        for (Size c = 0; c < k_; ++c) conditional[c] = is_neighbor(c) ? static_cast<float>(u[at++] / sum) : 0.0f;
        return static_cast<float>(std::sqrt(width / (2.0 * beta)));
    }

  private:
    static constexpr double tolerance = 1e-7;  // of the entropy
    static constexpr int iterations = 64;
    static constexpr double longest_step = 2.0;  // of ln(beta)

    VICINAL_INLINE bool is_neighbor(Size c) const {
        return index_[c] >= 0 && (bipartite_ || index_[c] != row_) && std::isfinite(distance_[c]);
    }

    static VICINAL_INLINE double squared(float d) { return static_cast<double>(d) * d; }

    // Finds the beta whose entropy is the target, by Newton's method on ln(beta) within a bracket.
    double solve(NeighborRoom u, Size count) const {
        double low = 0.0, high = std::numeric_limits<double>::infinity(), beta = 1.0;
        for (int t = 0; t < iterations; ++t) {
            double sum = 0.0, first = 0.0, second = 0.0;
            for (Size c = 0; c < count; ++c) {
                const double w = exp_exact(-beta * u[c]), wu = w * u[c];
                sum += w;
                first += wu;
                second += wu * u[c];
            }
            const double mean = first / sum, excess = log_exact(sum) + beta * mean - target_;
            if (std::fabs(excess) < tolerance) break;
            (excess > 0.0 ? low : high) = beta;
            // d entropy / d ln(beta) = -beta^2 times the variance of u.
            const double slope = beta * beta * (second / sum - mean * mean);
            const double step = slope > 0.0 ? excess / slope : excess > 0.0 ? longest_step : -longest_step;
            beta *= exp_exact(std::min(std::max(step, -longest_step), longest_step));
            if (!(beta > low && beta < high)) beta = (low + high) / 2.0;
        }
        return beta;
    }

    const Index* index_;
    const float* distance_;
    const Size row_, k_;
    const double target_;
    const bool bipartite_;
};

}  // namespace vicinal

// The loop over all rows, on the CPU.
#if !defined(VICINAL_ONE_LANE)

namespace vicinal {

class PerplexityCalibration {
  public:
    PerplexityCalibration(const NeighborTable& table, double perplexity, bool bipartite)
        : table_(table), perplexity_(perplexity), bipartite_(bipartite) {}

    void run(float* conditional, float* sigma, ThreadTeam& team) const {
        team.parallel_for(table_.rows, 256, [&](Size begin, Size end, int) {
            std::vector<double> u(static_cast<std::size_t>(table_.k));
            for (Size i = begin; i < end; ++i)
                sigma[i] = PerplexityRow(table_, i, perplexity_, bipartite_)
                               .calibrate({u.data(), 1}, conditional + i * table_.k);
        });
    }

  private:
    const NeighborTable& table_;
    const double perplexity_;
    const bool bipartite_;
};

}  // namespace vicinal

#endif  // VICINAL_ONE_LANE
