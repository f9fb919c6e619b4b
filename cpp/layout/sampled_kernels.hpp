// Hot code of SampledLayout, one table per instruction-set level (base/level.hpp).
#pragma once

#include "base/level.hpp"
#include "base/parallel.hpp"
#include "layout/layout_task.hpp"

namespace vicinal {

struct SampledKernels {
    void (*list_firings)(const LayoutTask& task, Size begin, Size end, Size number, Size sweeps, Size capacity,
                         Index* tails, Index* first);
    // `firings` are those of the blocks of rows, the sweep is number `listed` of these lists.
    void (*layout_sweep)(const LayoutTask& task, const LayoutSweep& sweep, const LayoutLaw& law,
                         const BlockFirings* firings, Size listed, const LayoutScratch* scratch, ThreadTeam& team);
    // Coefficients of the forces at the squared distances `d2`, and distances with gradients of pairs of points: for
    // tests of the formulas.
    void (*force_table)(const ForceParameters& force, const float* d2, Size n, float* attract, float* repel);
    void (*space_table)(const SpaceParameters& space, Matrix heads, Matrix tails, float* d2, float* delta);
};

VICINAL_KERNELS(SampledKernels, sampled_kernels)

}  // namespace vicinal
