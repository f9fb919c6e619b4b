// Conditional probabilities of all rows of a neighbor table (perplexity_row.hpp).
#pragma once

#include "base/parallel.hpp"
#include "graph/perplexity_row.hpp"

#include <vector>

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
