#include "losses/loss_sums.hpp"

#include "base/rng.hpp"
#include "losses/loss_kernels.hpp"

#include <algorithm>

namespace vicinal {

PairSums::PairSums(Matrix embedding, const float* weight)
    : n_(embedding.rows), dim_(embedding.cols), stride_((n_ + most_lanes - 1) / most_lanes * most_lanes),
      places_(static_cast<std::size_t>(dim_ * stride_), 0.0f), weight_(static_cast<std::size_t>(stride_), 0.0f) {
    for (Size i = 0; i < n_; ++i)
        for (Size c = 0; c < dim_; ++c) places_[c * stride_ + i] = embedding.row(i)[c];
    if (weight != nullptr)
        std::copy(weight, weight + n_, weight_.begin());
    else
        std::fill(weight_.begin(), weight_.begin() + n_, 1.0f);
}

void PairSums::costs(const PairQuantity& quantity, double* out, ThreadTeam& team) const {
    loss_kernels().sum_costs(view(), quantity, out, team);
}

void PairSums::forces(const PairQuantity& quantity, const PairHeads& heads, double* out, ThreadTeam& team) const {
    loss_kernels().sum_forces(view(), quantity, heads, out, team);
}

void PairSums::edges(const PairQuantity& quantity, bool vectors, const PairHeads& heads, const Csr& graph, double* out,
                     ThreadTeam& team) const {
    (vectors ? loss_kernels().sum_edge_forces : loss_kernels().sum_edge_costs)(view(), quantity, heads, graph, out,
                                                                               team);
}

void PairSums::draws(const PairQuantity& quantity, Size groups, std::uint64_t seed, const PairEstimate& out,
                     ThreadTeam& team) const {
    loss_kernels().sum_draws(view(), quantity, {groups, stream_key(seed, Stream::pairs)}, out, team);
}

}  // namespace vicinal
