#include "layout/density.hpp"

#include "layout/density_row.hpp"
#include "layout/layout_kernels.hpp"

#include <algorithm>

namespace vicinal {

namespace {

// Working memory for the edges of one row, one per worker.
class ScratchRooms {
  public:
    ScratchRooms(int workers, Size edges, Size dim) {
        const Size stride = edges + most_lanes;
        memory_.resize(static_cast<std::size_t>(workers * (2 + dim) * stride));
        for (int worker = 0; worker < workers; ++worker) {
            float* at = memory_.data() + worker * (2 + dim) * stride;
            rooms_.push_back({at, at + stride, at + 2 * stride, stride});
        }
    }
    const DensityScratch* data() const { return rooms_.data(); }

  private:
    std::vector<float> memory_;
    std::vector<DensityScratch> rooms_;
};

}  // namespace

Density::Density(const float* target, const LayoutTask& task, const DensityOptions& options)
    : options_(options), target_(target, target + task.n_heads),
      affinity_(static_cast<std::size_t>(task.indptr[task.n_heads] + most_lanes)), share_(2 * target_.size()),
      moves_(static_cast<std::size_t>(task.n_heads * task.dim)), log_radius_(target_.size()), mass_(target_.size()) {
    for (Size i = 0; i < task.n_heads; ++i) most_edges_ = std::max(most_edges_, task.indptr[i + 1] - task.indptr[i]);
    std::uint64_t firings = 0;  // in units of 2^-32
    for (Size e = 0; e < task.indptr[task.n_heads]; ++e) firings += task.rate[e];
    summary_.strength =
        static_cast<double>(firings) / 4294967296.0 / std::max<double>(static_cast<double>(task.n_heads) - 1.0, 1.0);
    if (options.fitted) summary_ = *options.fitted;
}

DensityTask Density::task(const ForceParameters& kernel) {
    DensityTask task;
    task.a = kernel.a;
    task.b = kernel.b;
    task.target = target_.data();
    task.log_radius = log_radius_.data();
    task.mass = mass_.data();
    task.affinity = affinity_.data();
    task.share = options_.fitted ? nullptr : share_.data();
    task.head_share = share_.data();
    task.moves = moves_.data();
    return task;
}

const DensitySummary& Density::measure(const LayoutTask& layout, const ForceParameters& kernel, ThreadTeam& team) {
    layout_kernels().measure_density(layout, task(kernel), ScratchRooms(team.size(), most_edges_, layout.dim).data(),
                                     team);
    if (!options_.fitted) summarize();
    return summary_;
}

const std::vector<float>& Density::moves(const LayoutTask& layout, const ForceParameters& kernel, int pulls,
                                         ThreadTeam& team) {
    measure(layout, kernel, team);
    share_rows();
    DensityTask density = task(kernel);
    density.scale = density_scale(summary_, pulls, options_.lambda);
    density.bound = density_bound(pulls);
    layout_kernels().move_density(layout, density, ScratchRooms(team.size(), most_edges_, layout.dim).data(), team);
    return moves_;
}

// Serial: a few operations per row.
void Density::summarize() {
    const auto n = static_cast<Size>(target_.size());
    const auto over_chunks = [&](const auto& sum_of) {
        RowSums total;
        for (Size begin = 0; begin < n; begin += density_chunk_rows) {
            const RowSums chunk = sum_of(begin, std::min(begin + density_chunk_rows, n));
            total.first += chunk.first;
            total.second += chunk.second;
        }
        return total;
    };
    const RowSums radii =
        over_chunks([&](Size begin, Size end) { return sum_radii(target_.data(), log_radius_.data(), begin, end); });
    const RowSums deviations = over_chunks([&](Size begin, Size end) {
        return sum_deviations(target_.data(), log_radius_.data(), mean_radius(radii), begin, end);
    });
    summary_ = summarized(radii, deviations, options_.variance_shift, summary_.strength);
}

void Density::share_rows() {
    for (std::size_t i = 0; i < target_.size(); ++i)
        share_of_row(summary_, target_[i], log_radius_[i], mass_[i], share_.data() + 2 * i);
}

}  // namespace vicinal
