// Owns what the density term needs between sweeps: the radii to be matched, and those of the map.
#pragma once

#include "base/parallel.hpp"
#include "layout/density_task.hpp"

#include <optional>
#include <vector>

namespace vicinal {

struct DensityOptions {
    float lambda;
    double variance_shift;
    Size first_sweep;
    Size every;  // the term acts in every `every`-th sweep, with a step that is `every` times as long
    // Of the fitted map, when new rows are placed into it: their radii must not depend on each other.
    std::optional<DensitySummary> fitted;
};

class Density {
  public:
    // `target` holds standardised logarithms of input radii; NaN leaves a row out.
    Density(const float* target, const LayoutTask& task, const DensityOptions& options);

    bool acts_in(Size sweep) const {
        return sweep >= options_.first_sweep && (sweep - options_.first_sweep) % options_.every == 0;
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
