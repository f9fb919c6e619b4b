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

Size most_edges(const LayoutTask& task) {
    Size most = 0;
    for (Size i = 0; i < task.n_heads; ++i) most = std::max(most, task.indptr[i + 1] - task.indptr[i]);
    return most;
}

}  // namespace

double density_strength(std::uint64_t rates, Size rows) {
    return static_cast<double>(rates) / 4294967296.0 / std::max<double>(static_cast<double>(rows) - 1.0, 1.0);
}

// Serial: a few operations per row.
DensitySummary summarize_density(const float* target, const double* log_radius, Size rows, double variance_shift,
                                 double strength) {
    const auto over_chunks = [&](const auto& sum_of) {
        RowSums total;
        for (Size begin = 0; begin < rows; begin += density_chunk_rows) {
            const RowSums chunk = sum_of(begin, std::min(begin + density_chunk_rows, rows));
            total.first += chunk.first;
            total.second += chunk.second;
        }
        return total;
    };
    const RowSums radii = over_chunks([&](Size begin, Size end) { return sum_radii(target, log_radius, begin, end); });
    const RowSums deviations = over_chunks(
        [&](Size begin, Size end) { return sum_deviations(target, log_radius, mean_radius(radii), begin, end); });
    return summarized(radii, deviations, variance_shift, strength);
}

DensityPart::DensityPart(const LayoutTask& layout, const ForceParameters& kernel, ThreadTeam& team)
    : most_edges_(most_edges(layout)), affinity_(static_cast<std::size_t>(layout.indptr[layout.n_heads] + most_lanes)),
      log_radius_(static_cast<std::size_t>(layout.n_heads)), mass_(log_radius_.size()) {
    density_.a = kernel.a;
    density_.b = kernel.b;
    density_.log_radius = log_radius_.data();
    density_.mass = mass_.data();
    density_.affinity = affinity_.data();
    layout_kernels().measure_density(layout, density_, ScratchRooms(team.size(), most_edges_, layout.dim).data(), team);
}

std::vector<float> DensityPart::moves(const LayoutTask& layout, const DensitySummary& summary, int pulls, float lambda,
                                      const float* share, const float* head_share, ThreadTeam& team) {
    std::vector<float> out(static_cast<std::size_t>(layout.n_heads * layout.dim));
    density_.share = share;
    density_.head_share = head_share;
    density_.scale = density_scale(summary, pulls, lambda);
    density_.bound = density_bound(pulls);
    density_.moves = out.data();
    layout_kernels().move_density(layout, density_, ScratchRooms(team.size(), most_edges_, layout.dim).data(), team);
    return out;
}

Density::Density(const float* target, const LayoutTask& task, const DensityOptions& options)
    : options_(options), target_(target, target + task.n_heads),
      affinity_(static_cast<std::size_t>(task.indptr[task.n_heads] + most_lanes)), share_(2 * target_.size()),
      moves_(static_cast<std::size_t>(task.n_heads * task.dim)), log_radius_(target_.size()), mass_(target_.size()) {
    most_edges_ = most_edges(task);
    std::uint64_t rates = 0;
    for (Size e = 0; e < task.indptr[task.n_heads]; ++e) rates += task.rate[e];
    summary_.strength = density_strength(rates, task.n_heads);
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
    if (!options_.fitted)
        summary_ = summarize_density(target_.data(), log_radius_.data(), static_cast<Size>(target_.size()),
                                     options_.variance_shift, summary_.strength);
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

void Density::share_rows() {
    for (std::size_t i = 0; i < target_.size(); ++i)
        share_of_row(summary_, target_[i], log_radius_[i], mass_[i], share_.data() + 2 * i);
}

}  // namespace vicinal
