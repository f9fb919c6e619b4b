// Hot code of the density term, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "layout/density_task.hpp"

namespace vicinal {

struct DensityKernels {
    void (*measure)(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch,
                    ThreadTeam& team);
    void (*move)(const LayoutTask& task, const DensityTask& density, const DensityScratch* scratch, ThreadTeam& team);
};

VICINAL_KERNELS(DensityKernels, density_kernels)

}  // namespace vicinal
