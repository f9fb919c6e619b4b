#include "layout/density.hpp"

#include "layout/density_kernels.hpp"

#include <algorithm>
#include <cmath>

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
    double firings = 0.0;
    for (Size e = 0; e < task.indptr[task.n_heads]; ++e) firings += task.rate[e] / 4294967296.0;
    summary_.strength = firings / std::max<double>(static_cast<double>(task.n_heads) - 1.0, 1.0);
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
    density_kernels().measure(layout, task(kernel), ScratchRooms(team.size(), most_edges_, layout.dim).data(), team);
    if (!options_.fitted) summarize();
    return summary_;
}

const std::vector<float>& Density::moves(const LayoutTask& layout, const ForceParameters& kernel, int pulls,
                                         ThreadTeam& team) {
    measure(layout, kernel, team);
    share_rows();
    DensityTask density = task(kernel);
    const double half_turns = pulls / 2.0;
    density.scale = static_cast<float>(half_turns * options_.lambda * summary_.strength / std::sqrt(summary_.variance));
    density.bound = static_cast<float>(pulls) * gradient_bound / 2147483648.0f;
    density_kernels().move(layout, density, ScratchRooms(team.size(), most_edges_, layout.dim).data(), team);
    return moves_;
}

// Serial, in row order: a few operations per row, and the same bits for any number of threads.
void Density::summarize() {
    double n = 0.0, sum = 0.0;
    for (std::size_t i = 0; i < target_.size(); ++i) {
        if (std::isnan(target_[i])) continue;
        n += 1.0;
        sum += log_radius_[i];
    }
    const double mean = n > 0.0 ? sum / n : 0.0, others = std::max(n - 1.0, 1.0);
    double squares = 0.0, products = 0.0;
    for (std::size_t i = 0; i < target_.size(); ++i) {
        if (std::isnan(target_[i])) continue;
        const double apart = log_radius_[i] - mean;
        squares += apart * apart;
        products += apart * target_[i];
    }
    summary_.mean = mean;
    summary_.variance = std::max(squares / others + options_.variance_shift, 1e-12);
    summary_.covariance = products / others;
}

// (A, B) of every head; 0 for excluded rows.
void Density::share_rows() {
    for (std::size_t i = 0; i < target_.size(); ++i) {
        double a = 0.0, b = 0.0;
        if (!std::isnan(target_[i]) && mass_[i] > 0.0) {
            const double pull = summary_.covariance * (log_radius_[i] - summary_.mean) / summary_.variance;
            a = (target_[i] - pull) / mass_[i];
            b = a * std::exp(-log_radius_[i]);
        }
        share_[2 * i] = static_cast<float>(a);
        share_[2 * i + 1] = static_cast<float>(b);
    }
}

}  // namespace vicinal
