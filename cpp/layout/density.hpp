// densMAP's term (density_term.hpp) between sweeps: the radii to match, the radii of the map, and the moves.
#pragma once

#include "base/parallel.hpp"
#include "layout/density_row.hpp"

#include <optional>
#include <vector>

namespace vicinal {

struct DensityOptions {
    float lambda;
    double variance_shift;
    Size first_sweep;
    Size every;  // acts in every `every`-th sweep, with a step `every` times as long
    // The summary of the fitted map when unseen rows are placed into it, because their radii must not depend on each
    // other.
    std::optional<DensitySummary> fitted;
};

class Density {
  public:
    // `target` holds standardized logarithms of input radii; NaN excludes a row.
    Density(const float* target, const LayoutTask& task, const DensityOptions& options);

    bool acts_in(Size sweep) const {
        return sweep >= options_.first_sweep && (sweep - options_.first_sweep) % options_.every == 0;
    }
    float length() const { return static_cast<float>(options_.every); }

    // Measures the radii of the present map and summarizes them.
    const DensitySummary& measure(const LayoutTask& task, const ForceParameters& kernel, ThreadTeam& team);
    // The gradient of lambda Corr with respect to every point. A frozen reference pulls once, a fit twice.
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
