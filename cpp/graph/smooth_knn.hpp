// rho, sigma and memberships of all rows of a neighbor table (survey eq. 1-3); smooth_knn_row.hpp has the formulas.
#pragma once

#include "base/parallel.hpp"
#include "graph/smooth_knn_row.hpp"

#include <cmath>
#include <optional>

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

// Eq. 1 for the whole table.
inline void memberships(const NeighborTable& table, const float* rho, const float* sigma, bool bipartite, float* out,
                        ThreadTeam& team) {
    team.parallel_for(table.rows, 1024, [&](Size begin, Size end, int) {
        for (Size i = begin; i < end; ++i)
            for (Size e = i * table.k; e < (i + 1) * table.k; ++e)
                out[e] = membership(table.index[e], table.distance[e], i, rho[i], sigma[i], bipartite);
    });
}

}  // namespace vicinal
