// Owns what the density term needs between epochs: the radii to be matched, and those of the map.
#pragma once

#include "kernels.hpp"

#include <optional>
#include <vector>

namespace vicinal {

struct DensityOptions {
    float lambda = 2.0f;
    double variance_shift = 0.1;
    Size first_epoch = 0;
    Size every = 1;  // epochs from one move to the next, which is as many times as long
    // Of the fitted map, when new rows are placed into it: their radii must not depend on each other.
    std::optional<DensitySummary> fitted;
};

class Density {
  public:
    // `target` holds standardised logarithms of input radii; NaN leaves a row out.
    Density(const float* target, const LayoutTask& task, const DensityOptions& options);

    bool acts_in(Size epoch) const {
        return epoch >= options_.first_epoch && (epoch - options_.first_epoch) % options_.every == 0;
    }
    float length() const { return static_cast<float>(options_.every); }

    // Radii of the map as it is, and their summary.
    const DensitySummary& measure(const LayoutTask& task, const ForceParameters& kernel, ThreadTeam& team);
    // The gradient of lambda Corr by every place; a frozen reference pulls once where the fit pulls twice.
    const std::vector<float>& moves(const LayoutTask& task, const ForceParameters& kernel, int pulls, ThreadTeam& team);

    const std::vector<double>& log_radius() const { return log_radius_; }

  private:
    DensityTask task(const ForceParameters& kernel);
    void summarize();
    void share_rows();

    DensityOptions options_;
    DensitySummary summary_;
    std::vector<float> target_, affinity_, share_, moves_;
    std::vector<double> log_radius_, mass_;
    Size most_edges_ = 0;
};

}  // namespace vicinal
