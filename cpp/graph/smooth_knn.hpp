// rho, sigma and memberships of the rows of a neighbor table (survey eq. 1-3), with umap-learn's conventions.
//
//   p_{j|i} = exp(-(d_ij - rho_i) / sigma_i), 1 inside rho_i                                     (eq. 1)
//   rho_i   = distance to the nearest neighbor at positive distance; with local_connectivity c the
//             c-th one, linearly interpolated                                                    (eq. 2)
//   sigma_i : sum over the k-1 neighbors other than i itself of p_{j|i} = log2(k)                (eq. 3)
//
// The survey's sum runs over k neighbors; here k counts the row itself, so the sum has k-1 terms. sigma solves the
// equation to a tolerance of 1e-5 in the sum and is at least 1e-3 of the mean distance.
//
// The formulas of one row are shared with the GPU (cuda/graph.cu); the loops over all rows are for the CPU.
#pragma once

#include "base/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#if !defined(VICINAL_ONE_LANE)
#include "base/parallel.hpp"

#include <optional>
#endif

namespace vicinal {

constexpr double sigma_tolerance = 1e-5;
constexpr int most_iterations = 64;
constexpr double smallest_sigma = 1e-3;  // times the mean distance

// The sorted distances of one row, the row itself first.
class SmoothKnnRow {
  public:
    SmoothKnnRow(const float* distance, Size columns) : d(distance), columns_(columns) {}

    // sigma, at least `smallest_sigma` of `scale`.
    float sigma(float rho, double target, double scale) const {
        return static_cast<float>(std::max(solve(rho, target), smallest_sigma * scale));
    }

    double mean() const { return mean_distance(d, columns_); }

    // Missing neighbors (infinite distance) are ignored.
    static double mean_distance(const float* d, Size n) {
        double sum = 0.0;
        Size count = 0;
        for (Size e = 0; e < n; ++e)
            if (std::isfinite(d[e])) {
                sum += d[e];
                ++count;
            }
        return count > 0 ? sum / static_cast<double>(count) : 0.0;
    }

    float rho(double local_connectivity) const {
        Size first = 0, last = columns_;
        while (first < columns_ && !(d[first] > 0.0f)) ++first;
        while (last > first && !std::isfinite(d[last - 1])) --last;
        const Size positive = last - first;
        if (positive == 0) return 0.0f;
        if (static_cast<double>(positive) < local_connectivity) return d[last - 1];
        const auto whole = static_cast<Size>(std::floor(local_connectivity));
        const double part = local_connectivity - static_cast<double>(whole);
        if (whole == 0) return static_cast<float>(part * d[first]);
        const float* at = d + first + whole - 1;
        if (part <= sigma_tolerance) return *at;
        return static_cast<float>(*at + part * (static_cast<double>(at[1]) - *at));
    }

  private:
    // Newton's method in 1/sigma, in which the sum is convex. A step that leaves the bracket is replaced by bisection,
    // or by doubling as long as there is no upper bound.
    double solve(float rho, double target) const {
        double low = 0.0, high = std::numeric_limits<double>::infinity(), sigma = first_guess(rho, target);
        for (int t = 0; t < most_iterations; ++t) {
            double sum = 0.0, slope = 0.0;  // d sum / d(1/sigma), negated
            for (Size j = 1; j < columns_; ++j) {
                const double beyond = static_cast<double>(d[j]) - rho;
                if (!(beyond > 0.0)) {
                    sum += 1.0;
                } else if (std::isfinite(beyond)) {
                    const double p = exp_exact(-beyond / sigma);
                    sum += p;
                    slope += beyond * p;
                }
            }
            if (std::fabs(sum - target) < sigma_tolerance) break;
            (sum > target ? high : low) = sigma;
            const double step = 1.0 / (1.0 / sigma + (sum - target) / slope);
            if (step > low && step < high)
                sigma = step;
            else
                sigma = std::isinf(high) ? sigma * 2.0 : (low + high) / 2.0;
        }
        return sigma;
    }

    // The solution if all neighbors were at their mean distance.
    double first_guess(float rho, double target) const {
        double sum = 0.0;
        Size count = 0;
        for (Size j = 1; j < columns_; ++j)
            if (std::isfinite(d[j])) {
                sum += std::max(static_cast<double>(d[j]) - rho, 0.0);
                ++count;
            }
        const double n = static_cast<double>(count), guess = sum / n / log_exact(n / target);
        return guess > 0.0 && std::isfinite(guess) ? guess : 1.0;
    }

    const float* d;
    Size columns_;
};

// Eq. 1 of one entry of row i. A row is not its own neighbor, unless the table is bipartite: then its index refers to
// another row.
inline float membership(Index index, float distance, Size i, float rho, float sigma, bool bipartite) {
    const double beyond = static_cast<double>(distance) - rho;
    if (index < 0 || (!bipartite && index == i)) return 0.0f;
    if (beyond <= 0.0 || sigma == 0.0f) return 1.0f;
    return static_cast<float>(exp_exact(-beyond / sigma));
}

}  // namespace vicinal

// The loops over all rows, on the CPU.
#if !defined(VICINAL_ONE_LANE)

namespace vicinal {

struct SmoothKnnOptions {
    double k;  // log2(k) is the target of the sum; may differ from the columns of the table
    double local_connectivity;
    double bandwidth;
    // If rho is 0, the floor of sigma uses the row's own mean distance instead of that of all rows: for rows that must
    // not depend on each other (transform).
    bool independent_rows;
    // Of all rows, if the table holds only some of them.
    std::optional<double> mean_distance = std::nullopt;
};

class SmoothKnn {
  public:
    SmoothKnn(const float* distance, Size rows, Size columns, const SmoothKnnOptions& options)
        : distance_(distance), rows_(rows), columns_(columns), options_(options) {}

    void run(float* rho, float* sigma, ThreadTeam& team) const {
        const double mean_all =
            options_.mean_distance ? *options_.mean_distance : SmoothKnnRow::mean_distance(distance_, rows_ * columns_);
        const double target = std::log2(options_.k) * options_.bandwidth;
        team.parallel_for(rows_, 512, [&](Size begin, Size end, int) {
            for (Size i = begin; i < end; ++i) {
                const SmoothKnnRow row(distance_ + i * columns_, columns_);
                rho[i] = row.rho(options_.local_connectivity);
                sigma[i] =
                    row.sigma(rho[i], target, rho[i] > 0.0f || options_.independent_rows ? row.mean() : mean_all);
            }
        });
    }

  private:
    const float* distance_;
    Size rows_, columns_;
    SmoothKnnOptions options_;
};

// Eq. 1 for all entries of the table.
inline void memberships(const NeighborTable& table, const float* rho, const float* sigma, bool bipartite, float* out,
                        ThreadTeam& team) {
    team.parallel_for(table.rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size e = i * table.k; e < (i + 1) * table.k; ++e)
                out[e] = membership(table.index[e], table.distance[e], i, rho[i], sigma[i], bipartite);
    });
}

}  // namespace vicinal

#endif  // VICINAL_ONE_LANE
