// Conditional probabilities of a neighbor table whose entropy is that of `perplexity` equally likely neighbors (survey
// eq. 18).
//
//   p_{j|i} = exp(-d_ij^2 / (2 sigma_i^2)) / sum over k != i of exp(-d_ik^2 / (2 sigma_i^2))
//   sigma_i : -sum over j of p_{j|i} ln p_{j|i} = ln(perplexity)
//
// The survey prints d_ij / sigma_i; t-SNE squares the distance and divides by 2 sigma^2. The sum runs over the
// neighbors in the table; p is 0 for all other rows. If the entropy cannot be reached, the closest one is used: fewer
// neighbors than `perplexity` are equally likely (sigma infinite), and so are the nearest neighbors if more than
// `perplexity` of them are at the same distance (sigma 0).
#pragma once

#include "base/parallel.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace vicinal {

class PerplexityCalibration {
  public:
    // In a bipartite table, an index that equals the row's own number refers to another row.
    PerplexityCalibration(const NeighborTable& table, double perplexity, bool bipartite)
        : table_(table), target_(std::log(perplexity)), bipartite_(bipartite) {}

    void run(float* conditional, float* sigma, ThreadTeam& team) const {
        team.parallel_for(table_.rows, 256, [&](Size begin, Size end, int) {
            std::vector<double> u(static_cast<std::size_t>(table_.k));
            for (Size i = begin; i < end; ++i) sigma[i] = calibrate(i, u.data(), conditional + i * table_.k);
        });
    }

  private:
    static constexpr double tolerance = 1e-7;  // of the entropy
    static constexpr int iterations = 64;
    static constexpr double longest_step = 2.0;  // of ln(beta)

    bool is_neighbor(Size i, Size e) const {
        const Index j = table_.index[e];
        return j >= 0 && (bipartite_ || j != i) && std::isfinite(table_.distance[e]);
    }

    static double squared(float d) { return static_cast<double>(d) * d; }

    float calibrate(Size i, double* u, float* conditional) const {
        double nearest = std::numeric_limits<double>::infinity(), farthest = 0.0;
        Size count = 0;
        for (Size c = 0, e = i * table_.k; c < table_.k; ++c, ++e)
            if (is_neighbor(i, e)) {
                nearest = std::min(nearest, squared(table_.distance[e]));
                farthest = std::max(farthest, squared(table_.distance[e]));
                ++count;
            }
        // Squared distances minus the smallest, divided by their range: the shift does not change the probabilities,
        // and beta = width / (2 sigma^2) has no unit.
        const double width = count > 0 && farthest > nearest ? farthest - nearest : 1.0;
        Size at = 0;
        for (Size c = 0, e = i * table_.k; c < table_.k; ++c, ++e)
            if (is_neighbor(i, e)) u[at++] = (squared(table_.distance[e]) - nearest) / width;
        const bool reachable = target_ < std::log(static_cast<double>(count));
        const double beta = reachable ? solve(u, count) : 0.0;
        double sum = 0.0;
        for (Size c = 0; c < count; ++c) sum += u[c] = std::exp(-beta * u[c]);
        at = 0;
        for (Size c = 0, e = i * table_.k; c < table_.k; ++c, ++e)
            conditional[c] = is_neighbor(i, e) ? static_cast<float>(u[at++] / sum) : 0.0f;
        return static_cast<float>(std::sqrt(width / (2.0 * beta)));
    }

    // Finds the beta whose entropy is the target, by Newton's method on ln(beta) within a bracket.
    double solve(const double* u, Size count) const {
        double low = 0.0, high = std::numeric_limits<double>::infinity(), beta = 1.0;
        for (int t = 0; t < iterations; ++t) {
            double sum = 0.0, first = 0.0, second = 0.0;
            for (Size c = 0; c < count; ++c) {
                const double w = std::exp(-beta * u[c]), wu = w * u[c];
                sum += w;
                first += wu;
                second += wu * u[c];
            }
            const double mean = first / sum, excess = std::log(sum) + beta * mean - target_;
            if (std::fabs(excess) < tolerance) break;
            (excess > 0.0 ? low : high) = beta;
            // d entropy / d ln(beta) = -beta^2 times the variance of u.
            const double slope = beta * beta * (second / sum - mean * mean);
            const double step = slope > 0.0 ? excess / slope : std::copysign(longest_step, excess);
            beta *= std::exp(std::clamp(step, -longest_step, longest_step));
            if (!(beta > low && beta < high)) beta = (low + high) / 2.0;
        }
        return beta;
    }

    const NeighborTable& table_;
    const double target_;
    const bool bipartite_;
};

}  // namespace vicinal
