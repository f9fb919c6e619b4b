// Hot code of PairSums, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "losses/loss_sums.hpp"

namespace vicinal {

struct LossKernels {
    void (*sum_costs)(const PairPlaces& places, const PairQuantity& quantity, double* out, ThreadTeam& team);
    void (*sum_forces)(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads, double* out,
                       ThreadTeam& team);
    void (*sum_edge_costs)(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads,
                           const Csr& graph, double* out, ThreadTeam& team);
    void (*sum_edge_forces)(const PairPlaces& places, const PairQuantity& quantity, const PairHeads& heads,
                            const Csr& graph, double* out, ThreadTeam& team);
    void (*sum_draws)(const PairPlaces& places, const PairQuantity& quantity, const PairDraws& draws,
                      const PairEstimate& out, ThreadTeam& team);
};

VICINAL_KERNELS(LossKernels, loss_kernels)

}  // namespace vicinal
